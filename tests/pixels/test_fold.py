"""Folding: when and where a page is folded or cut, and that every pixel is where the map says."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from PIL import Image, ImageColor, ImageDraw

from sightline.model.geometry import Box, PixelMap, Size
from sightline.model.image import ImageTarget, PaddedSizing, PatchSizing, TileSizing, compute_seen_size
from sightline.pixels.bitmaps import InkProfile, measure_ink
from sightline.pixels.fold import OVERLAP, Sheet, lay_out_sheets
from tests.pixels.paper import page, rows
from tests.pixels.test_trim import bitmap
from tests.requirements import requirement

CLAUDE = ImageTarget(("image/png",), sizing=PaddedSizing())


def lined(length: int, step: int = 24, high: int = 16) -> list[int]:
    """Return the ink of rows of text: `high` rows with ink in each `step`."""
    return [30 if place % step < high else 0 for place in range(length)]


def laid(
    size: Size, target: ImageTarget = CLAUDE, *, written: bool = True, across: list[int] | None = None
) -> list[Sheet]:
    found = InkProfile(lined(size.height), across or [30] * size.width, ((0, size.height), (0, size.width)))
    return lay_out_sheets(size, found, target, drawing=written)


def test_a_legible_image_is_not_folded() -> None:
    assert laid(Size(1280, 800)) == [Sheet.from_size(Size(1280, 800))]
    assert laid(Size(3840, 2160)) == [Sheet.from_size(Size(3840, 2160))]
    assert laid(Size(500, 1500)) == [Sheet.from_size(Size(500, 1500))]


@requirement("render.fold")
def test_a_tall_page_is_folded_between_its_lines() -> None:
    [sheet] = laid(Size(1280, 6000))
    assert len(sheet.pieces) > 1
    assert sheet.tall
    assert sheet.pieces[0].y == 0
    assert sheet.pieces[-1].bottom == 6000
    for one, other in pairwise(sheet.pieces):
        assert one.bottom == other.y
        assert lined(6000)[one.bottom - 3 : one.bottom + 3] == [0] * 6
    assert sheet.find_scale(CLAUDE) > 1.4 * Sheet.from_size(Size(1280, 6000)).find_scale(CLAUDE)
    assert re.match(rf"folded \D*{len(sheet.pieces)} columns\b.*\bleft\b.*\bright\b", sheet.describe())


def test_a_wide_page_is_folded_only_at_blanks() -> None:
    size = Size(6000, 900)
    assert laid(size) == [Sheet.from_size(size)]
    [sheet] = laid(size, across=[0 if place % 500 < 40 else 30 for place in range(6000)])
    assert not sheet.tall
    assert len(sheet.pieces) > 1
    assert re.match(rf"folded \D*{len(sheet.pieces)} rows\b", sheet.describe())


@requirement("render.fold")
def test_a_page_without_gaps_is_folded_with_an_overlap_and_a_photograph_is_not() -> None:
    size = Size(1000, 8000)
    solid = InkProfile([500] * 8000, [500] * 1000, ((0, 8000), (0, 1000)))
    [sheet] = lay_out_sheets(size, solid, CLAUDE, drawing=True)
    assert all(other.y == one.bottom - OVERLAP for one, other in pairwise(sheet.pieces))
    assert lay_out_sheets(size, solid, CLAUDE, drawing=False) == [Sheet.from_size(size)]


@requirement("render.fold")
def test_several_images_are_tiles_with_an_overlap() -> None:
    target = ImageTarget(("image/png",), sizing=PaddedSizing(), images=4)
    found = laid(Size(1200, 12000), target)
    assert len(found) == 4
    for one, other in pairwise(found):
        assert other.pieces[0].y == one.pieces[-1].bottom - OVERLAP
    assert [sheet.first for sheet in found] == [1 + len(found[0].pieces) * number for number in range(4)]
    assert {sheet.total for sheet in found} == {sum(len(sheet.pieces) for sheet in found)}


def test_only_as_many_images_are_made_as_needed_to_read_them() -> None:
    target = ImageTarget(("image/png",), sizing=PaddedSizing(), images=20)
    found = laid(Size(1200, 12000), target)
    assert 4 < len(found) < 10
    assert len(laid(Size(1280, 900), target)) == 1


def test_all_images_together_cost_no_more_than_their_tokens() -> None:
    target = ImageTarget(("image/png",), sizing=PaddedSizing(), images=4, tokens=2000)
    for sheet in laid(Size(1200, 12000), target):
        each = target.split_between(4)
        assert each.tokens == 500
        assert each.accepts_size(sheet.size_at(sheet.find_scale(each)))


def test_pieces_dividers_and_labels_are_drawn() -> None:
    source = bitmap(page(600, 3000))
    [sheet] = lay_out_sheets(Size(600, 3000), measure_ink(source), ImageTarget(("image/png",), edge=900), drawing=True)
    scale = sheet.find_scale(ImageTarget(("image/png",), edge=900))
    result = sheet.draw(source, scale)
    assert Size(result.width, result.height) == sheet.size_at(scale)
    first, second = sheet.place_pieces(scale)[:2]
    gap = [result.getpoint(x, result.height // 2)[0] for x in range(first.right, second.x)]
    assert gap.count(64) == 2
    assert gap.count(255) == len(gap) - 2
    label = result.crop(second.x, 0, min(40, second.width), second.y)
    assert label.min() == 64


@given(
    st.integers(1, 4000),
    st.integers(1, 16000),
    st.sampled_from([PaddedSizing(), PaddedSizing(2576, 4784), PatchSizing(), TileSizing()]),
    st.integers(1, 5),
)
@examples(max_examples=60, deadline=None)
def test_every_sheet_reaches_the_model_unscaled_and_complete(
    width: int, height: int, rule: PaddedSizing | PatchSizing | TileSizing, images: int
) -> None:
    target = ImageTarget(("image/png",), sizing=rule, images=images)
    found = laid(Size(width, height), target)
    assert len(found) <= images
    assert _covered([piece for sheet in found for piece in sheet.pieces]) == (width, height)
    for sheet in found:
        size = sheet.size_at(sheet.find_scale(target.split_between(len(found))))
        assert compute_seen_size(size, rule) == size


def _covered(pieces: list[Box]) -> tuple[int, int]:
    """Return how far the pieces reach, and check that they leave no gap."""
    right, bottom = pieces[0].right, pieces[0].bottom
    for piece in pieces[1:]:
        assert piece.x <= right
        assert piece.y <= bottom
        right, bottom = max(right, piece.right), max(bottom, piece.bottom)
    return right, bottom


def test_a_map_leads_from_every_row_to_its_column_and_back() -> None:
    size = Size(1280, 6000)
    [sheet] = laid(size)
    scale = sheet.find_scale(CLAUDE)
    where: PixelMap = sheet.build_map(size, scale)
    for _, top in rows(6000):
        there = where.to_result(640, top)
        assert there is not None
        back = where.to_source(*there)
        assert back is not None
        assert abs(back[0] - 640) < 1e-6
        assert abs(back[1] - top) < 1e-6


@requirement("fit.legible")
def test_thin_light_strokes_stay_light_on_dark_pages() -> None:
    night = Image.new("RGB", (400, 300), "#1e1e1e")
    ImageDraw.Draw(night).line((200, 0, 200, 300), "#6a9955")
    plain, glowing = (Sheet.from_size(Size(400, 300)).draw(bitmap(night), 0.4, dark=dark) for dark in (False, True))
    assert glowing.crop(60, 50, 40, 1).max() > plain.crop(60, 50, 40, 1).max() + 10
    assert abs(glowing.getpoint(10, 10)[0] - 0x1E) <= 1


@requirement("fit.legible")
@pytest.mark.parametrize("scale", [0.37, 0.41, 0.9])
def test_similar_dark_backgrounds_keep_their_colours(scale: float) -> None:
    grounds = ["#000000", "#101418", "#181818", "#1e1e1e", "#252526", "#007acc", "#ffffff"]
    night = Image.new("RGB", (701, 301))
    for place, ground in enumerate(grounds):
        night.paste(ground, (100 * place, 0, 100 * place + 101, 301))
    sheet = Sheet.from_size(Size(701, 301))
    result = sheet.draw(bitmap(night), scale, dark=True)
    assert Size(result.width, result.height) == sheet.size_at(scale)
    for place, ground in enumerate(grounds):
        found = result.getpoint(int((100 * place + 50) * scale), int(150 * scale))
        assert tuple(found) == ImageColor.getrgb(ground)
