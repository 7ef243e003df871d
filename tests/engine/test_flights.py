"""Single flight through the record: who waits is answered, who has waited long enough asks, who fails is not shared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from sightline.engine.flights import named, once
from sightline.model.ports import Flight, Record
from sightline.store import open_record
from tests.requirements import requirement


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    opened = open_record(tmp_path)
    yield opened
    opened.close()


def said(word: str) -> str | None:
    return word or None


class Work:
    """Gives its words one after the other, each when it is let."""

    def __init__(self, *words: str) -> None:
        self.words, self.begun = list(words), 0
        self.came, self.free = asyncio.Semaphore(0), asyncio.Event()

    async def __call__(self) -> str:
        self.begun += 1
        self.came.release()
        word = self.words[self.begun - 1]
        await self.free.wait()
        return word


def flight(record: Record, work: Callable[[], Awaitable[str]], **more: float) -> asyncio.Task[str]:
    return asyncio.ensure_future(once(record, "scope", "look", work, said, time.time(), **more))


@requirement("record.flights")
async def test_all_who_ask_meanwhile_hear_the_same(record: Record) -> None:
    work = Work("one", "two")
    flights = [flight(record, work) for _ in range(5)]
    await work.came.acquire()
    work.free.set()
    assert await asyncio.gather(*flights) == ["one"] * 5
    assert await flight(record, work) == "two", "what is asked for afterwards is asked"


@requirement("record.flights")
async def test_a_failure_is_not_shared(record: Record) -> None:
    work = Work("", "two")
    first, second = flight(record, work), flight(record, work)
    work.free.set()
    assert sorted(await asyncio.gather(first, second)) == ["", "two"]


@requirement("record.flights")
async def test_whoever_leaves_holds_up_nobody(record: Record) -> None:
    work = Work("one", "two")
    first = flight(record, work)
    await work.came.acquire()
    second = flight(record, work)
    first.cancel()
    await work.came.acquire()
    work.free.set()
    assert await second == "two"


@requirement("record.flights")
async def test_nobody_waits_for_ever(record: Record) -> None:
    assert record.claim(Flight("scope", "look", "somebody who never lands"), 0, 600) is None
    work = Work("one")
    work.free.set()
    assert await flight(record, work, patience=0.2) == "one"


@requirement("record.flights")
async def test_a_look_that_takes_its_time_is_kept(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.engine.flights._LEASE", 0.4)
    monkeypatch.setattr("sightline.engine.flights._RENEWED", 0.1)
    work = Work("one", "two")
    first, second = flight(record, work), flight(record, work)
    await asyncio.sleep(1)
    work.free.set()
    assert [await first, await second] == ["one", "one"]


def test_a_name_tells_looks_apart() -> None:
    assert named("a", ["b"]) == named("a", ["b"])
    assert len({named("a", "b"), named("ab"), named("b", "a"), named("a", ["b"])}) == 4
