"""Find check boxes, radio buttons and switches by their shape, and read their states.

A toggle is a small shape on an even background: a square or a ring with a clean inside, a tick or a dot, or a pill
with a knob at one end. What is not clearly one of these is not reported, and neither is a part of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.colours import compare_colours, crop_pixels, find_common_colour, measure_distances
from sightline.reader.controls import add_learnt_toggles
from sightline.reader.page_text import measure_letter_size
from sightline.reader.reading import Colour, InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import are_level, is_inside
from sightline.reader.regions import Segments

Mask = NDArray[np.bool_]

SIDE = (12, 54)  # pixels: the side of a check box or radio button, on ordinary and on dense screens
SQUARE = 13  # pixels: the side of a check box, at least
PILL = (1.35, 2.6)  # ratio of a switch's width to its height
NEAR = 3.0  # heights of a line: how far a toggle may be from its text
VISIBLE, CLEAR = 12, 60  # differences of colours: of what is drawn, and of a tick or a dot
PALE = (24, 0.45)  # the same of a tick in a pale toggle: at least, and as a share of the strongest difference in it
STRONGEST = 92  # percent: the pixels above are the strongest of a toggle, such as those of its border
CLEAN = 0.03  # share of an empty inside that may differ
TICK = (0.05, 0.5)  # share of the inside that a tick or a dot covers
_MARKS, _RINGS = frozenset("●○◯◉⊙•■□▢▣☐☑@®©"), frozenset("O0oQ")  # what a toggle may be read as
_BORDER = 0.14  # share of the height of a switch that its border may have
_ROUND = 0.89  # share of its box that a shape covers: a circle less, a square with round corners more
_BULLET = 0.6  # of the letter size of its text: a toggle is larger
_LETTER, _CAPITAL = 1.15, 0.74  # a toggle is this much higher than a capital, which is this share of the letter size


@dataclass(frozen=True, slots=True)
class _Sample:
    """A shape cut out of the image."""

    box: Box
    pixels: Pixels
    ground: Colour
    drawn: Mask  # what differs from the background, and what is within it

    @property
    def side(self) -> int:
        return min(self.box.width, self.box.height)

    @property
    def clear(self) -> int:
        """Return how much a tick or a dot differs from what is around it: less in a toggle that is pale."""
        inset = round(0.2 * self.side)
        low, high = np.percentile(self.pixels[inset:-inset, inset:-inset], (4, 96), axis=(0, 1))
        return int(min(CLEAR, max(PALE[0], PALE[1] * float((high - low).max()))))


def find_toggles(pixels: Pixels, lines: Sequence[TextLine], segments: Segments) -> list[InterfacePart]:
    """Return the toggles of an image, each with the line beside it: clean shapes, and what the network is sure of."""
    found = [part for box in segments.shapes if (part := _read_shape(pixels, box))]
    texts = [line for line in lines if not _is_toggle_glyph(line)]
    outside = [part for part in found if not any(_is_in_text(part.box, line) for line in texts)]
    clean = [
        part for part in label_toggles(outside, lines)
        if (part.lines or _has_mates(part, outside)) and not _is_letter(part, lines) and not _is_bullet(part, lines)
    ]  # fmt: skip
    return label_toggles(add_learnt_toggles(pixels, lines, segments, clean), lines)


def label_toggles(toggles: Sequence[InterfacePart], lines: Sequence[TextLine]) -> list[InterfacePart]:
    """Return the toggles with the lines beside them."""
    return [replace(part, lines=_find_label(part.box, lines)) for part in toggles]


def remove_toggle_glyphs(lines: Sequence[TextLine], toggles: Sequence[InterfacePart]) -> list[TextLine]:
    """Remove what is a toggle, read as a letter: a whole line, or the first character of one."""
    rest = [
        line for line in lines if not (len(line.text) <= 2 and any(is_inside(line.box, part.box) for part in toggles))
    ]
    return [next((_cut_off(line, part.box) for part in toggles if _begins_with(line, part.box)), line) for line in rest]


def _begins_with(line: TextLine, box: Box) -> bool:
    """Return whether a line begins with a mark that is a shape."""
    return (
        len(line.text) > 2
        and (line.text[0] in _MARKS or (line.text[0] in _RINGS and line.text[1] == " "))
        and abs(line.box.x - box.x) <= 3
        and are_level(line.box, box)
        and box.right < line.box.x + 2 * box.width
    )


def _cut_off(line: TextLine, box: Box) -> TextLine:
    text = line.text[1:].lstrip()
    gone = len(line.text) - len(text)
    doubtful = tuple(at - gone for at in line.doubtful if at >= gone)
    left = min(line.box.right - 1, box.right + max(2, box.width // 4))
    return replace(
        line, text=text, box=Box(left, line.box.y, line.box.right - left, line.box.height), doubtful=doubtful
    )


def _is_toggle_glyph(line: TextLine) -> bool:
    """Return whether a line may be a toggle that was read as a letter."""
    return len(line.text) <= 2 and line.box.width <= PILL[1] * line.box.height


def _is_in_text(box: Box, line: TextLine) -> bool:
    """Return whether a shape is a part of a line: its letters are as high."""
    return not _begins_with(line, box) and (
        is_inside(box, line.box, slack=1)
        or (
            box.x < line.box.right
            and line.box.x < box.right
            and are_level(box, line.box)
            and box.height < _LETTER * line.box.height
        )
    )


def _is_letter(part: InterfacePart, lines: Sequence[TextLine]) -> bool:
    """Return whether a shape was read as a letter and is no higher than a capital of the text beside it."""
    glyphs = [line for line in lines if _is_toggle_glyph(line) and is_inside(line.box, part.box)]
    label = lines[part.lines[0]] if part.lines else None
    return bool(glyphs and label and part.box.height < _LETTER * _CAPITAL * measure_letter_size(label))


def _is_bullet(part: InterfacePart, lines: Sequence[TextLine]) -> bool:
    """Return whether a shape is too small for its text: the mark of a list, or the dot of a status."""
    return any(part.box.height < _BULLET * measure_letter_size(lines[at]) for at in part.lines)


def _find_label(box: Box, lines: Sequence[TextLine]) -> tuple[int, ...]:
    """Return the nearest line beside a toggle, after it rather than before it."""
    best: tuple[float, int] | None = None
    for place, line in enumerate(lines):
        if is_inside(line.box, box) or not are_level(box, line.box):
            continue
        if _begins_with(line, box):
            return (place,)
        after, before = line.box.x - box.right, box.x - line.box.right
        reach = NEAR * max(line.box.height, 0.6 * box.height)
        if -2 <= after <= reach or -2 <= before <= reach:
            away = after if after >= -2 else before + reach
            best = min(best or (away, place), (away, place))
    return (best[1],) if best else ()


def _has_mates(part: InterfacePart, others: Sequence[InterfacePart]) -> bool:
    """Return whether a toggle without a text is in a row or column of toggles like it."""
    box = part.box
    same = [
        other for other in others
        if other.kind == part.kind and other is not part
        and abs(other.box.width - box.width) <= 1 and abs(other.box.height - box.height) <= 1
        and (abs(other.box.x - box.x) <= 1 or abs(other.box.y - box.y) <= 1)
    ]  # fmt: skip
    return len(same) >= 2


def _read_shape(pixels: Pixels, box: Box) -> InterfacePart | None:
    low, high = sorted((box.width, box.height))
    if low < SIDE[0] or low > SIDE[1] or box.height > box.width + 2:
        return None
    square = high <= 1.12 * low + 1
    if not square and not PILL[0] * box.height <= box.width <= PILL[1] * box.height:
        return None
    sample = _cut_sample(pixels, box)
    if sample is None:
        return None
    if not square:
        return _read_pill(sample)
    if sample.side < SIDE[0] or abs(sample.box.width - sample.box.height) > max(1, 0.07 * sample.side):
        return None
    return _read_circle(sample) if _is_circle(sample) else _read_square(sample)


def _cut_sample(pixels: Pixels, box: Box) -> _Sample | None:
    """Return a shape with its background, or None where that is not even."""
    height, width = pixels.shape[:2]
    if box.x < 2 or box.y < 2 or box.right > width - 2 or box.bottom > height - 2:
        return None
    wide = crop_pixels(pixels, box, margin=1)
    edge = np.concatenate([wide[0], wide[-1], wide[:, 0], wide[:, -1]])
    ground = find_common_colour(edge)
    if (measure_distances(edge[None], ground)[0] > VISIBLE).mean() > 0.15:
        return None
    inner = crop_pixels(pixels, box)
    drawn = measure_distances(inner, ground) > VISIBLE
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    if len(rows) < SIDE[0] - 2 or len(columns) < SIDE[0] - 2:
        return None
    top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
    tight = Box(box.x + left, box.y + top, right - left, bottom - top)
    return _Sample(tight, inner[top:bottom, left:right], ground, _fill_outline(drawn[top:bottom, left:right]))


def _fill_outline(drawn: Mask) -> Mask:
    """Return what is drawn and everything within it."""
    across = np.logical_or.accumulate(drawn, axis=1) & np.logical_or.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
    down = np.logical_or.accumulate(drawn, axis=0) & np.logical_or.accumulate(drawn[::-1], axis=0)[::-1]
    filled: Mask = across & down
    return filled


def _is_circle(sample: _Sample) -> bool:
    """Return whether a shape covers less of its box than a square with round corners."""
    return float(sample.drawn.mean()) < _ROUND


def _read_square(sample: _Sample) -> InterfacePart | None:
    drawn = sample.drawn
    corner = max(2, sample.side // 5)
    sides = (drawn[:2, corner:-corner].any(axis=0), drawn[-2:, corner:-corner].any(axis=0),
             drawn[corner:-corner, :2].any(axis=1), drawn[corner:-corner, -2:].any(axis=1))  # fmt: skip
    if sample.side < SQUARE or any(side.mean() < 0.95 for side in sides):
        return None
    border = find_common_colour(sample.pixels[1:3, corner:-corner].reshape(-1, 3))
    inset = max(2, round(0.16 * sample.side))
    inside = sample.pixels[inset:-inset, inset:-inset]
    fill = find_common_colour(inside.reshape(-1, 3))
    marks = measure_distances(inside, fill) > sample.clear
    share = float(marks.mean())
    if share <= CLEAN:
        edge = find_common_colour(sample.pixels[:1, corner:-corner].reshape(-1, 3))
        framed = max(compare_colours(border, fill), compare_colours(edge, fill)) >= VISIBLE
        return _make_part("check", sample, fill, checked=False) if framed else None
    if not TICK[0] <= share <= TICK[1]:
        return None
    if _is_tick(marks):
        return _make_part("check", sample, fill, checked=True)
    return _make_part("check", sample, fill, checked=None) if _is_dash(marks) else None


def _is_tick(marks: Mask) -> bool:
    """Return whether a mark goes down to a point left of the middle, and up to the right from there."""
    columns = np.flatnonzero(marks.any(axis=0))
    if len(columns) < 0.5 * marks.shape[1]:
        return False
    rows = np.arange(len(marks))[:, None]
    middle = (marks * rows).sum(axis=0)[columns] / marks.sum(axis=0)[columns]
    high = len(marks)
    lowest = int(np.argmax(middle))
    first, last = float(middle[0]), float(middle[-1])
    turns = 0.12 <= lowest / len(middle) <= 0.65 and middle[lowest] - last >= 0.25 * high and first > last
    rising = np.diff(middle[lowest:])
    thin = marks[:, columns].sum(axis=0).max() <= 0.6 * high
    return bool(turns and middle[lowest] - first >= 0.05 * high and (rising <= 0.6).mean() >= 0.8 and thin)


def _is_dash(marks: Mask) -> bool:
    """Return whether a mark is a bar across the middle: neither on nor off."""
    rows, columns = np.flatnonzero(marks.any(axis=1)), np.flatnonzero(marks.any(axis=0))
    flat = len(rows) <= 0.4 * len(marks) and len(columns) >= 0.5 * marks.shape[1]
    return bool(flat and abs(rows.mean() - (len(marks) - 1) / 2) <= 1 and marks[rows].mean() >= 0.45)


def _measure_radii(sample: _Sample) -> NDArray[np.float64]:
    """Return how far each pixel is from the middle, as a share of the radius."""
    high, wide = sample.drawn.shape
    y, x = np.mgrid[:high, :wide]
    radii: NDArray[np.float64] = np.hypot((x - (wide - 1) / 2) / (wide / 2), (y - (high - 1) / 2) / (high / 2))
    return radii


def _read_circle(sample: _Sample) -> InterfacePart | None:
    """Read a ring or disc: every radius has one colour, and the middle shows the state."""
    radius = _measure_radii(sample)
    rim = (radius > 0.8) & (radius < 0.97)
    if sample.drawn[rim].mean() < 0.9 or sample.drawn[radius > 1.12].mean() > 0.25:
        return None
    middle = find_common_colour(sample.pixels[radius < 0.22].reshape(-1, 3))
    clear = sample.clear
    unlike = measure_distances(sample.pixels, middle) > clear / 2
    if unlike[radius < 0.2].mean() > 0.1:
        return None
    reach = _find_dot_edge(unlike, radius)
    edge = sample.pixels[(radius > 0.86) & (radius < 0.96)]
    rim_unlike = (measure_distances(edge[None], middle)[0] > VISIBLE).mean()
    if reach >= 0.68 and rim_unlike >= 0.85:  # one colour up to the rim
        return _make_part("radio", sample, middle, checked=False)
    if reach >= 0.85:  # a disc
        return None
    # a small dot is on a disc or in a ring; a large one fills a disc up to its rim, or leaves a narrow gap to a ring
    first = (reach + 0.2, 0.82) if reach < 0.6 else (0.86, 0.96)
    places = (first, (reach + 0.05, reach + 0.14)) if reach >= 0.55 else (first,)
    checked = reach >= 0.24 and any(
        _is_gap(sample.pixels[(radius > start) & (radius < end)], middle, clear) for start, end in places
    )
    return _make_part("radio", sample, middle, checked=True) if checked else None


def _is_gap(between: Pixels, middle: Colour, clear: int) -> bool:
    """Return whether the pixels around a dot have one colour, which is not that of the dot."""
    if not len(between):
        return False
    around = find_common_colour(between)
    even = (measure_distances(between[None], around)[0] > clear).mean() <= 0.2
    return bool(even) and compare_colours(around, middle) >= clear


def _find_dot_edge(unlike: Mask, radius: NDArray[np.float64]) -> float:
    """Return the radius up to which the colour is that of the middle."""
    for edge in np.arange(0.2, 1.0, 0.06):
        ring = (radius >= edge) & (radius < edge + 0.1)
        if ring.any() and unlike[ring].mean() > 0.5:
            return float(edge)
    return 1.0


def _read_pill(sample: _Sample) -> InterfacePart | None:
    """Read a switch: round at both ends, with one round knob at one end and nothing else in it."""
    if sample.drawn[:2, :2].mean() + sample.drawn[-2:, -2:].mean() > 0.6:
        return None
    off, on = _find_knob(sample, left=True), _find_knob(sample, left=False)
    if off is None and on is None:
        off, on = _find_tall_end(sample, left=True), _find_tall_end(sample, left=False)
    if (off is None) == (on is None):
        return None
    return _make_part("switch", sample, on or off or sample.ground, checked=on is not None)


def _find_tall_end(sample: _Sample, *, left: bool) -> Colour | None:
    """Return the colour of a track whose one end is a knob of the same colour that is higher than the track."""
    high, wide = sample.drawn.shape
    heights = sample.drawn.sum(axis=0)[:: 1 if left else -1] / high
    knob, track = heights[int(0.2 * wide) : int(0.3 * wide) + 1], heights[int(0.75 * wide) : int(0.9 * wide)]
    if knob.min() < 0.9 or not 0.4 <= track.mean() <= 0.82 or np.ptp(track) > 0.15:
        return None
    middle = sample.pixels[high // 2 - 1 : high // 2 + 2]
    colour = find_common_colour(middle.reshape(-1, 3))
    return colour if (measure_distances(middle, colour) > CLEAR).mean() <= 0.2 else None


def _find_knob(sample: _Sample, *, left: bool) -> Colour | None:
    """Return the colour of the track if a knob is at one end of it."""
    high, wide = sample.drawn.shape
    y, x = np.mgrid[:high, :wide]
    middle = high / 2 - 0.5 if left else wide - high / 2 - 0.5
    away = np.hypot(x - middle, y - (high - 1) / 2) / (high / 2)
    edge = max(2, round(_BORDER * high))
    inner = np.zeros_like(sample.drawn)
    inner[edge:-edge, edge:-edge] = sample.drawn[edge:-edge, edge:-edge]
    level = inner & (abs(y - (high - 1) / 2) <= 0.2 * high)
    knob, rest = sample.pixels[away < 0.4], sample.pixels[level & (away > 1.15)]
    if not len(rest):
        return None
    colour, track = find_common_colour(knob), find_common_colour(rest)
    even = (measure_distances(knob[None], colour)[0] > VISIBLE).mean() <= 0.1
    like = inner & (measure_distances(sample.pixels, colour) <= VISIBLE)
    alone = like[away > 1].sum() <= 0.1 * like.sum()
    clean = (measure_distances(rest[None], track)[0] > VISIBLE).mean() <= 0.2
    inward = (x - middle) * (1 if left else -1) - 0.35 * high
    beside = (abs(inward) <= 1) & (abs(abs(y - (high - 1) / 2) - 0.35 * high) <= 1)
    round_ = (measure_distances(sample.pixels[beside][None], colour)[0] <= VISIBLE).mean() <= 0.35
    return track if even and alone and clean and round_ and compare_colours(colour, track) >= VISIBLE else None


def _make_part(kind: PartKind, sample: _Sample, colour: Colour, *, checked: bool | None) -> InterfacePart:
    drawn = measure_distances(sample.pixels, sample.ground)
    return InterfacePart(kind, sample.box, colour, (), checked, int(np.percentile(drawn, STRONGEST)))
