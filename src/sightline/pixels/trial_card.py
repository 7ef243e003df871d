"""A picture that a model cannot guess: four quarters of random colours, and a random code.

A model that names the colours and reads the code can see. The PNG is written here, so that it needs neither a font nor
a library, and is the same on every machine.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

RGB = tuple[int, int, int]

COLOURS: Mapping[str, RGB] = MappingProxyType(
    {
        "red": (214, 24, 31),
        "green": (0, 140, 58),
        "blue": (24, 61, 212),
        "yellow": (250, 221, 0),
        "orange": (255, 128, 0),
        "purple": (118, 32, 150),
        "pink": (255, 150, 190),
        "brown": (110, 62, 24),
        "gray": (128, 128, 128),
        "black": (0, 0, 0),
    }
)
"""Colours that one word names, far enough from each other to be unmistakable."""

LETTERS = "ACDEFHJKMNPRTWXY34679"
"""No two of them look alike: O and 0, I and 1 are missing."""

_FONT = """
.###. .###. ####. ##### ##### #...# ..### #...# #...# #...# ####. ####. ##### #...# #...# #...# ####. ...#. ..##. ##### .###.
#...# #...# #...# #.... #.... #...# ...#. #..#. ##.## ##..# #...# #...# ..#.. #...# #...# #...# ....# ..##. .#... ....# #...#
#...# #.... #...# #.... #.... #...# ...#. #.#.. #.#.# #.#.# #...# #...# ..#.. #...# .#.#. .#.#. ....# .#.#. #.... ...#. #...#
##### #.... #...# ####. ####. ##### ...#. ##... #.#.# #..## ####. ####. ..#.. #.#.# ..#.. ..#.. .###. #..#. ####. ..#.. .####
#...# #.... #...# #.... #.... #...# ...#. #.#.. #...# #...# #.... #.#.. ..#.. #.#.# .#.#. ..#.. ....# ##### #...# ..#.. ....#
#...# #...# #...# #.... #.... #...# #..#. #..#. #...# #...# #.... #..#. ..#.. ##.## #...# ..#.. ....# ...#. #...# ..#.. ...#.
#...# .###. ####. ##### #.... #...# .##.. #...# #...# #...# #.... #...# ..#.. #...# #...# ..#.. ####. ...#. .###. ..#.. .##..
"""  # noqa: E501

GLYPHS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    dict(zip(LETTERS, zip(*(row.split() for row in _FONT.strip().splitlines()), strict=True), strict=True))
)
"""Each letter as seven rows of five, ink as `#`."""

CODE_LENGTH = 6
# The card is a grid of squares: four quarters, and across their middle a white strip with the code.
COLUMNS, ROWS = 60, 45
CODE_AT = (12, 19)
ADVANCE = 6
_SQUARE = 12  # pixels
SIZE = (COLUMNS * _SQUARE, ROWS * _SQUARE)
_PAPER: RGB = (255, 255, 255)
_INK: RGB = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class TrialCard:
    colours: tuple[str, str, str, str]  # top left, top right, bottom left, bottom right
    code: str

    @classmethod
    def from_random(cls, random: Random) -> TrialCard:
        first, second, third, fourth = random.sample(list(COLOURS), 4)
        return cls((first, second, third, fourth), "".join(random.choices(LETTERS, k=CODE_LENGTH)))

    def to_png(self) -> bytes:
        rows = (b"\0" + b"".join(bytes(rgb) * _SQUARE for rgb in row) for row in self._build_rows())
        pixels = b"".join(row * _SQUARE for row in rows)
        head = struct.pack(">IIBBBBB", *SIZE, 8, 2, 0, 0, 0)
        chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_build_chunk(name, data) for name, data in chunks)

    def _build_rows(self) -> Iterator[list[RGB]]:
        quarters = [COLOURS[name] for name in self.colours]
        left, top = CODE_AT
        for y in range(ROWS):
            upper = y * 2 < ROWS
            sides = quarters[:2] if upper else quarters[2:]
            row = [sides[x * 2 >= COLUMNS] for x in range(COLUMNS)]
            if top - 1 <= y <= top + 7:
                written = self._build_text_row(y - top)
                row[left - 1 : left + len(written)] = [_PAPER, *(_INK if mark == "#" else _PAPER for mark in written)]
            yield row

    def _build_text_row(self, y: int) -> str:
        blank = "." * ADVANCE
        return "".join(GLYPHS[letter][y] + "." if 0 <= y < 7 else blank for letter in self.code)


def _build_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
