"""How a renderer is chosen, what a converter's file becomes, and several pages as one sheet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow

from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.pixels.file_types import SVG, UNKNOWN
from sightline.pixels.renderers.choose_renderer import RENDERERS, build_contact_sheet, choose_renderer, render_task
from sightline.pixels.renderers.office import LIBREOFFICE_RENDERER, OFFICE_RENDERER
from sightline.pixels.renderers.pdf import PDF_RENDERER
from sightline.pixels.renderers.render_file import PagePicture, RenderRequest, render_file
from sightline.pixels.renderers.renderer import (
    ConvertedFile,
    InstalledProgram,
    PythonPackage,
    RenderedDocument,
    RenderedPage,
    Renderer,
    RenderOptions,
    check_page,
    encode_page,
)
from sightline.pixels.renderers.run_program import run_program
from sightline.pixels.renderers.svg import SVG_RENDERER
from sightline.runtime import get_shared_renderers
from sightline.store import open_record
from tests.pixels.bitmaps import photo
from tests.pixels.renderers.drawings import drawing, square
from tests.pixels.renderers.office_files import xlsx
from tests.requirements import requirement

LIST = "sightline.pixels.renderers.choose_renderer.RENDERERS"
COLOURS = ("red", "lime", "blue", "yellow", "black")


def render_book(data: bytes, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw a page of one colour for each word."""
    colours = data.decode().split()[1:]
    if refusal := check_page(options.page, len(colours)):
        return refusal
    numbers = range(options.page, min(options.page + options.count, len(colours) + 1))
    pages = [RenderedPage(encode_page(Pillow.new("RGB", (90, 60), colours[at - 1])), at) for at in numbers]
    return RenderedDocument(tuple(pages), len(colours))


BOOK = Renderer("book", 1, frozenset({"text/plain"}), render=render_book, options=frozenset({"page"}))


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Store]:
    store = open_record(tmp_path / "record")
    yield store
    store.close()


def use(monkeypatch: pytest.MonkeyPatch, *renderers: Renderer) -> None:
    monkeypatch.setattr(LIST, (*renderers, *RENDERERS))


def draw_book(monkeypatch: pytest.MonkeyPatch, **options: object) -> tuple[dict[str, object], bytes] | Refusal:
    use(monkeypatch, BOOK)
    return render_task(f"book {' '.join(COLOURS)}".encode(), {"renderer": "book", "options": options})


@requirement("view.page.rendered")
def test_pages_are_drawn_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draw_book(monkeypatch, page=3, count=2)
    assert not isinstance(drawn, Refusal)
    facts, data = drawn
    assert [number for _, number, *_ in facts["pages"]] == [3, 4]  # type: ignore[attr-defined]
    assert facts["total"] == len(COLOURS)
    assert Pillow.open(BytesIO(data)).convert("RGB").getpixel((5, 5)) == (0, 0, 255)
    missing = draw_book(monkeypatch, page=6)
    assert isinstance(missing, Refusal)
    assert missing.code == "invalid_input"


@requirement("render.sheet")
def test_several_pages_are_one_sheet_in_order_with_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draw_book(monkeypatch, sheet=True, page=2)
    assert not isinstance(drawn, Refusal)
    facts, data = drawn
    sheet = Pillow.open(BytesIO(data)).convert("RGB")
    found = [sheet.getpixel((x, y)) for y in range(20, sheet.height, 102) for x in range(20, sheet.width, 102)]
    assert [facts["total"], len(facts["pages"])] == [5, 1]  # type: ignore[arg-type]
    assert found == [(0, 255, 0), (0, 0, 255), (255, 255, 0), (0, 0, 0)]
    assert "2 to 5 of 5" in str(facts["note"])


@requirement("render.sheet")
def test_a_sheet_shows_the_labels_of_its_pages() -> None:
    page = RenderedPage(encode_page(Pillow.new("RGB", (90, 60), "white")))
    one, other = (build_contact_sheet([replace(page, label=label)]) for label in ("0:05", "0:10"))
    assert one != other


def test_photographs_and_drawings_are_encoded_in_their_formats() -> None:
    assert encode_page(photo(300, 200)).startswith(b"\xff\xd8")
    assert encode_page(Pillow.new("L", (30, 20), 128)).startswith(b"\x89PNG")


@requirement("render.installed")
def test_a_missing_renderer_is_refused_with_the_command_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for need in (PythonPackage("no_such_module", "x", "pip install x"), InstalledProgram(("no-such",), "get no-such")):
        monkeypatch.setattr(LIST, (replace(SVG_RENDERER, needs=(need,)),))
        refusal = choose_renderer(SVG, b"<svg/>", "")
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.remedy) == ("render_unavailable", f"run: {need.install}")
    monkeypatch.setattr(LIST, (replace(SVG_RENDERER, needs=(need,)), SVG_RENDERER))
    assert choose_renderer(SVG, b"<svg/>", "") is SVG_RENDERER
    assert choose_renderer(UNKNOWN, b"", "") is None


@requirement("render.limits")
def test_a_file_larger_than_its_renderer_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIST, (replace(SVG_RENDERER, max_bytes=5),))
    refusal = choose_renderer(SVG, b"<svg/>", "")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "too_large"


