"""Sizes, boxes and crops, and the map from the pixels of a result back to those of its source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from sightline.model.refusal import Refusal
from sightline.model.value import value_class


@value_class
class Size:
    width: int
    height: int

    @property
    def edge(self) -> int:
        """The length of the longer side."""
        return max(self.width, self.height)

    @property
    def pixels(self) -> int:
        return self.width * self.height

    def fit_within(self, edge: int) -> Size:
        """Return the largest size of the same shape whose longer side is at most `edge`; never larger than itself."""
        return self if self.edge <= edge else self.scale(edge / self.edge)

    def scale(self, factor: float) -> Size:
        return Size(max(1, round(self.width * factor)), max(1, round(self.height * factor)))

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


@value_class
class Box:
    """A rectangle of whole pixels."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height

    @property
    def size(self) -> Size:
        return Size(self.width, self.height)

    def __str__(self) -> str:
        return f"{self.x},{self.y},{self.width},{self.height}"


@value_class
class Rect:
    """A rectangle with fractional coordinates."""

    x: float
    y: float
    width: float
    height: float

    @staticmethod
    def from_box(box: Box) -> Rect:
        return Rect(box.x, box.y, box.width, box.height)

    def contains(self, x: float, y: float) -> bool:
        return self.x <= x <= self.x + self.width and self.y <= y <= self.y + self.height

    def intersect(self, other: Rect) -> Rect | None:
        """Return the common part of two rectangles, or None."""
        x, y = max(self.x, other.x), max(self.y, other.y)
        right = min(self.x + self.width, other.x + other.width)
        bottom = min(self.y + self.height, other.y + other.height)
        return Rect(x, y, right - x, bottom - y) if right > x and bottom > y else None

    def transform(self, start: Rect, end: Rect) -> Rect:
        """Return where this rectangle inside `start` is when `start` is moved and scaled to `end`."""
        across, down = end.width / start.width, end.height / start.height
        x, y = end.x + (self.x - start.x) * across, end.y + (self.y - start.y) * down
        return Rect(x, y, self.width * across, self.height * down)


@value_class
class MapPiece:
    """A rectangle of the source, and the rectangle of the result to which it was copied, perhaps scaled."""

    source: Rect
    result: Rect


@value_class
class PixelMap:
    """Where each part of a result comes from. What is in no piece was added or left out."""

    source: Size
    result: Size
    pieces: tuple[MapPiece, ...]

    @staticmethod
    def from_scaling(source: Size, result: Size) -> PixelMap:
        source_rect = Rect(0, 0, source.width, source.height)
        return PixelMap(source, result, (MapPiece(source_rect, Rect(0, 0, result.width, result.height)),))

    @staticmethod
    def from_crop(source: Size, box: Box) -> PixelMap:
        return PixelMap(source, box.size, (MapPiece(Rect.from_box(box), Rect(0, 0, box.width, box.height)),))

    @staticmethod
    def from_moves(source: Size, result: Size, moves: Iterable[tuple[Box, Box]]) -> PixelMap:
        """Return the map for boxes of the source that were moved to boxes of the result."""
        return PixelMap(
            source, result, tuple(MapPiece(Rect.from_box(start), Rect.from_box(end)) for start, end in moves)
        )

    def then(self, later: PixelMap) -> PixelMap:
        """Return the map of this step followed by a later one."""
        pieces = []
        for first in self.pieces:
            for second in later.pieces:
                if between := first.result.intersect(second.source):
                    source = between.transform(first.result, first.source)
                    pieces.append(MapPiece(source, between.transform(second.source, second.result)))
        return PixelMap(self.source, later.result, tuple(pieces))

    def to_source(self, x: float, y: float) -> tuple[float, float] | None:
        """Return the point of the source at a point of the result; None if it does not come from the source."""
        return _map_point(x, y, ((piece.result, piece.source) for piece in self.pieces))

    def to_result(self, x: float, y: float) -> tuple[float, float] | None:
        """Return where a point of the source is in the result; None if it was left out."""
        return _map_point(x, y, ((piece.source, piece.result) for piece in self.pieces))


def _map_point(x: float, y: float, moves: Iterable[tuple[Rect, Rect]]) -> tuple[float, float] | None:
    for start, end in moves:
        if start.contains(x, y):
            moved = Rect(x, y, 0, 0).transform(start, end)
            return moved.x, moved.y
    return None


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
"""How a crop is written, for help texts; `parse_crop_text` parses it."""


@value_class
class NamedCrop:
    name: str


@value_class
class FractionCrop:
    """Fractions of the image, from 0 to 1."""

    x: float
    y: float
    width: float
    height: float


@value_class
class PixelCrop:
    x: float
    y: float
    width: float
    height: float


Crop = NamedCrop | FractionCrop | PixelCrop
CropLike = Crop | str | Mapping[str, Any] | None
"""What callers may give as a crop; `parse_crop` parses it."""

CROP_KEYS = ("region", "normalized", "pixels")
CROP_SIDES = ("x", "y", "width", "height")


