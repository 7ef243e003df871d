"""The settings file: read whole, written whole, and closed to others when it holds a key."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard

from sightline.disk import explain_os_error, write_whole
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings.kinds import HIDDEN, strict_json

if sys.platform != "win32":
    import fcntl

Held = dict[str, Json]


def read(path: Path) -> Held | Refusal:
    """What the file holds; a file that is not there holds nothing."""
    try:
        held = strict_json(_contents(path).decode("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as trouble:
        why, remedy = explain_os_error(trouble)
        return Refusal("not_permitted", f"{path} cannot be read: {why}", remedy)
    except (ValueError, RecursionError) as trouble:
        return Refusal("invalid_input", f"{path} is not JSON: {trouble}", "mend it or remove it")
    if not isinstance(held, dict):
        return Refusal("invalid_input", f"{path} is not a JSON object", "mend it or remove it")
    return held


def _contents(path: Path) -> bytes:
    """Read a regular file; a pipe would block until it is written to."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read()


def change(path: Path, name: str, value: Json) -> Refusal | None:
    """Set one key, and keep everything else in the file, also what another process has just changed."""
    return _edit(path, name, lambda held: put(held, name, value))


def remove(path: Path, name: str, *, below: bool) -> Refusal | None:
    """Remove one key, in whichever way it is written; `below`: an object in its place holds other keys, and stays."""

    def edit(held: Held) -> Held:
        while (value := find_value(held, name)) is not None and not (below and isinstance(value, dict)):
            held = _drop(held, name)
        return held

    return _edit(path, name, edit)


def _drop(held: Mapping[str, Json], name: str) -> Held:
    """Return the settings without the value that `find_value` finds, and without an object that held nothing else."""
    if name in held:
        return {key: value for key, value in held.items() if key != name}
    for head, tail in _splits(name):
        inner = held.get(head)
        if isinstance(inner, dict) and find_value(inner, tail) is not None:
            left = _drop(inner, tail)
            return {key: left if key == head else value for key, value in held.items() if key != head or left}
    return dict(held)


def _edit(path: Path, name: str, edit: Callable[[Held], Held]) -> Refusal | None:
    target = path.resolve()  # also where that is a link to another place
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target.parent):
            held = read(target)
            if isinstance(held, Refusal):
                return held
            if (made := edit(held)) != held:
                _write(target, made)
    except OSError as trouble:
        why, remedy = explain_os_error(trouble)
        return Refusal("not_permitted", f"{path} cannot be written: {why}", remedy)
    except ValueError:  # half a character, or a number without an end
        return Refusal("invalid_input", f"{name}: that cannot be written in JSON", "give plain text")
    return None


def _write(path: Path, held: Held) -> None:
    mode = 0o600 if has_secret(held) else _mode(path, default=0o644)
    text = json.dumps(held, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, text.encode(), mode=mode, kept=path.exists())


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time, where the system has locks for a folder: they leave nothing behind."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def find_value(held: Mapping[str, Json], name: str) -> Json:
    """Return a value by its name, whose dots may be written out or mean objects within objects."""
    if name in held:
        return held[name]
    for head, tail in _splits(name):
        inner = held.get(head)
        if isinstance(inner, dict) and (value := find_value(inner, tail)) is not None:
            return value
    return None


def put(held: Mapping[str, Json], name: str, value: Json, *, within: bool = False) -> Held:
    """Return the settings with one value set, in the way in which the file already writes such names.

    Where the value's place has an object for the names below it, the entries of that move beside the value.
    """
    for head, tail in () if name in held else _splits(name):
        inner = held.get(head)
        if isinstance(inner, dict):
            return {**held, head: put(inner, tail, value, within=True)}
    head, dot, tail = name.partition(".")
    if within and dot and name not in held:
        return {**held, head: put({}, tail, value, within=True)}
    inner = held.get(name)
    below = {f"{name}.{each}": kept for each, kept in inner.items()} if _is_parent(inner, value) else {}
    return {**held, name: value, **below}


def _is_parent(inner: Json, value: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(inner, dict) and not isinstance(value, dict)


def _splits(name: str) -> list[tuple[str, str]]:
    return [(name[:at], name[at + 1 :]) for at, letter in enumerate(name) if letter == "."]


def exposes_secret(path: Path, held: Held) -> bool:
    """It holds a key, and others than its owner can read it."""
    return os.name == "posix" and has_secret(held) and bool(_mode(path, default=0) & 0o077)


def without_secrets(held: Mapping[str, Json]) -> Held:
    return _secrets_as(held, lambda secret: None if secret else secret)


def hide_secrets(held: Mapping[str, Json]) -> Held:
    """The settings with nothing secret in them: of a secret only whether it is set."""
    return _secrets_as(held, lambda secret: "set" if secret else "")


def has_secret(held: Held) -> bool:
    return without_secrets(held) != held


def _secrets_as(held: Mapping[str, Json], shown: Callable[[Json], Json]) -> Held:
    """The same with every provider's key replaced; one that is replaced by nothing is left out."""
    changed: Held = {}
    for name, value in held.items():
        hidden = name.rpartition(".")[2] == HIDDEN
        new = shown(value) if hidden else _secrets_as(value, shown) if isinstance(value, dict) else value
        if new is not None or not hidden:
            changed[name] = new
    return changed


def _mode(path: Path, *, default: int) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return default
