"""The library's front door: look at a source, read it, edit it; each a plain function that never raises.

`view(path)` waits; `await view.aio(path)` does not hold up an event loop. Both are the same function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from sightline.api import analysis, ask, peers, text, toolset, views
from sightline.api.peers import Sending
from sightline.api.results import FAULT, Analysis, Edited, Envelope, Refused, Result, Text, View, promised
from sightline.api.session import Door, door
from sightline.api.views import Listed
from sightline.model.scene import Json
from sightline.pixels.part import CropLike
from sightline.vision.bridge import both

__all__ = [
    "Analysis",
    "Door",
    "Edited",
    "Envelope",
    "Listed",
    "Refused",
    "Result",
    "Sending",
    "Text",
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


@both
@promised(Refused(FAULT))
def view(
    path: str | PurePath,
    *,
    crop: CropLike = None,
    page: int | None = None,
    at: float | None = None,
    through: Door | None = None,
) -> View | Refused:
    """See the image at a path, or one of the record by its `sha256:…`: a View, or a Refused that says why not.

    path: a file that may be read, or `sha256:` and at least 12 digits, perhaps with `#crop:X,Y,WIDTH,HEIGHT`.
    crop: a part of it: {"region": NAME}, {"normalized": SIDES} or {"pixels": SIDES}, where SIDES are x, y, width and
        height; or the short text of the command line, such as "r=top-left".
    page: of a document, from 1; an image has one.
    at: the moment of a video, in seconds; an image has none.
    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
    return views.view(through or door(), _text(path), crop=crop, page=page, at=at)


@both
@promised(Refused(FAULT))
def recall(result: dict[str, Json], *, through: Door | None = None) -> View | Refused:
    """A view that was given before, by its result alone: the same pixels, however its source has changed.

    result: what `as_dict()` of the view gave, or the JSON that a model read.
    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
    return views.recall(through or door(), result)


@both
@promised(Refused(FAULT))
def read_file(
    path: str | PurePath,
    *,
    first: int = 1,
    lines: int = text.MOST_LINES,
    character: int = 1,
    through: Door | None = None,
) -> Text | Refused:
    """Read a text file, and get the token that an edit of it needs: a Text, or a Refused.

    path: a file that may be read.
    first: the line to begin with, from 1.
    lines: how many at most.
    character: of the first line to begin with, from 1; for lines that are longer than a result.
    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
    return text.read_file(through or door(), _text(path), first=first, lines=lines, character=character)


@both
@promised(Refused(FAULT))
def edit_file(path: str | PurePath, old: str, new: str, token: str, *, through: Door | None = None) -> Edited | Refused:
    """Replace a text that stands once in a file that was read as it is now: an Edited, or a Refused.

    path: the file that was read.
    old: what stands in it, exactly once.
    new: what shall stand there.
    token: of the `read_file` that has seen the file as it is now.
    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
    return text.edit_file(through or door(), _text(path), old, new, token)


@both
@promised(Refused(FAULT, "analyze"))
def analyze(
    images: str | PurePath | Sequence[str | PurePath],
    question: str,
    *,
    crop: Sequence[Mapping[str, Any]] | None = None,
    model: str | None = None,
    reason: str | None = None,
    through: Door | None = None,
) -> Analysis | Refused:
    """Ask a vision model about images, side by side where there are several: an Analysis, or a Refused.

    images: one or a list, each a path or `sha256:…` of the record.
    question: what you want to know of them.
    crop: parts of them, each an object with `image_index` (from 0) and one of `region`, `normalized` and `pixels`.
    model: who is asked, as PROVIDER/MODEL; else as the settings say.
    reason: why you ask; it is noted, and goes to nobody.
    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
    return analysis.analyze(through or door(), _list(images), question, crop=crop, model=model, reason=reason)


@both
@promised(Refused(FAULT, "analyze"))
def describe(
    images: str | PurePath | Sequence[str | PurePath],
    *,
    question: str = "",
    crops: Mapping[int, CropLike] | None = None,
    model: str = "",
    save: bool = False,
    through: Door | None = None,
) -> Analysis | Refused:
    """Ask a vision model for all that is to be seen: an Analysis, or a Refused.

    images: one or a list, each a path or `sha256:…` of the record.
    question: what you want to know instead.
    crops: parts of them, by the number of the image from 0, each as `view` takes a crop.
    model: who is asked, as PROVIDER/MODEL; else as the settings say.
    save: make the answer the description of the image from now on; for one whole image without a question.
    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
    asked = _list(images)
    return analysis.describe(through or door(), asked, question=question, crops=crops, model=model, save=save)


@both
@promised(Refused(FAULT, "ask"))
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
) -> Envelope | Refused:
    """Ask one question about one image or PDF: an Envelope, or a Refused. Exactly one file is given.

    prompt: what you want to know.
    file_path: the absolute path of the file.
    file_url: its public https address.
    file_base64: its bytes, perhaps as a data URL.
    model: who is asked, as PROVIDER/MODEL; else as the settings say.
    format: {"type": "json_schema", "schema": SCHEMA} for an answer in JSON, which then stands in `parsed`.
    fit: "auto" makes what is too large smaller, "never" refuses it; else as the setting `visionFit` says.
    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
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


@both
@promised(Refused(FAULT, "ask"))
def video_analyze(
    *,
    file_url: str | None = None,
    file_path: str | PurePath | None = None,
    prompt: str | None = None,
    model: str | None = None,
    method: str | None = None,
    through: Door | None = None,
) -> Envelope | Refused:
    """Ask one question about one video: an Envelope, or a Refused. Exactly one file is given.

    file_url: the public https address of the video.
    file_path: its absolute path.
    prompt: what you want to know; without one, the video is described in detail.
    model: who is asked, as PROVIDER/MODEL; else as the settings say.
    method: "native" sends the video itself, "frames" stills of it, "auto" what the model takes.
    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
    place, given = through or door(), _text(file_path)
    return ask.video_analyze(place, file_url=file_url, file_path=given, prompt=prompt, model=model, method=method)


@both
@promised(Refused(FAULT))
def call(name: str, arguments: Mapping[str, Any], *, through: Door | None = None) -> toolset.Outcome:
    """Call a tool by its name, as a model does: the result of its function.

    name: one of those that `tools` lists.
    arguments: as its JSON schema says.
    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
    return toolset.call(through or door(), name, arguments)


def tools(*, through: Door | None = None) -> list[dict[str, Json]]:
    """The tools that are offered, with their JSON schemas, for function calling.

    through: whose eyes these are, as `sightline.door()` gives them; else the user's own.
    """
    return toolset.tools(through or door())


def _list(images: object) -> Any:
    """The images of a call as a list; one alone is a list of one."""
    some = [images] if isinstance(images, str | PurePath) else images
    return [_text(each) for each in some] if isinstance(some, list | tuple) else some


def _text(path: object) -> object:
    """What a model gives is text, what a program gives may be a path."""
    return str(path) if isinstance(path, PurePath) else path


fit_for = both(promised(Refused(FAULT))(peers.fit_for))
may_send = promised(Sending(ok=False, warning=str(FAULT)))(peers.may_send)
