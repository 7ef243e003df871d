"""Check boxes and radio buttons: small squares and circles right before a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.seers.local.boxes import inside
from sightline.seers.local.colours import apart, commonest, cut, distance
from sightline.seers.local.regions import Pixels
from sightline.seers.local.seen import Colour, Line, Part
from sightline.seers.local.titles import letter_size

CHECK = (9, 30)  # the side of a check box
MARK = 0.05  # of its pixels are the tick
DOT, EMPTIED = 0.3, 0.33  # of the width of a circle: less is the radius of a dot in it, more what is empty
PALE = 60  # what the channels of a colour differ by at most, where a circle is empty
TALLER, CAPITAL = 1.15, 0.74  # a circle is so much higher than a capital, which is so much of the size of a letter


def toggles(pixels: Pixels, lines: Sequence[Line]) -> list[Part]:
    """Small squares and circles right before a line. They are too small for regions: each place is looked at alone."""
    found = ((place, _toggle(pixels, line)) for place, line in enumerate(lines) if not _is_glyph(line))
    texts = [line for line in lines if not _is_glyph(line)]
    return [
        replace(part, lines=(place,))
        for place, part in found
        if part and not any(inside(part.box, line.box, slack=1) for line in texts)
    ]


def without_glyphs(lines: Sequence[Line], marks: Sequence[Part]) -> list[Line]:
    """The lines but for those that are such a mark, read as a letter."""
    return [line for line in lines if not (_is_glyph(line) and any(inside(line.box, mark.box) for mark in marks))]


def _is_glyph(line: Line) -> bool:
    """A single letter as wide as high may be a circle or a square."""
    width, height = line.box.width, line.box.height
    return len(line.text) == 1 and min(width, height) >= CHECK[0] - 2 and abs(width - height) <= 0.25 * height


def _toggle(pixels: Pixels, line: Line) -> Part | None:
    box = line.box
    reach = 2 * CHECK[1]
    place = Box(box.x - 2 - reach, box.y + box.height // 2 - CHECK[1] // 2 - 3, reach, CHECK[1] + 6)
    left, top = max(0, place.x), max(0, place.y)
    around = pixels[top : place.bottom, left : max(0, place.right)]
    if around.shape[0] < CHECK[0] or around.shape[1] < CHECK[0]:
        return None
    ground = commonest(around.reshape(-1, 3))
    inked = apart(around, ground) > 24
    columns = _last_run(np.any(inked, axis=0))
    rows = _last_run(np.any(inked[:, columns.start : columns.stop], axis=1))
    square = Box(left + columns.start, top + rows.start, len(columns), len(rows))
    side = max(len(columns), len(rows))
    if not (CHECK[0] <= side <= CHECK[1] and abs(len(columns) - len(rows)) <= 0.15 * side):
        return None
    drawn = inked[rows.start : rows.stop, columns.start : columns.stop]
    if _round(drawn):
        return _chosen(pixels, square) if side >= TALLER * CAPITAL * letter_size(line) else None
    return _ticked(pixels, square, ground) if _edged(drawn) else None


def _last_run(any_: NDArray[np.bool_]) -> range:
    """The last stretch of those that hold."""
    places = np.flatnonzero(any_)
    if not len(places):
        return range(0)
    breaks = np.flatnonzero(np.diff(places) > 1)
    return range(int(places[breaks[-1] + 1] if len(breaks) else places[0]), int(places[-1]) + 1)


def _edged(inked: NDArray[np.bool_]) -> bool:
    """Whether the four sides are drawn, their corners aside."""
    sides = (inked[0, 2:-2], inked[-1, 2:-2], inked[2:-2, 0], inked[2:-2, -1])
    return all(side.mean() >= 0.85 for side in sides)


def _round(inked: NDArray[np.bool_]) -> bool:
    """Whether a circle is drawn: ink all along it, and none in the corners."""
    side = len(inked)
    corner = side // 7
    corners = [inked[y, x] for y in (corner // 2, -1 - corner // 2) for x in (corner // 2, -1 - corner // 2)]
    if any(corners):
        return False
    angle = np.linspace(0, 2 * np.pi, 32, endpoint=False)
    along = np.zeros(len(angle), dtype=bool)
    for inward in (0.5, 1.5, 2.5):  # a thin line, drawn softly, is not on every pixel of its way
        y = np.clip(len(inked) / 2 + (len(inked) / 2 - inward) * np.sin(angle), 0, len(inked) - 1).astype(int)
        x = np.clip(len(inked[0]) / 2 + (len(inked[0]) / 2 - inward) * np.cos(angle), 0, len(inked[0]) - 1).astype(int)
        along |= inked[y, x]
    return bool(along.mean() >= 0.9)


def _chosen(pixels: Pixels, circle: Box) -> Part:
    """By how far its middle reaches: that of an empty circle to the ring, a dot not as far, that of a disc all over."""
    across = pixels[circle.y + circle.height // 2, circle.x : circle.right]
    middle = commonest(cut(pixels, circle, more=-int(0.42 * circle.width)).reshape(-1, 3))
    other = np.flatnonzero(apart(across[None, : len(across) // 2], middle)[0] > 60)
    reach = 0.5 - (int(other[-1]) + 1 if len(other) else 0) / len(across)
    empty = EMPTIED < reach < 0.5 and max(middle) - min(middle) < PALE
    return Part("radio", circle, middle, (), checked=True if reach < DOT else False if empty else None)


def _ticked(pixels: Pixels, square: Box, ground: Colour) -> Part | None:
    """A box with a mark in it is ticked, an empty one with a border is not, a plain patch of colour is no box."""
    inner = cut(pixels, square, more=-2).reshape(-1, 3)
    fill = commonest(inner)
    marked = float((apart(inner, fill) > 60).mean())
    if marked >= MARK:
        return Part("check", square, fill, (), checked=True)
    border = commonest(pixels[square.y : square.y + 1, square.x + 2 : square.right - 2].reshape(-1, 3))
    empty = marked == 0 and distance(border, fill) >= 16 and distance(border, ground) >= 16
    return Part("check", square, fill, (), checked=False) if empty else None
