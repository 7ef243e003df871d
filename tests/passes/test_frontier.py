"""When images are removed from a conversation: on plain numbers, against a naive implementation."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.model.profile import CachePrice, ImageLimits
from sightline.passes.frontier import (
    COLD_CACHE,
    LINE_TOKENS,
    NEWEST_KEPT,
    RENT_FACTOR,
    RENT_PAID,
    STALE_AFTER_STEPS,
    HistoryImage,
    HistoryMessage,
    Removal,
    compute_frontier,
)
from tests.requirements import requirement

ANTHROPIC = CachePrice(1.25, 0.1, 300)
DEAR = CachePrice(1000.0, 0.001)  # leaving never pays
FREE = ImageLimits()
CROWD = ImageLimits(crowd=20, crowd_edge=2000)

tokens = st.integers(0, 5000)
beats = st.lists(
    st.one_of(
        st.builds(HistoryMessage, tokens, st.just(True), st.just(False), st.just(False)),
        st.builds(HistoryMessage, tokens, st.just(False), st.just(False), st.just(False)),
        st.builds(HistoryMessage, tokens, st.just(False), st.booleans(), st.booleans()),
    ),
    max_size=60,
)
prices = st.builds(CachePrice, st.sampled_from([1.0, 1.25]), st.sampled_from([0.02, 0.1, 0.5, 1.0]))
limits = st.builds(
    ImageLimits,
    crowd=st.none() | st.integers(2, 20),
    crowd_edge=st.just(2000),
    count=st.none() | st.integers(1, 20),
    request_bytes=st.none() | st.integers(1000, 50_000),
)


@st.composite
def told(draw: st.DrawFn) -> tuple[list[HistoryMessage], list[HistoryImage]]:
    """Draw a conversation with images in messages that are not the assistant's."""
    said = draw(beats)
    places = [index for index, beat in enumerate(said) if not beat.by_assistant]
    if not places:
        return said, []
    view = st.builds(
        HistoryImage,
        st.sampled_from(places),
        st.integers(0, 4784),
        st.integers(0, 5000),
        st.integers(1, 3000),
        is_permanent=st.sampled_from([False, False, False, True]),
        lost_at=st.none(),
    )
    return said, sorted(draw(st.lists(view, max_size=40)), key=lambda one: one.message)


@st.composite
def looked(draw: st.DrawFn) -> tuple[list[HistoryMessage], list[HistoryImage]]:
    """Draw a conversation of many images and little text, in which removal pays again and again."""
    said = [HistoryMessage(draw(st.integers(0, 100)), opens_turn=True)]
    seen: list[HistoryImage] = []
    images = st.lists(st.sampled_from([300, 1000, 1568, 4784]), min_size=1, max_size=2)
    step = st.tuples(st.integers(0, 300), images, st.booleans())
    for words, sizes, opens in draw(st.lists(step, min_size=20, max_size=50)):
        said += [HistoryMessage(words, by_assistant=True), HistoryMessage(words)]
        seen += [HistoryImage(len(said) - 1, size, is_permanent=words % 10 == 0) for size in sizes]
        said += [HistoryMessage(words, opens_turn=True)] if opens and words > 200 else []
    return said, seen


def in_a_row(
    count: int, tokens: int = 1500, words: int = 300, edge: int = 0
) -> tuple[list[HistoryMessage], list[HistoryImage]]:
    """Return one turn of many views."""
    said = [HistoryMessage(100, opens_turn=True)]
    seen = []
    for _ in range(count):
        said += [HistoryMessage(words, by_assistant=True), HistoryMessage(0)]
        seen.append(HistoryImage(len(said) - 1, tokens, 1000, edge))
    return said, seen


def cold_at(said: list[HistoryMessage], index: int) -> list[HistoryMessage]:
    return [beat._replace(cold=number == index) for number, beat in enumerate(said)]


def moves(left: dict[int, Removal]) -> list[int]:
    return sorted({each.message for each in left.values()})


@requirement("retain.cold", "retain.window", "retain.stale")
def test_all_stale_images_are_removed_when_the_cache_is_cold() -> None:
    said, seen = in_a_row(20)
    left = compute_frontier(cold_at(said, len(said) - 1), seen, DEAR, FREE)
    assert STALE_AFTER_STEPS == 8
    assert left == {number: Removal(len(said) - 1, COLD_CACHE) for number in range(11)}, "nine steps back and more"


@requirement("retain.stale")
def test_images_of_earlier_turns_are_stale_except_the_newest_three() -> None:
    said, seen = in_a_row(5)
    said += [HistoryMessage(50, by_assistant=True), HistoryMessage(20, opens_turn=True)]
    assert sorted(compute_frontier(cold_at(said, len(said) - 1), seen, DEAR, FREE)) == [0, 1]
    assert compute_frontier(cold_at(said, len(said) - 2), seen, DEAR, FREE) == {}, "the turn still goes on"


