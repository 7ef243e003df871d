"""When images leave a conversation: on plain numbers, against a naive reading of the same rule."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.model.profile import CachePrice, Limits
from sightline.passes.frontier import COLD, LINE, NEWEST, PATIENCE, RENT, WINDOW, Beat, Left, View, frontier
from tests.requirements import requirement

ANTHROPIC = CachePrice(1.25, 0.1, 300)
DEAR = CachePrice(1000.0, 0.001)  # leaving never pays
FREE = Limits()
CROWD = Limits(crowd=20, crowd_edge=2000)

tokens = st.integers(0, 5000)
beats = st.lists(
    st.one_of(
        st.builds(Beat, tokens, st.just(True), st.just(False), st.just(False)),
        st.builds(Beat, tokens, st.just(False), st.just(False), st.just(False)),
        st.builds(Beat, tokens, st.just(False), st.booleans(), st.booleans()),
    ),
    max_size=60,
)
prices = st.builds(CachePrice, st.sampled_from([1.0, 1.25]), st.sampled_from([0.02, 0.1, 0.5, 1.0]))
limits = st.builds(
    Limits,
    crowd=st.none() | st.integers(2, 20),
    crowd_edge=st.just(2000),
    count=st.none() | st.integers(1, 20),
    request_bytes=st.none() | st.integers(1000, 50_000),
)


@st.composite
def told(draw: st.DrawFn) -> tuple[list[Beat], list[View]]:
    """A conversation, with images in messages that are not the assistant's."""
    said = draw(beats)
    places = [index for index, beat in enumerate(said) if not beat.speaks]
    if not places:
        return said, []
    view = st.builds(
        View,
        st.sampled_from(places),
        st.integers(0, 4784),
        st.integers(0, 5000),
        st.integers(1, 3000),
        stays=st.sampled_from([False, False, False, True]),
        lost=st.none(),
    )
    return said, sorted(draw(st.lists(view, max_size=40)), key=lambda one: one.message)


@st.composite
def looked(draw: st.DrawFn) -> tuple[list[Beat], list[View]]:
    """A conversation of many images and few words, so that they are worth their price again and again."""
    said = [Beat(draw(st.integers(0, 100)), opens=True)]
    seen: list[View] = []
    images = st.lists(st.sampled_from([300, 1000, 1568, 4784]), min_size=1, max_size=2)
    step = st.tuples(st.integers(0, 300), images, st.booleans())
    for words, sizes, opens in draw(st.lists(step, min_size=20, max_size=50)):
        said += [Beat(words, speaks=True), Beat(words)]
        seen += [View(len(said) - 1, size, stays=words % 10 == 0) for size in sizes]
        said += [Beat(words, opens=True)] if opens and words > 200 else []
    return said, seen


def in_a_row(count: int, tokens: int = 1500, words: int = 300, edge: int = 0) -> tuple[list[Beat], list[View]]:
    """One turn: look, look, look."""
    said = [Beat(100, opens=True)]
    seen = []
    for _ in range(count):
        said += [Beat(words, speaks=True), Beat(0)]
        seen.append(View(len(said) - 1, tokens, 1000, edge))
    return said, seen


def cold_at(said: list[Beat], index: int) -> list[Beat]:
    return [beat._replace(cold=number == index) for number, beat in enumerate(said)]


def moves(left: dict[int, Left]) -> list[int]:
    return sorted({each.message for each in left.values()})


@requirement("retain.cold", "retain.window", "retain.stale")
def test_at_a_cold_moment_all_stale_ones_leave_and_the_window_stays() -> None:
    said, seen = in_a_row(20)
    left = frontier(cold_at(said, len(said) - 1), seen, DEAR, FREE)
    assert WINDOW == 8
    assert left == {number: Left(len(said) - 1, COLD) for number in range(11)}, "nine steps back and more"


@requirement("retain.stale")
def test_images_of_an_earlier_turn_are_stale_at_once_but_the_newest_three_never() -> None:
    said, seen = in_a_row(5)
    said += [Beat(50, speaks=True), Beat(20, opens=True)]
    assert sorted(frontier(cold_at(said, len(said) - 1), seen, DEAR, FREE)) == [0, 1]
    assert frontier(cold_at(said, len(said) - 2), seen, DEAR, FREE) == {}, "the turn still goes on"


