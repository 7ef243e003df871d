"""Find regions of even colour, of which interface parts and bars consist.

Neighbouring pixels that hardly differ form a run; runs that touch and hardly differ form a region. A slow gradient
stays one region; a border of one pixel separates two.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.reading import Colour, Pixels

Whole: TypeAlias = NDArray[np.int64]

EVEN = 1  # largest difference between neighbours in a channel: that of a gradient, not of a soft edge
MIN_RUN = 4  # a run
OVERLAP = 2  # of two runs that touch
MIN_AREA = 12  # region, in pixels
AT_EDGE = 2  # how far from its box's edge a row may end and still reach it
PIECE = 9  # pixels: the smallest side of a piece of a region
PLATEAU = 5  # rows of about the same width, at least, of a piece
STEP = 1  # pixels from row to row by which an edge may move within a piece
TALL = 500  # pixels: a higher region is no stack of controls
MOST_SPLIT = 400  # regions of which pieces are searched for, at most
GROUND = (100, 56)  # pixels: a region that is wider or higher is a background, on which small shapes are drawn


@dataclass(frozen=True, slots=True)
class ColourRegion:
    """A connected area of even colour."""

    box: Box
    colour: Colour
    area: int
    sides: float  # the smaller share of the left or right edge of its box that it reaches
    ends: float  # the smaller share of the top or bottom edge

    @property
    def fill_share(self) -> float:
        return self.area / (self.box.width * self.box.height)


@dataclass(frozen=True, slots=True)
class _Runs:
    row: Whole
    start: Whole  # in the image as one long row
    end: Whole
    width: int  # of the image


@dataclass(frozen=True, slots=True)
class Segments:
    """An image in regions, and in small shapes: what is drawn on the large regions, such as words, icons and boxes."""

    regions: tuple[ColourRegion, ...] = ()
    shapes: tuple[Box, ...] = ()
    pieces: tuple[Box, ...] = ()  # of regions: rows of one width, such as buttons of one colour that touch


def find_regions(pixels: Pixels) -> tuple[ColourRegion, ...]:
    """Return every region of the image, in no particular order."""
    return segment_image(pixels).regions


def segment_image(pixels: Pixels) -> Segments:
    """Return every region of the image, and the shapes on the large ones, in no particular order."""
    runs = _find_runs(pixels)
    if not len(runs.row):
        return Segments()
    owner = _group_runs(len(runs.row), *_find_touching_runs(pixels, runs))
    return Segments(
        _measure_regions(pixels, runs, owner), _find_shapes(runs, owner, len(pixels)), _split_regions(runs, owner)
    )


def _split_regions(runs: _Runs, owner: Whole) -> tuple[Box, ...]:
    """Return the pieces of regions whose width changes: rows of about one width, one above the other.

    Two controls of one colour that touch are one region. Where one ends, the region becomes narrower or wider at once,
    or has a notch between round corners.
    """
    order = np.argsort(owner, kind="stable")
    owner, row = owner[order], runs.row[order]
    start = runs.start[order] - row * runs.width
    end = runs.end[order] - row * runs.width
    fresh = np.flatnonzero(np.append(True, (owner[1:] != owner[:-1]) | (row[1:] != row[:-1])))
    left, right = np.minimum.reduceat(start, fresh), np.maximum.reduceat(end, fresh)
    owner, row = owner[fresh], row[fresh]
    head = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    tail = np.append(head[1:], len(owner))
    high = tail - head
    wide = np.maximum.reduceat(right, head) - np.minimum.reduceat(left, head)
    chosen = np.flatnonzero((high >= 2 * PIECE) & (high <= TALL) & (wide >= 2 * PIECE))
    chosen = chosen[np.argsort(-high[chosen], kind="stable")[:MOST_SPLIT]]
    return tuple(
        box
        for at in chosen
        for box in _split_rows(int(row[head[at]]), left[head[at] : tail[at]], right[head[at] : tail[at]])
    )


def _split_rows(top: int, left: Whole, right: Whole) -> list[Box]:
    """Return the pieces of one region from where each of its rows begins and ends; none if it has only one."""
    jumps = np.flatnonzero(np.maximum(np.abs(np.diff(left)), np.abs(np.diff(right))) > STEP) + 1
    edges = [0, *jumps.tolist(), len(left)]
    even = [(a, b) for a, b in pairwise(edges) if b - a >= PLATEAU]
    if len(even) < 2:
        return []
    cuts = [0, *((above[1] + below[0]) // 2 for above, below in pairwise(even)), len(left)]
    found = []
    for (first, last), (low, high) in zip(even, pairwise(cuts), strict=True):
        x0, x1 = int(left[first:last].min()), int(right[first:last].max())
        if min(x1 - x0, high - low) >= PIECE:
            found.append(Box(x0, top + low, x1 - x0, high - low))
    return found


def _find_shapes(runs: _Runs, owner: Whole, height: int) -> tuple[Box, ...]:
    """Return the boxes around connected pixels that are in no large region."""
    column = runs.start - runs.row * runs.width
    left, right = np.full(len(owner), runs.width), np.zeros(len(owner), dtype=np.int64)
    top, bottom = np.full(len(owner), height), np.zeros(len(owner), dtype=np.int64)
    np.minimum.at(left, owner, column)
    np.maximum.at(right, owner, column + runs.end - runs.start)
    np.minimum.at(top, owner, runs.row)
    np.maximum.at(bottom, owner, runs.row + 1)
    large = ((right - left > GROUND[0]) | (bottom - top > GROUND[1]))[owner]
    step = np.zeros(height * runs.width + 1, dtype=np.int8)
    step[runs.start[large]] += 1
    np.add.at(step, runs.end[large], -1)
    drawn = (np.cumsum(step[:-1], dtype=np.int8) == 0).reshape(height, runs.width)
    return _box_connected(drawn)


def _box_connected(drawn: NDArray[np.bool_]) -> tuple[Box, ...]:
    """Return the boxes around connected pixels, diagonals included."""
    height, width = drawn.shape
    framed = np.zeros((height, width + 2), dtype=np.int8)
    framed[:, 1:-1] = drawn
    change = np.diff(framed, axis=1)
    row, start = np.nonzero(change == 1)
    end = np.nonzero(change == -1)[1]
    if not len(row):
        return ()
    wide = width + 2  # a pixel more on either side, so that rows do not touch each other
    first = np.searchsorted(row * wide + end, (row + 1) * wide + start, side="left")
    last = np.searchsorted(row * wide + start, (row + 1) * wide + end, side="right")
    count = np.maximum(last - first, 0)
    upper = np.repeat(np.arange(len(row)), count)
    lower = first[upper] + np.arange(len(upper)) - np.repeat(np.cumsum(count) - count, count)
    owner = _group_runs(len(row), upper, lower)
    order = np.argsort(owner, kind="stable")
    head = np.flatnonzero(np.append(True, np.diff(owner[order]) != 0))
    x0, x1 = np.minimum.reduceat(start[order], head), np.maximum.reduceat(end[order], head)
    y0, y1 = np.minimum.reduceat(row[order], head), np.maximum.reduceat(row[order], head) + 1
    return tuple(Box(int(a), int(b), int(c - a), int(d - b)) for a, b, c, d in zip(x0, y0, x1, y1, strict=True))


def _find_runs(pixels: Pixels) -> _Runs:
    height, width = pixels.shape[:2]
    starts = np.ones((height, width), dtype=bool)
    left, right = pixels[:, :-1], pixels[:, 1:]
    uneven = (np.maximum(left, right) - np.minimum(left, right)) > EVEN
    np.logical_or(uneven[..., 0], uneven[..., 1], out=starts[:, 1:])
    starts[:, 1:] |= uneven[..., 2]
    start = np.flatnonzero(starts)
    end = np.append(start[1:], height * width)
    long = end - start >= MIN_RUN
    start, end = start[long], end[long]
    return _Runs(start // width, start, end, width)


def _find_touching_runs(pixels: Pixels, runs: _Runs) -> tuple[Whole, Whole]:
    """Return pairs of runs, one below the other, that belong together."""
    first = np.searchsorted(runs.end, runs.start + runs.width, side="right")
    last = np.searchsorted(runs.start, runs.end + runs.width, side="left")
    count = np.maximum(last - first, 0)
    upper = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(upper)) - np.repeat(np.cumsum(count) - count, count)
    lower = first[upper] + within
    start = np.maximum(runs.start[upper], runs.start[lower] - runs.width)
    end = np.minimum(runs.end[upper], runs.end[lower] - runs.width)
    wide = end - start >= OVERLAP
    upper, lower, middle = upper[wide], lower[wide], (start[wide] + end[wide]) // 2
    flat = pixels.reshape(-1, 3)
    above, below = flat[middle], flat[middle + runs.width]
    alike = (np.maximum(above, below) - np.minimum(above, below) <= EVEN).all(axis=1)
    return upper[alike], lower[alike]


def _group_runs(count: int, one: Whole, other: Whole) -> Whole:
    """Return the lowest member of each run's group, after all pairs are joined."""
    owner = np.arange(count)
    while len(one):
        here, there = owner[one], owner[other]
        apart = here != there
        if not apart.any():
            break
        one, other, here, there = one[apart], other[apart], here[apart], there[apart]
        np.minimum.at(owner, np.maximum(here, there), np.minimum(here, there))
        while True:
            next_owner = owner[owner]
            if (next_owner == owner).all():
                break
            owner = next_owner
    return owner


