"""Crops as a caller writes them: an object with one of three forms, the short text of the command, or a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sightline.model.crop import REGIONS, Crop, Normalized, Pixels, Region, parse
from sightline.model.refusal import Refusal

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
