"""SQLite's files, read without SQLite: the write-ahead log, and the rows of a database that is damaged.

The log. SQLite takes a log with a damaged header for an empty one, so the log is checked before SQLite opens it. It
begins with a header of 32 bytes: magic number, version, page size, counter, two salts, and a checksum of all that.
Frames follow, each a header of 24 bytes (page number, size of the database after a commit or 0, the salts, a checksum
that goes on from the one before) and a page. A frame counts if its salts and checksum are right, and if a commit
follows. The format is described at https://sqlite.org/fileformat.html#walformat.

The database. SQLite gives up at the first page that is damaged. A table is a tree of pages. Its leaves (first byte 13)
hold rows; inner pages (5) only say where leaves are. So a leaf can be read whatever happened to the rest of the file,
and which table a row is of can be told from the tree that leads to it, or else from the types of its values. Pages that
the log holds count instead of those in the file. Free pages are left out: they may hold what was deleted.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

_LOG_MAGIC = 0x377F0682
_LOG_HEADER, _FRAME = 32, 24
_ATTEMPTS = 5
_BATCH = 256  # frames that are summed up at once
_UNMASKED = 16  # pairs of words that are summed up before the sums are cut to 32 bits: they stay below 64 bits

MAGIC = b"SQLite format 3\0"
_LEAF, _INNER = 13, 5
_USUAL_SIZE = 4096
_HEADER = 100  # bytes that page 1 begins with
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # the bytes of an integer by its type

Checksum = tuple[int, int]
Value = None | int | float | str | bytes
Cell = tuple[int, tuple[Value, ...]]
"""The number of a row, and its values."""


@dataclass(frozen=True, slots=True)
class _LogHeader:
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
    SQLite syncs the header before it writes frames, so a header of zeros before other bytes is damage, too.
    """
    before = b""
    for _ in range(_ATTEMPTS):
        try:
            log = log_of(database).read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return "absent"
        if len(log) < _LOG_HEADER + _FRAME or log.count(0) == len(log):  # never finished: nothing was committed to it
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
    header = _read_log_header(log)
    return header.page_size if header else None


def _frames(log: bytes) -> Iterator[tuple[int, bool, bytes]]:
    header = _read_log_header(log)
    if header is None:
        return
    length = _FRAME + header.page_size
    for index in range(_count_sound_frames(log, header)):
        at = _LOG_HEADER + index * length
        number, size = struct.unpack_from(">II", log, at)
        yield number, bool(size), log[at + _FRAME : at + length]


def _hides_commits(log: bytes) -> bool:
    """Return whether a commit follows a frame that is damaged. Frames of an earlier log have other salts."""
    header = _read_log_header(log)
    if header is None:
        return True
    length = _FRAME + header.page_size
    first_bad = _LOG_HEADER + length * _count_sound_frames(log, header)
    starts = range(first_bad + length, len(log) - length + 1, length)
    return any(log[at + 8 : at + 16] == header.salts and any(log[at + 4 : at + 8]) for at in starts)


def _read_log_header(log: bytes) -> _LogHeader | None:
    if len(log) < _LOG_HEADER:
        return None
    magic, _, page_size, _, _, _, *checksum = struct.unpack_from(">8I", log)
    order: Literal["<", ">"] = ">" if magic & 1 else "<"
    if magic & ~1 != _LOG_MAGIC or not 512 <= page_size <= 65536 or page_size % 512:
        return None
    if _sum(log[:24], range(3), [(0, 0)], order) != [tuple(checksum)]:
        return None
    return _LogHeader(order, page_size, log[16:24], (checksum[0], checksum[1]))


