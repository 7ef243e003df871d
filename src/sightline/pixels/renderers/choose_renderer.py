"""Which renderer draws a file: the list of them, and the choice. `renderer.py` says how to write one."""

from __future__ import annotations

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import FileType
from sightline.pixels.renderers.animation import ANIMATION_RENDERER
from sightline.pixels.renderers.chromium import CHROMIUM_RENDERER
from sightline.pixels.renderers.delimited_table import TABLE_RENDERER
from sightline.pixels.renderers.markdown import MARKDOWN_RENDERER, NOTEBOOK_RENDERER
from sightline.pixels.renderers.office import LIBREOFFICE_RENDERER, OFFICE_RENDERER
from sightline.pixels.renderers.pdf import PDF_RENDERER
from sightline.pixels.renderers.renderer import DEFAULT_OPTIONS, Renderer, RenderOptions, get_suffix
from sightline.pixels.renderers.source_code import CODE_RENDERER, DIFF_RENDERER, JSON_RENDERER
from sightline.pixels.renderers.svg import SVG_RENDERER
from sightline.pixels.renderers.video import VIDEO_RENDERER
from sightline.pixels.renderers.web_page import WEB_PAGE_RENDERER

# The first renderer that takes a file and has what it needs draws it: special ones come before general ones.
RENDERERS: tuple[Renderer, ...] = (
    SVG_RENDERER,
    VIDEO_RENDERER,
    ANIMATION_RENDERER,
    PDF_RENDERER,
    LIBREOFFICE_RENDERER,
    OFFICE_RENDERER,
    NOTEBOOK_RENDERER,
    MARKDOWN_RENDERER,
    TABLE_RENDERER,
    JSON_RENDERER,
    DIFF_RENDERER,
    CHROMIUM_RENDERER,
    WEB_PAGE_RENDERER,
    CODE_RENDERER,
)


def choose_renderer(
    kind: FileType, data: bytes, name: str, options: RenderOptions = DEFAULT_OPTIONS, *, programs: bool = True
) -> Renderer | Refusal | None:
    """Return the renderer for a file, a refusal that says how to install it, or None if there is no such renderer.

    If some lines were asked for, one that shows the source is preferred. Without `programs` none is started.
    """
    suffix = get_suffix(name)
    candidates = [each for each in RENDERERS if each.takes(kind, data, suffix) and (programs or not each.convert)]
    if options.lines is not None:
        candidates = [each for each in candidates if "lines" in each.options] or candidates
    if not candidates:
        return None
    ready = next((each for each in candidates if not each.find_missing()), None)
    if ready is None:
        missing = candidates[0].find_missing()
        return Refusal(
            "render_unavailable", f"this is {kind.name}, and its renderer is not installed", f"run: {missing}"
        )
    if len(data) > ready.max_bytes:
        limit = f"{ready.max_bytes >> 20} MiB"
        return Refusal("too_large", f"this is {kind.name} of more than {limit}", "give a smaller one")
    return ready


def find_renderer(name: str) -> Renderer:
    """Return the renderer of a name."""
    return next(each for each in RENDERERS if each.name == name)
