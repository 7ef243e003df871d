"""An event loop in a thread of its own: what has to wait goes on there, whoever asks for it and from wherever."""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Awaitable, Callable, Coroutine
from threading import Thread
from typing import Any, TypeVar

from sightline.look.once import once

T = TypeVar("T")
_GRACE = 2.0  # seconds for what is under way when the process ends
_closings: list[Callable[[], Awaitable[None]]] = []


def wait(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, for callers that wait."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


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
