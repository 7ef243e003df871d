"""Markdown, notebooks, tables, JSON and diffs: what is drawn where, and what a hostile file costs."""

from __future__ import annotations

import base64
import json
from collections import Counter
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pillow

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import TEXT
from sightline.pixels.renderers.choose_renderer import choose_renderer
from sightline.pixels.renderers.document_layout import TableBlock, lay_table
from sightline.pixels.renderers.markdown import read_markdown, read_notebook
from sightline.pixels.renderers.page_layout import (
    CodeBlock,
    Paragraph,
    PictureBlock,
    Strip,
    divide_strips,
    fits_provider,
    make_gap,
)
from sightline.pixels.renderers.renderer import RenderedDocument, Renderer, RenderOptions, get_suffix
from sightline.pixels.renderers.source_code import build_table, choose_tint, find_delimiter, indent_json, read_rows
from sightline.pixels.renderers.text_fonts import FontLibrary
from tests.pixels.bitmaps import flag, saved
from tests.requirements import requirement

PICTURE = base64.b64encode(saved(flag(40, 30), "image/png")).decode()


def draw(name: str, data: str | bytes, **options: Any) -> RenderedDocument:
    data = data.encode() if isinstance(data, str) else data
    renderer = choose_renderer(TEXT, data, name)
    assert isinstance(renderer, Renderer)
    assert renderer.render is not None
    document = renderer.render(data, RenderOptions(suffix=get_suffix(name), **options))
    assert isinstance(document, RenderedDocument), document
    for page in document.pages:
        assert fits_provider(*Pillow.open(BytesIO(page.data)).size)
    return document


def spell(spans: Any) -> str:
    return "".join(span.text for span in spans)


@requirement("input.documents")
@pytest.mark.parametrize(
    ("name", "text", "by"),
    [
        ("a.md", "# x", "markdown"),
        ("a.csv", "a,b\n1,2", "table"),
        ("a.tsv", "a\tb", "table"),
        ("a.json", "{}", "json"),
        ("", '{"a": 1}', "json"),
        ("a.patch", "--- a\n+++ b\n", "diff"),
        ("", "diff --git a/x b/x\n", "diff"),
        ("a.ipynb", "{}", "notebook"),
        ("", '{"nbformat": 4, "cells": []}', "notebook"),
        ("a.py", "# x", "code"),
        ("README", "# x", "code"),
    ],
)
def test_each_kind_has_its_renderer_and_gives_the_same_bytes(name: str, text: str, by: str) -> None:
    renderer = choose_renderer(TEXT, text.encode(), name)
    assert isinstance(renderer, Renderer)
    assert renderer.name == by
    assert draw(name, text) == draw(name, text)


@requirement("input.markdown")
def test_markdown_is_read_as_blocks() -> None:
    text = "# Title\n\nSome **bold** text\n\n- [x] done\n- item\n\n3. three\n\n> quote\n\n"
    text += "```python\ndef f(): pass\n```\n\n---\n"
    blocks = read_markdown(text)
    shown = [
        (spell(each.spans), each.marker.text if each.marker else "") for each in blocks if isinstance(each, Paragraph)
    ]
    assert shown == [
        ("Title", ""),
        ("Some bold text", ""),
        ("done", "☑"),
        ("item", "•"),
        ("three", "3."),
        ("quote", ""),
    ]
    (code,) = (each for each in blocks if isinstance(each, CodeBlock))
    assert [spell(line) for line in code.lines] == ["def f(): pass"]
    assert len({span.style.colour for span in code.lines[0]}) > 1
    quote = next(each for each in blocks if isinstance(each, Paragraph) and each.bars)
    assert spell(quote.spans) == "quote"


@requirement("input.markdown")
def test_a_table_in_markdown_is_a_table() -> None:
    (table,) = read_markdown("| a | b |\n|---|--:|\n| one | 2 |\n")
    assert isinstance(table, TableBlock)
    assert [[spell(cell.spans) for cell in row] for row in table.rows] == [["a", "b"], ["one", "2"]]
    assert [cell.is_right for cell in table.rows[1]] == [False, True]


