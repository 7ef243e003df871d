"""The picture of one line, upright, and the way from it back to the image."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.model.geometry import Box
from sightline.seers.local.detect import Spot

Pixels = NDArray[np.uint8]

UPRIGHT, UPWARD, OVER, DOWNWARD = range(4)
"""How letters stand: as they should, reading from bottom to top, on their heads, reading from top to bottom."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle of the image, turned so that its letters stand upright."""

    picture: Pixels
    origin: tuple[float, float]  # where its upper left corner lies in the image,
    along: tuple[float, float]  # and where its upper edge runs
    core: tuple[int, int, int, int]  # left, top, right, bottom in it, of what is text for sure

    def box(self, left: float, top: float, right: float, bottom: float) -> Box:
        """The whole pixels of the image around a rectangle of the picture."""
        (x, y), (across, down) = self.origin, self.along
        corners = [(x + a * across - b * down, y + a * down + b * across) for a in (left, right) for b in (top, bottom)]
        low = [math.floor(min(values) + 0.01) for values in zip(*corners, strict=True)]
        high = [math.ceil(max(values) - 0.01) for values in zip(*corners, strict=True)]
        return Box(max(0, low[0]), max(0, low[1]), high[0] - max(0, low[0]), high[1] - max(0, low[1]))


def framed(pixels: Pixels, spot: Spot, turn: int = UPRIGHT) -> Frame:
    return _level(pixels, spot, turn) if not spot.tilt else _tilted(pixels, spot, turn)


def _level(pixels: Pixels, spot: Spot, turn: int) -> Frame:
    height, width = pixels.shape[:2]
    left, top = max(0, math.floor(spot.x - spot.width / 2)), max(0, math.floor(spot.y - spot.height / 2))
    right = min(width, max(left + 1, math.ceil(spot.x + spot.width / 2)))
    bottom = min(height, max(top + 1, math.ceil(spot.y + spot.height / 2)))
    picture = np.rot90(pixels[top:bottom, left:right], -turn)
    origin, along = (
        ((left, top), (1, 0)),
        ((left, bottom), (0, -1)),
        ((right, bottom), (-1, 0)),
        ((right, top), (0, 1)),
    )[turn]
    return Frame(picture, origin, along, _core(picture, spot.growth))


def _tilted(pixels: Pixels, spot: Spot, turn: int) -> Frame:
    angle = spot.tilt - turn * math.pi / 2
    width, height = (spot.width, spot.height) if turn % 2 == 0 else (spot.height, spot.width)
    cos, sin = math.cos(angle), math.sin(angle)
    x = spot.x - (width * cos - height * sin) / 2
    y = spot.y - (width * sin + height * cos) / 2
    size = max(1, round(width)), max(1, round(height))
    # What lies far off need not be handed over: only the square around the line is.
    reach = math.hypot(width, height) / 2 + 2
    left, top = max(0, math.floor(spot.x - reach)), max(0, math.floor(spot.y - reach))
    near = Image.fromarray(pixels[top : math.ceil(spot.y + reach), left : math.ceil(spot.x + reach)])
    way = (cos, -sin, x - left, sin, cos, y - top)
    edge = tuple(int(level) for level in np.median(np.asarray(near), axis=(0, 1)))
    picture = near.transform(size, Image.Transform.AFFINE, way, Image.Resampling.BICUBIC, fillcolor=edge)
    return Frame(np.asarray(picture), (x, y), (cos, sin), _core(np.asarray(picture), spot.growth))


def _core(picture: Pixels, growth: float) -> tuple[int, int, int, int]:
    """What the network itself marked: at least a pixel in the middle."""
    height, width = picture.shape[:2]
    left, top = min(int(growth), (width - 1) // 2), min(int(growth), (height - 1) // 2)
    return left, top, max(left + 1, width - left), max(top + 1, height - top)
