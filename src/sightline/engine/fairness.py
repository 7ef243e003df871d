"""Turns at something that only a few can have at a time, shared fairly among callers.

A caller that asks for a thousand turns gets one, then each other caller that waits gets one, and so on: nobody waits
behind all that another one has asked for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


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
