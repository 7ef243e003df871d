"""SQLite's file formats, read without SQLite: the write-ahead log, and the rows of a damaged database.

The log. SQLite takes a log with a damaged header for an empty one, so the log is checked before SQLite opens it. It
starts with a header of 32 bytes: magic number, version, page size, counter, two salts, and a checksum of these. Then
come frames: a header of 24 bytes (page number, size of the database after a commit or else 0, the salts, a checksum
that continues the previous one) and a page. A frame is valid if its salts and checksum are right and a commit follows.
The format is described at https://sqlite.org/fileformat.html#walformat.

The database. SQLite stops at the first damaged page. A table is a tree of pages: leaves (first byte 13) contain rows,
inner pages (5) only refer to leaves. So a leaf can be read even if the rest of the file is damaged; the table of a row
is known from the tree that leads to its leaf, or else from the types of its values. Pages in the log replace those in
the file. Free pages are skipped, because they may contain deleted rows.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from sightline.model.value import value_class

_LOG_MAGIC = 0x377F0682
_LOG_HEADER, _FRAME_HEADER = 32, 24
_ATTEMPTS = 5
_FRAMES_PER_BATCH = 256  # whose checksums are computed together
_STEPS_PER_MASK = 16  # additions before the sums are cut to 32 bits; until then they stay below 64 bits

DATABASE_MAGIC = b"SQLite format 3\0"
_LEAF_PAGE, _INNER_PAGE = 13, 5
_USUAL_PAGE_SIZE = 4096
_DATABASE_HEADER = 100  # bytes at the start of page 1
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes of an integer by its serial type

Checksum = tuple[int, int]
Value = None | int | float | str | bytes
Cell = tuple[int, tuple[Value, ...]]
"""The rowid and the values of a row."""


@value_class
class _LogHeader:
    order: Literal["<", ">"]  # byte order of the checksums
    page_size: int
    salts: bytes
    checksum: Checksum


def get_log_path(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def check_log(database: Path) -> Literal["absent", "sound", "damaged"]:
    """Return whether SQLite would read every commit in the log.

    SQLite takes a log with a damaged header for an empty one, and silently stops at the first damaged frame. A crash
    damages at most the last transaction, which was not yet reported as durable; so a log is damaged if a commit follows
    a damaged frame. SQLite syncs the header before it writes frames, so zeros instead of a header are damage, too.
    """
    before = b""
    for _ in range(_ATTEMPTS):
        try:
            log = get_log_path(database).read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return "absent"
        if len(log) < _LOG_HEADER + _FRAME_HEADER or log.count(0) == len(log):  # unfinished: it contains no commit
            return "absent"
        if not _has_hidden_commits(log):
            return "sound"
        if log == before:
            break
        before = log  # another process may have written to it during the read
    return "damaged"


def read_committed_pages(log: bytes) -> dict[int, bytes]:
    """Return the pages in the log by their numbers, as of its last commit."""
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    for number, is_commit, page in _read_frames(log):
        pending[number] = page
        if is_commit:
            pages.update(pending)
            pending.clear()
    return pages


def read_page_size(log: bytes) -> int | None:
    header = _read_log_header(log)
    return header.page_size if header else None


def _read_frames(log: bytes) -> Iterator[tuple[int, bool, bytes]]:
    header = _read_log_header(log)
    if header is None:
        return
    length = _FRAME_HEADER + header.page_size
    for index in range(_count_sound_frames(log, header)):
        at = _LOG_HEADER + index * length
        number, size = struct.unpack_from(">II", log, at)
        yield number, bool(size), log[at + _FRAME_HEADER : at + length]


def _has_hidden_commits(log: bytes) -> bool:
    """Return whether a commit follows a damaged frame. Frames of an earlier log have other salts."""
    header = _read_log_header(log)
    if header is None:
        return True
    length = _FRAME_HEADER + header.page_size
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
    if _compute_checksums(log[:24], range(3), [(0, 0)], order) != [tuple(checksum)]:
        return None
    return _LogHeader(order, page_size, log[16:24], (checksum[0], checksum[1]))


def _count_sound_frames(log: bytes, header: _LogHeader) -> int:
    """Return how many frames come before the first with wrong salts or a wrong checksum.

    The checksum of a frame continues the previous one. Up to the first wrong frame, the previous one is as written, so
    the checksums of all frames can be computed together.
    """
    length, count = _FRAME_HEADER + header.page_size, 0
    columns = (0, *range(_FRAME_HEADER // 8, length // 8))  # the checksum does not include the salts and itself
    starts = range(_LOG_HEADER, len(log) - length + 1, length)
    before = header.checksum
    for first in range(0, len(starts), _FRAMES_PER_BATCH):
        batch = starts[first : first + _FRAMES_PER_BATCH]
        written = [struct.unpack_from(">II", log, at + 16) for at in batch]
        sums = _compute_checksums(log[batch[0] : batch[-1] + length], columns, [before, *written[:-1]], header.order)
        for at, actual, expected in zip(batch, sums, written, strict=True):
            if actual != expected or log[at + 8 : at + 16] != header.salts:
                return count
            count += 1
        before = sums[-1]
    return count


def _compute_checksums(data: bytes, columns: Sequence[int], starts: Sequence[Checksum], order: str) -> list[Checksum]:
    """Return the checksums of rows of equal length, over these columns of eight bytes.

    For one row this would be: `first += word + second; second += next_word + first` for each pair of words, in 32 bits.
    Here large integers contain the sums of all rows, in lanes of 64 bits, so that Python adds all rows in one step.
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
        if step % _STEPS_PER_MASK == 0:
            first, second = first & mask, second & mask
    lanes = ((part & mask).to_bytes(8 * count, "little") for part in (first, second))
    return list(zip(*(struct.unpack(f"<{count}Q", lane) for lane in lanes), strict=True))


