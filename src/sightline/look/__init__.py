"""The library's front door: look at a source, read it, edit it; each a plain function that never raises.

`view(path)` waits; `await view.aio(path)` does not hold up an event loop. Both are the same function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from sightline.look import ask, offered, peers, text, views
from sightline.look.analyze_result import Analysis, Failed
from sightline.look.ask_envelope import Envelope, Unanswered
from sightline.look.both import Both
from sightline.look.crops import CropLike
from sightline.look.doors import Door, door
from sightline.look.peers import Sending
from sightline.look.results import FAULT, Edited, Refused, Result, Text, View, promised
from sightline.model.scene import Json

__all__ = [
    "Analysis",
    "Door",
    "Edited",
    "Envelope",
    "Failed",
    "Refused",
    "Result",
    "Sending",
    "Text",
    "Unanswered",
    "View",
    "analyze",
    "call",
    "describe",
    "door",
    "edit_file",
    "fit_for",
    "may_send",
    "read_file",
    "recall",
    "tools",
    "video_analyze",
    "view",
    "vision_analyze",
]


@Both
@promised(Refused.of(FAULT))
def view(
    path: str | PurePath,
    *,
    crop: CropLike = None,
    page: int | None = None,
    at: float | None = None,
    through: Door | None = None,
) -> View | Refused:
    """See the image at a path, or one of the record by its `sha256:…`."""
    return views.view(through or door(), _text(path), crop=crop, page=page, at=at)


@Both
@promised(Refused.of(FAULT))
def recall(result: dict[str, Json], *, through: Door | None = None) -> View | Refused:
    """A view that was given before, by its result alone."""
    return views.recall(through or door(), result)


@Both
@promised(Refused.of(FAULT))
def read_file(
    path: str | PurePath,
    *,
    first: int = 1,
    lines: int = text.MOST_LINES,
    character: int = 1,
    through: Door | None = None,
) -> Text | Refused:
    """Read a text file, and get the token that an edit of it needs."""
    return text.read_file(through or door(), _text(path), first=first, lines=lines, character=character)


@Both
@promised(Refused.of(FAULT))
def edit_file(path: str | PurePath, old: str, new: str, token: str, *, through: Door | None = None) -> Edited | Refused:
    """Replace a text that stands once in a file that was read as it is now."""
    return text.edit_file(through or door(), _text(path), old, new, token)


@Both
@promised(Failed.of(FAULT))
def analyze(
    images: str | PurePath | Sequence[str | PurePath],
    question: str,
    *,
    crop: Sequence[Mapping[str, Any]] | None = None,
    model: str | None = None,
    reason: str | None = None,
    through: Door | None = None,
) -> Analysis | Failed:
    """Ask somebody who sees about images: paths, or `sha256:…` of the record, each perhaps cropped."""
    from sightline.look import analyze_image as analyses

    return analyses.analyze(through or door(), _list(images), question, crop=crop, model=model, reason=reason)


@Both
@promised(Failed.of(FAULT))
def describe(
    images: str | PurePath | Sequence[str | PurePath],
    *,
    question: str = "",
    crops: Mapping[int, CropLike] | None = None,
    model: str = "",
    save: bool = False,
    through: Door | None = None,
) -> Analysis | Failed:
    """What is to be seen; with `save`, from now on the image's description."""
    from sightline.look import analyze_image as analyses

    asked = _list(images)
    return analyses.describe(through or door(), asked, question=question, crops=crops, model=model, save=save)


@Both
@promised(Unanswered("LLM_ERROR", str(FAULT)))
def vision_analyze(
    *,
    prompt: str | None = None,
    file_path: str | PurePath | None = None,
    file_url: str | None = None,
    file_base64: str | None = None,
    model: str | None = None,
    format: Mapping[str, Any] | None = None,  # noqa: A002, the tool's own word
    fit: str | None = None,
    through: Door | None = None,
) -> Envelope | Unanswered:
    """Ask one question about one image or PDF; with `format`, for an answer in JSON."""
    return ask.vision_analyze(
        through or door(),
        prompt=prompt,
        file_path=_text(file_path),
        file_url=file_url,
        file_base64=file_base64,
        model=model,
        format=format,
        fit=fit,
    )


@Both
@promised(Unanswered("LLM_ERROR", str(FAULT)))
def video_analyze(
    *,
    file_url: str | None = None,
    file_path: str | PurePath | None = None,
    prompt: str | None = None,
    model: str | None = None,
    method: str | None = None,
    through: Door | None = None,
) -> Envelope | Unanswered:
    """Ask one question about one video; without a prompt, for a description in detail."""
    place, given = through or door(), _text(file_path)
    return ask.video_analyze(place, file_url=file_url, file_path=given, prompt=prompt, model=model, method=method)


@Both
@promised(Refused.of(FAULT))
def call(name: str, arguments: Mapping[str, Any], *, through: Door | None = None) -> offered.Outcome:
    """Call a tool by its name, as a model does."""
    return offered.call(through or door(), name, arguments)


def tools(*, through: Door | None = None) -> list[dict[str, Json]]:
    """The tools that are offered, with their JSON schemas."""
    return offered.tools(through or door())


def _list(images: object) -> Any:
    """The images of a call as a list; one alone is a list of one."""
    some = [images] if isinstance(images, str | PurePath) else images
    return [_text(each) for each in some] if isinstance(some, list | tuple) else some


def _text(path: object) -> object:
    """What a model gives is text, what a program gives may be a path."""
    return str(path) if isinstance(path, PurePath) else path


fit_for = Both(promised(FAULT)(peers.fit_for))
may_send = promised(Sending(ok=False, warning=str(FAULT)))(peers.may_send)