@requirement("retain.window")
def test_three_images_are_never_too_many() -> None:
    said, seen = in_a_row(NEWEST_KEPT)
    said += [
        HistoryMessage(9, by_assistant=step % 2 == 0, opens_turn=step % 2 == 1, cold=step % 2 == 1)
        for step in range(100)
    ]
    assert NEWEST_KEPT == 3
    assert compute_frontier(said, seen, ANTHROPIC, ImageLimits(count=1, crowd=1, crowd_edge=1)) == {}


def test_an_image_that_the_model_has_not_seen_stays() -> None:
    said = [
        HistoryMessage(10, opens_turn=True),
        HistoryMessage(10, by_assistant=True),
        HistoryMessage(10),
        HistoryMessage(10, opens_turn=True, cold=True),
    ]
    seen = [HistoryImage(2, 1000) for _ in range(9)]
    assert compute_frontier(said, seen, ANTHROPIC, FREE) == {}
    later = [*said, HistoryMessage(10, by_assistant=True), HistoryMessage(10, cold=True)]
    assert sorted(compute_frontier(later, seen, ANTHROPIC, FREE)) == list(range(6))


@requirement("retain.rent")
def test_images_are_removed_when_the_rent_reaches_the_price() -> None:
    said, seen = in_a_row(4, tokens=1080)
    said += [HistoryMessage(40, by_assistant=True), HistoryMessage(2000, opens_turn=True)]
    while not (left := compute_frontier(said, seen, ANTHROPIC, FREE)):
        before = len(said)
        said += [HistoryMessage(4, by_assistant=True), HistoryMessage(20)]
    assert sorted(left) == [0]
    # Its message was the third. With each step after the one that wrote it, 1000 tokens more than the line were read.
    steps = sum(beat.by_assistant for beat in said[: moves(left)[0] + 1])
    behind = sum(beat.tokens for beat in said[3:]) + 3 * 1080 + LINE_TOKENS

    def due(steps: int, behind: int) -> bool:
        return 0.1 * 1000 * (steps - 2) >= RENT_FACTOR * (1.25 - 0.1) * behind

    assert due(steps, behind - said[-1].tokens - said[-2].tokens)
    assert not due(steps - 1, behind - 2 * (said[-1].tokens + said[-2].tokens))
    assert moves(left) == [before]


@requirement("retain.rent")
def test_each_cache_price_has_its_own_waiting_time() -> None:
    said, seen = in_a_row(60, words=600)
    first = [moves(compute_frontier(said, seen, CachePrice(1, read), FREE))[:1] for read in (1.0, 0.5, 0.1, 0.02)]
    found = [place[0] if place else len(said) for place in first]
    assert found == sorted(set(found)), "the dearer the rent, the sooner"
    assert found[0] == 2 * (STALE_AFTER_STEPS + 2) - 1, "without a cache, as soon as one is stale"


@requirement("retain.batches")
@pytest.mark.parametrize("words", [0, 100, 1000, 5000])
@pytest.mark.parametrize("size", [400, 1568, 4784])
@pytest.mark.parametrize("limits", [FREE, ImageLimits(crowd=20, crowd_edge=2000, count=100, request_bytes=32 << 20)])
def test_forty_views_in_a_row_move_the_frontier_five_times_at_most(words: int, size: int, limits: ImageLimits) -> None:
    said, seen = in_a_row(40, size, words, edge=2500)
    left = compute_frontier(said, seen, ANTHROPIC, limits)
    assert len(moves(left)) <= 5
    assert left or (words, limits) in {(1000, FREE), (5000, FREE)}


@requirement("retain.limit_near")
def test_stale_images_are_removed_before_large_ones_become_illegal() -> None:
    said, seen = in_a_row(60, edge=2500)
    left = compute_frontier(said, seen, DEAR, CROWD)
    for index in range(len(said)):
        here = sum(view.message <= index and not _gone(left, n, index) for n, view in enumerate(seen))
        assert here <= 20
    assert moves(left)[0] == seen[18].message, "the nineteenth is near enough"
    assert len(moves(left)) <= 5
    (why,) = {each.why for each in left.values()}
    assert "20 images" in why
    small = [view._replace(edge=2000) for view in seen]
    assert compute_frontier(said, small, DEAR, CROWD) == {}, "small images may come in crowds"


