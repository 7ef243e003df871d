"""Which part of an image is meant."""

from __future__ import annotations

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal


def inside(box: Box, size: Size) -> Box | Refusal:
    """Return the box, or a refusal where it is empty or not all inside: the whole never stands in for a part."""
    fits = box.x >= 0 and box.y >= 0 and box.right <= size.width and box.bottom <= size.height
    if fits and box.width >= 1 and box.height >= 1:
        return box
    return Refusal("invalid_input", f"the crop {box} is not inside the image of {size}", "give one that is")
