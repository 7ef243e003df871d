"""Draw pages of PDFs with PDFium, and read their text layer.

A page is drawn at 150 dots per inch, at which 10-point text is legible to every provider; only a page that would become
too large gets fewer. A page without pictures and without colour is drawn in greys, which takes a third of the time to
encode; whether it has colour is seen by its first objects, or on a small picture of it. Form fields, as they are filled
in, and comments are drawn. Scripts and XFA forms are ignored: PDFium is built without them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.renderer import (
    PythonPackage,
    RenderedDocument,
    RenderedPage,
    Renderer,
    RenderOptions,
    check_page,
    encode_pixels,
    has_colour,
)

if TYPE_CHECKING:
    from pypdfium2 import PdfBitmap, PdfDocument, PdfPage

_DOTS, _MAX_DOTS = 150 / 72, 300 / 72  # pixels per point: of most pages, and of small ones
_MIN_EDGE = 1024  # pixels of the longer side of a small page
_MAX_PIXELS, _MAX_EDGE = 12_000_000, 16_000
_SHEET_EDGE = 960  # pixels of the longer side of a page on a contact sheet, before it is made smaller
_MAX_WIDTH = 8192
_PNG_EFFORT = 1  # a page is usually made smaller before it is sent, so that time counts more than bytes
_TEXT_SECONDS = 6.0  # of CPU time in which text is read; a worker has a little more
_TEXT_CHARACTERS = 16_000_000
_SURVEYED_OBJECTS = 100  # on a page
_TEXT_OBJECT, _IMAGE_OBJECT = 1, 3  # of PDFium
_COLOUR_REDUCTION = 8
_ERROR_PASSWORD, _ERROR_SECURITY = 4, 5  # of PDFium
_HYPHEN = "\ufffe"  # PDFium's mark for a hyphen at the end of a line

_ENCRYPTED = Refusal(
    "unsupported_type",
    "the PDF is encrypted and needs a password",
    "save a copy without it: qpdf --decrypt --password=PASSWORD locked.pdf open.pdf",
)
_DAMAGED = Refusal("corrupt", "the PDF is damaged", "give an undamaged copy")
_NO_PAGES = Refusal("corrupt", "the PDF has no pages", "give an undamaged copy")
_NO_TEXT = Refusal(
    "unsupported_type", "the PDF has no text layer: its pages are pictures", "call view_image with a page to see it"
)


def render_pdf(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw pages of a PDF, from `options.page` on."""
    document = _OPENED.find(data)
    if isinstance(document, Refusal):
        return document
    total = len(document)
    if refusal := check_page(options.page, total):
        return refusal
    numbers = range(options.page, min(options.page + options.count, total + 1))
    drawn = {number: _draw_page(document, number, options) for number in numbers}
    pages = tuple(page for page in drawn.values() if page is not None)
    damaged = ", ".join(str(number) for number, page in drawn.items() if page is None)
    if not pages:
        return Refusal("corrupt", f"page {damaged} of the PDF is damaged", "give an undamaged copy, or another page")
    return RenderedDocument(pages, total, f"damaged and left out: page {damaged}" if damaged else "")


def read_pdf_text(data: bytes) -> str | Refusal:
    """Return the text layer of a PDF, with a line before each page that says its number."""
    document = _OPENED.find(data)
    if isinstance(document, Refusal):
        return document
    end = time.process_time() + _TEXT_SECONDS
    pieces, has_text, room = list[str](), False, _TEXT_CHARACTERS
    total = len(document)
    for number in range(1, total + 1):
        text = _read_page_text(document, number)
        has_text, room = has_text or bool(text.strip()), room - len(text)
        pieces.append(f"--- page {number} of {total} ---\n{text.rstrip()}\n\n")
        if number < total and (time.process_time() > end or room < 0):
            pieces.append(f"--- pages {number + 1} to {total} are not read: the PDF has too many ---\n")
            break
    return "".join(pieces) if has_text else _NO_TEXT


PDF_RENDERER = Renderer(
    "pdfium",
    revision=3,
    mimes=frozenset({"application/pdf"}),
    render=render_pdf,
    read_text=read_pdf_text,
    options=frozenset({"page", "width"}),
    needs=(PythonPackage("pypdfium2", "pypdfium2", "pip install pypdfium2"),),
)


def _open(data: bytes) -> PdfDocument | Refusal:
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        return _ENCRYPTED if error.err_code in (_ERROR_PASSWORD, _ERROR_SECURITY) else _DAMAGED
    if len(document) > 0:
        return document
    document.close()
    return _NO_PAGES


