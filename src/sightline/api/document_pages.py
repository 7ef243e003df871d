"""The pages of a document, or the stills of a video, for a model that sees images but doesn't take such files."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.api.input_file import InputFile
from sightline.api.session import ToolContext
from sightline.model.fence import escape_for_brackets, neutralize
from sightline.model.image import Image
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.seer import LOCAL_SEER, Seer
from sightline.pixels.renderers.renderer import DEFAULT_OPTIONS

_MAX_PAGES = 20  # some providers take only smaller images if there are more
_READER_PAGES = 4  # of the local reader, which takes seconds for each
_MAX_BYTES = 12 * 1024 * 1024  # of all pages together


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
