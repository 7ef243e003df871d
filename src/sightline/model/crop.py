"""A part of an image that somebody asks for, in one of three forms, and the pixels that it means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import assert_never

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal

_HALF, _QUARTER = 0.5, 0.25
REGIONS: dict[str, tuple[float, float, float, float]] = {
    "top-left": (0, 0, _HALF, _HALF),
    "top-right": (_HALF, 0, _HALF, _HALF),
    "bottom-left": (0, _HALF, _HALF, _HALF),
    "bottom-right": (_HALF, _HALF, _HALF, _HALF),
    "top": (0, 0, 1, _HALF),
    "bottom": (0, _HALF, 1, _HALF),
    "left": (0, 0, _HALF, 1),
    "right": (_HALF, 0, _HALF, 1),
    "center": (_QUARTER, _QUARTER, _HALF, _HALF),
    "top-half": (0, 0, 1, _HALF),
    "bottom-half": (0, _HALF, 1, _HALF),
    "left-half": (0, 0, _HALF, 1),
    "right-half": (_HALF, 0, _HALF, 1),
}
CROP_FORMS = f"r=NAME ({', '.join(REGIONS)}), n=X,Y,W,H in fractions, or p=X,Y,W,H in pixels"
"""How a crop is written, for help texts; `parse` reads it."""


@dataclass(frozen=True, slots=True)
class Region:
    name: str


@dataclass(frozen=True, slots=True)
class Normalized:
    """Fractions of the image, from 0 to 1."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Pixels:
    x: float
    y: float
    width: float
    height: float


Crop = Region | Normalized | Pixels


def resolve(crop: Crop, size: Size) -> Box | Refusal:
    """The whole pixels that a crop means: what lies outside is left out, a named region always has some."""
    match crop:
        case Region(name=name):
            found = REGIONS.get(name)
            if found is None:
                return _unknown(name)
            box = _corners(found, size)
            return Box(min(box.x, size.width - 1), min(box.y, size.height - 1), max(1, box.width), max(1, box.height))
        case Normalized():
            sides = (crop.x, crop.y, crop.width, crop.height)
            if not all(map(math.isfinite, sides)):
                return _EMPTY
            box = _corners(sides, size)
        case Pixels():
            sides = (crop.x, crop.y, crop.width, crop.height)
            if not all(map(math.isfinite, sides)):
                return _EMPTY
            box = _between(round(crop.x), round(crop.y), round(crop.x) + round(crop.width),
                           round(crop.y) + round(crop.height), size)  # fmt: skip
        case _:
            assert_never(crop)
    return box if box.width > 0 and box.height > 0 else _EMPTY


_EMPTY = Refusal("invalid_input", "the crop holds no pixel of the image", "give one that lies inside it")


def _corners(sides: tuple[float, float, float, float], size: Size) -> Box:
    """Corners are rounded, not widths: two halves of an image then share no pixel and miss none."""
    x, y, width, height = sides
    return _between(x * size.width, y * size.height, (x + width) * size.width, (y + height) * size.height, size)


def _between(left: float, top: float, right: float, bottom: float, size: Size) -> Box:
    """The whole pixels between two corners, clamped first: a product may be infinite, and that cannot be rounded."""
    x, x2 = (round(max(0, min(side, size.width))) for side in (left, right))
    y, y2 = (round(max(0, min(side, size.height))) for side in (top, bottom))
    return Box(x, y, x2 - x, y2 - y)


def parse(text: str) -> Crop | Refusal:
    """A crop as a person writes it: r=NAME, n=X,Y,W,H (fractions) or p=X,Y,W,H (pixels)."""
    form, equals, rest = text.strip().partition("=")
    if form == "r" and equals:
        return Region(rest.strip()) if rest.strip() in REGIONS else _unknown(rest.strip())
    if form in ("n", "p") and equals:
        try:
            x, y, width, height = (float(number) for number in rest.split(","))
        except ValueError:
            return Refusal(
                "invalid_input", f"{text!r:.60} does not hold four numbers", f"write {form}=X,Y,WIDTH,HEIGHT"
            )
        return Normalized(x, y, width, height) if form == "n" else Pixels(x, y, width, height)
    return Refusal("invalid_input", f"{text!r:.60} is no crop", "write r=NAME, n=X,Y,W,H or p=X,Y,W,H")


def _unknown(name: str) -> Refusal:
    return Refusal("invalid_input", f"there is no region {name!r:.60}", f"one of {', '.join(REGIONS)}")


def inside(box: Box, size: Size) -> Box | Refusal:
    """Return the box, or a refusal where it is empty or not all inside: the whole never stands in for a part."""
    fits = box.x >= 0 and box.y >= 0 and box.right <= size.width and box.bottom <= size.height
    if fits and box.width >= 1 and box.height >= 1:
        return box
    return Refusal("invalid_input", f"the crop {box} is not inside the image of {size}", "give one that is")
