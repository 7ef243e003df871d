"""`read_file` and `edit_file`: text, never pixels; and an edit only of what was read as it is now.

The token is a keyed hash of the path and the bytes: it needs no memory, survives a restart, and cannot be made from
a view, which gives the sha256 of the same bytes away.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from pathlib import Path
from typing import TypeGuard

from sightline.api.results import Edited, Refused, Text
from sightline.api.session import Door
from sightline.api.views import named, reference_of
from sightline.model.fence import json_line
from sightline.model.refusal import Refusal
from sightline.pixels.probe import kind_of
from sightline.sources import file as files
from sightline.sources.file import File
from sightline.sources.held import STALE, written_back
from sightline.sources.reference import Named

LARGEST = 8 * 1024 * 1024  # bytes of a text that is read or edited
MOST_CHARACTERS = 24_000  # of the text in one result, so that all of it stays within maxResultChars
MOST_LINES = 2000
_OPENING = 4096
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


def read_file(
    door: Door, path: object, *, first: object = 1, lines: object = MOST_LINES, character: object = 1
) -> Text | Refused:
    if not (_whole(first) and _whole(lines) and _whole(character)):
        return Refused(
            Refusal("invalid_input", "first, lines and character are not all whole numbers from 1", "give such numbers")
        )
    found = _text(door, path)
    if isinstance(found, Refusal):
        return Refused(found)
    file, text = found
    every = _LINES.findall(text)
    asked = every[first - 1 : first - 1 + min(lines, MOST_LINES)]
    if asked:
        asked[0] = asked[0][character - 1 :]
    shown = _clipped(asked)
    words, last = "".join(shown), first - 1 + len(shown)
    cut = shown[:1] != asked[:1]  # only the first can be: of the others there is all or nothing
    token = _token(door, file.path, file.data)
    more = character + len(words) if cut else None
    return Text(named(path), words, first, last, len(every), len(file.data), token, more)


def _clipped(lines: list[str]) -> list[str]:
    """As many whole lines as a result has room for, written as JSON; of a first one that is longer, its beginning."""
    room, shown = MOST_CHARACTERS, list[str]()
    for line in lines:
        room -= _written(line)
        if room < 0:
            break
        shown.append(line)
    return shown if shown or not lines else [_beginning(lines[0])]


def _beginning(line: str) -> str:
    piece = line[:MOST_CHARACTERS]
    while (size := _written(piece)) > MOST_CHARACTERS:
        piece = piece[: len(piece) * MOST_CHARACTERS // size]
    return piece


def _written(text: str) -> int:
    """How many characters a text takes in JSON."""
    return len(json_line(text))


def edit_file(door: Door, path: object, old: object, new: object, token: object) -> Edited | Refused:
    if not (isinstance(old, str) and isinstance(new, str) and isinstance(token, str)):
        return Refused(Refusal("invalid_input", "old, new and token are not all texts", "give texts"))
    found = _text(door, path)
    if isinstance(found, Refusal):
        return Refused(found)
    file, text = found
    if not hmac.compare_digest(token.encode("utf-8", "replace"), _token(door, file.path, file.data).encode()):
        return Refused(STALE)
    if wrong := _unclear(text, old, new):
        return Refused(
            Refusal("invalid_input", f"old {wrong}", "give a text that stands there once, and what it becomes")
        )
    try:
        data = text.replace(old, new, 1).encode()
    except UnicodeEncodeError:
        return Refused(Refusal("invalid_input", "new is not text that can be written", "leave out lone surrogates"))
    refusal = written_back(file, data, door.policy)
    return Refused(refusal) if refusal else Edited(named(path), len(data))


def _unclear(text: str, old: str, new: str) -> str:
    """Why it cannot be told which words to replace; two that share letters are two."""
    if old == new:
        return "is the same as new"
    at = text.find(old)
    if at < 0:
        return "does not stand there"
    again = bool(text) if not old else text.find(old, at + 1) >= 0
    return "stands there more than once" if again else ""


def _text(door: Door, path: object) -> tuple[File, str] | Refusal:
    asked = reference_of(path)
    if isinstance(asked, Refusal):
        return asked
    if not isinstance(asked, Named):
        return Refusal("invalid_input", "only a file is read as text", "call view_image to see an image")
    file = files.read(asked.path, door.policy, LARGEST, least=0)
    if isinstance(file, Refusal):
        return file
    kind = kind_of(file.data[:_OPENING])
    if kind.family in ("bitmap", "document", "video"):
        return Refusal("unsupported_type", f"this is {kind.name}, not text", "call view_image to see it")
    try:
        text = file.data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return Refusal("unsupported_type", f"this is {kind.name}, not text in UTF-8", "convert it first")
    return file, text


def _token(door: Door, path: Path, data: bytes) -> str:
    return door.record.scope_of(f"read\0{door.scope}\0{os.fspath(path)!r}\0{hashlib.sha256(data).hexdigest()}")


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
