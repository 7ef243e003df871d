"""Looks under way: one owner at a time, who loses what is not prolonged; its answer is for those who waited."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sightline.model.ports import Lease, Store
from sightline.store import open_record
from tests.requirements import requirement
from tests.store.test_bounds import DAY, Clock

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
def test_the_first_one_has_it_until_it_has_landed(timed: Store, clock: Clock) -> None:
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
def test_another_scope_and_another_look_are_others(record: Store) -> None:
    assert record.descriptions.claim_lease(MINE, 0, 6) is None
    assert record.descriptions.claim_lease(replace(YOURS, scope="other"), 0, 6) is None
    assert record.descriptions.claim_lease(replace(YOURS, name="other"), 0, 6) is None


@requirement("record.flights")
def test_who_does_not_prolong_it_loses_it(timed: Store, clock: Clock) -> None:
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


@requirement("record.flights")
def test_a_failure_leaves_nothing(record: Store) -> None:
    assert record.descriptions.claim_lease(MINE, 0, 6) is None
    record.descriptions.finish_lease(MINE, None)
    assert record.descriptions.claim_lease(YOURS, 0, 6) is None


@requirement("record.flights", "record.forget")
def test_what_came_of_a_look_is_forgotten_with_any_image(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    assert record.descriptions.claim_lease(MINE, 0, 6) is None
    record.descriptions.finish_lease(MINE, "a secret word")
    record.forget("ab" * 32)
    assert record.descriptions.read_lease(MINE) == (False, None)
    record.close()
    assert b"secret word" not in b"".join(path.read_bytes() for path in tmp_path.glob("record.sqlite*"))
