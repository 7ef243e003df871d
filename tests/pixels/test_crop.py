"""Crops: exactly the requested pixels of the upright image, or a refusal."""

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from sightline.model.geometry import REGIONS, Box, NamedCrop, Size, check_crop_box, resolve_crop
from sightline.model.image import MAX_BITMAP_BYTES, ImageInfo
from sightline.model.refusal import Refusal
from sightline.pixels.decode import decode_part
from sightline.pixels.probe import probe_within_limits
from tests.pixels.bitmaps import BLUE, FORMATS, RED, exif, flag, icon_of, photo, psd_of, saved
from tests.requirements import requirement

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

SOURCE = photo(40, 30)
FILES = {mime: saved(flag(64, 64), mime) for mime in FORMATS} | {
    "image/x-icon": icon_of({64: RED}, "bmp"),
    "image/vnd.adobe.photoshop": psd_of(flag(64, 64)),
}


def cut(data: bytes, box: Box, most: int = MAX_BITMAP_BYTES) -> Bitmap | Refusal:
    picture = probe_within_limits(data)
    assert isinstance(picture, ImageInfo)
    found = decode_part(data, picture, partial(check_crop_box, box), max_bytes=most)
    if isinstance(found, Refusal):
        return found
    assert (found.full_size, found.box) == (picture.size, box)
    return found.bitmap


@requirement("cut.exact")
@given(st.data())
def test_a_crop_holds_exactly_its_pixels(draw: st.DataObject) -> None:
    x, y = draw.draw(st.integers(0, 39)), draw.draw(st.integers(0, 29))
    box = Box(x, y, draw.draw(st.integers(1, 40 - x)), draw.draw(st.integers(1, 30 - y)))
    part = cut(saved(SOURCE, "image/png"), box)
    assert not isinstance(part, Refusal)
    assert bytes(part.write_to_memory()) == SOURCE.crop((box.x, box.y, box.right, box.bottom)).tobytes()


@requirement("cut.exact")
@pytest.mark.parametrize("mime", FILES)
def test_every_format_can_be_cropped(mime: str) -> None:
    part = cut(FILES[mime], Box(8, 8, 16, 12))
    assert not isinstance(part, Refusal)
    assert (part.width, part.height) == (16, 12)
    assert all(abs(a - b) < 12 for a, b in zip(part(5, 5), RED, strict=False))


@requirement("cut.exact")
def test_the_image_is_turned_before_it_is_cropped() -> None:
    turned = saved(flag(64, 32), "image/png", exif=exif(6))
    found = {}
    for name in ("top-left", "top-right"):
        box = resolve_crop(NamedCrop(name), Size(32, 64))
        assert isinstance(box, Box)
        part = cut(turned, box)
        assert not isinstance(part, Refusal)
        found[name] = tuple(map(round, part(2, 2)))
    assert found == {"top-left": BLUE, "top-right": RED}


@requirement("cut.exact")
@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("mime", ["image/png", "image/tiff"])
@pytest.mark.parametrize("most", [MAX_BITMAP_BYTES, 2 * 9 * 7 * 3], ids=["held whole", "read row by row"])
def test_a_crop_of_a_rotated_image_refers_to_the_upright_image(mime: str, turn: int, most: int) -> None:
    data = saved(SOURCE, mime, exif=exif(turn))
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    part = cut(data, Box(3, 11, 9, 7), most)
    assert not isinstance(part, Refusal)
    assert bytes(part.write_to_memory()) == upright.crop((3, 11, 12, 18)).tobytes()


@requirement("cut.exact", "type.truncated")
@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/tiff"])
@pytest.mark.parametrize("most", [MAX_BITMAP_BYTES, 9 * 7 * 3], ids=["held whole", "read row by row"])
def test_a_crop_of_a_file_that_breaks_off_below_it_is_corrupt(mime: str, most: int) -> None:
    data = saved(photo(120, 90), mime)
    refusal = cut(data[: len(data) * 9 // 10], Box(3, 4, 9, 7), most)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "corrupt"


@pytest.mark.parametrize("name", REGIONS)
def test_a_named_region_of_one_pixel_is_that_pixel(name: str) -> None:
    box = resolve_crop(NamedCrop(name), Size(1, 1))
    assert isinstance(box, Box)
    part = cut(saved(flag(1, 1), "image/png"), box)
    assert not isinstance(part, Refusal)
    assert (part.width, part.height) == (1, 1)


@requirement("cut.exact")
@pytest.mark.parametrize(
    "box", [Box(-1, 0, 5, 5), Box(0, 0, 41, 5), Box(0, 29, 1, 2), Box(5, 5, 0, 5), Box(5, 5, 5, -1), Box(99, 99, 1, 1)]
)
def test_a_crop_that_cannot_be_made_is_refused(box: Box) -> None:
    refusal = cut(saved(SOURCE, "image/png"), box)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "invalid_input"
