"""Refitting: within every limit, upright, legible, deterministic; and hostile files cost only a refusal."""

from __future__ import annotations

import hashlib
import io
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from sightline.model.geometry import Size
from sightline.model.image import Image as Fitted
from sightline.model.image import Picture, Target
from sightline.model.refusal import Refusal
from sightline.pixels.fit import MAX_BYTES, MAX_EDGE, base64_length, check, fit
from tests.pixels.bitmaps import BLUE, FORMATS, RED, exif, flag, photo, png_of, saved
from tests.requirements import requirement
from tests.scripted.pictures import html_page, some_colours, too_heavy, too_wide, truncated_jpeg, undecodable_png

COMMON = ("image/png", "image/jpeg", "image/webp", "image/gif")
ANTHROPIC = Target(COMMON, encoded_bytes=10 * 1024 * 1024, edge=8000)


def fitted(data: bytes, target: Target) -> Fitted:
    """The fitted image, which the target admits and whose words about itself are true."""
    image = fit(data, target)
    assert isinstance(image, Fitted), image
    picture = check(image.data)
    assert picture == Picture(image.mime, image.size, len(image.data))
    assert target.admits(picture, base64_length(len(image.data)))
    assert image.sha256 == hashlib.sha256(image.data).hexdigest()
    return image


def opened(image: Fitted) -> Image.Image:
    return Image.open(io.BytesIO(image.data)).convert("RGBA")


def near(pixel: object, colour: tuple[int, ...], by: int = 12) -> bool:
    assert isinstance(pixel, tuple)
    return all(abs(a - b) <= by for a, b in zip(pixel, colour, strict=False))


def test_one_pixel_too_wide_becomes_exactly_as_wide_as_allowed() -> None:
    image = fitted(too_wide(some_colours(0)), ANTHROPIC)
    assert (image.mime, image.size) == ("image/png", Size(8000, 600))


def test_a_heavy_photo_becomes_a_jpeg_of_the_same_size() -> None:
    heavy = too_heavy(some_colours(0))
    before = check(heavy)
    assert isinstance(before, Picture)
    assert base64_length(before.bytes) > 10 * 1024 * 1024
    image = fitted(heavy, ANTHROPIC)
    assert (image.mime, image.size) == ("image/jpeg", before.size)


@requirement("input.bitmaps")
@pytest.mark.parametrize("mime", FORMATS)
@pytest.mark.parametrize("to", ["image/png", "image/jpeg", "image/webp"])
def test_every_format_becomes_every_format(mime: str, to: str) -> None:
    image = fitted(saved(flag(60, 40), mime), Target((to,)))
    assert (image.mime, image.size) == (to, Size(60, 40))
    assert near(opened(image).getpixel((10, 10)), RED, 30)
    assert near(opened(image).getpixel((50, 30)), BLUE, 30)


@requirement("fit.upright")
@pytest.mark.parametrize("mime", ["image/jpeg", "image/png", "image/webp", "image/tiff", "image/avif"])
@pytest.mark.parametrize("turn", range(2, 9))
def test_an_image_is_turned_upright(mime: str, turn: int) -> None:
    image = fitted(saved(flag(64, 32), mime, exif=exif(turn)), Target(COMMON))
    size = Size(32, 64) if turn >= 5 else Size(64, 32)
    x = size.width // 4 if turn in (4, 5, 8) else 3 * size.width // 4
    y = size.height // 4 if turn in (2, 5, 6) else 3 * size.height // 4
    assert image.size == size
    assert near(opened(image).getpixel((x, y)), RED, 30)


def test_what_the_target_admits_already_is_encoded_anew() -> None:
    data = saved(photo(50, 40), "image/jpeg", comment=b"what a strict reader may choke on")
    image = fitted(data, ANTHROPIC)
    assert b"choke" not in image.data
    assert (image.mime, image.size) == ("image/jpeg", Size(50, 40))


@requirement("fit.sharp")
def test_a_screenshot_stays_sharp_and_a_photo_becomes_a_jpeg() -> None:
    page = Image.new("RGB", (900, 600), "white")
    for line in range(30):
        ImageDraw.Draw(page).text((10, 20 * line), f"line {line} of a page that must stay legible", "black")
    target = Target(COMMON, edge=800)
    assert fitted(saved(page, "image/png"), target).mime == "image/png"
    assert fitted(saved(photo(900, 600), "image/png"), target).mime == "image/jpeg"
    assert fitted(saved(photo(900, 600).convert("L"), "image/png"), target).mime == "image/jpeg"


