"""The parts of an interface: buttons, fields, bars and panels by their shape, then check boxes and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sightline.model.geometry import Box
from sightline.seers.local.boxes import inside, places_in, union
from sightline.seers.local.colours import commonest, distance
from sightline.seers.local.phrases import pairs
from sightline.seers.local.pictures import pictures
from sightline.seers.local.regions import Pixels, Region, regions
from sightline.seers.local.seen import Colour, Line, Part, PartKind
from sightline.seers.local.toggles import CHECK, toggles

SEEN = 5  # two colours that differ by less in every channel are one to the eye
ROW = 3.8  # a control is at most so many times as high as its text
LOW, TALLEST = 52, 72  # in pixels: so high it may be in any case, and no higher
BEYOND = (3, 4)  # pixels outside: there a border has ended, and at one of them no neighbour's has begun
EMPTY = (16, 64)  # the height of a field with nothing in it
WHOLE = 0.85  # of the image is no panel, but what all stands on


@dataclass(frozen=True, slots=True)
class _Shape:
    """A region that looks like a rectangle, with its border in its box."""

    box: Box
    colour: Colour
    ground: Colour
    border: bool
    filled: float
    lines: tuple[int, ...]

    @property
    def stands_out(self) -> bool:
        return self.border or distance(self.colour, self.ground) >= SEEN


def parts(pixels: Pixels, lines: Sequence[Line], found: Sequence[Region] | None = None) -> tuple[Part, ...]:
    """The parts from the top down; `found` are the image's regions when they are known already."""
    known = regions(pixels) if found is None else found
    shapes = [shape for region in known if (shape := _shape(pixels, region, lines)) is not None]
    shapes = _without_rings(shapes)
    whole = Box(0, 0, pixels.shape[1], pixels.shape[0])
    kinds = ((shape, _kind(shape, shapes, lines, whole)) for shape in shapes)
    named = [Part(kind, shape.box, shape.colour, shape.lines) for shape, kind in kinds if kind is not None]
    named += [*toggles(pixels, lines), *pictures(pixels, lines)]
    page = WHOLE * whole.width * whole.height
    kept = [p for p in named if p.kind != "panel" or (_holds(p, named) and p.box.width * p.box.height < page)]
    return tuple(sorted(kept, key=lambda part: (part.box.y, part.box.x)))


def _shape(pixels: Pixels, region: Region, lines: Sequence[Line]) -> _Shape | None:
    box = region.box
    pill = box.width >= 1.8 * box.height and region.sides >= 0.3
    if min(box.width, box.height) < CHECK[0] or region.ends < 0.5 or not (region.sides >= 0.6 or pill):
        return None
    if any(inside(box, line.box, slack=1) for line in lines):  # the inside of a letter
        return None
    height, width = pixels.shape[:2]
    near, *far = (_around(pixels, box, away) for away in (1, *BEYOND))
    beyond = [colour for colours in far for colour in colours if colour]
    if not beyond:  # the image itself
        return None
    ground = commonest(np.array(beyond, dtype=np.uint8))
    edged = [
        distance(edge, region.colour) >= SEEN and distance(edge, ground) >= SEEN and not _goes_on(edge, further)
        for edge, *further in zip(near, *far, strict=True)
        if edge
    ]
    border = len(edged) >= 3 and sum(edged) >= len(edged) - 1
    if border:
        x, y = max(0, box.x - 1), max(0, box.y - 1)
        box = Box(x, y, min(width, box.right + 1) - x, min(height, box.bottom + 1) - y)
    return _Shape(box, region.colour, ground, border, region.filled, places_in(box, [line.box for line in lines]))


def _goes_on(edge: Colour, further: Iterable[Colour | None]) -> bool:
    """Whether all that is beyond an edge is of its colour: then it is no border. A neighbour may have the same one."""
    return all(colour is not None and distance(edge, colour) < SEEN for colour in further)


def _around(pixels: Pixels, box: Box, away: int) -> list[Colour | None]:
    """The colour in the middle of each side, so far outside; None where the image has ended."""
    x, y = box.x + box.width // 2, box.y + box.height // 2
    places = ((x, box.y - away), (x, box.bottom - 1 + away), (box.x - away, y), (box.right - 1 + away, y))
    height, width = pixels.shape[:2]
    return [
        (int(pixels[b, a, 0]), int(pixels[b, a, 1]), int(pixels[b, a, 2]))
        if 0 <= a < width and 0 <= b < height
        else None
        for a, b in places
    ]


