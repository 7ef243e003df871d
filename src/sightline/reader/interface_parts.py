"""Find buttons, fields, bars and panels by shape, and pictures by their unevenness."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.colours import compare_colours, crop_pixels, find_common_colour, measure_distances
from sightline.reader.controls import choose_sure, judge_control, score_controls
from sightline.reader.page_text import measure_letter_size
from sightline.reader.phrases import split_pairs
from sightline.reader.reading import Colour, InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import are_level, enclose_boxes, find_indexes_inside, is_inside
from sightline.reader.regions import EVEN, ColourRegion, Segments, segment_image
from sightline.reader.toggles import find_toggles, label_toggles

DISTINCT = 5  # two colours that differ by less in every channel look the same
MAX_ROW = 3.6  # a control is at most this many times as high as the letter size of its text
LOW_HEIGHT, MAX_HEIGHT = 52, 104  # pixels: a control may always have the first height, and never more than the second
MAX_FIELD, FIELD_HEIGHT = 3.7, 46  # the same for fields: what is higher is the head of a card
BADGE = 2.05  # a button is this many times as high as the letter size, unless its border is strong; a badge is not
STRONG = 60  # difference of colours between a border or a text and its background
PALE, STRIP = 120, 160  # the same, at most, of the text in an empty field, and in one that has no border
TINTED = 70  # difference between the channels of a colour that is no shade of grey
ICON = 3.5  # heights of a line: how far an icon in a button may reach beyond its text
LABEL = re.compile(r"[^\W\d]:\s?\w")  # a label and its value: "Type: string"
LONG = 34  # characters: what is longer is no button
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
    edge: int  # how much its border differs from it
    filled: float
    lines: tuple[int, ...]

    @property
    def is_distinct(self) -> bool:
        return self.border or compare_colours(self.colour, self.ground) >= DISTINCT


def find_parts(
    pixels: Pixels,
    lines: Sequence[TextLine],
    segments: Segments | None = None,
    toggles: Sequence[InterfacePart] | None = None,
) -> tuple[InterfacePart, ...]:
    """Return the parts from top to bottom; `segments` and `toggles` are the image's if they are known already."""
    known = segments or segment_image(pixels)
    switches = find_toggles(pixels, lines, known) if toggles is None else label_toggles(toggles, lines)
    scored = score_controls(pixels, lines, known)
    shapes = [shape for region in known.regions if (shape := _make_shape(pixels, region, lines)) is not None]
    shapes = _remove_rings(shapes)
    whole = Box(0, 0, pixels.shape[1], pixels.shape[0])
    kinds = ((shape, _classify(pixels, shape, shapes, lines)) for shape in shapes)
    named = [
        InterfacePart(judge_control(kind, shape.box, scored), shape.box, shape.colour, shape.lines)
        for shape, kind in kinds
        if kind is not None
    ]
    found = [part for part in named if part.kind in ("button", "field")]
    bars = [part.box for part in named if part.kind == "bar"]
    sure = choose_sure(scored, [*found, *switches], bars)
    learnt = [_make_control(pixels, kind, box, lines) for kind, box in sure]
    learnt = [part for part in learnt if part.kind != "button" or not _has_value(lines[at] for at in part.lines)]
    taken = {part.box for part in learnt}
    named = [part for part in named if part.box not in taken] + learnt
    named += [*switches, *find_pictures(pixels, lines)]
    page = PAGE_SHARE * whole.width * whole.height
    kept = [p for p in named if p.kind != "panel" or (_has_content(p, named) and p.box.width * p.box.height < page)]
    return tuple(sorted(kept, key=lambda part: (part.box.y, part.box.x)))


def _make_control(pixels: Pixels, kind: PartKind, box: Box, lines: Sequence[TextLine]) -> InterfacePart:
    fill = find_common_colour(crop_pixels(pixels, box, margin=-1).reshape(-1, 3))
    return InterfacePart(kind, box, fill, find_indexes_inside(box, [line.box for line in lines]))


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
    contrast = int(median(compare_colours(edge, region.colour) for edge in near if edge)) if border else 0
    if border:
        x, y = max(0, box.x - 1), max(0, box.y - 1)
        box = Box(x, y, min(width, box.right + 1) - x, min(height, box.bottom + 1) - y)
    return _Shape(
        box, region.colour, ground, border, contrast, region.fill_share,
        find_indexes_inside(box, [line.box for line in lines]),
    )  # fmt: skip


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


