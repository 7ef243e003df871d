"""Encoding: drawings stay sharp and lose colours first, photographs become JPEG."""

from __future__ import annotations

import io
import math
import random

import pytest
from PIL import Image, ImageChops, ImageDraw

from sightline.pixels.encode import LIGHT_BYTES, encode, is_dark, is_drawing, sample_grid
from tests.pixels.bitmaps import flag, photo
from tests.pixels.test_trim import bitmap
from tests.requirements import requirement

ALL = ("image/png", "image/jpeg", "image/webp")


def words(width: int = 900, height: int = 600, colours: tuple[str, ...] = ("black", "navy", "maroon")) -> Image.Image:
    """Draw antialiased text."""
    ink, image = random.Random(2), Image.new("RGB", (width, height), "white")
    for top in range(0, height, 14):
        text = "".join(chr(ink.randrange(33, 126)) for _ in range(width // 6))
        ImageDraw.Draw(image).text((0, top), text, ink.choice(colours))
    return image


def shrunk(image: Image.Image) -> Image.Image:
    return image.resize((image.width * 2 // 3, image.height * 2 // 3), Image.Resampling.LANCZOS)


def gradient() -> Image.Image:
    """Draw more than 256 similar colours."""
    image = Image.new("RGB", (600, 400))
    for x in range(600):
        for y in range(400):
            image.putpixel((x, y), (x // 20, y // 10, 120))
    return image


def written(
    image: Image.Image, formats: tuple[str, ...] = ALL, limit: float = math.inf
) -> tuple[str, Image.Image, int]:
    found = encode(bitmap(image), formats, limit, drawing=True)
    assert not isinstance(found, int), found
    mime, data = found
    opened = Image.open(io.BytesIO(data))
    assert Image.MIME[opened.format or ""] == mime
    return mime, opened, len(data)


def apart(one: Image.Image, other: Image.Image) -> int:
    counts = ImageChops.difference(one.convert("RGB"), other.convert("RGB")).histogram()
    return max(place % 256 for place, count in enumerate(counts) if count)


@requirement("fit.sharp")
def test_a_few_colours_become_a_lossless_palette() -> None:
    image = words(colours=("black",))
    image.paste("red", (0, 0, 90, 90))
    mime, opened, _ = written(image)
    assert (mime, opened.mode) == ("image/png", "P")
    assert apart(opened, image) == 0


@pytest.mark.parametrize("mode", ["1", "L"])
def test_greys_stay_grey_and_lossless(mode: str) -> None:
    image = words(colours=("black",)).convert(mode).convert("L")
    mime, opened, _ = written(image)
    assert mime == "image/png"
    assert opened.mode in ("L", "P")
    assert apart(opened, image) == 0


def inked() -> Image.Image:
    return words(600, 300, ("black", "navy", "maroon", "teal", "orange", "purple"))


@requirement("fit.sharp")
def test_the_many_colours_of_an_unscaled_page_stay_lossless() -> None:
    line = inked().crop((0, 0, 600, 28))
    for x in range(300):
        line.putpixel((x, 0), (x % 256, 40 + x // 2, 200 - x // 2))
    image = Image.new("RGB", (600, 560))
    for top in range(0, 560, 28):
        image.paste(line, (0, top))
    assert image.getcolors(256) is None
    mime, opened, weight = written(image)
    assert mime == "image/webp"
    assert apart(opened, image) == 0
    assert weight < LIGHT_BYTES


@requirement("fit.sharp")
def test_a_picture_in_a_text_page_stays_lossless() -> None:
    image = inked()
    image.paste(photo(150, 100), (300, 100))
    for formats, mime in ((ALL, "image/webp"), (("image/png", "image/jpeg"), "image/png")):
        kind, opened, weight = written(image, formats)
        assert kind == mime
        assert apart(opened, image) == 0
        assert weight < LIGHT_BYTES


@requirement("fit.sharp")
@pytest.mark.parametrize("formats", [ALL, ("image/png",), ("image/webp",)], ids=str)
def test_a_reduced_page_gets_indistinguishable_colours(formats: tuple[str, ...]) -> None:
    image = shrunk(words(1200, 900, ("black", "navy", "maroon", "teal", "orange", "purple")))
    assert image.getcolors(2048) is None
    mime, opened, _ = written(image, formats)
    assert mime == ("image/png" if "image/png" in formats else "image/webp")
    assert 64 < len(opened.convert("RGB").getcolors(65536) or ()) <= 256
    assert 0 < apart(opened, image) <= 24


def test_similar_background_colours_stay_distinct() -> None:
    image = shrunk(words(1200, 900, ("black", "navy", "maroon", "teal", "orange", "purple")))
    for top, ground in ((0, "#fafafa"), (200, "#f4f5f7"), (400, "#f0f0f0")):
        image.paste(ground, (0, top, 800, top + 60))
    _, opened, _ = written(image)
    found = [opened.convert("RGB").getpixel((400, top)) for top in (30, 230, 430)]
    assert found == [(0xFA, 0xFA, 0xFA), (0xF4, 0xF5, 0xF7), (0xF0, 0xF0, 0xF0)]


def test_indistinguishable_colours_share_a_palette_entry() -> None:
    image = gradient()
    assert image.getcolors(256) is None
    _, opened, _ = written(image, ("image/png",))
    assert opened.mode == "P"
    assert 0 < apart(opened, image) <= 8


@requirement("fit.sharp")
def test_a_heavy_drawing_loses_colours_and_never_becomes_a_jpeg() -> None:
    image = shrunk(words())
    weights = [written(image, limit=limit)[2] for limit in (math.inf,)]
    seen = []
    while True:
        found = encode(bitmap(image), ALL, weights[-1] - 1, drawing=True)
        if isinstance(found, int):
            break
        mime, data = found
        seen.append((mime, len(Image.open(io.BytesIO(data)).getcolors(65536) or ())))
        weights.append(len(data))
    assert seen[-3:] == [("image/png", 64), ("image/png", 32), ("image/png", 16)]
    assert found == weights[-1]


def test_fewer_colours_are_written_as_webp_if_png_is_not_accepted() -> None:
    image = shrunk(words())
    _, _, weight = written(image, ("image/webp",))
    mime, opened, lighter = written(image, ("image/webp",), weight - 1)
    assert mime == "image/webp"
    assert lighter < weight
    assert len(opened.convert("RGB").getcolors(65536) or ()) <= 64


def test_text_becomes_a_full_colour_jpeg_if_only_jpeg_is_accepted() -> None:
    mime, opened, _ = written(words(), ("image/jpeg",))
    assert mime == "image/jpeg"
    assert getattr(opened, "layer")[0][1:3] == (1, 1)  # noqa: B009 - not in its types


@requirement("fit.sharp")
@pytest.mark.parametrize(
    ("formats", "mime"),
    [(ALL, "image/jpeg"), (("image/png", "image/webp"), "image/webp"), (("image/png",), "image/png")],
)
def test_a_photograph_becomes_a_jpeg_if_that_is_accepted(formats: tuple[str, ...], mime: str) -> None:
    found = encode(bitmap(photo(300, 200)), formats, math.inf, drawing=False)
    assert not isinstance(found, int)
    assert found[0] == mime


def test_a_photograph_that_is_partly_transparent_stays_so() -> None:
    image = photo(300, 200).convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    for formats, mime in ((ALL, "image/webp"), (("image/png", "image/jpeg"), "image/png")):
        found = encode(bitmap(image), formats, math.inf, drawing=False)
        assert not isinstance(found, int)
        assert found[0] == mime
        assert Image.open(io.BytesIO(found[1])).mode == "RGBA"


def test_a_photograph_has_many_colours_and_a_drawing_few() -> None:
    for image in (words(), shrunk(words()), flag(300, 200), words().convert("L"), Image.new("RGB", (1, 1))):
        assert is_drawing(sample_grid(bitmap(image)))
    for image in (photo(900, 600), photo(300, 200), photo(900, 600).convert("L")):
        assert not is_drawing(sample_grid(bitmap(image)))


def test_light_text_on_a_dark_background_is_a_dark_page() -> None:
    assert not is_dark(sample_grid(bitmap(words())))
    assert is_dark(sample_grid(bitmap(ImageChops.invert(words()))))
