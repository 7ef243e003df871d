"""Decoding: every format becomes the same upright pixels, and a damaged file a refusal."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from PIL import Image, ImageCms

from sightline.model.geometry import Size
from sightline.model.image import MAX_EDGE, MAX_FILE_BYTES, ImageInfo
from sightline.model.refusal import Refusal
from sightline.pixels.bitmaps import resize_bitmap
from sightline.pixels.decode import check_image, decode, decode_at_size
from sightline.pixels.probe import probe_within_limits
from tests.pixels import large
from tests.pixels.bitmaps import (
    BLUE,
    FORMATS,
    POISON,
    RED,
    chunk,
    data_first,
    exif,
    flag,
    gif_of,
    gif_on,
    icon_of,
    late_exif,
    photo,
    png_of,
    psd_of,
    saved,
)
from tests.refusals import assert_refusal
from tests.requirements import requirement

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

each_format = pytest.mark.parametrize("mime", FORMATS)
LOSSLESS: dict[str, dict[str, Any]] = {
    "image/webp": {"lossless": True},
    "image/jpeg": {"quality": 100, "subsampling": "4:4:4"},
}


def decoded(data: bytes, shrink_to: Size | None = None) -> Bitmap:
    picture = probe_within_limits(data)
    assert isinstance(picture, ImageInfo), picture
    image = decode(data, picture, shrink_to=shrink_to)
    assert not isinstance(image, Refusal), image
    assert image.format == "uchar"
    assert (image.interpretation, image.bands - image.hasalpha()) in (("srgb", 3), ("b-w", 1))
    return image


def pixel(image: Bitmap, x: int, y: int) -> list[int]:
    return [round(value) for value in image(x, y)]


def near(found: list[int], wanted: tuple[int, ...], by: int = 3) -> bool:
    return len(found) == len(wanted) and all(abs(a - b) <= by for a, b in zip(found, wanted, strict=True))


@requirement("input.bitmaps")
@each_format
def test_every_format_gives_its_pixels(mime: str) -> None:
    data = saved(flag(64, 48), mime, **LOSSLESS.get(mime, {}))
    image = decoded(data)
    assert (image.width, image.height, image.bands) == (64, 48, 3)
    assert near(pixel(image, 3, 3), RED, by=6)
    assert near(pixel(image, 60, 40), BLUE, by=6)


@pytest.mark.parametrize("mime", ["image/png", "image/webp", "image/tiff", "image/bmp"])
def test_a_lossless_format_loses_nothing(mime: str) -> None:
    source = photo(61, 47)
    data = saved(source, mime, **LOSSLESS.get(mime, {}))
    assert bytes(decoded(data).write_to_memory()) == source.tobytes()


@requirement("fit.upright")
@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("mime", ["image/jpeg", "image/png", "image/webp", "image/tiff", "image/avif"])
def test_an_image_is_decoded_upright(mime: str, turn: int) -> None:
    corner = {1: (0, 0), 2: (1, 0), 3: (1, 1), 4: (0, 1), 5: (0, 0), 6: (1, 0), 7: (1, 1), 8: (0, 1)}[turn]
    data = saved(flag(64, 32), mime, exif=exif(turn), **LOSSLESS.get(mime, {}))
    image = decoded(data)
    assert Size(image.width, image.height) == (Size(32, 64) if turn >= 5 else Size(64, 32))
    for x, y in ((0, 0), (1, 0), (0, 1), (1, 1)):
        at = (3 if x == 0 else image.width - 4, 3 if y == 0 else image.height - 4)
        assert near(pixel(image, *at), RED if (x, y) == corner else BLUE, by=10)


MODES: list[tuple[str, bytes, tuple[int, ...]]] = [
    ("bilevel", saved(Image.new("1", (9, 9), 1), "image/png"), (255,)),
    ("grey", saved(Image.new("L", (9, 9), 77), "image/png"), (77,)),
    ("palette", saved(Image.new("RGB", (9, 9), RED).quantize(8), "image/png"), RED),
    ("grey of 16 bits", saved(Image.new("I;16", (9, 9), 0x8000), "image/png"), (128,)),
    ("opaque RGBA", saved(Image.new("RGBA", (9, 9), (*RED, 255)), "image/png"), RED),
    ("transparent RGBA", saved(Image.new("RGBA", (9, 9), (*RED, 99)), "image/png"), (*RED, 99)),
    ("opaque LA", saved(Image.new("LA", (9, 9), (50, 255)), "image/png"), (50,)),
    ("transparent LA", saved(Image.new("LA", (9, 9), (50, 9)), "image/png"), (50, 9)),
    ("grey JPEG", saved(Image.new("L", (9, 9), 77), "image/jpeg"), (77,)),
    ("real TIFF", saved(Image.merge("F", [Image.new("F", (9, 9), 3.5)]), "image/tiff"), (0,)),
    ("grey BMP", saved(Image.new("L", (9, 9), 77), "image/bmp"), (77,)),
    ("GIF", saved(Image.new("RGB", (9, 9), BLUE), "image/gif"), BLUE),
]


@pytest.mark.parametrize(("data", "wanted"), [row[1:] for row in MODES], ids=[row[0] for row in MODES])
def test_every_depth_and_colour_space_becomes_a_plain_one(data: bytes, wanted: tuple[int, ...]) -> None:
    assert near(pixel(decoded(data), 4, 4), wanted)


def test_cmyk_is_converted_by_its_profile() -> None:
    """With a profile of real inks, which are duller than a screen."""
    pages = (Image.new("RGB", (9, 9), colour).convert("CMYK") for colour in ((255, 255, 255), BLUE))
    white, blue = (pixel(decoded(saved(page, "image/jpeg", quality=100)), 4, 4) for page in pages)
    assert near(white, (255, 255, 255))
    assert blue[2] > 1.5 * max(blue[:2])


def test_deep_greys_without_a_meaning_are_stretched_to_their_range() -> None:
    ramp = Image.linear_gradient("L").convert("F").point(lambda value: value * 100.0 + 7.0)
    image = decoded(saved(ramp, "image/tiff"))
    assert (pixel(image, 9, 0), pixel(image, 9, 255)) == ([0], [255])
    assert near(pixel(image, 9, 128), (128,))


def test_a_profile_of_another_space_is_applied_and_one_of_srgb_is_not() -> None:
    grey = Image.new("RGB", (8, 8), (200, 60, 60))
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert near(pixel(decoded(saved(grey, "image/png", icc_profile=srgb)), 2, 2), (200, 60, 60), by=0)
    swapped = saved(grey, "image/png", icc_profile=red_and_blue_swapped(srgb))
    assert near(pixel(decoded(swapped), 2, 2), (60, 60, 200), by=4)


def red_and_blue_swapped(profile: bytes) -> bytes:
    """Return the sRGB profile under another name, with red and blue exchanged."""
    return (
        profile.replace(b"rXYZ", b"xXYZ").replace(b"bXYZ", b"rXYZ").replace(b"xXYZ", b"bXYZ")
        .replace("sRGB".encode("utf-16-be"), "sBGR".encode("utf-16-be")).replace(b"sRGB", b"sBGR")
    )  # fmt: skip


def test_metadata_is_dropped() -> None:
    data = saved(flag(64, 32), "image/jpeg", exif=exif(6), icc_profile=bytes(500), comment=b"secret")
    fields = decoded(data).get_fields()
    assert not [name for name in fields if "exif" in name or "icc" in name or "jpeg" in name or name == "orientation"]


def test_a_damaged_profile_is_ignored() -> None:
    data = saved(Image.new("RGB", (8, 8), RED), "image/png", icc_profile=b"rubbish" * 50)
    assert near(pixel(decoded(data), 2, 2), RED, by=0)


@requirement("fit.animation")
@pytest.mark.parametrize("mime", ["image/gif", "image/webp", "image/png"])
def test_an_animation_is_its_first_frame(mime: str) -> None:
    frames = [Image.new("RGB", (16, 16), colour) for colour in (RED, BLUE, RED)]
    data = saved(frames[0], mime, save_all=True, append_images=frames[1:], **LOSSLESS.get(mime, {}))
    image = decoded(data)
    assert (image.width, image.height) == (16, 16)
    assert near(pixel(image, 8, 8), RED)


@requirement("bound.hostile")
def test_an_animation_may_have_thousands_of_frames_and_not_tens_of_thousands() -> None:
    assert isinstance(check_image(gif_of(2_000)), ImageInfo)
    assert_refusal(check_image(gif_of(30_000)), "too_large", "30,000", "10,000")


@requirement("input.ico_psd")
@pytest.mark.parametrize("kind", ["bmp", "png"])
def test_an_icon_is_its_largest_picture(kind: str) -> None:
    data = icon_of({16: BLUE, 64: RED, 32: BLUE}, kind)
    assert check_image(data) == ImageInfo("image/x-icon", Size(64, 64), len(data))
    image = decoded(data)
    assert near(pixel(image, 5, 5)[:3], RED, by=0)


@requirement("bound.hostile")
def test_a_bomb_in_an_icon_is_too_large() -> None:
    small = icon_of({16: BLUE}, "png")
    bomb = png_of(50_000, 50_000)
    entry = struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(bomb), 22)
    for data in (small[:6] + entry + bomb, small[:6] + entry + bytes(8) + bomb[8:]):
        refusal = check_image(data)
        assert isinstance(refusal, Refusal)
        assert refusal.code in ("too_large", "corrupt")


@requirement("input.ico_psd")
def test_a_photoshop_file_is_its_merged_picture() -> None:
    data = psd_of(flag(40, 20))
    assert check_image(data) == ImageInfo("image/vnd.adobe.photoshop", Size(40, 20), len(data))
    assert bytes(decoded(data).write_to_memory()) == flag(40, 20).tobytes()


def test_a_format_without_a_decoder_is_refused_by_name() -> None:
    data = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
    no = decode(data, ImageInfo("image/heic", Size(9, 9), len(data)))
    assert_refusal(no, "unsupported_type", "image/heic", "PNG", "JPEG")


@requirement("type.truncated")
@pytest.mark.parametrize("mime", [*FORMATS, "image/x-icon", "image/vnd.adobe.photoshop"])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9, 0.99])
def test_a_truncated_file_is_corrupt(mime: str, part: float) -> None:
    made: dict[str, Callable[[], bytes]] = {
        "image/x-icon": lambda: icon_of({64: RED, 16: BLUE}, "bmp"),
        "image/vnd.adobe.photoshop": lambda: psd_of(photo(120, 90)),
    }
    data = made[mime]() if mime in made else saved(photo(120, 90), mime)
    found = check_image(data[: int(len(data) * part)])
    assert isinstance(found, Refusal), found
    assert found.code == "corrupt"


@pytest.mark.parametrize("size", [(1, 300), (7, 7), (8, 8), (9, 1), (64, 3)])
def test_a_photo_smaller_than_a_block_is_whole(size: tuple[int, int]) -> None:
    data = saved(photo(*size), "image/jpeg")
    assert check_image(data) == ImageInfo("image/jpeg", Size(*size), len(data))
    assert decoded(data, Size(1, 1)).width >= 1


@requirement("type.truncated")
def test_a_png_whose_pixels_are_wrong_is_corrupt() -> None:
    data = bytearray(saved(photo(120, 90), "image/png"))
    data[len(data) // 2] ^= 1
    assert isinstance(check_image(bytes(data)), Refusal)


@requirement("bound.refit", "bound.pixels")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (png_of(50_000, 50_000), "too_large"),
        (png_of(MAX_EDGE + 1, 1), "too_large"),
        (png_of(20_001, 15_000), "too_large"),
        (saved(flag(5, 5), "image/png") + bytes(MAX_FILE_BYTES), "too_large"),
        (b"", "corrupt"),
    ],
)
def test_an_image_beyond_the_limits_is_refused_before_it_is_decoded(data: bytes, code: str) -> None:
    found = probe_within_limits(data)
    assert isinstance(found, Refusal)
    assert found.code == code


def test_limits_apply_to_the_size_that_the_decoder_finds() -> None:
    data = large.png(20_001, 15_000, depth=1, colour=0)
    refusal = decode(data, ImageInfo("image/png", Size(5, 5), len(data)))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "too_large"


@pytest.mark.parametrize("claimed", [Size(5, 5), Size(12_000, 12_000)])
def test_limits_apply_to_the_size_that_pillow_finds(claimed: Size) -> None:
    data = bytearray(psd_of(flag(5, 5)))
    data[14:22] = struct.pack(">II", 12_000, 12_000)
    refusal = decode(bytes(data), ImageInfo("image/vnd.adobe.photoshop", claimed, len(data)))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "too_large"


@requirement("bound.hostile")
def test_an_error_that_is_not_utf8_means_corrupt_and_is_cleared() -> None:
    from pyvips import ffi, vips_lib

    refusal = check_image(POISON)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "corrupt"
    assert ffi.string(vips_lib.vips_error_buffer()) == b""
    assert isinstance(check_image(saved(flag(5, 5), "image/avif")), ImageInfo)


@requirement("fit.upright")
@pytest.mark.parametrize("turn", range(1, 9))
def test_a_png_with_its_orientation_after_the_pixels_is_upright(turn: int) -> None:
    early = decoded(saved(flag(64, 32), "image/png", exif=exif(turn)))
    late = decoded(late_exif(turn))
    assert (late.width, late.height) == (early.width, early.height)
    assert late.write_to_memory() == early.write_to_memory()


@requirement("input.bitmaps")
def test_an_avif_whose_pixels_come_first_is_the_same_picture() -> None:
    data = data_first(flag(40, 30))
    assert check_image(data) == ImageInfo("image/avif", Size(40, 30), len(data))
    assert decoded(data).write_to_memory() == decoded(saved(flag(40, 30), "image/avif")).write_to_memory()


@pytest.mark.parametrize(
    ("screen", "place", "frames"),
    [
        ((64, 48), (10, 5), [(20, 10)]),
        ((9, 9), (0, 0), [(20, 10)]),
        ((9, 9), (4, 2), [(20, 10)]),
        ((64, 48), (10, 5), [(20, 10), (90, 70)]),
    ],
    ids=["inside", "larger", "beyond", "a second one beyond"],
)
def test_a_gif_is_its_first_frame_at_its_place_on_the_screen(
    screen: tuple[int, int], place: tuple[int, int], frames: list[tuple[int, int]]
) -> None:
    data = gif_on(screen, place, *(flag(*size) for size in frames))
    size = Size(max(screen[0], place[0] + frames[0][0]), max(screen[1], place[1] + frames[0][1]))
    assert check_image(data) == ImageInfo("image/gif", size, len(data))
    image = decoded(data)
    assert (image.width, image.height) == (size.width, size.height)
    assert near(pixel(image, place[0] + 2, place[1] + 2)[:3], RED)
    assert near(pixel(image, place[0] + 18, place[1] + 8)[:3], BLUE)
    if place != (0, 0):
        assert pixel(image, 0, 0)[3:] == [0], "nothing is there"


@requirement("type.truncated")
@pytest.mark.parametrize("part", [0.1, 0.25, 0.4, 0.6, 0.9])
def test_an_animation_with_a_truncated_first_frame_is_corrupt(part: float) -> None:
    data = gif_on((120, 90), (0, 0), photo(120, 90), photo(120, 90, 1))
    found = check_image(data[: int(len(data) * part)])
    assert isinstance(found, Refusal if part < 0.5 else ImageInfo)


@pytest.mark.parametrize("mime", ["image/jpeg", "image/webp"])
def test_a_shrinking_decoder_keeps_twice_the_wanted_size(mime: str) -> None:
    data = saved(flag(1600, 800), mime)
    assert decoded(data).width == 1600
    for wanted in (Size(1600, 800), Size(801, 401)):
        assert decoded(data, wanted).width == 1600
    small = decoded(data, Size(100, 50))
    assert (small.width, small.height) == (200, 100)
    assert near(pixel(small, 9, 9), RED, by=6)


@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/webp", "image/bmp"])
@pytest.mark.parametrize("size", [Size(157, 88), Size(33, 200), Size(1, 1), Size(400, 300)])
def test_an_image_is_decoded_and_resized_in_one_pass_to_exactly_a_size(mime: str, size: Size) -> None:
    data = saved(flag(400, 300), mime)
    picture = probe_within_limits(data)
    assert isinstance(picture, ImageInfo)
    image = decode_at_size(data, picture, size)
    assert not isinstance(image, Refusal)
    assert (image.width, image.height, image.bands) == (size.width, size.height, 3)
    if size.edge > 1:
        assert near(pixel(image, 0, 0), RED, by=8)
        assert near(pixel(image, size.width - 1, size.height - 1), BLUE, by=8)


def test_transparent_pixels_do_not_bleed_when_resized() -> None:
    half = Image.new("RGBA", (100, 100), (255, 0, 0, 0))
    half.paste((0, 0, 255, 255), (0, 0, 50, 100))
    small = resize_bitmap(decoded(saved(half, "image/png")), Size(9, 9))
    edge = pixel(small, 4, 4)
    assert 0 < edge[3] < 255
    assert edge[0] <= 2


@requirement("fit.deterministic")
@each_format
def test_the_same_file_gives_the_same_pixels(mime: str) -> None:
    data = saved(photo(200, 150), mime)
    picture = probe_within_limits(data)
    assert isinstance(picture, ImageInfo)
    first, second = (decode_at_size(data, picture, Size(77, 55)) for _ in range(2))
    assert not isinstance(first, Refusal)
    assert not isinstance(second, Refusal)
    assert bytes(first.write_to_memory()) == bytes(second.write_to_memory())


def test_unknown_chunks_of_a_png_do_no_harm() -> None:
    data = saved(flag(9, 9), "image/png")
    odd = data[:33] + chunk(b"tEXt", b"a\0" + bytes(range(1, 256))) + chunk(b"zzZz", b"?" * 99) + data[33:]
    assert check_image(odd) == ImageInfo("image/png", Size(9, 9), len(odd))


SOURCES = [*(saved(photo(40, 30), mime) for mime in FORMATS), icon_of({16: RED}, "bmp"), psd_of(flag(9, 9))]


@requirement("bound.hostile")
@given(st.sampled_from(SOURCES), st.data())
@examples(max_examples=200)
def test_a_file_with_wrong_bytes_is_read_or_refused(data: bytes, draw: Any) -> None:
    broken = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        broken[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    assert isinstance(check_image(bytes(broken)), (ImageInfo, Refusal))
