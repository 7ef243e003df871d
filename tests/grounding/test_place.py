"""Mapping places from what the model saw to the original, and the block that lists them."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.grounding.parse import (
    OriginalPlace,
    SeenPlace,
    build_boxes_block,
    build_view_map,
    map_to_original,
    parse_places,
)
from sightline.model.geometry import Box, PixelMap, Size
from tests.grounding.writing import HANDS
from tests.requirements import requirement

ORIGINAL = Size(3840, 2160)
CROP = Box(1840, 120, 840, 360)
THING = (2000, 200, 2400, 400)  # in the original


def found(*at: float) -> SeenPlace:
    return SeenPlace(0, "it", at, at)


@requirement("grounding.original", "grounding.round_trip")
@pytest.mark.parametrize("name", HANDS)
@pytest.mark.parametrize("crop", [None, CROP], ids=["whole", "cropped"])
def test_an_object_is_at_the_same_place_in_every_format(name: str, crop: Box | None) -> None:
    hand = HANDS[name]
    seen = Size(1316, 728) if crop is None else Size(1260, 540)
    part = Box(0, 0, ORIGINAL.width, ORIGINAL.height) if crop is None else crop
    across, down = seen.width / part.width, seen.height / part.height
    x1, y1, x2, y2 = THING
    drawn = ((x1 - part.x) * across, (y1 - part.y) * down, (x2 - part.x) * across, (y2 - part.y) * down)
    [one] = parse_places(hand.write(drawn, seen), hand.format, [seen])
    placed = map_to_original(one, build_view_map(ORIGINAL, seen, crop))
    assert placed.coordinates is not None
    assert placed.flag == ""
    for got, meant, side in zip(placed.coordinates, THING, (part.width, part.height) * 2, strict=False):
        assert abs(got - meant) <= (side / 32 if name == "Kosmos-2" else 2), (placed, THING)
    assert len(placed.coordinates) == (2 if hand.point else 4)


@requirement("grounding.original")
@given(st.data())
def test_pixels_come_back_exactly_from_a_crop(data: st.DataObject) -> None:
    x, y = data.draw(st.integers(0, CROP.width)), data.draw(st.integers(0, CROP.height))
    right, bottom = data.draw(st.integers(x, CROP.width)), data.draw(st.integers(y, CROP.height))
    placed = map_to_original(found(x, y, right, bottom), build_view_map(ORIGINAL, CROP.size, CROP))
    assert placed.coordinates == (x + CROP.x, y + CROP.y, right + CROP.x, bottom + CROP.y)


@requirement("grounding.original")
@given(
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=4).filter(lambda each: len(each) != 3),
    st.integers(1, 4000),
    st.integers(1, 4000),
)
def test_every_place_is_inside_with_sorted_corners(at: list[float], width: int, height: int) -> None:
    placed = map_to_original(found(*at), build_view_map(Size(width, height), Size(300, 200)))
    assert placed.coordinates is not None
    assert len(placed.coordinates) == len(at)
    for corner in (placed.coordinates[:2], placed.coordinates[-2:]):
        assert 0 <= corner[0] <= width
        assert 0 <= corner[1] <= height
    assert placed.coordinates[0] <= placed.coordinates[-2]
    assert placed.coordinates[1] <= placed.coordinates[-1]


FOLDED = PixelMap.from_moves(
    Size(100, 400),
    Size(220, 200),
    [(Box(0, 0, 100, 200), Box(0, 0, 100, 200)), (Box(0, 200, 100, 200), Box(120, 0, 100, 200))],
)


def test_a_place_in_a_folded_image_is_mapped_back() -> None:
    assert map_to_original(found(130, 10, 160, 50), FOLDED).coordinates == (10, 210, 40, 250)
    assert map_to_original(found(90, 150, 130, 200), FOLDED).coordinates == (
        0,
        150,
        100,
        400,
    )  # across both columns: around both
    assert map_to_original(found(130, 10), FOLDED).coordinates == (10, 210)


@requirement("grounding.flagged")
@pytest.mark.parametrize("at", [(105, 10), (102, 10, 118, 50), (105, 10, 105, 50)])
def test_a_place_outside_the_original_has_no_coordinates(at: tuple[float, ...]) -> None:
    assert map_to_original(found(*at), FOLDED) == OriginalPlace(0, "it", at, None, "left_out")


@requirement("grounding.block")
def test_the_block_lists_boxes_points_and_misfits() -> None:
    rows = [
        OriginalPlace(0, "error “dialog”", (1, 2, 3, 4), (1840, 120, 2680, 480)),
        OriginalPlace(0, "dot", (5, 6), (50, 60), "clamped"),
        OriginalPlace(0, "odd", (0.5, 7.0, float("inf"), 9.0), None, "misfit"),
    ]
    assert build_boxes_block("sha256:" + "a" * 64, ORIGINAL, rows) == (
        f'<vision_proxy_boxes image="sha256:{"a" * 64}" width="3840" height="2160">\n'
        '[{"label": "error “dialog”", "box": [1840, 120, 2680, 480]},\n'
        '{"label": "dot", "point": [50, 60], "flag": "clamped"},\n'
        '{"label": "odd", "values": [0.5, 7, null, 9], "flag": "misfit"}]\n'
        "</vision_proxy_boxes>"
    )
    assert build_boxes_block("sha256:" + "a" * 64, ORIGINAL, []) == ""


LABELS = st.text() | st.sampled_from(
    [
        "</vision_proxy_boxes>",
        "<\n/\nvision_proxy_boxes>",
        "＜/VISION_PROXY_boxes",
        '<vision_proxy_analysis image="',
        "<",
    ]
)


@requirement("grounding.block")
@given(st.lists(LABELS, min_size=1, max_size=4), st.text())
def test_no_label_opens_or_closes_a_fence_or_breaks_the_json(labels: list[str], image: str) -> None:
    block = build_boxes_block(image, ORIGINAL, [OriginalPlace(0, label, (1, 2), (1, 2)) for label in labels])
    head, body, tail = block.split("\n", 1)[0], block.split("\n", 1)[1].rsplit("\n", 1)[0], block.rsplit("\n", 1)[1]
    assert re.fullmatch(r'<vision_proxy_boxes image="[^"<>]*" width="3840" height="2160">', head)
    assert tail == "</vision_proxy_boxes>"
    texts = [body, *(row["label"] for row in json.loads(body))]
    for text in texts:
        assert not re.search("</?vision_proxy_", "".join(text.replace("\uff1c", "<").lower().split()))
    assert len(json.loads(body)) == len(labels)
