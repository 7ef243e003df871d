"""What a view gives, what it refuses, and that it comes back from the record alone."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from PIL import Image as Pillow

import sightline
from sightline.api.failure import REASONS, Failure
from sightline.api.session import Session, ToolContext
from sightline.api.tool_results import View
from sightline.model.geometry import Box, PixelCrop, Size
from sightline.model.image import MAX_UNCHANGED_BYTES, ImageTarget, PaddedSizing
from sightline.model.image import compute_seen_size as by_provider
from sightline.model.refusal import Refusal, RefusalCode
from sightline.pixels.workers import TASKS, WorkerLimits, WorkerPool
from sightline.store import open_record
from tests.api.bad import BAD, HTML, PNG, SVG, keep_two_that_begin_alike
from tests.pixels.bitmaps import BLUE, FORMATS, RED, exif, flag, icon_of, photo, psd_of, saved
from tests.privileges import as_nobody
from tests.requirements import requirement

SHA = hashlib.sha256(PNG).hexdigest()


def seen(context: ToolContext, path: str, **more: Any) -> View:
    result = sightline.view(path, session=Session.from_context(context), **more)
    assert isinstance(result, View), result
    return result


def reason(context: ToolContext, path: Any, **more: Any) -> str:
    result = sightline.view(path, session=Session.from_context(context), **more)
    assert isinstance(result, Failure), result
    assert set(result.as_dict()) == {"ok", "reason", "message"}
    assert result.message
    assert "\n" not in result.message
    return result.reason


def opened(view: View) -> Pillow.Image:
    return Pillow.open(BytesIO(view.pixels.data))


@requirement("view.result", "view.path", "reference.path")
def test_a_bitmap_is_shown_unchanged_with_its_facts(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    view = seen(context, "image.png")
    assert view.as_result() == {
        "ok": True,
        "mime": "image/png",
        "width": 40,
        "height": 30,
        "bytes": len(PNG),
        "image": f"sha256:{SHA}",
        "source": "image.png",
        "shown": {"width": 40, "height": 30, "bytes": len(PNG)},
    }
    assert view.pixels.data == PNG
    assert seen(context, str(folder / "image.png")).pixels == view.pixels
    by_path = sightline.view(folder / "image.png", session=Session.from_context(context))
    assert by_path == replace(view, source=str(folder / "image.png"))


@requirement("view.result.program")
def test_the_result_has_the_type_of_the_shown_pixels(context: ToolContext, folder: Path) -> None:
    (folder / "image.bmp").write_bytes(saved(flag(40, 30), "image/bmp"))
    view = seen(context, "image.bmp")
    assert view.mime == "image/bmp"
    assert view.pixels.mime != "image/bmp"
    shown = {"width": 40, "height": 30, "bytes": len(view.pixels.data), "mime": view.pixels.mime}
    assert view.as_dict() == {**view.as_result(), "shown": shown}


@requirement("view.pixels_beside")
def test_the_content_of_a_view_has_text_and_then_pixels(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    view = seen(context, "image.png")
    words, pixels = view.content()
    assert words == {"type": "text", "text": json.dumps(view.as_result())}
    assert pixels == {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    (no,) = Failure(Refusal("not_found", "there is none")).content()
    assert no == {"type": "text", "text": '{"ok": false, "reason": "not_found", "message": "there is none"}'}


@requirement(
    "view.refusal.invalid_input",
    "view.refusal.not_found",
    "view.refusal.unsupported_type",
    "view.refusal.too_large",
    "view.refusal.not_permitted",
    "view.refusal.corrupt",
    "view.refusal.render_unavailable",
    "view.refusal",
    "view.refusal.remedy",
    "view.never_raises",
    "view.url",
)
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_each_bad_source_has_a_reason_and_a_remedy(context: ToolContext, folder: Path, bad: Any) -> None:
    keep_two_that_begin_alike(context.record, context.scope)
    reference = bad.reference(folder)
    refusal = sightline.view(reference, session=Session.from_context(context))
    assert reason(context, reference) == bad.reason
    assert isinstance(refusal, Failure)
    assert re.fullmatch(r"[^(]+ \(.+\)", refusal.message), refusal.message
    (folder / "good.png").write_bytes(PNG)
    assert seen(context, "good.png").pixels.data == PNG


@requirement("view.refusal")
def test_each_of_the_seven_reasons_is_used() -> None:
    assert {bad.reason for bad in BAD.values()} == set(REASONS)
    assert set(REASONS) == set(
        "invalid_input not_found unsupported_type too_large not_permitted corrupt render_unavailable".split()
    )


@requirement("view.name_lies")
@pytest.mark.parametrize("name", ["page.jpg", "page.JPEG", "page.png", "page.webp", "page.tif", "page.heic"])
@pytest.mark.parametrize("data", [HTML, SVG, b"# Words\n", b"%PDF-1.7\n"], ids=["html", "svg", "text", "pdf"])
def test_a_bitmap_name_over_other_bytes_is_unsupported(
    context: ToolContext, folder: Path, name: str, data: bytes
) -> None:
    (folder / name).write_bytes(data)
    assert reason(context, name) == "unsupported_type"
    honest = "page.html" if data is HTML else "page.txt"
    (folder / honest).write_bytes(data)
    assert reason(context, honest) == "render_unavailable"


@requirement("view.never_text")
@pytest.mark.parametrize("name", ["notes.md", "drawing.svg", "page.html", "App.tsx", "table.csv"])
def test_view_refuses_text_and_names_read_file(session: Session, folder: Path, name: str) -> None:
    words = SVG if name.endswith("svg") else HTML if name.endswith("html") else b"many words, no pixels\n"
    (folder / name).write_bytes(words)
    refusal = sightline.view(name, session=session)
    assert isinstance(refusal, Failure)
    assert (refusal.reason, "call read_file" in refusal.message) == ("render_unavailable", True)
    assert words.decode()[:9] not in json.dumps(refusal.content())


@requirement("view.never_raises", "view.refusal.not_permitted")
def test_a_file_without_permission_is_refused(context: ToolContext, tmp_path: Path, folder: Path) -> None:
    (folder / "closed.png").write_bytes(PNG)
    (folder / "closed.png").chmod(0)
    for each in (tmp_path, folder, *tmp_path.parents[:2]):
        each.chmod(0o755)
    with as_nobody():
        assert reason(context, "closed.png") == "not_permitted"
    (folder / "closed.png").chmod(0o600)
    assert seen(context, "closed.png").image == f"sha256:{SHA}"


@requirement("view.never_raises")
@pytest.mark.parametrize("path", [None, 7, b"image.png", ["image.png"], {}, True])
def test_a_path_that_is_not_text_is_refused(context: ToolContext, path: object) -> None:
    """A program may give bytes, which are an image then, but a model gives text."""
    called = sightline.call("view_image", {"path": path}, session=Session.from_context(context))
    assert isinstance(called, Failure)
    assert called.reason == "invalid_input"
    assert isinstance(path, bytes) or reason(context, path) == "invalid_input"


@requirement("view.never_raises")
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    path=st.text(max_size=60) | st.from_regex(r"(sha256:|https?://|/|\.\./|~/)?[\w./#:,-]{0,80}"),
    crop=st.none() | st.text(),
)
def test_any_path_can_be_viewed_without_an_exception(session: Session, path: str, crop: str | None) -> None:
    assert isinstance(sightline.view(path, crop=crop, session=session), Failure)


@requirement("view.never_raises")
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data(), mime=st.sampled_from(["image/png", "image/jpeg", "image/gif", "image/webp", "image/tiff"]))
def test_any_damaged_file_can_be_viewed_without_an_exception(
    session: Session, folder: Path, data: st.DataObject, mime: str
) -> None:
    broken = bytearray(saved(flag(40, 30), mime))
    for _ in range(data.draw(st.integers(1, 8))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    (folder / "broken").write_bytes(broken[: data.draw(st.integers(1, len(broken)))])
    result = sightline.view("broken", session=session)
    assert isinstance(result, View) or result.reason in REASONS


def test_a_failing_image_library_is_a_refusal(
    context: ToolContext, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "image.png").write_bytes(PNG)
    broken = replace(context, target=ImageTarget(("image/png",), edge="wide"))  # type: ignore[arg-type]
    assert reason(broken, "image.png") == "render_unavailable"
    assert "TypeError" in caplog.text


@requirement("view.crop")
@pytest.mark.parametrize(
    ("crop", "box"),
    [
        ("r=top-left", Box(0, 0, 20, 15)),
        ("n=0.5,0.5,0.5,0.5", Box(20, 15, 20, 15)),
        ("p=1,2,3,4", Box(1, 2, 3, 4)),
        ("p=-5,-5,10,10", Box(0, 0, 5, 5)),
        ({"region": "right"}, Box(20, 0, 20, 30)),
        ({"normalized": {"x": 0, "y": 0, "width": 0.25, "height": 1}}, Box(0, 0, 10, 30)),
        ({"pixels": {"x": 10.4, "y": 0, "width": 100, "height": 5}}, Box(10, 0, 30, 5)),
        ({"region": "right", "pixels": None}, Box(20, 0, 20, 30)),
        (PixelCrop(0, 0, 40, 30), Box(0, 0, 40, 30)),
    ],
)
def test_a_crop_is_in_source_pixels(context: ToolContext, folder: Path, crop: Any, box: Box) -> None:
    (folder / "image.png").write_bytes(PNG)
    view = seen(context, "image.png", crop=crop)
    found = view.as_dict()
    assert found["crop"] == [box.x, box.y, box.width, box.height]
    assert (found["width"], found["height"], found["image"]) == (40, 30, f"sha256:{SHA}")
    assert (view.pixels.size, found["shown"]) == (
        box.size,
        {"width": box.width, "height": box.height, "bytes": len(view.pixels.data), "mime": view.pixels.mime},
    )
    expected = flag(40, 30).crop((box.x, box.y, box.right, box.bottom))
    assert opened(view).convert("RGB").tobytes() == expected.tobytes()


@requirement("view.refusal.invalid_input", "crop.one_form", "crop.never_whole")
@pytest.mark.parametrize(
    "crop",
    [
        "top-left",
        "r=middle",
        "n=1,2,3",
        "p=100,100,5,5",
        "p=0,0,0,5",
        "n=nan,0,1,1",
        "n=1e308,0,1,1",
        {},
        {"region": None, "pixels": None},
        {"normalized": {"x": 0, "y": 0, "width": 1, "height": 1}, "pixels": {"x": 0, "y": 0, "width": 1, "height": 1}},
        {"region": "middle"},
        {"region": ["top"]},
        {"region": "top", "pixels": {"x": 0, "y": 0, "width": 1, "height": 1}},
        {"pixels": {"x": 0, "y": 0, "width": 1}},
        {"pixels": {"x": 0, "y": 0, "width": 1, "height": "1"}},
        {"pixels": {"x": 0, "y": 0, "width": 1, "height": True}},
        {"pixels": [0, 0, 1, 1]},
        {"circle": {"x": 0}},
        7,
    ],
)
def test_an_invalid_crop_is_refused_and_never_ignored(context: ToolContext, folder: Path, crop: Any) -> None:
    (folder / "image.png").write_bytes(PNG)
    assert reason(context, "image.png", crop=crop) == "invalid_input"


@requirement("view.page")
@pytest.mark.parametrize(
    "more", [{"page": 0}, {"page": 2}, {"page": "1"}, {"at": -1}, {"at": 3.5}, {"at": float("nan")}]
)
def test_an_image_has_one_page_and_no_times(context: ToolContext, folder: Path, more: dict[str, Any]) -> None:
    (folder / "image.png").write_bytes(PNG)
    assert reason(context, "image.png", **more) == "invalid_input"
    assert seen(context, "image.png", page=1).image == f"sha256:{SHA}"


@requirement("view.again", "view.reference", "reference.sha", "reference.prefix", "reference.crop")
def test_a_viewed_image_is_available_by_sha256_after_its_file_is_gone(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    first = seen(context, "image.png")
    (folder / "image.png").unlink()
    for name in (f"sha256:{SHA}", f"sha256:{SHA[:12]}", f"SHA256:{SHA.upper()}"):
        again = seen(context, name)
        assert again == replace(first, source=name)
        assert again.pixels.data == PNG
    part = seen(context, f"sha256:{SHA[:12]}#crop:1,2,3,4")
    assert part.crop == Box(1, 2, 3, 4)
    assert opened(part).convert("RGB").tobytes() == flag(40, 30).crop((1, 2, 4, 6)).tobytes()
    assert seen(context, f"sha256:{SHA}", crop="p=1,2,3,4").pixels == part.pixels
    assert reason(context, f"sha256:{SHA}#crop:1,2,3,4", crop="r=top") == "invalid_input"
    assert reason(context, f"sha256:{SHA}#crop:40,30,3,4") == "invalid_input"


@requirement("record.scope.images")
def test_a_sha256_is_not_a_permission(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    seen(context, "image.png")
    for name in (f"sha256:{SHA}", f"sha256:{SHA[:12]}"):
        refusal = sightline.view(name, session=Session.from_context(replace(context, scope="another")))
        assert isinstance(refusal, Failure)
        assert (refusal.reason, SHA[:12] in refusal.message) == ("not_found", True)
    assert seen(replace(context, scope="another", is_owner=True), f"sha256:{SHA}").pixels.data == PNG


@requirement("law.10", "record.perceptions", "view.lowering")
@pytest.mark.parametrize("crop", [None, "r=bottom-right"])
def test_a_view_is_recalled_exactly_from_the_record_alone(
    context: ToolContext, tmp_path: Path, folder: Path, crop: str | None
) -> None:
    (folder / "image.png").write_bytes(PNG)
    view = seen(context, "image.png", crop=crop)
    context.record.close()
    (folder / "image.png").write_bytes(b"something else")
    record = open_record(tmp_path / "record")
    stored = json.loads(json.dumps(view.as_dict()))
    later = replace(context, record=record)
    assert sightline.recall(json.loads(json.dumps(view.as_result())), session=Session.from_context(later)) == view, (
        "as a model read it"
    )
    again = sightline.recall(stored, session=Session.from_context(later))
    assert isinstance(again, View)
    assert again == view
    assert again.content() == view.content()
    backwards = dict(reversed(stored.items()))
    assert sightline.recall(backwards, session=Session.from_context(later)) == view
    others: list[Any] = [{**stored, "source": "other.png"}, {}, {"ok": object()}, None, "image.png"]
    for other in others:
        refusal = sightline.recall(other, session=Session.from_context(later))
        assert isinstance(refusal, Failure)
        assert refusal.reason in ("not_found", "invalid_input")
    record.close()


@requirement("record.before_reference")
def test_bytes_are_stored_before_the_reference_is_returned(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    view = seen(context, "image.png")
    kept = context.record.images.read(context.scope, view.image.removeprefix("sha256:"))
    assert kept
    assert kept.data == PNG


@requirement("view.type_by_bytes", "input.native")
@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/webp", "image/gif"])
def test_the_type_comes_from_the_bytes_and_not_the_name(context: ToolContext, folder: Path, mime: str) -> None:
    data = saved(flag(40, 30), mime)
    (folder / "notes.txt").write_bytes(data)
    view = seen(context, "notes.txt")
    assert (view.mime, view.pixels.mime, view.pixels.data) == (mime, mime, data)


@requirement("view.converted")
@pytest.mark.parametrize(
    ("mime", "data"),
    [
        ("image/bmp", saved(flag(40, 30), "image/bmp")),
        ("image/tiff", saved(flag(40, 30), "image/tiff")),
        ("image/avif", saved(flag(40, 30), "image/avif", quality=100)),
        ("image/x-icon", icon_of({32: RED}, "png")),
        ("image/vnd.adobe.photoshop", psd_of(flag(40, 30))),
    ],
)
def test_unsupported_formats_are_converted(context: ToolContext, folder: Path, mime: str, data: bytes) -> None:
    (folder / "image").write_bytes(data)
    view = seen(context, "image")
    assert (view.mime, view.bytes, view.image) == (mime, len(data), f"sha256:{hashlib.sha256(data).hexdigest()}")
    assert view.pixels.mime in ("image/png", "image/jpeg", "image/webp")
    assert opened(view).size == (view.size.width, view.size.height)


@requirement("input.heic.refused")
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("HEIC", saved(flag(40, 30), "image/avif").replace(b"avif", b"heic", 2)),
        ("JPEG XL", b"\xff\x0a" + bytes(100)),
        ("JPEG 2000", b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(100)),
    ],
)
def test_a_format_without_a_decoder_is_named_with_a_remedy(
    session: Session, folder: Path, name: str, data: bytes
) -> None:
    (folder / "photo").write_bytes(data)
    for crop in (None, "r=top"):
        refusal = sightline.view("photo", crop=crop, session=session)
        assert isinstance(refusal, Failure)
        assert refusal.reason == "unsupported_type"
        assert name.lower() in refusal.message.lower()
        assert "PNG" in refusal.message


@requirement("input.heic")
def test_a_heic_image_is_refused_with_the_reason_and_a_converter(session: Session, folder: Path) -> None:
    (folder / "photo.heic").write_bytes(saved(flag(40, 30), "image/avif").replace(b"avif", b"heic", 2))
    refusal = sightline.view("photo.heic", session=session)
    assert isinstance(refusal, Failure)
    assert refusal.reason == "unsupported_type"
    for named in ("GPL", "heif-convert photo.heic photo.jpg", "sips -s format jpeg"):
        assert named in refusal.message


@requirement("crop.formats")
@pytest.mark.parametrize("mime", [*FORMATS, "image/x-icon", "image/vnd.adobe.photoshop"])
def test_every_readable_format_can_be_cropped(context: ToolContext, folder: Path, mime: str) -> None:
    own = {"image/x-icon": icon_of({64: RED}, "png"), "image/vnd.adobe.photoshop": psd_of(flag(64, 64))}
    (folder / "image").write_bytes(own[mime] if mime in own else saved(flag(64, 64), mime))
    view = seen(context, "image", crop="p=8,8,16,12")
    assert (view.mime, view.size, view.crop) == (mime, Size(64, 64), Box(8, 8, 16, 12))
    assert opened(view).size == (16, 12)
    pixel = opened(view).convert("RGB").getpixel((5, 5))
    assert isinstance(pixel, tuple)
    assert max(abs(a - b) for a, b in zip(pixel, RED, strict=True)) < 20


@requirement("view.upright", "crop.upright")
def test_a_rotated_image_is_measured_cropped_and_shown_upright(context: ToolContext, folder: Path) -> None:
    (folder / "photo.jpg").write_bytes(saved(flag(80, 60), "image/jpeg", exif=exif(6), quality=95))
    view = seen(context, "photo.jpg")
    assert view.size == view.pixels.size == Size(60, 80)
    assert opened(view).size == (60, 80), "as the bytes are, without the help of a header"
    corner = seen(context, "photo.jpg", crop="r=top-right")
    assert corner.crop == Box(30, 0, 30, 40)
    pixel = opened(corner).convert("RGB").getpixel((20, 10))
    assert isinstance(pixel, tuple)
    assert max(abs(a - b) for a, b in zip(pixel, RED, strict=True)) < 20
    lower = opened(seen(context, "photo.jpg", crop="r=bottom-left")).convert("RGB").getpixel((5, 30))
    assert isinstance(lower, tuple)
    assert max(abs(a - b) for a, b in zip(lower, BLUE, strict=True)) < 20


@requirement("bound.as_is", "bound.as_is.beyond", "view.original")
def test_an_image_over_eight_mebibytes_is_refitted(context: ToolContext, folder: Path) -> None:
    whole = saved(photo(1500, 1500), "image/png", compress_level=0)
    assert len(whole) < MAX_UNCHANGED_BYTES
    end = whole[-12:]
    exact = whole[:-12] + _filler(MAX_UNCHANGED_BYTES - len(whole)) + end
    assert len(exact) == MAX_UNCHANGED_BYTES
    (folder / "exact.png").write_bytes(exact)
    assert seen(context, "exact.png").pixels.data == exact
    beyond = whole[:-12] + _filler(MAX_UNCHANGED_BYTES + 1 - len(whole)) + end
    (folder / "beyond.png").write_bytes(beyond)
    view = seen(context, "beyond.png")
    assert (view.bytes, view.size) == (MAX_UNCHANGED_BYTES + 1, Size(1500, 1500))
    assert len(view.pixels.data) < MAX_UNCHANGED_BYTES
    assert view.as_dict()["shown"] == {
        "width": opened(view).width,
        "height": opened(view).height,
        "bytes": len(view.pixels.data),
        "mime": view.pixels.mime,
    }
    kept = context.record.images.read(context.scope, view.image.removeprefix("sha256:"))
    assert kept
    assert kept.data == beyond


def _filler(size: int) -> bytes:
    """A text chunk of so many bytes in all."""
    body = b"tEXtx\0" + b"x" * (size - 12 - 2)
    return struct.pack(">I", size - 12) + body + struct.pack(">I", zlib.crc32(body))


@requirement("view.most_bytes")
def test_an_image_over_sixty_four_mebibytes_is_refused(context: ToolContext, folder: Path) -> None:
    most = 64 * 1024 * 1024
    for extra in (0, 1):
        heavy = PNG[:-12] + _filler(most + extra - len(PNG)) + PNG[-12:]
        assert len(heavy) == most + extra
        (folder / f"{extra}.png").write_bytes(heavy)
    assert seen(context, "0.png").size == Size(40, 30)
    assert reason(context, "1.png") == "too_large"


@requirement("crop.formats")
def test_a_crop_may_be_larger_than_a_file_may_be(context: ToolContext, folder: Path) -> None:
    """Grain hardly packs: as a PNG this part would be larger than any file that is read."""
    grain = Pillow.frombytes("RGB", (5400, 4200), random.Random(0).randbytes(5400 * 4200 * 3))
    (folder / "photo.jpg").write_bytes(saved(grain, "image/jpeg", quality=60))
    with WorkerPool(TASKS, limits=WorkerLimits(seconds=60)) as patient:
        view = seen(replace(context, workers=patient), "photo.jpg", crop="p=0,0,5400,4190")
    assert view.crop == Box(0, 0, 5400, 4190)
    assert view.pixels.mime == "image/jpeg"


@requirement("view.edges")
def test_a_wide_image_is_refitted_and_a_too_wide_one_refused(context: ToolContext, folder: Path) -> None:
    (folder / "wide.png").write_bytes(saved(Pillow.new("L", (65_535, 20), 200), "image/png"))
    (folder / "wider.png").write_bytes(saved(Pillow.new("L", (65_536, 20), 200), "image/png"))
    view = seen(context, "wide.png")
    assert view.size == Size(65_535, 20)
    assert view.pixels.size.edge <= 2000, "as much as any model takes, with however many others"
    assert reason(context, "wider.png") == "too_large"


@requirement("view.edges")
def test_an_image_within_all_limits_keeps_its_size(context: ToolContext, folder: Path) -> None:
    (folder / "wide.png").write_bytes(saved(Pillow.new("L", (9000, 20), 200), "image/png"))
    (folder / "taken.png").write_bytes(saved(Pillow.new("L", (8000, 20), 200), "image/png"))
    assert seen(context, "taken.png").pixels.size == Size(8000, 20)
    assert seen(context, "wide.png", crop="p=0,0,7000,20").pixels.size == Size(7000, 20)
    assert seen(context, "wide.png", crop="p=0,0,8001,20").pixels.size.edge <= 2000


@requirement("view.fold")
def test_a_page_that_would_be_shrunk_is_folded_with_a_note(context: ToolContext, folder: Path) -> None:
    page = Pillow.new("RGB", (800, 6000), "white")
    for row in range(0, 6000, 40):
        page.paste((20, 20, 20), (20, row, 780 - row % 300, row + 20))
    (folder / "page.png").write_bytes(saved(page, "image/png"))
    claude = replace(context, target=replace(context.target, sizing=PaddedSizing()))
    view = seen(claude, "page.png")
    assert view.size == Size(800, 6000)
    assert "columns" in view.note
    assert by_provider(view.pixels.size, PaddedSizing()) == view.pixels.size
    assert view.pixels.size.pixels > 3 * by_provider(view.size, PaddedSizing()).pixels, "it was shrunk"
    assert view.content()[1] == {"type": "text", "text": view.note}
    again = sightline.recall(view.as_dict(), session=Session.from_context(claude))
    assert isinstance(again, View)
    assert again.content() == view.content()
    assert seen(context, "page.png").note == ""


@requirement("library.sync_async")
async def test_an_awaited_view_is_the_same(session: Session, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    assert await sightline.view.aio("image.png", session=session) == sightline.view("image.png", session=session)
    refused = await sightline.view.aio("absent.png", session=session)
    assert refused == sightline.view("absent.png", session=session)


@pytest.mark.parametrize(
    ("code", "expected"),
    [("unavailable", "render_unavailable"), ("pending", "render_unavailable"), ("no_consent", "not_permitted")],
)
def test_other_failures_are_not_blamed_on_the_image(code: RefusalCode, expected: str) -> None:
    assert Failure(Refusal(code, "nobody is there", "try again")).as_dict() == {
        "ok": False,
        "reason": expected,
        "message": "nobody is there (try again)",
    }
    assert {Failure(Refusal(reason, "no")).reason for reason in REASONS} == set(REASONS)


def test_missing_workers_are_not_blamed_on_the_image(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    ended = WorkerPool()
    ended.shut_down()
    assert reason(replace(context, workers=ended), "image.png") == "render_unavailable"


def frames(mime: str) -> bytes:
    first, *others = (photo(120, 90, seed) for seed in range(3))
    return saved(first, mime, save_all=True, append_images=others)


@requirement("fit.animation", "view.result.program")
@pytest.mark.parametrize("mime", ["image/gif", "image/webp"])
@pytest.mark.parametrize("crop", [None, "r=top-left"])
def test_the_first_frame_of_an_animation_is_shown_with_a_note(
    context: ToolContext, folder: Path, mime: str, crop: str | None
) -> None:
    data = frames(mime)
    (folder / "moving").write_bytes(data)
    view = seen(context, "moving", crop=crop)
    assert (view.mime, view.size, view.bytes) == (mime, Size(120, 90), len(data))
    assert view.as_dict()["words"] == view.note != ""
    assert json.loads(view.content()[0]["text"]) == view.as_result()
    assert getattr(opened(view), "n_frames", 1) == 1
    again = sightline.recall(view.as_dict(), session=Session.from_context(context))
    assert isinstance(again, View)
    assert again.content() == view.content()
    (folder / "still").write_bytes(saved(photo(120, 90), mime))
    assert seen(context, "still", crop=crop).note == ""


@requirement("fit.animation", "type.truncated")
def test_a_damaged_animation_is_its_first_frame_or_corrupt(context: ToolContext, folder: Path) -> None:
    whole = frames("image/gif")
    (folder / "later.gif").write_bytes(whole[: len(whole) // 2])
    assert "frame" in seen(context, "later.gif").note
    (folder / "sooner.gif").write_bytes(whole[: len(whole) // 5])
    assert reason(context, "sooner.gif") == "corrupt"


@requirement("record.before_reference")
def test_a_view_that_could_not_be_stored_says_so(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    assert seen(context, "image.png").note == ""
    context.record.close()
    view = seen(context, "image.png", crop="r=top")
    assert "record" in view.note
    assert view.content()[1] == {"type": "text", "text": view.note}


@requirement("view.writes_nothing")
def test_a_view_changes_nothing_in_the_folder(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    (folder / "image.png").chmod(0o400)
    before = (folder / "image.png").stat().st_mtime_ns
    seen(context, "image.png", crop="r=top")
    assert [(path.name, path.stat().st_mtime_ns) for path in folder.iterdir()] == [("image.png", before)]


@requirement("view.again.idempotent")
def test_viewing_again_gives_the_same_and_stores_nothing_new(
    context: ToolContext, tmp_path: Path, folder: Path
) -> None:
    (folder / "image.png").write_bytes(PNG)
    first = [seen(context, "image.png", crop=crop) for crop in (None, "r=top")]
    kept = {path: path.read_bytes() for path in (tmp_path / "record" / "blobs").rglob("*") if path.is_file()}
    assert len(kept) == 2
    for _ in range(3):
        again = [seen(context, "image.png", crop=crop) for crop in (None, "r=top")]
        assert [view.content() for view in again] == [view.content() for view in first]
    assert {path: path.read_bytes() for path in (tmp_path / "record" / "blobs").rglob("*") if path.is_file()} == kept


_LOOK_AND_DIE = """
import json, os, sys, sightline
seen = sightline.view(sys.argv[1], crop="r=top-left")
print(json.dumps([seen.as_dict(), seen.content()]), flush=True)
os.kill(os.getpid(), 9)
"""
_RECALL = """
import json, sys, sightline
print(json.dumps(sightline.recall(json.load(sys.stdin)).content()))
"""


@requirement("law.10", "view.lowering.restart")
def test_another_process_rebuilds_a_view_from_its_result_alone(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    first = subprocess.run(
        [sys.executable, "-c", _LOOK_AND_DIE, "image.png"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert first.returncode == -9
    result, given = json.loads(first.stdout)
    (folder / "image.png").unlink()
    later = subprocess.run(
        [sys.executable, "-c", _RECALL],
        input=json.dumps(dict(sorted(result.items()))),
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(later.stdout) == given
    assert given[-1]["type"] == "image"


@requirement("view.lowering")
def test_a_forgotten_view_is_not_recalled(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    view = seen(context, "image.png", crop="r=top")
    assert sightline.recall(view.as_dict(), session=Session.from_context(context)) == view
    assert isinstance(
        sightline.recall(view.as_dict(), session=Session.from_context(replace(context, scope="another"))), Failure
    )
    context.record.forget(view.image.removeprefix("sha256:"))
    refusal = sightline.recall(view.as_dict(), session=Session.from_context(context))
    assert isinstance(refusal, Failure)
    assert refusal.reason == "not_found"


@requirement("tools.maxResultChars")
def test_the_text_of_a_view_is_bounded_for_any_source_name(context: ToolContext, folder: Path) -> None:
    most = sightline.tools(session=Session.from_context(context))[0]["maxResultChars"]
    assert isinstance(most, int)
    deep = folder / ('"' * 200) / ('"' * 200) / ('"' * 200) / ('"' * 200) / ('"' * 200)
    deep.mkdir(parents=True)
    (deep / "image.png").write_bytes(PNG)
    (deep / os.fsdecode(b"\xff" * 240)).write_bytes(PNG)
    found = [seen(context, str(path.relative_to(folder))) for path in deep.iterdir()]
    assert len(found) == 2
    assert all(len(json.dumps(view.as_dict(), ensure_ascii=False)) <= most for view in found)
    for path in ('"' * 4000, "\x01" * 1000, os.fsdecode(b"\xff" * 1000), "https://example.com/" + "x" * 8000):
        refusal = sightline.view(path, session=Session.from_context(context))
        assert isinstance(refusal, Failure)
        assert refusal.reason == "invalid_input"
    for crop in ("x" * 9000, {"region": "x" * 9000}, {"x" * 9000: 1}):
        refusal = sightline.view("image.png", crop=crop, session=Session.from_context(context))
        assert len(json.dumps(refusal.as_dict(), ensure_ascii=False)) <= most
