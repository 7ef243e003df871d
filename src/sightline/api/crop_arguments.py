"""The crops of a call: parsed from what a model, a person or a program gives, and named for the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sightline.model.geometry import (
    CROP_KEYS,
    Crop,
    CropLike,
    FractionCrop,
    NamedCrop,
    PixelCrop,
    parse_crop,
)
from sightline.model.refusal import Refusal


def match_crops(crop: object, images: int) -> dict[int, Crop] | Refusal:
    """Return the crops of a program, one for one image or a list with one for each, by the index of their image."""
    if not isinstance(crop, list | tuple):
        crop = [] if crop is None else [crop]
    if crop and len(crop) != images:
        what = f"crop has {len(crop)} entries for {images} images"
        return Refusal("invalid_input", what, "give a list with a crop or None for each image")
    found: dict[int, Crop] = {}
    for index, form in enumerate(crop):
        part = parse_crop(form)
        if isinstance(part, Refusal):
            return replace(part, what=f"the crop of image {index}: {part.what}")
        if part is not None:
            found[index] = part
    return found


def list_crops(crops: Mapping[int, CropLike]) -> list[dict[str, object]]:
    """Return crops as a list of entries, as a model writes them."""
    return [{"image_index": index, "form": form} for index, form in crops.items()]


def read_crops(entries: object, images: int) -> dict[int, Crop] | Refusal:
    """Return crops by the index of their image. Each entry has an index and one form, and no image has two."""
    if entries is None:
        return {}
    if not isinstance(entries, list | tuple):
        return Refusal("invalid_input", "crop must be a list", "give a list of entries with image_index and one form")
    found: dict[int, Crop] = {}
    for entry in entries:
        one = _read_crop(entry, images)
        if isinstance(one, Refusal):
            return one
        index, part = one
        if index in found:
            return Refusal("invalid_input", f"image {index} has two crops", "give one crop for each image")
        found[index] = part
    return found


def _read_crop(entry: object, images: int) -> tuple[int, Crop] | Refusal:
    if not isinstance(entry, Mapping):
        return Refusal("invalid_input", "an entry of crop must be an object", "give image_index and one form")
    index = entry.get("image_index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < images:
        what = f"there is no image {index!r:.20} to crop"
        return Refusal("invalid_input", what, f"image_index counts from 0 to {images - 1}")
    if isinstance(entry.get("form"), str | NamedCrop | FractionCrop | PixelCrop) and len(entry) == 2:
        part = parse_crop(entry["form"])  # from the command line or a program
    else:
        part = parse_crop({name: value for name, value in entry.items() if name != "image_index"})
    if part is None or isinstance(part, Refusal):
        refusal = part or Refusal("invalid_input", "a crop has exactly one form", f"give one of {', '.join(CROP_KEYS)}")
        return replace(refusal, what=f"the crop of image {index}: {refusal.what}")
    return index, part


def name_crop_form(crop: Crop | None) -> str:
    """Return the name of a crop's form in the ledger."""
    match crop:
        case NamedCrop():
            return "region"
        case FractionCrop():
            return "normalized"
        case PixelCrop():
            return "pixels"
    return "none"
