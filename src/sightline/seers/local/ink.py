"""Where exactly the ink of a line is, inside the rough rectangle in which it was found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_FAINT = 16  # shades: less than that is not ink, whatever the rest
_SHARE = 0.3  # of the strongest contrast: less is the ground's own unevenness
_BRIDGE = 0.12  # of the height: the gap between an i and its dot
_RULE = 0.9  # of the width: a row so full is a rule, not letters


def mask_of(picture: Pixels) -> Mask:
    """The pixels that stand out from the commonest colour."""
    ground = _ground(picture)
    apart = np.maximum(picture, ground) - np.minimum(picture, ground)
    contrast = np.maximum(np.maximum(apart[:, :, 0], apart[:, :, 1]), apart[:, :, 2])
    counts = np.bincount(contrast.ravel(), minlength=256)[::-1].cumsum()
    strong = 255 - int(np.searchsorted(counts, max(1, contrast.size // 50)))
    mask: Mask = contrast > max(_FAINT, _SHARE * strong)
    return mask


def _ground(picture: Pixels) -> Pixels:
    rough = (picture >> 4).astype(np.uint16)
    key = (rough[:, :, 0] << 8 | rough[:, :, 1] << 4 | rough[:, :, 2]).ravel()
    common = picture.reshape(-1, 3)[key == np.bincount(key).argmax()]
    ground: Pixels = np.rint(common.mean(0)).astype(np.uint8)
    return ground


def band(mask: Mask, core: tuple[int, int, int, int]) -> tuple[int, int]:
    """The first row of the letters and the one after their last; the same twice where there are none."""
    left, top, right, bottom = core
    share = mask[:, left:right].mean(1)
    inked = (share > 0) & (share < _RULE)
    inked[top:bottom] = share[top:bottom] > 0
    inside = np.flatnonzero(inked[top:bottom])
    if not len(inside):
        return top, top
    gap = max(1, round(_BRIDGE * len(mask)))
    last = len(mask) - 1
    upward = _reach(inked[::-1], last - top - int(inside[0]), gap)
    return last + 1 - upward, _reach(inked, top + int(inside[-1]), gap)


def _reach(inked: Mask, place: int, gap: int) -> int:
    """One past the last row that belongs to the run at `place`, across a gap that something whole stands behind."""
    end = _ended(inked, place)
    beyond = next((row for row in range(end, min(len(inked), end + gap + 1)) if inked[row]), None)
    if beyond is None:
        return end
    further = _ended(inked, beyond)
    return further if further < len(inked) else end  # what the edge cuts off is the neighbour's


def _ended(inked: Mask, place: int) -> int:
    while place < len(inked) and inked[place]:
        place += 1
    return place


def strokes(mask: Mask, first: int, last: int) -> list[tuple[int, int]]:
    """The runs of columns with ink in those rows: start and end of each."""
    edges = np.diff(mask[first:last].any(0).astype(np.int8), prepend=0, append=0)
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def rows(mask: Mask, within: tuple[int, int], columns: tuple[int, int]) -> tuple[int, int]:
    """The first row with ink in those columns and the one after the last; all rows where there is none."""
    inked = np.flatnonzero(mask[within[0] : within[1], columns[0] : columns[1]].any(1))
    return (within[0] + int(inked[0]), within[0] + int(inked[-1]) + 1) if len(inked) else within
