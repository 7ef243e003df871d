"""One function, two ways to call it: `f(…)` waits, `await f.aio(…)` leaves the event loop free meanwhile."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from sightline.look.loop import WAITS, Waits

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_AT_ONCE = 64  # callers that wait aside; what the loop's own threads do for others does not wait for them


class Both(Protocol[P, T_co]):
    """A plain function, so that `help` and editors show it as one, with its second way beside it."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...


def both(core: Callable[P, T]) -> Both[P, T]:
    @functools.wraps(core)
    async def aio(*args: P.args, **kwargs: P.kwargs) -> T:
        return await aside(core, *args, **kwargs)

    aio.__name__, aio.__qualname__ = "aio", f"{core.__name__}.aio"
    found: Any = core
    found.aio = aio
    return cast("Both[P, T]", found)


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