@requirement("input.markdown.all_text")
def test_a_long_cell_in_markdown_is_not_cut() -> None:
    (table,) = read_markdown("| a | b |\n|---|---|\n| one | " + "word " * 240 + "|\n")
    assert isinstance(table, TableBlock)
    short = lay_table(TableBlock([row[:1] for row in table.rows], max_lines=8), 720, FontLibrary())
    rows = lay_table(table, 720, FontLibrary())
    assert rows[1].height > 15 * (short[1].height - 8)


@requirement("input.markdown.all_text")
@pytest.mark.parametrize("text", ["> " * 60 + "deep", "> " * 30 + "deep", "- " * 30 + "deep"])
def test_text_that_is_nested_deeply_is_shown_as_source(text: str) -> None:
    (block,) = read_markdown(text)
    assert isinstance(block, CodeBlock)
    assert "".join(span.text for line in block.lines for span in line) == text


@requirement("input.markdown.images")
def test_only_images_within_the_file_are_drawn() -> None:
    text = f"![remote](https://example.org/a.png) ![local](/etc/logo.png) ![own](data:image/png;base64,{PICTURE})"
    blocks = read_markdown(text)
    assert [type(each) for each in blocks] == [Paragraph, PictureBlock]
    assert isinstance(blocks[0], Paragraph)
    assert spell(blocks[0].spans) == "[image: remote] [image: local] "
    broken = read_markdown("![own](data:image/png;base64,AAAA)")
    assert [type(each) for each in broken] == [Paragraph]


@requirement("input.notebook")
def test_a_notebook_shows_its_cells_outputs_and_pictures() -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["50 %\r100 %\n"]},
        {"output_type": "display_data", "data": {"image/png": PICTURE, "text/plain": "<Figure>"}},
        {"output_type": "execute_result", "execution_count": 7, "data": {"text/plain": "42"}},
        {"output_type": "error", "ename": "E", "evalue": "x", "traceback": ["\x1b[31mE\x1b[0m: x"]},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n"]},
        {"cell_type": "code", "execution_count": 7, "source": "6 * 7", "outputs": outputs},
    ]
    notebook = {"nbformat": 4, "cells": cells}
    title, code, printed, picture, result, error = read_notebook(notebook)
    assert isinstance(title, Paragraph)
    assert isinstance(picture, PictureBlock)
    blocks = [each for each in (code, printed, result, error) if isinstance(each, CodeBlock)]
    assert [spell(each.lines[0]) for each in blocks] == ["6 * 7", "100 %", "42", "E: x"]
    assert [each.label.text if each.label else "" for each in blocks] == ["In [7]:", "", "Out[7]:", ""]
    assert draw("a.ipynb", json.dumps(notebook)).total == 1


@requirement("input.table")
def test_a_table_is_divided_by_its_own_delimiter() -> None:
    assert [
        find_delimiter(["a;b,c;d", "1;2;3,5"]),
        find_delimiter(["a\tb", "1\t2"]),
        find_delimiter(["a|b", "c|d"]),
    ] == [
        ";",
        "\t",
        "|",
    ]
    rows = list(read_rows('name,amount\n"x, y",12\n\n"two\nlines",3.5 %\n'))
    assert rows == [["name", "amount"], ["x, y", "12"], ["two\nlines", "3.5 %"]]
    table = build_table(rows)
    assert [cell.is_right for cell in table.rows[1]] == [False, True]


@requirement("input.table.cells")
def test_a_long_cell_of_a_table_is_drawn_and_a_note_says_where_one_is_cut() -> None:
    whole, cut = (draw("a.csv", f"a,b,c\n1,{'word ' * count},{'x ' * count}\n") for count in (200, 1500))
    assert (whole.note, "cut" in cut.note) == ("", True)
    short = draw("a.csv", "a,b,c\n1,word,x\n")
    heights = [Pillow.open(BytesIO(each.pages[0].data)).height for each in (short, whole)]
    assert heights[1] > 4 * heights[0]