@requirement("retain.window")
def test_three_images_are_never_too_many() -> None:
    said, seen = in_a_row(NEWEST)
    said += [Beat(9, speaks=step % 2 == 0, opens=step % 2 == 1, cold=step % 2 == 1) for step in range(100)]
    assert NEWEST == 3
    assert frontier(said, seen, ANTHROPIC, Limits(count=1, crowd=1, crowd_edge=1)) == {}


def test_what_the_model_has_had_no_step_to_look_at_stays_though_the_user_speaks_again() -> None:
    said = [Beat(10, opens=True), Beat(10, speaks=True), Beat(10), Beat(10, opens=True, cold=True)]
    seen = [View(2, 1000) for _ in range(9)]
    assert frontier(said, seen, ANTHROPIC, FREE) == {}
    later = [*said, Beat(10, speaks=True), Beat(10, cold=True)]
    assert sorted(frontier(later, seen, ANTHROPIC, FREE)) == list(range(6))


@requirement("retain.rent")
def test_they_leave_when_the_rent_has_reached_the_price_and_not_a_step_before() -> None:
    said, seen = in_a_row(4, tokens=1080)
    said += [Beat(40, speaks=True), Beat(2000, opens=True)]
    while not (left := frontier(said, seen, ANTHROPIC, FREE)):
        before = len(said)
        said += [Beat(4, speaks=True), Beat(20)]
    assert sorted(left) == [0]
    # Its message was the third. With each step after the one that wrote it, 1000 tokens more than the line were read.
    steps = sum(beat.speaks for beat in said[: moves(left)[0] + 1])
    behind = sum(beat.tokens for beat in said[3:]) + 3 * 1080 + LINE

    def due(steps: int, behind: int) -> bool:
        return 0.1 * 1000 * (steps - 2) >= PATIENCE * (1.25 - 0.1) * behind

    assert due(steps, behind - said[-1].tokens - said[-2].tokens)
    assert not due(steps - 1, behind - 2 * (said[-1].tokens + said[-2].tokens))
    assert moves(left) == [before]


@requirement("retain.rent")
def test_a_price_of_its_own_makes_each_model_wait_as_long_as_it_should() -> None:
    said, seen = in_a_row(60, words=600)
    first = [moves(frontier(said, seen, CachePrice(1, read), FREE))[:1] for read in (1.0, 0.5, 0.1, 0.02)]
    found = [place[0] if place else len(said) for place in first]
    assert found == sorted(set(found)), "the dearer the rent, the sooner"
    assert found[0] == 2 * (WINDOW + 2) - 1, "without a cache, as soon as one is stale"


@requirement("retain.batches")
@pytest.mark.parametrize("words", [0, 100, 1000, 5000])
@pytest.mark.parametrize("size", [400, 1568, 4784])
@pytest.mark.parametrize("limits", [FREE, Limits(crowd=20, crowd_edge=2000, count=100, request_bytes=32 << 20)])
def test_forty_views_in_a_row_move_the_frontier_five_times_at_most(words: int, size: int, limits: Limits) -> None:
    said, seen = in_a_row(40, size, words, edge=2500)
    left = frontier(said, seen, ANTHROPIC, limits)
    assert len(moves(left)) <= 5
    assert left or (words, limits) in {(1000, FREE), (5000, FREE)}


@requirement("retain.limit_near")
def test_before_a_crowd_makes_large_images_illegal_the_stale_ones_leave() -> None:
    said, seen = in_a_row(60, edge=2500)
    left = frontier(said, seen, DEAR, CROWD)
    for index in range(len(said)):
        here = sum(view.message <= index and not _gone(left, n, index) for n, view in enumerate(seen))
        assert here <= 20
    assert moves(left)[0] == seen[18].message, "the nineteenth is near enough"
    assert len(moves(left)) <= 5
    (why,) = {each.why for each in left.values()}
    assert "20 images" in why
    small = [view._replace(edge=2000) for view in seen]
    assert frontier(said, small, DEAR, CROWD) == {}, "small images may come in crowds"


