"""Measure places that may be buttons or fields: their edges, fill, text, neighbours and labels, as rows of numbers.

Every length is relative to the size of the letters, and every measure is taken for all places at once. What the numbers
mean together is learnt from real pages, by bench/train_controls.py; a change here needs a new training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.page_text import measure_letter_size
from sightline.reader.reading import Pixels, TextLine
from sightline.reader.regions import Segments

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Mask = NDArray[np.bool_]

SMALLEST = 9  # pixels: the smallest side of a control
TALLEST, WIDEST = 170, 1900  # pixels: the largest sides, on dense screens
OFFSETS = np.arange(-4, 6)  # pixels from a box's edge, outwards
ALONG = np.linspace(0.2, 0.8, 9)  # places along an edge
ACROSS, DOWN = 48, 12  # places inside a box
FAR = 12.0  # letter sizes: what is farther away is not near
SIGNS = frozenset(":;=_<>(){}[]#/\\|*@$%^~`\"',†")
PIECE, UNDERLINED = -2.0, -3.0  # in place of how a region fills its box: a piece of one; the text above a line
RULE = (60, 700, 4)  # pixels: the width of the line below a field, from and to, and its height
ABOVE_RULE, BEFORE_TEXT = (0.1, 1.2), (-0.3, 2.5)  # letter sizes from a text to the line below it, and from its start
PAIRS = 200_000  # of lines and rules that are compared at once
SLICE = 500  # boxes that are compared with all lines at once


@dataclass(frozen=True, slots=True)
class PageLines:
    """The lines of a page as arrays."""

    boxes: Ints  # left, top, right, bottom
    sizes: Floats  # of letters
    lengths: Floats  # in characters
    contrasts: Floats
    tints: Floats  # how colourful the ink is
    letters: Floats  # share of characters that are letters
    trust: Floats
    inks: Floats
    grounds: Floats
    signs: Floats  # share of characters that are signs, as in programs and in labels with values
    digits: Floats  # share of characters that are digits
    words: Floats  # how many
    capitals: Floats  # share of words that begin with a capital letter

    @property
    def usual_size(self) -> float:
        return float(np.median(self.sizes)) if len(self.sizes) else 16.0

    @property
    def usual_contrast(self) -> float:
        return float(np.median(self.contrasts)) if len(self.contrasts) else 1.0


def list_lines(lines: Sequence[TextLine]) -> PageLines:
    inks = np.array([line.ink or (0, 0, 0) for line in lines], dtype=np.float32).reshape(-1, 3)
    grounds = np.array([line.ground or (0, 0, 0) for line in lines], dtype=np.float32).reshape(-1, 3)
    return PageLines(
        list_boxes([line.box for line in lines]),
        np.array([measure_letter_size(line) for line in lines], dtype=np.float32),
        np.array([len(line.text) for line in lines], dtype=np.float32),
        np.abs(inks - grounds).max(axis=1, initial=0) / 255,
        (inks.max(axis=1) - inks.min(axis=1)) / 255 if len(inks) else np.zeros(0, np.float32),
        np.array([sum(map(str.isalpha, line.text)) / max(1, len(line.text)) for line in lines], dtype=np.float32),
        np.array([line.confidence for line in lines], dtype=np.float32),
        inks,
        grounds,
        np.array([sum(each in SIGNS for each in line.text) / max(1, len(line.text)) for line in lines], np.float32),
        np.array([sum(map(str.isdigit, line.text)) / max(1, len(line.text)) for line in lines], np.float32),
        np.array([len(line.text.split()) for line in lines], np.float32),
        np.array([_count_capitals(line.text) / max(1, len(line.text.split())) for line in lines], np.float32),
    )


def _count_capitals(text: str) -> int:
    return sum(word[0].isupper() for word in text.split())


def list_boxes(boxes: Sequence[Box]) -> Ints:
    return np.array([(box.x, box.y, box.right, box.bottom) for box in boxes], dtype=np.int32).reshape(-1, 4)


def propose_controls(segments: Segments, page: PageLines, size: tuple[int, int]) -> tuple[Ints, Floats]:
    """Return the boxes that may be buttons or fields, and how each region fills its box."""
    boxes = [(region.box, (region.sides, region.ends, region.fill_share)) for region in segments.regions]
    boxes += [(box, (-1.0, -1.0, -1.0)) for box in segments.shapes]
    boxes += [(box, (PIECE,) * 3) for box in segments.pieces]
    boxes += [(box, (UNDERLINED,) * 3) for box in _find_underlined(segments, page)]
    kept = [
        (box, shape)
        for box, shape in boxes
        if SMALLEST <= box.height <= TALLEST
        and max(SMALLEST, 0.5 * box.height) <= box.width <= min(WIDEST, 0.97 * size[0])
        and (shape[0] < 0 or (shape[0] >= 0.2 and shape[1] >= 0.3))
    ]
    found, shapes = list_boxes([box for box, _ in kept]), np.array([shape for _, shape in kept], dtype=np.float32)
    if not kept:
        return found, shapes.reshape(0, 3)
    parts = np.array_split(found, len(found) // SLICE + 1)
    inner = np.concatenate([compare_all(part, page.boxes, slack=1)[0].any(axis=1) for part in parts])  # of a letter
    return found[~inner], shapes[~inner]


def _find_underlined(segments: Segments, page: PageLines) -> list[Box]:
    """Return the boxes of texts at the beginning of a thin line below them, as high above the text as below it."""
    rules = [
        region.box for region in segments.regions
        if region.box.height <= RULE[2] and RULE[0] <= region.box.width <= RULE[1] and region.fill_share > 0.9
    ][:SLICE]  # fmt: skip
    if not rules or not len(page.boxes):
        return []
    step = max(1, PAIRS // len(page.boxes))
    return [box for at in range(0, len(rules), step) for box in _find_texts_above(rules[at : at + step], page)]


def _find_texts_above(rules: Sequence[Box], page: PageLines) -> list[Box]:
    a, b, size = list_boxes(rules)[:, None], page.boxes[None], np.maximum(page.sizes, 1)[None]
    below, before = (a[..., 1] - b[..., 3]) / size, (b[..., 0] - a[..., 0]) / size
    fits = (below >= ABOVE_RULE[0]) & (below <= ABOVE_RULE[1]) & (b[..., 2] <= a[..., 2] + 2)
    fits &= (before >= BEFORE_TEXT[0]) & (before <= BEFORE_TEXT[1])
    found = []
    for at in np.flatnonzero(fits.any(axis=1)).tolist():
        rule, text = rules[at], page.boxes[fits[at].argmax()]
        top = max(0, int(text[1]) - (rule.y - int(text[3])))
        found.append(Box(rule.x, top, rule.width, rule.bottom - top))
    return found


def compare_all(boxes: Ints, others: Ints, slack: int) -> tuple[Mask, Mask]:
    """Return which box is inside which other one, and which contains which."""
    a, b = boxes[:, None], others[None]
    first, last = a[..., :2] - b[..., :2], b[..., 2:] - a[..., 2:]
    least, most = np.minimum(first, last), np.maximum(first, last)
    inside: Mask = np.minimum(least[..., 0], least[..., 1]) >= -slack
    around: Mask = np.maximum(most[..., 0], most[..., 1]) <= slack
    return inside, around


def gather(pixels: Pixels, x: NDArray[np.float64], y: NDArray[np.float64]) -> Floats:
    height, width = pixels.shape[:2]
    columns = np.clip(np.rint(x).astype(np.int64), 0, width - 1)
    rows = np.clip(np.rint(y).astype(np.int64), 0, height - 1)
    found: Floats = pixels.reshape(-1, 3)[rows * width + columns].astype(np.float32)
    return found


def sample_sides(pixels: Pixels, boxes: Ints) -> Floats:
    """Return colours along the four sides at each offset: box, side, offset, place, channel."""
    left, top, right, bottom = (boxes[:, at, None, None].astype(np.float64) for at in range(4))
    away, along = OFFSETS[None, :, None].astype(np.float64), ALONG[None, None, :]
    across, down = left + (right - 1 - left) * along, top + (bottom - 1 - top) * along
    zero = np.zeros((len(boxes), len(OFFSETS), len(ALONG)))
    x = np.stack([across + zero, across + zero, left - away + zero, right - 1 + away + zero], axis=1)
    y = np.stack([top - away + zero, bottom - 1 + away + zero, down + zero, down + zero], axis=1)
    return gather(pixels, x, y)


def _sample_inside(pixels: Pixels, boxes: Ints, edge: float = 0.04) -> Floats:
    left, top, right, bottom = (boxes[:, at, None, None].astype(np.float64) for at in range(4))
    high = bottom - top
    inset = np.minimum(3, edge * high + 1)
    x = left + inset + (right - 1 - left - 2 * inset) * np.linspace(0, 1, ACROSS)[None, None, :]
    y = top + inset + (high - 1 - 2 * inset) * np.linspace(0, 1, DOWN)[None, :, None]
    return gather(pixels, x + 0 * y, y + 0 * x)


def differ(one: Floats, other: Floats) -> Floats:
    """Return the largest difference of two colours in a channel, 0 to 1."""
    off = np.abs(one - other)
    most: Floats = np.maximum(np.maximum(off[..., 0], off[..., 1]), off[..., 2]) / 255  # faster than over an axis
    return most


def measure_controls(pixels: Pixels, boxes: Ints, shapes: Floats, page: PageLines) -> Floats:
    """Return a row of measures for each box that may be a button or a field."""
    inside = _sample_inside(pixels, boxes)
    fill = np.median(inside.reshape(len(boxes), -1, 3), axis=1)
    texts, own = _measure_texts(boxes, page, _measure_weights(pixels, page))
    unit = np.where(own > 0, own, page.usual_size)
    wide, high = (boxes[:, 2] - boxes[:, 0]).astype(np.float32), (boxes[:, 3] - boxes[:, 1]).astype(np.float32)
    size = pixels.shape[1], pixels.shape[0]
    rows = [
        np.stack([
            high / unit, wide / unit, np.log(wide / high), high / page.usual_size, wide / size[0],
            unit / page.usual_size,
            np.minimum(boxes[:, 0], 50) / 50, np.minimum(boxes[:, 1], 50) / 50,
            np.minimum(size[0] - boxes[:, 2], 50) / 50, np.minimum(size[1] - boxes[:, 3], 50) / 50,
        ], axis=1),
        shapes,
        texts,
        _measure_edges(pixels, boxes, fill),
        _measure_fill(pixels, inside, fill),
        _measure_neighbours(boxes, unit),
        measure_labels(boxes, page, unit),
    ]  # fmt: skip
    return np.concatenate(rows, axis=1).astype(np.float32)


def _measure_weights(pixels: Pixels, page: PageLines) -> Floats:
    """Return how much of each line is ink, compared with the other lines: more where letters are bold."""
    shares = np.zeros(len(page.boxes), np.float32)
    for at, (left, top, right, bottom) in enumerate(page.boxes.tolist()):
        crop = pixels[max(0, top) : bottom, max(0, left) : right]
        if crop.size and page.contrasts[at] > 0:
            off = differ(crop.astype(np.float32), page.grounds[at][None, None])
            shares[at] = (off > 0.5 * page.contrasts[at]).mean()
    usual = float(np.median(shares)) if len(shares) else 0.0
    return shares / max(0.05, usual)


def _measure_texts(boxes: Ints, page: PageLines, weights: Floats) -> tuple[Floats, Floats]:
    """Measure the lines in each box, and return the size of their letters too."""
    if not len(page.boxes):
        return np.zeros((len(boxes), 21), np.float32), np.zeros(len(boxes), np.float32)
    inside = compare_all(boxes, page.boxes, slack=2)[1]
    count = inside.sum(axis=1)
    some = np.maximum(count, 1)

    def pick(values: NDArray[np.generic], start: float, most: bool) -> NDArray[np.float64]:
        chosen = np.where(inside, values[None], -np.inf if most else np.inf)
        return np.where(count > 0, chosen.max(axis=1) if most else chosen.min(axis=1), start)

    size = pick(page.sizes, 0.0, most=True)
    left, top = pick(page.boxes[:, 0], 0, most=False), pick(page.boxes[:, 1], 0, most=False)
    right, bottom = pick(page.boxes[:, 2], 0, most=True), pick(page.boxes[:, 3], 0, most=True)
    unit = np.maximum(size, 1)
    pads = np.stack([left - boxes[:, 0], boxes[:, 2] - right, top - boxes[:, 1], boxes[:, 3] - bottom], axis=1)
    pads = np.where(count[:, None] > 0, pads / unit[:, None], -1)
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    contrast = pick(page.contrasts, 0.0, most=True)
    length = (inside * page.lengths[None]).sum(axis=1)
    rows = np.stack([
        np.minimum(count, 6), np.minimum(length, 80), (right - left) / width, (bottom - top) / height,
        *np.clip(pads, -1, 20).T, np.abs(pads[:, 0] - pads[:, 1]) / np.maximum(1, width / unit),
        np.abs(pads[:, 2] - pads[:, 3]), contrast, contrast / max(0.05, page.usual_contrast),
        pick(page.tints, 0.0, most=True), (inside * page.letters[None]).sum(axis=1) / some,
        (inside * page.trust[None]).sum(axis=1) / some, (bottom - top) / np.maximum(1, size),
        *((inside * each[None]).sum(axis=1) / some for each in (page.signs, page.digits, page.capitals, weights)),
        (inside * page.words[None]).sum(axis=1),
    ], axis=1)  # fmt: skip
    return rows.astype(np.float32), size.astype(np.float32)


def _measure_edges(pixels: Pixels, boxes: Ints, fill: Floats) -> Floats:
    """Measure how the colour changes from the inside outwards, on all sides, and in the corners."""
    sides = sample_sides(pixels, boxes)  # box, side, offset, place, channel
    typical = np.median(sides, axis=3)
    from_fill = differ(typical, fill[:, None, None])
    ground = np.median(typical[:, :, -2:].reshape(len(boxes), -1, 3), axis=1)
    from_ground = differ(typical, ground[:, None, None])
    spread = np.abs(sides - typical[:, :, :, None]).max(axis=-1).mean(axis=3) / 255
    middle = from_fill.mean(axis=1), from_fill.min(axis=1), from_fill.max(axis=1), from_ground.mean(axis=1)
    rim = np.minimum(from_fill, from_ground)[:, :, 2:7].max(axis=2)  # a border differs from both
    corners = _measure_corners(pixels, boxes, ground, fill)
    return np.concatenate([
        *middle, spread.mean(axis=1), np.sort(rim, axis=1), differ(fill, ground)[:, None], corners,
        from_ground[:, :, -2:].max(axis=(1, 2))[:, None],
    ], axis=1)  # fmt: skip


def _measure_corners(pixels: Pixels, boxes: Ints, ground: Floats, fill: Floats) -> Floats:
    """Measure how far into each corner the colour of the outside reaches, along the diagonal."""
    steps = np.array([0.0, 0.04, 0.08, 0.13, 0.2])
    high = np.minimum(boxes[:, 3] - boxes[:, 1], boxes[:, 2] - boxes[:, 0]).astype(np.float64)
    away = steps[None] * high[:, None]
    left, top, right, bottom = (boxes[:, at, None].astype(np.float64) for at in range(4))
    x = np.stack([left + away, right - 1 - away, left + away, right - 1 - away], axis=1)
    y = np.stack([top + away, top + away, bottom - 1 - away, bottom - 1 - away], axis=1)
    colours = gather(pixels, x, y)
    out = differ(colours, ground[:, None, None])
    own = differ(colours, fill[:, None, None])
    return np.concatenate([(out <= own + 0.02).mean(axis=1), out.mean(axis=1)], axis=1)


def _measure_fill(pixels: Pixels, inside: Floats, fill: Floats) -> Floats:
    """Measure the colour of a box, and where in it something else is drawn."""
    off = differ(inside, fill[:, None, None])
    drawn = (off > 0.1).astype(np.float32)
    columns = drawn.mean(axis=1).reshape(len(fill), 12, -1).mean(axis=2)
    rows = drawn.mean(axis=2).reshape(len(fill), 6, -1).mean(axis=2)
    any_column: Mask = (drawn > 0).max(axis=1)
    some: Mask = any_column.max(axis=1)
    first = np.where(some, any_column.argmax(axis=1), ACROSS) / ACROSS
    last = np.where(some, any_column[:, ::-1].argmax(axis=1), ACROSS) / ACROSS
    light = fill.mean(axis=1) / 255
    page = np.median(pixels[::17, ::17].reshape(-1, 3), axis=0).astype(np.float32)
    return np.concatenate([
        columns, rows, np.stack([
            drawn.mean(axis=(1, 2)), off.mean(axis=(1, 2)), np.percentile(off, 95, axis=(1, 2)), first, last,
            first - last, light, (fill.max(axis=1) - fill.min(axis=1)) / 255, differ(fill, page[None]),
            np.full(len(fill), page.mean() / 255), (off > 0.02).mean(axis=(1, 2)),
        ], axis=1),
    ], axis=1)  # fmt: skip


def _measure_neighbours(boxes: Ints, unit: Floats) -> Floats:
    """Measure what is beside, above, below, around and inside each box, and how many are like it."""
    count = len(boxes)
    wide, high = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    apart = ~np.eye(count, dtype=bool)
    a, b = boxes[:, None], boxes[None]
    same_high = np.abs(high[:, None] - high[None]) <= 3
    same_wide = np.abs(wide[:, None] - wide[None]) <= 3
    same_left, same_top = np.abs(a[..., 0] - b[..., 0]) <= 3, np.abs(a[..., 1] - b[..., 1]) <= 3
    overlap_x = np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0])
    overlap_y = np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1])
    near_above = (np.abs(a[..., 1] - b[..., 3]) <= 4) & (overlap_x >= 0.8 * np.minimum(wide[:, None], wide[None]))
    near_below = (np.abs(a[..., 3] - b[..., 1]) <= 4) & (overlap_x >= 0.8 * np.minimum(wide[:, None], wide[None]))
    level = overlap_y >= 0.8 * np.maximum(high[:, None], high[None])
    near_left = (np.abs(a[..., 0] - b[..., 2]) <= 4) & level
    near_right = (np.abs(a[..., 2] - b[..., 0]) <= 4) & level
    within, around = compare_all(boxes, boxes, slack=0)
    bigger = (wide * high)[None] > 1.15 * (wide * high)[:, None]
    holder = within & bigger
    holder_high = np.where(holder, high[None], 10**6).min(axis=1, initial=10**6)
    holder_wide = np.where(holder, wide[None], 10**6).min(axis=1, initial=10**6)
    inner = around & bigger.T
    gap_right = np.where(level & apart & (b[..., 0] >= a[..., 2] - 2), b[..., 0] - a[..., 2], 10**6).min(
        axis=1, initial=10**6
    )
    gap_left = np.where(level & apart & (a[..., 0] >= b[..., 2] - 2), a[..., 0] - b[..., 2], 10**6).min(
        axis=1, initial=10**6
    )

    def tally(mask: Mask, most: int = 8) -> Ints:
        count: Ints = np.minimum((mask & apart).sum(axis=1), most)
        return count

    return np.stack([
        tally(same_high & same_wide), tally(same_high & same_top), tally(same_wide & same_left),
        tally(same_high & same_left), tally(same_high, 20), tally(near_above), tally(near_below), tally(near_left),
        tally(near_right), tally(near_above & same_wide), tally(near_below & same_wide), tally(near_left & same_high),
        tally(near_right & same_high),
        tally(inner, 20), np.where(inner, high[None] / high[:, None], 0).max(axis=1, initial=0),
        np.where(inner, wide[None] / wide[:, None], 0).max(axis=1, initial=0),
        np.minimum(holder_high / high, 20), np.minimum(holder_wide / wide, 20), tally(holder, 10),
        np.minimum(gap_right / unit, FAR), np.minimum(gap_left / unit, FAR),
    ], axis=1).astype(np.float32)  # fmt: skip


def measure_labels(boxes: Ints, page: PageLines, unit: Floats) -> Floats:
    """Measure how near the lines around each box are: before it, after it, above and below it."""
    if not len(page.boxes):
        return np.tile(np.array([FAR] * 4 + [-1, 0, 0, 0, 0], np.float32), (len(boxes), 1))
    a, b = boxes[:, None], page.boxes[None]
    step = unit[:, None]
    outside = ~compare_all(boxes, page.boxes, slack=2)[1]
    middle = (b[..., 1] + b[..., 3]) / 2
    level = (a[..., 1] <= middle) & (middle <= a[..., 3]) & outside
    overlap = (np.minimum(a[..., 2], b[..., 2]) > np.maximum(a[..., 0], b[..., 0])) & outside
    before = np.where(level & (b[..., 2] <= a[..., 0] + 3), a[..., 0] - b[..., 2], 10**6)
    after = np.where(level & (b[..., 0] >= a[..., 2] - 3), b[..., 0] - a[..., 2], 10**6)
    above = np.where(overlap & (b[..., 3] <= a[..., 1] + 3), a[..., 1] - b[..., 3], 10**6)
    below = np.where(overlap & (b[..., 1] >= a[..., 3] - 3), b[..., 1] - a[..., 3], 10**6)
    nearest = above.argmin(axis=1)
    under = np.where(below.min(axis=1) < 10**6, page.lengths[below.argmin(axis=1)], 0)
    shift = np.abs(page.boxes[nearest, 0] - boxes[:, 0]) / unit
    crossing = (
        (np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0]) > 3)
        & (np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1]) > 3)
        & outside
    )
    gaps = [np.minimum(np.clip(gap, 0, None) / step, FAR).min(axis=1) for gap in (before, after, above, below)]
    return np.stack([
        *gaps, np.minimum(shift, FAR), page.lengths[nearest], crossing.sum(axis=1), level.sum(axis=1),
        under,
    ], axis=1).astype(np.float32)  # fmt: skip
