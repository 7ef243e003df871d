"""Which images are stale, in edge cases: no opened turn, overwritten files, and the reasons."""

from __future__ import annotations

from sightline.model.profile import CachePrice, ImageLimits
from sightline.passes.frontier import COLD_CACHE, RENT_PAID, HistoryImage, HistoryMessage, Removal, compute_frontier

DEAR = CachePrice(1000.0, 0.001)  # leaving never pays
FREE = CachePrice(1.0, 1.0)  # it always does


def looked(views: int, *, opens: bool = True) -> tuple[list[HistoryMessage], list[HistoryImage]]:
    said = [HistoryMessage(10, opens_turn=opens)]
    seen = []
    for _ in range(views):
        said += [HistoryMessage(10, by_assistant=True), HistoryMessage(0)]
        seen.append(HistoryImage(len(said) - 1, 1000))
    return said, seen


def cold_at(said: list[HistoryMessage], message: int) -> list[HistoryMessage]:
    return [beat._replace(cold=index == message) for index, beat in enumerate(said)]


def test_the_reason_is_the_rent_or_the_cold_cache() -> None:
    said, seen = looked(10)
    last = len(said) - 1
    assert compute_frontier(cold_at(said, last), seen, DEAR, ImageLimits()) == {0: Removal(last, COLD_CACHE)}
    assert compute_frontier(said, seen, FREE, ImageLimits()) == {0: Removal(last - 1, RENT_PAID)}


def test_a_conversation_without_an_opening_is_one_turn() -> None:
    said, seen = looked(9, opens=False)
    assert compute_frontier(cold_at(said, len(said) - 1), seen, DEAR, ImageLimits()) == {}, (
        "eight steps are not long ago"
    )
    said, seen = looked(10, opens=False)
    assert sorted(compute_frontier(cold_at(said, len(said) - 1), seen, DEAR, ImageLimits())) == [0]


def test_an_image_can_be_removed_before_it_is_lost_and_not_after() -> None:
    said, seen = looked(20)
    for moment in (30, 31):
        left = compute_frontier(cold_at(said, moment), [seen[0]._replace(lost_at=31), *seen[1:]], DEAR, ImageLimits())
        assert (0 in left) == (moment < 31)
        assert {1, 2} <= left.keys(), "the others leave all the same"


def test_images_lost_at_different_messages_are_each_kept_from_there() -> None:
    said, seen = looked(20)
    lost = {0: 28, 1: 32, 2: 36}
    views = [view._replace(lost_at=lost.get(number)) for number, view in enumerate(seen)]
    for moment in range(26, 40):
        left = compute_frontier(cold_at(said, moment), views, DEAR, ImageLimits())
        assert {number for number in lost if number in left} == {n for n, end in lost.items() if moment < end}
