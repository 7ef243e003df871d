"""Which characters a font file has a glyph for: its `cmap` table, read without loading the font."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_MAX_TABLE_BYTES = 4 * 1024 * 1024
_BITMAP_TABLES = frozenset({b"CBDT", b"sbix"})
_PREFERRED = ((3, 10), (0, 6), (0, 4), (3, 1), (0, 3))  # platform and encoding: all of Unicode first, then the BMP


@dataclass(frozen=True, slots=True)
class FontCoverage:
    """The characters of a font, as sorted ranges."""

    firsts: tuple[int, ...] = ()
    lasts: tuple[int, ...] = ()
    has_bitmaps: bool = False  # its glyphs are pictures of one size, such as colour emoji

    def covers(self, character: str) -> bool:
        """Return whether the font has a glyph for a character."""
        code = ord(character)
        at = bisect_right(self.firsts, code) - 1
        return at >= 0 and code <= self.lasts[at]


def read_coverage(path: Path) -> FontCoverage:
    """Return the coverage of a font, or of the first one of a collection; an empty one if the file is damaged."""
    try:
        with path.open("rb") as file:
            tables = _read_tables(file)
            start, length = tables[b"cmap"]
            file.seek(start)
            ranges = _read_cmap(file.read(min(length, _MAX_TABLE_BYTES)))
    except (OSError, KeyError, IndexError, struct.error):
        return FontCoverage()
    ranges = sorted(ranges)
    firsts, lasts = tuple(first for first, _ in ranges), tuple(last for _, last in ranges)
    return FontCoverage(firsts, lasts, not _BITMAP_TABLES.isdisjoint(tables))


def _read_tables(file: BinaryIO) -> dict[bytes, tuple[int, int]]:
    """Return where each table is, and its length."""
    head = file.read(16)
    if head.startswith(b"ttcf"):
        file.seek(struct.unpack_from(">I", head, 12)[0])
        head = file.read(12)
        directory = file.read(16 * struct.unpack_from(">H", head, 4)[0])
    else:
        directory = head[12:] + file.read(16 * struct.unpack_from(">H", head, 4)[0] - 4)
    entries = struct.iter_unpack(">4s4xII", directory)
    return {name: (start, length) for name, start, length in entries}


def _read_cmap(table: bytes) -> list[tuple[int, int]]:
    count = struct.unpack_from(">H", table, 2)[0]
    places = {(platform, kind): at for platform, kind, at in struct.iter_unpack(">HHI", table[4 : 4 + 8 * count])}
    at = next((places[each] for each in _PREFERRED if each in places), None)
    if at is None:
        return []
    match struct.unpack_from(">H", table, at)[0]:
        case 12:
            groups = struct.unpack_from(">I", table, at + 12)[0]
            listed = struct.iter_unpack(">III", table[at + 16 : at + 16 + 12 * groups])
            return [(first, last) for first, last, _ in listed]
        case 4:
            return list(_read_segments(table[at:]))
    return []


def _read_segments(table: bytes) -> Iterable[tuple[int, int]]:
    """Yield the ranges of a subtable of format 4, without characters that it maps to no glyph."""
    count = struct.unpack_from(">H", table, 6)[0] // 2
    numbers = struct.unpack_from(f">{count}HH{3 * count}H", table, 14)
    lasts, firsts = numbers[:count], numbers[count + 1 : 2 * count + 1]
    offsets = numbers[3 * count + 1 :]
    for index, (first, last, offset) in enumerate(zip(firsts, lasts, offsets, strict=True)):
        if first == 0xFFFF:
            continue
        if not offset:
            yield first, last
            continue
        glyphs = 16 + 6 * count + 2 * index + offset  # where those of this segment begin
        for code in range(first, last + 1):
            if struct.unpack_from(">H", table, glyphs + 2 * (code - first))[0]:
                yield code, code
