"""Crops: which pixels each form selects, and what is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import (
    REGIONS,
    Box,
    Crop,
    FractionCrop,
    NamedCrop,
    PixelCrop,
    Size,
    parse_crop_text,
    resolve_crop,
)
from sightline.model.refusal import Refusal
from tests.requirements import requirement

SIZES = st.builds(Size, st.integers(1, 20_000), st.integers(1, 20_000))
NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-2, 2) | st.integers(-100, 30_000).map(float)


def box_of(crop: Crop, size: Size) -> Box:
    box = resolve_crop(crop, size)
    assert isinstance(box, Box), box
    return box


@requirement("crop.regions")
@pytest.mark.parametrize(
    ("names", "box"),
    [
        (["top-left"], Box(0, 0, 50, 30)),
        (["top-right"], Box(50, 0, 50, 30)),
        (["bottom-left"], Box(0, 30, 50, 30)),
        (["bottom-right"], Box(50, 30, 50, 30)),
        (["top", "top-half"], Box(0, 0, 100, 30)),
        (["bottom", "bottom-half"], Box(0, 30, 100, 30)),
        (["left", "left-half"], Box(0, 0, 50, 60)),
        (["right", "right-half"], Box(50, 0, 50, 60)),
        (["center"], Box(25, 15, 50, 30)),
    ],
)
def test_each_region_covers_what_its_name_says(names: list[str], box: Box) -> None:
    for name in names:
        assert box_of(NamedCrop(name), Size(100, 60)) == box


@requirement("crop.regions")
def test_only_these_regions_exist() -> None:
    halves = {f"{side}{more}" for side in ("top", "bottom", "left", "right") for more in ("", "-half")}
    corners = {f"{row}-{side}" for row in ("top", "bottom") for side in ("left", "right")}
    assert set(REGIONS) == halves | corners | {"center"}


@requirement("crop.half_up")
@pytest.mark.parametrize(
    ("name", "box"),
    [
        ("top-left", Box(0, 0, 51, 39)),
        ("top-right", Box(51, 0, 50, 39)),
        ("bottom-left", Box(0, 39, 51, 38)),
        ("bottom-right", Box(51, 39, 50, 38)),
        ("center", Box(25, 19, 51, 39)),
    ],
)
def test_half_a_pixel_is_rounded_up(name: str, box: Box) -> None:
    assert box_of(NamedCrop(name), Size(101, 77)) == box
    x, y, width, height = REGIONS[name]
    assert box_of(FractionCrop(x, y, width, height), Size(101, 77)) == box


@requirement("crop.region")
@given(st.sampled_from(list(REGIONS)), SIZES | st.builds(Size, st.integers(1, 3), st.integers(1, 3)))
def test_a_named_region_never_fails(name: str, size: Size) -> None:
    box = box_of(NamedCrop(name), size)
    assert 0 <= box.x < box.right <= size.width
    assert 0 <= box.y < box.bottom <= size.height


def test_an_unknown_region_is_refused_with_the_known_ones() -> None:
    refusal = resolve_crop(NamedCrop("middle"), Size(9, 9))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, "center" in refusal.remedy) == ("invalid_input", True)


@requirement("crop.normalized")
@pytest.mark.parametrize(
    ("sides", "box"),
    [
        ((0, 0, 1, 1), Box(0, 0, 10, 7)),
        ((0.25, 0, 0.5, 1), Box(3, 0, 5, 7)),  # corners at 2.5 and 7.5
        ((0.25, 0, 0.45, 1), Box(3, 0, 4, 7)),  # corners at 2.5 and 7: a rounded width would be 5
        ((0.04, 0.5, 0.1, 0.5), Box(0, 4, 1, 3)),
        ((0.9, 0.9, 0.5, 0.5), Box(9, 6, 1, 1)),
        ((-0.5, -0.5, 1, 1), Box(0, 0, 5, 4)),
        ((-1, -1, 9, 9), Box(0, 0, 10, 7)),
        ((-1e308, 0, 1.7e308, 1), Box(0, 0, 10, 7)),
        ((0, 0, 1.7e308, 1.7e308), Box(0, 0, 10, 7)),
    ],
)
def test_fractions_become_pixels_by_their_corners(sides: tuple[float, ...], box: Box) -> None:
    assert box_of(FractionCrop(*sides), Size(10, 7)) == box


@requirement("crop.normalized")
@given(SIZES, st.floats(0.1, 0.9))
def test_adjacent_crops_share_no_pixel_and_miss_none(size: Size, cut: float) -> None:
    left, right = resolve_crop(FractionCrop(0, 0, cut, 1), size), resolve_crop(FractionCrop(cut, 0, 1 - cut, 1), size)
    whole = sum(part.width for part in (left, right) if isinstance(part, Box))
    assert whole == size.width


@requirement("crop.pixels")
@pytest.mark.parametrize(
    ("sides", "box"),
    [
        ((1, 2, 3, 4), Box(1, 2, 3, 4)),
        ((1.4, 1.6, 3.4, 3.6), Box(1, 2, 3, 4)),
        ((0.5, 1.5, 2.5, 3.5), Box(1, 2, 3, 4)),
        ((-5, -5, 10, 10), Box(0, 0, 5, 5)),
        ((6, 6, 100, 1e300), Box(6, 6, 4, 1)),
    ],
)
def test_pixels_are_rounded_and_clamped(sides: tuple[float, ...], box: Box) -> None:
    assert box_of(PixelCrop(*sides), Size(10, 7)) == box


@requirement("crop.empty")
@pytest.mark.parametrize(
    "crop",
    [
        PixelCrop(10, 0, 5, 5),
        PixelCrop(0, 0, 0, 5),
        PixelCrop(0, 0, 5, -1),
        PixelCrop(0, 0, 0.4, 5),
        PixelCrop(-9, 0, 5, 5),
        FractionCrop(1, 0, 1, 1),
        FractionCrop(0, 0, 0.04, 1),
        FractionCrop(0.5, 0.5, -0.5, 0.5),
        FractionCrop(math.nan, 0, 1, 1),
        PixelCrop(0, 0, math.inf, 5),
    ],
)
def test_a_crop_without_area_is_refused(crop: Crop) -> None:
    refusal = resolve_crop(crop, Size(10, 7))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, bool(refusal.remedy)) == ("invalid_input", True)


@requirement("crop.empty")
@given(st.builds(FractionCrop, NUMBERS, NUMBERS, NUMBERS, NUMBERS) | st.builds(PixelCrop, *[NUMBERS] * 4), SIZES)
def test_any_numbers_give_pixels_of_the_image_or_a_refusal(crop: Crop, size: Size) -> None:
    box = resolve_crop(crop, size)
    if isinstance(box, Box):
        assert 0 <= box.x < box.right <= size.width
        assert 0 <= box.y < box.bottom <= size.height


@pytest.mark.parametrize(
    ("text", "crop"),
    [
        ("r=top-left", NamedCrop("top-left")),
        (" r= center ", NamedCrop("center")),
        ("n=0.5,0,0.5,0.25", FractionCrop(0.5, 0, 0.5, 0.25)),
        ("p=1, 2, 3, 4", PixelCrop(1, 2, 3, 4)),
    ],
)
def test_a_crop_is_parsed_as_a_person_writes_it(text: str, crop: Crop) -> None:
    assert parse_crop_text(text) == crop


@given(st.text() | st.from_regex(r"[rnp]=[-\d.,einfa]{0,40}", fullmatch=True))
def test_any_text_gives_a_crop_or_a_short_refusal(text: str) -> None:
    found = parse_crop_text(text)
    assert isinstance(found, NamedCrop | FractionCrop | PixelCrop | Refusal)
    if isinstance(found, Refusal):
        assert (found.code, bool(found.remedy)) == ("invalid_input", True)
        assert len(found.what) < 120
    else:
        assert isinstance(resolve_crop(found, Size(10, 7)), Box | Refusal)


def test_a_refusal_does_not_quote_a_long_text_in_full() -> None:
    for text in ("x" * 9000, "r=" + "x" * 9000, "n=" + "x" * 9000):
        refusal = parse_crop_text(text)
        assert isinstance(refusal, Refusal)
        assert len(refusal.what) < 120
