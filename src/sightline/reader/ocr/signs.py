"""Tell signs of monospaced text by their ink alone: quotes, dots, dashes, and what else has a simple shape.

The network seldom knows rows that have nothing else, such as three quotes, and a page may have no other sample of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Inked = NDArray[np.bool_]  # rows x columns of one column of the text

# All in heights of a capital, above the line on which letters stand.
_HIGH, _RAISED = 0.7, 0.4  # where quotes and carets begin, at least, and end
_LOW, _SUNK = 0.4, -0.12  # where a dot begins, at most, and ends, at least
_MIDDLE = (0.2, 0.65)  # where a dash is
_DOT = (0.08, 0.26)  # the height of a dot
_THIN = 0.26  # the height of a dash
_LONG = 1.1  # the height of a bracket
_DEEP = -0.15  # where a vertical bar ends, at most: it goes below the line, which no letter of this shape does
_SPREAD = 0.8  # from the top of an equals sign to its bottom
# In widths of a column.
_WIDE, _NARROW = 0.45, 0.45  # a dash or a caret, at least, and a dot, at most
_BAR = 0.3  # a vertical bar, at most
_ASLANT = 0.6  # a backtick, at most
_STRAIGHT, _TICK = 0.07, 0.15  # how straight a bracket is, and how far its ends go to one side
_SLANTED, _UPRIGHT = 0.12, 0.04  # how far a backtick goes to the right, at least, and a quote to a side, at most
_FULL = 0.85  # share of a dash that is ink
_UNEVEN = 2  # times as long as the other one may be the part of a plus on one side of its middle


def name_sign(inked: Inked, base: int, capital: int, pitch: float) -> str | None:
    """Return the sign that a column shows, or None. `base` is the row on which letters stand."""
    rows, columns = (_find_runs(np.logical_or.reduce(inked, axis)) for axis in (1, 0))
    if not rows or not columns:
        return None
    top, bottom = (base - rows[0][0]) / capital, (base - rows[-1][1]) / capital
    width = (columns[-1][1] - columns[0][0]) / pitch
    if width <= _NARROW and len(columns) == 1 and (point := _name_point(rows, base, capital)):
        return point
    if len(rows) == 1 and top >= _HIGH and bottom >= _RAISED:
        return _name_raised(inked[slice(*rows[0])], columns, width)
    if len(rows) == len(columns) == 1 and rows[0] != (0, len(inked)):  # else something is drawn through the line
        joined = _name_joined(inked[slice(*rows[0])], top, bottom, pitch)
        if joined:
            return joined
    bars = [row for row in rows if _is_bar(inked[slice(*row)], capital, width)]
    middle = (top + bottom) / 2
    if len(bars) == len(rows) <= 2 and _MIDDLE[0] <= middle <= _MIDDLE[1] and top - bottom <= _SPREAD:
        return "-" if len(rows) == 1 else "="
    return None


def _name_point(rows: list[tuple[int, int]], base: int, capital: int) -> str | None:
    """Return a dot, a comma, a colon or a semicolon."""
    top, bottom = (base - rows[0][0]) / capital, (base - rows[-1][1]) / capital
    if len(rows) == 1 and top <= _LOW:
        return _name_low(top - bottom, bottom, ".", ",")
    if len(rows) == 2 and _is_colon([(base - y) / capital for row in rows for y in row]):
        return _name_low((rows[1][1] - rows[1][0]) / capital, bottom, ":", ";")
    return None


def _name_joined(inked: Inked, top: float, bottom: float, pitch: float) -> str | None:
    """Return a sign of strokes that touch each other, or of one: a square bracket, a vertical bar or a plus."""
    wide = int(inked.any(0).sum()) / pitch
    if top - bottom >= _LONG and bottom < 0:
        return "|" if bottom <= _DEEP and wide <= _BAR and inked.all(0).any() else _name_bracket(inked, pitch)
    return "+" if wide >= _WIDE and bottom >= _SUNK and _is_cross(inked) else None


def _name_bracket(inked: Inked, pitch: float) -> str | None:
    """Return a square bracket: a straight stroke that goes to one side at both of its ends."""
    lefts, rights = inked.argmax(1), inked.shape[1] - inked[:, ::-1].argmax(1)
    slack, tick = max(1, _STRAIGHT * pitch), _TICK * pitch
    for sign, straight, ends in (("[", lefts, rights), ("]", -rights, -lefts)):
        usual = np.median(ends)
        if np.ptp(straight) <= slack and min(ends[0], ends[-1]) - usual >= tick and inked[0].any() and inked[-1].any():
            return sign
    return None


def _name_low(high: float, bottom: float, dot: str, comma: str) -> str | None:
    """Return one of two signs: a dot is as high as wide and ends where letters do, a comma is higher and goes below."""
    if high <= _DOT[1] and bottom >= _SUNK:
        return dot
    return comma if high > _DOT[1] and bottom < 0 else None


def _is_colon(ends: list[float]) -> bool:
    """Return whether two marks are a dot in the middle and another one, or a comma, on the line below."""
    top, middle, low, _ = ends
    return top <= _HIGH + 0.1 and _DOT[0] <= top - middle <= _DOT[1] and 0 < low <= _LOW


def _name_raised(inked: Inked, columns: list[tuple[int, int]], width: float) -> str | None:
    """Return a quote of two strokes or of one, a caret, which is one stroke above and two below, or a backtick."""
    if len(columns) == 2:
        return '"'
    if len(columns) != 1:
        return None
    above, below = (_find_runs(row) for row in (inked[0], inked[-1]))
    if len(above) == 1 and len(below) == 2:
        return "^" if width >= _WIDE else None
    return _name_tick(inked, (columns[0][1] - columns[0][0]) / width) if width <= _ASLANT else None


def _name_tick(inked: Inked, pitch: float) -> str | None:
    """Return a backtick, which goes to the right from top to bottom, or an upright quote."""
    aside = (_find_middle(inked[-1]) - _find_middle(inked[0])) / pitch
    if aside >= _SLANTED:
        return "`"
    return "'" if abs(aside) <= _UPRIGHT and len(inked) > np.count_nonzero(inked.any(0)) else None


def _find_middle(inked: Inked) -> float:
    return float(np.flatnonzero(inked).mean())


def _is_bar(inked: Inked, capital: int, width: float) -> bool:
    """Return whether rows are a flat stroke without holes."""
    columns = np.flatnonzero(inked.any(0))
    filled = float(inked[:, columns[0] : columns[-1] + 1].mean())
    return len(inked) <= max(2, _THIN * capital) and width >= _WIDE and filled >= _FULL


def _is_cross(inked: Inked) -> bool:
    """Return whether ink is two strokes, one across the middle of the other, and nothing else."""
    cut = inked[:, inked.any(0)]
    bars = [_find_runs(cut.mean(axis) >= _FULL) for axis in (1, 0)]
    if not all(len(runs) == 1 for runs in bars):
        return False
    (top, bottom), (left, right) = bars[0][0], bars[1][0]
    sides = [(top, len(cut) - bottom), (left, cut.shape[1] - right)]
    corners = [
        cut[row, column] for row in (slice(top), slice(bottom, None)) for column in (slice(left), slice(right, None))
    ]
    even = all(0 < max(pair) <= _UNEVEN * min(pair) for pair in sides)
    return even and not any(corner.any() for corner in corners)


def _find_runs(inked: Inked) -> list[tuple[int, int]]:
    """Return where runs begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inked, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