def _without_rings(shapes: list[_Shape]) -> list[_Shape]:
    """A thick border is a region of its own around what it borders."""
    return [
        shape
        for shape in shapes
        if shape.filled >= 0.4
        or not any(
            other is not shape
            and inside(other.box, shape.box, slack=0)
            and other.box.width >= shape.box.width - 16
            and other.box.height >= shape.box.height - 16
            for other in shapes
        )
    ]


def _kind(shape: _Shape, shapes: Sequence[_Shape], lines: Sequence[Line], whole: Box) -> PartKind | None:
    box = shape.box
    if not shape.stands_out:
        return None
    if not shape.lines:
        empty = EMPTY[0] <= box.height <= EMPTY[1] and box.width >= 2.5 * box.height and shape.filled >= 0.85
        return "field" if empty and shape.border else _panel(box)
    held = [lines[place].box for place in shape.lines]
    tall = max(each.height for each in held)
    text = union(held)
    if _is_bar(shape, shapes, whole):
        return "bar"
    if text.height > 1.6 * tall or box.height > min(TALLEST, max(ROW * tall, LOW)):
        return _panel(box)
    kind = _control(shape, text, tall, one=_run_on(held, tall))
    stated = pairs(" ".join(lines[place].text for place in shape.lines))
    return _panel(box) if kind == "button" and stated else kind  # nobody presses labels and their values


def _control(shape: _Shape, text: Box, tall: int, *, one: bool) -> PartKind | None:
    """What holds one row of text: by where the text stands in it."""
    box = shape.box
    left, right = text.x - box.x, box.right - text.right
    if one and abs(left - right) <= max(8, 0.1 * box.width):
        return "button"
    if left <= 2.5 * tall + 8 and right >= left:
        return "field" if shape.border else _row(shape)
    # An icon or an arrow beside the text moves it off the middle.
    return "button" if one and right <= 3 * tall + 8 and box.width <= 12 * tall else _panel(box)


def _run_on(held: Sequence[Box], tall: int) -> bool:
    """Whether texts in a row follow each other as words do."""
    row = sorted(held, key=lambda box: box.x)
    return all(right.x - left.right <= tall for left, right in pairwise(row))


def _row(shape: _Shape) -> PartKind | None:
    """Text at the left of a plain strip: the mark of a chosen row, unless it is short enough for a button."""
    return "button" if shape.box.width <= 5 * shape.box.height else _panel(shape.box)


def _panel(box: Box) -> PartKind | None:
    return "panel" if box.width >= 60 and box.height >= 24 else None


def _is_bar(shape: _Shape, shapes: Sequence[_Shape], whole: Box) -> bool:
    """A strip over the whole width, or one that shares its sides with a taller neighbour above or below."""
    box = shape.box
    if box.height > 120 or box.width < 3 * box.height:
        return False
    if box.width >= 0.97 * whole.width:
        return box.height <= 0.3 * whole.height
    return any(
        other.box.height >= 2 * box.height
        and abs(other.box.x - box.x) <= 3
        and abs(other.box.right - box.right) <= 3
        and (abs(other.box.y - box.bottom) <= 3 or abs(box.y - other.box.bottom) <= 3)
        for other in shapes
    )


def _holds(panel: Part, named: Sequence[Part]) -> bool:
    """A panel is worth a word when something stands on it."""
    return bool(panel.lines) or any(other is not panel and inside(other.box, panel.box) for other in named)


def outside(found: Iterable[Part], boxes: Sequence[Box]) -> tuple[Part, ...]:
    """The parts that do not stand in any of some boxes: bars of a chart are no buttons."""
    return tuple(part for part in found if not any(_mostly(part.box, box) for box in boxes))


def _mostly(inner: Box, outer: Box) -> bool:
    wide = min(inner.right, outer.right) - max(inner.x, outer.x)
    high = min(inner.bottom, outer.bottom) - max(inner.y, outer.y)
    return wide > 0 and high > 0 and wide * high >= 0.8 * inner.width * inner.height


def moved(part: Part, places: dict[int, int]) -> Part:
    """The same part after the lines were put into another order."""
    return replace(part, lines=tuple(sorted(places[place] for place in part.lines)))
