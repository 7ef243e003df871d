"""Visits to prompt caches: a conversation whose cache is cold is marked for good."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.ports import Store
from sightline.store import open_record
from sightline.store.sql_store import SqlStore
from tests.requirements import requirement
from tests.store.writer import image_of

LIFE = 300.0
HEAD = "tools and system"


class Clock:
    def __init__(self) -> None:
        self.seconds = 1e9

    def __call__(self) -> float:
        return self.seconds

    def after(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["disk", "memory"])
def timed(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    opened = open_record(tmp_path / "record", kind=request.param, now=clock)
    yield opened
    opened.close()


def said(*words: str) -> list[str]:
    """The names of messages, each made of all that was said up to it."""
    return ["/".join(words[: index + 1]) for index in range(len(words))]


def steps(count: int, start: str = "q") -> list[str]:
    """A conversation in which the assistant has spoken so often; it is the tools' turn at every even index."""
    return said(start, *(word for step in range(count) for word in (f"a{step}", f"t{step}")))


def visit(record: Store, names: list[str], scope: str = "mine", head: str = HEAD) -> list[int]:
    """The messages at which a request met a cold cache."""
    met = record.conversations.visit(scope, head, names, range(0, len(names), 2), LIFE)
    return [index for index, name in enumerate(names) if name in met]


@requirement("retain.cold")
def test_a_conversation_that_continues_in_time_is_never_cold(timed: Store, clock: Clock) -> None:
    for count in range(12):
        assert visit(timed, steps(count)) == []
        clock.after(LIFE - 1)


@requirement("record.forget")
def test_a_visit_that_waits_to_be_written_does_not_come_back_after_a_forget(tmp_path: Path) -> None:
    """Its names are hashes, which could confirm a guessed text."""
    here, elsewhere = open_record(tmp_path), open_record(tmp_path)
    assert isinstance(here, SqlStore)
    for count in (2, 3):
        visit(here, steps(count))
    elsewhere.forget(None)
    here.flush()
    assert here.transactions.fetch_all("SELECT name FROM moments") == []
    for record in (here, elsewhere):
        record.close()


@requirement("retain.cold")
def test_a_conversation_that_was_idle_is_cold_at_that_message_for_good(timed: Store, clock: Clock) -> None:
    visit(timed, steps(3))
    clock.after(LIFE + 1)
    assert visit(timed, steps(4)) == [8]
    assert visit(timed, steps(4)) == [8], "the same request, sent once more"
    for count in range(5, 12):
        clock.after(10)
        assert visit(timed, steps(count)) == [8]
    clock.after(LIFE + 1)
    assert visit(timed, steps(12)) == [8, 24]


@requirement("retain.cold")
def test_a_conversation_with_replaced_messages_is_cold(timed: Store, clock: Clock) -> None:
    visit(timed, steps(9))
    clock.after(5)
    compacted = said("summary", "a", "t")
    assert visit(timed, compacted) == [2]
    assert visit(timed, [*compacted, "summary/a/t/a2", "summary/a/t/a2/t2"]) == [2]


@requirement("retain.cold")
def test_a_conversation_that_was_changed_far_back_is_cold(timed: Store, clock: Clock) -> None:
    for count in range(12):
        visit(timed, steps(count))
    before = steps(4)
    edited = [*before, *(f"{before[-1]}/other {number}" for number in range(16))]
    assert visit(timed, edited) == [24]


@requirement("retain.cold")
def test_a_client_that_rewrites_its_last_message_keeps_the_cache_warm(timed: Store, clock: Clock) -> None:
    visit(timed, steps(1))
    for count in range(2, 12):
        names = steps(count)
        assert visit(timed, [*names[:-1], f"{names[-1]} and the time is {count}"]) == []
        clock.after(20)


def test_many_messages_in_one_request_are_one_step(timed: Store) -> None:
    words = ["q"]
    ends = [0]
    for step in range(4):
        names = said(*words)
        assert timed.conversations.visit("mine", HEAD, names, ends, LIFE) == frozenset()
        words += [f"a{step}", *(f"t{step}.{number}" for number in range(9))]
        ends.append(len(words) - 1)


def test_an_unanswered_request_is_recognized_when_it_is_repeated(timed: Store, clock: Clock) -> None:
    visit(timed, steps(2))
    clock.after(LIFE + 1)
    asked = [*steps(2), f"{steps(2)[-1]}/wait"]
    assert timed.conversations.visit("mine", HEAD, asked, [0, 2, 5], LIFE) == {asked[5]}
    again = [*asked, f"{asked[-1]}/go on"]
    assert timed.conversations.visit("mine", HEAD, again, [0, 2, 6], LIFE) == {asked[5]}