@requirement("retain.limit_near")
@pytest.mark.parametrize(
    ("limits", "most"),
    [(ImageLimits(count=30), 30), (ImageLimits(request_bytes=34_000), 30)],
    ids=["images", "bytes"],
)
def test_images_in_the_window_are_removed_at_a_hard_limit(limits: ImageLimits, most: int) -> None:
    said = [HistoryMessage(100, opens_turn=True)]
    seen = []
    for _ in range(20):
        said += [HistoryMessage(100, by_assistant=True), HistoryMessage(100)]
        seen += [HistoryImage(len(said) - 1, 1500, 1000) for _ in range(7)]
    left = compute_frontier(said, seen, DEAR, limits)
    for index in range(len(said)):
        here = sum(view.message <= index and not _gone(left, n, index) for n, view in enumerate(seen))
        assert here <= most
    assert len(moves(left)) < 10, "each time enough of them to last for a while"


def _gone(left: dict[int, Removal], number: int, index: int) -> bool:
    return number in left and left[number].message <= index


def test_a_soft_limit_that_cannot_be_met_removes_no_image() -> None:
    said = [HistoryMessage(100, opens_turn=True)]
    seen = []
    for _ in range(30):
        said += [HistoryMessage(100, by_assistant=True), HistoryMessage(100)]
        seen += [HistoryImage(len(said) - 1, 1500, 1000, 2500) for _ in range(3)]
    assert compute_frontier(said, seen, DEAR, CROWD) == {}, (
        "a crowd again two steps later would move the frontier every time"
    )


@requirement("retain.stays", "retain.fold")
@given(told() | looked(), prices, limits)
def test_removed_images_stay_removed(
    story: tuple[list[HistoryMessage], list[HistoryImage]], price: CachePrice, limits: ImageLimits
) -> None:
    said, seen = story
    whole = compute_frontier(said, seen, price, limits)
    for end in range(len(said)):
        part = compute_frontier(said[:end], [view for view in seen if view.message < end], price, limits)
        assert part == {number: left for number, left in whole.items() if left.message < end}


@requirement("law.5", "retain.window")
@given(told() | looked(), prices, limits)
def test_permanent_images_and_the_newest_three_are_never_removed(
    story: tuple[list[HistoryMessage], list[HistoryImage]], price: CachePrice, limits: ImageLimits
) -> None:
    said, seen = story
    left = compute_frontier(said, seen, price, limits)
    assert not any(seen[number].is_permanent for number in left)
    for number, each in left.items():
        newer = [view for view in seen[number + 1 :] if not view.is_permanent and view.message <= each.message]
        assert len(newer) >= NEWEST_KEPT
        assert any(beat.by_assistant for beat in said[seen[number].message : each.message + 1]), "it was never seen"


@settings(max_examples=100)
@given(told() | looked(), prices)
def test_the_fold_equals_a_naive_implementation(
    story: tuple[list[HistoryMessage], list[HistoryImage]], price: CachePrice
) -> None:
    said, seen = story
    price = CachePrice(round(price.write * 100), round(price.read * 100))  # whole numbers: no rounding in between
    assert compute_frontier(said, seen, price, FREE) == naive(said, seen, price)


def naive(said: list[HistoryMessage], seen: list[HistoryImage], price: CachePrice) -> dict[int, Removal]:
    """Compute everything again after every message."""
    left: dict[int, Removal] = {}

    begins = [beat.by_assistant and not (n and said[n - 1].by_assistant) for n, beat in enumerate(said)]
    steps = list(accumulate(begins))

    def length(start: int, end: int, first: int) -> int:
        """Return the tokens from image `first` on in messages `start` to `end`, without that image itself."""
        images = (
            LINE_TOKENS if number in left else view.tokens
            for number, view in enumerate(seen)
            if number > first and view.message < end
        )
        return sum(beat.tokens for beat in said[start + 1 : end]) + sum(images)

    for end, beat in enumerate(said):
        may = [
            n
            for n, view in enumerate(seen)
            if view.message <= end and not view.is_permanent and view.tokens > LINE_TOKENS
        ]
        turn = max((n for n in range(end + 1) if said[n].opens_turn), default=0)
        stale = [
            n
            for n in may[: max(0, len(may) - NEWEST_KEPT)]
            if n not in left
            and steps[seen[n].message] < steps[end]
            and (seen[n].message < turn or steps[end] - steps[seen[n].message] > STALE_AFTER_STEPS)
        ]
        if beat.cold:
            left |= {n: Removal(end, COLD_CACHE) for n in stale}
        elif beat.opens_turn or begins[end]:
            for cut in range(len(stale)):
                going = stale[cut:]
                rent = sum(
                    price.read * (seen[n].tokens - LINE_TOKENS) * (steps[end] - steps[seen[n].message] - 1)
                    for n in going
                )
                before = dict(left)
                left |= {n: Removal(end, RENT_PAID) for n in going}
                behind = length(seen[going[0]].message, end, going[0]) + LINE_TOKENS
                if rent >= RENT_FACTOR * (price.write - price.read) * behind:
                    break
                left = before
    return left