class _OpenedDocument:
    """The last document, which stays open: its next page is often the next task, and opening takes as long as drawing.

    It is closed before another one is opened.
    """

    def __init__(self) -> None:
        self._data = b""
        self._document: PdfDocument | None = None

    def find(self, data: bytes) -> PdfDocument | Refusal:
        """Return the document with these bytes, opened if it isn't the last one."""
        if self._document is not None and data == self._data:
            return self._document
        if self._document is not None:
            self._document.close()
            self._document, self._data = None, b""
        opened = _open(data)
        if not isinstance(opened, Refusal):
            self._document, self._data = opened, data
        return opened


_OPENED = _OpenedDocument()


def _draw_page(document: PdfDocument, number: int, options: RenderOptions) -> RenderedPage | None:
    """Return the picture of a page, or None if the page is damaged."""
    page = _load_page(document, number)
    if page is None:
        return None
    try:
        width, height = page.get_size()
        objects, scale = _survey_objects(page), _choose_scale(width, height, options)
        is_grey = not (objects.has_image or objects.has_colour or _shows_colour(page, scale))
        bitmap = page.render(scale=scale, rev_byteorder=True, grayscale=is_grey)
        return RenderedPage(_encode_bitmap(bitmap), number, has_text=objects.has_text or _has_text(page))
    finally:
        page.close()


@dataclass(frozen=True, slots=True)
class _ObjectSurvey:
    """What is among the first objects of a page."""

    has_text: bool
    has_image: bool
    has_colour: bool


def _survey_objects(page: PdfPage) -> _ObjectSurvey:
    from ctypes import byref, c_uint

    from pypdfium2 import raw

    red, green, blue, alpha = (c_uint() for _ in range(4))
    kinds, has_colour = set[int](), False
    for at in range(min(raw.FPDFPage_CountObjects(page), _SURVEYED_OBJECTS)):
        item = raw.FPDFPage_GetObject(page, at)
        kinds.add(raw.FPDFPageObj_GetType(item))
        raw.FPDFPageObj_GetFillColor(item, byref(red), byref(green), byref(blue), byref(alpha))
        has_colour = has_colour or not red.value == green.value == blue.value
    return _ObjectSurvey(_TEXT_OBJECT in kinds, _IMAGE_OBJECT in kinds, has_colour)


def _shows_colour(page: PdfPage, scale: float) -> bool:
    """Return whether a page has colour. What covers a quarter of a pixel still colours a small picture of it."""
    return has_colour(page.render(scale=scale / _COLOUR_REDUCTION, rev_byteorder=True).to_pil().convert("RGB"))


def _encode_bitmap(bitmap: PdfBitmap) -> bytes:
    """Return the file of a page. The pixels are not copied, unless there is space between their rows."""
    width, bands = bitmap.width, bitmap.n_channels
    pixels = bitmap.buffer if bitmap.stride == width * bands else bitmap.to_pil().tobytes()
    return encode_pixels(pixels, width, bitmap.height, bands, _PNG_EFFORT)


def _load_page(document: PdfDocument, number: int) -> PdfPage | None:
    from pypdfium2 import PdfiumError

    if document.formenv is None and document.get_formtype():
        document.init_forms()  # so that what is filled in is drawn; it has to come before the first page
    try:
        return document[number - 1]
    except PdfiumError:
        return None


def _choose_scale(width: float, height: float, options: RenderOptions) -> float:
    """Return how many pixels a point gets on a page of this size in points."""
    edge, area = max(width, height), width * height
    if options.sheet:
        wanted = _SHEET_EDGE / edge
    elif options.width is not None:
        wanted = min(options.width, _MAX_WIDTH) / width
    else:
        wanted = min(max(_DOTS, _MIN_EDGE / edge), _MAX_DOTS)
    return min(wanted, _MAX_EDGE / edge, sqrt(_MAX_PIXELS / area))


def _has_text(page: PdfPage) -> bool:
    """Return whether a page has a text layer."""
    from pypdfium2 import PdfiumError

    try:
        return bool(page.get_textpage().count_chars() > 0)
    except PdfiumError:
        return False


def _read_page_text(document: PdfDocument, number: int) -> str:
    """Return the text of a page; empty: it has none, or it is damaged."""
    from pypdfium2 import PdfiumError

    try:
        page = document[number - 1]
        text: str = page.get_textpage().get_text_range()
        page.close()
    except PdfiumError:
        return ""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace(_HYPHEN, "-").replace("\0", "")
