"""PDF: which pages are drawn and how large, the text layer, and what a hostile document costs."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pillow

from sightline.model.refusal import Refusal
from sightline.pixels.renderers import LIMITS, start_renderers
from sightline.pixels.renderers.pdf import PDF_RENDERER, read_pdf_text, render_pdf
from sightline.pixels.renderers.renderer import RenderedDocument, RenderedPage, RenderOptions
from sightline.pixels.workers import WorkerLimits, WorkerPool, WorkerReply
from tests.pixels.renderers import pdf_files
from tests.pixels.renderers.pdf_files import BLUE, GREEN, RED, document, fill, text
from tests.requirements import requirement

COLOURED = document([fill(RED), fill(GREEN), fill(BLUE)])


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with start_renderers(WorkerLimits(seconds=1.0, memory=LIMITS.memory, max_wall_seconds=60.0)) as workers:
        yield workers


def draw(data: bytes, **options: Any) -> RenderedDocument:
    drawn = render_pdf(data, RenderOptions(**options))
    assert isinstance(drawn, RenderedDocument), drawn
    return drawn


def open_page(page: RenderedPage) -> Pillow.Image:
    return Pillow.open(BytesIO(page.data)).convert("RGB")


def refuse(data: bytes, **options: Any) -> str:
    refusal = render_pdf(data, RenderOptions(**options))
    assert isinstance(refusal, Refusal)
    assert refusal.remedy
    return refusal.code


@requirement("input.pdf")
def test_the_pages_that_were_asked_for_are_drawn() -> None:
    second = draw(COLOURED, page=2)
    assert ([page.number for page in second.pages], second.total) == ([2], 3)
    assert open_page(second.pages[0]).getpixel((9, 9)) == (0, 255, 0)
    several = draw(COLOURED, page=2, count=12)
    assert [page.number for page in several.pages] == [2, 3]
    assert open_page(several.pages[1]).getpixel((9, 9)) == (0, 0, 255)
    assert refuse(COLOURED, page=4) == "invalid_input"


@requirement("input.pdf", "render.same_bytes")
def test_a_document_that_is_still_open_is_drawn_as_before() -> None:
    other = document([fill(BLUE)])
    first, last = (draw(COLOURED, page=page).pages[0].data for page in (1, 3))
    assert draw(other).pages[0].data == last
    assert isinstance(read_pdf_text(other), Refusal)
    assert draw(COLOURED).pages[0].data == first
    assert draw(COLOURED, page=3).pages[0].data == last
    assert isinstance(render_pdf(b"%PDF-1.7", RenderOptions()), Refusal)
    assert draw(COLOURED).pages[0].data == first


@requirement("render.same_bytes")
def test_the_same_page_has_the_same_bytes() -> None:
    data = document([text("Total: 1,234.50 EUR") + fill(RED, "72 400 100 50")])
    assert draw(data) == draw(data)


@requirement("input.pdf.size")
@pytest.mark.parametrize(
    ("box", "shown"),
    [
        ("0 0 612 792", (1275, 1650)),
        ("0 0 100 50", (417, 209)),
        ("0 0 400 300", (1024, 768)),
        ("0 0 2384 3370", (2914, 4119)),
        ("0 0 612 14400", (680, 16000)),
        ("0 0 1000000000 1000000000", (3465, 3465)),
        ("0 0 1000000000 1", (16000, 1)),
    ],
    ids=["letter", "formula", "small", "poster", "strip", "huge", "line"],
)
def test_a_page_is_drawn_at_150_dots_per_inch_within_what_can_be_seen(box: str, shown: tuple[int, int]) -> None:
    width, height = open_page(draw(document([text("x")], box)).pages[0]).size
    assert abs(width - shown[0]) <= 1
    assert abs(height - shown[1]) <= 1


@requirement("input.pdf.colour")
def test_a_page_without_colour_is_drawn_in_greys_and_a_dot_of_colour_is_kept() -> None:
    lines = " ".join(text("words", 8, 72, y) for y in range(100, 700, 5))
    plain, dotted = draw(document([lines, f"{lines} {fill(RED, '300 50 1 1')}"]), count=2).pages
    assert Pillow.open(BytesIO(plain.data)).mode == "L"
    assert plain.has_text
    assert (255, 0, 0) in {colour for _, colour in open_page(dotted).getcolors(1 << 20) or ()}


@requirement("input.pdf.size")
def test_a_width_can_be_given() -> None:
    assert open_page(draw(COLOURED, width=306).pages[0]).size == (306, 396)


@requirement("input.pdf.text")
def test_a_page_says_whether_it_has_a_text_layer() -> None:
    drawn = draw(document([text("words"), fill(RED)]), count=2)
    assert [page.has_text for page in drawn.pages] == [True, False]


def test_a_filled_in_form_field_is_drawn() -> None:
    look = pdf_files.stream(fill(BLUE, "0 0 100 50").encode(), "/Type/XObject/Subtype/Form/BBox[0 0 100 50]")
    field = b"<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Ada)/Rect[100 100 200 150]/F 4/AP<</N 4 0 R>>>>"
    data = document(["q Q"], catalog="/AcroForm<</Fields[5 0 R]>>", page="/Annots[5 0 R]", others=[look, field])
    page = open_page(draw(data).pages[0])
    assert page.getpixel((round(150 * 150 / 72), round((792 - 125) * 150 / 72))) == (0, 0, 255)


@requirement("input.pdf.refusals")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (pdf_files.encrypted(), "unsupported_type"),
        (b"%PDF-1.7\nnothing that follows is a PDF", "corrupt"),
        (COLOURED[:60], "corrupt"),
        (document([]), "corrupt"),
    ],
    ids=["encrypted", "no objects", "truncated", "no pages"],
)
def test_an_unreadable_pdf_is_refused_with_a_remedy(data: bytes, code: str) -> None:
    assert refuse(data) == code
    refusal = read_pdf_text(data)
    assert isinstance(refusal, Refusal)
    assert refusal.code == code


@requirement("input.pdf.refusals")
def test_a_damaged_page_is_left_out_with_a_note() -> None:
    broken = COLOURED.replace(b"6 0 obj\n", b"66 obj\n")
    drawn = draw(broken, count=3)
    assert [page.number for page in drawn.pages] == [1, 3]
    assert "2" in drawn.note
    assert refuse(broken, page=2) == "corrupt"


@requirement("render.hostile")
def test_a_document_of_ten_thousand_pages_is_read_within_limits(pool: WorkerPool) -> None:
    data = document([text(f"page number {number}") for number in range(1, 10_001)])
    drawn = pool.run_sync("render", data, {"renderer": "pdfium", "options": {"page": 9_999}})
    assert isinstance(drawn, WorkerReply), drawn
    assert (drawn.facts["total"], drawn.facts["pages"][0][1]) == (10_000, 9_999)
    read = pool.run_sync("text", data, {"renderer": "pdfium"})
    assert isinstance(read, WorkerReply), read
    assert read.data.startswith(b"--- page 1 of 10000 ---\npage number 1\n")


@requirement("render.hostile")
@pytest.mark.parametrize(
    "make",
    [pdf_files.nested_forms, pdf_files.compressed_bomb, pdf_files.huge_image],
    ids=["nested forms", "compressed bomb", "huge image"],
)
def test_a_hostile_document_costs_at_most_a_refusal(pool: WorkerPool, make: object) -> None:
    assert callable(make)
    reply = pool.run_sync("render", make(), {"renderer": "pdfium", "options": {}})
    assert isinstance(reply, WorkerReply) or reply.code in ("too_large", "corrupt")
    assert isinstance(pool.run_sync("render", COLOURED, {"renderer": "pdfium", "options": {}}), WorkerReply)


@requirement("render.hostile")
def test_scripts_and_xfa_forms_are_ignored() -> None:
    script = b"<</S/JavaScript/JS(while (true) {})>>"
    form = pdf_files.stream(b"<xdp:xdp xmlns:xdp='http://ns.adobe.com/xdp/'><template/></xdp:xdp>")
    catalog = "/OpenAction 4 0 R/AcroForm<</Fields[]/XFA 5 0 R>>"
    data = document([fill(RED)], catalog=catalog, others=[script, form])
    assert open_page(draw(data).pages[0]).getpixel((9, 9)) == (255, 0, 0)


@requirement("input.pdf.text")
def test_the_text_layer_is_read_page_by_page() -> None:
    found = read_pdf_text(document([text("first page"), fill(RED), text("third page")]))
    assert isinstance(found, str)
    assert found.splitlines() == [
        "--- page 1 of 3 ---",
        "first page",
        "",
        "--- page 2 of 3 ---",
        "",
        "",
        "--- page 3 of 3 ---",
        "third page",
        "",
    ]


@requirement("input.pdf.text")
def test_a_scan_has_no_text() -> None:
    refusal = read_pdf_text(pdf_files.scan([(bytes(100), 10, 10)]))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "unsupported_type"
    assert PDF_RENDERER.read_text is read_pdf_text
