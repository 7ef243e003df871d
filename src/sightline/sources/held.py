"""Writing back a file that was read: in its folder, held open, so that no path can be bent while it is written.

The folder is judged once it is open, like a file that is read. What is made, looked at and renamed after that goes by
names in that very folder, wherever its path leads by then.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sightline.model.refusal import Refusal
from sightline.sources.file import OUTSIDE, READING, File, Policy, contents, place

_HOLDS = os.open in os.supports_dir_fd
_FOLDER = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_DIRECTORY", "O_NOFOLLOW"))
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_BINARY"))
STALE = Refusal("not_permitted", "the file was not read as it is now", "call read_file, then edit with its token")


@dataclass(frozen=True, slots=True)
class _Folder:
    path: Path
    descriptor: int | None  # None where the system opens no folders (Windows): then names are paths after all

    def __truediv__(self, name: str) -> str | Path:
        return self.path / name if self.descriptor is None else name


def written_back(file: File, data: bytes, policy: Policy) -> Refusal | None:
    """All of it or nothing, and nothing over a file that is no longer what was read."""
    try:
        with _held(file.path.parent) as folder:
            if folder.descriptor is not None and not policy.holds(place(folder.descriptor, folder.path)):
                return OUTSIDE
            return _replaced(folder, file, data)
    except OSError as trouble:
        return Refusal("not_permitted", f"the file cannot be written: {trouble.strerror}", "check who may write it")


@contextmanager
def _held(path: Path) -> Iterator[_Folder]:
    if not _HOLDS:
        yield _Folder(path, None)
        return
    descriptor = os.open(path, _FOLDER)
    try:
        yield _Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _replaced(folder: _Folder, file: File, data: bytes) -> Refusal | None:
    part, here = f".{file.path.name[:100]}.{secrets.token_hex(8)}", folder.descriptor
    mode = stat.S_IMODE(os.stat(folder / file.path.name, dir_fd=here, follow_symlinks=False).st_mode)
    handle = os.open(folder / part, _MAKING, 0o600, dir_fd=here)
    try:
        with os.fdopen(handle, "wb") as whole:
            whole.write(data)
            whole.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
            os.fsync(handle)
        if _as_it_is(folder, file.path.name, len(file.data)) != file.data:
            return STALE
        os.replace(folder / part, folder / file.path.name, src_dir_fd=here, dst_dir_fd=here)
    finally:
        _without(folder, part)
    return None


def _as_it_is(folder: _Folder, name: str, most: int) -> bytes | Refusal:
    descriptor = os.open(folder / name, READING, dir_fd=folder.descriptor)
    try:
        return contents(descriptor, most, least=0)
    finally:
        os.close(descriptor)


def _without(folder: _Folder, part: str) -> None:
    try:
        os.unlink(folder / part, dir_fd=folder.descriptor)
    except FileNotFoundError:
        return  # it has become the file
