"""A picture that a person wants as a file: the ending of its name decides the format, and no file is lost by it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from sightline.disk import write_whole
from sightline.model.refusal import Refusal

FORMATS: Mapping[str, str] = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
ENDINGS = ".png, .jpg or .webp"


def format_of(path: Path, flag: str) -> str | Refusal:
    """What a file of this name has to hold: a name that lies about it is refused by whoever gets the file next."""
    if found := FORMATS.get(path.suffix.lower()):
        return found
    return Refusal(
        "unsupported_type", f"{path} does not say which format is wanted", f"give {flag} a name that ends in {ENDINGS}"
    )


def unwritable(path: Path, flag: str, *, force: bool) -> Refusal | None:
    """What stands in the way of a file, as far as that can be told before it is made."""
    other = f"give another {flag}"
    if os.path.lexists(path):
        if not force:
            return _taken(path)
        regular = stat.S_ISREG(path.lstat().st_mode)
        return None if regular else _no(path, "it is no regular file", other)
    folder = path.parent
    if not folder.is_dir():
        return _no(path, "there is no such folder", other)
    return None if os.access(folder, os.W_OK | os.X_OK) else _no(path, "nothing can be written there", other)


def write(path: Path, data: bytes, flag: str, *, force: bool) -> Refusal | None:
    """All of it or nothing, and nothing in the place of a device, a pipe, a folder or a link."""
    try:
        if no := unwritable(path, flag, force=force):
            return no
        write_whole(path, data, mode=0o666, fresh=not force)
    except FileExistsError:
        return _taken(path)
    except OSError as trouble:
        return _no(path, trouble.strerror or "the disk refuses it", f"give another {flag}")
    except ValueError:
        return Refusal("invalid_input", "that is no path of a file", f"give another {flag}")
    return None


def _taken(path: Path) -> Refusal:
    return Refusal("not_permitted", f"{path} is there already", "--force writes over it")


def _no(path: Path, why: str, remedy: str) -> Refusal:
    return Refusal("not_permitted", f"{path} cannot be written: {why}", remedy)
