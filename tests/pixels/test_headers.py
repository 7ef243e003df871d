"""Headers: a hostile one ends soon, an odd one is read, and EXIF is found without reading all of it."""

from __future__ import annotations

import struct

import pytest

from sightline.pixels import headers
from tests.pixels.bitmaps import chunk, exif, flag, png_of, saved

MANY = 200_000


@pytest.mark.parametrize(
    ("reader", "data"),
    [
        (headers.png, png_of(9, 9)[:33] + chunk(b"teXt", b"") * MANY + saved(flag(9, 9), "image/png")[33:]),
        (headers.jpeg, b"\xff\xd8" + b"\xff\xe0\0\2" * MANY + saved(flag(9, 9), "image/jpeg")[2:]),
        (headers.jpeg, b"\xff\xd8" + b"\xff" * MANY + saved(flag(9, 9), "image/jpeg")[2:]),
    ],
)
def test_a_header_of_endless_pieces_breaks_its_format(reader: object, data: bytes) -> None:
    assert callable(reader)
    assert reader(data) is None


def test_a_few_fill_bytes_before_a_marker_are_skipped() -> None:
    data = saved(flag(30, 20), "image/jpeg")
    assert headers.jpeg(b"\xff\xd8" + b"\xff" * 9 + data[2:]) == headers.Header(30, 20)


def test_an_orientation_that_only_looks_like_a_tag_is_passed_over() -> None:
    """The number of the tag stands in the value of another first."""
    for order, mark in (("<", b"II*\0"), (">", b"MM\0*")):
        tags = struct.pack(f"{order}HHHII", 2, 0x0100, 4, 1, 0x0112_0112)
        tags += struct.pack(f"{order}HHIHH", 0x0112, 3, 1, 6, 0)
        assert headers.exif_orientation(mark + struct.pack(f"{order}I", 8) + tags) == 6


def test_an_orientation_outside_its_block_is_not_seen() -> None:
    data = exif(6)[6:]
    assert headers.exif_orientation(data) == 6
    assert headers.exif_orientation(data, 0, len(data) - 8) == 1
    assert headers.exif_orientation(b"rubbish" + data, 7) == 6


def test_an_orientation_may_be_a_long_number_and_no_other() -> None:
    for kind, found in ((4, 8), (2, 1)):
        assert headers.exif_orientation(b"II*\0\x08\0\0\0" + struct.pack("<HHHII", 1, 0x0112, kind, 1, 8)) == found


def test_the_largest_and_deepest_entry_of_an_icon_is_taken() -> None:
    entries = [(16, 32, 500), (32, 4, 100), (32, 32, 200), (24, 32, 300)]
    rows = b"".join(struct.pack("<BBBBHHII", side, side, 0, 0, 1, bits, 64, start) for side, bits, start in entries)
    found = headers.icon(b"\0\0\1\0\4\0" + rows + bytes(600))
    assert found is not None
    assert (found.size.width, found.bits, found.start) == (32, 32, 200)


def test_an_icon_without_pictures_breaks_its_format() -> None:
    assert headers.ico(b"\0\0\1\0\0\0" + bytes(50)) is None
