"""Bytes of images, by their sha256: in files, in memory, and in a cache of what is on a server.

Bytes never change under their name, so those that were read once stay valid until they are deleted. What was read
before a deletion is not cached after it: see `generation`. Object storage is in `object_blobs`.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from sightline.disk import PART_SUFFIX, sync_folder, write_atomically
from sightline.memory_reads import check_may_wait

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SYNC_ALL_FOLDERS = 64  # for more folders than this, syncing the whole disk is faster
_LOCATIONS_KEPT = 4096
_ABANDONED_SECONDS = 3600.0  # an unfinished file this old has no writer any more


class Blobs(Protocol):
    """Bytes by their sha256."""

    def has(self, sha256: str) -> bool: ...

    def confirm(self, sha256: str) -> bool:
        """Return whether the bytes are stored now, whatever is cached."""
        ...

    def write(self, sha256: str, data: bytes) -> None: ...

    def read(self, sha256: str) -> bytes | None: ...

    def delete(self, names: Sequence[str]) -> None: ...

    def sync(self, names: Iterable[str]) -> None:
        """Make deletions survive a power failure."""
        ...

    def list_names(self, stored_before: float = math.inf) -> Iterator[str]:
        """Return the name of every blob, or of those that were stored before a time of the machine's clock."""
        ...


class MemoryBlobs:
    """Blobs in memory, lost with the process."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def has(self, sha256: str) -> bool:
        return sha256 in self._blobs

    confirm = has

    def write(self, sha256: str, data: bytes) -> None:
        self._blobs[sha256] = data

    def read(self, sha256: str) -> bytes | None:
        return self._blobs.get(sha256)

    def delete(self, names: Iterable[str]) -> None:
        for sha256 in names:
            self._blobs.pop(sha256, None)

    def sync(self, names: Iterable[str]) -> None:
        """Do nothing: memory is never durable."""

    def list_names(self, stored_before: float = math.inf) -> Iterator[str]:
        """Return all names, because no other program can have stored any of them."""
        return iter(list(self._blobs))


class FileBlobs:
    """Blobs as files `ab/cd/abcd…` below a folder."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self._folder = folder
        self._start = f"{folder}{os.sep}"  # of every path: a `Path` would be written anew for every image
        if create:
            create_private_folder(folder)

    def has(self, sha256: str) -> bool:
        try:
            return stat.S_ISREG(os.stat(self._locate(sha256)).st_mode)  # noqa: PTH116  for each known image of a request
        except OSError:
            return False

    confirm = has

    def write(self, sha256: str, data: bytes) -> None:
        path = self._path(sha256)
        folder = os.path.dirname(path)  # noqa: PTH120  a text, because most new images are the first of their folder
        if not os.path.isdir(folder):  # noqa: PTH112
            _create_synced_folder(folder)
        write_atomically(path, data)

    def read(self, sha256: str) -> bytes | None:
        """Return the bytes, or None. A file that does not match its hash is rejected."""
        try:
            data = self._path(sha256).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
        self._reject(sha256)
        return None

    def _reject(self, sha256: str) -> None:
        """Delete a file with wrong bytes, so that the same image can be stored again."""
        self.delete([sha256])

    def delete(self, names: Iterable[str]) -> None:
        for sha256 in names:
            self._path(sha256).unlink(missing_ok=True)

    def move(self, sha256: str, folder: Path) -> None:
        """Move a blob to another folder on the same disk, and create that folder."""
        create_private_folder(folder)
        self._path(sha256).rename(folder / sha256)

    def sync(self, names: Iterable[str]) -> None:
        """Make deletions survive a power failure."""
        folders = {folder for name in names if (folder := self._path(name).parent).is_dir()}
        if len(folders) > _SYNC_ALL_FOLDERS and hasattr(os, "sync"):
            os.sync()
            return
        for folder in folders:
            sync_folder(folder)

    def list_names(self, stored_before: float = math.inf) -> Iterator[str]:
        """Return the names of blobs, and delete unfinished files that killed processes have left."""
        for path in self._folder.glob("??/??/*"):
            if _SHA256.fullmatch(path.name):
                if stored_before == math.inf or _is_older(path, stored_before):
                    yield path.name
            elif path.name.endswith(PART_SUFFIX):
                _delete_abandoned_part(path)

    def _path(self, sha256: str) -> Path:
        return Path(self._locate(sha256))

    def _locate(self, sha256: str) -> str:
        return _build_location(self._start, sha256)


