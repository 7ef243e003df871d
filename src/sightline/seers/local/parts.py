"""The parts of an interface that their shape tells: buttons, fields, check boxes, bars, panels, pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.seers.local.boxes import inside, union
from sightline.seers.local.colours import apart, commonest, cut, distance
from sightline.seers.local.regions import EVEN, Pixels, Region, regions
from sightline.seers.local.seen import Colour, Line, Part, PartKind
from sightline.seers.local.titles import letter_size

SEEN = 5  # two colours that differ by less in every channel are one to the eye
BLOCK = 16  # pixels, by which pictures are looked for
PICTURE = 64  # pixels, its least side
ROW = 3.8  # a control is at most so many times as high as its text
LOW, TALLEST = 52, 72  # in pixels: so high it may be in any case, and no higher
BEYOND = (3, 4)  # pixels outside: there a border has ended, and at one of them no neighbour's has begun
EMPTY = (16, 64)  # the height of a field with nothing in it
CHECK = (9, 30)  # the side of a check box
WHOLE = 0.85  # of the image is no panel, but what all stands on
MARK = 0.05  # of its pixels are the tick
DOT, EMPTIED = 0.3, 0.33  # of the width of a circle: less is the radius of a dot in it, more what is empty
PALE = 60  # what the channels of a colour differ by at most, where a circle is empty
TALLER, CAPITAL = 1.15, 0.74  # a circle is so much higher than a capital, which is so much of the size of a letter


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
    named += [*toggles(pixels, lines), *_pictures(pixels, lines)]
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
    return _Shape(box, region.colour, ground, border, region.filled, _within(box, lines))


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


def _within(box: Box, lines: Sequence[Line]) -> tuple[int, ...]:
    return tuple(place for place, line in enumerate(lines) if inside(line.box, box))


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
    return _control(shape, text, tall, one=_run_on(held, tall))


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


def toggles(pixels: Pixels, lines: Sequence[Line]) -> list[Part]:
    """Small squares and circles right before a line. They are too small for regions: each place is looked at alone."""
    found = ((place, _toggle(pixels, line)) for place, line in enumerate(lines) if not _is_glyph(line))
    texts = [line for line in lines if not _is_glyph(line)]
    return [
        replace(part, lines=(place,))
        for place, part in found
        if part and not any(inside(part.box, line.box, slack=1) for line in texts)
    ]


def without_glyphs(lines: Sequence[Line], marks: Sequence[Part]) -> list[Line]:
    """The lines but for those that are such a mark, read as a letter."""
    return [line for line in lines if not (_is_glyph(line) and any(inside(line.box, mark.box) for mark in marks))]


def _is_glyph(line: Line) -> bool:
    """A single letter as wide as high may be a circle or a square."""
    width, height = line.box.width, line.box.height
    return len(line.text) == 1 and min(width, height) >= CHECK[0] - 2 and abs(width - height) <= 0.25 * height


def _toggle(pixels: Pixels, line: Line) -> Part | None:
    box = line.box
    reach = 2 * CHECK[1]
    place = Box(box.x - 2 - reach, box.y + box.height // 2 - CHECK[1] // 2 - 3, reach, CHECK[1] + 6)
    left, top = max(0, place.x), max(0, place.y)
    around = pixels[top : place.bottom, left : max(0, place.right)]
    if around.shape[0] < CHECK[0] or around.shape[1] < CHECK[0]:
        return None
    ground = commonest(around.reshape(-1, 3))
    inked = apart(around, ground) > 24
    columns = _last_run(np.any(inked, axis=0))
    rows = _last_run(np.any(inked[:, columns.start : columns.stop], axis=1))
    square = Box(left + columns.start, top + rows.start, len(columns), len(rows))
    side = max(len(columns), len(rows))
    if not (CHECK[0] <= side <= CHECK[1] and abs(len(columns) - len(rows)) <= 0.15 * side):
        return None
    drawn = inked[rows.start : rows.stop, columns.start : columns.stop]
    if _round(drawn):
        return _chosen(pixels, square) if side >= TALLER * CAPITAL * letter_size(line) else None
    return _ticked(pixels, square, ground) if _edged(drawn) else None


def _last_run(any_: NDArray[np.bool_]) -> range:
    """The last stretch of those that hold."""
    places = np.flatnonzero(any_)
    if not len(places):
        return range(0)
    breaks = np.flatnonzero(np.diff(places) > 1)
    return range(int(places[breaks[-1] + 1] if len(breaks) else places[0]), int(places[-1]) + 1)


def _edged(inked: NDArray[np.bool_]) -> bool:
    """Whether the four sides are drawn, their corners aside."""
    sides = (inked[0, 2:-2], inked[-1, 2:-2], inked[2:-2, 0], inked[2:-2, -1])
    return all(side.mean() >= 0.85 for side in sides)


def _round(inked: NDArray[np.bool_]) -> bool:
    """Whether a circle is drawn: ink all along it, and none in the corners."""
    side = len(inked)
    corner = side // 7
    corners = [inked[y, x] for y in (corner // 2, -1 - corner // 2) for x in (corner // 2, -1 - corner // 2)]
    if any(corners):
        return False
    angle = np.linspace(0, 2 * np.pi, 32, endpoint=False)
    along = np.zeros(len(angle), dtype=bool)
    for inward in (0.5, 1.5, 2.5):  # a thin line, drawn softly, is not on every pixel of its way
        y = np.clip(len(inked) / 2 + (len(inked) / 2 - inward) * np.sin(angle), 0, len(inked) - 1).astype(int)
        x = np.clip(len(inked[0]) / 2 + (len(inked[0]) / 2 - inward) * np.cos(angle), 0, len(inked[0]) - 1).astype(int)
        along |= inked[y, x]
    return bool(along.mean() >= 0.9)


def _chosen(pixels: Pixels, circle: Box) -> Part:
    """By how far its middle reaches: that of an empty circle to the ring, a dot not as far, that of a disc all over."""
    across = pixels[circle.y + circle.height // 2, circle.x : circle.right]
    middle = commonest(cut(pixels, circle, more=-int(0.42 * circle.width)).reshape(-1, 3))
    other = np.flatnonzero(apart(across[None, : len(across) // 2], middle)[0] > 60)
    reach = 0.5 - (int(other[-1]) + 1 if len(other) else 0) / len(across)
    empty = EMPTIED < reach < 0.5 and max(middle) - min(middle) < PALE
    return Part("radio", circle, middle, (), checked=True if reach < DOT else False if empty else None)


def _ticked(pixels: Pixels, square: Box, ground: Colour) -> Part | None:
    """A box with a mark in it is ticked, an empty one with a border is not, a plain patch of colour is no box."""
    inner = cut(pixels, square, more=-2).reshape(-1, 3)
    fill = commonest(inner)
    marked = float((apart(inner, fill) > 60).mean())
    if marked >= MARK:
        return Part("check", square, fill, (), checked=True)
    border = commonest(pixels[square.y : square.y + 1, square.x + 2 : square.right - 2].reshape(-1, 3))
    empty = marked == 0 and distance(border, fill) >= 16 and distance(border, ground) >= 16
    return Part("check", square, fill, (), checked=False) if empty else None


def _holds(panel: Part, named: Sequence[Part]) -> bool:
    """A panel is worth a word when something stands on it."""
    return bool(panel.lines) or any(other is not panel and inside(other.box, panel.box) for other in named)


def _pictures(pixels: Pixels, lines: Sequence[Line]) -> list[Part]:
    """Places where hardly two neighbours are alike and no text stands."""
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
    for box in _clusters(busy):
        wide = Box(box.x * BLOCK, box.y * BLOCK, box.width * BLOCK, box.height * BLOCK)
        if min(wide.width, wide.height) >= PICTURE:
            colour = commonest(cut(pixels, wide).reshape(-1, 3)[::7])
            found.append(Part("picture", _tight(step, wide), colour, _within(wide, lines)))
    return found


def _clusters(busy: NDArray[np.bool_]) -> list[Box]:
    """Boxes around the touching cells, where they fill most of their box."""
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


def _tight(step: NDArray[np.bool_], box: Box) -> Box:
    """A block is coarse: the picture ends where the last uneven row or column does."""
    x0, y0 = max(0, box.x - BLOCK), max(0, box.y - BLOCK)
    around = step[y0 : box.bottom + BLOCK, x0 : box.right + BLOCK]
    rows = np.flatnonzero(around.mean(axis=1) > 0.3)
    columns = np.flatnonzero(around.mean(axis=0) > 0.3)
    if not len(rows) or not len(columns):
        return box
    return Box(x0 + int(columns[0]), y0 + int(rows[0]), int(columns[-1] - columns[0]) + 1, int(rows[-1] - rows[0]) + 1)


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
