"""What every verb is and says: its contract, its refusals, its JSON."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sightline.model.fence import plain
from sightline.model.refusal import Refusal

if TYPE_CHECKING:  # it would bring the whole model along, and `--help` needs none of it
    from sightline.model.scene import Json


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


def in_shell(refusal: Refusal, program: str) -> Refusal:
    """With the usage of a command as it is typed in a shell, not in a conversation."""
    return replace(refusal, remedy=refusal.remedy.replace("/vision-proxy ", f"{program} "))


def say(line: str) -> None:
    """To the person, on stderr: stdout is for what was asked."""
    print(f"sightline: {plain(' '.join(line.split()))}", file=sys.stderr, flush=True)


def warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        say(f"warning: {warning}")


def answer(found: Mapping[str, Json], text: Iterable[str], *, as_json: bool) -> int:
    """What was asked, as one JSON object or as lines."""
    if as_json:
        show({"ok": True, **found})
    else:
        for line in text:
            print(plain(line))
    return 0


def show(found: Mapping[str, Json]) -> None:
    """One JSON object in one line. What a terminal cannot print is escaped, as JSON does it."""
    text = json.dumps(found, ensure_ascii=False)
    print("".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text))


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def text_of(path: Path) -> str | None:
    """The text of a file, or None when it is not there or is not text."""
    try:
        return path.read_text("utf-8-sig")
    except (OSError, ValueError):
        return None
