"""Rendered views: where rendering is granted, what a result says, the cache, and what comes back from the record."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

import sightline
from sightline.api.failure import Failure
from sightline.api.session import Session, ToolContext
from sightline.api.tool_results import Analysis, FileAnswer, FileText, View
from sightline.model.geometry import Box, Size
from sightline.model.image import PageOrigin
from sightline.pixels.renderers import start_renderers
from sightline.pixels.renderers.choose_renderer import RENDERERS
from sightline.runtime import get_shared_renderers
from tests.api.answering import saying, settle
from tests.api.bad import PNG
from tests.pixels.renderers.drawings import drawing, square
from tests.pixels.renderers.films import animate, film
from tests.pixels.renderers.pdf_files import BLUE, GREEN, document, fill, text
from tests.requirements import requirement

RED_SVG = drawing(square("red"))
HALVES = drawing(square("red") + '<rect x="20" width="20" height="30" fill="blue"/>', 'width="800" height="600"')


@pytest.fixture
def granted(context: ToolContext) -> ToolContext:
    return replace(context, renderers=get_shared_renderers())


def seen(context: ToolContext, source: Any, **more: Any) -> View:
    result = sightline.view(source, session=Session.from_context(context), **more)
    assert isinstance(result, View), result
    return result


def refused(context: ToolContext, source: Any, **more: Any) -> Failure:
    result = sightline.view(source, session=Session.from_context(context), **more)
    assert isinstance(result, Failure), result
    return result


def opened(view: View) -> Pillow.Image:
    return Pillow.open(BytesIO(view.pixels.data)).convert("RGB")


@requirement("view.rendered", "input.svg")
def test_a_rendered_view_names_its_renderer_and_page(granted: ToolContext, folder: Path) -> None:
    (folder / "halves.svg").write_bytes(HALVES)
    view = seen(granted, "halves.svg")
    assert view.as_result() == {
        "ok": True,
        "mime": "image/svg+xml",
        "width": 800,
        "height": 600,
        "bytes": len(HALVES),
        "image": f"sha256:{view.pixels.sha256}",
        "source": "halves.svg",
        "rendered": {"by": "resvg", "page": 1, "pages": 1},
        "shown": {"width": 800, "height": 600, "bytes": len(view.pixels.data)},
    }
    assert opened(view).getpixel((5, 5)) == (255, 0, 0)
    assert view.content()[1]["mimeType"] == view.pixels.mime == "image/png"


@requirement("input.pdf", "view.page.rendered")
def test_pdf_pages_are_viewed_by_number_alone_or_as_one_image(granted: ToolContext, folder: Path) -> None:
    (folder / "report.pdf").write_bytes(document([text("one"), fill(GREEN), fill(BLUE)]))
    view = seen(granted, "report.pdf", page=3)
    assert view.as_result()["rendered"] == {"by": "pdfium", "page": 3, "pages": 3, "has_text": False}
    assert opened(view).getpixel((9, 9)) == (0, 0, 255)
    sheet = seen(granted, "report.pdf", page=2, sheet=True)
    assert sheet.rendered == PageOrigin("pdfium", 2, 3, has_text=False)
    assert seen(granted, "report.pdf", page=1).rendered == PageOrigin("pdfium", 1, 3, has_text=True)
    assert refused(granted, "report.pdf", page=4).reason == "invalid_input"


@requirement("read.document")
def test_the_text_layer_of_a_pdf_is_read_but_not_edited(granted: ToolContext, folder: Path) -> None:
    (folder / "report.pdf").write_bytes(document([text("first"), text("second")]))
    session = Session.from_context(replace(granted, renderers=None))
    found = sightline.read_file("report.pdf", first=4, session=session)
    assert isinstance(found, FileText), found
    assert (found.text, found.token) == ("--- page 2 of 2 ---\nsecond\n\n", "")


@requirement("view.rendered")
def test_later_calls_can_use_the_image_of_a_rendered_view(granted: ToolContext, folder: Path) -> None:
    (folder / "halves.svg").write_bytes(HALVES)
    view = seen(granted, "halves.svg")
    (folder / "halves.svg").unlink()
    again = seen(granted, view.image)
    assert (again.pixels, again.rendered) == (view.pixels, None)
    without = replace(granted, renderers=None)
    assert seen(without, view.image).pixels == view.pixels


@requirement("view.crop.rendered")
def test_a_crop_applies_to_the_rendered_page(granted: ToolContext, folder: Path) -> None:
    (folder / "halves.svg").write_bytes(drawing(square("red"), 'width="800" height="600"'))
    view = seen(granted, "halves.svg", crop={"region": "left"})
    assert (view.size, view.crop, view.pixels.size) == (Size(800, 600), Box(0, 0, 400, 600), Size(400, 600))


@requirement("view.lowering.rendered")
def test_a_rendered_view_is_recalled_exactly_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "halves.svg").write_bytes(HALVES)
    first = (
        "import sightline, json; view = sightline.view('halves.svg', crop='r=left');"
        "print(json.dumps([view.as_dict(), view.pixels.base64, view.note]))"
    )
    then = (
        "import sightline, json, sys; view = sightline.recall(json.loads(sys.argv[1]));"
        "print(json.dumps([view.as_dict(), view.pixels.base64, view.note]))"
    )

    def run(code: str, *arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True).stdout

    shown = run(first)
    (tmp_path / "halves.svg").unlink()
    assert run(then, json.dumps(json.loads(shown)[0])) == shown
    assert json.loads(shown)[0]["rendered"] == {"by": "resvg", "page": 1, "pages": 1}


@requirement("render.cached")
def test_a_file_is_rendered_once_for_the_same_options(granted: ToolContext, folder: Path) -> None:
    (folder / "red.svg").write_bytes(RED_SVG)
    view = seen(granted, "red.svg")
    with start_renderers() as ended:
        pass
    cached = replace(granted, renderers=ended)
    assert seen(cached, "red.svg") == view
    (folder / "copy.svg").write_bytes(RED_SVG)
    assert seen(cached, "copy.svg") == replace(view, source="copy.svg")
    (folder / "red.svg").write_bytes(drawing(square("blue")))
    assert refused(cached, "red.svg").reason == "render_unavailable"


@requirement("render.cached")
def test_a_new_renderer_version_renders_again(
    granted: ToolContext, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "red.svg").write_bytes(RED_SVG)
    seen(granted, "red.svg")
    with start_renderers() as ended:
        pass
    newer = tuple(replace(each, revision=each.revision + 1) for each in RENDERERS)
    monkeypatch.setattr("sightline.pixels.renderers.choose_renderer.RENDERERS", newer)
    assert refused(replace(granted, renderers=ended), "red.svg").reason == "render_unavailable"


@requirement("view.render", "view.refusal.render_unavailable")
def test_only_images_are_viewed_without_the_capability(context: ToolContext, folder: Path) -> None:
    (folder / "red.svg").write_bytes(RED_SVG)
    (folder / "image.png").write_bytes(PNG)
    refusal = refused(context, "red.svg")
    assert refusal.reason == "render_unavailable"
    assert "render" in refusal.refusal.remedy
    assert seen(context, "image.png").pixels.data == PNG


@requirement("view.render")
def test_rendering_is_switched_off_by_session_or_setting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "red.svg").write_bytes(RED_SVG)
    path = folder / "red.svg"
    assert sightline.view(path)
    assert not sightline.view(path, session=sightline.Session(render=False))
    monkeypatch.setenv("SIGHTLINE_RENDER", "off")
    assert not sightline.view(path)
    assert sightline.view(path, session=sightline.Session(render=True))


@requirement("view.render", "view.capability")
@pytest.mark.parametrize("render", [True, False])
def test_the_tools_say_whether_they_render(render: bool) -> None:
    tools = sightline.tools(session=sightline.Session(render=render))
    granted = {tool["name"] for tool in tools if "render" in tool["capabilities"]}
    assert granted == ({"view_image", "analyze_image"} if render else set())


@requirement("view.page.rendered")
def test_a_drawing_has_one_page_and_no_times_or_lines(granted: ToolContext, folder: Path) -> None:
    (folder / "red.svg").write_bytes(RED_SVG)
    assert seen(granted, "red.svg", page=1).rendered
    for options in ({"page": 2}, {"at": 1.5}, {"lines": "1-2"}, {"sheet": True}):
        assert refused(granted, "red.svg", **options).reason == "invalid_input"


@requirement("view.page")
@pytest.mark.parametrize(
    "options",
    [{"page": 2}, {"at": 1.5}, {"lines": "1-2"}, {"sheet": True}, {"lines": "2-1"}, {"lines": "x"}, {"page": 1.5}],
)
def test_an_image_has_no_pages_times_or_lines(granted: ToolContext, folder: Path, options: dict[str, Any]) -> None:
    (folder / "image.png").write_bytes(PNG)
    assert refused(granted, "image.png", **options).reason == "invalid_input"


@requirement("view.name_lies")
def test_a_drawing_named_as_a_bitmap_is_not_rendered(granted: ToolContext, folder: Path) -> None:
    (folder / "red.png").write_bytes(RED_SVG)
    assert refused(granted, "red.png").reason == "unsupported_type"


@requirement("view.rendered.given")
def test_a_document_without_a_path_is_kept_for_later_views(granted: ToolContext) -> None:
    view = seen(granted, RED_SVG)
    again = seen(granted, view.source)
    assert (again.pixels, again.rendered) == (view.pixels, view.rendered)


@requirement("read.document")
def test_the_text_of_a_compressed_drawing_is_read_but_not_edited(granted: ToolContext, folder: Path) -> None:
    (folder / "red.svgz").write_bytes(gzip.compress(RED_SVG))
    session = Session.from_context(replace(granted, renderers=None))
    text = sightline.read_file("red.svgz", session=session)
    assert isinstance(text, FileText)
    assert (text.text, "token" in text.as_dict()) == (RED_SVG.decode(), False)
    edit = sightline.edit_file("red.svgz", "red", "blue", text.token, session=session)
    assert isinstance(edit, Failure)
    assert edit.reason == "unsupported_type"


@requirement("render.described")
def test_describe_and_ask_send_the_rendered_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "halves.svg").write_bytes(HALVES)
    with saying("two halves") as model:
        settle(monkeypatch, model)
        described = sightline.describe(tmp_path / "halves.svg")
        asked = sightline.vision_analyze(tmp_path / "halves.svg", prompt="What?")
        plain = sightline.vision_analyze(tmp_path / "halves.svg", prompt="What?", fit="never")
    page = sightline.view(tmp_path / "halves.svg")
    assert isinstance(page, View)
    assert isinstance(described, Analysis), described
    assert isinstance(asked, FileAnswer), asked
    assert described.images == (page.image,)
    for number in (0, 1):
        (sent,) = model.parts("image_url", number)
        assert sent["image_url"]["url"] == page.pixels.data_url
    assert isinstance(plain, Failure)
    assert plain.prefix == "UNSUPPORTED_FILE_TYPE"


@requirement("view.at", "input.video", "input.animated")
def test_the_option_at_selects_a_time_in_a_video_or_animation(granted: ToolContext, folder: Path) -> None:
    (folder / "demo.mp4").write_bytes(film())
    (folder / "demo.gif").write_bytes(animate("GIF"))
    for name, at, by in (("demo.mp4", 5, "ffmpeg"), ("demo.gif", 1.2, "pillow")):
        view = seen(granted, name, at=at)
        assert (view.rendered, view.size) == (PageOrigin(by, 1, 1), Size(160, 90))
        red, green, blue = opened(view).resize((1, 1)).getpixel((0, 0))  # type: ignore[misc]
        assert blue > 2 * max(red, green)
        assert sightline.recall(view.as_dict(), session=Session.from_context(granted)) == view
    assert seen(granted, "demo.gif").rendered is None
    assert seen(granted, "demo.gif", sheet=True).rendered is not None
    assert refused(granted, "demo.mp4", page=2).reason == "invalid_input"
    (folder / "still.png").write_bytes(PNG)
    assert refused(granted, "still.png", at=1).reason == "invalid_input"
