"""Long computations, run in a thread so that the event loop goes on serving other requests.

Python code in a thread gives the interpreter lock away every few milliseconds. A call into C may hold it until the end,
which is why bodies are bounded before they are parsed (`wire/jsonsize`).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from sightline.vision.fairness import FairSemaphore

P = ParamSpec("P")
T = TypeVar("T")


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
