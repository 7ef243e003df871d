"""The settings file: read whole, written whole, and closed to others when it holds a key."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings.kinds import HIDDEN

Held = dict[str, Json]


def read(path: Path) -> Held | Refusal:
    """What the file holds; a file that is not there holds nothing."""
    try:
        held = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as trouble:
        return Refusal("not_permitted", f"{path} cannot be read: {trouble.strerror}")
    except (ValueError, RecursionError) as trouble:
        return Refusal("invalid_input", f"{path} is not JSON: {trouble}", "mend it or remove it")
    if not isinstance(held, dict):
        return Refusal("invalid_input", f"{path} is not a JSON object", "mend it or remove it")
    return held


def write(path: Path, held: Held) -> Refusal | None:
    """All of it or nothing, under the name that is there now, also when that is a link to another place."""
    target = path.resolve()
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        mode = 0o600 if _has_secret(held) else _mode(target, default=0o644)
        target.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(json.dumps(held, indent=2, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as trouble:
        part.unlink(missing_ok=True)
        return Refusal("not_permitted", f"{path} cannot be written: {trouble.strerror}")
    return None


def found(held: Mapping[str, Json], name: str) -> Json:
    """A value by its name, whether its dots are written out or stand for objects within objects."""
    if name in held:
        return held[name]
    for head, tail in _splits(name):
        inner = held.get(head)
        if isinstance(inner, dict) and (value := found(inner, tail)) is not None:
            return value
    return None


def put(held: Mapping[str, Json], name: str, value: Json, *, within: bool = False) -> Held:
    """The same with one value set, in the way in which the file already writes such names."""
    for head, tail in () if name in held else _splits(name):
        inner = held.get(head)
        if isinstance(inner, dict):
            return {**held, head: put(inner, tail, value, within=True)}
    head, dot, tail = name.partition(".")
    if within and dot and name not in held:
        return {**held, head: put({}, tail, value, within=True)}
    return {**held, name: value}


def _splits(name: str) -> list[tuple[str, str]]:
    return [(name[:at], name[at + 1 :]) for at, letter in enumerate(name) if letter == "."]


def exposes_secret(path: Path, held: Held) -> bool:
    """It holds a key, and others than its owner can read it."""
    return os.name == "posix" and _has_secret(held) and bool(_mode(path, default=0) & 0o077)


def without_secrets(held: Mapping[str, Json]) -> Held:
    return _secrets_as(held, lambda secret: None if secret else secret)


def veiled(held: Mapping[str, Json]) -> Held:
    """As it may be seen by anybody."""
    return _secrets_as(held, lambda secret: "set" if secret else "")


def _has_secret(held: Held) -> bool:
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
