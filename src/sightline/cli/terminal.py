"""What the verbs share: their protocol, printing for people and programs, asking the user, and writing image files.

The answer goes to stdout, and everything about it to stderr.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sightline.model.fence import to_printable
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

if TYPE_CHECKING:  # `--help` needs none of it
    from argparse import ArgumentParser, Namespace

    from sightline.model.ports import ReportProgress, Store
    from sightline.model.scene import Json
    from sightline.model.seer import Usage
    from sightline.settings import Settings

USAGE_ERROR = 2
IMAGE_SUFFIXES = ".png, .jpg or .webp"
FILE_CODES = frozenset({"not_found", "unsupported_type", "too_large", "corrupt", "render_unavailable"})
"""Codes of refusals that are about a file, not about the model that was asked."""

_FORMATS: Mapping[str, str] = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
_MIN_SHOWN_COST = 0.0001  # dollars; prices have four decimals
_LOGIN = re.compile(r"(?i)^(https?://)[^/?#]*@")
_PROGRESS_SECONDS = 0.1  # between two lines of progress
_DIM_STYLE, _RESET_STYLE, _CLEAR_LINE = "\033[2m", "\033[0m", "\r\033[K"


@value_class
class VerbResult:
    """The result of a verb: an object for programs, and lines for people."""

    fields: Mapping[str, Json]
    lines: Iterable[str]


_MAX_FILES = 2_000  # files and folders that `list_files` looks at

VerbOutcome = int | Refusal | VerbResult
"""What a verb returns: an exit code if it has printed everything itself, otherwise what to print."""


@value_class
class CommandLine:
    """The command itself, for verbs that are about the others. They find it as `args.command_line`."""

    summaries: Mapping[str, str]  # of all verbs
    build_parser: Callable[[str], ArgumentParser]  # of a verb
    run: Callable[[Sequence[str]], int]  # the whole command


class Verb(Protocol):
    """A module of `verbs`, or a class in one. It imports nothing heavy until `run`."""

    EXAMPLE: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, args: Namespace) -> VerbOutcome: ...


def print_outcome(outcome: VerbOutcome, *, as_json: bool) -> int:
    """Print what a verb returned, and return the exit code: 0 if it is done, 1 if it was refused."""
    if isinstance(outcome, Refusal):
        return print_refusal(outcome, as_json=as_json)
    return print_result(outcome.fields, outcome.lines, as_json=as_json) if isinstance(outcome, VerbResult) else outcome


def print_result(
    fields: Mapping[str, Json], lines: Iterable[str], *, as_json: bool, trouble: Refusal | None = None
) -> int:
    """Print a result, as one JSON object or as lines, and return the exit code.

    `trouble`: a problem that the lines mention already. The exit code is 1 then.
    """
    if as_json:
        outcome = {"ok": False, "reason": trouble.code, "message": str(trouble)} if trouble else {"ok": True}
        print_json({**outcome, **fields})
    else:
        for line in lines:
            print(to_printable(line))
    return 1 if trouble else 0


def print_refusal(refusal: Refusal, fields: Mapping[str, Json] | None = None, *, as_json: bool = False) -> int:
    """Print one line that says what is refused and what to do; with JSON, also `fields`."""
    if as_json:
        print_json({"ok": False, "reason": refusal.code, "message": str(refusal), **(fields or {})})
    print_status(str(refusal))
    return 1


def print_failure(about: str, message: str) -> int:
    """Print a failure of the library for people: with the file that it is about, and with remedies for people."""
    print_status(f"{hide_login(about):.200}: {message}" if about else message)
    return 1


def hide_login(reference: str) -> str:
    """Return a reference to a file as it may be printed: an address without the login in it."""
    return _LOGIN.sub(r"\1", reference)


def print_status(line: str) -> None:
    """Print a line on stderr."""
    print(f"sightline: {to_printable(' '.join(line.split()))}", file=sys.stderr, flush=True)


def print_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print_status(f"warning: {warning}")


def print_details(line: str) -> None:
    """Print a line about an answer on stderr, dimmed on a terminal."""
    text = f"sightline: {to_printable(' '.join(line.split()))}"
    print(f"{_DIM_STYLE}{text}{_RESET_STYLE}" if sys.stderr.isatty() else text, file=sys.stderr, flush=True)


def print_json(fields: Mapping[str, Json]) -> None:
    """Print a JSON object on one line. Characters that the terminal can't encode or display are escaped."""
    is_unicode = sys.stdout.encoding.lower().replace("-", "") in ("utf8", "utf16")
    text = json.dumps(fields, ensure_ascii=not is_unicode)
    print("".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in text))


