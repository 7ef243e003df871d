"""`read_file` and `edit_file`: text, never pixels; and an edit only of what was read as it is now.

The token is a keyed hash of the path and the bytes: it needs no memory, survives a restart, and cannot be made from
a view, which gives the sha256 of the same bytes away.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from pathlib import Path
from typing import TypeGuard

from sightline.look.doors import Door
from sightline.look.results import Edited, Refused, Text, promised
from sightline.model.refusal import Refusal
from sightline.pixels.kinds import kind_of
from sightline.sources import file as files
from sightline.sources import reference
from sightline.sources.file import File
from sightline.sources.reference import Named

LARGEST = 8 * 1024 * 1024  # bytes of a text that is read or edited
MOST_CHARACTERS = 24_000  # of the text in one result, so that all of it stays within maxResultChars
MOST_LINES = 2000
_OPENING = 4096
_ESCAPED = 6  # characters that one character may take in JSON
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_STALE = Refusal("not_permitted", "the file was not read as it is now", "call read_file, then edit with its token")


@promised
def read_file(door: Door, path: object, *, first: object = 1, lines: object = MOST_LINES) -> Text | Refused:
    if not (_whole(first) and _whole(lines)):
        return Refused("invalid_input", "first and lines are whole numbers from 1")
    found = _text(door, path)
    if isinstance(found, Refusal):
        return Refused.of(found)
    file, text = found
    every = _LINES.findall(text)
    words = _clipped(every[first - 1 : first - 1 + min(lines, MOST_LINES)])
    last = first - 1 + len(_LINES.findall(words))
    return Text(_source(path), words, first, last, len(every), len(file.data), _token(door, file.path, file.data))


def _clipped(lines: list[str]) -> str:
    """As many whole lines as a result has room for, written as JSON; of a line that is longer, its beginning."""
    room, shown = MOST_CHARACTERS, list[str]()
    for line in lines:
        room -= len(json.dumps(line, ensure_ascii=False))
        if room < 0:
            break
        shown.append(line)
    return "".join(shown) if shown or not lines else lines[0][: MOST_CHARACTERS // _ESCAPED]


@promised
def edit_file(door: Door, path: object, old: object, new: object, token: object) -> Edited | Refused:
    if not (isinstance(old, str) and isinstance(new, str) and isinstance(token, str)):
        return Refused("invalid_input", "old, new and token are texts")
    found = _text(door, path)
    if isinstance(found, Refusal):
        return Refused.of(found)
    file, text = found
    if not hmac.compare_digest(token.encode("utf-8", "replace"), _token(door, file.path, file.data).encode()):
        return Refused.of(_STALE)
    if old == new or text.count(old) != 1 or (not old and text):
        times = "is the same" if old == new else f"stands there {text.count(old) if old else 'any number of'} times"
        return Refused("invalid_input", f"old {times} (give a text that stands there once, and what it becomes)")
    try:
        data = text.replace(old, new).encode()
    except UnicodeEncodeError:
        return Refused("invalid_input", "new is not text that can be written")
    refusal = _write(door, path, file, data)
    return Refused.of(refusal) if refusal else Edited(_source(path), len(data))


def _text(door: Door, path: object) -> tuple[File, str] | Refusal:
    asked = reference.parse(path) if isinstance(path, str) else Refusal("invalid_input", "the path is not text")
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


def _write(door: Door, path: object, file: File, data: bytes) -> Refusal | None:
    """All of it or nothing, and nothing over a file that has changed since."""
    part = file.path.with_name(f".{file.path.name[:100]}.{secrets.token_hex(8)}")
    try:
        mode = stat.S_IMODE(file.path.stat().st_mode)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with os.fdopen(handle, "wb") as written:
                written.write(data)
                written.flush()
                os.fsync(written.fileno())
            part.chmod(mode)
            again = files.read(str(path), door.policy, LARGEST, least=0)
            if isinstance(again, Refusal) or (again.path, again.data) != (file.path, file.data):
                return _STALE
            part.replace(file.path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as trouble:
        return Refusal("not_permitted", f"the file cannot be written: {trouble.strerror}", "check who may write it")
    return None


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _source(path: object) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode()
