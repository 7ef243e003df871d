"""Similarity: the same picture in another file is similar, another picture is not."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageEnhance

from sightline.model.image import ImageInfo
from sightline.model.refusal import Refusal
from sightline.pixels.decode import decode
from sightline.pixels.probe import probe_within_limits
from sightline.pixels.similarity import _COSINES, _letterbox, compare_hashes, hash_bitmap, hash_image
from sightline.pixels.workers import WorkerPool, WorkerReply
from tests.pixels.bitmaps import FORMATS, exif, png_of, saved
from tests.requirements import requirement

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

BITS = st.integers(0, 2**64 - 1)


def scene(seed: int, width: int = 640, height: int = 480) -> Image.Image:
    """Draw a few large shapes."""
    page = Image.new("RGB", (width, height), (30 + 40 * (seed % 4), 60, 90))
    draw = ImageDraw.Draw(page)
    for at in range(1, 7):
        x, y = (width * (at * 37 + seed * 53) // 250) % width, (height * (at * 91 + seed * 29) // 300) % height
        shade = (at * 43 + seed * 77) % 256
        draw.ellipse(
            (x - width // 8, y - height // 8, x + width // 6, y + height // 5), (shade, 255 - shade, shade // 2)
        )
    return page


def hashed(image: Image.Image, mime: str = "image/png", **options: object) -> int:
    found = hash_image(saved(image, mime, **options))
    assert isinstance(found, int)
    return found


def bitmap_of(image: Image.Image) -> Bitmap:
    data = saved(image, "image/png")
    picture = probe_within_limits(data)
    assert isinstance(picture, ImageInfo)
    found = decode(data, picture)
    assert not isinstance(found, Refusal)
    return found


@requirement("similar.hash")
@given(BITS, BITS)
def test_similarity_is_one_minus_the_share_of_bits_that_differ(a: int, b: int) -> None:
    differing = sum((a >> at & 1) != (b >> at & 1) for at in range(64))
    assert compare_hashes(a, b) == 1 - differing / 64
    assert compare_hashes(a, a) == 1
    assert compare_hashes(a, a ^ (2**64 - 1)) == 0


@requirement("similar.hash")
@pytest.mark.parametrize("mime", FORMATS)
def test_a_picture_has_nearly_the_same_hash_in_every_format(mime: str) -> None:
    assert compare_hashes(hashed(scene(1)), hashed(scene(1), mime)) >= 0.95


@requirement("similar.hash")
@pytest.mark.parametrize("seed", range(4))
def test_a_scaled_or_brighter_picture_is_similar_and_another_is_not(seed: int) -> None:
    first = scene(seed)
    assert compare_hashes(hashed(first), hashed(first.resize((200, 150), Image.Resampling.LANCZOS))) >= 0.95
    assert compare_hashes(hashed(first), hashed(ImageEnhance.Brightness(first).enhance(1.1))) >= 0.9
    assert compare_hashes(hashed(first), hashed(scene(seed + 5))) < 0.8


def test_the_shape_of_an_image_counts() -> None:
    assert compare_hashes(hashed(scene(1)), hashed(scene(1).resize((640, 160)))) < 0.8


def test_a_rotated_photo_is_hashed_upright() -> None:
    upright = scene(2)
    stored = upright.transpose(Image.Transpose.ROTATE_90)
    assert compare_hashes(hashed(upright), hashed(stored, "image/jpeg", exif=exif(6))) >= 0.95


def test_transparent_areas_are_hashed_as_white() -> None:
    clear = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
    clear.paste((10, 10, 10, 255), (0, 0, 32, 64))
    white = Image.new("RGB", (64, 64), "white")
    white.paste((10, 10, 10), (0, 0, 32, 64))
    assert hashed(clear) == hashed(white)


def test_the_frequencies_are_those_of_the_cosine_transform() -> None:
    """Check one frequency by its definition: a picture of the third wave across."""
    row = [round(128 + 100 * math.cos(math.pi * 3 * (2 * x + 1) / 128)) for x in range(64)]
    image = Image.frombytes("L", (64, 64), bytes(row) * 64)
    strengths = [sum(cosine * value for cosine, value in zip(wave, row, strict=True)) for wave in _COSINES]
    assert max(range(1, 8), key=lambda wave: abs(strengths[wave])) == 3
    bits = f"{hashed(image):064b}"
    assert (bits[0], bits[3]) == ("1", "1")


@requirement("similar.hash")
@pytest.mark.parametrize(
    ("size", "inside"),
    [
        ((640, 160), (0, 24, 64, 40)),
        ((160, 640), (24, 0, 40, 64)),
        ((320, 320), (0, 0, 64, 64)),
        ((8, 4), (0, 16, 64, 48)),
    ],
)
def test_an_image_is_letterboxed_in_the_middle_of_64x64_greys(
    size: tuple[int, int], inside: tuple[int, int, int, int]
) -> None:
    """The shape is kept, and the rest is black."""
    rows = _letterbox(bitmap_of(Image.new("RGB", size, (200, 200, 200))))
    found = Image.frombytes("L", (64, 64), b"".join(rows))
    assert (len(rows), {len(row) for row in rows}) == (64, {64})
    assert found.getbbox() == inside
    assert found.crop(inside).getextrema() == (200, 200)


@requirement("similar.hash")
@pytest.mark.parametrize("seed", range(3))
def test_each_bit_compares_a_low_frequency_with_the_median(seed: int) -> None:
    """Compute the cosine transform by its definition, in real numbers."""
    image = bitmap_of(scene(seed, 64, 64).convert("L"))
    rows = _letterbox(image)
    waves = [
        sum(
            rows[y][x] * math.cos(math.pi * across * (2 * x + 1) / 128) * math.cos(math.pi * down * (2 * y + 1) / 128)
            for y in range(64)
            for x in range(64)
        )
        for down in range(8)
        for across in range(8)
    ]
    middle = statistics.median(waves)
    sure = [at for at, wave in enumerate(waves) if abs(wave - middle) > 5]  # our cosines have twelve bits
    assert len(sure) > 56
    bits = f"{hash_bitmap(image):064b}"
    assert [bits[at] for at in sure] == ["1" if waves[at] > middle else "0" for at in sure]


def test_one_colour_and_one_pixel_have_hashes() -> None:
    for size in ((1, 1), (1, 9000), (64, 64), (5000, 2)):
        assert isinstance(hash_image(saved(Image.new("L", size, 99), "image/png")), int)


@requirement("bound.hostile")
def test_a_file_that_cannot_be_decoded_has_no_hash() -> None:
    assert isinstance(hash_image(png_of(50_000, 50_000)), Refusal)
    assert isinstance(hash_image(saved(scene(1), "image/jpeg")[:-900]), Refusal)


def test_a_worker_computes_the_same_hash() -> None:
    data = saved(scene(3), "image/jpeg")
    with WorkerPool(count=1) as workers:
        answer = workers.run_sync("hash", data)
    assert isinstance(answer, WorkerReply)
    assert int(answer.facts["hash"], 16) == hash_image(data)
