"""What a process keeps in its memory of a record, so that known images cost no statement and no request to a server.

Images and descriptions never change under their keys, so a row or a blob that was read once stays valid until something
is forgotten, saved or withdrawn. After a change of its own, a process clears its cached rows at once, and drops the
blobs that it deleted. Changes of other processes are announced in a shared record, and clear these caches within about
a second: see `shared_storage`, and `sql_answers` for what may not be that late. Nothing is announced in a record on a
disk, which other processes may write to: there, rows are cached for a second, and until this process writes. Everything
else is read from the record.

What was read before something was deleted is not cached after it: see `generation`.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Protocol

from sightline.memory_reads import check_may_wait
from sightline.store.sql import Row


class Blobs(Protocol):
    """Bytes by their sha256."""

    def has(self, sha256: str) -> bool: ...

    def confirm(self, sha256: str) -> bool:
        """Return whether the bytes are stored at this moment, whatever is cached."""
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


class RowCache:
    """The least recently used rows go first. With a size of 0, nothing is cached.

    If other processes don't announce what they write, `seconds` is for how long rows are cached; it is infinite else.
    """

    def __init__(self, size: int = 0, seconds: float = math.inf) -> None:
        self._size, self._seconds, self._lock = size, seconds, threading.Lock()
        self._rows: OrderedDict[Hashable, list[Row]] = OrderedDict()
        self._since = 0.0
        self.generation = 0  # changes with every `clear`
        self.checked_at = -math.inf  # when other processes were last asked for what they announce, in monotonic time

    @property
    def is_announced(self) -> bool:
        return self._seconds == math.inf

    def expire(self, now: float) -> None:
        """Clear the cache if its rows are too old, by a clock that may also be set back."""
        if not self.is_announced and not 0 <= now - self._since < self._seconds:
            self._since = now
            self.clear()

    def get(self, key: Hashable) -> list[Row] | None:
        with self._lock:
            if (rows := self._rows.get(key)) is not None:
                self._rows.move_to_end(key)
            return rows

    def put(self, key: Hashable, rows: list[Row], generation: int | None = None, *, replace: bool = True) -> None:
        """Cache rows, unless the cache was cleared since they were read in `generation`; None: this process wrote them.

        Without `replace`, rows that are cached meanwhile stay.
        """
        with self._lock:
            if self._size and generation in (None, self.generation) and (replace or key not in self._rows):
                self._rows[key] = rows
                self._rows.move_to_end(key)
                if len(self._rows) > self._size:
                    self._rows.popitem(last=False)

    def discard(self, key: Hashable) -> None:
        with self._lock:
            self._rows.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()
            self.generation += 1


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
