"""Pages for tests: rows of marks that encode numbers, and a reader that finds them through a map."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw

from sightline.model.geometry import PixelMap
from sightline.model.image import FitResult

CELL = 3  # pixels of a bit
HIGH = 12  # pixels of a row of marks
STEP = 24  # from one row to the next
BITS = 24


def page(width: int, height: int, left: int = 40, paper: str = "white", pen: str = "black") -> Image.Image:
    """Draw as many rows as fit; row n encodes 37 · n, repeated up to the right margin."""
    image = Image.new("RGB", (width, height), paper)
    draw = ImageDraw.Draw(image)
    for number, top in rows(height):
        for x in range(left, width - left - BITS * CELL, (BITS + 2) * CELL):
            for bit in range(BITS):
                if _spelt(number) >> bit & 1:
                    draw.rectangle((x + bit * CELL, top, x + bit * CELL + CELL - 1, top + HIGH - 1), pen)
    return image


def rows(height: int) -> list[tuple[int, int]]:
    return list(enumerate(range(40, height - 40, STEP)))


def _spelt(number: int) -> int:
    return (37 * number + 1) | 1 << (BITS - 1)


def legible(fitted: FitResult, height: int, left: int = 40) -> list[bool]:
    """Return the rows that can be read in the images that a page became."""
    parts = [(part.map, Image.open(io.BytesIO(part.image.data)).convert("L")) for part in fitted.parts]
    return [
        any(_read(image, where, left, top) == _spelt(number) for where, image in parts) for number, top in rows(height)
    ]


def _read(image: Image.Image, where: PixelMap, left: int, top: int) -> int:
    """Return the number that is encoded there; trimmed places were blank."""
    spelt = 0
    for bit in range(BITS):
        point = where.to_result(left + bit * CELL + CELL / 2, top + HIGH / 2)
        if point is not None and _shade(image, *point) < 110:
            spelt |= 1 << bit
    return spelt


def _shade(image: Image.Image, x: float, y: float) -> float:
    shade = image.getpixel((min(int(x), image.width - 1), min(int(y), image.height - 1)))
    assert not isinstance(shade, tuple)
    return shade or 0
