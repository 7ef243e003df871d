"""The arguments of a question as a model, a person or a program gives them: read, or refused with a ledger entry.

Calls that are not refused here are recorded by the vision service.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sightline.api.failure import Failure
from sightline.api.input_file import GivenImage
from sightline.api.session import ToolContext
from sightline.model.facts import NO_COORDINATES
from sightline.model.fence import replace_surrogates
from sightline.model.geometry import (
    CROP_KEYS,
    Crop,
    CropLike,
    FractionCrop,
    NamedCrop,
    PixelCrop,
    parse_crop,
)
from sightline.model.records import EntryKind, LedgerEntry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.sources import RecordReference, parse_reference


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


_MAX_TEXT = 4000  # characters of a refused question, which may be of any length
_MAX_IMAGES = 100
_DIGITS = 64


@dataclass(frozen=True, slots=True)
class CallDetails:
    """The arguments of a question about images as they were given: each may be anything."""

    images: object = ()
    question: object = ""
    crop: object = None
    reason: object = None
    from_model: bool = False


def refuse_question(context: ToolContext, details: CallDetails, refusal: Refusal) -> Failure:
    """Refuse a call of `analyze_image`, or a `describe`, and note it."""
    images = list(details.images)[:_MAX_IMAGES] if isinstance(details.images, list | tuple) else []
    crops = read_crops(details.crop, len(images))
    forms: list[Json] = [
        name_crop_form(None if isinstance(crops, Refusal) else crops.get(index)) for index in range(len(images))
    ]
    for index, each in enumerate(images):
        if isinstance(reference := _parse(each), RecordReference) and reference.crop:
            forms[index] = "pixels"
    about: dict[str, Json] = {
        "question": _write_text(details.question),
        "reason": _write_text(details.reason),
        "grounding_format": NO_COORDINATES,
        "crop_form": forms,
        "crop_resolved_pixels": [None] * len(images),
    }
    kind: EntryKind = "vision_proxy.tool_call" if details.from_model else "vision_proxy.command"
    hashes = tuple(_find_hashes(images))
    context.record.ledger.add_entry(context.scope, LedgerEntry(kind, hashes, about=about, error=refusal.code))
    return Failure(refusal, "analyze")


def refuse_file_question(context: ToolContext, tool: str, prompt: object, refusal: Refusal) -> Failure:
    """Refuse a call of `vision_analyze` or `video_analyze`, and note it."""
    failure = Failure(refusal, "ask")
    about = describe_file_question(tool, _write_text(prompt), NO_COORDINATES)
    entry = LedgerEntry("vision_proxy.tool_call", about=about, error=failure.prefix)
    context.record.ledger.add_entry(context.scope, entry)
    return failure


def describe_file_question(tool: str, prompt: str, form: str) -> dict[str, Json]:
    """Return what the ledger says about a question about one file."""
    return {"tool": tool, "question": prompt, "grounding_format": form, "crop_form": "none"}


def _find_hashes(images: Sequence[object]) -> Iterator[str]:
    """Yield the sha256 of the images that are given or named by it; others are not known."""
    for each in images:
        if isinstance(each, GivenImage):
            yield hashlib.sha256(each.data).hexdigest()
        elif isinstance(reference := _parse(each), RecordReference) and len(reference.sha256) == _DIGITS:
            yield reference.sha256


def _parse(image: object) -> object:
    return parse_reference(image) if isinstance(image, str) else None


def _write_text(value: object) -> str:
    return replace_surrogates(value[:_MAX_TEXT]) if isinstance(value, str) else ""
