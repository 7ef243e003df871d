"""Concurrency primitives: an LRU cache, fair semaphores and threads, single flight, and quotas per turn.

Nothing here knows about images. The server and all surfaces use these classes too.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar

from sightline.memory_reads import read_record
from sightline.model.ports import DescriptionStore, Lease
from sightline.model.scene import Json

P = ParamSpec("P")
T = TypeVar("T")

_MAX_THREADS = 8  # of the 32 or more that an event loop has for everything
UNNAMED_TURN = ""  # the turn of calls whose host doesn't name one
_TURNS = 1024  # whose calls are counted, per session
_IDLE_SECONDS = 60.0  # after which calls without a turn's name belong to another turn
_NAMED_IDLE_SECONDS = 3600.0  # … and calls with a name
_LEASE_SECONDS = 6.0  # after which other processes stop waiting for one that has died
_RENEW_SECONDS = 2.0
_POLL_SECONDS, _MAX_POLL_SECONDS = 0.05, 0.5
_MAX_WAIT_SECONDS = 500.0  # the longest time that a question takes, including its retry


class LruCache(Generic[T]):
    """A cache that evicts the least recently used items once their total weight exceeds its capacity. Thread-safe."""

    def __init__(self, capacity: int) -> None:
        self._lock = threading.Lock()
        self._capacity = capacity
        self._weight = 0
        self._items: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._items

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            found = self._items.get(key)
            if found is None:
                return None
            self._items.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: T, weight: int = 1) -> T:
        """Store a value, and return it."""
        with self._lock:
            if key in self._items:
                self._weight -= self._items.pop(key)[1]
            self._items[key] = value, weight
            self._weight += weight
            self._evict()
        return value

    def discard(self, key: Hashable) -> None:
        """Remove a value, if it is there."""
        with self._lock:
            if key in self._items:
                self._weight -= self._items.pop(key)[1]

    def resize(self, capacity: int) -> None:
        """Set the capacity, and evict what exceeds it."""
        with self._lock:
            self._capacity = capacity
            self._evict()

    def _evict(self) -> None:
        while self._weight > self._capacity and self._items:
            self._weight -= self._items.popitem(last=False)[1][1]


class FairSemaphore:
    """A semaphore that serves waiting callers round-robin, so that one with many requests doesn't block the others."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # the next caller comes first

    @asynccontextmanager
    async def take_turn(self, caller: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it within the context."""
        await self._acquire(caller)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, caller: str) -> None:
        if self._free:
            self._free -= 1
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # it got its turn just before it was cancelled
                self._release()
            raise

    def _release(self) -> None:
        while self._waiting:
            caller, queue = next(iter(self._waiting.items()))
            future = queue.popleft()
            if queue:
                self._waiting.move_to_end(caller)
            else:
                del self._waiting[caller]
            if not future.done():
                future.set_result(None)
                return
        self._free += 1


class FairThreads:
    """A few of the event loop's threads, for short work such as writing to the record; callers take turns."""

    def __init__(self) -> None:
        self._turns = FairSemaphore(_MAX_THREADS)

    async def run(self, caller: str, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in a thread when it is the caller's turn, and return its result."""
        async with self._turns.take_turn(caller):
            return await asyncio.to_thread(work, *args, **kwargs)


class ComputeThread:
    """One thread for long computations; callers take turns.

    A second thread would only compete for the interpreter lock, and the two would be no faster than one.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "sightline-read")
        self._turns = FairSemaphore(1)

    async def run(self, caller: str, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in the thread when it is the caller's turn, and return its result."""
        async with self._turns.take_turn(caller):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, lambda: _run_without_gc(work, *args, **kwargs))


def _run_without_gc(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` without the cycle collector, which would traverse a large parsed body again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return work(*args, **kwargs)
    finally:
        if was_enabled:
            gc.enable()


class _Flight(Generic[T]):
    """A task, and how many callers wait for it."""

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.waiting = 0
        self.wanted = False  # a caller has stopped waiting without being cancelled, and may ask again


class SingleFlight(Generic[T]):
    """One task per key in this process, however many callers wait for it.

    A cancelled caller doesn't end the task for the others; the task is cancelled with the last caller that waits. A
    caller that stops waiting without being cancelled lets the task go on.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._flights

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the task for `key`; start `work` if there is none yet."""
        with self.join(key, work) as task:
            return await asyncio.shield(task)

    @contextmanager
    def join(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> Iterator[asyncio.Task[T]]:
        """Wait for the task for `key` within the context; start `work` if there is none yet."""
        flight = self._flights.get(key) or self._start(key, work)
        flight.waiting += 1
        try:
            yield flight.task
            flight.wanted = True
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.wanted:
                self._forget(key, flight)  # before the task ends: no caller may join it from now on
                flight.task.cancel()

    def _start(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> _Flight[T]:
        flight = self._flights[key] = _Flight(asyncio.create_task(work()))
        flight.task.add_done_callback(lambda _: self._forget(key, flight))
        return flight

    def _forget(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


class CrossProcessFlight:
    """Single flight among processes: one does the work under a lease in the record, the others wait for its result.

    Failures are not shared: a key or a connection may be missing in that process only.
    """

    def __init__(self, descriptions: DescriptionStore, patience: float = _MAX_WAIT_SECONDS) -> None:
        self._descriptions = descriptions
        self._patience = patience

    async def run(
        self,
        scope: str,
        name: str,
        work: Callable[[Lease], Awaitable[T]],
        encode: Callable[[T], str | None],
        since: float,
    ) -> T | str:
        """Return the result of `work`, or the encoded result of a process that did the same work after `since`.

        `work` gets the lease: what it writes under one that it has lost meanwhile must not replace what the next owner
        has written. `encode` returns None for a failure.
        """
        lease, end = Lease(scope, name, secrets.token_hex(8)), time.monotonic() + self._patience
        while owner := await asyncio.to_thread(self._descriptions.claim_lease, lease, since, _LEASE_SECONDS):
            answer = await self._wait_for(replace(lease, owner=owner), end)
            if answer is not None:
                return answer
            if time.monotonic() >= end:
                return await work(lease)
        return await self._work_under_lease(lease, work, encode)

    async def wait_for_looks(self, scope: str, images: Sequence[str]) -> None:
        """Wait until no process looks at any of these images, given by their hashes, under the name of `name_look`."""
        began, parts = time.monotonic(), [*map(_shorten, images)]
        while await read_record(self._has_open_lease, scope, parts):
            await asyncio.sleep(choose_pause(time.monotonic() - began))
            if time.monotonic() >= began + self._patience:
                return

    def _has_open_lease(self, scope: str, parts: Sequence[str]) -> bool:
        return any(self._descriptions.has_open_lease(scope, part) for part in parts)

    async def _wait_for(self, lease: Lease, end: float) -> str | None:
        """Return the answer of the lease's owner; None: it failed, or `end` has passed."""
        began = time.monotonic()
        while time.monotonic() < end:
            is_held, answer = await read_record(self._descriptions.read_lease, lease)
            if answer is not None or not is_held:
                return answer
            await asyncio.sleep(choose_pause(time.monotonic() - began))
        return None

    async def _work_under_lease(
        self, lease: Lease, work: Callable[[Lease], Awaitable[T]], encode: Callable[[T], str | None]
    ) -> T:
        """Do the work, and end the lease even if it fails, so that no process keeps waiting."""
        finished = asyncio.Event()
        renewal = asyncio.ensure_future(self._renew(lease, finished))
        answer: str | None = None
        try:
            result = await work(lease)
            answer = encode(result)
            return result
        finally:
            finished.set()
            await renewal  # it must not claim the lease again once that has ended
            await asyncio.to_thread(self._descriptions.finish_lease, lease, answer)

    async def _renew(self, lease: Lease, finished: asyncio.Event) -> None:
        while not finished.is_set():
            try:
                await asyncio.wait_for(finished.wait(), _RENEW_SECONDS)
            except TimeoutError:
                await asyncio.to_thread(self._descriptions.claim_lease, lease, 0.0, _LEASE_SECONDS)


def choose_pause(waited: float) -> float:
    """Return for how long to wait before the record is asked again: a tenth of the time that was waited before."""
    return min(max(waited / 10, _POLL_SECONDS), _MAX_POLL_SECONDS)


def name_look(images: Sequence[str], question: str) -> str:
    """Return a name for a lease that also says which images the question is about."""
    return f"{','.join(map(_shorten, images))} {question}"


def _shorten(sha256: str) -> str:
    return sha256[:16]


def hash_question(*parts: Json) -> str:
    """Return a hash of all parts of a question."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class TurnQuota:
    """Counts how often a model was asked in each turn of a conversation, for the turns that were used last.

    A turn ends when no model was asked for a while, sooner where the host doesn't name its turns: otherwise a long
    conversation would be one turn, and so would a question that is asked in the same words again and again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._counts: LruCache[tuple[int, float]] = LruCache(_TURNS)  # how often, and when last
        self._lock = threading.Lock()
        self._clock = clock

    def try_take(self, turn: str, limit: int) -> bool:
        """Count one more call of a turn and return True, or return False at `limit` calls (0: no limit)."""
        with self._lock:
            now = self._clock()
            count = self._count_calls(turn, now)
            if limit and count >= limit:
                return False
            self._counts.put(turn, (count + 1, now))
            return True

    def give_back(self, turn: str) -> None:
        """Uncount a call that did not take place after all."""
        with self._lock:
            count, last = self._counts.get(turn) or (0, self._clock())
            self._counts.put(turn, (max(0, count - 1), last))

    def _count_calls(self, turn: str, now: float) -> int:
        count, last = self._counts.get(turn) or (0, now)
        return 0 if now - last > (_IDLE_SECONDS if turn == UNNAMED_TURN else _NAMED_IDLE_SECONDS) else count


class CallerQuotas:
    """A quota for each caller, for the callers that called last. Thread-safe: a caller never has two."""

    def __init__(self, capacity: int) -> None:
        self._quotas: LruCache[TurnQuota] = LruCache(capacity)
        self._lock = threading.Lock()

    def find(self, caller: str) -> TurnQuota:
        """Return the quota of a caller, which is a new one for a new caller."""
        with self._lock:
            return self._quotas.get(caller) or self._quotas.put(caller, TurnQuota())
