"""The circle or the square before an option is no letter of its text: it is left out before the line is read."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from sightline.seers.local import ink
from sightline.seers.local.frames import Frame

_REACH = 4.0  # heights of the line: so much of its beginning is looked at
_LEAST = 9  # pixels: the side of a mark
_SQUARE = 0.15  # what its sides may differ by
_GAP = 0.2  # of its side is blank behind it, at least


def unmarked(frame: Frame) -> Frame:
    """The line without a mark at its beginning, where there is one."""
    start = _text_after_mark(ink.mask_of(frame.picture[:, : int(_REACH * len(frame.picture))]))
    if not start:
        return frame
    (x, y), (across, down) = frame.origin, frame.along
    left, top, right, bottom = frame.core
    core = (max(0, left - start), top, max(1, right - start), bottom)
    return replace(frame, picture=frame.picture[:, start:], origin=(x + start * across, y + start * down), core=core)


def _text_after_mark(mask: ink.Mask) -> int:
    """The column at which the text begins, behind a mark that reaches above and below it; 0 where there is none."""
    height = len(mask)
    strokes = ink.strokes(mask, 0, height)
    if len(strokes) < 2:
        return 0
    (left, right), (after, _) = strokes[:2]
    side, blank = right - left, after - right
    top, bottom = ink.rows(mask, (0, height), (left, right))
    if side < _LEAST or abs(bottom - top - side) > max(1, _SQUARE * side) or blank < _GAP * side:
        return 0
    reaches = [ink.rows(mask, (0, height), stroke) for stroke in strokes[1:]]
    foot = median(below for _, below in reaches)
    over = top < min(above for above, _ in reaches) and bottom > foot
    return right + blank // 2 if over and _closed(mask[top:bottom, left:right]) else 0


def _closed(mark: ink.Mask) -> bool:
    """Whether a line runs around it: every row has ink at both sides, and every column above and below."""
    down, across = len(mark) // 2, len(mark[0]) // 2
    beside = mark[1:-1, :across].any(1).all() and mark[1:-1, across:].any(1).all()
    return bool(beside and mark[:down, 1:-1].any(0).all() and mark[down:, 1:-1].any(0).all())
