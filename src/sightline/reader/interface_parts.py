"""Find buttons, fields, bars and panels by shape, and pictures by their unevenness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.colours import add_colours, compare_colours, crop_pixels, find_common_colour
from sightline.reader.control_features import Ints, list_lines, measure_controls, propose_controls
from sightline.reader.control_model import load_trees
from sightline.reader.reading import Colour, InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import contains_centre, find_indexes_inside, is_inside
from sightline.reader.regions import EVEN, ColourRegion, Segments, segment_image
from sightline.reader.toggles import find_toggles, label_toggles

DISTINCT = 5  # two colours that differ by less in every channel look the same
BEYOND = (3, 4)  # pixels outside a shape: beyond its border, and at one of them before a neighbour's
PAGE_SHARE = 0.85  # share of the image: a larger panel is the background
BLOCK = 16  # pixels: the unit in which pictures are searched for
PICTURE = 64  # pixels: the smallest side of a picture
SMALLEST = 9  # pixels: the smallest side of a part
CONTROLS: tuple[Literal["button", "field"], ...] = ("button", "field")


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
    pixels: Pixels,
    lines: Sequence[TextLine],
    segments: Segments | None = None,
    toggles: Sequence[InterfacePart] | None = None,
) -> tuple[InterfacePart, ...]:
    """Return the parts from top to bottom; `segments` and `toggles` are the image's if they are known already."""
    known = segments or segment_image(pixels)
    switches = find_toggles(pixels, lines, known) if toggles is None else toggles
    controls = _find_controls(pixels, lines, known, [part.box for part in switches])
    shapes = [shape for region in known.regions if (shape := _make_shape(pixels, region, lines)) is not None]
    taken = [part.box for part in controls]
    whole = Box(0, 0, pixels.shape[1], pixels.shape[0])
    free = (shape for shape in _remove_rings(shapes) if not any(_is_one_place(shape.box, box) for box in taken))
    kinds = ((shape, _classify(shape, shapes, whole)) for shape in free)
    named = [InterfacePart(kind, shape.box, shape.colour, shape.lines) for shape, kind in kinds if kind is not None]
    named += [*controls, *label_toggles(switches, lines), *find_pictures(pixels, lines)]
    page = PAGE_SHARE * whole.width * whole.height
    kept = [p for p in named if p.kind != "panel" or (_has_content(p, named) and p.box.width * p.box.height < page)]
    return tuple(sorted(kept, key=lambda part: (part.box.y, part.box.x)))


def _find_controls(
    pixels: Pixels, lines: Sequence[TextLine], segments: Segments, toggles: Sequence[Box]
) -> list[InterfacePart]:
    """Return the buttons and fields, of several boxes around one control that with the best score."""
    page = list_lines(lines if all(line.ink for line in lines) else add_colours(pixels, lines))
    boxes, shapes = propose_controls(segments, page, (pixels.shape[1], pixels.shape[0]))
    if not len(boxes):
        return []
    rows = measure_controls(pixels, boxes, shapes, page)
    found: list[tuple[float, PartKind, Box]] = []
    for question in CONTROLS:
        model = load_trees(question)
        scores = model.score(rows) - model.limit
        found += [(float(scores[at]), question, _to_box(boxes[at])) for at in np.flatnonzero(scores >= 0)]
    kept: list[tuple[PartKind, Box]] = []
    for _, kind, box in sorted(found, key=lambda each: -each[0]):
        if not any(_share_place(box, other) for other in (*toggles, *(each for _, each in kept))):
            kept.append((kind, box))
    return [_make_control(pixels, kind, box, lines) for kind, box in kept]


def _share_place(one: Box, other: Box) -> bool:
    """Return whether two boxes cannot both be controls: one has the centre of the other."""
    return contains_centre(one, other) or contains_centre(other, one)


def _is_one_place(one: Box, other: Box) -> bool:
    """Return whether two boxes differ by a border at most."""
    return is_inside(one, other, slack=4) and is_inside(other, one, slack=4)


def _make_control(pixels: Pixels, kind: PartKind, box: Box, lines: Sequence[TextLine]) -> InterfacePart:
    """Return a control with its border in its box."""
    fill = find_common_colour(crop_pixels(pixels, box, margin=-1).reshape(-1, 3))
    whole = _add_border(pixels, box, fill)[0]
    return InterfacePart(kind, whole, fill, find_indexes_inside(whole, [line.box for line in lines]))


def _to_box(edges: Ints) -> Box:
    left, top, right, bottom = map(int, edges)
    return Box(left, top, right - left, bottom - top)


def _make_shape(pixels: Pixels, region: ColourRegion, lines: Sequence[TextLine]) -> _Shape | None:
    box = region.box
    pill = box.width >= 1.8 * box.height and region.sides >= 0.3
    if min(box.width, box.height) < SMALLEST or region.ends < 0.5 or not (region.sides >= 0.6 or pill):
        return None
    if any(is_inside(box, line.box, slack=1) for line in lines):  # the inside of a letter
        return None
    whole, ground, border = _add_border(pixels, box, region.colour)
    if ground is None:  # the image itself
        return None
    return _Shape(
        whole,
        region.colour,
        ground,
        border,
        region.fill_share,
        find_indexes_inside(whole, [line.box for line in lines]),
    )


def _add_border(pixels: Pixels, box: Box, colour: Colour) -> tuple[Box, Colour | None, bool]:
    """Return a box with its border, the colour of its background, and whether there is a border."""
    height, width = pixels.shape[:2]
    near, *far = (_sample_colours_around(pixels, box, away) for away in (1, *BEYOND))
    beyond = [each for colours in far for each in colours if each]
    if not beyond:
        return box, None, False
    ground = find_common_colour(np.array(beyond, dtype=np.uint8))
    edged = [
        compare_colours(edge, colour) >= DISTINCT
        and compare_colours(edge, ground) >= DISTINCT
        and not _is_continued_outside(edge, further)
        for edge, *further in zip(near, *far, strict=True)
        if edge
    ]
    if not (len(edged) >= 3 and sum(edged) >= len(edged) - 1):
        return box, ground, False
    x, y = max(0, box.x - 1), max(0, box.y - 1)
    return Box(x, y, min(width, box.right + 1) - x, min(height, box.bottom + 1) - y), ground, True


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


def _classify(shape: _Shape, shapes: Sequence[_Shape], whole: Box) -> PartKind | None:
    """Return whether a shape that is no control is a bar or a panel."""
    if not shape.is_distinct:
        return None
    return "bar" if shape.lines and _is_bar(shape, shapes, whole) else _classify_panel(shape.box)


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
