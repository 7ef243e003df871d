"""Find the lines between the columns of a table: where drawn cells touch each other in almost all rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.regions import ColourRegion

LINE = (5, 0.35)  # pixels, and heights of a line: how far apart cells with a line between them are, at most
SAME = 3  # pixels by which the places of one line may differ
MOST = 0.6  # share of the rows that have a line: a cell may be over several columns
FULL = 0.8  # share of the distance of two rows that a cell has as its height, at least
SIDES = 0.5  # share of its height in which a cell reaches its left and its right end
SLACK = 2  # pixels by which text may be higher than its cell


class CellEdges:
    """The left and the right ends of what may be the cells of a table."""

    def __init__(self, regions: Sequence[ColourRegion] = ()) -> None:
        boxes = [region.box for region in regions if region.sides >= SIDES]
        edges = [(box.x, box.right, box.y, box.bottom) for box in boxes]
        self._edges = np.array(edges, dtype=np.int64).reshape(-1, 4)

    def find_bars(self, rows: Sequence[Box], em: float) -> list[tuple[int, frozenset[int]]]:
        """Return where lines are between texts, from left to right, each with the indexes of the rows that have it."""
        if len(rows) < 2 or not len(self._edges):
            return []
        pitch = median(below.y - above.y for above, below in pairwise(rows))
        high = self._edges[:, 3] - self._edges[:, 2]
        tall = self._edges[high >= max(FULL * pitch, em)]
        places: dict[int, set[int]] = {}
        for at, row in enumerate(rows):
            own = tall[(tall[:, 2] <= row.y + SLACK) & (tall[:, 3] >= row.bottom - SLACK)]
            for place in _list_meetings(own, max(LINE[0], LINE[1] * em)):
                near = next((known for known in range(place - SAME, place + SAME + 1) if known in places), place)
                places.setdefault(near, set()).add(at)
        return sorted((place, frozenset(own)) for place, own in places.items() if len(own) >= MOST * len(rows))


def _list_meetings(cells: np.ndarray[tuple[int, int], np.dtype[np.int64]], most: float) -> list[int]:
    """Return the middles of the blanks between cells that are beside each other."""
    lefts, rights = np.unique(cells[:, 0]), np.unique(cells[:, 1])
    if not len(lefts) or not len(rights):
        return []
    next_left = np.searchsorted(lefts, rights)
    known = next_left < len(lefts)
    starts, ends = lefts[next_left[known]], rights[known]
    meet = starts - ends <= most
    return [int(place) for place in np.unique((starts[meet] + ends[meet]) // 2)]
