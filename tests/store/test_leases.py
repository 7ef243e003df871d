"""Leases: one owner at a time, lost unless renewed; the answer is left for waiting processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sightline.model.ports import Lease, Store
from sightline.model.records import PinnedDescription
from sightline.store import open_record
from tests.requirements import requirement
from tests.store.test_bounds import DAY, Clock
from tests.store.writer import description_of, image_of

MINE = Lease("scope", "look", "me")
YOURS = replace(MINE, owner="you")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(tmp_path: Path, clock: Clock) -> Store:
    return open_record(tmp_path, now=clock)


def passes(clock: Clock, seconds: float) -> None:
    clock.days += seconds / DAY


@requirement("record.flights")
def test_the_first_owner_has_the_lease_until_it_finishes(timed: Store, clock: Clock) -> None:
    since = clock()
    assert timed.descriptions.claim_lease(MINE, since, 6) is None
    assert timed.descriptions.claim_lease(YOURS, since, 6) == "me"
    assert timed.descriptions.read_lease(MINE) == (True, None)
    passes(clock, 1)
    timed.descriptions.finish_lease(MINE, "words")
    assert timed.descriptions.claim_lease(YOURS, since, 6) == "me", "it came while we were asking"
    assert timed.descriptions.read_lease(MINE) == (True, "words")
    assert timed.descriptions.claim_lease(YOURS, clock() + 1, 6) is None, "what was asked for later is another look"
    assert timed.descriptions.read_lease(MINE) == (False, None)


@requirement("record.flights")
def test_an_open_lease_is_found_by_a_part_of_its_name(timed: Store, clock: Clock) -> None:
    lease = Lease("scope", "image-1,image-2 question", "me")
    assert not timed.descriptions.has_open_lease("scope", "image-2")
    timed.descriptions.claim_lease(lease, 0, 6)
    assert timed.descriptions.has_open_lease("scope", "image-2")
    assert not timed.descriptions.has_open_lease("scope", "image-3")
    assert not timed.descriptions.has_open_lease("another", "image-2")
    timed.descriptions.finish_lease(lease, "words")
    assert not timed.descriptions.has_open_lease("scope", "image-2"), "it has its answer"
    timed.descriptions.claim_lease(replace(lease, owner="you"), clock() + 1, 6)
    passes(clock, 7)
    assert not timed.descriptions.has_open_lease("scope", "image-2"), "its owner has died"


@requirement("record.flights")
def test_leases_differ_by_scope_and_name(record: Store) -> None:
    assert record.descriptions.claim_lease(MINE, 0, 6) is None
    assert record.descriptions.claim_lease(replace(YOURS, scope="other"), 0, 6) is None
    assert record.descriptions.claim_lease(replace(YOURS, name="other"), 0, 6) is None


@requirement("record.flights")
def test_a_lease_that_is_not_renewed_is_lost(timed: Store, clock: Clock) -> None:
    assert timed.descriptions.claim_lease(MINE, 0, 6) is None
    passes(clock, 5)
    assert timed.descriptions.claim_lease(MINE, 0, 6) is None
    passes(clock, 5)
    assert timed.descriptions.claim_lease(YOURS, 0, 6) == "me"
    passes(clock, 2)
    assert timed.descriptions.read_lease(MINE) == (False, None)
    assert timed.descriptions.claim_lease(YOURS, 0, 6) is None
    timed.descriptions.finish_lease(MINE, "too late")
    assert timed.descriptions.read_lease(YOURS) == (True, None)


@requirement("record.shared.fencing")
def test_an_owner_that_has_lost_its_lease_replaces_no_description(timed: Store, clock: Clock) -> None:
    mine, yours = description_of("mine", 1), replace(description_of("mine", 1), text="yours")
    assert timed.descriptions.claim_lease(MINE, 0, 6) is None
    timed.descriptions.keep("scope", mine, "v1", MINE)
    passes(clock, 7)
    assert timed.descriptions.claim_lease(YOURS, 0, 6) is None
    timed.descriptions.keep("scope", yours, "v1", YOURS)
    timed.descriptions.keep("scope", mine, "v1", MINE)
    assert timed.descriptions.read("scope", mine.sha256, mine.seer, "v1") == yours
    timed.descriptions.keep("scope", mine, "v2", MINE)
    assert timed.descriptions.read("scope", mine.sha256, mine.seer, "v2") == mine, (
        "it was paid for, and nothing is there"
    )


@requirement("record.forget.in_flight")
@pytest.mark.parametrize("renewed", [True, False])
@pytest.mark.parametrize("everything", [True, False])
def test_a_description_in_flight_is_not_stored_after_a_forget(timed: Store, everything: bool, renewed: bool) -> None:
    words, joint = description_of("cat", 1), (image_of("cat", 1).sha256, image_of("dog", 2).sha256)
    for image in (image_of("cat", 1), image_of("dog", 2)):
        assert timed.images.keep("scope", image)
    assert timed.descriptions.claim_lease(MINE, 0, 6) is None
    timed.forget(None if everything else words.sha256)
    if renewed:
        assert timed.descriptions.claim_lease(MINE, 0, 6) is None
    timed.descriptions.keep("scope", words, "v1", MINE, image_stored=True)
    for images in ((words.sha256,), joint):
        pinned = PinnedDescription("turn", images, {"text": "a cat"})
        assert timed.descriptions.pin("scope", pinned, images_stored=True) == pinned, "this answer can be used once"
    timed.descriptions.finish_lease(MINE, "words")
    assert timed.descriptions.read("scope", words.sha256, words.seer, "v1") is None
    assert [timed.descriptions.read_pin("scope", "turn", images) for images in ((words.sha256,), joint)] == [None, None]
    assert timed.descriptions.list_texts(words.sha256) == ()
    assert timed.descriptions.read_lease(MINE) == (False, None)
    assert timed.find_known_images(words.sha256) == ()


@requirement("record.flights")
def test_a_description_under_an_expired_lease_is_stored_if_its_image_is_there(timed: Store, clock: Clock) -> None:
    words = description_of("cat", 1)
    assert timed.images.keep("scope", image_of("cat", 1))
    assert timed.descriptions.claim_lease(MINE, 0, 6) is None
    timed.forget(image_of("dog", 2).sha256)  # this deletes every lease
    passes(clock, 7)
    timed.descriptions.keep("scope", words, "v1", MINE, image_stored=True)
    pinned = PinnedDescription("turn", (words.sha256,), {"text": "a cat"})
    timed.descriptions.pin("scope", pinned, images_stored=True)
    assert timed.descriptions.read("scope", words.sha256, words.seer, "v1") == words
    assert timed.descriptions.read_pin("scope", "turn", (words.sha256,)) == pinned


@requirement("record.flights")
def test_a_failed_lease_leaves_no_answer(record: Store) -> None:
    assert record.descriptions.claim_lease(MINE, 0, 6) is None
    record.descriptions.finish_lease(MINE, None)
    assert record.descriptions.claim_lease(YOURS, 0, 6) is None


@requirement("record.flights", "record.forget")
def test_answers_of_leases_are_forgotten_with_any_image(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    assert record.descriptions.claim_lease(MINE, 0, 6) is None
    record.descriptions.finish_lease(MINE, "a secret word")
    record.forget("ab" * 32)
    assert record.descriptions.read_lease(MINE) == (False, None)
    record.close()
    assert b"secret word" not in b"".join(path.read_bytes() for path in tmp_path.glob("record.sqlite*"))
