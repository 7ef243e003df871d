"""A part of a bitmap, at its own resolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from pyvips import Image as Bitmap


def cut(image: Bitmap, box: Box) -> Bitmap | Refusal:
    """The pixels in `box`. A box that is not all inside is refused: the whole image never stands in for a part."""
    found = inside(box, Size(image.width, image.height))
    return found if isinstance(found, Refusal) else image.crop(box.x, box.y, box.width, box.height)


def inside(box: Box, size: Size) -> Box | Refusal:
    """Return the box, or a refusal where it is empty or not all inside an image of this size."""
    fits = box.x >= 0 and box.y >= 0 and box.right <= size.width and box.bottom <= size.height
    if fits and box.width >= 1 and box.height >= 1:
        return box
    return Refusal("invalid_input", f"the crop {box} is not inside the image of {size}", "give one that is")
