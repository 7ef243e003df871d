"""Stills of videos and frames of animations: one at a given time, sheets of several, and damaged files."""

from __future__ import annotations

import struct
from io import BytesIO

import pytest
from PIL import Image as Pillow
from PIL import ImageChops, ImageColor

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import identify_file
from sightline.pixels.image_headers import is_animated
from sightline.pixels.renderers.animation import ANIMATION_RENDERER, render_animation
from sightline.pixels.renderers.choose_renderer import choose_renderer, render_task
from sightline.pixels.renderers.renderer import RenderedDocument, Renderer, RenderOptions
from sightline.pixels.renderers.video import format_time, render_video
from sightline.pixels.workers import WorkerReply
from sightline.runtime import get_shared_renderers
from tests.pixels.bitmaps import flag, saved
from tests.pixels.renderers.films import COLOURS, animate, film, sound, turn
from tests.requirements import requirement


def name_colour(data: bytes) -> str:
    """Return which of the colours a still has in its middle."""
    picture = Pillow.open(BytesIO(data)).convert("RGB")
    seen = picture.getpixel((picture.width // 2, picture.height // 2))
    assert isinstance(seen, tuple)

    def measure(colour: str) -> int:
        return sum(abs(a - b) for a, b in zip(ImageColor.getrgb(colour), seen, strict=True))

    nearest = min(COLOURS, key=measure)
    assert measure(nearest) < 60, seen
    return nearest


def count_near(picture: Pillow.Image, colour: str) -> int:
    """Return how many pixels have about this colour."""
    difference = ImageChops.difference(picture, Pillow.new("RGB", picture.size, colour)).convert("L")
    return sum(difference.histogram()[:12])


def draw(data: bytes, **options: object) -> RenderedDocument:
    kind = identify_file(data[:4096])
    render = render_video if kind.family == "video" else render_animation
    document = render(data, RenderOptions(**options))  # type: ignore[arg-type]
    assert isinstance(document, RenderedDocument), document
    return document


def refuse(data: bytes, **options: object) -> str:
    kind = identify_file(data[:4096])
    render = render_video if kind.family == "video" else render_animation
    refusal = render(data, RenderOptions(**options))  # type: ignore[arg-type]
    assert isinstance(refusal, Refusal), refusal
    return refusal.code


FORMS = [
    ("mp4", "libx264"),
    ("matroska", "libx264"),
    ("webm", "libvpx"),
    ("avi", "mpeg4"),
    ("flv", "flv"),
    ("mov", "mpeg4"),
]


@requirement("view.at", "input.video")
@pytest.mark.parametrize(("form", "codec"), FORMS)
def test_the_still_at_a_time_is_the_frame_shown_then(form: str, codec: str) -> None:
    data = film(form=form, codec=codec, key_every=25)
    for at, colour in ((0.0, 0), (1.95, 0), (2.0, 1), (5.0, 2), (7.9, 3), (8.4, 3)):
        (still,) = draw(data, at=at).pages
        assert name_colour(still.data) == COLOURS[colour], at
    (still,) = draw(data, at=5.04).pages
    assert still.label == "0:05.0"
    assert refuse(data, at=60.0) == "invalid_input"


@requirement("input.video.scenes")
@pytest.mark.parametrize("cut_keys", [True, False], ids=["key frames at cuts", "cuts between key frames"])
def test_stills_begin_with_the_scenes_and_then_fill_the_gaps(*, cut_keys: bool) -> None:
    data = film(seconds=2.3, key_every=10, cut_keys=cut_keys)
    stills = draw(data, count=4).pages
    assert [still.label for still in stills] == ["0:00.0", "0:02.3", "0:04.6", "0:06.9"]
    assert [name_colour(still.data) for still in stills] == list(COLOURS)
    times = [still.label for still in draw(data, count=8).pages]
    assert {still.label for still in stills} < set(times)
    assert times == sorted(times)
    assert len(times) == 8


@requirement("input.video.scenes")
def test_a_cut_between_two_dark_scenes_is_found() -> None:
    dark = film(("#0a0a0a", "#0a1e0a", "#0a0a0a"), key_every=10)
    assert [still.label for still in draw(dark, count=3).pages] == ["0:00.0", "0:02.0", "0:04.0"]


@requirement("input.video.scenes")
def test_the_first_visible_frame_is_the_default() -> None:
    black = film(("#101010", *COLOURS[:1]), key_every=10)
    (still,) = draw(black).pages
    assert still.label == "0:00.0"  # it has the mark
    (still,) = draw(film(COLOURS[:1], seconds=0.1)).pages
    assert name_colour(still.data) == COLOURS[0]


@requirement("input.video.sheet", "view.at")
@pytest.mark.parametrize(
    "data", [film(), animate("GIF"), animate("WEBP"), animate("PNG")], ids=["mp4", "gif", "webp", "apng"]
)
def test_a_sheet_shows_stills_with_their_times(data: bytes) -> None:
    renderer = choose_renderer(identify_file(data[:4096]), data, "")
    assert isinstance(renderer, Renderer)
    drawn = render_task(data, {"renderer": renderer.name, "options": {"sheet": True}})
    assert not isinstance(drawn, Refusal)
    facts, sheet = drawn
    assert (len(facts["pages"]), facts["total"]) == (1, 1)
    assert "0:00.0, " in facts["note"]
    picture = Pillow.open(BytesIO(sheet)).convert("RGB")
    for colour in COLOURS:
        assert count_near(picture, colour) > 1000


@requirement("input.animated")
@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_the_frame_of_an_animation_at_a_time(form: str) -> None:
    data = animate(form)
    assert is_animated(data)
    for at, colour in ((0.0, 0), (0.49, 0), (0.5, 1), (1.7, 3)):
        (frame,) = draw(data, at=at).pages
        assert name_colour(frame.data) == COLOURS[colour], at
    assert refuse(data, at=2.5) == "invalid_input"
    assert refuse(data[: len(data) // 2], at=1.9) in ("corrupt", "invalid_input")
    assert [frame.label for frame in draw(data, count=2).pages] == ["0:00.0", "0:01.0"]


@requirement("input.animated")
def test_a_still_image_has_no_times() -> None:
    still = saved(flag(40, 30), "image/png")
    assert not is_animated(still)
    assert not ANIMATION_RENDERER.takes(identify_file(still), still, ".png")


@requirement("input.video.upright")
def test_a_turned_video_is_shown_upright() -> None:
    (still,) = draw(turn(film()), at=0.0).pages
    picture = Pillow.open(BytesIO(still.data)).convert("L")
    assert picture.size == (90, 160)
    assert picture.crop((75, 5, 85, 15)).getextrema()[0] > 200  # type: ignore[operator] # the mark was at the top left


def lie(data: bytes, width: int, height: int) -> bytes:
    """Return an AVI file whose header claims another size of its uncompressed frames."""
    at = data.index(b"strf") + 12
    return data[:at] + struct.pack("<ii", width, height) + data[at + 8 :]


@requirement("input.video.damaged")
def test_damaged_videos_are_refused() -> None:
    data = film()
    first = film(options={"movflags": "frag_keyframe+empty_moov"})
    assert refuse(data[: len(data) // 2], at=1.0) == "corrupt"  # its index is at the end
    assert refuse(data[:40]) == "corrupt"
    assert refuse(sound(), at=0.0) == "unsupported_type"
    raw = film(COLOURS[:1], seconds=0.2, form="avi", codec="rawvideo")
    assert refuse(lie(raw, 10000, 8000), at=0.0) == "too_large"
    assert refuse(lie(raw, 4000, 4000), at=0.0) == "corrupt"
    index = first.index(b"mdat")
    assert refuse(first[: index + 40], at=0.0) == "corrupt"
    garbage = first[: index + 4] + bytes(len(first) - index - 4)
    assert refuse(garbage, at=1.0) == "corrupt"
    assert refuse(garbage, count=4) == "corrupt"


@requirement("input.video.damaged")
def test_a_truncated_video_shows_what_is_left() -> None:
    data = film(form="matroska", key_every=10)
    stills = draw(data[: len(data) * 2 // 3], count=4).pages
    assert name_colour(stills[0].data) == COLOURS[0]
    assert stills[-1].label < "0:07.0"


@requirement("input.video", "render.isolated")
def test_a_still_is_drawn_in_an_isolated_worker() -> None:
    reply = get_shared_renderers().run_sync("render", film(), {"renderer": "ffmpeg", "options": {"at": 3.0}})
    assert isinstance(reply, WorkerReply), reply
    assert name_colour(reply.data) == COLOURS[1]


@requirement("view.at")
def test_times_are_written_as_a_clock_shows_them() -> None:
    assert [format_time(each) for each in (0, 9.96, 61.25, 3723.5)] == ["0:00.0", "0:10.0", "1:01.2", "1:02:03.5"]
