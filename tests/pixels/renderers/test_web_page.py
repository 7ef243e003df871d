"""Web pages by our own layout: what is shown of a page, and what a hostile page costs."""

from __future__ import annotations

import base64
import socket
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pillow

from sightline.pixels.file_types import identify_file
from sightline.pixels.renderers.choose_renderer import choose_renderer
from sightline.pixels.renderers.document_layout import Block, TableBlock
from sightline.pixels.renderers.page_layout import CodeBlock, Paragraph, PictureBlock, RuleBlock, fits_provider
from sightline.pixels.renderers.renderer import RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.web_page import CHROMIUM, WEB_PAGE_RENDERER, read_web_page, render_web_page
from tests.pixels.bitmaps import flag, saved
from tests.requirements import requirement

PICTURE = base64.b64encode(saved(flag(40, 30), "image/png")).decode()


def draw(text: str, **options: Any) -> RenderedDocument:
    document = render_web_page(text.encode(), RenderOptions(**options))
    assert isinstance(document, RenderedDocument), document
    for page in document.pages:
        assert fits_provider(*Pillow.open(BytesIO(page.data)).size)
    return document


def spell(block: Block) -> str:
    match block:
        case Paragraph():
            marker = f"{block.marker.text} " if block.marker else ""
            return marker + "".join(span.text for span in block.spans).strip()
        case TableBlock():
            rows = (" | ".join("".join(span.text for span in cell.spans) for cell in row) for row in block.rows)
            return "\n".join(rows)
        case CodeBlock():
            return "\n".join("".join(span.text for span in line) for line in block.lines)
        case _:
            return type(block).__name__


def spell_page(text: str) -> list[str]:
    return [spell(each) for each in read_web_page(text).blocks]


@requirement("input.html.layout")
def test_a_page_has_headings_text_lists_code_and_pictures() -> None:
    page = f"""<!doctype html><html><head><title>Not shown</title><style>p {{}}</style></head><body>
    <h1>Big <em>news</em></h1><p>One
      paragraph &amp; a <a href="/x">link</a>.<p>Another<br>line
    <ul><li>first<li>second<ol start=4><li>inner</ol></ul>
    <blockquote>quoted</blockquote><hr><pre>def f():
    return 1</pre><img src="data:image/png;base64,{PICTURE}"><img src="http://x.test/a.png" alt="a chart">
    <dl><dt>term<dd>meaning</dl></body></html>"""
    assert spell_page(page) == [
        "Big news",
        "One paragraph & a link.",
        "Another\nline",
        "• first",
        "• second",
        "4. inner",
        "quoted",
        "RuleBlock",
        "def f():\n    return 1",
        "PictureBlock",
        "[image: a chart]",
        "term",
        "meaning",
    ]
    blocks = read_web_page(page).blocks
    kinds = [type(each) for each in blocks if not isinstance(each, Paragraph)]
    assert kinds == [RuleBlock, CodeBlock, PictureBlock]
    assert isinstance(blocks[0], Paragraph)
    assert [span.style.italic for span in blocks[0].spans] == [False, True]


@requirement("input.html.layout")
def test_a_table_of_a_page_is_a_table() -> None:
    table = "<table><thead><tr><th>Name<th>Value</thead><tr><td>a</td><td colspan=2>1</table>"
    assert spell_page(table) == ["Name | Value\na | 1 | "]
    assert spell_page(f"<table><tr><td>menu<td><p>text</p>{table}</table>") == [
        "menu",
        "text",
        "Name | Value\na | 1 | ",
    ]


@requirement("input.html.layout", "input.html.hostile")
def test_nothing_of_a_script_a_frame_or_a_hidden_part_is_shown() -> None:
    page = """<p>seen</p><script>document.write("<p>unseen")</script><style>x{}</style><noscript>unseen</noscript>
    <iframe src="file:///etc/passwd">unseen</iframe><meta http-equiv=refresh content="0;url=file:///etc/passwd">
    <template>unseen</template><object data="file:///etc/passwd">unseen</object><input type=hidden value=unseen>
    <input value="typed"><p>after</p>"""
    assert spell_page(page) == ["seen", "[typed]", "after"]


@requirement("input.html.hostile")
def test_drawing_a_page_connects_to_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        url = f"http://127.0.0.1:{port}/"
        draw(f"<link rel=stylesheet href={url}><img src={url}><iframe src={url}></iframe><script src={url}></script>x")
        with pytest.raises(BlockingIOError):
            server.accept()


HOSTILE = {
    "nesting": "<div>" * 20_000 + "deep",
    "tables": "<table><tr><td>" * 3_000 + "deep",
    "lists": "<ul><li>" * 3_000 + "deep",
    "rows": "<table>" + "<tr><td>1<td>2" * 4_000,
    "a wide cell": "<table><tr><td colspan=999999999>x",
    "a long word": "<p>" + "x" * 60_000,
    "open": "<" * 4_000,
    "a comment": "<!--" * 3_000,
    "entities": "<p>" + "&amp;" * 30_000,
    "nothing": "<html></html>",
}


@requirement("input.html.hostile", "render.hostile")
@pytest.mark.parametrize("page", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_page_is_a_bounded_picture(page: str) -> None:
    assert draw(page).total >= 1


@requirement("input.html", "input.html.layout")
def test_a_page_is_drawn_without_a_browser() -> None:
    data = b"<?xml version='1.0'?><!doctype html><html><body>words</body></html>"
    for name in ("page.html", "page.xhtml", ""):
        assert choose_renderer(identify_file(data), data, name, programs=False) is WEB_PAGE_RENDERER
    assert CHROMIUM.install in WEB_PAGE_RENDERER.note
    assert draw("<p>x") == draw("<p>x")


@requirement("input.html.source")
def test_templates_and_chosen_lines_of_a_page_are_shown_as_source() -> None:
    data = b"<!doctype html><html><body>{{ words }}</body></html>"
    kind = identify_file(data)
    for name, options in (("App.vue", RenderOptions()), ("page.html", RenderOptions(lines=(1, 1)))):
        renderer = choose_renderer(kind, data, name, options)
        assert isinstance(renderer, Renderer)
        assert renderer.name == "code"


@requirement("input.html")
@pytest.mark.parametrize(
    ("data", "name", "drawn"),
    [
        (b"<p>Hello", "page.html", True),
        (b"<meta charset=utf-8><div>x</div>", "page.htm", True),
        (b"  <!DOCTYPE html><html>", "", True),
        (b"no tag", "page.html", False),
        (b"<p>Hello", "", False),
        (b"<p>Hello", "notes.txt", False),
    ],
)
def test_a_page_is_recognized_by_its_name_or_its_beginning(data: bytes, name: str, *, drawn: bool) -> None:
    renderer = choose_renderer(identify_file(data), data, name, programs=False)
    assert isinstance(renderer, Renderer)
    assert (renderer.name == "webpage") is drawn