@contextmanager
def show_progress(words: str = "") -> Iterator[ReportProgress]:
    """Show a line on the terminal while the context is open, and in it how far the task is, if it reports that."""
    live, last = sys.stderr.isatty(), 0.0

    def show(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if live and now - last >= _PROGRESS_SECONDS:
            last = now
            print(f"{_CLEAR_LINE}sightline: {what}: {done} of {total} …", end="", file=sys.stderr, flush=True)

    if live and words:
        print(f"sightline: {words}", end="", file=sys.stderr, flush=True)
    try:
        yield show
    finally:
        if live:
            print(_CLEAR_LINE, end="", file=sys.stderr, flush=True)


def confirm(question: str) -> bool:
    """Ask the user a yes-or-no question on the terminal; without a terminal, the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"sightline: {to_printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def ask_consent(settings: Settings, record: Store, model: str) -> None:
    """Ask on a terminal whether images may be sent to the model's provider, unless the user has agreed already."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    from sightline.passes.wording import CONSENT_QUESTION
    from sightline.settings.upstreams import format_provider
    from sightline.vision.providers import find_image_receiver

    provider = find_image_receiver(settings, model or None)
    if not provider or record.policy.read_consents().get(provider, False):
        return
    if not confirm(f"{CONSENT_QUESTION.format(format_provider(settings, provider))}?"):
        return
    if refusal := record.policy.set_consent(provider, given=True):
        print_status(f"the consent could not be saved, so nothing is sent: {refusal}")


def print_text(text: str) -> None:
    """Print a text, line by line."""
    for line in text.splitlines():
        print(to_printable(line))


def format_usage(usage: Usage, cost_usd: float | None, *, cached: bool) -> str:
    if cached:
        return "from the cache"
    counts = [
        f"{count:,} tokens {direction}" for direction, count in (("in", usage.input), ("out", usage.output)) if count
    ]
    price = [format_dollars(cost_usd)] if cost_usd is not None else []
    return ", ".join([*counts, *price]) or "done"


def format_dollars(cost: float) -> str:
    """Format a price for people: "at no cost" for zero, and never $0.0000 for anything else."""
    if cost == 0:
        return "at no cost"
    return f"${cost:.4f}" if cost >= _MIN_SHOWN_COST else f"less than ${_MIN_SHOWN_COST:.4f}"


def read_settings() -> Settings:
    """Load the settings, and print their warnings."""
    from sightline.settings import load_settings

    settings = load_settings()
    print_warnings(settings.warnings)
    return settings


def read_image(reference: str) -> object:
    """Return an image argument of the command line: a reference, or for `-` the bytes of standard input."""
    from sightline.api.input_file import read_image_input

    return read_image_input(sys.stdin.buffer if reference == "-" else reference)


def add_json(parser: ArgumentParser, *, default: bool | str = False) -> None:
    parser.add_argument("--json", action="store_true", default=default, help="print one JSON object")


def list_files(folder: Path) -> list[Path] | None:
    """Return all files below a folder, following links, or None if there are too many."""
    found: list[Path] = []
    seen = 0
    for parent, folders, names in os.walk(folder, followlinks=True):
        seen += len(folders) + len(names)
        if seen > _MAX_FILES:
            return None
        found += (Path(parent, name) for name in names)
    return found


def read_text(path: Path) -> str | None:
    """Return the text of a file, or None if it cannot be read.

    Bytes that are not UTF-8 are replaced, as the agents that read the same files do.
    """
    try:
        return path.read_text("utf-8-sig", errors="replace")
    except (OSError, ValueError):
        return None


# Image files: the suffix decides the format, and no file is overwritten by accident.


def find_format(path: Path, flag: str) -> str | Refusal:
    """Return the media type for the suffix of a file name."""
    if found := _FORMATS.get(path.suffix.lower()):
        return found
    return Refusal(
        "unsupported_type",
        f"{path} has no known image format",
        f"give {flag} a name that ends in {IMAGE_SUFFIXES}",
    )


def check_writable(path: Path, flag: str, *, force: bool) -> Refusal | None:
    """Return why a file can't be written, as far as that can be known in advance."""
    if os.path.lexists(path):
        if not force:
            return Refusal("not_permitted", f"{path} already exists", "use --force to overwrite it")
        regular = stat.S_ISREG(path.lstat().st_mode)
        return None if regular else _refuse_file(path, "it is not a regular file", flag)
    if not path.parent.is_dir():
        return _refuse_file(path, "there is no such folder", flag)
    writable = os.access(path.parent, os.W_OK | os.X_OK)
    return None if writable else _refuse_file(path, "the folder is not writable", flag)


def write_picture(path: Path, data: bytes, flag: str, *, force: bool) -> Refusal | None:
    """Write a file atomically; refuse to replace a device, a pipe, a folder or a link."""
    from sightline.disk import write_atomically

    try:
        if refusal := check_writable(path, flag, force=force):
            return refusal
        write_atomically(path, data, mode=0o666, exclusive=not force)
    except FileExistsError:
        return Refusal("not_permitted", f"{path} already exists", "use --force to overwrite it")
    except OSError as error:
        return _refuse_file(path, error.strerror or "unknown error", flag)
    except ValueError:
        return Refusal("invalid_input", "this is not the path of a file", f"give another {flag}")
    return None


def _refuse_file(path: Path, why: str, flag: str) -> Refusal:
    return Refusal("not_permitted", f"{path} cannot be written: {why}", f"give another {flag}")


# Commands of /vision-proxy as verbs


def add_command_arguments(parser: ArgumentParser, verb: str) -> None:
    """Add the arguments of a /vision-proxy command from its table."""
    from sightline.commands import VERBS

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
    """Return a refusal of the command grammar with its remedy reworded for the shell."""
    if refusal.remedy.startswith("usage: ") and verb != "vision-proxy":
        return replace(refusal, remedy=f"see: sightline {verb} --help")
    return replace(refusal, remedy=refusal.remedy.replace("/vision-proxy ", "sightline vision-proxy "))
