"""Draw office documents by a layout of our own, where no office suite is installed, and read their text.

Headings, lists, tables, pictures, slides and sheets are there; fonts, columns, headers and the places of things on a
page are not. `libreoffice` draws pages as they are printed.
"""

from __future__ import annotations

from sightline.model.refusal import Refusal
from sightline.pixels.renderers.document_layout import lay_blocks
from sightline.pixels.renderers.flow_content import FlowContent, make_label, write_text
from sightline.pixels.renderers.office_archive import (
    DAMAGED_OFFICE,
    ENCRYPTED_OFFICE,
    OfficeArchive,
    OfficeRefusalError,
)
from sightline.pixels.renderers.open_document import read_open_document
from sightline.pixels.renderers.page_layout import draw_document
from sightline.pixels.renderers.presentation import read_presentation
from sightline.pixels.renderers.renderer import InstalledProgram, RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.text_fonts import FontLibrary, SystemFonts
from sightline.pixels.renderers.word_document import read_word
from sightline.pixels.renderers.workbook import read_workbook

LIBREOFFICE = InstalledProgram(
    ("soffice", "libreoffice", "/Applications/LibreOffice.app/Contents/MacOS/soffice"),
    "sudo apt-get install libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui",
)
_OPEN_XML, _OPEN_DOCUMENT = "application/vnd.openxmlformats-officedocument", "application/vnd.oasis.opendocument"
OFFICE_MIMES = frozenset(
    {
        _OPEN_XML,
        f"{_OPEN_XML}.wordprocessingml.document",
        f"{_OPEN_XML}.spreadsheetml.sheet",
        f"{_OPEN_XML}.presentationml.presentation",
        *(f"{_OPEN_DOCUMENT}.{kind}" for kind in ("text", "spreadsheet", "presentation")),
    }
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_READERS = {"document": read_word, "presentation": read_presentation, "workbook": read_workbook}

_LEGACY = Refusal(
    "unsupported_type",
    "this is an office document of an old format, such as doc, xls or ppt, which Sightline does not open",
    "convert it, for example with: soffice --headless --convert-to pdf FILE",
)
_NOT_OFFICE = Refusal(
    "unsupported_type",
    "this is an archive, but not a Word, Excel, PowerPoint or OpenDocument file that can be read",
    "save it as PDF",
)


def render_office(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw pages of an office document."""
    content = read_office(data)
    if isinstance(content, Refusal):
        return content
    fonts = FontLibrary()
    content.cut()
    blocks = content.blocks or [make_label("This document is empty.")]
    return draw_document(lay_blocks(blocks, fonts), options, fonts, ", ".join(content.notes))


def read_office_text(data: bytes) -> str | Refusal:
    """Return the text of an office document."""
    content = read_office(data)
    return content if isinstance(content, Refusal) else write_text(content)


def read_office(data: bytes) -> FlowContent | Refusal:
    """Return the content of an office document of any kind."""
    if data.startswith(_OLE):
        return ENCRYPTED_OFFICE if _ENCRYPTED_PACKAGE in data else _LEGACY
    content = FlowContent()
    try:
        archive = OfficeArchive(data)
        if archive.has("content.xml"):
            read_open_document(archive, content)
        elif refusal := _read_open_xml(archive, content):
            return refusal
    except OfficeRefusalError as error:
        return error.refusal
    if archive.is_cut:
        content.add_note("too large: only its beginning is read")
    return content


def _read_open_xml(archive: OfficeArchive, content: FlowContent) -> Refusal | None:
    """Read the main part of an Office Open XML file, which its root element tells apart."""
    parts = archive.read_relations("")
    mains = [each for each in parts.values() if archive.has(each) and each.endswith(".xml") and "docProps" not in each]
    for main in mains:
        root = archive.parse(main)
        if root is not None and root.name in _READERS:
            _READERS[root.name](archive, main, root, content)
            return None
    return _NOT_OFFICE if archive.has("[Content_Types].xml") or not mains else DAMAGED_OFFICE


OFFICE_RENDERER = Renderer(
    "office",
    revision=2,
    mimes=OFFICE_MIMES | {"application/x-ole-storage"},
    render=render_office,
    read_text=read_office_text,
    options=frozenset({"page"}),
    needs=(SystemFonts(),),
    note=f"the layout is approximate; to see pages as they are printed, run: {LIBREOFFICE.install}",
)
