"""Stills of a video, for models that see images but take no videos."""

from __future__ import annotations

from dataclasses import replace

from sightline.api.document_pages import DocumentPages
from sightline.api.input_file import InputFile
from sightline.api.session import ToolContext
from sightline.model.refusal import Refusal
from sightline.pixels.renderers.renderer import RenderOptions

_STILLS = RenderOptions(count=12)
_RENDERING_OFF = Refusal(
    "render_unavailable",
    "the model takes no videos, and rendering, which extracts stills, is off here",
    "set render to on, or name a model that takes videos",
    stage="video",
)


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
