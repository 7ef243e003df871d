"""Folding: when a page is folded or cut, where, and that every pixel is where the map says."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from PIL import Image, ImageColor, ImageDraw

from sightline.model.geometry import Box, Map, Size
from sightline.model.image import Target
from sightline.model.sizing import Padded, Patches, Tiles, seen
from sightline.pixels.fold import OVERLAP, Sheet, sheets
from sightline.pixels.trim import Ink, ink
from tests.pixels.paper import page, rows
from tests.pixels.test_trim import bitmap
from tests.requirements import requirement

CLAUDE = Target(("image/png",), sizing=Padded())


def lined(length: int, step: int = 24, high: int = 16) -> list[int]:
    """Ink of rows of text: `high` rows that hold something in each `step`."""
    return [30 if place % step < high else 0 for place in range(length)]


def laid(size: Size, target: Target = CLAUDE, *, written: bool = True, across: list[int] | None = None) -> list[Sheet]:
    found = Ink(lined(size.height), across or [30] * size.width, ((0, size.height), (0, size.width)))
    return sheets(size, found, target, written=written)


def test_what_is_legible_stays_whole() -> None:
    assert laid(Size(1280, 800)) == [Sheet.whole(Size(1280, 800))]
    assert laid(Size(3840, 2160)) == [Sheet.whole(Size(3840, 2160))]
    assert laid(Size(500, 1500)) == [Sheet.whole(Size(500, 1500))]


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
    assert sheet.scale(CLAUDE) > 1.4 * Sheet.whole(Size(1280, 6000)).scale(CLAUDE)
    assert re.match(rf"folded \D*{len(sheet.pieces)} columns\b.*\bleft\b.*\bright\b", sheet.words())


def test_a_wide_page_is_folded_only_where_nothing_is_cut() -> None:
    size = Size(6000, 900)
    assert laid(size) == [Sheet.whole(size)]
    [sheet] = laid(size, across=[0 if place % 500 < 40 else 30 for place in range(6000)])
    assert not sheet.tall
    assert len(sheet.pieces) > 1
    assert re.match(rf"folded \D*{len(sheet.pieces)} rows\b", sheet.words())


@requirement("render.fold")
def test_a_page_without_gaps_is_folded_with_an_overlap_and_a_photograph_is_not() -> None:
    size = Size(1000, 8000)
    solid = Ink([500] * 8000, [500] * 1000, ((0, 8000), (0, 1000)))
    [sheet] = sheets(size, solid, CLAUDE, written=True)
    assert all(other.y == one.bottom - OVERLAP for one, other in pairwise(sheet.pieces))
    assert sheets(size, solid, CLAUDE, written=False) == [Sheet.whole(size)]


@requirement("render.fold")
def test_several_images_are_tiles_with_an_overlap() -> None:
    target = Target(("image/png",), sizing=Padded(), images=4)
    found = laid(Size(1200, 12000), target)
    assert len(found) == 4
    for one, other in pairwise(found):
        assert other.pieces[0].y == one.pieces[-1].bottom - OVERLAP
    assert [sheet.first for sheet in found] == [1 + len(found[0].pieces) * number for number in range(4)]
    assert {sheet.of for sheet in found} == {sum(len(sheet.pieces) for sheet in found)}


def test_no_more_images_are_made_than_it_takes_to_read_them() -> None:
    target = Target(("image/png",), sizing=Padded(), images=20)
    found = laid(Size(1200, 12000), target)
    assert 4 < len(found) < 10
    assert len(laid(Size(1280, 900), target)) == 1


def test_all_images_together_cost_no_more_than_their_tokens() -> None:
    target = Target(("image/png",), sizing=Padded(), images=4, tokens=2000)
    for sheet in laid(Size(1200, 12000), target):
        each = target.shared(4)
        assert each.tokens == 500
        assert each.takes(sheet.size(sheet.scale(each)))


def test_pieces_dividers_and_labels_are_drawn() -> None:
    source = bitmap(page(600, 3000))
    [sheet] = sheets(Size(600, 3000), ink(source), Target(("image/png",), edge=900), written=True)
    scale = sheet.scale(Target(("image/png",), edge=900))
    result = sheet.drawn(source, scale)
    assert Size(result.width, result.height) == sheet.size(scale)
    first, second = sheet.places(scale)[:2]
    gap = [result.getpoint(x, result.height // 2)[0] for x in range(first.right, second.x)]
    assert gap.count(64) == 2
    assert gap.count(255) == len(gap) - 2
    label = result.crop(second.x, 0, min(40, second.width), second.y)
    assert label.min() == 64


@given(
    st.integers(1, 4000),
    st.integers(1, 16000),
    st.sampled_from([Padded(), Padded(2576, 4784), Patches(), Tiles()]),
    st.integers(1, 5),
)
@examples(max_examples=60, deadline=None)
def test_every_sheet_reaches_the_model_pixel_for_pixel_and_nothing_is_left_out(
    width: int, height: int, rule: Padded | Patches | Tiles, images: int
) -> None:
    target = Target(("image/png",), sizing=rule, images=images)
    found = laid(Size(width, height), target)
    assert len(found) <= images
    assert _covered([piece for sheet in found for piece in sheet.pieces]) == (width, height)
    for sheet in found:
        size = sheet.size(sheet.scale(target.shared(len(found))))
        assert seen(size, rule) == size


def _covered(pieces: list[Box]) -> tuple[int, int]:
    """How far the pieces reach, each beginning before or where the last one ended."""
    right, bottom = pieces[0].right, pieces[0].bottom
    for piece in pieces[1:]:
        assert piece.x <= right
        assert piece.y <= bottom
        right, bottom = max(right, piece.right), max(bottom, piece.bottom)
    return right, bottom


def test_a_map_leads_from_every_row_to_its_column_and_back() -> None:
    size = Size(1280, 6000)
    [sheet] = laid(size)
    scale = sheet.scale(CLAUDE)
    where: Map = sheet.map(size, scale)
    for _, top in rows(6000):
        there = where.to_result(640, top)
        assert there is not None
        back = where.to_source(*there)
        assert back is not None
        assert abs(back[0] - 640) < 1e-6
        assert abs(back[1] - top) < 1e-6


@requirement("fit.legible")
def test_thin_light_strokes_do_not_sink_into_the_dark() -> None:
    night = Image.new("RGB", (400, 300), "#1e1e1e")
    ImageDraw.Draw(night).line((200, 0, 200, 300), "#6a9955")
    plain, glowing = (Sheet.whole(Size(400, 300)).drawn(bitmap(night), 0.4, dark=dark) for dark in (False, True))
    assert glowing.crop(60, 50, 40, 1).max() > plain.crop(60, 50, 40, 1).max() + 10
    assert abs(glowing.getpoint(10, 10)[0] - 0x1E) <= 1


@requirement("fit.legible")
@pytest.mark.parametrize("scale", [0.37, 0.41, 0.9])
def test_dark_grounds_keep_their_colours_however_close(scale: float) -> None:
    grounds = ["#000000", "#101418", "#181818", "#1e1e1e", "#252526", "#007acc", "#ffffff"]
    night = Image.new("RGB", (701, 301))
    for place, ground in enumerate(grounds):
        night.paste(ground, (100 * place, 0, 100 * place + 101, 301))
    sheet = Sheet.whole(Size(701, 301))
    result = sheet.drawn(bitmap(night), scale, dark=True)
    assert Size(result.width, result.height) == sheet.size(scale)
    for place, ground in enumerate(grounds):
        found = result.getpoint(int((100 * place + 50) * scale), int(150 * scale))
        assert tuple(found) == ImageColor.getrgb(ground)
