"""How near a limit may come before images leave for it, and how many then do: boundaries by one."""

from __future__ import annotations

import re

import pytest

from sightline.model.profile import CachePrice, Limits
from sightline.passes.frontier import Beat, Left, View, frontier

DEAR = CachePrice(1000.0, 0.001)  # leaving never pays


def told(images: int, limits: Limits, encoded: int = 0, edge: int = 0, *, last: int | None = None) -> dict[int, Left]:
    """What has left when the last of so many images has come: the others came in one turn, it comes in the next."""
    said = [Beat(10, opens=True), Beat(10, speaks=True), Beat(10), Beat(10, opens=True), Beat(10, speaks=True), Beat(0)]
    seen = [View(2, 1000, encoded, edge) for _ in range(images - 1)]
    return frontier(said, [*seen, View(5, 1000, encoded if last is None else last, edge)], DEAR, limits)


def all_stale(images: int, limit: str) -> dict[int, tuple[int, str]]:
    return dict.fromkeys(range(images - 3), (5, limit))


def named(left: dict[int, Left]) -> dict[int, tuple[int, str]]:
    """By images, the message with which each leaves, and the limit that the reason names."""
    found = {number: re.search(r"[\d,]+ (images|bytes)", each.why) for number, each in left.items()}
    return {number: (left[number].message, limit[0]) for number, limit in found.items() if limit}


def test_without_a_limit_they_stay() -> None:
    assert told(90, Limits(), 10**6, 9000) == {}


def test_seven_eighths_of_the_images_are_near_enough() -> None:
    assert told(14, Limits(count=16)) == {}
    assert named(told(15, Limits(count=16))) == all_stale(15, "16 images")
    assert told(35, Limits(count=40)) == {}
    assert named(told(36, Limits(count=40))) == all_stale(36, "40 images")


def test_of_the_bytes_a_tenth_is_for_words_and_of_the_rest_seven_eighths_are_near_enough() -> None:
    limits = Limits(request_bytes=20_000)
    assert told(16, limits, 1000, last=750) == {}
    assert named(told(16, limits, 1000, last=751)) == all_stale(16, "20,000 bytes")


def test_a_crowd_is_one_only_where_an_image_is_too_wide_for_it() -> None:
    limits = Limits(crowd=16, crowd_edge=2000)
    assert told(15, limits, edge=2000) == {}
    assert named(told(15, limits, edge=2001)) == all_stale(15, "16 images")
    assert told(14, limits, edge=2001) == {}
    assert told(15, Limits(crowd=16), edge=2001) == {}, "no edge was named that a crowd may not have"


def in_a_row(images: int, limits: Limits, encoded: int = 0, edge: int = 0) -> dict[int, list[int]]:
    """By messages, those that leave with them, where each step of one turn brings an image: eight are not stale."""
    said = [Beat(10, opens=True)]
    seen = []
    for _ in range(images):
        said += [Beat(10, speaks=True), Beat(0)]
        seen.append(View(len(said) - 1, 1000, encoded, edge))
    moves: dict[int, list[int]] = {}
    for number, left in frontier(said, seen, DEAR, limits).items():
        moves.setdefault(left.message, []).append(number)
    return moves


@pytest.mark.parametrize(
    ("limits", "encoded"),
    [(Limits(count=16), 0), (Limits(request_bytes=20_000), 1125)],
    ids=["images", "bytes"],
)
def test_over_a_limit_as_many_leave_as_bring_it_down_to_a_half(limits: Limits, encoded: int) -> None:
    assert in_a_row(16, limits, encoded) == {}, "what is stale would not be enough, and nothing is over the limit yet"
    assert in_a_row(17, limits, encoded) == {34: list(range(9))}


def test_a_crowd_waits_until_stale_ones_are_enough() -> None:
    assert in_a_row(17, Limits(crowd=16, crowd_edge=2000), edge=2500) == {}
    assert in_a_row(17, Limits(crowd=18, crowd_edge=2000), edge=2500) == {34: list(range(8))}, "just enough"
    assert in_a_row(19, Limits(crowd=20, crowd_edge=2000), edge=2500) == {38: list(range(10))}


def test_where_even_all_old_ones_are_too_few_they_leave_all_the_same() -> None:
    said = [Beat(10, opens=True), Beat(10, speaks=True), Beat(10), Beat(10, speaks=True), Beat(10)]
    stays = [View(2, 1000, stays=True) for _ in range(20)]
    seen = [*stays, *(View(2, 1000) for _ in range(5)), View(4, 1000)]
    left = frontier(said, seen, DEAR, Limits(count=8))
    assert named(left) == dict.fromkeys((20, 21, 22), (4, "8 images"))
    assert left.keys() == {20, 21, 22}
