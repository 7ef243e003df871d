"""Part of an image, made to fit: the work of a view that changes pixels, for a worker."""

from __future__ import annotations

from functools import partial
from typing import Any

from sightline.look.crops import crop_of
from sightline.model.crop import Crop, inside, resolve
from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.pixels.bitmap import decode_part
from sightline.pixels.decode_limits import within_bounds
from sightline.pixels.fit import answer, fit_bitmap, target_of

TASK = {"part": "sightline.look.part:part_task"}


def part_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Like `fit_task`, of the part that `crop` names; it answers also how large the whole is, and which part it was."""
    picture = within_bounds(data)
    crop = crop_of(arguments["crop"])
    assert crop is not None, "without a crop there is no part"
    if isinstance(picture, Refusal):
        return picture
    if isinstance(crop, Refusal):
        return crop
    found = decode_part(data, picture, partial(_chosen, crop))
    if isinstance(found, Refusal):
        return found
    made = fit_bitmap(found.bitmap, found.box.size, target_of(arguments))
    if isinstance(made, Refusal):
        return made
    facts, files = answer(made)
    whole, box = found.whole, found.box
    return {**facts, "whole": [whole.width, whole.height], "box": [box.x, box.y, box.width, box.height]}, files


def _chosen(crop: Crop, size: Size) -> Box | Refusal:
    box = resolve(crop, size)
    return box if isinstance(box, Refusal) else inside(box, size)
