"""Probing: the type by the bytes, the upright size, and never an exception."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sightline.model.geometry import Size
from sightline.model.image import ImageInfo
from sightline.model.refusal import Refusal
from sightline.pixels.image_headers import read_exif_orientation
from sightline.pixels.probe import probe, read_orientation
from tests.pixels.bitmaps import BLUE, FORMATS, RED, exif, flag, icon_of, png_of, psd_of, saved
from tests.refusals import assert_refusal
from tests.requirements import requirement

each_format = pytest.mark.parametrize("mime", FORMATS)
ORIENTED = ("image/jpeg", "image/png", "image/webp", "image/tiff", "image/avif")


def whole(data: bytes) -> ImageInfo | Refusal | None:
    return probe(data, len(data))


@requirement("type.by_bytes")
@each_format
@pytest.mark.parametrize(("width", "height"), [(1, 1), (37, 19), (640, 480)])
def test_every_format_is_probed(mime: str, width: int, height: int) -> None:
    data = saved(flag(width, height), mime)
    assert whole(data) == ImageInfo(mime, Size(width, height), len(data))


@pytest.mark.parametrize(
    ("mime", "mode", "options"),
    [
        ("image/webp", "RGB", {"lossless": True}),
        ("image/webp", "RGBA", {"lossless": False}),
        ("image/webp", "RGB", {"exif": exif(1)}),
        ("image/jpeg", "L", {"progressive": True}),
        ("image/jpeg", "CMYK", {}),
        ("image/png", "1", {}),
        ("image/png", "P", {"icc_profile": bytes(5000)}),
        ("image/tiff", "RGB", {"big_endian": True}),
        ("image/gif", "P", {"version": b"GIF87a"}),
    ],
)
def test_the_variants_of_a_format_are_probed(mime: str, mode: str, options: dict[str, object]) -> None:
    data = saved(flag(300, 200).convert(mode), mime, **options)
    assert whole(data) == ImageInfo(mime, Size(300, 200), len(data))


def test_top_down_and_old_bmp_files_are_probed() -> None:
    down = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 70, 0, 0, 54, 40, 5, -7, 1, 24, 0, 16, 0, 0, 0, 0)
    first = struct.pack("<2sIHHIIHHHH", b"BM", 70, 0, 0, 26, 12, 5, 7, 1, 24) + bytes(44)
    assert whole(down + bytes(16)) == ImageInfo("image/bmp", Size(5, 7), 70)
    assert whole(first) == ImageInfo("image/bmp", Size(5, 7), 70)


def test_a_heic_file_has_its_largest_size() -> None:
    def box(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", 8 + len(body)) + kind + body

    tile, picture = (box(b"ispe", struct.pack(">III", 0, *size)) for size in ((512, 512), (4032, 3024)))
    properties = box(b"iprp", box(b"ipco", tile + picture + box(b"irot", b"\x03")))
    data = box(b"ftyp", b"heic\0\0\0\0mif1heic") + box(b"meta", bytes(4) + properties) + box(b"mdat", bytes(9))
    assert whole(data) == ImageInfo("image/heic", Size(3024, 4032), len(data), is_rotated=True)
    assert probe(data[:70], len(data)) is None
    assert probe(data[: data.index(b"meta") - 4], len(data)) is None


def test_an_icon_is_as_large_as_its_largest_picture() -> None:
    for kind in ("bmp", "png"):
        data = icon_of({16: RED, 256: BLUE, 48: RED}, kind)
        assert whole(data) == ImageInfo("image/x-icon", Size(256, 256), len(data))
        assert probe(data[:64], len(data)) is None


def test_a_photoshop_file_is_probed() -> None:
    data = psd_of(flag(30, 20))
    assert whole(data) == ImageInfo("image/vnd.adobe.photoshop", Size(30, 20), len(data))


@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/webp"])
def test_large_blocks_before_the_size_do_not_hide_it(mime: str) -> None:
    tags = Image.Exif()
    tags[0x0112], tags[0x927C] = 6, bytes(50_000)
    data = saved(flag(64, 32), mime, exif=tags.tobytes(), icc_profile=bytes(range(256)) * 2000)
    assert whole(data) == ImageInfo(mime, Size(32, 64), len(data), is_rotated=True)


@requirement("fit.upright")
@pytest.mark.parametrize("mime", ORIENTED)
@pytest.mark.parametrize("turn", range(1, 9))
def test_orientation_is_applied_to_the_size(mime: str, turn: int) -> None:
    data = saved(flag(64, 32), mime, exif=exif(turn))
    size = Size(32, 64) if turn >= 5 else Size(64, 32)
    assert whole(data) == ImageInfo(mime, size, len(data), is_rotated=turn != 1)
    assert read_orientation(data) == turn


def test_an_invalid_orientation_means_upright() -> None:
    assert [read_exif_orientation(each) for each in (b"", b"II*\0", b"rubbish!", exif(9)[6:], exif(6)[6:])] == [
        *(1, 1, 1, 1),
        6,
    ]


@each_format
def test_probe_returns_none_if_more_bytes_are_needed(mime: str) -> None:
    data = saved(flag(64, 32), mime)
    answers = [probe(data[:size], len(data)) for size in range(len(data) + 1)]
    known = next(size for size, answer in enumerate(answers) if answer is not None)
    assert set(answers[:known]) == {None}
    assert set(answers[known:]) == {ImageInfo(mime, Size(64, 32), len(data))}


@pytest.mark.parametrize("mime", sorted(FORMATS.keys() - {"image/tiff"}))  # whose directory may stand at the end
def test_a_header_of_a_large_file_is_enough(mime: str) -> None:
    data = saved(flag(64, 32), mime)
    assert probe(data[:4096], 10_000_000) == ImageInfo(mime, Size(64, 32), 10_000_000)


@each_format
def test_a_file_that_ends_in_its_header_is_corrupt(mime: str) -> None:
    cut = saved(flag(64, 32), mime)[:9]
    found = whole(cut)
    assert isinstance(found, Refusal)
    assert found.code in ("corrupt", "unsupported_type")


@requirement("type.png")
@pytest.mark.parametrize(
    "data",
    [
        png_of(0, 10),
        png_of(10, 0),
        png_of(10, 10).replace(b"IHDR", b"IHDX"),
        b"\xff\xd8\xff\xd9" + bytes(80),
        b"\xff\xd8\xff\xe0\x00\x00" + bytes(80),
        b"GIF89a" + bytes(80),
        b"RIFF\x50\0\0\0WEBPVP8 " + bytes(80),
        b"RIFF\x50\0\0\0WEBPXXXX" + bytes(80),
    ],
)
def test_a_header_that_violates_its_format_is_corrupt(data: bytes) -> None:
    found = whole(data)
    assert isinstance(found, Refusal)
    assert found.code == "corrupt"


@requirement("type.named", "type.png")
@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"<!doctype html><html><body>Please sign in.</body></html>", "HTML page"),
        (b"\xef\xbb\xbf\n <HTML lang=en>", "HTML page"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG drawing"),
        (b"<?xml version='1.0'?><!-- x --><svg/>", "SVG drawing"),
        (b"<?xml version='1.0'?><rss/>", "XML"),
        (b'{"error": "not found"}', "text"),
        ("Grüße, 图片".encode()[:-1], "text"),
        (b"BMW is a car, not a bitmap, is it?", "text"),
        (b"%PDF-1.7\n", "PDF"),
        (b"PK\x03\x04" + bytes(60), "ZIP archive"),
        (b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41", "video"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "sound"),
        (b"\x89PNG\n\x1a\n" + bytes(60), "signature"),
        (bytes(8) + png_of(5, 5)[8:], "unknown"),
        (b"\x7fELF" + bytes(60), "unknown"),
    ],
)
def test_a_file_that_is_not_an_image_is_named_in_the_refusal(data: bytes, what: str) -> None:
    found = whole(data)
    assert_refusal(found, "unsupported_type", f" {what}")


def test_an_empty_file_is_corrupt() -> None:
    assert_refusal(whole(b""), "corrupt", "empty")


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_can_be_probed(data: bytes, more: int) -> None:
    found = probe(data, len(data) + more)
    assert found is not None or more


STARTS = [saved(flag(9, 5), mime)[:size] for mime in FORMATS for size in (16, 40, 120)]


@given(st.sampled_from(STARTS), st.binary(max_size=300), st.integers(0, 2))
def test_any_bytes_after_a_real_signature_can_be_probed(start: bytes, rest: bytes, more: int) -> None:
    found = probe(start + rest, len(start) + len(rest) + more)
    assert found is not None or more


@given(st.sampled_from([saved(flag(9, 5), mime, exif=exif(6)) for mime in ORIENTED]), st.data())
def test_a_file_with_wrong_bytes_can_be_probed(data: bytes, draw: st.DataObject) -> None:
    broken = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        broken[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    assert whole(bytes(broken)) is not None
