"""Crops as a caller writes them, and the part of an image that one means, cut and made to fit in a worker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sightline.model.crop import REGIONS, Crop, Normalized, Pixels, Region, inside, parse, resolve
from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.pixels.bitmap import decode_part
from sightline.pixels.decode_limits import within_bounds
from sightline.pixels.fit import answer, fit_bitmap, target_of

AS_IT_IS = 8 * 1024 * 1024  # bytes of an image that is shown or sent as it is
CropLike = Crop | str | Mapping[str, Any] | None
FORMS = ("region", "normalized", "pixels")
SIDES = ("x", "y", "width", "height")


def crop_of(value: object) -> Crop | Refusal | None:
    if value is None or isinstance(value, (Region, Normalized, Pixels)):
        return value
    if isinstance(value, str):
        return parse(value)
    if not isinstance(value, Mapping):
        return _NO_CROP
    given = [form for form in FORMS if value.get(form) is not None]
    if len(given) != 1 or set(value) - set(FORMS):
        return Refusal("invalid_input", "a crop has exactly one form", f"give one of {', '.join(FORMS)}")
    return _formed(given[0], value[given[0]])


def written_crop(crop: Crop) -> dict[str, Any]:
    """The object that `crop_of` reads."""
    if isinstance(crop, Region):
        return {"region": crop.name}
    sides = {side: getattr(crop, side) for side in SIDES}
    return {"normalized" if isinstance(crop, Normalized) else "pixels": sides}


def _formed(form: str, value: object) -> Crop | Refusal:
    if form == "region":
        known = isinstance(value, str) and value in REGIONS
        return Region(str(value)) if known else Refusal("invalid_input", f"there is no region {value!r:.60}", _REGIONS)
    if not isinstance(value, Mapping) or set(value) != set(SIDES) or not all(map(_number, value.values())):
        return _NO_CROP
    sides = [float(value[side]) for side in SIDES]
    return Normalized(*sides) if form == "normalized" else Pixels(*sides)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9


_REGIONS = f"one of {', '.join(REGIONS)}"
_NO_CROP = Refusal("invalid_input", "that is no crop", "give x, y, width and height as numbers")


TASK = {"part": "sightline.pixels.part:part_task"}


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
