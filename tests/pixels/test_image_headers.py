"""Headers: hostile ones end soon, odd ones are read, and the orientation is found without parsing all of EXIF."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sightline.pixels import image_headers
from tests.pixels.bitmaps import (
    BLUE,
    FORMATS,
    RED,
    chunk,
    data_first,
    exif,
    flag,
    gif_of,
    gif_on,
    late_exif,
    png_of,
    saved,
)

MANY = 200_000


@pytest.mark.parametrize(
    ("reader", "data"),
    [
        (image_headers.read_png, png_of(9, 9)[:33] + chunk(b"teXt", b"") * MANY + saved(flag(9, 9), "image/png")[33:]),
        (image_headers.read_jpeg, b"\xff\xd8" + b"\xff\xe0\0\2" * MANY + saved(flag(9, 9), "image/jpeg")[2:]),
        (image_headers.read_jpeg, b"\xff\xd8" + b"\xff" * MANY + saved(flag(9, 9), "image/jpeg")[2:]),
        (image_headers.read_gif, gif_of(1)[:19] + b"!\xfe\0" * MANY + gif_of(1)[19:]),
        (image_headers.read_gif, gif_of(1)[:19] + b"!\xfe" + b"\1x" * MANY + b"\0" + gif_of(1)[19:]),
    ],
)
def test_a_header_of_too_many_pieces_is_damaged(reader: object, data: bytes) -> None:
    assert callable(reader)
    assert reader(data) is None


def test_a_few_fill_bytes_before_a_marker_are_skipped() -> None:
    data = saved(flag(30, 20), "image/jpeg")
    assert image_headers.read_jpeg(b"\xff\xd8" + b"\xff" * 9 + data[2:]) == image_headers.ImageHeader(30, 20)


def test_a_value_that_looks_like_the_orientation_tag_is_skipped() -> None:
    """The number of the tag also occurs in the value of another tag before it."""
    for order, mark in (("<", b"II*\0"), (">", b"MM\0*")):
        tags = struct.pack(f"{order}HHHII", 2, 0x0100, 4, 1, 0x0112_0112)
        tags += struct.pack(f"{order}HHIHH", 0x0112, 3, 1, 6, 0)
        assert image_headers.read_exif_orientation(mark + struct.pack(f"{order}I", 8) + tags) == 6


def test_an_orientation_outside_its_block_is_ignored() -> None:
    data = exif(6)[6:]
    assert image_headers.read_exif_orientation(data) == 6
    assert image_headers.read_exif_orientation(data, 0, len(data) - 8) == 1
    assert image_headers.read_exif_orientation(b"rubbish" + data, 7) == 6


def test_an_orientation_is_a_short_or_long_number() -> None:
    for kind, found in ((4, 8), (2, 1)):
        assert (
            image_headers.read_exif_orientation(b"II*\0\x08\0\0\0" + struct.pack("<HHHII", 1, 0x0112, kind, 1, 8))
            == found
        )


def test_the_largest_and_deepest_entry_of_an_icon_is_chosen() -> None:
    entries = [(16, 32, 500), (32, 4, 100), (32, 32, 200), (24, 32, 300)]
    rows = b"".join(struct.pack("<BBBBHHII", side, side, 0, 0, 1, bits, 64, start) for side, bits, start in entries)
    found = image_headers.find_largest_icon(b"\0\0\1\0\4\0" + rows + bytes(600))
    assert found is not None
    assert (found.size.width, found.bits, found.start) == (32, 32, 200)


def test_an_icon_without_pictures_is_damaged() -> None:
    assert image_headers.read_ico(b"\0\0\1\0\0\0" + bytes(50)) is None


def test_an_orientation_after_the_pixels_counts_in_a_whole_file() -> None:
    data = late_exif(6)
    assert image_headers.read_png(data) == image_headers.ImageHeader(64, 32, 6)
    assert image_headers.read_png(data[:60]) == image_headers.ImageHeader(64, 32), (
        "no more is asked for than the size takes"
    )
    many = data[:33] + chunk(b"IDAT", b"") * MANY + data[33:]
    assert image_headers.read_png(many) == image_headers.ImageHeader(64, 32), "it is not searched for for ever"


@pytest.mark.parametrize("wide", [False, True])
def test_a_description_may_come_after_its_picture(wide: bool) -> None:
    data = data_first(flag(40, 30))
    if wide:
        length = int.from_bytes(data[32:36], "big")
        data = data[:32] + struct.pack(">I4sQ", 1, b"mdat", length + 8) + data[40:]
    assert image_headers.read_isobmff(data) == image_headers.ImageHeader(40, 30)
    for cut in (40, 100, len(data) - 100):
        with pytest.raises((IndexError, struct.error)):
            image_headers.read_isobmff(data[:cut])


@pytest.mark.parametrize(
    ("screen", "place", "size"),
    [
        ((64, 48), (0, 0), (64, 48)),
        ((64, 48), (10, 5), (64, 48)),
        ((9, 9), (0, 0), (20, 10)),
        ((0, 0), (3, 2), (23, 12)),
    ],
)
def test_a_gif_is_as_large_as_its_screen_and_its_first_frame(
    screen: tuple[int, int], place: tuple[int, int], size: tuple[int, int]
) -> None:
    assert image_headers.read_gif(gif_on(screen, place, flag(20, 10))) == image_headers.ImageHeader(*size)
    assert image_headers.read_gif(b"GIF89a\1\0\1\0\0\0\0;") is None
    assert image_headers.read_gif(b"GIF89a\1\0\1\0\0\0\0?") is None


STILL = [saved(flag(9, 9), mime) for mime in FORMATS]
MOVING = [
    saved(flag(9, 9), mime, save_all=True, append_images=[Image.new("RGB", (9, 9), colour) for colour in (RED, BLUE)])
    for mime in ("image/gif", "image/webp")
]


def test_an_animation_has_a_second_frame() -> None:
    assert not any(map(image_headers.is_animated, [*STILL, gif_of(1), gif_on((9, 9), (0, 0), flag(9, 9)), b""]))
    assert all(map(image_headers.is_animated, [*MOVING, gif_of(2), gif_of(9000)]))
    one = gif_of(1)
    assert not image_headers.is_animated(one[:-1])
    assert image_headers.is_animated(gif_of(2)[:-8]), "where the second is cut, too"
    assert image_headers.is_animated(one[:-5] + b"\1x" * MANY * 2 + one[-2:]), "nobody counts for ever"


@given(st.sampled_from([*STILL, *MOVING, gif_of(3)]), st.data())
def test_any_file_is_an_animation_or_not(data: bytes, draw: st.DataObject) -> None:
    broken = bytearray(data[: draw.draw(st.integers(0, len(data)))])
    for at in draw.draw(st.lists(st.integers(0, max(0, len(broken) - 1)), max_size=6)) if broken else []:
        broken[at] = draw.draw(st.integers(0, 255))
    assert image_headers.is_animated(bytes(broken)) in (True, False)
