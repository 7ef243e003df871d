"""Single flight, here and among processes: the same look, asked for in several places at once, is paid for once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar

from sightline.model.ports import Lease, Store
from sightline.model.scene import Json

T = TypeVar("T")
_LEASE = 6.0  # seconds after which a process that died is no longer waited for
_RENEWED = 2.0
_POLLED = 0.05
_PATIENCE = 500.0  # as long as a look takes at the most that is tried twice


def named(*asked: Json) -> str:
    """A name for a look: the same for the same of everything that makes a difference to the answer."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


class _Shared(Generic[T]):
    """A task, and who waits for it."""

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.waiting = 0
        self.wanted = False  # also by somebody who has left: it is to be there the next time


class Here(Generic[T]):
    """One task in this process for one question, however many ask it; who leaves does not end it for the others.

    Whoever has waited long enough lets it go on. Where all were cancelled, nobody wants it, and it ends with the last.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Shared[T]] = {}

    @contextmanager
    def joined(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> Iterator[asyncio.Task[T]]:
        flight = self._flights.get(key) or self._begun(key, work)
        flight.waiting += 1
        try:
            yield flight.task
            flight.wanted = True
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.wanted:
                self._forget(key, flight)  # before it has ended: nobody may join it any more
                flight.task.cancel()

    async def once(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with self.joined(key, work) as task:
            return await asyncio.shield(task)

    def _begun(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> _Shared[T]:
        flight = self._flights[key] = _Shared(asyncio.create_task(work()))
        flight.task.add_done_callback(lambda _: self._forget(key, flight))
        return flight

    def _forget(self, key: Hashable, flight: _Shared[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


async def once(
    record: Store,
    scope: str,
    name: str,
    work: Callable[[], Awaitable[T]],
    words: Callable[[T], str | None],
    since: float,
    patience: float = _PATIENCE,
) -> T | str:
    """What `work` gives; or the words of somebody else who made the same look since then.

    A failure, which has no words, is not shared: it may be a key or a connection of that process alone.
    """
    flight, end = Lease(scope, name, secrets.token_hex(8)), time.monotonic() + patience
    while ahead := await asyncio.to_thread(record.descriptions.claim_lease, flight, since, _LEASE):
        answer = await _landed(record, replace(flight, owner=ahead), end)
        if answer is not None:
            return answer
        if time.monotonic() >= end:
            return await work()
    return await _made(record, flight, work, words)


async def _landed(record: Store, ahead: Lease, end: float) -> str | None:
    """What came of another's look; None: nothing, or nothing yet."""
    while time.monotonic() < end:
        known, answer = record.descriptions.read_lease(ahead)
        if answer is not None or not known:
            return answer
        await asyncio.sleep(_POLLED)
    return None


async def _made(record: Store, flight: Lease, work: Callable[[], Awaitable[T]], words: Callable[[T], str | None]) -> T:
    """The look itself; whatever becomes of it, nobody goes on waiting."""
    over = asyncio.Event()
    renewing = asyncio.ensure_future(_renewed(record, flight, over))
    answer: str | None = None
    try:
        made = await work()
        answer = words(made)
        return made
    finally:
        over.set()
        await renewing  # or it would claim what has landed
        await asyncio.to_thread(record.descriptions.finish_lease, flight, answer)


async def _renewed(record: Store, flight: Lease, over: asyncio.Event) -> None:
    while not over.is_set():
        try:
            await asyncio.wait_for(over.wait(), _RENEWED)
        except TimeoutError:
            await asyncio.to_thread(record.descriptions.claim_lease, flight, 0.0, _LEASE)
