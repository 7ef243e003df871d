"""Whether a scope has answers of the tool loop, as a replica caches it: never later than a client can tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sightline.memory_reads import NotInMemoryError, read_in_memory
from sightline.model.records import LoopAnswer
from sightline.store import open_record, sql_conversations
from sightline.store.blobs import ByteCache, CachedBlobs, MemoryBlobs
from sightline.store.sql_conversations import ABSENT_SECONDS
from sightline.store.sql_store import SqlStore
from tests.requirements import requirement
from tests.store.remote import Query, make_remote

ANSWER = LoopAnswer("key", "visible", "", [], ())


@dataclass
class Steady:
    """A clock that only the test moves."""

    now: float = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Steady:
    clock = Steady()
    monkeypatch.setattr(sql_conversations, "time", clock)
    return clock


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlStore]:
    """A record whose other processes announce what they write."""
    opened = open_record(Path("unused"), kind="memory")
    assert isinstance(opened, SqlStore)
    opened.transactions.backend.row_cache.is_polled = True
    yield opened
    opened.close()


@pytest.fixture
def queries(record: SqlStore, monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    return make_remote(record, monkeypatch)


@requirement("record.shared.answers")
def test_that_there_are_none_counts_for_a_short_time_after_the_last_poll(
    record: SqlStore, steady: Steady, queries: list[Query]
) -> None:
    cache, has_answers = record.transactions.backend.row_cache, record.conversations.has_answers
    for polled_at in (0.0, steady.now, steady.now + 10):
        cache.checked_at = polled_at
        steady.now = max(polled_at, steady.now)
        queries.clear()
        assert not has_answers("scope")
        steady.now += ABSENT_SECONDS * 0.9
        assert not has_answers("scope")
        assert len(queries) <= 1
    assert not queries, "the last poll counts"
    steady.now += ABSENT_SECONDS
    assert not has_answers("scope")
    assert len(queries) == 1, "after that it is read again"


@requirement("record.shared.answers")
def test_only_the_first_answer_of_a_scope_makes_its_client_wait(
    record: SqlStore, steady: Steady, queries: list[Query]
) -> None:
    keep = record.conversations.keep_answer
    assert not record.conversations.has_answers("scope")
    assert keep("scope", ANSWER) == ABSENT_SECONDS
    queries.clear()
    assert record.conversations.has_answers("scope")
    assert queries == []
    steady.now += 0.5
    assert keep("scope", replace(ANSWER, key="soon after it")) == ABSENT_SECONDS - 0.5
    steady.now += ABSENT_SECONDS
    assert keep("scope", replace(ANSWER, key="later")) == 0
    assert keep("another", ANSWER) == ABSENT_SECONDS


@requirement("record.shared.answers")
def test_the_client_of_a_first_answer_waits_less_if_that_was_expected(
    record: SqlStore, steady: Steady, queries: list[Query]
) -> None:
    keep, expect = record.conversations.keep_answer, record.conversations.expect_answer
    assert not record.conversations.has_answers("scope")
    expect("scope")
    assert record.conversations.has_answers("scope")
    assert record.conversations.read_answers("scope", ["", "key"])[0].legs == [], "it is no answer"
    steady.now += 0.5
    queries.clear()
    expect("scope")
    assert queries == [], "another call of the same answer"
    assert keep("scope", ANSWER) == ABSENT_SECONDS - 0.5
    expect("another")
    steady.now += ABSENT_SECONDS
    assert keep("another", ANSWER) == 0


@requirement("record.shared.answers")
def test_a_scope_whose_answers_were_deleted_has_a_first_one_again(record: SqlStore, steady: Steady) -> None:
    keep = record.conversations.keep_answer
    assert keep("scope", ANSWER) == ABSENT_SECONDS
    steady.now += ABSENT_SECONDS
    assert keep("scope", replace(ANSWER, key="later")) == 0
    with record.transactions.begin() as tx:  # by another process, whose announcement has not arrived
        tx.connection.execute("DELETE FROM legs")
    assert keep("scope", ANSWER) == ABSENT_SECONDS


@requirement("record.shared.answers")
def test_a_late_read_does_not_hide_an_answer_of_this_process(
    record: SqlStore, steady: Steady, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = record.transactions.backend.database
    fetch_one = database.fetch_one

    def read_slowly(query: str, *values: object) -> object:
        found = fetch_one(query, *values)
        monkeypatch.setattr(database, "fetch_one", fetch_one)
        record.conversations.keep_answer("scope", ANSWER)
        return found

    monkeypatch.setattr(database, "fetch_one", read_slowly)
    assert not record.conversations.has_answers("scope"), "it was read before the answer was written"
    assert record.conversations.has_answers("scope")


@requirement("record.shared.loop")
def test_only_unknown_blobs_have_to_be_asked_for() -> None:
    blobs = CachedBlobs(MemoryBlobs(), ByteCache(1000, 10))
    blobs.write("known", b"bytes")
    assert read_in_memory(blobs.has, "known")
    assert read_in_memory(blobs.read, "known") == b"bytes"
    for read in (blobs.has, blobs.confirm, blobs.read):
        with pytest.raises(NotInMemoryError):
            read_in_memory(read, "unknown")
    assert not blobs.has("unknown")


@requirement("record.no_statements", "record.recent")
def test_a_record_on_a_disk_finds_answers_of_other_processes_at_once(tmp_path: Path) -> None:
    here, elsewhere = open_record(tmp_path), open_record(tmp_path)
    assert isinstance(here, SqlStore)
    statements: list[str] = []
    here.transactions.backend.database._reader.set_trace_callback(statements.append)  # type: ignore[attr-defined]
    assert not read_in_memory(here.conversations.has_answers, "scope")
    assert len(statements) == 1
    assert not read_in_memory(here.conversations.has_answers, "scope")
    assert len(statements) == 1, "that there are none is known"
    elsewhere.conversations.expect_answer("scope")
    assert elsewhere.conversations.keep_answer("scope", ANSWER) == 0, "no process is late"
    assert here.conversations.has_answers("scope")
    found = here.conversations.read_answers("scope", ["", "key"])
    assert [each.key for each in found] == ["key"], "none is expected"
    assert here.forget(None) == 0
    assert not elsewhere.conversations.has_answers("scope")
    for record in (here, elsewhere):
        record.close()