def resolve_crop(crop: Crop, size: Size) -> Box | Refusal:
    """Return the pixels of a crop, clipped to the image. A named region always has at least one."""
    match crop:
        case NamedCrop(name=name):
            found = REGIONS.get(name)
            if found is None:
                return _refuse_region(name)
            box = _box_from_fractions(found, size)
            return Box(min(box.x, size.width - 1), min(box.y, size.height - 1), max(1, box.width), max(1, box.height))
        case FractionCrop():
            sides = (crop.x, crop.y, crop.width, crop.height)
            if not all(map(math.isfinite, sides)):
                return _EMPTY_CROP
            box = _box_from_fractions(sides, size)
        case PixelCrop():
            sides = (crop.x, crop.y, crop.width, crop.height)
            if not all(map(math.isfinite, sides)):
                return _EMPTY_CROP
            x, y, width, height = map(_round_half_up, sides)
            box = _box_between(x, y, x + width, y + height, size)
        case _:
            assert_never(crop)
    return box if box.width > 0 and box.height > 0 else _EMPTY_CROP


_EMPTY_CROP = Refusal("invalid_input", "the crop is outside the image", "give one that lies inside it")


def _box_from_fractions(sides: tuple[float, float, float, float], size: Size) -> Box:
    """Round corners, not widths, so that two halves of an image share no pixel and miss none."""
    x, y, width, height = sides
    return _box_between(x * size.width, y * size.height, (x + width) * size.width, (y + height) * size.height, size)


def _box_between(left: float, top: float, right: float, bottom: float, size: Size) -> Box:
    """Return the pixels between two corners. They are clamped first: a product may be infinite."""
    x, x2 = (_round_half_up(max(0, min(side, size.width))) for side in (left, right))
    y, y2 = (_round_half_up(max(0, min(side, size.height))) for side in (top, bottom))
    return Box(x, y, x2 - x, y2 - y)


def _round_half_up(value: float) -> int:
    """Round to the nearest whole number, and a half upwards; `round` would go to the even one."""
    return math.floor(value + 0.5)


def parse_crop_text(text: str) -> Crop | Refusal:
    """Parse a crop as a person writes it: r=NAME, n=X,Y,W,H (fractions) or p=X,Y,W,H (pixels)."""
    form, equals, rest = text.strip().partition("=")
    if form == "r" and equals:
        return NamedCrop(rest.strip()) if rest.strip() in REGIONS else _refuse_region(rest.strip())
    if form in ("n", "p") and equals:
        try:
            x, y, width, height = (float(number) for number in rest.split(","))
        except ValueError:
            return Refusal(
                "invalid_input", f"{text!r:.60} does not have four numbers", f"write {form}=X,Y,WIDTH,HEIGHT"
            )
        return FractionCrop(x, y, width, height) if form == "n" else PixelCrop(x, y, width, height)
    return Refusal("invalid_input", f"{text!r:.60} is not a crop", "write r=NAME, n=X,Y,W,H or p=X,Y,W,H")


def parse_crop(value: object) -> Crop | Refusal | None:
    """Parse a crop that a caller gave: a `Crop`, its text, an object with one key of `CROP_KEYS`, or None."""
    if value is None or isinstance(value, (NamedCrop, FractionCrop, PixelCrop)):
        return value
    if isinstance(value, str):
        return parse_crop_text(value)
    if not isinstance(value, Mapping):
        return _NOT_A_CROP
    given = [key for key in CROP_KEYS if value.get(key) is not None]
    if len(given) != 1 or set(value) - set(CROP_KEYS):
        return Refusal("invalid_input", "a crop has exactly one form", f"give one of {', '.join(CROP_KEYS)}")
    return _parse_form(given[0], value[given[0]])


def _parse_form(key: str, value: object) -> Crop | Refusal:
    if key == "region":
        return NamedCrop(value) if isinstance(value, str) and value in REGIONS else _refuse_region(value)
    if not isinstance(value, Mapping) or set(value) != set(CROP_SIDES) or not all(map(_is_number, value.values())):
        return _NOT_A_CROP
    sides = [float(value[side]) for side in CROP_SIDES]
    return FractionCrop(*sides) if key == "normalized" else PixelCrop(*sides)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9


_NOT_A_CROP = Refusal("invalid_input", "that is not a crop", "give x, y, width and height as numbers")


def format_crop(crop: Crop) -> dict[str, Any]:
    """Return the object that `parse_crop` parses."""
    if isinstance(crop, NamedCrop):
        return {"region": crop.name}
    sides = {side: getattr(crop, side) for side in CROP_SIDES}
    return {"normalized" if isinstance(crop, FractionCrop) else "pixels": sides}


def _refuse_region(name: object) -> Refusal:
    return Refusal("invalid_input", f"there is no region {name!r:.60}", f"use one of {', '.join(REGIONS)}")


def check_crop_box(box: Box, size: Size) -> Box | Refusal:
    """Return the box, or a refusal if it is empty or not completely inside the image."""
    fits = box.x >= 0 and box.y >= 0 and box.right <= size.width and box.bottom <= size.height
    if fits and box.width >= 1 and box.height >= 1:
        return box
    return Refusal("invalid_input", f"the crop {box} is not inside the image of {size}", "give one that is")
