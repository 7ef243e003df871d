"""Work that takes its time: the client is told that it goes on, and when the client gives up, it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from mcp.server.context import ServerRequestContext

T = TypeVar("T")
_BETWEEN = 1.0  # seconds


async def attended(ctx: ServerRequestContext[Any, Any], what: str, work: Coroutine[Any, Any, T]) -> T:
    task, began = asyncio.ensure_future(work), time.monotonic()
    try:
        while not (await asyncio.wait({task}, timeout=_BETWEEN))[0]:
            seconds = time.monotonic() - began
            await ctx.session.report_progress(round(seconds, 1), message=f"{what}: {seconds:.0f} s")
    except BaseException:
        task.cancel()
        raise
    return task.result()
