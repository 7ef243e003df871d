"""Single flight in a process and among processes: shared answers, bounded waiting, no shared failures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from sightline.model.ports import Lease, Store
from sightline.store import open_record
from sightline.vision.concurrency import CrossProcessFlight, SingleFlight, choose_pause, hash_question, name_look
from tests.requirements import requirement
from tests.store.remote import make_remote


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Store]:
    opened = open_record(tmp_path)
    yield opened
    opened.close()


def said(word: str) -> str | None:
    return word or None


class Work:
    """Returns its answers one after the other, each when the test allows it."""

    def __init__(self, *words: str) -> None:
        self.words, self.begun, self.under_way = list(words), 0, 0
        self.came, self.free = asyncio.Semaphore(0), asyncio.Event()

    async def __call__(self) -> str:
        self.begun += 1
        self.came.release()
        word = self.words[self.begun - 1]
        self.under_way += 1
        try:
            await self.free.wait()
        finally:
            self.under_way -= 1
        return word


def flight(record: Store, work: Callable[[], Awaitable[str]], **more: float) -> asyncio.Task[str]:
    return asyncio.ensure_future(
        CrossProcessFlight(record.descriptions, **more).run("scope", "look", lambda _: work(), said, time.time())
    )


@requirement("record.flights")
async def test_concurrent_callers_get_the_same_answer(record: Store) -> None:
    work = Work("one", "two")
    flights = [flight(record, work) for _ in range(5)]
    await work.came.acquire()
    work.free.set()
    assert await asyncio.gather(*flights) == ["one"] * 5
    assert await flight(record, work) == "two", "what is asked for afterwards is asked"


@requirement("record.flights")
async def test_a_failure_is_not_shared(record: Store) -> None:
    work = Work("", "two")
    first, second = flight(record, work), flight(record, work)
    work.free.set()
    assert sorted(await asyncio.gather(first, second)) == ["", "two"]


@requirement("record.flights")
async def test_a_cancelled_owner_does_not_block_the_others(record: Store) -> None:
    work = Work("one", "two")
    first = flight(record, work)
    await work.came.acquire()
    second = flight(record, work)
    first.cancel()
    await work.came.acquire()
    work.free.set()
    assert await second == "two"


@requirement("record.flights")
async def test_waiting_for_another_process_is_bounded(record: Store) -> None:
    assert record.descriptions.claim_lease(Lease("scope", "look", "somebody who never lands"), 0, 600) is None
    work = Work("one")
    work.free.set()
    assert await flight(record, work, patience=0.2) == "one"


@requirement("record.shared.loop")
async def test_a_lease_on_a_server_is_polled_in_threads(record: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert record.descriptions.claim_lease(Lease("scope", name_look(["ab" * 32], "?"), "another"), 0, 600) is None
    queries = make_remote(record, monkeypatch)
    shared, work = CrossProcessFlight(record.descriptions, patience=0.2), Work("one")
    work.free.set()
    await shared.wait_for_looks("scope", ["ab" * 32])
    assert await shared.run("scope", name_look(["ab" * 32], "?"), lambda _: work(), said, time.time()) == "one"
    assert len(queries) > 2
    assert not any(query.in_event_loop for query in queries)


@requirement("record.shared.loop")
def test_a_lease_is_polled_less_often_the_longer_it_lasts() -> None:
    assert [choose_pause(waited) for waited in (0.0, 0.3, 2.0, 60.0)] == [0.05, 0.05, 0.2, 0.5]


@requirement("record.flights")
async def test_a_long_running_owner_keeps_its_lease(record: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.vision.concurrency._LEASE_SECONDS", 0.4)
    monkeypatch.setattr("sightline.vision.concurrency._RENEW_SECONDS", 0.1)
    work = Work("one", "two")
    first, second = flight(record, work), flight(record, work)
    await asyncio.sleep(1)
    work.free.set()
    assert [await first, await second] == ["one", "one"]


async def waits(here: SingleFlight[str], work: Work, patience: float | None = None) -> bool:
    """Return whether it finished in time."""
    with here.join("look", work) as shared:
        done, _ = await asyncio.wait({shared}, timeout=patience)
        return bool(done)


async def cancelled(*tasks: asyncio.Task[bool]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@requirement("engine.given_up")
async def test_work_that_every_caller_cancelled_starts_again_for_the_next() -> None:
    here, work = SingleFlight[str](), Work("one", "two")
    first, last = (asyncio.ensure_future(waits(here, work)) for _ in range(2))
    await work.came.acquire()
    await cancelled(first)
    assert work.under_way == 1, "somebody waits for it"
    last.cancel()
    await asyncio.sleep(0)
    asked = asyncio.ensure_future(here.run("look", work))
    await asyncio.wait_for(work.came.acquire(), 30)
    assert work.under_way == 1
    work.free.set()
    assert await asked == "two"


@requirement("engine.given_up")
async def test_deferred_work_continues_after_a_cancellation() -> None:
    here, work = SingleFlight[str](), Work("one", "two")
    asked = asyncio.ensure_future(waits(here, work))
    await work.came.acquire()
    assert not await waits(here, work, patience=0.01)
    await cancelled(asked)
    assert work.under_way == 1
    work.free.set()
    assert await here.run("look", work) == "one"


def test_different_questions_have_different_names() -> None:
    assert hash_question("a", ["b"]) == hash_question("a", ["b"])
    assert len({hash_question("a", "b"), hash_question("ab"), hash_question("b", "a"), hash_question("a", ["b"])}) == 4
