"""One function, two ways to call it: `f(…)` waits, `await f.aio(…)` leaves the event loop free meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

from sightline.look.loop import WAITS, Waits

P = ParamSpec("P")
T = TypeVar("T")


class Both(Generic[P, T]):
    def __init__(self, core: Callable[P, T]) -> None:
        self._core = core
        update_wrapper(self, core)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._core(*args, **kwargs)

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return await aside(self._core, *args, **kwargs)


async def aside(core: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `core` gives, from a thread. A caller that is cancelled ends what the thread waits for, too."""
    waits = Waits()
    before = WAITS.set(waits)
    try:
        return await asyncio.to_thread(core, *args, **kwargs)
    except asyncio.CancelledError:
        waits.end()
        raise
    finally:
        WAITS.reset(before)
