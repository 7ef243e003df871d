"""Single flight through the record: who waits is answered, who has waited long enough asks, who fails is not shared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from sightline.model.ports import Lease, Store
from sightline.store import open_record
from sightline.vision.single_flight import SharedFlight, SingleFlight, flight_name
from tests.requirements import requirement


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Store]:
    opened = open_record(tmp_path)
    yield opened
    opened.close()


def said(word: str) -> str | None:
    return word or None


class Work:
    """Gives its words one after the other, each when it is let."""

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
    return asyncio.ensure_future(SharedFlight(record, **more).run("scope", "look", work, said, time.time()))


@requirement("record.flights")
async def test_all_who_ask_meanwhile_hear_the_same(record: Store) -> None:
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
async def test_whoever_leaves_holds_up_nobody(record: Store) -> None:
    work = Work("one", "two")
    first = flight(record, work)
    await work.came.acquire()
    second = flight(record, work)
    first.cancel()
    await work.came.acquire()
    work.free.set()
    assert await second == "two"


@requirement("record.flights")
async def test_nobody_waits_for_ever(record: Store) -> None:
    assert record.descriptions.claim_lease(Lease("scope", "look", "somebody who never lands"), 0, 600) is None
    work = Work("one")
    work.free.set()
    assert await flight(record, work, patience=0.2) == "one"


@requirement("record.flights")
async def test_a_look_that_takes_its_time_is_kept(record: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.vision.single_flight._LEASE", 0.4)
    monkeypatch.setattr("sightline.vision.single_flight._RENEWED", 0.1)
    work = Work("one", "two")
    first, second = flight(record, work), flight(record, work)
    await asyncio.sleep(1)
    work.free.set()
    assert [await first, await second] == ["one", "one"]


async def waits(here: SingleFlight[str], work: Work, patience: float | None = None) -> bool:
    """Whether it came in time."""
    with here.joined("look", work) as shared:
        done, _ = await asyncio.wait({shared}, timeout=patience)
        return bool(done)


async def cancelled(*tasks: asyncio.Task[bool]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@requirement("engine.given_up")
async def test_what_the_last_one_gives_up_is_ended_and_begun_anew_for_whoever_comes_next() -> None:
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
async def test_what_somebody_left_for_later_goes_on_whoever_gives_it_up_then() -> None:
    here, work = SingleFlight[str](), Work("one", "two")
    asked = asyncio.ensure_future(waits(here, work))
    await work.came.acquire()
    assert not await waits(here, work, patience=0.01)
    await cancelled(asked)
    assert work.under_way == 1
    work.free.set()
    assert await here.run("look", work) == "one"


def test_a_name_tells_looks_apart() -> None:
    assert flight_name("a", ["b"]) == flight_name("a", ["b"])
    assert len({flight_name("a", "b"), flight_name("ab"), flight_name("b", "a"), flight_name("a", ["b"])}) == 4
