"""SVG: what is drawn, at which size, on which ground, and what a hostile drawing costs."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import GZIP, SVG, SVGZ, identify_file
from sightline.pixels.renderers import LIMITS, start_renderers
from sightline.pixels.renderers.renderer import RenderedDocument, RenderOptions
from sightline.pixels.renderers.svg import read_svg_text, render_svg
from sightline.pixels.workers import WorkerLimits, WorkerPool, WorkerReply
from tests.pixels.bitmaps import BLUE, flag, saved
from tests.pixels.renderers import drawings
from tests.pixels.renderers.drawings import drawing, square
from tests.requirements import requirement

WHITE, RED = (255, 255, 255), (255, 0, 0)


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with start_renderers(WorkerLimits(seconds=1.0, memory=LIMITS.memory, max_wall_seconds=60.0)) as workers:
        yield workers


def draw(data: bytes, options: RenderOptions = RenderOptions()) -> tuple[Pillow.Image, str]:  # noqa: B008, frozen
    document = render_svg(data, options)
    assert isinstance(document, RenderedDocument), document
    (page,) = document.pages
    return Pillow.open(BytesIO(page.data)).convert("RGB"), document.note


def refuse(data: bytes) -> Refusal:
    document = render_svg(data, RenderOptions())
    assert isinstance(document, Refusal)
    return document


def count_ink(picture: Pillow.Image) -> int:
    return sum(picture.convert("L").histogram()[:128])


@requirement("input.svg")
@pytest.mark.parametrize("form", [SVG, SVGZ], ids=["plain", "compressed"])
def test_a_drawing_is_drawn_also_when_it_is_compressed(form: object) -> None:
    data = drawing(square("red"))
    data = gzip.compress(data) if form is SVGZ else data
    assert identify_file(data) is form
    picture, note = draw(data)
    assert (picture.getpixel((5, 5)), note) == (RED, "")


@requirement("input.svg.encodings")
@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("iso-8859-1", "ISO-8859-1"),
        ("iso-8859-1", "UTF-8"),
        ("cp1251", "windows-1251"),
        ("shift_jis", "Shift_JIS"),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "no-such-encoding"),
        ("utf-8-sig", "utf-8"),
    ],
)
def test_a_drawing_in_another_encoding_is_drawn(encoding: str, declared: str) -> None:
    comment = {"cp1251": "Квадрат", "shift_jis": "四角い"}.get(encoding, "Größe")
    text = drawing(f"<title>{comment}</title>" + square("red")).decode()
    data = f'<?xml version="1.0" encoding="{declared}"?><!-- {comment} -->{text}'.encode(encoding)
    assert identify_file(data) is SVG
    assert identify_file(gzip.compress(data)) is SVGZ
    picture, note = draw(data)
    assert (picture.getpixel((5, 5)), note) == (RED, "")
    found = read_svg_text(data)
    assert isinstance(found, str)
    assert comment in found


def test_other_text_in_other_encodings_is_not_a_drawing() -> None:
    assert identify_file("<notes>Größe <svg>".encode("iso-8859-1")).mime == "text/plain"
    assert identify_file("<notes>Größe <svg>".encode("utf-16")).mime == "text/plain"


def test_other_compressed_data_is_not_a_drawing() -> None:
    assert identify_file(gzip.compress(b"# Notes")) is GZIP
    assert identify_file(b"\x1f\x8b broken") is GZIP


@requirement("input.svg.size")
@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ('width="40" height="30"', (520, 390)),
        ('width="800" height="600"', (800, 600)),
        ('width="8000" height="6000"', (2048, 1536)),
        ('viewBox="0 0 800 600"', (800, 600)),
        ('width="600" viewBox="0 0 40 30"', (600, 450)),
        ('height="8in" viewBox="0 0 40 30"', (1024, 768)),
        ('width="100%" height="100%" viewBox="0 0 800 600"', (800, 600)),
        ('width="1e9" height="1e9"', (2048, 2048)),
        ('width="1e9" height="1"', (2048, 1)),
    ],
)
def test_a_drawing_is_as_large_as_it_says_within_what_can_be_seen(size: str, shown: tuple[int, int]) -> None:
    picture, _ = draw(drawing(square("red"), size))
    assert picture.size == shown


@requirement("input.svg.size")
def test_a_drawing_without_a_size_is_as_large_as_its_content() -> None:
    picture, _ = draw(drawing(square("red"), ""))
    assert picture.size == (1024, 768)
    picture, _ = draw(drawing(square("red")), RenderOptions(width=300))
    assert picture.size == (300, 225)


@requirement("input.svg.ground")
@pytest.mark.parametrize(
    ("colour", "ground", "behind"),
    [
        ("black", None, WHITE),
        ("white", None, (0x1E, 0x1E, 0x1E)),
        ("white", "#ff0000", RED),
        ("black", "#ff0000", RED),
    ],
)
def test_transparency_gets_a_background_with_contrast(
    colour: str, ground: str | None, behind: tuple[int, int, int]
) -> None:
    circle = f'<circle cx="20" cy="15" r="8" fill="{colour}"/>'
    picture, note = draw(drawing(circle), RenderOptions(ground=ground))
    assert picture.getpixel((0, 0)) == behind
    assert bool(note) == (behind == (0x1E, 0x1E, 0x1E))


@requirement("input.svg.text")
@pytest.mark.parametrize("family", ["", "Arial", "Nowhere Sans, sans-serif", "monospace", "cursive"])
def test_text_is_drawn_in_any_font_family(family: str) -> None:
    words = f'<text x="2" y="20" font-size="12" font-family="{family}">Hello</text>'
    picture, _ = draw(drawing(words))
    assert count_ink(picture) > 1000


@requirement("render.references")
@pytest.mark.parametrize(
    "inner",
    [
        '<image href="{0}" width="40" height="30"/>',
        '<image xlink:href="{0}" width="40" height="30"/>',
        '<image href=" {0}" width="40" height="30"/>',
        '<image href="file://{0}" width="40" height="30"/>',
        '<image href="https://example.com/a.png" width="40" height="30"/>',
        '<image href="&path;" width="40" height="30"/>',
        "&element;",
        '<rect width="40" height="30" fill="url({0}#a) white"/>',
        '<rect width="40" height="30" style="fill:url(\'{0}\')"/>',
        '<style>@import url("{0}"); rect {{ fill: white }}</style>',
        "<style><![CDATA[ rect {{ fill: url({0}) }} ]]></style>",
    ],
)
def test_references_to_other_files_are_left_out_and_the_note_says_so(inner: str, tmp_path: Path) -> None:
    other = tmp_path / "other.png"
    other.write_bytes(saved(flag(40, 30), "image/png"))
    element = f"<image href='{other}' width='40' height='30'/>"
    entities = f'<!DOCTYPE svg [<!ENTITY path "{other}"><!ENTITY element "{element}">]>'
    picture, note = draw(drawing(square("white") + inner.format(other), before=entities))
    assert BLUE not in {colour for _, colour in picture.getcolors(1 << 20) or ()}
    assert "1" in note


@requirement("render.references")
def test_data_and_parts_of_the_drawing_itself_stay() -> None:
    png = base64.b64encode(saved(flag(40, 30), "image/png")).decode()
    inner = f'<image href="data:image/png;base64,{png}" width="40" height="30"/>'
    gradient = '<linearGradient id="g"><stop stop-color="#0f0"/></linearGradient>'
    own = f'{gradient}<rect id="r" width="9" height="9" fill="url( \'#g\')"/><use href="#r" x="30"/>'
    picture, note = draw(drawing(inner + own))
    colours = {colour for _, colour in picture.getcolors(1 << 20) or ()}
    assert note == ""
    assert BLUE in colours
    assert picture.getpixel((5, 5)) == picture.getpixel((400, 5)) == (0, 255, 0)


@requirement("render.references")
def test_a_drawing_is_the_same_after_a_reference_was_left_out() -> None:
    style = "<style>.a &gt; rect { fill: #0f0 } /* &amp; */</style>"
    inner = f'{style}<g class="a">{square("red")}</g><text x="2" y="20" font-size="9">a &lt; b &amp; c  d</text>'
    plain, _ = draw(drawing(inner))
    rewritten, note = draw(drawing(inner + '<image href="/nothing.png"/>'))
    assert note
    assert rewritten.tobytes() == plain.tobytes()


@requirement("render.hostile")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (drawings.entity_bomb(), "corrupt"),
        (drawing("<text>&x;</text>", before='<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>'), "corrupt"),
        (b"<svg", "corrupt"),
        (drawing("<g>"), "corrupt"),
        (drawing("", 'width="0" height="9"'), "corrupt"),
        (gzip.compress(drawing(square("red")))[:-20], "corrupt"),
    ],
    ids=["entities", "external entity", "cut", "not closed", "no size", "cut gzip"],
)
def test_a_drawing_that_cannot_be_drawn_is_a_refusal(data: bytes, code: str) -> None:
    assert refuse(data).code == code


@requirement("render.hostile")
def test_a_compressed_bomb_is_too_large() -> None:
    assert refuse(drawings.compressed_bomb()).code == "too_large"


@requirement("render.hostile", "render.limits")
@pytest.mark.parametrize(
    "data",
    [drawings.use_bomb(), drawings.nested_groups(), drawings.slow_filter()],
    ids=["10^8 uses", "60,000 groups", "a filter of minutes"],
)
def test_a_hostile_drawing_costs_a_refusal_and_the_next_one_is_drawn(pool: WorkerPool, data: bytes) -> None:
    arguments = {"renderer": "resvg", "options": {}}
    refusal = pool.run_sync("render", data, arguments)
    assert isinstance(refusal, Refusal), refusal
    assert refusal.code in ("too_large", "corrupt")
    reply = pool.run_sync("render", drawing(square("red")), arguments)
    assert isinstance(reply, WorkerReply)


@requirement("input.svg.effects")
def test_an_icon_with_large_masks_is_enlarged_less() -> None:
    picture, _ = draw(drawings.large_masks())
    assert 96 <= picture.width < 192
    assert picture.getpixel((picture.width // 4, picture.height // 2)) == RED
    small, _ = draw(drawings.large_masks(1).replace(b"1024", b"16").replace(b"800", b"16"))
    assert small.width == 512


@requirement("render.same_bytes")
def test_the_same_drawing_gives_the_same_bytes(pool: WorkerPool) -> None:
    data = drawing('<circle cx="20" cy="15" r="8"/><text y="20">Hello</text>')
    replies = [pool.run_sync("render", data, {"renderer": "resvg", "options": {}}) for _ in range(2)]
    assert isinstance(replies[0], WorkerReply)
    assert replies[0] == replies[1]
    document = render_svg(data, RenderOptions())
    assert isinstance(document, RenderedDocument)
    assert document.pages[0].data == replies[0].data
