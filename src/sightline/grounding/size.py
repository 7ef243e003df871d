"""The size in which a model that answers in pixels sees an image, so that it can be sent in that very size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sightline.model.geometry import Size


@dataclass(frozen=True, slots=True)
class Grid:
    """Both sides are multiples of `step`, and the area is within bounds; the shape may change a little."""

    step: int
    fewest: int  # pixels
    most: int

    def seen(self, size: Size) -> Size:
        width, height = (max(self.step, round(side / self.step) * self.step) for side in (size.width, size.height))
        if width * height > self.most:
            scale = math.sqrt(self.most / size.pixels) / self.step
            return Size(*(max(1, math.floor(side * scale)) * self.step for side in (size.width, size.height)))
        if width * height < self.fewest:
            scale = math.sqrt(self.fewest / size.pixels) / self.step
            return Size(*(math.ceil(side * scale) * self.step for side in (size.width, size.height)))
        return Size(width, height)


# The area is the smallest that servers of the family are set to: what is within it is within every larger one.
GRIDS: Mapping[str, Grid] = {
    "qwen_pixels": Grid(28, 4 * 28 * 28, 1280 * 28 * 28),
    "uitars_pixels": Grid(28, 100 * 28 * 28, 1280 * 28 * 28),
}
