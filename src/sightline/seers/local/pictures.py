"""Pictures within an image: places where hardly two neighbours are alike and no text stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.seers.local.boxes import places_in
from sightline.seers.local.colours import commonest, cut
from sightline.seers.local.regions import EVEN, Pixels
from sightline.seers.local.seen import Line, Part

BLOCK = 16  # pixels, by which pictures are looked for
PICTURE = 64  # pixels, its least side


def pictures(pixels: Pixels, lines: Sequence[Line]) -> list[Part]:
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
            found.append(Part("picture", _tight(step, wide), colour, places_in(wide, [line.box for line in lines])))
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
