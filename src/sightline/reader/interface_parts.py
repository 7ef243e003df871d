"""Find buttons, fields, bars and panels by shape, and pictures by their unevenness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.colours import compare_colours, crop_pixels, find_common_colour
from sightline.reader.phrases import split_pairs
from sightline.reader.reading import Colour, InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import are_level, enclose_boxes, find_indexes_inside, is_inside
from sightline.reader.regions import EVEN, ColourRegion, Segments, segment_image
from sightline.reader.toggles import find_toggles

DISTINCT = 5  # two colours that differ by less in every channel look the same
MAX_ROW = 3.8  # a control is at most this many times as high as its text
LOW_HEIGHT, MAX_HEIGHT = 52, 72  # pixels: a control may always have the first height, and never more than the second
BEYOND = (3, 4)  # pixels outside a shape: beyond its border, and at one of them before a neighbour's
EMPTY_HEIGHTS = (16, 64)  # pixels: the height of an empty field, from and to
PAGE_SHARE = 0.85  # share of the image: a larger panel is the background
BLOCK = 16  # pixels: the unit in which pictures are searched for
PICTURE = 64  # pixels: the smallest side of a picture

TOUCH = 3  # pixels between pieces of a stack
SMALLEST = 9  # pixels: the smallest side of a part


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
    def is_distinct(self) -> bool:
        return self.border or compare_colours(self.colour, self.ground) >= DISTINCT


def find_parts(
    pixels: Pixels, lines: Sequence[TextLine], segments: Segments | None = None
) -> tuple[InterfacePart, ...]:
    """Return the parts from top to bottom; `segments` are the image's if they are known already."""
    known = segments or segment_image(pixels)
    shapes = [shape for region in known.regions if (shape := _make_shape(pixels, region, lines)) is not None]
    shapes = _remove_rings(shapes)
    whole = Box(0, 0, pixels.shape[1], pixels.shape[0])
    kinds = ((shape, _classify(shape, shapes, lines, whole)) for shape in shapes)
    named = [InterfacePart(kind, shape.box, shape.colour, shape.lines) for shape, kind in kinds if kind is not None]
    named += [*find_toggles(pixels, lines, known.shapes), *find_pictures(pixels, lines)]
    page = PAGE_SHARE * whole.width * whole.height
    kept = [p for p in named if p.kind != "panel" or (_has_content(p, named) and p.box.width * p.box.height < page)]
    return tuple(sorted(kept, key=lambda part: (part.box.y, part.box.x)))


def _make_shape(pixels: Pixels, region: ColourRegion, lines: Sequence[TextLine]) -> _Shape | None:
    box = region.box
    pill = box.width >= 1.8 * box.height and region.sides >= 0.3
    if min(box.width, box.height) < SMALLEST or region.ends < 0.5 or not (region.sides >= 0.6 or pill):
        return None
    if any(is_inside(box, line.box, slack=1) for line in lines):  # the inside of a letter
        return None
    height, width = pixels.shape[:2]
    near, *far = (_sample_colours_around(pixels, box, away) for away in (1, *BEYOND))
    beyond = [colour for colours in far for colour in colours if colour]
    if not beyond:  # the image itself
        return None
    ground = find_common_colour(np.array(beyond, dtype=np.uint8))
    edged = [
        compare_colours(edge, region.colour) >= DISTINCT
        and compare_colours(edge, ground) >= DISTINCT
        and not _is_continued_outside(edge, further)
        for edge, *further in zip(near, *far, strict=True)
        if edge
    ]
    border = len(edged) >= 3 and sum(edged) >= len(edged) - 1
    if border:
        x, y = max(0, box.x - 1), max(0, box.y - 1)
        box = Box(x, y, min(width, box.right + 1) - x, min(height, box.bottom + 1) - y)
    return _Shape(
        box, region.colour, ground, border, region.fill_share, find_indexes_inside(box, [line.box for line in lines])
    )


def _is_continued_outside(edge: Colour, further: Iterable[Colour | None]) -> bool:
    """Return whether everything beyond an edge has its colour: then it is no border."""
    return all(colour is not None and compare_colours(edge, colour) < DISTINCT for colour in further)