@requirement("retain.limit_near")
@pytest.mark.parametrize(
    ("limits", "most"),
    [(Limits(count=30), 30), (Limits(request_bytes=34_000), 30)],
    ids=["images", "bytes"],
)
def test_at_a_limit_that_would_cost_images_even_those_of_the_window_leave(limits: Limits, most: int) -> None:
    said = [Beat(100, opens=True)]
    seen = []
    for _ in range(20):
        said += [Beat(100, speaks=True), Beat(100)]
        seen += [View(len(said) - 1, 1500, 1000) for _ in range(7)]
    left = frontier(said, seen, DEAR, limits)
    for index in range(len(said)):
        here = sum(view.message <= index and not _gone(left, n, index) for n, view in enumerate(seen))
        assert here <= most
    assert len(moves(left)) < 10, "each time enough of them to last for a while"


def _gone(left: dict[int, Left], number: int, index: int) -> bool:
    return number in left and left[number].message <= index


def test_a_soft_limit_that_stale_images_cannot_avert_is_left_to_those_who_fit() -> None:
    said = [Beat(100, opens=True)]
    seen = []
    for _ in range(30):
        said += [Beat(100, speaks=True), Beat(100)]
        seen += [View(len(said) - 1, 1500, 1000, 2500) for _ in range(3)]
    assert frontier(said, seen, DEAR, CROWD) == {}, "a crowd again two steps later would move the frontier every time"


@requirement("retain.stays", "retain.fold")
@given(told() | looked(), prices, limits)
def test_what_has_left_stays_away_however_the_conversation_goes_on(
    story: tuple[list[Beat], list[View]], price: CachePrice, limits: Limits
) -> None:
    said, seen = story
    whole = frontier(said, seen, price, limits)
    for end in range(len(said)):
        part = frontier(said[:end], [view for view in seen if view.message < end], price, limits)
        assert part == {number: left for number, left in whole.items() if left.message < end}


@requirement("law.5", "retain.window")
@given(told() | looked(), prices, limits)
def test_what_stays_and_the_newest_three_never_leave(
    story: tuple[list[Beat], list[View]], price: CachePrice, limits: Limits
) -> None:
    said, seen = story
    left = frontier(said, seen, price, limits)
    assert not any(seen[number].stays for number in left)
    for number, each in left.items():
        newer = [view for view in seen[number + 1 :] if not view.stays and view.message <= each.message]
        assert len(newer) >= NEWEST
        assert any(beat.speaks for beat in said[seen[number].message : each.message + 1]), "it was never seen"


@settings(max_examples=100)
@given(told() | looked(), prices)
def test_the_fold_is_what_a_naive_reading_of_the_rule_gives(
    story: tuple[list[Beat], list[View]], price: CachePrice
) -> None:
    said, seen = story
    price = CachePrice(round(price.write * 100), round(price.read * 100))  # whole numbers: no rounding in between
    assert frontier(said, seen, price, FREE) == naive(said, seen, price)


def naive(said: list[Beat], seen: list[View], price: CachePrice) -> dict[int, Left]:
    """Everything anew after every message."""
    left: dict[int, Left] = {}

    begins = [beat.speaks and not (n and said[n - 1].speaks) for n, beat in enumerate(said)]
    steps = list(accumulate(begins))

    def length(start: int, end: int, first: int) -> int:
        """From the image `first` on, in the messages from `start` up to `end`, itself and words before it left out."""
        images = (
            LINE if number in left else view.tokens
            for number, view in enumerate(seen)
            if number > first and view.message < end
        )
        return sum(beat.tokens for beat in said[start + 1 : end]) + sum(images)

    for end, beat in enumerate(said):
        may = [n for n, view in enumerate(seen) if view.message <= end and not view.stays and view.tokens > LINE]
        turn = max((n for n in range(end + 1) if said[n].opens), default=0)
        stale = [
            n
            for n in may[: max(0, len(may) - NEWEST)]
            if n not in left
            and steps[seen[n].message] < steps[end]
            and (seen[n].message < turn or steps[end] - steps[seen[n].message] > WINDOW)
        ]
        if beat.cold:
            left |= {n: Left(end, COLD) for n in stale}
        elif beat.opens or begins[end]:
            for cut in range(len(stale)):
                going = stale[cut:]
                rent = sum(
                    price.read * (seen[n].tokens - LINE) * (steps[end] - steps[seen[n].message] - 1) for n in going
                )
                before = dict(left)
                left |= {n: Left(end, RENT) for n in going}
                behind = length(seen[going[0]].message, end, going[0]) + LINE
                if rent >= PATIENCE * (price.write - price.read) * behind:
                    break
                left = before
    return left
