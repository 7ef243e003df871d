"""QR and bar codes. Where the library for them is missing, none are found."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.seers.local.seen import Code


def codes(pixels: NDArray[np.uint8]) -> tuple[Code, ...]:
    """What the codes in an image say, each with the rectangle around it."""
    try:
        import zxingcpp
    except ImportError:
        return ()
    height, width = pixels.shape[:2]
    step = math.ceil(math.sqrt(height * width / _MOST))
    seen = np.ascontiguousarray(pixels[::step, ::step])
    found = []
    for each in zxingcpp.read_barcodes(seen):  # it takes red for blue; a code is dark on light in either
        corners = [getattr(each.position, corner) for corner in _CORNERS]
        xs = sorted(min(width, max(0, corner.x * step)) for corner in corners)
        ys = sorted(min(height, max(0, corner.y * step)) for corner in corners)
        box = Box(xs[0], ys[0], max(1, xs[-1] - xs[0]), max(1, ys[-1] - ys[0]))
        found.append(Code(str(each.format), each.text, box))
    return tuple(sorted(found, key=lambda code: (code.box.y, code.box.x)))


_MOST = 16_000_000  # pixels that are searched; of a larger image every second, third, ... is
_CORNERS = ("top_left", "top_right", "bottom_right", "bottom_left")
