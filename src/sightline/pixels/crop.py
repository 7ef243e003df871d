"""A part of a bitmap, at its own resolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from pyvips import Image as Bitmap


def cut(image: Bitmap, box: Box) -> Bitmap | Refusal:
    """The pixels in `box`. A box that is not all inside is refused: the whole image never stands in for a part."""
    size = Size(image.width, image.height)
    inside = box.x >= 0 and box.y >= 0 and box.right <= size.width and box.bottom <= size.height
    if not inside or box.width < 1 or box.height < 1:
        return Refusal("invalid_input", f"the crop {box} is not inside the image of {size}", "give one that is")
    return image.crop(box.x, box.y, box.width, box.height)