@requirement("render.program", "render.cached")
def test_the_output_of_a_converter_is_rendered_and_cached(monkeypatch: pytest.MonkeyPatch, record: Store) -> None:
    count = []

    def convert(data: bytes, options: RenderOptions) -> ConvertedFile | Refusal:
        count.append(1)
        image = drawing(square("red")).decode()
        command = [str(Path(sys.executable).resolve()), "-I", "-c", f"print({image!r})"]
        made = run_program(command, {"source.ps": data}, seconds=60, readable=[sys.prefix, sys.base_prefix])
        return made if isinstance(made, Refusal) else ConvertedFile(made, "by a program")

    suite = Renderer(
        "suite",
        1,
        frozenset({"application/postscript"}),
        convert=convert,
        options=frozenset({"page"}),
        note="made for a test",
    )
    use(monkeypatch, suite)
    request = RenderRequest(get_shared_renderers(), record.images, "scope", b"%!PS\n", "page.ps", RenderOptions())
    first, again = render_file(request), render_file(request)
    assert isinstance(first, tuple), first
    assert (first, len(count)) == (again, 1)
    (page,) = first
    assert isinstance(page, PagePicture)
    assert (page.origin.by, page.note) == ("suite", "by a program, made for a test")
    assert Pillow.open(BytesIO(page.image.data)).convert("RGB").getpixel((5, 5)) == (255, 0, 0)


@requirement("render.isolated")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux isolates processes this way")
def test_the_workers_of_renderers_are_isolated() -> None:
    pool = get_shared_renderers()
    reply = pool.run_sync("render", drawing(square("red")), {"renderer": "resvg", "options": {}})
    assert not isinstance(reply, Refusal)
    for worker in pool._workers:
        assert "Seccomp:\t2" in Path(f"/proc/{worker._process.pid}/status").read_text()


@requirement("input.office.checked")
def test_a_program_does_not_get_a_document_that_its_check_refuses(
    monkeypatch: pytest.MonkeyPatch, record: Store
) -> None:
    given = list[bytes]()

    def convert(data: bytes, options: RenderOptions) -> Refusal:
        given.append(data)
        return Refusal("corrupt", "the suite could not convert the file", "")

    use(monkeypatch, replace(LIBREOFFICE_RENDERER, convert=convert, needs=()))
    near, far = (xlsx({"S": f'<row><c r="{at}"><v>1</v></c></row>'}) for at in ("A1", "XFD1048576"))
    for data in (far, near):
        request = RenderRequest(get_shared_renderers(), record.images, "scope", data, "a.xlsx", RenderOptions())
        pages = render_file(request)
        assert isinstance(pages, tuple), pages
        assert pages[0].origin.by == OFFICE_RENDERER.name
    assert given == [near]


@requirement("render.cached")
def test_the_version_of_a_converter_has_that_of_the_renderer_of_its_pages() -> None:
    other = replace(LIBREOFFICE_RENDERER, page_renderer=replace(PDF_RENDERER, revision=99))
    assert other.version != LIBREOFFICE_RENDERER.version
    assert metadata.version("pypdfium2") in LIBREOFFICE_RENDERER.version


@requirement("render.program.failure")
def test_a_program_does_not_get_a_file_twice_that_it_could_not_convert(
    monkeypatch: pytest.MonkeyPatch, record: Store
) -> None:
    """Otherwise each page of it would take the time that the program has."""
    now, times = 2e9, list[float]()

    def convert(data: bytes, options: RenderOptions) -> Refusal:
        times.append(now)
        return Refusal("too_large", "the suite took more than 6 seconds for the file", "give a smaller one")

    use(monkeypatch, replace(LIBREOFFICE_RENDERER, convert=convert, needs=()))
    data = xlsx({"S": '<row><c r="A1"><v>1</v></c></row>'})
    request = RenderRequest(get_shared_renderers(), record.images, "scope", data, "a.xlsx", RenderOptions())
    monkeypatch.setattr("time.time", lambda: now)
    for now in (2e9, 2e9 + 1, 2e9 + 3600):  # noqa: B007, the clock reads it
        pages = render_file(request)
        assert isinstance(pages, tuple), pages
        assert "the suite took more than 6 seconds" in pages[0].note
    assert times == [2e9, 2e9 + 3600], "again after an hour"


@requirement("render.program.fallback")
def test_a_file_that_its_program_cannot_convert_is_drawn_without_it(
    monkeypatch: pytest.MonkeyPatch, record: Store
) -> None:
    failed = Refusal("corrupt", "the suite could not convert the file", "")
    suite = Renderer("suite", 1, frozenset({"image/svg+xml"}), convert=lambda data, options: failed)
    use(monkeypatch, suite)
    data = drawing(square("red"))
    request = RenderRequest(get_shared_renderers(), record.images, "scope", data, "a.svg", RenderOptions())
    for _ in range(2):
        pages = render_file(request)
        assert isinstance(pages, tuple), pages
        assert pages[0].origin.by == SVG_RENDERER.name
        assert failed.what in pages[0].note
