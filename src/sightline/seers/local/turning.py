"""Places in an image that lies on its side or on its head, and the same places once it stands upright."""

from __future__ import annotations

import numpy as np

from sightline.model.geometry import Box, Size
from sightline.seers.local.regions import Pixels


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
