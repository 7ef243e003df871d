"""One function, two ways to call it: `f(…)` waits, `await f.aio(…)` leaves the event loop free meanwhile."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Generic, ParamSpec, TypeVar

from sightline.look.loop import WAITS, Waits

P = ParamSpec("P")
T = TypeVar("T")
_AT_ONCE = 64  # callers that wait aside; what the loop's own threads do for others does not wait for them


class Both(Generic[P, T]):
    def __init__(self, core: Callable[P, T]) -> None:
        self._core = core
        functools.update_wrapper(self, core)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._core(*args, **kwargs)

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return await aside(self._core, *args, **kwargs)


async def aside(core: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `core` gives, from a thread. A caller that is cancelled ends what the thread waits for, too."""
    waits = Waits()
    before = WAITS.set(waits)
    try:
        work = functools.partial(copy_context().run, core, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(_threads(), work)
    except asyncio.CancelledError:
        waits.end()
        raise
    finally:
        WAITS.reset(before)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "sightline-aside")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a fork has none of them