def _classify(pixels: Pixels, shape: _Shape, shapes: Sequence[_Shape], lines: Sequence[TextLine]) -> PartKind | None:
    box, whole = shape.box, Box(0, 0, pixels.shape[1], pixels.shape[0])
    if not shape.is_distinct:
        return None
    if not shape.lines:
        empty = _is_empty_field(pixels, shape, shapes, lines) and _is_free(shape, shapes, whole)
        return "field" if empty else _classify_panel(box)
    own = [lines[place] for place in shape.lines]
    size = max(measure_letter_size(line) for line in own)
    tall = max(line.box.height for line in own)
    if _is_bar(shape, shapes, whole):
        return "bar"
    high = box.height > min(MAX_HEIGHT, max(MAX_ROW * size, LOW_HEIGHT))
    if enclose_boxes(line.box for line in own).height > 1.6 * tall or high:
        return _classify_panel(box)
    kind = _classify_control(pixels, shape, own)
    head = box.height > max(MAX_FIELD * size, FIELD_HEIGHT) or _is_tinted(shape.colour)
    doubtful = (kind == "field" and (head or not _is_free(shape, shapes, whole))) or (
        kind == "button" and not _can_be_pressed(shape, own, size)
    )
    return _classify_panel(box) if doubtful else kind


def _is_empty_field(pixels: Pixels, shape: _Shape, shapes: Sequence[_Shape], lines: Sequence[TextLine]) -> bool:
    """Return whether a shape without text is a field: an even area with a border, like another one, or with a label."""
    box = shape.box
    slim = EMPTY_HEIGHTS[0] <= box.height <= EMPTY_HEIGHTS[1] and box.width >= 2.5 * box.height
    if not (slim and shape.border and shape.filled >= 0.85) or _is_tinted(shape.colour):
        return False
    left, right = _find_content(pixels, shape, box)
    middle = left < right and abs((left - box.x) - (box.right - right)) <= max(8, 0.1 * box.width)
    if middle and right - left > box.height:  # something is in the middle of it
        return False
    alike = any(other is not shape and other.border and _is_alike(other.box, box) for other in shapes)
    return alike or _has_label(box, lines)


def _is_tinted(colour: Colour) -> bool:
    return max(colour) - min(colour) > TINTED


def _find_content(pixels: Pixels, shape: _Shape, rows: Box) -> tuple[int, int]:
    """Return where something is drawn in a shape, at the height of some rows, as (left, right)."""
    box = shape.box
    inner = pixels[rows.y + 2 : rows.bottom - 2, box.x + 3 : box.right - 3]
    if not inner.size:
        return box.x, box.x
    drawn = np.flatnonzero((measure_distances(inner, shape.colour) > STRONG / 2).any(axis=0))
    return (box.x + 3 + int(drawn[0]), box.x + 4 + int(drawn[-1])) if len(drawn) else (box.x, box.x)


def _can_be_pressed(shape: _Shape, own: Sequence[TextLine], size: float) -> bool:
    """Return whether a shape with a text in its middle is a button: no badge, letter in a tile, or list of values."""
    text = " ".join(line.text for line in own)
    beside = min(line.box.x for line in own) - shape.box.x
    small = shape.box.height < BADGE * size and beside < BADGE * size and shape.edge < STRONG
    letter = len(text) == 1 and text.isalpha()
    return not (small or letter or len(text) > LONG or _has_value(own))


def _has_value(own: Iterable[TextLine]) -> bool:
    """Return whether a text has a label and its value, or several: that is no name of a button."""
    text = " ".join(line.text for line in own)
    return bool(split_pairs(text) or LABEL.search(text))


