"""What every verb is and says: its contract, its refusals, its JSON."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sightline.model.crop import REGIONS
from sightline.model.fence import plain
from sightline.model.refusal import Refusal

if TYPE_CHECKING:  # it would bring the whole model along, and `--help` needs none of it
    from sightline.model.scene import Json


FORMS = f"r=NAME ({', '.join(REGIONS)}), n=X,Y,W,H in fractions, or p=X,Y,W,H in pixels"
"""How a part of an image is named."""

OF_A_FILE = frozenset({"not_found", "unsupported_type", "too_large", "corrupt", "render_unavailable"})
"""The refusals that are about a file, whoever was asked to look at it."""

_MOST_FILES = 2_000  # files and folders that `list_files` looks at

_TO_A_MODEL = (
    ("the user runs: ", "run: "),
    ("the user sets ", "set "),
    ("call read_file", "open it as text"),
)


class Verb(Protocol):
    """A module of this room. Nothing heavy is imported before `run`."""

    EXAMPLE: str

    def arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, args: Namespace) -> int:
        """0 done, 1 refused."""
        ...


def refused(refusal: Refusal, found: Mapping[str, Json] | None = None, *, as_json: bool = False) -> int:
    """One line that says what and what to do about it; as an object with what was found all the same."""
    if as_json:
        show({"ok": False, "reason": refusal.code, "message": str(refusal), **(found or {})})
    say(str(refusal))
    return 1


def in_shell(refusal: Refusal, verb: str) -> Refusal:
    """With the usage of a verb as it is typed in a shell, not in a conversation."""
    if refusal.remedy.startswith("usage: ") and verb != "vision-proxy":
        return replace(refusal, remedy=f"see sightline {verb} --help")
    return replace(refusal, remedy=refusal.remedy.replace("/vision-proxy ", "sightline vision-proxy "))


def no(about: str, message: str) -> int:
    """A no of the library's to a person: which file it is about, and what a model is told to ask for, they can do."""
    for told, meant in _TO_A_MODEL:
        message = message.replace(told, meant)
    say(f"{about:.200}: {message}" if about else message)
    return 1


def say(line: str) -> None:
    """To the person, on stderr: stdout is for what was asked."""
    print(f"sightline: {plain(' '.join(line.split()))}", file=sys.stderr, flush=True)


def warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        say(f"warning: {warning}")


def answer(found: Mapping[str, Json], text: Iterable[str], *, as_json: bool, trouble: Refusal | None = None) -> int:
    """Print what was asked, as one JSON object or as lines, and return the exit code.

    `trouble`: something is wrong that the lines say themselves; the exit code is 1 then.
    """
    if as_json:
        said = {"ok": False, "reason": trouble.code, "message": str(trouble)} if trouble else {"ok": True}
        show({**said, **found})
    else:
        for line in text:
            print(plain(line))
    return 1 if trouble else 0


def show(found: Mapping[str, Json]) -> None:
    """One JSON object in one line. What a terminal cannot print is escaped, as JSON does it."""
    every = sys.stdout.encoding.lower().replace("-", "") in ("utf8", "utf16")
    text = json.dumps(found, ensure_ascii=not every)
    print("".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text))


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
