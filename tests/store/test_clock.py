"""Record time: a clock that jumps expires nothing at once, and real time does."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.ports import Lease, Store
from sightline.model.profile import Lesson
from sightline.store import open_record
from sightline.store.migrations import migrate
from sightline.store.retention import DAY, RecordTime
from sightline.store.sql_store import SqlStore
from tests.requirements import requirement
from tests.store.test_bounds import Clock, kept, use_daily
from tests.store.test_ledger_entries import CALL
from tests.store.writer import description_of, image_of

IMAGE = image_of("cat", 0)
FLIGHT = Lease("scope", "look", "me")


def fill(folder: Path, clock: Clock) -> None:
    record = open_record(folder, days=30, now=clock)
    record.images.keep("scope", IMAGE)
    record.descriptions.keep("scope", description_of("cat", 0), "v1")
    assert record.policy.keep_lesson("zai", "glm", Lesson(blind=True, why="it said so"), days=7) is None
    record.close()


def is_whole(folder: Path, clock: Clock) -> bool:
    """Whether everything that `fill` wrote is there; to find out is a use of the record."""
    record = open_record(folder, days=30, now=clock)
    lesson = record.policy.read_lesson("zai", "glm")
    held = record.images.find_by_prefix("scope", IMAGE.sha256)
    record.close()
    return lesson is not None and held == (IMAGE.sha256,)


@requirement("record.clock.jump")
@pytest.mark.parametrize("days", [2, 40, 4000, 20_000, -2, -40, -99])
def test_one_use_under_a_wrong_clock_expires_nothing(tmp_path: Path, days: float) -> None:
    clock = Clock()
    fill(tmp_path, clock)
    clock.days += days
    assert is_whole(tmp_path, clock)
    clock.days += 0.1
    assert is_whole(tmp_path, clock), "the same call a while later"
    clock.days -= days
    assert is_whole(tmp_path, clock)
    use_daily(tmp_path, clock, 3)
    assert is_whole(tmp_path, clock), "nothing of the jump is left to be caught up with"


@requirement("record.clock.jump")
@pytest.mark.parametrize("days", [0.9, 1, 2, 40, 4000])
def test_a_clock_that_jumps_back_and_forth_expires_nothing(tmp_path: Path, days: float) -> None:
    clock = Clock()
    fill(tmp_path, clock)
    for _ in range(40):
        clock.days += days
        assert is_whole(tmp_path, clock)
        clock.days -= days - 1 / 24 / 60
        assert is_whole(tmp_path, clock)


@requirement("record.clock.jump")
@pytest.mark.parametrize("first", [0.0, 400_000.0])
def test_a_record_created_under_an_impossible_clock_expires_normally(tmp_path: Path, first: float) -> None:
    """A machine without a battery for its clock begins in 1970, until it has asked for the time."""
    clock = Clock()
    clock.days = first
    record = open_record(tmp_path, days=30, now=clock)
    record.images.keep("scope", IMAGE)
    record.close()
    clock.days = 21_000.0
    open_record(tmp_path, days=30, now=clock).close()
    use_daily(tmp_path, clock, 29)
    record = open_record(tmp_path, days=30, now=clock)
    assert record.images.find_by_prefix("scope", IMAGE.sha256) == (IMAGE.sha256,)
    record.close()
    use_daily(tmp_path, clock, 2)
    record = open_record(tmp_path, days=30, now=clock)
    assert record.images.find_by_prefix("scope", IMAGE.sha256) == ()
    record.close()


@given(st.lists(st.floats(-2 * DAY, 2 * DAY), max_size=60))
def test_record_time_is_never_later_than_the_latest_clock(steps: list[float]) -> None:
    now, wall, latest = RecordTime(1e9, 1e9), 1e9, 1e9
    for step in steps:
        wall += step
        latest = max(latest, wall)
        now = now.advance(wall)
    assert now.time <= latest + DAY + 1e-3


@requirement("record.clock.jump")
def test_a_laptop_that_was_off_for_weeks_loses_nothing(tmp_path: Path) -> None:
    clock = Clock()
    fill(tmp_path, clock)
    clock.days += 40
    for _ in range(10):
        clock.days += 1 / 24
        assert is_whole(tmp_path, clock)


@requirement("record.clock.real", "record.days")
@pytest.mark.parametrize("pause", [1, 7])
def test_unused_rows_expire_once_use_shows_that_the_days_have_passed(tmp_path: Path, pause: int) -> None:
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    record.images.keep("scope", IMAGE)
    record.close()
    passed = 0
    while passed <= 30 + pause:  # a record that is used once a week is one use behind
        clock.days += pause
        passed += pause
        record = open_record(tmp_path, days=30, now=clock)
        there = record.images.find_by_prefix("scope", IMAGE.sha256)
        record.close()
    assert there == ()


@requirement("record.clock.real")
def test_record_time_catches_up_in_the_days_after_a_holiday(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, days=30, now=clock)
    record.images.keep("scope", IMAGE)
    record.close()
    clock.days += 40
    use_daily(tmp_path, clock, 3)
    record = open_record(tmp_path, days=30, now=clock)
    assert record.images.find_by_prefix("scope", IMAGE.sha256) == (IMAGE.sha256,)
    record.close()
    use_daily(tmp_path, clock, 3)
    record = open_record(tmp_path, days=30, now=clock)
    assert kept(record, range(1)) == []
    record.close()


@requirement("record.clock.jump", "record.flights")
@pytest.mark.parametrize("days", [40, -40])
def test_a_lease_lasts_its_seconds_after_any_clock_change(tmp_path: Path, days: float) -> None:
    clock = Clock()
    record = open_record(tmp_path, now=clock)
    record.ledger.add_entry("scope", CALL)
    clock.days += days
    record.ledger.add_entry("scope", CALL)
    assert record.descriptions.claim_lease(FLIGHT, clock(), 6) is None
    clock.days += 5 / DAY
    assert record.descriptions.claim_lease(replace(FLIGHT, owner="you"), clock(), 6) == "me"
    clock.days += 2 / DAY
    assert record.descriptions.claim_lease(replace(FLIGHT, owner="you"), clock(), 6) is None
    record.close()


@requirement("record.clock.jump", "record.flights")
def test_a_lease_ends_although_the_clock_was_set_back_by_weeks(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, now=clock)
    assert record.descriptions.claim_lease(FLIGHT, clock(), 6) is None
    clock.days -= 40
    waited = 0
    while record.descriptions.claim_lease(replace(FLIGHT, owner="you"), clock(), 6) == "me":
        clock.days += 1 / DAY
        waited += 1
    assert waited <= 6
    record.close()


@requirement("record.clock.jump", "retain.cold")
def test_a_conversation_turns_cold_after_a_pause_after_any_clock_change(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, now=clock)
    assert isinstance(record, SqlStore)

    def visit(count: int) -> frozenset[str]:
        names = [f"message {number}" for number in range(count)]
        found = frozenset(record.conversations.visit("scope", "head", names, range(count), life=300.0))
        record.flush()  # as half a second later
        return found

    visit(1)
    clock.days -= 40
    visit(2)
    clock.days += 60 / DAY
    assert not visit(3)
    clock.days += 301 / DAY
    assert visit(4) == {"message 3"}
    clock.days += 40
    assert visit(5) == {"message 3", "message 4"}
    clock.days += 60 / DAY
    assert visit(6) == {"message 3", "message 4"}, "while record time catches up, a minute is a minute"
    record.close()


@requirement("record.clock.jump", "ask.usage")
def test_usage_is_grouped_by_the_day_of_the_wall_clock(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, now=clock)
    days = []
    for step in (0, -40, 80):
        clock.days += step
        days.append(datetime.fromtimestamp(clock()).strftime("%Y-%m-%d"))  # noqa: DTZ006, the day where the user is
        record.ledger.add_entry("scope", CALL)
    spent = record.ledger.sum_spending()
    assert isinstance(spent, tuple)
    assert [each.day for each in spent] == sorted(days)
    assert [entry.at for entry in record.ledger.list_entries()] == [day * DAY for day in (100.0, 60.0, 140.0)]
    record.close()


@requirement("record.clock.jump", "record.processes")
def test_a_process_that_was_idle_for_weeks_does_not_set_time_back(tmp_path: Path) -> None:
    clock = Clock()
    idle = open_record(tmp_path, days=30, now=clock)
    idle.ledger.add_entry("scope", CALL)
    use_daily(tmp_path, clock, 25)
    idle.images.keep("scope", IMAGE)
    use_daily(tmp_path, clock, 25)
    assert idle.images.find_by_prefix("scope", IMAGE.sha256) == (IMAGE.sha256,)
    idle.close()


@given(st.lists(st.floats(-400 * DAY, 400 * DAY), max_size=40))
def test_record_time_never_goes_back_and_never_jumps(steps: list[float]) -> None:
    times, wall = [RecordTime(1e9, 1e9)], 1e9
    for step in steps:
        wall += step
        times.append(times[-1].advance(wall))
    for before, after in pairwise(times):
        assert before.compute_time(after.wall) == pytest.approx(after.time, abs=1e-3)
        assert 0 <= after.steady - before.steady <= DAY
        assert 0 <= after.time - before.time <= 8 * DAY + 1e-3
        assert 0 <= after.owed <= 30 * DAY


@given(st.floats(0, 30 * DAY), st.lists(st.floats(0, DAY), min_size=1, max_size=60))
def test_record_time_catches_up_when_time_has_really_passed(away: float, steps: list[float]) -> None:
    now = RecordTime(1e9, 1e9).advance(1e9 + away)
    for step in steps:
        now = now.advance(now.wall + step)
    assert now.time <= now.wall + 1e-3
    assert now.wall - now.time <= max(0.0, away - DAY - 7 * sum(steps)) + 1e-3


@requirement("record.clock.jump")
@pytest.mark.parametrize("ahead", [0.0, 4000.0])
def test_a_record_of_an_earlier_version_is_migrated_without_loss(tmp_path: Path, ahead: float) -> None:
    """Also one in which a row was used under a clock that was far ahead, or that was not used for years."""
    database = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
    migrate(database, target=11)  # the last one without a clock
    used = 1e9
    for number, at in enumerate((used - 20 * DAY, used, used + ahead * 1e6)):
        row = ("scope", image_of("cat", number).sha256, "image/png", 1, 7, 1, at)
        database.execute("INSERT INTO images VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    columns = "scope, kind, images, seer, hit, about, bytes, used"
    database.execute(f"INSERT INTO entries ({columns}) VALUES ('', 'k', '[]', 's', 0, '{{}}', 1, 1e9)")
    database.close()
    record = open_record(tmp_path, days=30)
    assert len(held(record)) == 3
    assert [entry.at for entry in record.ledger.list_entries()] == [1e9]
    record.close()


def held(record: Store) -> list[int]:
    return [number for number in range(3) if record.images.find_by_prefix("scope", image_of("cat", number).sha256)]
