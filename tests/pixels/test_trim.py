"""Trimming: which borders and bands are blank, and what is left without them."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw
from pyvips import Image as Bitmap

from sightline.model.geometry import Size
from sightline.pixels.bitmaps import BAND, MARGIN, TrimmedArea, measure_ink, trim_bands, trim_borders


def bitmap(image: Image.Image) -> Bitmap:
    kind = "b-w" if image.mode == "L" else "srgb"
    made = Bitmap.new_from_memory(image.tobytes(), *image.size, len(image.getbands()), "uchar")
    return made.copy(interpretation=kind)


def sheet(*boxes: tuple[int, int, int, int], size: tuple[int, int] = (400, 300), mode: str = "RGB") -> Image.Image:
    """Draw checkered boxes on white; right and bottom are not included."""
    image = Image.new(mode, size, "white")
    for left, top, right, bottom in boxes:
        for x in range(left, right):
            for y in range(top, bottom):
                if (x + y) % 2:
                    image.putpixel((x, y), 0 if mode == "L" else (0, 0, 0))
    return image


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_borders_are_trimmed_except_for_a_margin(mode: str) -> None:
    kept = trim_borders(measure_ink(bitmap(sheet((100, 80, 200, 150), mode=mode))))
    assert kept == TrimmedArea(Size(400, 300), ((80 - MARGIN, 150 + MARGIN),), ((100 - MARGIN, 200 + MARGIN),))


def test_a_margin_ends_where_the_image_does() -> None:
    kept = trim_borders(measure_ink(bitmap(sheet((3, 0, 400, 299)))))
    assert kept == TrimmedArea(Size(400, 300), ((0, 300),), ((0, 400),))


def test_a_wide_blank_band_is_narrowed_and_a_small_one_stays() -> None:
    found = measure_ink(bitmap(sheet((10, 20, 390, 60), (10, 140, 390, 180), (10, 200, 390, 280))))
    kept = trim_bands(found)
    half = BAND // 2
    assert kept.rows == ((20 - MARGIN, 60 + 1 + half), (140 - half, 280 + MARGIN))
    assert trim_borders(found).rows == ((20 - MARGIN, 280 + MARGIN),)


def test_an_empty_image_is_not_trimmed() -> None:
    for image in (Image.new("RGB", (300, 200), "white"), Image.new("RGB", (1, 1)), Image.new("RGB", (1, 90))):
        found = measure_ink(bitmap(image))
        assert trim_borders(found) == trim_bands(found) == TrimmedArea.from_size(Size(*image.size))


def test_a_bar_across_the_page_does_not_keep_its_margins() -> None:
    image = sheet((150, 60, 250, 280))
    ImageDraw.Draw(image).rectangle((0, 0, 399, 30), "navy")
    kept = trim_borders(measure_ink(bitmap(image)))
    assert kept.columns == ((150 - MARGIN, 250 + MARGIN),)
    assert kept.rows == ((0, 280 + MARGIN),)


def test_a_panel_of_another_colour_is_not_blank() -> None:
    image = sheet((150, 60, 250, 280))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 90, 299), "navy")
    assert trim_borders(measure_ink(bitmap(image))).columns[0][0] == 0
    flag = Image.new("RGB", (300, 200), "red")
    flag.paste("blue", (100, 0, 200, 200))
    flag.paste("white", (200, 0, 300, 200))
    assert trim_bands(measure_ink(bitmap(flag))) == TrimmedArea.from_size(Size(300, 200))


def test_jpeg_artefacts_are_blank() -> None:
    image = sheet((100, 80, 200, 150))
    for x in range(0, 90, 3):
        image.putpixel((x, 20), (250, 252, 251))
    assert trim_borders(measure_ink(bitmap(image))).size == Size(100 + 2 * MARGIN, 70 + 2 * MARGIN)


def test_transparent_areas_count_as_white() -> None:
    clear = Image.new("RGBA", (200, 100), (0, 0, 0, 0))
    clear.paste(sheet((0, 0, 40, 30), size=(40, 30)), (100, 50))
    kept = trim_borders(measure_ink(bitmap(clear)))
    assert kept.rows == ((50 - MARGIN, 80 + MARGIN),)


@pytest.mark.parametrize("size", [(2300, 1800), (2301, 1799), (3001, 2203), (2501, 8601)], ids=str)
@pytest.mark.parametrize("shade", [0, 200])
def test_trimming_a_large_image_loses_no_ink(size: tuple[int, int], shade: int) -> None:
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    draw.line((301, 203, 1700, 203), (255, shade, 255))
    draw.line((301, 203, 301, 900), (255, 255, shade))
    draw.line((301, 1400, 1700, 1400), (shade, 255, 255))
    draw.line((1700, 1000, 1700, 1400), (shade, shade, shade))
    for kept in (trim_borders(measure_ink(bitmap(image))), trim_bands(measure_ink(bitmap(image)))):
        for spans, first, last in ((kept.rows, 203, 1400), (kept.columns, 301, 1700)):
            assert first - MARGIN - 4 <= spans[0][0] <= first
            assert last < spans[-1][1] <= last + 1 + MARGIN + 4
    assert ("margins" in (words := trim_borders(measure_ink(bitmap(image))).describe()), "bands" in words) == (
        True,
        False,
    )


def test_ink_at_the_edge_of_a_large_image_is_kept() -> None:
    for width, height in ((2300, 1800), (2301, 1799), (3001, 2203)):
        image = Image.new("RGB", (width, height), "white")
        ImageDraw.Draw(image).line((900, 700, width, height), "black", 9)
        found = measure_ink(bitmap(image))
        assert (len(found.rows), len(found.columns)) == (height, width)
        assert (trim_borders(found).rows[-1][1], trim_borders(found).columns[-1][1]) == (height, width)


def test_kept_pixels_are_where_the_map_says() -> None:
    image = sheet((50, 20, 350, 60), (50, 200, 350, 240))
    image.putpixel((60, 205), (255, 0, 0))
    kept = trim_bands(measure_ink(bitmap(image)))
    result = kept.apply(bitmap(image))
    assert Size(result.width, result.height) == kept.size == kept.map.result
    there = kept.map.to_result(60.5, 205.5)
    assert there is not None
    assert result.getpoint(int(there[0]), int(there[1])) == [255, 0, 0]
    assert kept.map.to_source(*there) == (60.5, 205.5)
    assert kept.map.to_result(60, 130) is None
    assert ("margins" in kept.describe(), "bands" in kept.describe()) == (True, True)


def test_an_image_without_blanks_stays_the_same_object() -> None:
    image = bitmap(sheet())
    assert TrimmedArea.from_size(Size(400, 300)).apply(image) is image
    assert TrimmedArea.from_size(Size(400, 300)).describe() == ""
