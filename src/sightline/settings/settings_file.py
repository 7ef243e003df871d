"""The settings file: read and written as a whole, with access only for its owner if it contains a key."""

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

from sightline.disk import explain_os_error, write_atomically
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.shared_address import has_password
from sightline.settings.setting_kinds import API_KEY_NAME, STORE_NAME, parse_strict_json

if sys.platform != "win32":
    import fcntl

SettingsObject = dict[str, Json]


def read_settings_file(path: Path) -> SettingsObject | Refusal:
    """Return the content of the file, or an empty object if there is no file."""
    try:
        values = parse_strict_json(_read_regular_file(path).decode("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        why, remedy = explain_os_error(error)
        return Refusal("not_permitted", f"{path} cannot be read: {why}", remedy)
    except (ValueError, RecursionError) as error:
        return Refusal("invalid_input", f"{path} is not valid JSON: {error}", "fix it or delete it")
    if not isinstance(values, dict):
        return Refusal("invalid_input", f"{path} is not a JSON object", "fix it or delete it")
    return values


def _read_regular_file(path: Path) -> bytes:
    """Read a regular file. Opening a pipe must not block until it has a writer."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read()


def set_value(path: Path, name: str, value: Json) -> Refusal | None:
    """Set one key, and keep everything else in the file, including what another process has just changed."""
    return _edit_file(path, name, lambda values: insert_value(values, name, value))


def remove_value(path: Path, name: str, *, keep_object: bool) -> Refusal | None:
    """Remove one key, however it is written. `keep_object`: an object in its place contains other keys and stays."""

    def edit(values: SettingsObject) -> SettingsObject:
        while (value := find_value(values, name)) is not None and not (keep_object and isinstance(value, dict)):
            values = _delete_value(values, name)
        return values

    return _edit_file(path, name, edit)


def _delete_value(values: Mapping[str, Json], name: str) -> SettingsObject:
    """Return the values without the one that `find_value` finds, and without an object that becomes empty."""
    if name in values:
        return {key: value for key, value in values.items() if key != name}
    for head, tail in _split_at_dots(name):
        inner = values.get(head)
        if isinstance(inner, dict) and find_value(inner, tail) is not None:
            rest = _delete_value(inner, tail)
            return {key: rest if key == head else value for key, value in values.items() if key != head or rest}
    return dict(values)


def _edit_file(path: Path, name: str, edit: Callable[[SettingsObject], SettingsObject]) -> Refusal | None:
    target = path.resolve()  # the file may be a link
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock_folder(target.parent):
            values = read_settings_file(target)
            if isinstance(values, Refusal):
                return values
            if (edited := edit(values)) != values:
                _write_file(target, edited)
    except OSError as error:
        why, remedy = explain_os_error(error)
        return Refusal("not_permitted", f"{path} cannot be written: {why}", remedy)
    except ValueError:  # a lone surrogate, or an infinite number
        return Refusal("invalid_input", f"{name}: the value cannot be written as JSON", "give plain text")
    return None


def _write_file(path: Path, values: SettingsObject) -> None:
    mode = 0o600 if has_secret(values) else _read_mode(path, default=0o644)
    text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(path, text.encode(), mode=mode, force_mode=path.exists())


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Let one process at a time edit the file. Locking the folder leaves no lock file behind."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def find_value(values: Mapping[str, Json], name: str) -> Json:
    """Return a value by its dotted name; the file may write it in full or as nested objects."""
    if name in values:
        return values[name]
    for head, tail in _split_at_dots(name):
        inner = values.get(head)
        if isinstance(inner, dict) and (value := find_value(inner, tail)) is not None:
            return value
    return None


def insert_value(values: Mapping[str, Json], name: str, value: Json, *, within: bool = False) -> SettingsObject:
    """Return the values with one added, nested or with dots as the file already writes such names.

    If its place has an object with the keys below it, these are written beside it with dots.
    """
    for head, tail in () if name in values else _split_at_dots(name):
        inner = values.get(head)
        if isinstance(inner, dict):
            return {**values, head: insert_value(inner, tail, value, within=True)}
    head, dot, tail = name.partition(".")
    if within and dot and name not in values:
        return {**values, head: insert_value({}, tail, value, within=True)}
    inner = values.get(name)
    below = {f"{name}.{each}": kept for each, kept in inner.items()} if _is_parent(inner, value) else {}
    return {**values, name: value, **below}


def _is_parent(inner: Json, value: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(inner, dict) and not isinstance(value, dict)


def _split_at_dots(name: str) -> list[tuple[str, str]]:
    return [(name[:at], name[at + 1 :]) for at, character in enumerate(name) if character == "."]


def has_exposed_secret(path: Path, values: SettingsObject) -> bool:
    """Return whether the file contains a provider's key and users other than its owner can read it."""
    return os.name == "posix" and has_secret(values) and bool(_read_mode(path, default=0) & 0o077)


def remove_secrets(values: Mapping[str, Json]) -> SettingsObject:
    return _replace_secrets(values, lambda secret: None if secret else secret)


def mask_secrets(values: Mapping[str, Json]) -> SettingsObject:
    """Return the values with each secret replaced by whether it is set."""
    return _replace_secrets(values, lambda secret: "set" if secret else "")


def has_secret(values: SettingsObject) -> bool:
    return remove_secrets(values) != values


def _replace_secrets(values: Mapping[str, Json], replacement: Callable[[Json], Json]) -> SettingsObject:
    """Return the values with every provider's key replaced, or removed if the replacement is None."""
    changed: SettingsObject = {}
    for name, value in values.items():
        is_secret = name.rpartition(".")[2] == API_KEY_NAME or (
            name == STORE_NAME and isinstance(value, str) and has_password(value)
        )
        if is_secret:
            value = replacement(value)
        elif isinstance(value, dict):
            value = _replace_secrets(value, replacement)
        if value is not None or not is_secret:
            changed[name] = value
    return changed


def _read_mode(path: Path, *, default: int) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return default
