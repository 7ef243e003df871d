"""Refuse calls before the vision service is asked, and add each to the ledger. The service records all other calls."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sightline.api.crop_arguments import name_crop_form, read_crops
from sightline.api.failure import Failure
from sightline.api.input_file import GivenImage
from sightline.api.session import ToolContext
from sightline.model.facts import NO_COORDINATES
from sightline.model.fence import replace_surrogates
from sightline.model.records import EntryKind, LedgerEntry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.sources.reference import RecordReference, parse_reference

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
