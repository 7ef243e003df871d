"""Turns at what only a few can have at a time, shared fairly among callers; and the thread for long computations."""

from __future__ import annotations

import asyncio
import gc
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 8  # of the 32 and more that an event loop has for everything


class FairSemaphore:
    def __init__(self, most: int) -> None:
        """`most` turns are given at a time."""
        self._free = most
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # whose turn is next comes first

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
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
            if not future.cancelled():  # it was given a turn at the same moment
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
    """Short work in the threads that all share, such as writing to the record: few at a time, callers in turns."""

    def __init__(self) -> None:
        self._turns = FairSemaphore(_THREADS)

    async def run(self, caller: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in a thread when it is the caller's turn, and return what it returns."""
        async with self._turns.turn(caller):
            return await asyncio.to_thread(work, *args, **kwargs)


class Offload:
    """One thread: two would compete with the event loop for the interpreter lock, and be no faster than one."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "sightline-read")
        self._turns = FairSemaphore(1)

    async def run(self, caller: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in the thread when it is the caller's turn, and return what it returns."""
        async with self._turns.turn(caller):
            return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: _run(work, *args, **kwargs))


def _run(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` without the collector of cycles, which would go through all that is parsed again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return work(*args, **kwargs)
    finally:
        if collects:
            gc.enable()
