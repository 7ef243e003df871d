"""Office documents by our own layout: what is read of each format, and what a hostile document costs."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pillow

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import identify_file
from sightline.pixels.renderers import LIMITS, start_renderers
from sightline.pixels.renderers.choose_renderer import choose_renderer
from sightline.pixels.renderers.document_layout import Block, FlowContent, TableBlock
from sightline.pixels.renderers.office import (
    LIBREOFFICE,
    OFFICE_RENDERER,
    convert_office,
    read_office,
    read_office_text,
    render_office,
)
from sightline.pixels.renderers.office_archive import check_office
from sightline.pixels.renderers.page_layout import PageBreak, Paragraph, PictureBlock, fits_provider
from sightline.pixels.renderers.renderer import RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.workbook import format_value, write_column
from sightline.pixels.workers import WorkerLimits, WorkerPool, WorkerReply
from tests.pixels.renderers.office_files import (
    PICTURE,
    W,
    docx,
    open_document,
    open_xml,
    pack,
    paragraph,
    pptx,
    relate,
    shape,
    table,
    xlsx,
)
from tests.requirements import requirement

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
LETTER = docx(paragraph("Dear reader"))


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with start_renderers(WorkerLimits(seconds=9.0, memory=LIMITS.memory, max_wall_seconds=60.0)) as workers:
        yield workers


def read(data: bytes) -> FlowContent:
    content = read_office(data)
    assert isinstance(content, FlowContent), content
    return content


def spell(block: Block) -> str:
    assert isinstance(block, Paragraph)
    marker = f"{block.marker.text} " if block.marker else ""
    return marker + "".join(span.text for span in block.spans)


def spell_table(block: Block) -> list[list[str]]:
    assert isinstance(block, TableBlock)
    return [["".join(span.text for span in cell.spans) for cell in row] for row in block.rows]


def draw(data: bytes, **options: Any) -> RenderedDocument:
    document = render_office(data, RenderOptions(**options))
    assert isinstance(document, RenderedDocument), document
    for page in document.pages:
        assert fits_provider(*Pillow.open(BytesIO(page.data)).size)
    return document


NUMBERING = f"""<w:numbering {W}>
<w:abstractNum w:abstractNumId="1"><w:lvl><w:numFmt w:val="decimal"/><w:lvlText w:val="%1)"/>
<w:start w:val="3"/></w:lvl>
<w:lvl><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="2"><w:lvl><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="7"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="8"><w:abstractNumId w:val="2"/></w:num>
</w:numbering>"""
STYLES = f"""<w:styles {W}><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="berschrift1"/></w:style>
<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style></w:styles>"""


def number(list_id: int, level: int = 0) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>'


@requirement("input.office.word")
def test_a_word_document_has_headings_lists_and_styles() -> None:
    body = paragraph("Title", '<w:pStyle w:val="Own"/>') + paragraph("plain", '<w:pStyle w:val="Loop"/>')
    body += paragraph("three", number(7)) + paragraph("inner", number(7, 1)) + paragraph("four", number(7))
    body += paragraph("dot", number(8))
    body += "<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>bold</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    body += "<w:hyperlink><w:r><w:t> link</w:t><w:tab/></w:r></w:hyperlink>"
    body += "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r></w:p>"
    blocks = read(docx(body, {"word/styles.xml": STYLES, "word/numbering.xml": NUMBERING})).blocks
    assert [spell(each).rstrip() for each in blocks] == [
        "Title",
        "plain",
        "3) three",
        "3.I inner",
        "4) four",
        "• dot",
        "bold link",
    ]
    title, *_, last = blocks
    assert isinstance(title, Paragraph)
    assert isinstance(last, Paragraph)
    assert (title.keeps_next, title.spans[0].style.bold, title.spans[0].style.size) == (True, True, 28)
    assert [(span.style.bold, span.style.line) for span in last.spans] == [(True, ""), (False, "under")]


@requirement("input.office.word")
def test_tables_pictures_boxes_and_notes_of_a_word_document_are_read() -> None:
    drawing = '<w:p><w:r><w:drawing><a:blip r:embed="rId5"/></w:drawing></w:r></w:p>'
    box = f"<w:p><w:r><w:pict><w:txbxContent>{paragraph('in a box')}</w:txbxContent></w:pict></w:r></w:p>"
    span = "<w:tcPr><w:gridSpan w:val='2'/></w:tcPr>"
    data = docx(
        table([span + paragraph("wide")], [paragraph("a") + paragraph("b"), paragraph("c")]) + drawing + box,
        {
            "word/_rels/document.xml.rels": relate(rId5="media/image1.png"),
            "word/media/image1.png": PICTURE,
            "word/footnotes.xml": f"<w:notes {W}><w:footnote w:id='2'>{paragraph('a note')}</w:footnote></w:notes>",
        },
    )
    rows, picture, boxed, label, note = read(data).blocks
    assert spell_table(rows) == [["wide", ""], ["a\nb", "c"]]
    assert isinstance(picture, PictureBlock)
    assert picture.picture.size == (40, 30)
    assert [spell(each) for each in (boxed, label, note)] == ["in a box", "[2]", "a note"]


@requirement("input.office.word")
def test_a_table_that_only_arranges_content_is_dissolved() -> None:
    inner = table([paragraph("x"), paragraph("y")], [paragraph("1"), paragraph("2")])
    first, rows, last = read(docx(table([paragraph("left"), inner + paragraph("right")]))).blocks
    assert (spell(first), spell_table(rows), spell(last)) == ("left", [["x", "y"], ["1", "2"]], "right")


@requirement("input.office.slides")
def test_each_slide_begins_a_page_with_its_title() -> None:
    cells = "".join(f"<a:tc><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></a:tc>" for text in "ab")
    frame = f"<p:graphicFrame><a:tbl><a:tr>{cells}</a:tr><a:tr>{cells}</a:tr></a:tbl></p:graphicFrame>"
    picture = '<p:pic><p:blipFill><a:blip r:embed="rId9"/></p:blipFill></p:pic>'
    data = pptx(shape("point") + shape("Second thoughts", "title") + shape("7", "sldNum"), frame + picture)
    label, title, point, page, _, rows, drawn = read(data).blocks
    assert [spell(each) for each in (label, title, point)] == ["Slide 1 of 2", "Second thoughts", "• point"]
    assert isinstance(page, PageBreak)
    assert spell_table(rows) == [["a", "b"], ["a", "b"]]
    assert isinstance(drawn, PictureBlock)
    assert draw(data, page=2).total == 2


@requirement("input.office.sheets")
def test_each_sheet_is_a_table_with_its_letters_numbers_and_formats() -> None:
    styles = '<numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy"/></numFmts>'
    styles += '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="10"/></cellXfs>'
    first = '<row r="2"><c r="A2" t="s"><v>0</v></c><c r="C2" s="1"><v>45000</v></c></row>'
    first += '<row r="9"><c r="A9" s="2"><v>0.256</v></c><c r="C9" t="b"><v>1</v></c></row>'
    second = '<row><c t="inlineStr"><is><t>inline</t></is></c><c t="str"><v>made</v></c></row>'
    data = xlsx({"Sales": first, "More": second, "None": ""}, ["Total"], styles)
    blocks = read(data).blocks
    tables = [spell_table(each) for each in blocks if isinstance(each, TableBlock)]
    assert tables == [
        [["", "A", "C"], ["2", "Total", "2023-03-15"], ["9", "25.60%", "TRUE"]],
        [["", "A", "B"], ["1", "inline", "made"]],
    ]
    assert [spell(each) for each in blocks[:2]] == ["Sheet 1 of 3", "Sales"]
    assert draw(data).total == 3


@requirement("input.office.sheets")
def test_all_text_of_a_long_cell_is_read_and_a_cut_one_is_noted() -> None:
    words = " ".join(map(str, range(3000)))
    data = xlsx({"S": f'<row><c t="inlineStr"><is><t>{words}</t></is></c></row>'})
    text = read_office_text(data)
    assert isinstance(text, str)
    assert words in text
    assert "cut" in draw(data).note


@requirement("input.office.sheets")
@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        ("1234.5", "", "1234.5"),
        ("1234.5", "#,##0.00", "1,234.50"),
        ("0.1", "0%", "10%"),
        ("45000.75", "yyyy-mm-dd h:mm", "2023-03-15 18:00"),
        ("0.5", "h:mm:ss", "12:00:00"),
        ("1e300", "yyyy", "1e+300"),
        ("3", '"days"0', "3"),
        ("12.345678901234567", "General", "12.3456789012346"),
        ("nan?", "0", "nan?"),
    ],
)
def test_a_number_is_shown_as_its_format_says(value: str, code: str, shown: str) -> None:
    assert format_value(value, code) == shown


def test_columns_have_letters() -> None:
    assert [write_column(at) for at in (0, 25, 26, 701, 702)] == ["A", "Z", "AA", "ZZ", "AAA"]


@requirement("input.office.open_document")
def test_an_open_document_text_is_read() -> None:
    styles = '<style:style style:name="T1"><style:text-properties fo:font-weight="bold"/></style:style>'
    styles += '<text:list-style style:name="L1"><text:list-level-style-number style:num-format="a"/></text:list-style>'
    body = '<text:h text:outline-level="2">Part</text:h><text:p>a<text:s text:c="3"/><text:span text:style-name="T1">b'
    body += '</text:span></text:p><text:list text:style-name="L1"><text:list-item><text:p>one</text:p></text:list-item>'
    body += "<text:list-item><text:p>two</text:p></text:list-item></text:list>"
    body += '<text:p><draw:frame><draw:image xlink:href="Pictures/a.png"/></draw:frame></text:p>'
    body += "<table:table><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell>"
    body += '<table:table-cell table:number-columns-repeated="999999999"/></table:table-row></table:table>'
    blocks = read(open_document("text", body, styles, {"Pictures/a.png": PICTURE})).blocks
    assert [spell(each) for each in blocks[:4]] == ["Part", "a   b", "a. one", "b. two"]
    assert isinstance(blocks[1], Paragraph)
    assert blocks[1].spans[-1].style.bold
    assert isinstance(blocks[4], PictureBlock)
    assert spell_table(blocks[5])[0][0] == "x"


@requirement("input.office.open_document")
def test_slides_and_sheets_of_open_documents_are_pages() -> None:
    frame = '<draw:frame presentation:class="{}"><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>'
    notes = "<presentation:notes><text:p>secret</text:p></presentation:notes>"
    slides = "".join(
        f"<draw:page>{frame.format('outline', 'x')}{frame.format('title', name)}{notes}</draw:page>" for name in "AB"
    )
    shown = read(open_document("presentation", slides)).blocks
    texts = [spell(each) for each in shown if isinstance(each, Paragraph)]
    assert texts == ["Slide 1 of 2", "A", "x", "Slide 2 of 2", "B", "x"]
    cell = '<table:table-cell office:value-type="float"><text:p>12 %</text:p></table:table-cell>'
    rows = f'<table:table-row table:number-rows-repeated="1048570"/><table:table-row>{cell}</table:table-row>'
    sheet = read(open_document("spreadsheet", f'<table:table table:name="S">{rows}</table:table>'))
    assert spell_table(sheet.blocks[-1]) == [["", "A"], ["1048571", "12 %"]]


@requirement("input.office", "render.same_bytes")
@pytest.mark.parametrize(
    "data",
    [LETTER, pptx(shape("x")), xlsx({"S": "<row><c><v>1</v></c></row>"}), open_document("text", "<text:p>x</text:p>")],
    ids=["docx", "pptx", "xlsx", "odt"],
)
def test_a_document_is_drawn_without_any_program(data: bytes) -> None:
    renderer = choose_renderer(identify_file(data[:4096]), data, "", programs=False)
    assert renderer is OFFICE_RENDERER
    assert draw(data) == draw(data)
    assert LIBREOFFICE.install in OFFICE_RENDERER.note


@requirement("input.office")
def test_a_document_is_recognized_by_its_main_part() -> None:
    main = f"<w:document {W}><w:body>{paragraph('late')}</w:body></w:document>"
    filler = {f"docProps/{at}": bytes(range(256)) * 40 for at in range(3)}
    data = pack({"[Content_Types].xml": "<Types/>", **filler, "_rels/.rels": relate(rId1="main.xml"), "main.xml": main})
    kind = identify_file(data[:4096])
    assert kind.family == "document"
    assert isinstance(choose_renderer(kind, data, "", programs=False), Renderer)
    assert read_office_text(data) == "late\n"


@requirement("input.office.text")
def test_the_text_of_a_document_has_lists_and_tables() -> None:
    body = paragraph("Hello") + table([paragraph("a"), paragraph("b")], [paragraph("1"), paragraph("2")])
    body += paragraph("item", number(8))
    text = read_office_text(docx(body, {"word/numbering.xml": NUMBERING}))
    assert text == "Hello\n\na\tb\n1\t2\n\n• item\n"


@requirement("input.office.refusals")
@pytest.mark.parametrize(
    ("data", "code", "named"),
    [
        (OLE + bytes(600), "unsupported_type", "soffice --headless --convert-to"),
        (OLE + bytes(64) + "EncryptedPackage".encode("utf-16-le"), "unsupported_type", "password"),
        (LETTER[:-30], "corrupt", "undamaged"),
        (pack({"[Content_Types].xml": "<Types/>", "a.bin": b""}), "unsupported_type", "PDF"),
        (open_xml("word/document.xml", "<w:document"), "corrupt", "undamaged"),
        (open_xml("word/document.xml", '<?xml version="1.0" encoding="GBK"?><a/>'), "corrupt", "undamaged"),
        (
            open_document("text", "", parts={"META-INF/manifest.xml": "<m><encryption-data/></m>"}),
            "unsupported_type",
            "password",
        ),
    ],
    ids=["doc", "encrypted docx", "cut off", "no main part", "broken XML", "other encoding", "encrypted odt"],
)
def test_a_document_that_cannot_be_read_is_refused_with_what_to_do(data: bytes, code: str, named: str) -> None:
    for refusal in (render_office(data, RenderOptions()), read_office_text(data)):
        assert isinstance(refusal, Refusal)
        assert refusal.code == code
        assert named in refusal.remedy


ENTITIES = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'


def lie_about_sizes(data: bytes) -> bytes:
    """Return an archive whose directory says that all parts have one byte."""
    changed, at = bytearray(data), data.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<I", changed, at + 24, 1)
        at = data.find(b"PK\x01\x02", at + 1)
    return bytes(changed)


def pack_foreign(name: str) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), "x")
    return file.getvalue()


HOSTILE = {
    "entities": (open_xml("word/document.xml", f"{ENTITIES}<w:document {W}>&b;</w:document>"), "corrupt"),
    "an absolute path": (pack_foreign("/etc/passwd"), "corrupt"),
    "a path upwards": (pack_foreign("word/../../x"), "corrupt"),
    "lying sizes": (lie_about_sizes(LETTER), "corrupt"),
    "deep": (docx("<w:sdt>" * 5000 + "</w:sdt>" * 5000), "too_large"),
}


@requirement("input.office.hostile", "render.hostile")
@pytest.mark.parametrize(("data", "code"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_document_is_refused(data: bytes, code: str) -> None:
    for refusal in (render_office(data, RenderOptions()), check_office(data)):
        assert isinstance(refusal, Refusal)
        assert refusal.code == code


TYPED = '<?xml version="1.0"?><!DOCTYPE m PUBLIC "-//OpenOffice.org//DTD Manifest 1.0//EN" "Manifest.dtd"><m/>'
CELL = '<row r="{1}"><c r="{0}{1}"><v>1</v></c></row>'
REPEATED = '<table:table-row table:number-rows-repeated="9999"><table:table-cell table:number-columns-repeated="99">'
FORMULAS = "<calcChain>" + '<c r="A1" i="1"/>' * 2000 + "</calcChain>"


def long_text() -> bytes:
    return docx(paragraph("".join(f"{at * 7919 % 100_003:x}" for at in range(1_000_000))))


FOR_PROGRAM: dict[str, tuple[bytes | Callable[[], bytes], bool]] = {
    "a letter": (LETTER, True),
    "a part with a document type": (open_document("text", "", parts={"META-INF/manifest.xml": TYPED}), True),
    "a long text": (long_text, True),
    "a sheet": (xlsx({"S": CELL.format("AB", 90_000)}), True),
    "a list of two thousand formulas": (xlsx({"S": ""}, parts={"xl/calcChain.xml": FORMULAS}), True),
    "a drawing of an old format that is not XML": (docx("", {"word/vmlDrawing1.vml": "<xml><br></xml>"}), True),
    "what macOS adds to an archive": (docx("", {"__MACOSX/word/._document.xml": b"\0\5\x16\7Mac OS X"}), True),
    "an encoding that we can't read": (docx("", {"a.xml": b'<?xml version="1.0" encoding="GBK"?><a/>'}), False),
    "a row without cells at the end": (xlsx({"S": '<row r="1048576" ht="12"/>'}), True),
    "a sheet that ends far below": (xlsx({"S": CELL.format("A", 1_048_576)}), False),
    "a sheet that ends far to the right": (xlsx({"S": CELL.format("XFD", 1)}), False),
    "a wide sheet": (xlsx({"S": f"<row>{'<c/>' * 2000}</row>"}), False),
    "repeated cells": (
        open_document(
            "spreadsheet",
            f"<table:table>{REPEATED}<text:p>x</text:p></table:table-cell></table:table-row></table:table>",
        ),
        False,
    ),
    "repeated empty cells": (
        open_document("spreadsheet", f"<table:table>{REPEATED}</table:table-cell></table:table-row></table:table>"),
        True,
    ),
    "much of the same": (lambda: docx(paragraph("word") * 100_000), False),
    "entities in a part that only programs read": (docx("", {"word/settings.xml": f"{ENTITIES}<w/>"}), False),
    "a deep part that only programs read": (docx("", {"a.xml": "<a>" * 300 + "</a>" * 300}), False),
    "a picture of 64 MiB in 64 KiB": (lambda: docx("", {"word/media/a.png": bytes(64 << 20)}), False),
}


@requirement("input.office.checked")
@pytest.mark.parametrize(("data", "passes"), FOR_PROGRAM.values(), ids=FOR_PROGRAM)
def test_a_document_is_checked_before_a_program_gets_it(data: bytes | Callable[[], bytes], passes: bool) -> None:
    refusal = check_office(data if isinstance(data, bytes) else data())
    assert (refusal is None) is passes, refusal


@requirement("input.office.hostile")
def test_a_text_with_too_many_elements_is_read_without_its_other_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.pixels.renderers.office_archive._MAX_ELEMENTS", 40)
    content = read(docx(paragraph("word") * 20, {"word/styles.xml": STYLES}))
    assert 5 < len(content.blocks) < 20
    assert "beginning" in " ".join(content.notes)


@requirement("input.office.hostile")
def test_a_zip_bomb_never_reaches_a_program() -> None:
    data = bytearray(docx(paragraph("x")))
    at = data.find(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 0xFFFF_FFF0)
    for refusal in (convert_office(bytes(data), RenderOptions()), render_office(bytes(data), RenderOptions())):
        assert isinstance(refusal, Refusal)
        assert refusal.code == "too_large"


ROWS = "<row>" + "<c><v>1</v></c>" * 3 + "</row>"
LONG: dict[str, Callable[[], bytes]] = {
    "many rows": lambda: xlsx({"S": ROWS * 60_000}),
    "a wide sheet": lambda: xlsx({"S": "<row>" + "<c><v>1</v></c>" * 16_000 + "</row>"}),
    "a long text": lambda: docx(paragraph("word " * 400) * 2_000),
    "nested tables": lambda: docx("<w:tbl><w:tr><w:tc>" * 70 + paragraph("x") + "</w:tc></w:tr></w:tbl>" * 70),
    "repeated cells": lambda: open_document(
        "spreadsheet",
        '<table:table><table:table-row table:number-rows-repeated="99999999">'
        '<table:table-cell table:number-columns-repeated="99999999"><text:p>x</text:p></table:table-cell>'
        "</table:table-row></table:table>",
    ),
    "a part of 64 MiB": lambda: open_xml(
        "word/document.xml", f"<w:document {W}><w:body>{'<w:t>' + 'x' * (64 << 20)}</w:t></w:body></w:document>"
    ),
}


@requirement("input.office.hostile", "render.hostile")
@pytest.mark.parametrize("make", LONG.values(), ids=LONG)
def test_an_endless_document_is_cut_or_refused(pool: WorkerPool, make: Callable[[], bytes]) -> None:
    reply = pool.run_sync("render", make(), {"renderer": "office", "options": {}})
    assert isinstance(reply, WorkerReply) or reply.code == "too_large", reply
    again = pool.run_sync("render", LETTER, {"renderer": "office", "options": {}})
    assert isinstance(again, WorkerReply), again