@requirement("input.table")
def test_a_wide_table_is_split_and_repeats_header_and_first_column() -> None:
    rows = [[f"{row}.{column} {'x' * 9}" for column in range(12)] for row in range(90)]
    strips = lay_table(build_table(rows), 720, FontLibrary([]))
    heads = Counter(id(strip.head) for strip in strips if strip.head)
    assert len(heads) == 3
    pages = divide_strips(strips, 1000)
    assert all(page[0].head is None for page in pages)
    assert sum(len(page) for page in pages) > len(strips)
    assert draw("a.csv", "\n".join(map(",".join, rows))).total > 2


def test_a_heading_stays_with_what_follows_it() -> None:
    heading, text = Strip(20, make_gap(1).paint, keeps_next=True), make_gap(30)
    pages = divide_strips([make_gap(60), heading, text], 100)
    assert [[each.height for each in page] for page in pages] == [[60], [20, 30]]


@requirement("input.json")
def test_json_is_indented_and_keeps_its_own_tokens() -> None:
    text = '{"b":1.50,"a":12345678901234567890,"b":[1,2],"c":{"d":"\\u00e9, [x]"},"e":[]}'
    pretty = indent_json(text)
    assert pretty == (
        '{\n  "b": 1.50,\n  "a": 12345678901234567890,\n  "b": [1, 2],\n  "c": {\n    "d": "\\u00e9, [x]"\n  },\n'
        '  "e": []\n}\n'
    )
    assert [indent_json(each) for each in ('{"a":', "[1}", "nothing", "")] == [None] * 4
    assert indent_json('{"a":1}\n{"a":2}\n') == '{"a": 1}\n{"a": 2}\n'
    long = "x" * 70
    pretty = indent_json(json.dumps({"a": [{"b": long}, {"b": {"c": long}}]}))
    assert (pretty or "").replace(long, "x") == (
        '{\n  "a": [\n    {\n      "b": "x"\n    }, {\n      "b": {\n        "c": "x"\n}}]}\n'
    )
    assert "indented" in draw("a.json", text).note


@requirement("input.diff")
def test_a_diff_is_green_and_red_with_bars_for_files() -> None:
    lines = ["diff --git a/x b/x", "+++ b/x", "@@ -1 +1 @@", "+new", "-old", " same"]
    tints = [choose_tint(line) for line in lines]
    assert tints[-1] is None
    assert len({tint.ground for tint in tints if tint}) == 5
    page = Pillow.open(BytesIO(draw("a.diff", "\n".join(lines)).pages[0].data)).convert("RGB")
    colours = {colour for _, colour in page.getcolors(100_000) or []}
    assert {(0xD9, 0xF5, 0xDE), (0xFD, 0xE0, 0xE0)} <= colours


@requirement("view.lines")
@pytest.mark.parametrize("name", ["a.md", "a.csv", "a.json", "a.ipynb", "a.diff"])
def test_lines_of_a_document_are_those_of_its_source(name: str) -> None:
    text = '{"cells": [],\n"b": 1,\n"c": 2}\n'
    assert draw(name, text, lines=(2, 3)).total == 1
    renderer = choose_renderer(TEXT, text.encode(), name)
    assert isinstance(renderer, Renderer)
    assert renderer.render is not None
    assert isinstance(renderer.render(text.encode(), RenderOptions(lines=(9, 9))), Refusal)


@requirement("render.hostile.text")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "> " * 5000 + "x"),
        ("a.md", "- " * 5000 + "x"),
        ("a.md", "[" * 400_000),
        ("a.md", "# x\n" * 200_000),
        ("a.json", "[" * 100_000 + "]" * 100_000),
        ("a.json", "[" * 100_000),
        ("a.csv", ",".join(map(str, range(100_000)))),
        ("a.csv", "a,b\n" * 100_000),
        ("a.csv", '"' + "x" * 300_000),
        ("a.csv", "1," * 200_000),
        ("a.ipynb", '{"cells": ' + "[" * 50_000),
        (
            "a.ipynb",
            '{"cells": [1, null, {"cell_type": "code", "source": 5, "outputs": [7, {"output_type": "error"}]}]}',
        ),
        ("a.diff", "+" * 1_000_000),
    ],
    ids=[f"{each}" for each in range(13)],
)
def test_a_hostile_document_is_a_bounded_page(name: str, text: str) -> None:
    assert draw(name, text).pages
