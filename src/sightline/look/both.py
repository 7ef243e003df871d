"""One function, two ways to call it: `f(…)` waits, `await f.aio(…)` leaves the event loop free meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

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
