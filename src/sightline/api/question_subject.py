"""The file that a question is about, and what each model gets of it: the file itself, its pages, or its stills.

A model gets a file only if it is known to take files of that kind. The refusal otherwise says how to declare it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

from sightline.api.file_fitter import MAX_SENT_BYTES, Fit
from sightline.api.input_file import InputFile, check_size, refuse_kind
from sightline.api.session import NATIVE_FORMATS, ToolContext
from sightline.api.views import SourceImage, render_page
from sightline.model.fence import escape_for_brackets, neutralize
from sightline.model.image import Image
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.seer import LOCAL_SEER, Attachment, Seer
from sightline.pixels.file_types import PDF
from sightline.pixels.image_headers import is_animated
from sightline.pixels.probe import probe_within_limits
from sightline.pixels.renderers.renderer import DEFAULT_OPTIONS, RenderOptions
from sightline.settings import Settings
from sightline.vision.capabilities import (
    get_provider_name,
    supports_pdf,
    supports_video,
    supports_vision,
    write_declaration,
)
from sightline.vision.chooser import Candidate
from sightline.vision.providers import LOCAL_READER

Method = Literal["auto", "native", "frames"]
Ability = Literal["vision", "pdf", "video"]
_IMAGE_KINDS = "give a PNG, JPEG, GIF, WEBP or PDF"
_VIDEO_KINDS = "give an MP4, MOV or WebM"
_RENDER_PAGES = "rendering is off here: set render to on to send its pages, or name a model that takes PDFs"
_NAME_VIDEO_MODEL = "name a model that takes videos"
_MAX_PAGES = 20  # some providers take only smaller images if there are more
_READER_PAGES = 4  # of the local reader, which takes seconds for each
_MAX_BYTES = 12 * 1024 * 1024  # of all pages together
_STILLS = RenderOptions(count=12)
_RENDERING_OFF = Refusal(
    "render_unavailable",
    "the model takes no videos, and rendering, which extracts stills, is off here",
    "set render to on, or name a model that takes videos",
    stage="video",
)


@dataclass(frozen=True, slots=True)
class QuestionSubject:
    """The image, PDF or video of a question, and a check of which models take it."""

    sha256: str
    name: str
    admit: Callable[[Candidate], Refusal | None]
    image: Image | None = None
    document: Attachment | None = None
    pages: DocumentPages | None = None  # sent instead of a document that the model doesn't take
    render: Callable[[Candidate], DocumentPages | Refusal | None] = lambda candidate: None  # the pages that it needs

    @property
    def images(self) -> tuple[Image, ...]:
        return self.pages.images if self.pages else (self.image,) if self.image else ()


def open_image_or_pdf(context: ToolContext, settings: Settings, file: InputFile, fit: Fit) -> QuestionSubject | Refusal:
    """Return an image that decodes completely, or a PDF. The first page of another document is an image."""
    if file.kind is PDF:
        paper = check_size(file)
        if isinstance(paper, Refusal):
            return paper
        document = Attachment(file.kind.mime, file.data, name=file.name)
        admit = partial(_admit_pdf, context, settings, fit)
        render = partial(_render_pages, context, settings, fit, file)
        return QuestionSubject(file.sha256, file.name, admit, document=document, render=render)
    if file.kind.family != "bitmap":
        page = _render_page(context, file, fit)
        return page if isinstance(page, Refusal) else open_image_or_pdf(context, settings, page, fit)
    picture = probe_within_limits(file.data)
    refusal = picture if isinstance(picture, Refusal) else _check_sendable(file) if fit == "never" else None
    checked = refusal or context.workers.run_sync("check", file.data)
    if isinstance(picture, Refusal) or isinstance(checked, Refusal):
        return replace(cast("Refusal", checked), stage="file")
    image = Image(file.sha256, picture.mime, picture.size, file.data, picture.is_rotated)
    return QuestionSubject(file.sha256, file.name, partial(_admit_image, settings), image=image)


def _render_page(context: ToolContext, file: InputFile, fit: Fit) -> InputFile | Refusal:
    """Return the first page of a document as an image. What cannot be rendered here is of an unsupported type.

    So is text without a file name: where an image was meant, it is more likely an error message than a document.
    """
    is_wanted = fit == "auto" and (file.kind.family != "text" or file.name)
    page = render_page(context, SourceImage(file.data, "", file.name)) if is_wanted else None
    if page is None or (isinstance(page, Refusal) and page.code in ("render_unavailable", "unsupported_type")):
        return refuse_kind(f"this is {file.kind.name}", _IMAGE_KINDS)
    return replace(page, stage="file") if isinstance(page, Refusal) else InputFile(page.data, file.name)


def _check_sendable(file: InputFile) -> Refusal | None:
    """Return why an image cannot be sent unchanged."""
    if file.kind.mime not in NATIVE_FORMATS:
        return refuse_kind(f"this is {file.kind.name}", "use fit=auto to convert it")
    if len(file.data) > MAX_SENT_BYTES:
        return Refusal("too_large", "the image is larger than 5 MiB", "use fit=auto to shrink it")
    return None


def open_video(context: ToolContext, settings: Settings, film: InputFile, method: Method) -> QuestionSubject | Refusal:
    """Return a video or an animated image. Its stills are drawn only for a model that gets them."""
    if film.kind.family != "video" and not is_animated(film.data):
        return refuse_kind(f"this is {film.kind.name}, not a video", _VIDEO_KINDS)
    return QuestionSubject(
        film.sha256,
        film.name,
        partial(_admit_video, context, settings, film, method),
        document=Attachment(film.kind.mime, film.data, name=film.name),
        render=partial(_render_stills, context, settings, film, method),
    )


_SUPPORTS: Mapping[Ability, Callable[[str, str, Settings], bool]] = {
    "vision": supports_vision,
    "pdf": supports_pdf,
    "video": supports_video,
}


def _supports(ability: Ability, candidate: Candidate, settings: Settings) -> bool:
    """Return whether a candidate takes such files. The local reader and models found on this machine take images."""
    named = candidate.vision_model
    if named is None or named is LOCAL_READER or candidate.on_loopback:
        return ability == "vision"
    return _SUPPORTS[ability](named.model, get_provider_name(named.upstream, settings), settings)


def _declare(ability: Ability, candidate: Candidate, settings: Settings) -> str:
    """Return the remedy for a model that is not known to have an ability."""
    named = candidate.vision_model
    if named is None or named is LOCAL_READER or candidate.on_loopback:
        return "name another model"
    name = f"{get_provider_name(named.upstream, settings)}/{named.model}"
    return f"name another model; if this one does, run: {write_declaration(settings, name, ability)}"


def _refuse_ability(ability: Ability, what: str, remedy: str) -> Refusal:
    return Refusal("unsupported_type", what, remedy, stage=ability)


def _admit_image(settings: Settings, candidate: Candidate) -> Refusal | None:
    if candidate.vision_model is None or _supports("vision", candidate, settings):
        return None
    what = f"{candidate.display_name} is not known to see images"
    return _refuse_ability("vision", what, _declare("vision", candidate, settings))


def _admit_pdf(context: ToolContext, settings: Settings, fit: Fit, candidate: Candidate) -> Refusal | None:
    """Return why a model gets neither the PDF nor its pages."""
    if candidate.vision_model is None or _supports("pdf", candidate, settings):
        return None
    sees = fit == "auto" and _supports("vision", candidate, settings)
    if sees and context.renderers is not None:
        return None
    remedy = _RENDER_PAGES if sees else _declare("pdf", candidate, settings)
    return _refuse_ability("pdf", f"{candidate.display_name} is not known to take PDFs", remedy)


def _render_pages(
    context: ToolContext, settings: Settings, fit: Fit, file: InputFile, candidate: Candidate
) -> DocumentPages | Refusal | None:
    """Return the pages of a PDF for a model that doesn't take it; None: it does, or it gets nothing at all."""
    if candidate.refusal or fit == "never" or _supports("pdf", candidate, settings):
        return None
    if _admit_pdf(context, settings, fit, candidate):
        return None
    return render_pages(context, file, candidate.available_seer)


