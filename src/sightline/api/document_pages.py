"""The pages of a document, or the stills of a video, for a model that sees images but doesn't take such files."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sightline.api.input_file import InputFile
from sightline.api.session import ToolContext
from sightline.model.fence import escape_for_brackets, neutralize
from sightline.model.image import Image
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.seer import LOCAL_SEER, Seer
from sightline.pixels.renderers.renderer import DEFAULT_OPTIONS, RenderOptions

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
