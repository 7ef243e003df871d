"""One function, two ways to call it: `f(…)` waits, `await f.aio(…)` leaves the event loop free meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Both(Generic[P, T]):
    def __init__(self, core: Callable[P, T]) -> None:
        self._core = core
        update_wrapper(self, core)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._core(*args, **kwargs)

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(self._core, *args, **kwargs)


def waited(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of what can only be awaited. In a thread of its own: a loop may run in this one already."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, work).result()
