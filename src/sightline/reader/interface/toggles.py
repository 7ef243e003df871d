"""Find check boxes and radio buttons, and read their state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.colours import colour_distance, crop_pixels, distances_from, most_common_colour
from sightline.reader.layout.page_text import letter_size
from sightline.reader.reading import Colour, InterfacePart, TextLine
from sightline.reader.rectangles import is_inside
from sightline.reader.regions import Pixels

CHECK = (9, 30)  # the side of a check box
MARK = 0.05  # share of its pixels that the tick covers
DOT, EMPTIED = 0.3, 0.33  # of the width of a circle: less is the radius of a dot in it, more what is empty
PALE = 60  # what the channels of a colour differ by at most, where a circle is empty
TALLER, CAPITAL = 1.15, 0.74  # a circle is this much higher than a capital, which is this share of the letter size


def find_toggles(pixels: Pixels, lines: Sequence[TextLine]) -> list[InterfacePart]:
    """Find small squares and circles directly before a line; they are too small to be regions."""
    found = ((place, _read_toggle(pixels, line)) for place, line in enumerate(lines) if not _is_toggle_glyph(line))
    texts = [line for line in lines if not _is_toggle_glyph(line)]
    return [
        replace(part, lines=(place,))
        for place, part in found
        if part and not any(is_inside(part.box, line.box, slack=1) for line in texts)
    ]


def remove_toggle_glyphs(lines: Sequence[TextLine], marks: Sequence[InterfacePart]) -> list[TextLine]:
    """Remove lines that are such a mark, read as a letter."""
    return [
        line for line in lines if not (_is_toggle_glyph(line) and any(is_inside(line.box, mark.box) for mark in marks))
    ]


def _is_toggle_glyph(line: TextLine) -> bool:
    """Return whether a line is a single letter as wide as high, which may be a circle or a square."""
    width, height = line.box.width, line.box.height
    return len(line.text) == 1 and min(width, height) >= CHECK[0] - 2 and abs(width - height) <= 0.25 * height


def _read_toggle(pixels: Pixels, line: TextLine) -> InterfacePart | None:
    box = line.box
    reach = 2 * CHECK[1]
    place = Box(box.x - 2 - reach, box.y + box.height // 2 - CHECK[1] // 2 - 3, reach, CHECK[1] + 6)
    left, top = max(0, place.x), max(0, place.y)
    around = pixels[top : place.bottom, left : max(0, place.right)]
    if around.shape[0] < CHECK[0] or around.shape[1] < CHECK[0]:
        return None
    ground = most_common_colour(around.reshape(-1, 3))
    inked = distances_from(around, ground) > 24
    columns = _last_run(np.any(inked, axis=0))
    rows = _last_run(np.any(inked[:, columns.start : columns.stop], axis=1))
    square = Box(left + columns.start, top + rows.start, len(columns), len(rows))
    side = max(len(columns), len(rows))
    if not (CHECK[0] <= side <= CHECK[1] and abs(len(columns) - len(rows)) <= 0.15 * side):
        return None
    drawn = inked[rows.start : rows.stop, columns.start : columns.stop]
    if _is_circle(drawn):
        return _is_selected(pixels, square) if side >= TALLER * CAPITAL * letter_size(line) else None
    return _is_checked(pixels, square, ground) if _has_four_sides(drawn) else None


def _last_run(any_: NDArray[np.bool_]) -> range:
    """Return the last run of places that hold."""
    places = np.flatnonzero(any_)
    if not len(places):
        return range(0)
    breaks = np.flatnonzero(np.diff(places) > 1)
    return range(int(places[breaks[-1] + 1] if len(breaks) else places[0]), int(places[-1]) + 1)


def _has_four_sides(inked: NDArray[np.bool_]) -> bool:
    """Return whether the four sides are drawn, corners aside."""
    sides = (inked[0, 2:-2], inked[-1, 2:-2], inked[2:-2, 0], inked[2:-2, -1])
    return all(side.mean() >= 0.85 for side in sides)


def _is_circle(inked: NDArray[np.bool_]) -> bool:
    """Return whether a circle is drawn: ink all along it, and none in the corners."""
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


def _is_selected(pixels: Pixels, circle: Box) -> InterfacePart:
    """Return whether a circle has a dot, by how far its middle extends."""
    across = pixels[circle.y + circle.height // 2, circle.x : circle.right]
    middle = most_common_colour(crop_pixels(pixels, circle, more=-int(0.42 * circle.width)).reshape(-1, 3))
    other = np.flatnonzero(distances_from(across[None, : len(across) // 2], middle)[0] > 60)
    reach = 0.5 - (int(other[-1]) + 1 if len(other) else 0) / len(across)
    empty = EMPTIED < reach < 0.5 and max(middle) - min(middle) < PALE
    return InterfacePart("radio", circle, middle, (), checked=True if reach < DOT else False if empty else None)


def _is_checked(pixels: Pixels, square: Box, ground: Colour) -> InterfacePart | None:
    """Return whether a box has a mark in it; None for a plain patch of colour, which is no box."""
    inner = crop_pixels(pixels, square, more=-2).reshape(-1, 3)
    fill = most_common_colour(inner)
    marked = float((distances_from(inner, fill) > 60).mean())
    if marked >= MARK:
        return InterfacePart("check", square, fill, (), checked=True)
    border = most_common_colour(pixels[square.y : square.y + 1, square.x + 2 : square.right - 2].reshape(-1, 3))
    empty = marked == 0 and colour_distance(border, fill) >= 16 and colour_distance(border, ground) >= 16
    return InterfacePart("check", square, fill, (), checked=False) if empty else None