def _admit_video(
    context: ToolContext, settings: Settings, film: InputFile, method: Method, candidate: Candidate
) -> Refusal | None:
    if candidate.vision_model is None:
        return None
    if candidate.vision_model is LOCAL_READER and candidate.refusal:
        return _refuse_ability("video", f"{candidate.refusal}, and takes no videos: {_NAME_VIDEO_MODEL}", "")
    if _wants_stills(settings, method, candidate):
        if not _supports("vision", candidate, settings):
            what = f"{candidate.display_name} is not known to see images"
            return _refuse_ability("video", what, _declare("vision", candidate, settings))
        return find_missing_rendering(context, film)
    if not _supports("video", candidate, settings) or film.kind.family != "video":
        kind = "videos" if film.kind.family == "video" else "animated images"
        what = f"{candidate.display_name} is not known to take {kind}"
        return _refuse_ability("video", what, _declare("video", candidate, settings))
    size = check_size(film)
    return size if isinstance(size, Refusal) else None


def _wants_stills(settings: Settings, method: Method, candidate: Candidate) -> bool:
    """Return whether a model gets stills: it sees, but takes no videos, or stills were asked for."""
    sees_only = not _supports("video", candidate, settings) and _supports("vision", candidate, settings)
    return method == "frames" or (method == "auto" and sees_only)


