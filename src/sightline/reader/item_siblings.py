"""Find the siblings of each line of a page: the items of its column, and those of its row, in the same panel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.reader.control_features import Floats, Ints, Mask, PageLines, compare_all, differ, sample_sides
from sightline.reader.reading import Pixels

NEAR, FAR = 9.0, 30.0  # letter sizes: between items of a column, and across a whole one
BESIDE = 30.0  # letter sizes between items of a row, which may be as wide as the page
ONE_SIZE = 1.35  # ratio of the letter sizes of siblings
FEW = 2  # siblings that begin alike: with fewer, those that end or have their middle alike count too
MATES = 8  # nearest siblings of a line, at most
HELD_MATES = 2  # siblings of a line that a panel holds too, at least
EDGE = 0.02  # least difference of a panel's edge from what is inside
BORDER = 3  # pixels between the ends of two regions that end alike


@dataclass(frozen=True, slots=True)
class Siblings:
    """The nearest siblings of each line in one direction, the nearest first."""

    at: NDArray[np.int64]  # line, place
    known: Mask  # which places are siblings
    count: NDArray[np.int64]


def find_siblings(pixels: Pixels, page: PageLines, holders: Ints) -> tuple[Siblings, Siblings]:
    """Return the lines in each one's column, which begin, end or have their middle alike, and those in its row.

    Both are in the same panel: of the regions in `holders` with enough of a line's column or row, the smallest.
    """
    boxes, unit = page.boxes.astype(np.float32), page.sizes
    ratio = unit[:, None] / unit[None]
    alike = (ratio < ONE_SIZE) & (ratio > 1 / ONE_SIZE) & ~np.eye(len(boxes), dtype=bool)
    middle = (boxes[:, 1] + boxes[:, 3]) / 2
    step = np.maximum(unit[:, None], unit[None])
    down = np.abs(middle[:, None] - middle[None])
    edges = boxes[:, 0], boxes[:, 2], (boxes[:, 0] + boxes[:, 2]) / 2
    left, right, centre = (np.abs(each[:, None] - each[None]) for each in edges)
    near = alike & (down > 0.9 * step) & (down <= FAR * step)
    column = near & (left <= 0.3 * step + 2)
    few = column.sum(axis=1) < FEW
    column |= near & few[:, None] & few[None] & (np.minimum(right, centre) <= 0.15 * step + 1)
    gap = np.maximum(boxes[:, None, 0] - boxes[None, :, 2], boxes[None, :, 0] - boxes[:, None, 2])
    row = alike & (down <= 0.35 * step) & (gap > 0.3 * step) & (gap <= 2 * BESIDE * step)
    for mates, first in ((column, 0), (row, 1)):
        panel = _choose_panels(pixels, page, holders, mates, first)
        mates &= panel[:, None] == panel[None]
    return _keep_near(column, down / step, NEAR), _keep_near(row, gap / step, BESIDE)


def _choose_panels(pixels: Pixels, page: PageLines, holders: Ints, mates: Mask, first: int) -> NDArray[np.int64]:
    """Return for each line the smallest panel that holds it and enough of its mates, or -1.

    A panel is a region with an edge to see before and after its lines: a part of a gradient has none. What is selected
    may cut it into regions that begin and end alike, to the left and right (`first` is 0) or above and below (1).
    """
    inside = compare_all(page.boxes, holders, slack=1)[0].astype(np.float32)
    several = inside.sum(axis=0) > HELD_MATES
    several[several] = _has_edges(pixels, holders[several])
    if not several.any():
        return np.full(len(mates), -1)
    panels = holders[several]
    area = (panels[:, 2] - panels[:, 0]).astype(np.float32) * (panels[:, 3] - panels[:, 1])
    ends = holders[:, [first, first + 2]]
    alike = (np.abs(panels[:, None, [first, first + 2]] - ends[None]) <= BORDER).all(axis=2)
    inside = np.minimum(inside @ alike.T.astype(np.float32), 1)
    same = alike[:, several]
    area = np.where(same, area[None], 0).max(axis=1)
    enough = (inside > 0) & (mates.astype(np.float32) @ inside >= HELD_MATES)
    best = np.where(enough, area[None], np.inf).argmin(axis=1)
    return np.where(enough.any(axis=1), same.argmax(axis=1)[best], -1)


def _has_edges(pixels: Pixels, boxes: Ints) -> Mask:
    """Return which boxes have an edge that can be seen above and below, or end with the picture."""
    sides = sample_sides(pixels, boxes)
    seen = np.median(differ(sides, sides[:, :, :1]).max(axis=2), axis=2) > EDGE
    ends = np.stack([boxes[:, 1] <= 2, boxes[:, 3] >= pixels.shape[0] - 2], axis=1)
    framed: Mask = (seen[:, :2] | ends).all(axis=1)
    return framed


def _keep_near(mates: Mask, away: Floats | NDArray[np.float64], near: float) -> Siblings:
    """Keep the nearest siblings of each line, if one of them is near."""
    distance = np.where(mates, away, np.inf)
    order = np.argsort(distance, axis=1, kind="stable")[:, :MATES]
    chosen = np.take_along_axis(distance, order, axis=1)
    known = np.isfinite(chosen) & (chosen[:, :1] <= near)
    return Siblings(order, known, known.sum(axis=1))
