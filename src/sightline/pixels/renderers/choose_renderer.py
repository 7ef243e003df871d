"""Which renderer draws a file: the list of them, the choice, and the tasks of the workers that render.

`renderer.py` says how to write a renderer; `start_renderers` of this package starts the workers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import FileType
from sightline.pixels.renderers.animation import ANIMATION_RENDERER
from sightline.pixels.renderers.chromium import CHROMIUM_RENDERER
from sightline.pixels.renderers.markdown import MARKDOWN_RENDERER, NOTEBOOK_RENDERER
from sightline.pixels.renderers.office import LIBREOFFICE_RENDERER, OFFICE_RENDERER
from sightline.pixels.renderers.pdf import PDF_RENDERER
from sightline.pixels.renderers.renderer import (
    DEFAULT_OPTIONS,
    RenderedDocument,
    RenderedPage,
    Renderer,
    RenderOptions,
    encode_page,
    get_suffix,
)
from sightline.pixels.renderers.source_code import CODE_RENDERER, DIFF_RENDERER, JSON_RENDERER, TABLE_RENDERER
from sightline.pixels.renderers.svg import SVG_RENDERER
from sightline.pixels.renderers.text_fonts import FONT_FOLDER
from sightline.pixels.renderers.video import VIDEO_RENDERER
from sightline.pixels.renderers.web_page import WEB_PAGE_RENDERER

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

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


# The tasks of the workers


T = TypeVar("T")

_STACK_BYTES = 256 * 1024 * 1024  # for libraries that call themselves for every level of a document
_MAX_TEXT_BYTES = 32 * 1024 * 1024
SHEET_PAGES = 12
_CELL_EDGE = 480  # pixels of the longer side of a page
_GAP = 12
_LABEL_HEIGHT = 30
_FONT_SIZE = 20
_GROUND, _FRAME, _INK = "#e8e8e8", "#a0a0a0", "#000000"


def render_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Render a file in a worker."""
    renderer = find_renderer(arguments["renderer"])
    options = RenderOptions.unpack(arguments["options"])
    asked = replace(options, count=SHEET_PAGES) if options.sheet else options
    drawn = run_on_deep_stack(lambda: _draw(renderer, data, arguments.get("descriptor"), asked))
    if isinstance(drawn, Refusal):
        return drawn
    if options.sheet:
        drawn = _join_pages(drawn)
    pages = [[len(page.data), page.number, page.label, page.has_text] for page in drawn.pages]
    facts = {"pages": pages, "total": drawn.total, "note": drawn.note}
    return facts, b"".join(page.data for page in drawn.pages)


def _draw(
    renderer: Renderer, data: bytes, descriptor: int | None, options: RenderOptions
) -> RenderedDocument | Refusal:
    """Draw a file, of which a large one comes as a descriptor."""
    if descriptor is None:
        assert renderer.render is not None, "the parent starts programs itself"
        return renderer.render(data, options)
    assert renderer.render_large is not None, "the parent has checked that"
    with open(descriptor, "rb") as file:  # noqa: PTH123, it has no path here
        file.seek(0)
        return renderer.render_large(file, options)


def text_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Return the text of a document, in a worker."""
    read = find_renderer(arguments["renderer"]).read_text
    assert read is not None, "the parent has checked that"
    text = run_on_deep_stack(lambda: read(data))
    if isinstance(text, Refusal):
        return text
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > _MAX_TEXT_BYTES:
        return Refusal("too_large", "it has more than 32 MiB of text", "give a smaller one")
    return {}, encoded


def check_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Return why a program must not get a file, in a worker."""
    check = find_renderer(arguments["renderer"]).check
    assert check is not None, "the parent has checked that"
    return check(data) or ({}, b"")


def _join_pages(drawn: RenderedDocument) -> RenderedDocument:
    """Return one contact sheet instead of the pages."""
    first, last = drawn.pages[0].number, drawn.pages[-1].number
    texts = {page.has_text for page in drawn.pages}
    has_text = None if texts == {None} else True in texts
    sheet = RenderedPage(build_contact_sheet(drawn.pages), first, has_text=has_text)
    which = f"pages {first} to {last} of {drawn.total}" if drawn.total > 1 else ""
    return RenderedDocument((sheet,), drawn.total, ", ".join(filter(None, (which, drawn.note))))


def run_on_deep_stack(work: Callable[[], T]) -> T:
    """Run a function in a thread with a large stack, and return or raise what it does."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001, it is raised again below
            errors.append(error)

    previous = threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=run)
    thread.start()
    threading.stack_size(previous)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def build_contact_sheet(pages: Sequence[RenderedPage]) -> bytes:
    """Return one picture of all pages, in rows, in the same order."""
    from PIL import Image, ImageDraw, ImageFont

    pictures = [_shrink(page.data) for page in pages]
    cell_width = max(each.width for each in pictures) + _GAP
    cell_height = max(each.height for each in pictures) + _GAP + _LABEL_HEIGHT
    columns = _choose_columns(len(pages), cell_width, cell_height)
    rows = ceil(len(pages) / columns)
    sheet = Image.new("RGB", (columns * cell_width + _GAP, rows * cell_height + _GAP), _GROUND)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.truetype(FONT_FOLDER / "DejaVuSans.ttf", _FONT_SIZE)
    for index, (page, picture) in enumerate(zip(pages, pictures, strict=True)):
        row, column = divmod(index, columns)
        left, top = _GAP + column * cell_width, _GAP + row * cell_height
        sheet.paste(picture, (left, top))
        draw.rectangle((left - 1, top - 1, left + picture.width, top + picture.height), outline=_FRAME)
        draw.text((left, top + picture.height + 4), page.label or str(page.number), fill=_INK, font=font)
    return encode_page(sheet)


def _choose_columns(count: int, width: int, height: int) -> int:
    """Return how many columns make the sheet about square."""
    return max(1, min(count, round(sqrt(count * height / width))))


def _shrink(data: bytes) -> Pillow:
    from PIL import Image

    picture = Image.open(BytesIO(data)).convert("RGB")
    picture.thumbnail((_CELL_EDGE, _CELL_EDGE), Image.Resampling.LANCZOS)
    return picture