class _UnreadableError(ValueError):
    """The bytes are not a valid row or page."""


@value_class
class DatabaseHeader:
    page_size: int
    usable_size: int  # of a page, in bytes
    version: int | None  # number of migrations applied; None: the header is damaged
    first_free_page: int  # the first page of the free list


class DatabasePages:
    def __init__(self, file: BinaryIO, log: bytes) -> None:
        self._file, self._log_pages = file, read_committed_pages(log)
        self.header = _read_header(self._log_pages.get(1) or self._read(0, _DATABASE_HEADER), read_page_size(log))
        end = file.seek(0, 2)
        self.count = max([-(-end // self.header.page_size), *self._log_pages])

    def read_rows(self, number: int) -> list[Cell]:
        """Return the rows on a page that can be read; none if it is not a leaf of a table."""
        page, start = self._read_page(number)
        if page[start : start + 1] != bytes([_LEAF_PAGE]):
            return []
        rows = []
        for at in _find_cells(page, start, 8):
            try:
                rows.append(self._read_cell(page, at))
            except (_UnreadableError, struct.error, UnicodeDecodeError):
                continue
        return rows

    def find_leaves(self, root: int) -> Iterator[int]:
        """Return the leaves of a tree in order, as far as they can be reached."""
        pending, seen = [root], set[int]()
        while pending:
            number = pending.pop()
            if number in seen or not 1 <= number <= self.count:
                continue
            seen.add(number)
            page, start = self._read_page(number)
            kind = page[start] if len(page) > start + 12 else 0
            if kind == _LEAF_PAGE:
                yield number
            elif kind == _INNER_PAGE:
                offsets = [*_find_cells(page, start, 12), start + 8]
                pending += reversed([_read_integer(page, at) for at in offsets])

    def find_free_pages(self) -> set[int]:
        """Return the pages in the free list."""
        found, trunk = set[int](), self.header.first_free_page
        while 1 <= trunk <= self.count and trunk not in found:
            found.add(trunk)
            page, _ = self._read_page(trunk)
            count = min(_read_integer(page, 4), len(page) // 4 - 2)
            found.update(_read_integer(page, 8 + 4 * index) for index in range(count))
            trunk = _read_integer(page, 0)
        return found

    def _read_page(self, number: int) -> tuple[bytes, int]:
        """Return a page, and the offset at which its content starts."""
        size = self.header.page_size
        page = self._log_pages.get(number) or self._read((number - 1) * size, size)
        return page.ljust(size, b"\0"), _DATABASE_HEADER if number == 1 else 0

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)

    def _read_cell(self, page: bytes, at: int) -> Cell:
        length, at = _read_varint(page, at)
        rowid, at = _read_varint(page, at)
        record = self._read_payload(page, at, length)
        return rowid, tuple(_read_values(record))

    def _read_payload(self, page: bytes, at: int, length: int) -> bytes:
        """Return the bytes of a row, including what is on overflow pages."""
        usable = self.header.usable_size
        if not 0 < length <= usable * self.count:
            raise _UnreadableError
        if length <= usable - 35:
            return page[at : at + length]
        min_local = (usable - 12) * 32 // 255 - 23
        local_size = min_local + (length - min_local) % (usable - 4)
        local_size = local_size if local_size <= usable - 35 else min_local
        parts, remaining, next_page = (
            [page[at : at + local_size]],
            length - local_size,
            _read_integer(page, at + local_size),
        )
        while remaining > 0:
            if not 1 <= next_page <= self.count:
                raise _UnreadableError
            overflow, _ = self._read_page(next_page)
            parts.append(overflow[4 : 4 + min(remaining, usable - 4)])
            remaining, next_page = remaining - (usable - 4), _read_integer(overflow, 0)
        return b"".join(parts)


def find_roots(pages: DatabasePages) -> Mapping[str, int]:
    """Return the root page of each table, as far as the schema can be read."""
    found: dict[str, int] = {}
    for leaf in pages.find_leaves(1):
        for _, values in pages.read_rows(leaf):
            match values:
                case ("table", str(name), _, int(root), *_):
                    found[name] = root
    return found


def _read_header(start: bytes, logged_size: int | None) -> DatabaseHeader:
    size = _parse_page_size(struct.unpack_from(">H", start, 16)[0]) if len(start) >= _DATABASE_HEADER else None
    if start[:16] != DATABASE_MAGIC or size is None:
        assumed = logged_size or _USUAL_PAGE_SIZE
        return DatabaseHeader(assumed, assumed, None, 0)
    return DatabaseHeader(size, size - start[20], _read_integer(start, 60), _read_integer(start, 32))


def _parse_page_size(value: int) -> int | None:
    size = 65536 if value == 1 else value
    return size if 512 <= size <= 65536 and size & (size - 1) == 0 else None


def _find_cells(page: bytes, start: int, header: int) -> list[int]:
    count = min(struct.unpack_from(">H", page, start + 3)[0], (len(page) - start - header) // 2)
    offsets = struct.unpack_from(f">{count}H", page, start + header)
    return [offset for offset in offsets if offset < len(page) - 3]


def _read_integer(page: bytes, at: int) -> int:
    if at + 4 > len(page):
        raise _UnreadableError
    return int.from_bytes(page[at : at + 4], "big")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer of one to nine bytes, and the offset after it."""
    value = 0
    for index in range(9):
        if at + index >= len(data):
            raise _UnreadableError
        byte = data[at + index]
        value = value << 8 | byte if index == 8 else value << 7 | byte & 0x7F
        if byte < 0x80 or index == 8:
            break
    return value - (1 << 64) if value >= 1 << 63 else value, at + index + 1


def _read_values(record: bytes) -> Iterator[Value]:
    length, at = _read_varint(record, 0)
    if not 1 <= length <= len(record):
        raise _UnreadableError
    body = length
    while at < length:
        kind, at = _read_varint(record, at)
        value, body = _read_value(kind, record, body)
        yield value


def _read_value(kind: int, record: bytes, at: int) -> tuple[Value, int]:
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    size = _INTEGER_SIZES.get(kind) or (8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else -1)
    data = record[at : at + size]
    if size < 0 or len(data) != size:
        raise _UnreadableError
    if kind in _INTEGER_SIZES:
        return int.from_bytes(data, "big", signed=True), at + size
    if kind == 7:
        return struct.unpack(">d", data)[0], at + size
    return (data.decode() if kind % 2 else data), at + size
