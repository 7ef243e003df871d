"""What every verb shares: its contract, what it prints for people and programs, and the files it writes for them.

stdout has the answer; stderr has what is said about it. Lines of our own between those of an answer begin with a name.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sightline.model.fence import plain
from sightline.model.refusal import Refusal

if TYPE_CHECKING:  # `--help` needs none of it
    from argparse import ArgumentParser, Namespace

    from sightline.model.asking import Usage
    from sightline.model.ports import Store
    from sightline.model.scene import Json
    from sightline.settings import Settings

NAME = "[Vision Proxy]"
USAGE_ERROR = 2
ENDINGS = ".png, .jpg or .webp"
OF_A_FILE = frozenset({"not_found", "unsupported_type", "too_large", "corrupt", "render_unavailable"})
"""The refusals that are about a file, whichever model was asked to look at it."""

_FORMATS: Mapping[str, str] = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
_TO_A_MODEL = (
    ("the user runs: ", "run: "),
    ("the user sets ", "set "),
    ("call read_file", "open it as text"),
)
_LEAST = 0.0001  # of a dollar, with as many digits as are shown
_BOLD, _PLAIN, _BACK = "\033[1;36m", "\033[0m", "\r\033[K"


@dataclass(frozen=True, slots=True)
class CliAnswer:
    """What was asked: for programs as an object, for people as lines."""

    found: Mapping[str, Json]
    lines: Iterable[str]


_MOST_FILES = 2_000  # files and folders that `list_files` looks at

Outcome = int | Refusal | CliAnswer
"""How a verb ends: an exit code where it has printed everything itself, else what is to be printed."""


class Verb(Protocol):
    """A module of `verbs`, or a class in one. It imports nothing heavy before `run`."""

    EXAMPLE: str

    def arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, args: Namespace) -> Outcome: ...


def finish(outcome: Outcome, *, as_json: bool) -> int:
    """Print how a verb ended and return its exit code: 0 done, 1 refused."""
    if isinstance(outcome, Refusal):
        return refused(outcome, as_json=as_json)
    return answer(outcome.found, outcome.lines, as_json=as_json) if isinstance(outcome, CliAnswer) else outcome


def answer(found: Mapping[str, Json], lines: Iterable[str], *, as_json: bool, trouble: Refusal | None = None) -> int:
    """Print what was asked, as one JSON object or as lines, and return the exit code.

    `trouble`: something is wrong that the lines say themselves; the exit code is 1 then.
    """
    if as_json:
        said = {"ok": False, "reason": trouble.code, "message": str(trouble)} if trouble else {"ok": True}
        show({**said, **found})
    else:
        for line in lines:
            print(plain(line))
    return 1 if trouble else 0


def refused(refusal: Refusal, found: Mapping[str, Json] | None = None, *, as_json: bool = False) -> int:
    """Say in one line what is refused and what to do about it; with JSON, also what was `found` all the same."""
    if as_json:
        show({"ok": False, "reason": refusal.code, "message": str(refusal), **(found or {})})
    say(str(refusal))
    return 1


def say_no(about: str, message: str) -> int:
    """Say a refusal of the library to a person: which file it is about, and remedies that a person can follow."""
    for to_model, to_person in _TO_A_MODEL:
        message = message.replace(to_model, to_person)
    say(f"{about:.200}: {message}" if about else message)
    return 1


def say(line: str) -> None:
    """Say something to the person, on stderr."""
    print(f"sightline: {plain(' '.join(line.split()))}", file=sys.stderr, flush=True)


def warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        say(f"warning: {warning}")


def tell(line: str) -> None:
    """Print one line of our own among those of an answer."""
    named = f"{_BOLD}{NAME}{_PLAIN}" if sys.stdout.isatty() else NAME
    print(f"{named} {plain(line)}")


def show(found: Mapping[str, Json]) -> None:
    """Print one JSON object in one line. What a terminal cannot print is escaped, as JSON does it."""
    every = sys.stdout.encoding.lower().replace("-", "") in ("utf8", "utf16")
    text = json.dumps(found, ensure_ascii=not every)
    print("".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text))


@contextmanager
def progress(words: str) -> Iterator[None]:
    """Show a line on a terminal while something takes its time."""
    live = sys.stderr.isatty()
    if live:
        print(f"sightline: {words}", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if live:
            print(_BACK, end="", file=sys.stderr, flush=True)


def confirm(question: str) -> bool:
    """Ask the user a question on a terminal; where there is none, the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{NAME} {plain(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def ask_consent(settings: Settings, record: Store, model: str) -> None:
    """Ask on a terminal whether images may be sent, where that is not agreed yet; it counts for one provider alone."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    from sightline.passes.words import SENT
    from sightline.settings.upstreams import called
    from sightline.vision.providers import find_named_receiver

    provider = find_named_receiver(settings, model or None)
    if not provider or record.policy.read_consents().get(provider, False):
        return
    if not confirm(f"{SENT.format(called(settings, provider))}: is that all right?"):
        return
    if no := record.policy.set_consent(provider, given=True):
        say(f"that could not be remembered, so nothing is sent: {no}")


def print_answer(title: str, text: str) -> None:
    """Print what was said of images: a title with their names, then the text."""
    tell(title)
    for line in text.splitlines():
        print(plain(line))


def format_usage(usage: Usage, cost_usd: float | None, *, cached: bool) -> str:
    if cached:
        return "remembered: nobody was asked"
    counts = [f"{count:,} tokens {way}" for way, count in (("in", usage.input), ("out", usage.output)) if count]
    price = [format_dollars(cost_usd)] if cost_usd is not None else []
    return ", ".join([*counts, *price]) or "done"


def format_dollars(cost: float) -> str:
    """Write a price as people read it: what costs nothing has no figures, and what costs something is never $0."""
    if cost == 0:
        return "at no cost"
    return f"${cost:.4f}" if cost >= _LEAST else f"less than ${_LEAST:.4f}"


def read_settings() -> Settings:
    """Load the settings and say what is wrong with them."""
    from sightline.settings import load

    settings = load()
    warn(settings.warnings)
    return settings


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def list_files(folder: Path) -> list[Path] | None:
    """Return all files below a folder, also behind links, or None when there are too many to look at."""
    found: list[Path] = []
    seen = 0
    for parent, folders, names in os.walk(folder, followlinks=True):
        seen += len(folders) + len(names)
        if seen > _MOST_FILES:
            return None
        found += (Path(parent, name) for name in names)
    return found


def text_of(path: Path) -> str | None:
    """Return the text of a file, or None when it cannot be read.

    What is no UTF-8 in it is replaced, as the agents that read the same files do.
    """
    try:
        return path.read_text("utf-8-sig", errors="replace")
    except (OSError, ValueError):
        return None


# Pictures that a person wants as files: the ending of the name decides the format, and no file is lost.


def find_format(path: Path, flag: str) -> str | Refusal:
    """Return the media type that belongs to the ending of a name."""
    if found := _FORMATS.get(path.suffix.lower()):
        return found
    return Refusal(
        "unsupported_type", f"{path} does not say which format is wanted", f"give {flag} a name that ends in {ENDINGS}"
    )


def check_writable(path: Path, flag: str, *, force: bool) -> Refusal | None:
    """Return why a file cannot be written, as far as that can be told before it is made."""
    if os.path.lexists(path):
        if not force:
            return Refusal("not_permitted", f"{path} is there already", "--force writes over it")
        regular = stat.S_ISREG(path.lstat().st_mode)
        return None if regular else _refuse_file(path, "it is no regular file", flag)
    if not path.parent.is_dir():
        return _refuse_file(path, "there is no such folder", flag)
    writable = os.access(path.parent, os.W_OK | os.X_OK)
    return None if writable else _refuse_file(path, "nothing can be written there", flag)


def write_picture(path: Path, data: bytes, flag: str, *, force: bool) -> Refusal | None:
    """Write all of it or nothing, and nothing in the place of a device, a pipe, a folder or a link."""
    from sightline.disk import write_whole

    try:
        if no := check_writable(path, flag, force=force):
            return no
        write_whole(path, data, mode=0o666, fresh=not force)
    except FileExistsError:
        return Refusal("not_permitted", f"{path} is there already", "--force writes over it")
    except OSError as trouble:
        return _refuse_file(path, trouble.strerror or "the disk refuses it", flag)
    except ValueError:
        return Refusal("invalid_input", "that is no path of a file", f"give another {flag}")
    return None


def _refuse_file(path: Path, why: str, flag: str) -> Refusal:
    return Refusal("not_permitted", f"{path} cannot be written: {why}", f"give another {flag}")


# Commands of /vision-proxy as verbs of the shell


def add_arguments(parser: ArgumentParser, verb: str) -> None:
    """Add the arguments of a command, as its table has them."""
    from sightline.commands.table import VERBS

    for argument in VERBS[verb].arguments:
        if argument.kind == "flag":
            parser.add_argument(f"--{argument.name}", action="store_true", help=argument.help)
        elif argument.kind == "option":
            action = "append" if argument.repeatable else "store"
            parser.add_argument(f"--{argument.name}", metavar=argument.metavar, action=action, help=argument.help)
        else:
            count = "+" if argument.repeatable else None if argument.required else "?"
            parser.add_argument(
                argument.name, metavar=argument.metavar, nargs=count, choices=argument.choices, help=argument.help
            )


def for_shell(refusal: Refusal, verb: str) -> Refusal:
    """Return a refusal of the grammar with the usage of a verb as it is typed in a shell, not in a conversation."""
    if refusal.remedy.startswith("usage: ") and verb != "vision-proxy":
        return replace(refusal, remedy=f"see sightline {verb} --help")
    return replace(refusal, remedy=refusal.remedy.replace("/vision-proxy ", "sightline vision-proxy "))
