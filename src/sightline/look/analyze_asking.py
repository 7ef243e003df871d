"""What a call of `analyze` or `describe` asks for: every argument may be a model's, and anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sightline.look.crops import FORMS, crop_of
from sightline.model.crop import Crop, Normalized, Pixels, Region
from sightline.model.fence import sound
from sightline.model.refusal import Refusal
from sightline.vision.prompts import QUESTION, TOGETHER

LONGEST_QUESTION = 4000


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked of whom; without a question, what anybody would ask."""

    images: tuple[object, ...]
    crops: Mapping[int, Crop]
    question: str = ""
    model: str = ""
    by_tool: bool = False  # a model asks, whose question says all that it wants to know
    save: bool = False  # the answer becomes the image's description
    reason: str = ""

    @property
    def words(self) -> str:
        return self.question or (QUESTION if len(self.images) == 1 else TOGETHER)


def by_tool(
    images: object, question: object, crop: object, model: object, reason: object, most: int
) -> Asking | Refusal:
    """A model asks: it has a question, and perhaps a reason."""
    if not isinstance(question, str) or not question.strip():
        return Refusal("invalid_input", "the question is empty", "ask one")
    if reason is not None and not isinstance(reason, str):
        return Refusal("invalid_input", "the reason is not text", "leave it out")
    asking = checked(images, question, crop, model, most)
    return asking if isinstance(asking, Refusal) else replace(asking, by_tool=True, reason=sound(reason or ""))


def checked(images: object, question: str, crop: object, model: object, most: int) -> Asking | Refusal:
    """The arguments of a call, if they make sense; `most` is how many images one may have."""
    if len(question) > LONGEST_QUESTION:
        remedy = f"ask in at most {LONGEST_QUESTION:,}"
        return Refusal("invalid_input", f"the question has {len(question):,} characters", remedy)
    if not isinstance(images, list | tuple) or not images:
        return Refusal("invalid_input", "no image is named", "give a list of paths or sha256: references")
    if len(images) > most:
        remedy = f"give at most {most} in a call (maxImagesPerCall)"
        return Refusal("invalid_input", f"there are {len(images)} images", remedy)
    if model is not None and not isinstance(model, str):
        return Refusal("invalid_input", "the model is not text", "write PROVIDER/MODEL")
    crops = crops_of(crop, len(images))
    return crops if isinstance(crops, Refusal) else Asking(tuple(images), crops, sound(question), sound(model or ""))


def crops_of(entries: object, images: int) -> dict[int, Crop] | Refusal:
    """Crops by the index of their image: each has one, in one form, and no image has two."""
    if entries is None:
        return {}
    if not isinstance(entries, list | tuple):
        return Refusal("invalid_input", "crop is not a list", "give a list of entries with image_index and one form")
    found: dict[int, Crop] = {}
    for entry in entries:
        one = _entry(entry, images)
        if isinstance(one, Refusal):
            return one
        index, part = one
        if index in found:
            return Refusal("invalid_input", f"image {index} has two crops", "give one crop for each image")
        found[index] = part
    return found


def _entry(entry: object, images: int) -> tuple[int, Crop] | Refusal:
    if not isinstance(entry, Mapping):
        return Refusal("invalid_input", "an entry of crop is not an object", "give image_index and one form")
    index = entry.get("image_index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < images:
        what = f"there is no image {index!r:.20} to crop"
        return Refusal("invalid_input", what, f"image_index counts from 0 to {images - 1}")
    if isinstance(entry.get("form"), str | Region | Normalized | Pixels) and len(entry) == 2:
        part = crop_of(entry["form"])  # as a person writes it, or a program holds it
    else:
        part = crop_of({name: value for name, value in entry.items() if name != "image_index"})
    if part is None or isinstance(part, Refusal):
        no = part or Refusal("invalid_input", "a crop has exactly one form", f"give one of {', '.join(FORMS)}")
        return replace(no, what=f"the crop of image {index}: {no.what}")
    return index, part


def form_of(crop: Crop | None) -> str:
    """The form of a crop by the name that entries of the record use."""
    match crop:
        case Region():
            return "region"
        case Normalized():
            return "normalized"
        case Pixels():
            return "pixels"
    return "none"