def _measure_regions(pixels: Pixels, runs: _Runs, owner: Whole) -> tuple[ColourRegion, ...]:
    order = np.argsort(owner, kind="stable")
    owner, row = owner[order], runs.row[order]
    start = runs.start[order] - row * runs.width
    end = runs.end[order] - row * runs.width
    head = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    area = np.add.reduceat(end - start, head)
    x0, x1 = np.minimum.reduceat(start, head), np.maximum.reduceat(end, head)
    tail = np.append(head[1:], len(owner)) - 1
    y0, y1 = row[head], row[tail] + 1
    sides = _measure_side_shares(row, start, end, head, x0, x1, y1 - y0)
    ends = _measure_end_shares(row, start, end, head, x1 - x0, y0, y1)
    longest = _find_longest_runs(end - start, head)
    where = runs.start[order][longest] + (end - start)[longest] // 2
    colour = pixels.reshape(-1, 3)[where]
    return tuple(
        ColourRegion(
            Box(int(x0[i]), int(y0[i]), int(x1[i] - x0[i]), int(y1[i] - y0[i])),
            (int(colour[i, 0]), int(colour[i, 1]), int(colour[i, 2])),
            int(area[i]),
            float(sides[i]),
            float(ends[i]),
        )
        for i in np.flatnonzero(area >= MIN_AREA)
    )


