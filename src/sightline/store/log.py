"""SQLite's write-ahead log, as far as it has to be read without SQLite.

The file begins with a header of 32 bytes: magic number, version, page size, counter, two salts, and a checksum of all
that. Frames follow, each a header of 24 bytes (page number, size of the database after a commit or 0, the salts, a
checksum that goes on from the one before) and a page. A frame counts if its salts and checksum are right, and if a
commit follows. The format is described at https://sqlite.org/fileformat.html#walformat.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_MAGIC, _MASK = 0x377F0682, 0xFFFFFFFF
_HEADER, _FRAME = 32, 24
_ATTEMPTS = 5
_UNMASKED = 16  # pairs of words that are summed up before the sums are cut to 32 bits

Checksum = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Header:
    order: Literal["<", ">"]  # of the bytes that are summed up
    page_size: int
    salts: bytes
    checksum: Checksum


def log_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def check_log(database: Path) -> Literal["absent", "sound", "damaged"]:
    """Return whether SQLite would read every commit of the log.

    It takes a log with a damaged header for an empty one, and stops without a word at the first frame that is damaged.
    A crash damages at most the last transaction, which was not acknowledged; so a log is damaged if a commit follows.
    """
    before = b""
    for _ in range(_ATTEMPTS):
        try:
            log = log_of(database).read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return "absent"
        if len(log) < _HEADER + _FRAME or not any(log[:_HEADER]):  # never finished: nothing was committed to it
            return "absent"
        if not _hides_commits(log):
            return "sound"
        if log == before:
            break
        before = log  # another process may have been writing to it while it was read
    return "damaged"


def committed_pages(log: bytes) -> dict[int, bytes]:
    """Return the pages that the log holds, by their numbers, as of its last commit."""
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    for number, is_commit, page in _frames(log):
        pending[number] = page
        if is_commit:
            pages.update(pending)
            pending.clear()
    return pages


def page_size_of(log: bytes) -> int | None:
    header = _header(log)
    return header.page_size if header else None


def _frames(log: bytes) -> Iterator[tuple[int, bool, bytes]]:
    header = _header(log)
    if header is None:
        return
    checksum, length = header.checksum, _FRAME + header.page_size
    for at in range(_HEADER, len(log) - length + 1, length):
        frame = log[at : at + length]
        number, size = struct.unpack_from(">II", frame)
        checksum = _sum(_sum(checksum, frame[:8], header.order), frame[_FRAME:], header.order)
        if frame[8:16] != header.salts or struct.unpack_from(">II", frame, 16) != checksum:
            return
        yield number, bool(size), frame[_FRAME:]


def _hides_commits(log: bytes) -> bool:
    """Return whether a commit follows a frame that is damaged. Frames of an earlier log have other salts."""
    header = _header(log)
    if header is None:
        return True
    length = _FRAME + header.page_size
    first_bad = _HEADER + length * sum(1 for _ in _frames(log))
    starts = range(first_bad + length, len(log) - length + 1, length)
    return any(log[at + 8 : at + 16] == header.salts and any(log[at + 4 : at + 8]) for at in starts)


def _header(log: bytes) -> _Header | None:
    if len(log) < _HEADER:
        return None
    magic, _, page_size, _, _, _, *checksum = struct.unpack_from(">8I", log)
    order: Literal["<", ">"] = ">" if magic & 1 else "<"
    if magic & ~1 != _MAGIC or _sum((0, 0), log[:24], order) != tuple(checksum) or not 512 <= page_size <= 65536:
        return None
    return _Header(order, page_size, log[16:24], (checksum[0], checksum[1]))


def _sum(start: Checksum, data: bytes, order: str) -> Checksum:
    first, second = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for at in range(0, len(words), 2 * _UNMASKED):
        part = words[at : at + 2 * _UNMASKED]
        for even, odd in zip(part[::2], part[1::2], strict=True):
            first += even + second
            second += odd + first
        first, second = first & _MASK, second & _MASK
    return first, second
