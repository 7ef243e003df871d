"""Bytes by their sha256: files that are either whole or not there."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from sightline.disk import UNFINISHED, settle, write_whole

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MANY = 64  # folders, from which on it is quicker to write everything to the disk
_ABANDONED_SECONDS = 3600.0  # a part this old belongs to no process that is still writing it


class Blobs(Protocol):
    """Contents by their sha256."""

    def holds(self, sha256: str) -> bool: ...

    def keep(self, sha256: str, data: bytes) -> None: ...

    def read(self, sha256: str) -> bytes | None: ...

    def drop(self, sha256: str) -> None: ...

    def settle(self, names: Iterable[str]) -> None: ...

    def names(self) -> Iterator[str]: ...


class Files:
    """Blobs as files `ab/cd/abcd…` below a folder."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self._folder = folder
        if create:
            private_folder(folder)

    def holds(self, sha256: str) -> bool:
        return self._path(sha256).is_file()

    def keep(self, sha256: str, data: bytes) -> None:
        path = self._path(sha256)
        for folder in (path.parent.parent, path.parent):
            if not folder.is_dir():
                private_folder(folder)
                settle(folder.parent)
        write_whole(path, data)

    def read(self, sha256: str) -> bytes | None:
        """The bytes, if they still are what their name says; a file that is not is removed."""
        try:
            data = self._path(sha256).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
        self.drop(sha256)  # so that the same image can be kept again
        return None

    def drop(self, sha256: str) -> None:
        self._path(sha256).unlink(missing_ok=True)

    def move(self, sha256: str, folder: Path) -> None:
        """Move a blob to another folder of the same disk, which is created."""
        private_folder(folder)
        self._path(sha256).rename(folder / sha256)

    def settle(self, names: Iterable[str]) -> None:
        """See to it that what was dropped stays so, also after a loss of power."""
        folders = {folder for name in names if (folder := self._path(name).parent).is_dir()}
        if len(folders) > _MANY and hasattr(os, "sync"):
            os.sync()
            return
        for folder in folders:
            settle(folder)

    def names(self) -> Iterator[str]:
        """Every blob; parts that a process which died left behind go on the way."""
        for path in self._folder.glob("??/??/*"):
            if _SHA256.fullmatch(path.name):
                yield path.name
            elif path.name.endswith(UNFINISHED):
                _drop_abandoned(path)

    def _path(self, sha256: str) -> Path:
        if not _SHA256.fullmatch(sha256):
            raise ValueError("not the sha256 of anything")  # a name from outside must not become a path
        return self._folder / sha256[:2] / sha256[2:4] / sha256


class Held:
    """Blobs in memory, gone with the process."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def holds(self, sha256: str) -> bool:
        return sha256 in self._blobs

    def keep(self, sha256: str, data: bytes) -> None:
        self._blobs[sha256] = data

    def read(self, sha256: str) -> bytes | None:
        return self._blobs.get(sha256)

    def drop(self, sha256: str) -> None:
        self._blobs.pop(sha256, None)

    def settle(self, names: Iterable[str]) -> None:
        """Nothing of it survives anyway."""

    def names(self) -> Iterator[str]:
        return iter(list(self._blobs))


def private_folder(folder: Path) -> None:
    """The folder is there and nobody else can look into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def _drop_abandoned(part: Path) -> None:
    try:
        if time.time() - part.stat().st_mtime > _ABANDONED_SECONDS:
            part.unlink()
    except FileNotFoundError:
        pass  # its writer has finished
