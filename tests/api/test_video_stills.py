"""Questions about videos to models that see images but take no videos: they get stills with their times."""

from __future__ import annotations

import os
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

import sightline
from sightline.api.failure import Failure
from sightline.api.session import Session, ToolContext
from sightline.api.tool_results import FileAnswer, View
from sightline.pixels.renderers.renderer import PythonPackage
from sightline.pixels.renderers.video import VIDEO_RENDERER
from sightline.runtime import get_shared_renderers
from sightline.settings import load_settings
from tests.api.answering import MP4, saying, settle
from tests.pixels.renderers.films import COLOURS, animate, film
from tests.pixels.renderers.test_video import name_colour
from tests.requirements import requirement


@pytest.fixture
def granted(context: ToolContext) -> ToolContext:
    return replace(context, renderers=get_shared_renderers())


def watch(context: ToolContext, path: Path, **arguments: Any) -> FileAnswer | Failure:
    session = Session.from_context(replace(context, settings=load_settings()))
    return sightline.video_analyze(session=session, file_path=str(path), **arguments)


def assert_failure(outcome: object, prefix: str) -> Failure:
    assert isinstance(outcome, Failure), outcome
    assert outcome.prefix == prefix, outcome
    return outcome


@requirement("video.frames")
@pytest.mark.parametrize(("model", "method"), [("here/eye", None), ("here/eye", "frames"), ("here/watcher", "frames")])
def test_a_vision_model_gets_stills_with_their_times(
    granted: ToolContext, folder: Path, model: str, method: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "demo.mp4"
    path.write_bytes(film())
    with saying("four colours") as there:
        settle(monkeypatch, there)
        answer = watch(granted, path, model=model, method=method, prompt="Which colours?")
        assert isinstance(answer, FileAnswer), answer
        found = answer.as_dict()
        assert (found["text"], found["method"]) == ("four colours", "frames")
        times = found["frames"]
        assert isinstance(times, list)
        assert {"0:00.0", "0:02.0", "0:04.0", "0:06.0"} < set(times)
        images = there.parts("image_url")
        assert len(images) == len(times) == 12
        assert there.parts("video_url") == []
        words = there.parts("text")[0]["text"]
        assert words.endswith("Which colours?")
        assert all(str(time) in words for time in times)
    last = Pillow.open(BytesIO(b64decode(images[-1]["image_url"]["url"].partition(",")[2])))
    assert (last.format, last.size) == ("JPEG", (160, 90))


@requirement("video.frames", "input.animated")
def test_an_animation_is_sent_as_frames(granted: ToolContext, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "demo.gif"
    path.write_bytes(animate("GIF"))
    with saying("four colours") as there:
        settle(monkeypatch, there)
        answer = watch(granted, path)
        assert isinstance(answer, FileAnswer), answer
        assert answer.frames == ("0:00.0", "0:00.5", "0:01.0", "0:01.5")
        assert len(there.parts("image_url")) == 4
        assert_failure(watch(granted, path, model="here/watcher", method="native"), "VIDEO_NOT_SUPPORTED")


@requirement("video.frames", "video.not_supported")
def test_stills_need_rendering_its_package_and_an_undamaged_video(
    granted: ToolContext, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "demo.mp4"
    path.write_bytes(film())
    broken = folder / "broken.mp4"
    broken.write_bytes(MP4)
    with saying("never said") as there:
        settle(monkeypatch, there)
        assert_failure(watch(granted, path, model="here/stone", method="frames"), "VIDEO_NOT_SUPPORTED")
        assert_failure(watch(granted, broken, method="frames"), "UNSUPPORTED_FILE_TYPE")
        off = assert_failure(watch(replace(granted, renderers=None), path), "VIDEO_NOT_SUPPORTED")
        assert "render" in off.message
        missing = replace(VIDEO_RENDERER, needs=(PythonPackage("no_such_av", "no-such-av", "pip install av"),))
        monkeypatch.setattr("sightline.pixels.renderers.choose_renderer.RENDERERS", (missing,))
        assert "pip install av" in assert_failure(watch(granted, path), "VIDEO_NOT_SUPPORTED").message
        assert there.asked == []


@requirement("video.frames")
def test_a_video_too_large_to_send_is_sent_as_stills(
    granted: ToolContext, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "large.mp4"
    path.write_bytes(film(options={}) + (1 << 31).to_bytes(4, "big") + b"free" + bytes(33 << 20))
    with saying("four colours") as there:
        settle(monkeypatch, there)
        assert_failure(watch(granted, path, model="here/watcher"), "FILE_TOO_LARGE")
        assert isinstance(watch(granted, path, model="here/watcher", method="frames"), FileAnswer)


@requirement("input.video.large")
def test_stills_of_a_video_that_is_too_large_for_memory_are_drawn_from_the_open_file(
    granted: ToolContext, context: ToolContext, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "large.mp4"
    path.write_bytes(film() + (1 << 31).to_bytes(4, "big") + b"free")
    os.truncate(path, 70 << 20)
    seen = sightline.view(path, at=5.0, session=Session.from_context(granted))
    assert isinstance(seen, View), seen
    assert (seen.bytes, seen.mime, seen.rendered and seen.rendered.by) == (70 << 20, "video/mp4", "ffmpeg")
    assert name_colour(seen.pixels.data) == COLOURS[2]
    with saying("four colours") as there:
        settle(monkeypatch, there)
        assert isinstance(watch(granted, path, model="here/eye"), FileAnswer)
        assert_failure(watch(granted, path, model="here/watcher"), "FILE_TOO_LARGE")
    refused = sightline.view(path, session=Session.from_context(replace(context, renderers=None)))
    assert isinstance(refused, Failure)
    assert refused.reason == "too_large"


@requirement("input.video.large")
@pytest.mark.parametrize(
    ("size", "begins"), [(5 << 30, film(COLOURS[:1])), (70 << 20, b"%PDF-1.7"), (70 << 20, b"text\n")]
)
def test_a_larger_video_and_other_large_files_are_refused(
    granted: ToolContext, folder: Path, size: int, begins: bytes
) -> None:
    path = folder / "large"
    path.write_bytes(begins)
    os.truncate(path, size)
    refused = sightline.view(path, session=Session.from_context(granted))
    assert isinstance(refused, Failure)
    assert refused.reason == "too_large"
