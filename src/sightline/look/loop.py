"""An event loop in a thread of its own: what has to wait goes on there, whoever asks for it and from wherever.

Whoever asks may leave: then all that is waited for on their behalf ends, down to the connection to a provider.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextvars import ContextVar
from threading import Thread
from typing import Any, TypeVar

from sightline.look.once import once

T = TypeVar("T")
_GRACE = 2.0  # seconds for what is under way when the process ends
_closings: list[Callable[[], Awaitable[None]]] = []


class Waits:
    """All that one caller waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._futures: set[Future[Any]] = set()
        self._left = False

    def add(self, future: Future[Any]) -> None:
        with self._lock:
            self._futures.add(future)
            left = self._left
        future.add_done_callback(self._futures.discard)
        if left:
            future.cancel()

    def end(self) -> None:
        """The caller has left: nothing of it goes on, and nothing new begins."""
        with self._lock:
            self._left, futures = True, tuple(self._futures)
        for future in futures:
            future.cancel()


WAITS: ContextVar[Waits | None] = ContextVar("WAITS", default=None)
"""On whose behalf something is waited for; None: a caller that cannot leave."""


def wait(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, for callers that wait."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    if (waits := WAITS.get()) is not None:
        waits.add(future)
    try:
        return future.result()
    except CancelledError:  # no failure of the work: nobody may answer it with a result of some kind
        raise asyncio.CancelledError from None


def begun(work: Coroutine[Any, Any, T]) -> Future[T]:
    """What `work` comes to, for callers that go on meanwhile and may cancel it."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def at_end(close: Callable[[], Awaitable[None]]) -> None:
    """Something that lives in the loop, and is closed there when the process ends."""
    _closings.append(close)


@once
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="sightline", daemon=True)
    thread.start()
    atexit.register(_end, loop, thread, os.getpid())
    return loop


def _end(loop: asyncio.AbstractEventLoop, thread: Thread, process: int) -> None:
    if process != os.getpid():  # a fork has the loop of its parent, and no thread that runs it
        return
    asyncio.run_coroutine_threadsafe(_stop(), loop)
    thread.join(_GRACE)
    if not thread.is_alive():
        loop.close()


async def _stop() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_GRACE / 2)
    for close in _closings:
        await close()
    await asyncio.sleep(0)  # a transport that was closed says good-bye in the next round
    asyncio.get_running_loop().stop()


os.register_at_fork(after_in_child=_loop.cache_clear)
