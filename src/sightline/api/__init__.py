"""The functions that `import sightline` exports: see images, ask about them, read and edit files, call tools.

Each returns a result or a falsy `Failure`; none raises because of a source. `view(path)` blocks, and
`await view.aio(path)` doesn't hold up an event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from sightline.api import analysis, ask, file_fitter, text_files, tool_registry, views
from sightline.api.failure import INTERNAL_ERROR, Failure, never_raise
from sightline.api.file_fitter import SendDecision
from sightline.api.input_file import read_image_input
from sightline.api.question_arguments import CallDetails, list_crops, match_crops, refuse_question
from sightline.api.session import Session, ToolContext
from sightline.api.tool_results import (
    Analysis,
    FileAnswer,
    FileEdit,
    FileText,
    ImageList,
    ListedImage,
    View,
    Wire,
    format_tools,
)
from sightline.model.geometry import CropLike
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.vision.background_loop import with_async

if TYPE_CHECKING:
    from sightline.api.input_file import ImageInput

__all__ = [
    "Analysis",
    "Failure",
    "FileAnswer",
    "FileEdit",
    "FileText",
    "ImageList",
    "ListedImage",
    "SendDecision",
    "Session",
    "View",
    "analyze",
    "call",
    "describe",
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


@with_async
@never_raise(Failure(INTERNAL_ERROR))
def view(
    image: ImageInput,
    *,
    crop: CropLike = None,
    page: int | None = None,
    at: float | None = None,
    lines: str | tuple[int, int] | None = None,
    sheet: bool = False,
    session: Session | None = None,
) -> View | Failure:
    """See an image, or a page of a document: return a View with its pixels, or a Failure.

    image: a path, bytes, a file object, a PIL image, or `sha256:` and at least 12 digits of an image that was seen
        before, with `#crop:X,Y,WIDTH,HEIGHT` if you like; or a web address, if the network is on.
    crop: the part to see: {"region": NAME}, {"normalized": SIDES} or {"pixels": SIDES}, where SIDES are x, y, width
        and height; or the short form of the command line, such as "r=top-left".
    page: the page of a document, from 1.
    at: the time in a video, in seconds.
    lines: the first and the last line of a text, such as "10-40".
    sheet: see several pages, or stills of a video, as one image, from `page` on.
    session: what the call may use; without one, the user's settings and record, and any file.
    """
    given = read_image_input(image)
    return views.view(_open(session), given, crop=crop, page=page, at=at, lines=lines, sheet=sheet)


@with_async
@never_raise(Failure(INTERNAL_ERROR))
def recall(result: dict[str, Json], *, session: Session | None = None) -> View | Failure:
    """Return an earlier view from its result alone: the same pixels, even if the source has changed since.

    result: what `as_dict()` of the view returned, or the JSON that a model read.
    session: what the call may use; without one, the user's settings and record.
    """
    return views.recall(_open(session), result)


@with_async
@never_raise(Failure(INTERNAL_ERROR))
def read_file(
    path: str | PurePath,
    *,
    first: int = 1,
    lines: int = text_files.MAX_LINES,
    character: int = 1,
    session: Session | None = None,
) -> FileText | Failure:
    """Read a text file: return its lines with the token that an edit needs, or a Failure.

    path: the path of the file.
    first: the first line to read, from 1.
    lines: the maximum number of lines.
    character: where to start in the first line, from 1; for lines that are longer than a result.
    session: what the call may use; without one, any file.
    """
    return text_files.read_file(_open(session), _write_path(path), first=first, lines=lines, character=character)


@with_async
@never_raise(Failure(INTERNAL_ERROR))
def edit_file(
    path: str | PurePath, old: str, new: str, token: str, *, session: Session | None = None
) -> FileEdit | Failure:
    """Replace a text that occurs exactly once in a file that has not changed since it was read.

    path: the path of the file.
    old: the text to replace.
    new: the new text.
    token: the token that the last `read_file` returned.
    session: what the call may use; without one, any file.
    """
    return text_files.edit_file(_open(session), _write_path(path), old, new, token)


@with_async
@never_raise(Failure(INTERNAL_ERROR, "analyze"))
def analyze(
    images: ImageInput | Sequence[ImageInput],
    question: str,
    *,
    crop: CropLike | Sequence[CropLike] = None,
    model: str | None = None,
    reason: str | None = None,
    session: Session | None = None,
) -> Analysis | Failure:
    """Ask a vision model about one image, or about several side by side: return an Analysis, or a Failure.

    images: one or a list, each as `view` takes it.
    question: what to ask.
    crop: the part to look at, as `view` takes it; for several images, a list with a crop or None for each.
    model: the model to ask, as PROVIDER/MODEL; None: as the settings say.
    reason: why you ask; only recorded in the ledger.
    session: what the call may use; without one, the user's settings and record, and any file.
    """
    listed = _list_images(images)
    context, crops = _open(session), match_crops(crop, len(listed))
    if isinstance(crops, Refusal):
        return refuse_question(context, CallDetails(listed, question, reason=reason, from_model=True), crops)
    return analysis.analyze(context, listed, question, crop=list_crops(crops), model=model, reason=reason)


@with_async
@never_raise(Failure(INTERNAL_ERROR, "analyze"))
def describe(
    images: ImageInput | Sequence[ImageInput],
    *,
    question: str | None = None,
    crop: CropLike | Sequence[CropLike] = None,
    model: str | None = None,
    save: bool = False,
    page: int | None = None,
    session: Session | None = None,
) -> Analysis | Failure:
    """Ask a vision model, or the local reader, to describe images: return an Analysis, or a Failure.

    images: one or a list, each as `view` takes it.
    question: what to ask instead of a description.
    crop: the part to look at, as `view` takes it; for several images, a list with a crop or None for each.
    model: the model to ask, as PROVIDER/MODEL; None: as the settings say.
    save: store the answer as the image's description; only for one whole image without a question.
    page: the page of a document, from 1.
    session: what the call may use; without one, the user's settings and record, and any file.
    """
    listed = _list_images(images)
    context, crops = _open(session), match_crops(crop, len(listed))
    if isinstance(crops, Refusal):
        return refuse_question(context, CallDetails(listed, question), crops)
    return analysis.describe(
        context, listed, question=question or "", crops=crops, model=model or "", save=save, page=page
    )


@with_async
@never_raise(Failure(INTERNAL_ERROR, "ask"))
def vision_analyze(
    file: ImageInput | None = None,
    *,
    prompt: str | None = None,
    file_path: str | PurePath | None = None,
    file_url: str | None = None,
    file_base64: str | None = None,
    model: str | None = None,
    format: Mapping[str, Any] | None = None,  # noqa: A002, the tool's own name for it
    fit: str | None = None,
    session: Session | None = None,
) -> FileAnswer | Failure:
    """Ask one question about one image or PDF, given in exactly one way: return a FileAnswer, or a Failure.

    file: the file in any form that `view` takes.
    prompt: what to ask.
    file_path: the absolute path of the file.
    file_url: its public https address.
    file_base64: its bytes in base64, or as a data URL.
    model: the model to ask, as PROVIDER/MODEL; None: as the settings say.
    format: {"type": "json_schema", "schema": SCHEMA} to get JSON, as `parsed` of the answer.
    fit: "auto" shrinks an image that is too large, and sends the pages of a PDF to a model that sees but takes no
        PDFs; "never" refuses both; None: as the setting `visionFit` says.
    session: what the call may use; without one, the user's settings and record, and any file.
    """
    return ask.vision_analyze(
        _open(session),
        file=read_image_input(file),
        prompt=prompt,
        file_path=_write_path(file_path),
        file_url=file_url,
        file_base64=file_base64,
        model=model,
        format=format,
        fit=fit,
    )


@with_async
@never_raise(Failure(INTERNAL_ERROR, "ask"))
def video_analyze(
    file: ImageInput | None = None,
    *,
    file_url: str | None = None,
    file_path: str | PurePath | None = None,
    prompt: str | None = None,
    model: str | None = None,
    method: str | None = None,
    session: Session | None = None,
) -> FileAnswer | Failure:
    """Ask one question about one video, given in exactly one way: return a FileAnswer, or a Failure.

    file: the video as a path, bytes or a file object.
    file_url: its public https address.
    file_path: its absolute path.
    prompt: what to ask; None: a detailed description.
    model: the model to ask, as PROVIDER/MODEL; None: as the settings say.
    method: "native" sends the video, "frames" sends stills of it, "auto" uses what the model takes.
    session: what the call may use; without one, the user's settings and record, and any file.
    """
    return ask.video_analyze(
        _open(session),
        file=read_image_input(file),
        file_url=file_url,
        file_path=_write_path(file_path),
        prompt=prompt,
        model=model,
        method=method,
    )


@with_async
@never_raise(Failure(INTERNAL_ERROR))
def call(name: str, arguments: Mapping[str, Any], *, session: Session | None = None) -> tool_registry.ToolResult:
    """Call a tool as a model does: return the result of its function, or a Failure.

    name: the name of a tool that `tools` returns.
    arguments: its arguments, according to its JSON Schema.
    session: what the call may use; without one, the user's settings and record, and the files of the working folder,
        of the temporary one, and of those that the setting `fsReach` names.
    """
    return tool_registry.call_tool((session or Session()).tool_context, name, arguments)


def tools(*, format: Wire | None = None, session: Session | None = None) -> list[Any]:  # noqa: A002
    """Return the tools that a model may call. They only read, unless the session has `can_edit`.

    format: "openai", "openai_responses", "anthropic", "gemini" or "mcp" for the shape that this API takes; None: a
        neutral form with what a host should know about each tool. An unknown format is a ValueError.
    session: what the calls may use; without one, the user's settings.
    """
    listed = tool_registry.list_tools((session or Session()).tool_context)
    return listed if format is None else format_tools(listed, format)


def _open(session: Session | None) -> ToolContext:
    return (session or Session()).context


def _list_images(images: Any) -> list[Any]:
    """Return the images of a call as a list; one alone is a list of one."""
    return [read_image_input(each) for each in (images if isinstance(images, list | tuple) else [images])]


def _write_path(path: object) -> object:
    return str(path) if isinstance(path, PurePath) else path


fit_for = with_async(never_raise(Failure(INTERNAL_ERROR))(file_fitter.fit_for))
may_send = never_raise(SendDecision(ok=False, warning=str(INTERNAL_ERROR)))(file_fitter.may_send)
