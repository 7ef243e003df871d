"""Single flight, in the process and across processes: the same question, asked several times at once, is paid once."""

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
_LEASE = 6.0  # seconds after which others stop waiting for a process that has died
_RENEWED = 2.0
_POLLED = 0.05
_PATIENCE = 500.0  # seconds: the longest that a question takes which is tried twice


def flight_name(*parts: Json) -> str:
    """Return a name that is the same only where everything that makes a difference to the answer is the same."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class _Running(Generic[T]):
    """A task, and how many wait for it."""

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.waiting = 0
        self.wanted = False  # by a caller that has left and may ask again


class SingleFlight(Generic[T]):
    """One task for one key in this process, however many callers wait for it.

    A caller that is cancelled doesn't end the task for the others; it ends with the last one that waits. A caller that
    stops waiting without being cancelled lets the task go on.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Running[T]] = {}

    @contextmanager
    def joined(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> Iterator[asyncio.Task[T]]:
        flight = self._flights.get(key) or self._start(key, work)
        flight.waiting += 1
        try:
            yield flight.task
            flight.wanted = True
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.wanted:
                self._forget(key, flight)  # before it has ended: no caller may join it from now on
                flight.task.cancel()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._flights

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with self.joined(key, work) as task:
            return await asyncio.shield(task)

    def _start(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> _Running[T]:
        flight = self._flights[key] = _Running(asyncio.create_task(work()))
        flight.task.add_done_callback(lambda _: self._forget(key, flight))
        return flight

    def _forget(self, key: Hashable, flight: _Running[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


class SharedFlight:
    """Single flight among processes: one of them asks under a lease in the record, and the others wait for its answer.

    A failure is not shared: it may be the fault of a key or a connection that only that process has.
    """

    def __init__(self, record: Store, patience: float = _PATIENCE) -> None:
        self._record = record
        self._patience = patience

    async def run(
        self,
        scope: str,
        name: str,
        work: Callable[[], Awaitable[T]],
        encode: Callable[[T], str | None],
        since: float,
    ) -> T | str:
        """Return the result of `work`, or the encoded result of a process that did the same work after `since`.

        `encode` returns None for a failure.
        """
        flight, end = Lease(scope, name, secrets.token_hex(8)), time.monotonic() + self._patience
        while ahead := await asyncio.to_thread(self._record.descriptions.claim_lease, flight, since, _LEASE):
            answer = await self._wait_for(replace(flight, owner=ahead), end)
            if answer is not None:
                return answer
            if time.monotonic() >= end:
                return await work()
        return await self._work(flight, work, encode)

    async def _wait_for(self, ahead: Lease, end: float) -> str | None:
        """Return the answer of another process; None: it failed, or `end` has passed."""
        while time.monotonic() < end:
            known, answer = self._record.descriptions.read_lease(ahead)
            if answer is not None or not known:
                return answer
            await asyncio.sleep(_POLLED)
        return None

    async def _work(self, flight: Lease, work: Callable[[], Awaitable[T]], encode: Callable[[T], str | None]) -> T:
        """Do the work under the lease; whatever becomes of it, no process keeps waiting."""
        over = asyncio.Event()
        renewing = asyncio.ensure_future(self._renew(flight, over))
        answer: str | None = None
        try:
            made = await work()
            answer = encode(made)
            return made
        finally:
            over.set()
            await renewing  # or it would claim a flight that has landed
            await asyncio.to_thread(self._record.descriptions.finish_lease, flight, answer)

    async def _renew(self, flight: Lease, over: asyncio.Event) -> None:
        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), _RENEWED)
            except TimeoutError:
                await asyncio.to_thread(self._record.descriptions.claim_lease, flight, 0.0, _LEASE)