def _count_sound_frames(log: bytes, header: _LogHeader) -> int:
    """Return how many frames there are before the first whose salts or checksum are wrong.

    The checksum of a frame goes on from the one before. Up to the first wrong one that is what is written there, so all
    frames can be summed up at once.
    """
    length, count = _FRAME + header.page_size, 0
    columns = (0, *range(_FRAME // 8, length // 8))  # a checksum leaves out the salts and itself
    starts = range(_LOG_HEADER, len(log) - length + 1, length)
    before = header.checksum
    for first in range(0, len(starts), _BATCH):
        batch = starts[first : first + _BATCH]
        written = [struct.unpack_from(">II", log, at + 16) for at in batch]
        sums = _sum(log[batch[0] : batch[-1] + length], columns, [before, *written[:-1]], header.order)
        for at, found, expected in zip(batch, sums, written, strict=True):
            if found != expected or log[at + 8 : at + 16] != header.salts:
                return count
            count += 1
        before = sums[-1]
    return count


def _sum(data: bytes, columns: Sequence[int], starts: Sequence[Checksum], order: str) -> list[Checksum]:
    """Return the checksums of rows of equal length, of which these columns of eight bytes are summed up.

    One row alone would be: `first += word + second; second += next_word + first` for each pair of words, in 32 bits.
    Here large integers hold the sums of all rows, in lanes of 64 bits, so that Python does all rows in one step.
    """
    count = len(starts)
    words = array("I", data)
    if order == ">":
        words.byteswap()
    pairs = array("Q", words.tobytes())
    stride = len(pairs) // count
    mask = int.from_bytes(b"\xff\xff\xff\xff\0\0\0\0" * count, "little")
    first, second = (int.from_bytes(struct.pack(f"<{count}Q", *part), "little") for part in zip(*starts, strict=True))
    for step, column in enumerate(columns, 1):
        pair = int.from_bytes(pairs[column::stride].tobytes(), "little")
        first += second + (pair & mask)
        second += first + (pair >> 32 & mask)
        if step % _UNMASKED == 0:
            first, second = first & mask, second & mask
    lanes = ((part & mask).to_bytes(8 * count, "little") for part in (first, second))
    return list(zip(*(struct.unpack(f"<{count}Q", lane) for lane in lanes), strict=True))


class _UnreadableError(ValueError):
    """The bytes do not make sense here."""


@dataclass(frozen=True, slots=True)
class Header:
    page_size: int
    usable: int  # bytes of a page
    steps: int | None  # of the migrations that the file has taken; None: the header is damaged
    free: int  # the first page of the list of free ones


class Pages:
    def __init__(self, file: BinaryIO, log: bytes) -> None:
        self._file, self._logged = file, committed_pages(log)
        self.header = _read_header(self._logged.get(1) or self._read(0, _HEADER), page_size_of(log))
        end = file.seek(0, 2)
        self.count = max([-(-end // self.header.page_size), *self._logged])

    def rows(self, number: int) -> list[Cell]:
        """Return the rows on a page, as far as they can be read; none if it is no leaf of a table."""
        page, start = self._page(number)
        if page[start : start + 1] != bytes([_LEAF]):
            return []
        found = []
        for at in _cell_places(page, start, 8):
            try:
                found.append(self._cell(page, at))
            except (_UnreadableError, struct.error, UnicodeDecodeError):
                continue
        return found

    def leaves(self, root: int) -> Iterator[int]:
        """Return the leaves of a tree in their order, as far as they can be reached."""
        waiting, seen = [root], set[int]()
        while waiting:
            number = waiting.pop()
            if number in seen or not 1 <= number <= self.count:
                continue
            seen.add(number)
            page, start = self._page(number)
            kind = page[start] if len(page) > start + 12 else 0
            if kind == _LEAF:
                yield number
            elif kind == _INNER:
                places = [*_cell_places(page, start, 12), start + 8]
                waiting += reversed([_number(page, at) for at in places])

    def free(self) -> set[int]:
        """Return the pages that hold nothing that counts."""
        found, trunk = set[int](), self.header.free
        while 1 <= trunk <= self.count and trunk not in found:
            found.add(trunk)
            page, _ = self._page(trunk)
            count = min(_number(page, 4), len(page) // 4 - 2)
            found.update(_number(page, 8 + 4 * index) for index in range(count))
            trunk = _number(page, 0)
        return found

    def _page(self, number: int) -> tuple[bytes, int]:
        """Return a page, and where on it the tree begins."""
        size = self.header.page_size
        page = self._logged.get(number) or self._read((number - 1) * size, size)
        return page.ljust(size, b"\0"), _HEADER if number == 1 else 0

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)

    def _cell(self, page: bytes, at: int) -> Cell:
        length, at = _varint(page, at)
        rowid, at = _varint(page, at)
        record = self._payload(page, at, length)
        return rowid, tuple(_values(record))

    def _payload(self, page: bytes, at: int, length: int) -> bytes:
        """Return the bytes of a row; what does not fit on its page goes on elsewhere."""
        usable = self.header.usable
        if not 0 < length <= usable * self.count:
            raise _UnreadableError
        if length <= usable - 35:
            return page[at : at + length]
        least = (usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (usable - 4)
        here = here if here <= usable - 35 else least
        parts, left, following = [page[at : at + here]], length - here, _number(page, at + here)
        while left > 0:
            if not 1 <= following <= self.count:
                raise _UnreadableError
            more, _ = self._page(following)
            parts.append(more[4 : 4 + min(left, usable - 4)])
            left, following = left - (usable - 4), _number(more, 0)
        return b"".join(parts)


def roots(pages: Pages) -> Mapping[str, int]:
    """Return the page at which the tree of each table begins, as far as the list of tables can be read."""
    found: dict[str, int] = {}
    for leaf in pages.leaves(1):
        for _, values in pages.rows(leaf):
            match values:
                case ("table", str(name), _, int(root), *_):
                    found[name] = root
    return found


def _read_header(start: bytes, logged_size: int | None) -> Header:
    size = _size(struct.unpack_from(">H", start, 16)[0]) if len(start) >= _HEADER else None
    if start[:16] != MAGIC or size is None:
        usual = logged_size or _USUAL_SIZE
        return Header(usual, usual, None, 0)
    return Header(size, size - start[20], _number(start, 60), _number(start, 32))


def _size(found: int) -> int | None:
    size = 65536 if found == 1 else found
    return size if 512 <= size <= 65536 and size & (size - 1) == 0 else None


def _cell_places(page: bytes, start: int, header: int) -> list[int]:
    count = min(struct.unpack_from(">H", page, start + 3)[0], (len(page) - start - header) // 2)
    places = struct.unpack_from(f">{count}H", page, start + header)
    return [place for place in places if place < len(page) - 3]


def _number(page: bytes, at: int) -> int:
    if at + 4 > len(page):
        raise _UnreadableError
    return int.from_bytes(page[at : at + 4], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and where the next one begins."""
    value = 0
    for index in range(9):
        if at + index >= len(data):
            raise _UnreadableError
        byte = data[at + index]
        value = value << 8 | byte if index == 8 else value << 7 | byte & 0x7F
        if byte < 0x80 or index == 8:
            break
    return value - (1 << 64) if value >= 1 << 63 else value, at + index + 1


def _values(record: bytes) -> Iterator[Value]:
    length, at = _varint(record, 0)
    if not 1 <= length <= len(record):
        raise _UnreadableError
    body = length
    while at < length:
        kind, at = _varint(record, at)
        value, body = _value(kind, record, body)
        yield value


def _value(kind: int, record: bytes, at: int) -> tuple[Value, int]:
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    size = _INTEGERS.get(kind) or (8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else -1)
    data = record[at : at + size]
    if size < 0 or len(data) != size:
        raise _UnreadableError
    if kind in _INTEGERS:
        return int.from_bytes(data, "big", signed=True), at + size
    if kind == 7:
        return struct.unpack(">d", data)[0], at + size
    return (data.decode() if kind % 2 else data), at + size