@lru_cache(_LOCATIONS_KEPT)
def _build_location(start: str, sha256: str) -> str:
    if not _SHA256.fullmatch(sha256):
        raise ValueError("not a sha256")  # untrusted names must not become paths
    return f"{start}{sha256[:2]}{os.sep}{sha256[2:4]}{os.sep}{sha256}"


def create_private_folder(folder: Path) -> None:
    """Create a folder that only its owner can access, or restrict an existing one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def _create_synced_folder(folder: str) -> None:
    """Create a folder below a private one, with those between them, and make its name survive a power failure."""
    above = os.path.dirname(folder)  # noqa: PTH120
    try:
        os.mkdir(folder, 0o700)  # noqa: PTH102
    except FileExistsError:
        pass  # another thread has just created it, and may not have synced it yet
    except FileNotFoundError:
        _create_synced_folder(above)
        _create_synced_folder(folder)
        return
    sync_folder(above)


def _delete_abandoned_part(part: Path) -> None:
    if _is_older(part, time.time() - _ABANDONED_SECONDS):
        part.unlink(missing_ok=True)


def _is_older(path: Path, than: float) -> bool:
    try:
        return path.stat().st_mtime < than
    except FileNotFoundError:
        return False  # another process has just renamed or deleted it


class ByteCache:
    """Blobs within a number of bytes, and the names of many more that are known to be stored."""

    def __init__(self, max_bytes: int, max_names: int) -> None:
        self._max_bytes, self._max_names, self._lock = max_bytes, max_names, threading.Lock()
        self._blobs: OrderedDict[str, bytes] = OrderedDict()
        self._names: OrderedDict[str, None] = OrderedDict()
        self._bytes = 0
        self.generation = 0  # changes with every `clear` and every deletion

    def get(self, sha256: str) -> bytes | None:
        with self._lock:
            if (data := self._blobs.get(sha256)) is not None:
                self._blobs.move_to_end(sha256)
            return data

    def knows(self, sha256: str) -> bool:
        return sha256 in self._names

    def put(self, sha256: str, generation: int, data: bytes | None = None) -> None:
        """Note that a blob is stored, with its bytes if they are at hand.

        Nothing is noted if any blob was deleted since it was read or written, which was in `generation`.
        """
        with self._lock:
            if generation != self.generation:
                return
            self._names[sha256] = None
            if len(self._names) > self._max_names:
                self._names.popitem(last=False)
            if data is None or sha256 in self._blobs or len(data) > self._max_bytes // 4:
                return
            self._blobs[sha256] = data
            self._bytes += len(data)
            while self._bytes > self._max_bytes:
                self._bytes -= len(self._blobs.popitem(last=False)[1])

    def discard(self, sha256: str) -> None:
        with self._lock:
            self._names.pop(sha256, None)
            self._bytes -= len(self._blobs.pop(sha256, b""))

    def note_deletion(self, sha256: str) -> None:
        """Drop a blob that is no longer stored, also if another thread has read it and not cached it yet."""
        with self._lock:
            self.generation += 1
        self.discard(sha256)

    def clear(self) -> None:
        with self._lock:
            self._blobs.clear()
            self._names.clear()
            self._bytes = 0
            self.generation += 1


class CachedBlobs:
    """Blobs through a cache. With `fills` off, the cache is only read: what is stored may be lost."""

    def __init__(self, blobs: Blobs, cache: ByteCache, *, fills: bool = True) -> None:
        self._blobs, self._cache, self._fills = blobs, cache, fills

    def has(self, sha256: str) -> bool:
        return self._cache.knows(sha256) or self.confirm(sha256)

    def confirm(self, sha256: str) -> bool:
        check_may_wait()
        generation = self._cache.generation
        found = self._blobs.confirm(sha256)
        if found and self._fills:
            self._cache.put(sha256, generation)
        elif not found:
            self._cache.discard(sha256)
        return found

    def write(self, sha256: str, data: bytes) -> None:
        generation = self._cache.generation
        self._blobs.write(sha256, data)
        if self._fills:
            self._cache.put(sha256, generation, data)

    def read(self, sha256: str) -> bytes | None:
        if (cached := self._cache.get(sha256)) is not None:
            return cached
        check_may_wait()
        generation = self._cache.generation
        data = self._blobs.read(sha256)
        if data is not None and self._fills:
            self._cache.put(sha256, generation, data)
        return data

    def delete(self, names: Sequence[str]) -> None:
        try:
            self._blobs.delete(names)
        finally:
            for sha256 in names:
                self._cache.note_deletion(sha256)

    def sync(self, names: Iterable[str]) -> None:
        self._blobs.sync(names)

    def list_names(self, stored_before: float = math.inf) -> Iterator[str]:
        return self._blobs.list_names(stored_before)