def _classify_control(pixels: Pixels, shape: _Shape, own: Sequence[TextLine]) -> PartKind | None:
    """Classify a shape with one row of text by where the text, and an icon beside it, is in it."""
    box, text = shape.box, enclose_boxes(line.box for line in own)
    tall = max(line.box.height for line in own)
    one = _is_one_run([line.box for line in own], tall)
    left, right = text.x - box.x, box.right - text.right
    first, last = _find_content(pixels, shape, text)  # an icon or an arrow beside the text moves it off the middle
    centred = abs((first - box.x) - (box.right - last)) <= max(8, 0.1 * box.width)
    beside = text.x - first <= ICON * tall and last - text.right <= ICON * tall
    starts = left <= 2.5 * tall + 8 and right >= left
    alone = one and first >= text.x - 2 and shape.border and left <= 2 * tall and box.width >= 2.5 * box.height
    if alone and _is_pale(shape, own, PALE):
        kind: PartKind | None = "field"
    elif one and (abs(left - right) <= max(8, 0.1 * box.width) or (centred and beside)):
        kind = "button"
    elif starts and shape.border:
        kind = "field" if one else _classify_panel(box)
    elif starts:
        kind = _classify_strip(shape, own)
    else:
        kind = "button" if one and right <= 3 * tall + 8 and box.width <= 12 * tall else _classify_panel(box)
    return kind


def _is_pale(shape: _Shape, own: Sequence[TextLine], most: int) -> bool:
    """Return whether the text of a grey shape is grey and near to its colour, as in a field that is empty."""
    return not _is_tinted(shape.colour) and all(
        line.ink is not None and line.ground is not None and not _is_tinted(line.ink)
        and 0 < compare_colours(line.ink, line.ground) <= most
        for line in own
    )  # fmt: skip


def _is_free(shape: _Shape, shapes: Sequence[_Shape], whole: Box) -> bool:
    """Return whether a shape is whole, and no piece of a stack: a card's head, or a row of a list."""
    box = shape.box
    if box.x <= 1 or box.y <= 1 or box.right >= whole.width - 1 or box.bottom >= whole.height - 1:
        return False
    return not any(
        other is not shape
        and (
            _is_stacked(box, other.box)
            or (_is_next(box, other.box) and _have_one_look(shape, other) and not _is_icon_button(other))
        )
        for other in shapes
    )


def _is_stacked(box: Box, other: Box) -> bool:
    """Return whether two boxes touch, one above the other, and the narrower one is within the other's width."""
    near = abs(other.y - box.bottom) <= TOUCH or abs(box.y - other.bottom) <= TOUCH
    left, right = max(box.x, other.x), min(box.right, other.right)
    return near and right - left >= min(box.width, other.width) - TOUCH


def _is_next(box: Box, other: Box) -> bool:
    """Return whether two boxes of one height touch, side by side."""
    level = abs(other.y - box.y) <= TOUCH and abs(other.bottom - box.bottom) <= TOUCH
    return level and (abs(other.x - box.right) <= TOUCH or abs(box.x - other.right) <= TOUCH)


def _is_icon_button(shape: _Shape) -> bool:
    """Return whether a shape may be a button with an icon at the end of a field."""
    return not shape.lines and shape.box.width <= 1.6 * shape.box.height


def _have_one_look(one: _Shape, other: _Shape) -> bool:
    return one.border == other.border and compare_colours(one.colour, other.colour) < DISTINCT


def _is_alike(one: Box, other: Box) -> bool:
    """Return whether two boxes have the same size and begin in the same column or row."""
    size = max(abs(one.width - other.width), abs(one.height - other.height))
    return max(size, min(abs(one.x - other.x), abs(one.y - other.y))) <= TOUCH


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


def _classify_strip(shape: _Shape, own: Sequence[TextLine]) -> PartKind | None:
    """Classify text at the left of a plain strip: a button if it is short, a field if its text is pale, or a row."""
    box = shape.box
    if box.width <= 5 * box.height:
        return "button"
    pale = len(own) == 1 and _is_pale(shape, own, STRIP)
    return "field" if pale and box.height >= BADGE * measure_letter_size(own[0]) else _classify_panel(box)


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
    for plane in np.moveaxis(part, 2, 0):  # a plane at a time: numpy is slow on triples
        step[:, 1:] |= np.maximum(plane[:, 1:], plane[:, :-1]) - np.minimum(plane[:, 1:], plane[:, :-1]) > EVEN
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
