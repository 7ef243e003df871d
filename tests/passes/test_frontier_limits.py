"""How close a limit may be before images are removed, and how many are: off-by-one cases."""

from __future__ import annotations

import re

import pytest

from sightline.model.profile import CachePrice, ImageLimits
from sightline.passes.frontier import HistoryImage, HistoryMessage, Removal, compute_frontier

DEAR = CachePrice(1000.0, 0.001)  # leaving never pays


def told(
    images: int, limits: ImageLimits, encoded: int = 0, edge: int = 0, *, last: int | None = None
) -> dict[int, Removal]:
    """Return what is removed when the last image arrives in a new turn after all others."""
    said = [
        HistoryMessage(10, opens_turn=True),
        HistoryMessage(10, by_assistant=True),
        HistoryMessage(10),
        HistoryMessage(10, opens_turn=True),
        HistoryMessage(10, by_assistant=True),
        HistoryMessage(0),
    ]
    seen = [HistoryImage(2, 1000, encoded, edge) for _ in range(images - 1)]
    return compute_frontier(said, [*seen, HistoryImage(5, 1000, encoded if last is None else last, edge)], DEAR, limits)


def all_stale(images: int, limit: str) -> dict[int, tuple[int, str]]:
    return dict.fromkeys(range(images - 3), (5, limit))


def named(left: dict[int, Removal]) -> dict[int, tuple[int, str]]:
    """Return by image the message at which it is removed, and the limit that the reason names."""
    found = {number: re.search(r"[\d,]+ (images|bytes)", each.why) for number, each in left.items()}
    return {number: (left[number].message, limit[0]) for number, limit in found.items() if limit}


def test_images_stay_without_a_limit() -> None:
    assert told(90, ImageLimits(), 10**6, 9000) == {}


def test_seven_eighths_of_the_image_limit_are_close() -> None:
    assert told(14, ImageLimits(count=16)) == {}
    assert named(told(15, ImageLimits(count=16))) == all_stale(15, "16 images")
    assert told(35, ImageLimits(count=40)) == {}
    assert named(told(36, ImageLimits(count=40))) == all_stale(36, "40 images")


def test_seven_eighths_of_nine_tenths_of_the_bytes_are_close() -> None:
    limits = ImageLimits(request_bytes=20_000)
    assert told(16, limits, 1000, last=750) == {}
    assert named(told(16, limits, 1000, last=751)) == all_stale(16, "20,000 bytes")


def test_the_crowd_limit_counts_only_with_a_wide_image() -> None:
    limits = ImageLimits(crowd=16, crowd_edge=2000)
    assert told(15, limits, edge=2000) == {}
    assert named(told(15, limits, edge=2001)) == all_stale(15, "16 images")
    assert told(14, limits, edge=2001) == {}
    assert told(15, ImageLimits(crowd=16), edge=2001) == {}, "no edge was named that a crowd may not have"


def in_a_row(images: int, limits: ImageLimits, encoded: int = 0, edge: int = 0) -> dict[int, list[int]]:
    """Return by message the images removed there, if each step of one turn brings an image; eight are not stale."""
    said = [HistoryMessage(10, opens_turn=True)]
    seen = []
    for _ in range(images):
        said += [HistoryMessage(10, by_assistant=True), HistoryMessage(0)]
        seen.append(HistoryImage(len(said) - 1, 1000, encoded, edge))
    moves: dict[int, list[int]] = {}
    for number, left in compute_frontier(said, seen, DEAR, limits).items():
        moves.setdefault(left.message, []).append(number)
    return moves


@pytest.mark.parametrize(
    ("limits", "encoded"),
    [(ImageLimits(count=16), 0), (ImageLimits(request_bytes=20_000), 1125)],
    ids=["images", "bytes"],
)
def test_images_over_a_limit_are_removed_down_to_half(limits: ImageLimits, encoded: int) -> None:
    assert in_a_row(16, limits, encoded) == {}, "what is stale would not be enough, and nothing is over the limit yet"
    assert in_a_row(17, limits, encoded) == {34: list(range(9))}


def test_the_crowd_limit_waits_until_enough_images_are_stale() -> None:
    assert in_a_row(17, ImageLimits(crowd=16, crowd_edge=2000), edge=2500) == {}
    assert in_a_row(17, ImageLimits(crowd=18, crowd_edge=2000), edge=2500) == {34: list(range(8))}, "just enough"
    assert in_a_row(19, ImageLimits(crowd=20, crowd_edge=2000), edge=2500) == {38: list(range(10))}


def test_all_old_images_are_removed_even_if_they_are_too_few() -> None:
    said = [
        HistoryMessage(10, opens_turn=True),
        HistoryMessage(10, by_assistant=True),
        HistoryMessage(10),
        HistoryMessage(10, by_assistant=True),
        HistoryMessage(10),
    ]
    stays = [HistoryImage(2, 1000, is_permanent=True) for _ in range(20)]
    seen = [*stays, *(HistoryImage(2, 1000) for _ in range(5)), HistoryImage(4, 1000)]
    left = compute_frontier(said, seen, DEAR, ImageLimits(count=8))
    assert named(left) == dict.fromkeys((20, 21, 22), (4, "8 images"))
    assert left.keys() == {20, 21, 22}
