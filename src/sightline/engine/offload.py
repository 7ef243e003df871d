"""Long computations, run in a thread so that the event loop goes on serving other requests.

Python code in a thread gives the interpreter lock away every few milliseconds. A call into C may hold it until the end,
which is why bodies are bounded before they are parsed (`wire/jsonsize`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Offload:
    """One thread: two would compete with the event loop for the interpreter lock, and be no faster than one."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "sightline-read")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in the thread, and return what it returns."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))

    async def run_if(self, heavy: bool, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in the thread if it is heavy, else at once."""
        return await self.run(work, *args, **kwargs) if heavy else work(*args, **kwargs)
