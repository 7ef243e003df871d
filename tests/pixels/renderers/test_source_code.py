"""Text and code: which lines are on which page, in which encodings, and what a hostile text costs."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import UNKNOWN, decode_text, identify_file, make_visible
from sightline.pixels.renderers.choose_renderer import choose_renderer
from sightline.pixels.renderers.page_layout import fits_provider
from sightline.pixels.renderers.renderer import RenderedDocument, RenderOptions
from sightline.pixels.renderers.source_code import CODE_RENDERER, find_lexer, render_code
from sightline.pixels.renderers.text_fonts import (
    FONT_FOLDER,
    FontCoverage,
    FontLibrary,
    SystemFonts,
    TextStyle,
    read_coverage,
)
from tests.requirements import requirement

CODE = b"def add(one: int, other: int) -> int:\n\treturn one + other  # the sum\n"
MONO = TextStyle(12, mono=True)
JAPANESE = "これはテキストです。設定を読みます。\n"
CHINESE = "这是一个文本文件。请阅读设置。\n"


def draw(text: str | bytes, options: RenderOptions = RenderOptions()) -> RenderedDocument:  # noqa: B008, frozen
    document = render_code(text.encode() if isinstance(text, str) else text, options)
    assert isinstance(document, RenderedDocument), document
    return document


def open_page(document: RenderedDocument) -> Pillow.Image:
    return Pillow.open(BytesIO(document.pages[0].data)).convert("RGB")


@requirement("input.text", "render.same_bytes")
def test_code_is_drawn_in_colours_and_the_same_each_time() -> None:
    document = draw(CODE, RenderOptions(suffix=".py"))
    colours = {colour for _, colour in open_page(document).getcolors(100_000) or []}
    assert {(0xA3, 0x15, 0x15), (0x57, 0x60, 0x6A)} <= colours
    assert document == draw(CODE, RenderOptions(suffix=".py"))
    assert document != draw(CODE, RenderOptions(suffix=".txt"))


@requirement("input.text")
def test_a_language_is_known_by_suffix_name_and_content() -> None:
    cases = [(".py", ""), ("makefile", ""), ("dockerfile", ""), ("", "#!/usr/bin/env python3\n"), ("", "<?xml ?>")]
    found = [lexer.name if (lexer := find_lexer(*case)) else "" for case in cases]
    assert found == ["Python", "Makefile", "Docker", "Python", "XML"]
    assert (find_lexer("", "some words"), find_lexer(".nothing", "")) == (None, None)


@requirement("render.legible_size")
@pytest.mark.parametrize("columns", [10, 79, 100, 400])
def test_no_page_is_larger_than_the_provider_keeps(columns: int) -> None:
    for lines in (1, 100, 700):
        document = draw("\n".join(["x" * columns] * lines))
        page = open_page(document)
        assert fits_provider(*page.size), (columns, lines, page.size)
    assert draw("\n".join(["x" * 79] * 100)).total == 1
    assert draw("x\n" * 300).total == 1


@requirement("view.lines")
def test_lines_are_drawn_with_their_numbers() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 500))
    part = draw(text, RenderOptions(lines=(200, 210)))
    assert part.total == 1
    assert part.pages != draw(text, RenderOptions(lines=(201, 211))).pages
    assert draw(text, RenderOptions(lines=(490, 9999))).total == 1
    refusal = render_code(text.encode(), RenderOptions(lines=(500, 600)))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "invalid_input"


@requirement("view.page.rendered")
def test_a_long_text_has_pages_that_show_other_lines() -> None:
    text = "".join(f"{number} {'word ' * 14}\n" for number in range(2000))
    document = draw(text, RenderOptions(page=2, count=2))
    assert document.total > 10
    assert [page.number for page in document.pages] == [2, 3]
    assert document.pages[0].data != document.pages[1].data
    refusal = render_code(text.encode(), RenderOptions(page=document.total + 1))
    assert isinstance(refusal, Refusal)


@requirement("input.text.encodings")
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Grüße für José: 100 €\n", "utf-8"),
        ("Grüße für José: 100 €\n", "utf-8-sig"),
        ("Grüße für José: 100 €\n", "utf-16"),
        ("Grüße für José, 100\n", "utf-16-le"),
        ("Grüße für José, 100\n", "utf-16-be"),
        ("Grüße für José: 100 €\n", "cp1252"),
        ("Fußgänger überqueren die Straße schräg\n", "latin-1"),
        (JAPANESE, "shift_jis"),
        (CHINESE, "gb18030"),
        ("日本語のコメント = 1\n", "cp932"),
    ],
)
def test_text_in_any_encoding_is_read(text: str, encoding: str) -> None:
    data = (text * 3).encode(encoding)
    assert decode_text(data)[0] == text * 3
    assert choose_renderer(identify_file(data), data, "notes.txt") is CODE_RENDERER
    assert ("read as" in draw(data).note) == (not encoding.startswith("utf-8"))


@requirement("input.text.encodings")
def test_binary_data_is_not_text() -> None:
    for data in (
        b"\x7fELF\x02\x01\x01" + bytes(60),
        bytes(range(256)) * 4,
        b"\0" * 40,
        b"\x89\x01\x02\xff\xfe\x80" * 9,
    ):
        assert identify_file(data) is UNKNOWN
        assert choose_renderer(identify_file(data), data, "x.py") is None


@requirement("input.text.visible")
def test_control_and_invisible_characters_are_visible() -> None:
    shown = make_visible("a\0b\x1b[31m \x7f \u202e \u200b a\u200d")
    assert shown == "a␀b␛[31m ␡ ⟦202E⟧ ⟦200B⟧ a⟦200D⟧"
    assert make_visible("e\u0301 👩\u200d💻 ❤\ufe0f") == "e\u0301 👩\u200d💻 ❤\ufe0f"
    assert len(make_visible("a" + "\u0301" * 100_000)) < 10


@requirement("input.text.fonts")
def test_each_character_is_drawn_in_a_font_that_has_it_or_as_a_box() -> None:
    fonts = FontLibrary([])
    runs = fonts.split_runs("ab שלום ☃ 𓀀", MONO)
    assert [(run.text.strip(), run.face.path.stem if run.face else None) for run in runs if run.text.strip()] == [
        ("ab", "DejaVuSansMono"),
        ("שלום", "DejaVuSans"),
        ("☃", "DejaVuSansMono"),
        ("𓀀", None),
    ]
    assert [fonts.count_cells(each) for each in "a\u0301\u200d𓀀"] == [1, 0, 0, 4]
    empty, box = open_page(draw(" ")), open_page(draw("𓀀"))
    assert box.tobytes() != empty.tobytes()


@requirement("input.text.fonts")
def test_fonts_of_the_system_come_after_the_bundled_ones(tmp_path: Path) -> None:
    (tmp_path / "Foreign.ttf").write_bytes((FONT_FOLDER / "DejaVuSans.ttf").read_bytes())
    (tmp_path / "Broken.ttf").write_bytes(b"\0\1\0\0 no font")
    assert getattr(FontLibrary([tmp_path]).find_face("a", MONO), "path", None) == FONT_FOLDER / "DejaVuSansMono.ttf"
    assert read_coverage(tmp_path / "Broken.ttf") == FontCoverage()
    covered = read_coverage(tmp_path / "Foreign.ttf")
    assert SystemFonts((tmp_path,)).find_version() != SystemFonts((tmp_path / "none",)).find_version()
    assert (covered.covers("a"), covered.covers("ש"), covered.covers("图")) == (True, True, False)


@requirement("render.hostile.text")
@pytest.mark.parametrize(
    "text",
    [
        "x" * 3_000_000,
        "\n" * 300_000,
        "a" + "\u0301" * 300_000,
        "図" * 300_000,
        "\u200b" * 300_000,
        "(" * 100_000,
        "\0a" * 9,
    ],
    ids=["one line", "many lines", "marks", "wide", "zero width", "brackets", "zeros"],
)
def test_a_hostile_text_is_a_bounded_page(text: str) -> None:
    document = draw(text, RenderOptions(suffix=".py"))
    assert fits_provider(*open_page(document).size)


@requirement("render.hostile.text")
def test_a_type_is_found_in_linear_time() -> None:
    """The parent finds it: with backtracking, these comments would take years."""
    data = b"<!---->" * 500 + b"<p>hello</p>"
    assert choose_renderer(identify_file(data[:4096]), data, "x.vue") is CODE_RENDERER


@requirement("render.hostile.text")
def test_a_text_that_is_too_large_is_refused() -> None:
    data = b"x" * (CODE_RENDERER.max_bytes + 1)
    refusal = choose_renderer(identify_file(data[:4096]), data, "x.txt")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "too_large"