def _sample_colours_around(pixels: Pixels, box: Box, away: int) -> list[Colour | None]:
    """Return the colour at the middle of each side, `away` pixels outside; None beyond the image."""
    x, y = box.x + box.width // 2, box.y + box.height // 2
    places = ((x, box.y - away), (x, box.bottom - 1 + away), (box.x - away, y), (box.right - 1 + away, y))
    height, width = pixels.shape[:2]
    return [
        (int(pixels[b, a, 0]), int(pixels[b, a, 1]), int(pixels[b, a, 2]))
        if 0 <= a < width and 0 <= b < height
        else None
        for a, b in places
    ]


def _remove_rings(shapes: list[_Shape]) -> list[_Shape]:
    """Remove thick borders, which are regions of their own around what they border."""
    return [
        shape
        for shape in shapes
        if shape.filled >= 0.4
        or not any(
            other is not shape
            and is_inside(other.box, shape.box, slack=0)
            and other.box.width >= shape.box.width - 16
            and other.box.height >= shape.box.height - 16
            for other in shapes
        )
    ]


def _classify(shape: _Shape, shapes: Sequence[_Shape], lines: Sequence[TextLine], whole: Box) -> PartKind | None:
    box = shape.box
    if not shape.is_distinct:
        return None
    if not shape.lines:
        empty = (
            EMPTY_HEIGHTS[0] <= box.height <= EMPTY_HEIGHTS[1]
            and box.width >= 2.5 * box.height
            and shape.filled >= 0.85
        )
        alike = any(other.lines and _is_alike(other.box, box) for other in shapes)
        field = empty and shape.border and _is_free(shape, shapes, whole) and (alike or _has_label(box, lines))
        return "field" if field else _classify_panel(box)
    line_boxes = [lines[place].box for place in shape.lines]
    tall = max(each.height for each in line_boxes)
    text = enclose_boxes(line_boxes)
    if _is_bar(shape, shapes, whole):
        return "bar"
    if text.height > 1.6 * tall or box.height > min(MAX_HEIGHT, max(MAX_ROW * tall, LOW_HEIGHT)):
        return _classify_panel(box)
    kind = _classify_control(shape, text, tall, one=_is_one_run(line_boxes, tall))
    if kind == "field" and not _is_free(shape, shapes, whole):
        return _classify_panel(box)
    stated = split_pairs(" ".join(lines[place].text for place in shape.lines))
    return _classify_panel(box) if kind == "button" and stated else kind  # labels with values are not a button


def _classify_control(shape: _Shape, text: Box, tall: int, *, one: bool) -> PartKind | None:
    """Classify a shape with one row of text by where the text is in it."""
    box = shape.box
    left, right = text.x - box.x, box.right - text.right
    if one and abs(left - right) <= max(8, 0.1 * box.width):
        return "button"
    if left <= 2.5 * tall + 8 and right >= left:
        return "field" if shape.border else _classify_strip(shape)
    # An icon or an arrow beside the text moves it off the middle.
    return "button" if one and right <= 3 * tall + 8 and box.width <= 12 * tall else _classify_panel(box)


def _is_free(shape: _Shape, shapes: Sequence[_Shape], whole: Box) -> bool:
    """Return whether a shape is whole, and no piece of a stack: a card's head, or a row of a list."""
    box = shape.box
    if box.x <= 1 or box.y <= 1 or box.right >= whole.width - 1 or box.bottom >= whole.height - 1:
        return False
    return not any(
        other is not shape
        and abs(other.box.x - box.x) <= TOUCH
        and abs(other.box.right - box.right) <= TOUCH
        and (abs(other.box.y - box.bottom) <= TOUCH or abs(box.y - other.box.bottom) <= TOUCH)
        for other in shapes
    )


def _is_alike(one: Box, other: Box) -> bool:
    """Return whether two boxes have the same size and begin in the same column."""
    return max(abs(one.x - other.x), abs(one.width - other.width), abs(one.height - other.height)) <= TOUCH


def _has_label(box: Box, lines: Sequence[TextLine]) -> bool:
    """Return whether a text is directly above an empty field, or before it."""
    for line in lines:
        above = 0 <= box.y - line.box.bottom <= 2 * line.box.height and abs(line.box.x - box.x) <= 2 * line.box.height
        before = 0 <= box.x - line.box.right <= 12 * line.box.height and are_level(line.box, box)
        if above or before:
            return True
    return False


def _is_one_run(held: Sequence[Box], tall: int) -> bool:
    """Return whether texts in a row follow each other as words do."""
    row = sorted(held, key=lambda box: box.x)
    return all(right.x - left.right <= tall for left, right in pairwise(row))