def _render_stills(
    context: ToolContext, settings: Settings, film: InputFile, method: Method, candidate: Candidate
) -> DocumentPages | Refusal | None:
    """Return the stills for a model, or None if it gets the video, or nothing: the vision service says why then."""
    if candidate.refusal or _admit_video(context, settings, film, method, candidate):
        return None
    return draw_stills(context, film) if _wants_stills(settings, method, candidate) else None


@dataclass(frozen=True, slots=True)
class DocumentPages:
    """The first pages of a document, or stills of a video, as images."""

    images: tuple[Image, ...]
    total: int  # pages of the whole document
    times: tuple[str, ...] = ()  # of the stills of a video

    def write_line(self, name: str) -> str:
        """Return a line that says which pages these are."""
        which = f"page 1 of {self.total}" if len(self.images) == 1 else f"pages 1 to {len(self.images)} of {self.total}"
        return f"[{which} of {escape_for_brackets(neutralize(name)) or 'the document'}]"


def render_pages(context: ToolContext, file: InputFile, seer: Seer) -> DocumentPages | Refusal:
    """Return as many pages as a seer may be sent at once, up to the first that cannot be drawn."""
    from sightline.pixels.renderers.render_file import RenderRequest, render_first_pages

    if context.renderers is None:
        return Refusal("render_unavailable", "rendering is off here", "set render to on")
    request = RenderRequest(
        context.renderers,
        context.record.images,
        context.scope,
        file.data,
        file.name,
        DEFAULT_OPTIONS,
        file.sha256,
        report=context.report,
    )
    pages = render_first_pages(request, _count_pages(seer.name, seer.limits), _MAX_BYTES)
    if pages is None or isinstance(pages, Refusal):
        return pages or Refusal("render_unavailable", f"this is {file.kind.name}", "convert it to images")
    return DocumentPages(tuple(each.image for each in pages), pages[0].origin.pages)


def _count_pages(seer: str, limits: ImageLimits) -> int:
    """Return how many pages a seer may be sent."""
    most = _READER_PAGES if seer == LOCAL_SEER else _MAX_PAGES
    return max(1, min(most, limits.count or most))


def find_missing_rendering(context: ToolContext, film: InputFile) -> Refusal | None:
    """Return why stills of a video cannot be extracted here: rendering is off, or the renderer is not installed."""
    if context.renderers is None:
        return _RENDERING_OFF
    from sightline.pixels.renderers.choose_renderer import choose_renderer

    renderer = choose_renderer(film.kind, film.data, film.name)
    return replace(renderer, stage="video") if isinstance(renderer, Refusal) else None


def draw_stills(context: ToolContext, film: InputFile) -> DocumentPages | Refusal:
    """Return the stills of a video with their times."""
    if context.renderers is None:
        return _RENDERING_OFF
    from sightline.pixels.renderers.render_file import RenderRequest, render_file

    images = context.record.images
    request = RenderRequest(
        context.renderers, images, context.scope, film.data, film.name, _STILLS, film.sha256, film.large
    )
    drawn = render_file(request)
    if drawn is None:  # no renderer takes such a file
        what = f"stills of {film.kind.name} cannot be extracted"
        return Refusal("unsupported_type", what, "convert the video to MP4", stage="video")
    if isinstance(drawn, Refusal):
        return replace(drawn, stage="file")
    return DocumentPages(tuple(each.image for each in drawn), len(drawn), tuple(each.label for each in drawn))