def _find_longest_runs(length: Whole, head: Whole) -> Whole:
    """Return the index of the longest run of each region."""
    group = np.repeat(np.arange(len(head)), np.diff(np.append(head, len(length))))
    order = np.lexsort((length, group))
    last: Whole = order[np.append(head[1:], len(length)) - 1]
    return last


def _measure_side_shares(
    row: Whole, start: Whole, end: Whole, head: Whole, x0: Whole, x1: Whole, height: Whole
) -> NDArray[np.float64]:
    """Return the smaller share of the left or right edge that each region reaches."""
    counts = np.diff(np.append(head, len(row)))
    fresh = np.append(True, row[1:] != row[:-1])
    fresh[head] = True
    rows = np.flatnonzero(fresh)  # the first run of each row of each region
    region = np.repeat(np.arange(len(head)), counts)[rows]
    leftmost, rightmost = np.minimum.reduceat(start, rows), np.maximum.reduceat(end, rows)
    at_left = np.bincount(region, leftmost <= x0[region] + AT_EDGE, len(head))
    at_right = np.bincount(region, rightmost >= x1[region] - AT_EDGE, len(head))
    return np.minimum(at_left, at_right) / height


def _measure_end_shares(
    row: Whole, start: Whole, end: Whole, head: Whole, width: Whole, y0: Whole, y1: Whole
) -> NDArray[np.float64]:
    """Return the smaller share of the top or bottom edge that each region reaches."""
    region = np.repeat(np.arange(len(head)), np.diff(np.append(head, len(row))))
    length = end - start
    # the best of the outermost rows, because corners are round; each row is summed alone
    shares = []
    for edge, step in ((y0, 1), (y1 - 1, -1)):
        best = np.zeros(len(head))
        for away in range(AT_EDGE + 1):
            there = row == (edge + step * away)[region]
            best = np.maximum(best, np.bincount(region[there], length[there], len(head)))
        shares.append(best / width)
    return np.minimum(shares[0], shares[1])
