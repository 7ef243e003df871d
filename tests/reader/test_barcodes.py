"""QR and bar codes, written by the library and read from a page."""

from __future__ import annotations

import numpy as np
import pytest
import zxingcpp
from numpy.typing import NDArray

from sightline.reader.examine import read_barcodes
from tests.requirements import requirement


def on_a_page(kind: str, text: str, x: int, y: int) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    code = np.array(zxingcpp.create_barcode(text, getattr(zxingcpp.BarcodeFormat, kind)).to_image(scale=4), np.uint8)
    page = np.full((480, 800, 3), 255, np.uint8)
    page[y : y + code.shape[0], x : x + code.shape[1]] = code[:, :, None]
    return page, (code.shape[1], code.shape[0])


@requirement("read.codes")
@pytest.mark.parametrize(
    ("kind", "text"), [("QRCode", "otp://sightline?n=7"), ("Code128", "LOT-2231"), ("DataMatrix", "part 9")]
)
def test_a_barcode_is_read_with_its_box(kind: str, text: str) -> None:
    page, (width, height) = on_a_page(kind, text, 120, 90)
    (found,) = read_barcodes(page)
    assert found.text == text
    assert found.kind.replace(" ", "") == kind.replace("128", " 128").replace(" ", "")
    assert found.box.x >= 120
    assert found.box.y >= 90
    assert found.box.right <= 120 + width
    assert found.box.bottom <= 90 + height
    assert found.box.width > width / 2


def test_a_code_in_a_huge_image_is_found_in_its_pixels() -> None:
    page, _ = on_a_page("QRCode", "far away", 120, 90)
    small = read_barcodes(page)[0].box
    huge = np.full((6_000, 6_000, 3), 255, np.uint8)
    code = page[90:400, 120:600].repeat(4, 0).repeat(4, 1)
    huge[2_000 : 2_000 + code.shape[0], 3_000 : 3_000 + code.shape[1]] = code
    (found,) = read_barcodes(huge)
    assert found.text == "far away"
    assert (found.box.x, found.box.y) == pytest.approx(
        (3_000 + 4 * (small.x - 120), 2_000 + 4 * (small.y - 90)), abs=16
    )


def test_a_page_without_codes_has_none() -> None:
    assert read_barcodes(np.full((100, 100, 3), 255, np.uint8)) == ()
    assert read_barcodes(np.zeros((1, 1, 3), np.uint8)) == ()
