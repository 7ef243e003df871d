"""Text areas: the arithmetic on the probabilities that the network returns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from PIL import Image

from sightline.reader.ocr import detector
from sightline.reader.ocr.line_image import TextArea

Mask = NDArray[np.bool_]
MASKS = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12))


def flooded(mask: Mask) -> set[frozenset[tuple[int, int]]]:
    """Return the connected parts of a mask, including by corners, the slow way."""
    left = {(int(y), int(x)) for y, x in np.argwhere(mask)}
    parts = set()
    while left:
        part, edge = set(), [left.pop()]
        while edge:
            y, x = edge.pop()
            part.add((y, x))
            near = {(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)} & left
            left -= near
            edge.extend(near)
        parts.add(frozenset(part))
    return parts


def joined(mask: Mask) -> set[frozenset[tuple[int, int]]]:
    runs = detector._Runs.from_mask(mask)
    part, count = runs.group()
    parts: list[set[tuple[int, int]]] = [set() for _ in range(count)]
    for place, row, start, end in zip(part, runs.row, runs.start, runs.end, strict=True):
        parts[place] |= {(int(row), x) for x in range(start, end)}
    return {frozenset(each) for each in parts}


@given(MASKS)
def test_connected_parts_equal_those_of_a_flood_fill(mask: Mask) -> None:
    assert joined(mask) == flooded(mask)


def test_a_spiral_is_one_part() -> None:
    rows = ("1111111", "0000001", "1111101", "1000101", "1011101", "1000001", "1111111")
    spiral = np.array([[cell == "1" for cell in row] for row in rows])
    assert joined(spiral) == flooded(spiral)
    assert len(joined(spiral)) == 1


@given(MASKS)
def test_a_level_part_reaches_from_its_first_to_its_last_pixel(mask: Mask) -> None:
    runs = detector._Runs.from_mask(mask)
    if not len(runs.row):
        return
    part, count = runs.group()
    left, right, top, bottom = runs.compute_extents(part, count, np.zeros(count))
    found = {(int(a), int(b), int(c), int(d)) for a, b, c, d in zip(left, right, top, bottom, strict=True)}
    wanted = set()
    for each in flooded(mask):
        ys, xs = zip(*each, strict=True)
        wanted.add((min(xs), max(xs) + 1, min(ys), max(ys) + 1))
    assert found == wanted


def test_the_mean_of_a_part_is_that_of_its_own_pixels() -> None:
    chance = np.array([[0.9, 0.7, 0, 0.3], [0, 0, 0, 0.5]], np.float32)
    mask = chance > 0
    runs = detector._Runs.from_mask(mask)
    part, count = runs.group()
    assert sorted(runs.compute_means(chance[mask], part, count).round(3).tolist()) == [0.4, 0.8]


def chances(page: Image.Image) -> NDArray[np.float32]:
    return (np.asarray(page) / 255).astype(np.float32)


@pytest.mark.parametrize("degrees", [-30, -8, -2, -0.7, 0.7, 3, 10, 20])
def test_the_tilt_of_a_page_is_found(degrees: float) -> None:
    page = Image.new("L", (800, 800))
    for y in range(250, 550, 40):
        page.paste(255, (120, y, 680, y + 9))
    spots = detector._measure_areas(chances(page.rotate(-degrees)), 1.0)
    assert len(spots) == 8
    for spot in spots:
        assert math.degrees(spot.tilt) == pytest.approx(degrees, abs=0.15)
        assert spot.width - 2 * spot.growth == pytest.approx(560, abs=8)


def test_one_leaning_word_does_not_tilt_a_page() -> None:
    page = Image.new("L", (400, 200))
    page.paste(255, (50, 50, 350, 60))
    assert [spot.tilt for spot in detector._measure_areas(chances(page.rotate(-0.5)), 1.0)] == [0.0]


def test_lines_that_lean_either_way_do_not_tilt_a_page() -> None:
    page = Image.new("L", (500, 400))
    for y, drop in zip(range(40, 360, 40), (4, 4, 4, 4, 4, -4, -4, -4), strict=True):
        for part in range(5):
            page.paste(255, (50 + part * 80, y + part * drop // 4, 130 + part * 80, y + part * drop // 4 + 12))
    assert {spot.tilt for spot in detector._measure_areas(chances(page), 1.0)} == {0.0}


def test_a_text_area_is_inside_the_image_and_around_its_core() -> None:
    chance = np.zeros((60, 200), np.float32)
    chance[20:30, 40:140] = 1
    (spot,) = detector._measure_areas(chance, 0.5)
    assert (spot.x, spot.y) == (180, 50)
    grown = 1.4 * 100 * 10 / 220
    assert (spot.width, spot.height) == pytest.approx((2 * (100 + 2 * grown), 2 * (10 + 2 * grown)))
    assert spot.growth == pytest.approx(2 * grown)


def test_merged_neighbours_are_split() -> None:
    one = TextArea(100, 50, 120, 20, 0.0, 5, 1.0)
    two = TextArea(205, 52, 120, 20, 0.0, 5, 1.0)
    below = TextArea(205, 90, 120, 20, 0.0, 5, 1.0)
    first, second, third = sorted(detector._separate_neighbours([two, below, one]), key=lambda spot: spot.x + spot.y)
    assert first.x + first.width / 2 == second.x - second.width / 2 == pytest.approx(152.5)
    assert third == below


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_the_detection_size_is_bounded(width: int, height: int) -> None:
    scale = detector.choose_scale(width, height)
    assert 0 < scale <= 1
    assert width * scale * height * scale <= max(detector.MAX_PIXELS * 1.001, detector.TILE**2)
    if max(width, height) <= detector.TILE:
        assert scale == 1


@given(st.integers(1, 20_000), st.integers(100, 2_000))
def test_tiles_cover_everything_once(length: int, most: int) -> None:
    cuts = detector._split_evenly(length, most)
    assert [cuts[0][0], *(end for _, end in cuts)] == [start for start, _ in cuts] + [length]
    assert all(0 < end - start <= most for start, end in cuts)


def test_short_parts_do_not_tell_the_tilt_of_a_page() -> None:
    """A comma at the end of a short word tilts it; a page of such words is level."""
    tilt, short = np.full(8, 0.015), np.full(8, 3.0)
    assert detector._choose_tilts(tilt, np.full(8, 30.0), short).tolist() == [0.0] * 8
    assert detector._choose_tilts(tilt, np.full(8, 60.0), short).tolist() == [0.015] * 8