def test_an_unknown_conversation_is_not_cold(timed: Store) -> None:
    assert visit(timed, steps(30)) == []
    assert visit(timed, []) == []
    assert visit(timed, [], head="another") == []


@requirement("record.scope.rows")
def test_visits_are_separate_for_each_scope(timed: Store, clock: Clock) -> None:
    visit(timed, steps(3), "mine")
    clock.after(LIFE + 1)
    assert visit(timed, steps(4), "yours") == []
    assert visit(timed, steps(4), "mine") == [8]
    assert visit(timed, steps(5), "yours") == []


@requirement("retain.fold", "record.restart")
def test_cold_visits_are_known_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    for count in range(1, 6):
        clock.after(LIFE + 1 if count % 2 else 10)
        record = open_record(tmp_path, now=clock)
        met = visit(record, steps(count))
        record.close()
    assert met == [6, 10]


@requirement("record.forget")
def test_forgetting_all_images_forgets_the_visits(tmp_path: Path, clock: Clock) -> None:
    record = open_record(tmp_path, now=clock)
    visit(record, steps(3))
    record.images.keep("mine", image_of("cat", 1))
    record.forget(image_of("cat", 1).sha256)
    clock.after(LIFE + 1)
    assert visit(record, steps(4)) == [8], "one image fewer does not change what was said"
    assert record.forget(None) == 0
    assert visit(record, steps(5)) == []
    record.forget(None)
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert steps(4)[-1].encode() not in held
    record.close()


@requirement("record.days", "record.lru")
def test_visits_expire_unless_their_conversation_continues(tmp_path: Path, clock: Clock) -> None:
    def reopened() -> Store:
        return open_record(tmp_path, now=clock, days=30)

    record = reopened()
    visit(record, steps(3))
    visit(record, steps(3, "another"))
    clock.after(LIFE + 1)
    assert visit(record, steps(4)) == [8]
    for count in range(5, 14):
        record.close()
        clock.after(86400.0 * 20)
        record = reopened()
        assert visit(record, steps(count))[:1] == [8]
    assert visit(record, steps(4, "another")) == [8], "all of it is gone: a conversation that was told anew"
    record.close()


@requirement("record.bytes")
def test_visits_count_against_the_limit(tmp_path: Path, clock: Clock) -> None:
    record = open_record(tmp_path, bytes_limit=16 * 1024, now=clock)
    for number in range(200):
        clock.after(1)
        visit(record, steps(1, f"conversation {number}"))
    record.close()
    database = sqlite3.connect(tmp_path / "record.sqlite")
    rows = [name for (name,) in database.execute("SELECT name FROM moments")]
    database.close()
    assert len(rows) <= 16 * 1024 / 256
    assert f"conversation {199}/a0/t0" in rows


@requirement("record.processes")
def test_concurrent_processes_agree_on_what_was_cold(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sightline.store import open_record\n"
        "from tests.store.test_visits import steps, visit\n"
        "record = open_record(Path(sys.argv[1]), now=lambda: 1e9 + 1000)\n"
        "print(*(visit(record, steps(9)) for _ in range(20)), sep='\\n'); record.close()"
    )
    record = open_record(tmp_path, now=lambda: 1e9)
    visit(record, steps(8))
    record.close()
    command = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert {line for process in processes for line in process.communicate()[0].splitlines()} == {"[18]"}


@given(st.lists(st.sampled_from([10.0, LIFE - 1, LIFE + 1, 5000.0]), min_size=1, max_size=30))
def test_a_conversation_is_cold_exactly_after_a_long_pause(pauses: list[float]) -> None:
    clock = Clock()
    record = open_record(Path(), kind="memory", now=clock)
    visit(record, steps(0))
    expected: list[int] = []
    for number, pause in enumerate(pauses, 1):
        clock.after(pause)
        expected += [2 * number] if pause > LIFE else []
        assert visit(record, steps(number)) == expected
    record.close()


@requirement("retain.cold")
def test_counting_tokens_does_not_warm_a_cache(timed: Store, clock: Clock) -> None:
    names = said(*steps(4))
    visit(timed, names)
    for _ in range(10):
        clock.after(LIFE / 5)
        timed.conversations.visit("mine", HEAD, names, [len(names) - 1], LIFE, touch=False)
    assert visit(timed, [*names, *said(*steps(1, "r"))]) != []