def test_a_jpeg_keeps_its_colours_at_full_resolution() -> None:
    image = fitted(saved(photo(200, 100), "image/png"), Target(("image/jpeg",)))
    with Image.open(io.BytesIO(image.data)) as opened:
        assert getattr(opened, "layer")[0][1:3] == (1, 1)  # noqa: B009 - not in its types


@requirement("fit.transparency")
def test_transparency_stays_where_it_can_and_is_white_where_it_cannot() -> None:
    clear = Image.new("RGBA", (60, 40), (0, 0, 0, 0))
    clear.paste(RED, (0, 0, 30, 40))
    data = saved(clear, "image/tiff")
    kept, flat = fitted(data, Target(COMMON)), fitted(data, Target(("image/jpeg",)))
    assert kept.mime == "image/png"
    assert opened(kept).getpixel((50, 20)) == (0, 0, 0, 0)
    assert near(opened(flat).getpixel((50, 20)), (255, 255, 255))


def test_an_alpha_channel_that_hides_nothing_is_dropped() -> None:
    image = fitted(saved(photo(300, 200).convert("RGBA"), "image/png"), Target(COMMON, edge=200))
    assert image.mime == "image/jpeg"


@pytest.mark.parametrize("mode", ["L", "RGB", "1"])
def test_a_colour_that_stands_for_nothing_is_transparent(mode: str) -> None:
    image = Image.new(mode, (20, 20), "black")
    image.paste("white", (0, 0, 10, 20))
    data = saved(image, "image/png", transparency=(0, 0, 0) if mode == "RGB" else 0)
    found = opened(fitted(data, Target(("image/png",))))
    assert [found.getpixel((x, 5)) for x in (5, 15)] == [(255, 255, 255, 255), (0, 0, 0, 0)]


def test_a_palette_with_transparency_is_read_as_it_looks() -> None:
    palette = Image.new("P", (40, 40), 1)
    palette.putpalette([255, 0, 0, 0, 0, 255])
    data = saved(palette, "image/png", transparency=bytes([255, 0]))
    assert opened(fitted(data, Target(("image/webp",)))).getpixel((5, 5)) == (0, 0, 255, 0)


@pytest.mark.parametrize(
    ("mode", "shades"),
    [
        ("I;16", (65535, 32767, 0)),
        ("I", (71000, 35000, -1000)),
        ("F", (1.0, 0.5, 0.0)),
        ("L", (255, 127, 0)),
        ("1", (255, 255, 0)),
    ],
)
def test_deep_greys_keep_their_shades(mode: str, shades: tuple[float, ...]) -> None:
    deep = Image.new(mode, (3, 1))
    for x, shade in enumerate(shades):
        deep.putpixel((x, 0), shade)
    image = opened(fitted(saved(deep, "image/tiff"), Target(("image/png",))))
    middle = 255 if mode == "1" else 127
    assert [image.getpixel((x, 0)) for x in range(3)] == [(grey, grey, grey, 255) for grey in (255, middle, 0)]


def test_a_picture_of_one_grey_in_a_wide_range_is_no_trouble() -> None:
    fitted(saved(Image.new("F", (9, 9), 7.5), "image/tiff"), Target(("image/png",)))


@requirement("fit.animation")
def test_an_animation_becomes_its_first_frame() -> None:
    frames = [Image.new("RGB", (30, 20), colour) for colour in (RED, BLUE)]
    data = saved(frames[0], "image/gif", save_all=True, append_images=frames[1:])
    image = fitted(data, Target(("image/png",)))
    assert near(opened(image).getpixel((5, 5)), RED)


@requirement("fit.sharp")
def test_a_drawing_that_is_too_heavy_is_tried_as_jpeg_before_it_loses_pixels() -> None:
    ink = random.Random(2)
    page = Image.new("RGB", (1200, 800), "white")
    for top in range(0, 800, 14):
        words = "".join(chr(ink.randrange(33, 126)) for _ in range(200))
        ImageDraw.Draw(page).text((0, top), words, ink.choice(["black", "navy", "maroon"]))
    drawing = saved(page, "image/png", compress_level=0)
    target = Target(("image/png", "image/jpeg"), edge=900)
    lossless, lossy = fitted(drawing, target), fitted(drawing, replace(target, formats=("image/jpeg",)))
    assert lossless.mime == "image/png"
    assert len(lossy.data) < len(lossless.data)
    between = base64_length((len(lossy.data) + len(lossless.data)) // 2)
    assert fitted(drawing, replace(target, encoded_bytes=between)) == lossy
    only = replace(target, formats=("image/png",), encoded_bytes=between)
    assert fitted(drawing, only).size.edge < 900


@requirement("fit.base64")
@pytest.mark.parametrize("limit", [200_000, 50_000, 5_000, 900])
def test_an_image_is_made_smaller_until_it_is_light_enough(limit: int) -> None:
    image = fitted(saved(photo(800, 500), "image/png"), Target(COMMON, encoded_bytes=limit))
    assert image.size.edge > 8
    assert base64_length(len(image.data)) > limit / 8


def test_a_limit_that_no_image_meets_is_a_refusal() -> None:
    found = fit(saved(flag(20, 20), "image/png"), Target(COMMON, encoded_bytes=20))
    assert isinstance(found, Refusal)
    assert found.code == "too_large"


def test_formats_that_nobody_can_write_are_a_refusal() -> None:
    found = fit(saved(flag(20, 20), "image/png"), Target(("image/heic",)))
    assert isinstance(found, Refusal)
    assert found.code == "unsupported_type"


@requirement("fit.deterministic")
def test_the_same_bytes_and_target_give_the_same_image_in_any_thread() -> None:
    data, target = saved(photo(600, 400), "image/png"), Target(COMMON, encoded_bytes=60_000, edge=500)
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: fit(data, target), range(8)))
    assert found == {fit(data, target)}


