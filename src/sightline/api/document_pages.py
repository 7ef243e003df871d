"""The pages of a document for a model that sees images but doesn't take such documents."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.api.input_file import InputFile
from sightline.api.session import ToolContext
from sightline.model.image import Image
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.seer import LOCAL_SEER, Seer
from sightline.pixels.renderers.renderer import RenderOptions

_MAX_PAGES = 20  # some providers take only smaller images if there are more
_READER_PAGES = 4  # of the local reader, which takes seconds for each
_MAX_BYTES = 12 * 1024 * 1024  # of all pages together


@dataclass(frozen=True, slots=True)
class DocumentPages:
    """The first pages of a document, as images."""

    images: tuple[Image, ...]
    total: int  # pages of the whole document

    def write_line(self, name: str) -> str:
        """Return a line that says which pages these are."""
        which = f"page 1 of {self.total}" if len(self.images) == 1 else f"pages 1 to {len(self.images)} of {self.total}"
        return f"[{which} of {name or 'the document'}]"


def render_pages(context: ToolContext, file: InputFile, seer: Seer) -> DocumentPages | Refusal:
    """Return as many pages as a seer may be sent at once, up to the first that cannot be drawn.

    Each page is rendered by itself, so that a heavy one has time of its own, and later calls find it in the record.
    """
    from sightline.pixels.renderers.render_file import RenderRequest, render_file

    if context.renderers is None:
        return Refusal("render_unavailable", "rendering is off here", "set render to on")
    images, total, sha256 = list[Image](), 1, file.sha256
    while len(images) < min(total, _count_pages(seer.name, seer.limits)):
        options = RenderOptions(page=len(images) + 1)
        request = RenderRequest(
            context.renderers, context.record.images, context.scope, file.data, file.name, options, sha256
        )
        drawn = render_file(request)
        if drawn is None or isinstance(drawn, Refusal):
            if not images:
                return drawn or Refusal("render_unavailable", f"this is {file.kind.name}", "convert it to images")
            break
        images.append(drawn[0].image)
        total = drawn[0].origin.pages
        if sum(len(each.data) for each in images) > _MAX_BYTES:
            break
    return DocumentPages(tuple(images), total)


def _count_pages(seer: str, limits: ImageLimits) -> int:
    """Return how many pages a seer may be sent."""
    most = _READER_PAGES if seer == LOCAL_SEER else _MAX_PAGES
    return max(1, min(most, limits.count or most))