def _classify_strip(shape: _Shape) -> PartKind | None:
    """Classify text at the left of a plain strip: a selected row, unless it is short enough for a button."""
    return "button" if shape.box.width <= 5 * shape.box.height else _classify_panel(shape.box)


def _classify_panel(box: Box) -> PartKind | None:
    return "panel" if box.width >= 60 and box.height >= 24 else None


def _is_bar(shape: _Shape, shapes: Sequence[_Shape], whole: Box) -> bool:
    """Return whether a shape is a strip over the whole width, or has the same sides as a taller neighbour."""
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


def _has_content(panel: InterfacePart, named: Sequence[InterfacePart]) -> bool:
    """Return whether something is on a panel; an empty one is not worth reporting."""
    return bool(panel.lines) or any(other is not panel and is_inside(other.box, panel.box) for other in named)


def select_parts_outside(found: Iterable[InterfacePart], boxes: Sequence[Box]) -> tuple[InterfacePart, ...]:
    """Return the parts outside some boxes: bars of a chart are not buttons."""
    return tuple(part for part in found if not any(_is_mostly_inside(part.box, box) for box in boxes))


def _is_mostly_inside(inner: Box, outer: Box) -> bool:
    wide = min(inner.right, outer.right) - max(inner.x, outer.x)
    high = min(inner.bottom, outer.bottom) - max(inner.y, outer.y)
    return wide > 0 and high > 0 and wide * high >= 0.8 * inner.width * inner.height


def renumber_lines(part: InterfacePart, places: dict[int, int]) -> InterfacePart:
    """Return the same part after the lines were reordered."""
    return replace(part, lines=tuple(sorted(places[place] for place in part.lines)))


def find_pictures(pixels: Pixels, lines: Sequence[TextLine]) -> list[InterfacePart]:
    """Find areas without text where few neighbouring pixels are alike."""
    down, across = pixels.shape[0] // BLOCK, pixels.shape[1] // BLOCK
    if min(down, across) < PICTURE // BLOCK:
        return []
    part = pixels[: down * BLOCK, : across * BLOCK]
    step = np.zeros(part.shape[:2], dtype=bool)
    step[:, 1:] = (np.maximum(part[:, 1:], part[:, :-1]) - np.minimum(part[:, 1:], part[:, :-1]) > EVEN).any(axis=2)
    busy = step.reshape(down, BLOCK, across, BLOCK).mean(axis=(1, 3)) > 0.5
    for line in lines:
        box = line.box
        busy[box.y // BLOCK : -(-box.bottom // BLOCK), box.x // BLOCK : -(-box.right // BLOCK)] = False
    found = []
    for box in _cluster_cells(busy):
        wide = Box(box.x * BLOCK, box.y * BLOCK, box.width * BLOCK, box.height * BLOCK)
        if min(wide.width, wide.height) >= PICTURE:
            colour = find_common_colour(crop_pixels(pixels, wide).reshape(-1, 3)[::7])
            found.append(
                InterfacePart(
                    "picture", _tighten(step, wide), colour, find_indexes_inside(wide, [line.box for line in lines])
                )
            )
    return found


def _cluster_cells(busy: NDArray[np.bool_]) -> list[Box]:
    """Return boxes around touching cells, where those fill most of the box."""
    left = {(int(y), int(x)) for y, x in np.argwhere(busy)}
    found = []
    while left:
        group, edge = [], [left.pop()]
        while edge:
            y, x = edge.pop()
            group.append((y, x))
            near = {(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)} & left
            left -= near
            edge += near
        ys, xs = [y for y, _ in group], [x for _, x in group]
        box = Box(min(xs), min(ys), max(xs) - min(xs) + 1, max(ys) - min(ys) + 1)
        if len(group) >= 0.6 * box.width * box.height:
            found.append(box)
    return found


def _tighten(step: NDArray[np.bool_], box: Box) -> Box:
    """Trim or extend a picture to the last uneven row and column: a block is coarse."""
    x0, y0 = max(0, box.x - BLOCK), max(0, box.y - BLOCK)
    around = step[y0 : box.bottom + BLOCK, x0 : box.right + BLOCK]
    rows = np.flatnonzero(around.mean(axis=1) > 0.3)
    columns = np.flatnonzero(around.mean(axis=0) > 0.3)
    if not len(rows) or not len(columns):
        return box
    return Box(x0 + int(columns[0]), y0 + int(rows[0]), int(columns[-1] - columns[0]) + 1, int(rows[-1] - rows[0]) + 1)