@requirement("bound.hostile", "bound.pixels", "bound.refit")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (png_of(50_000, 50_000), "too_large"),
        (png_of(16_385, 1), "too_large"),
        (png_of(16_000, 16_000), "too_large"),
        (png_of(12_000, 9_999), "corrupt"),
        (undecodable_png(), "corrupt"),
        (truncated_jpeg(), "corrupt"),
        (html_page(), "unsupported_type"),
        (bytes(8) + saved(flag(9, 9), "image/png")[8:], "unsupported_type"),
        (b"", "corrupt"),
        (bytes(MAX_BYTES + 1), "too_large"),
    ],
    ids=["bomb", "too wide", "too many pixels", "few rows", "garbage", "cut", "html", "magic", "empty", "heavy"],
)
def test_a_hostile_file_costs_a_refusal(data: bytes, code: str) -> None:
    for found in (check(data), fit(data, Target(("image/webp",)))):
        assert isinstance(found, Refusal)
        assert found.code == code


@requirement("type.truncated")
@pytest.mark.parametrize("mime", FORMATS)
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_cut_file_is_corrupt(mime: str, part: float) -> None:
    data = saved(photo(120, 90), mime)
    found = check(data[: int(len(data) * part)])
    assert isinstance(found, Refusal)
    assert found.code == "corrupt"


@pytest.mark.parametrize("mime", FORMATS)
def test_a_whole_file_is_whole(mime: str) -> None:
    data = saved(photo(120, 90), mime)
    assert check(data) == Picture(mime, Size(120, 90), len(data))


@requirement("bound.refit")
def test_a_picture_as_large_as_may_be_is_refitted() -> None:
    strip = saved(Image.new("RGB", (MAX_EDGE, 20), RED), "image/png")
    assert fitted(strip, Target(("image/webp",))).size.width == 16_383
    assert fitted(strip, Target(("image/png",), edge=MAX_EDGE - 1)).size.width == MAX_EDGE - 1


def test_odd_metadata_is_no_reason_to_refuse_a_picture() -> None:
    data = saved(flag(64, 32), "image/jpeg", exif=exif(6)[:-8])
    assert isinstance(check(data), Picture)


SOURCES = [
    *(saved(photo(90, 50), mime) for mime in FORMATS),
    *(saved(flag(50, 90), mime) for mime in FORMATS),
    saved(Image.new("RGBA", (40, 40), (9, 9, 9, 9)), "image/png"),
    saved(flag(64, 32), "image/jpeg", exif=exif(6)),
    saved(Image.new("1", (1, 300)), "image/png"),
]


@requirement("fit.any_target")
@given(
    st.sampled_from(SOURCES),
    st.lists(st.sampled_from(["image/png", "image/jpeg", "image/webp"]), min_size=1, unique=True),
    st.none() | st.integers(1, 20_000),
    st.none() | st.integers(1, 120),
)
@examples(max_examples=150)
def test_any_target_is_met_or_refused(data: bytes, formats: list[str], encoded: int | None, edge: int | None) -> None:
    target = Target(tuple(formats), encoded, edge)
    found = fit(data, target)
    if isinstance(found, Refusal):
        assert found.code == "too_large"
        assert encoded is not None
        assert encoded < 1500
    else:
        assert fitted(data, target) == found


@requirement("bound.hostile")
@given(st.sampled_from(SOURCES), st.data())
@examples(max_examples=150)
def test_a_file_with_wrong_bytes_is_refused_or_refitted(data: bytes, draw: st.DataObject) -> None:
    broken = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        broken[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    found = fit(bytes(broken), Target(("image/png",), edge=30))
    assert isinstance(found, (Fitted, Refusal))
