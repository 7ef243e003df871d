"""Places in an image that lies on its side or on its head, and the same places once it stands upright."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sightline.model.geometry import Box, Size
from sightline.seers.local.regions import Pixels
from sightline.seers.local.seen import Seen


def turned_pixels(pixels: Pixels, degrees: int) -> Pixels:
    """The image turned clockwise by some quarters."""
    return np.ascontiguousarray(np.rot90(pixels, -(degrees // 90))) if degrees else pixels


def turned_box(box: Box, size: Size, degrees: int) -> Box:
    """Where a rectangle of an image of that size stands when the image is turned clockwise."""
    match degrees % 360:
        case 90:
            return Box(size.height - box.bottom, box.x, box.height, box.width)
        case 180:
            return Box(size.width - box.right, size.height - box.bottom, box.width, box.height)
        case 270:
            return Box(box.y, size.width - box.right, box.height, box.width)
        case _:
            return box


def turned_back(seen: Seen, size: Size, degrees: int) -> Seen:
    """What was seen in an image after it was turned, in the pixels of that image, which has this size."""
    if not degrees:
        return seen

    def back(box: Box) -> Box:
        return turned_box(box, seen.size, 360 - degrees)

    return replace(_placed(seen, back), size=size, turned=degrees)


def _placed(seen: Seen, back: Callable[[Box], Box]) -> Seen:
    return replace(
        seen,
        lines=tuple(replace(line, box=back(line.box)) for line in seen.lines),
        parts=tuple(replace(part, box=back(part.box)) for part in seen.parts),
        tables=tuple(replace(table, box=back(table.box)) for table in seen.tables),
        charts=tuple(
            replace(chart, box=back(chart.box), marks=tuple(replace(mark, box=back(mark.box)) for mark in chart.marks))
            for chart in seen.charts
        ),
        codes=tuple(replace(code, box=back(code.box)) for code in seen.codes),
    )
