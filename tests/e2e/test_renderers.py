"""Office documents by the real LibreOffice and web pages by the real Chromium, isolated as always."""

from __future__ import annotations

import base64
import socket
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow

import sightline
from sightline import Session
from sightline.api.failure import Failure
from sightline.api.tool_results import View
from tests.pixels.bitmaps import flag, saved
from tests.pixels.renderers.office_files import paragraph
from tests.requirements import requirement

SAMPLES = Path(__file__).parents[2] / "bench/samples/documents"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def make_docx(body: str) -> bytes:
    """Return the sample report with more in its text."""
    file = BytesIO()
    with zipfile.ZipFile(SAMPLES / "report.docx") as source, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            text = source.read(name)
            text = text.replace(b"</w:body>", f"{body}</w:body>".encode()) if name == "word/document.xml" else text
            target.writestr(name, text)
    return file.getvalue()


def view(name: str) -> View:
    found = sightline.view(name, session=Session(render=True))
    assert isinstance(found, View), found
    return found


def open_pixels(found: View) -> Pillow.Image:
    return Pillow.open(BytesIO(found.pixels.data)).convert("RGB")


@requirement("input.office", "input.office.libreoffice")
@pytest.mark.parametrize("name", ["report.docx", "report.odt", "sums.xlsx", "talk.pptx"])
def test_an_office_document_is_drawn_by_libreoffice(folder: Path, name: str) -> None:
    (folder / name).write_bytes((SAMPLES / name).read_bytes())
    found = view(name)
    assert found.rendered is not None
    assert (found.rendered.by, found.rendered.page) == ("libreoffice", 1), found.note
    assert sum(open_pixels(found).convert("L").histogram()[:100]) > 50, "there is text"
    assert not list(Path("/tmp").glob("OSL_PIPE_SingleOfficeIPC_*")), "no socket is left"


HOSTILE = {
    "spaces": " " * (200 << 20),
    "text": paragraph("x" * (80 << 20)),
    "tables": "<w:tbl><w:tr><w:tc>" * 5000 + paragraph("x") + "</w:tc></w:tr></w:tbl>" * 5000,
}


@requirement("input.office.hostile", "input.office.checked", "render.hostile")
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_document_is_refused_where_libreoffice_is_installed(folder: Path, body: str) -> None:
    (folder / "bomb.docx").write_bytes(make_docx(body))
    found = sightline.view("bomb.docx", session=Session(render=True))
    assert isinstance(found, Failure), found
    assert found.reason == "too_large"


@requirement("input.office.checked")
def test_a_document_of_hundreds_of_pages_is_drawn_by_libreoffice(folder: Path) -> None:
    words = [f"{at * 7919 % 100_003:x}" for at in range(60_000)]
    lines = [paragraph(" ".join(words[at : at + 20])) for at in range(0, len(words), 20)]
    (folder / "long.docx").write_bytes(make_docx("".join(lines)))
    found = view("long.docx")
    assert found.rendered is not None
    assert (found.rendered.by, found.rendered.pages > 100) == ("libreoffice", True), found.note


@requirement("input.html", "input.html.chromium", "input.html.hostile")
def test_chromium_draws_a_whole_page_without_what_it_asks_for(folder: Path, server: socket.socket) -> None:
    url = f"http://127.0.0.1:{server.getsockname()[1]}/"
    picture = base64.b64encode(saved(flag(40, 30), "image/png")).decode()
    page = f"""<!doctype html><html><head><meta http-equiv="refresh" content="0;url=file:///usr/share/common-licenses">
    <link rel="stylesheet" href="{url}"></head><body style="margin:0;background:#00f">
    <script>document.body.style.background = "#f00"</script>
    <iframe src="file:///usr/share/common-licenses/BSD" style="display:block;border:0;height:100px"></iframe>
    <img src="data:image/png;base64,{picture}"><img src="{url}"><div style="height:2500px"></div>
    <div style="height:100px;background:#0f0"></div></body></html>"""
    (folder / "page.html").write_text(page)
    found = view("page.html")
    assert found.rendered is not None
    assert found.rendered.by == "chromium", found.note
    assert (found.size.width, found.size.height > 2600) == (1024, True)
    session = Session(render=True)
    end = sightline.view("page.html", crop="r=bottom", session=session)
    start = sightline.view("page.html", crop="p=0,0,100,100", session=session)
    assert isinstance(end, View)
    assert isinstance(start, View)
    pixels = open_pixels(end)
    assert pixels.getpixel((pixels.width // 2, pixels.height - 4)) == (0, 255, 0), "the page is whole"
    assert open_pixels(start).getextrema() == ((0, 0), (0, 0), (255, 255)), "no script ran, and no file is framed"
    with pytest.raises(BlockingIOError):
        server.accept()
