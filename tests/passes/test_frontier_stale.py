"""Which images are stale, at the edges: turns that nobody has opened, files that are written over, and the reasons."""

from __future__ import annotations

from sightline.model.profile import CachePrice, Limits
from sightline.passes.frontier import COLD, RENT, Beat, Left, View, frontier

DEAR = CachePrice(1000.0, 0.001)  # leaving never pays
FREE = CachePrice(1.0, 1.0)  # it always does


def looked(views: int, *, opens: bool = True) -> tuple[list[Beat], list[View]]:
    said = [Beat(10, opens=opens)]
    seen = []
    for _ in range(views):
        said += [Beat(10, speaks=True), Beat(0)]
        seen.append(View(len(said) - 1, 1000))
    return said, seen


def cold_at(said: list[Beat], message: int) -> list[Beat]:
    return [beat._replace(cold=index == message) for index, beat in enumerate(said)]


def test_the_reason_is_the_price_or_that_nothing_was_cached() -> None:
    said, seen = looked(10)
    last = len(said) - 1
    assert frontier(cold_at(said, last), seen, DEAR, Limits()) == {0: Left(last, COLD)}
    assert frontier(said, seen, FREE, Limits()) == {0: Left(last - 1, RENT)}


def test_a_conversation_that_nobody_has_opened_is_one_turn_from_its_beginning() -> None:
    said, seen = looked(9, opens=False)
    assert frontier(cold_at(said, len(said) - 1), seen, DEAR, Limits()) == {}, "eight steps are not long ago"
    said, seen = looked(10, opens=False)
    assert sorted(frontier(cold_at(said, len(said) - 1), seen, DEAR, Limits())) == [0]


def test_what_is_lost_from_a_message_on_may_leave_before_it_and_not_with_it() -> None:
    said, seen = looked(20)
    for moment in (30, 31):
        left = frontier(cold_at(said, moment), [seen[0]._replace(lost=31), *seen[1:]], DEAR, Limits())
        assert (0 in left) == (moment < 31)
        assert {1, 2} <= left.keys(), "the others leave all the same"


def test_several_that_are_lost_at_different_moments_are_each_spared_at_their_own() -> None:
    said, seen = looked(20)
    lost = {0: 28, 1: 32, 2: 36}
    views = [view._replace(lost=lost.get(number)) for number, view in enumerate(seen)]
    for moment in range(26, 40):
        left = frontier(cold_at(said, moment), views, DEAR, Limits())
        assert {number for number in lost if number in left} == {n for n, end in lost.items() if moment < end}
