"""A client whose stream has not begun is kept alive while something is done for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar, runtime_checkable

from sightline.engine import Reading
from sightline.surfaces.proxy.errand import Errand

T = TypeVar("T")


@runtime_checkable
class _Open(Protocol):
    """What holds a connection."""

    def close(self) -> None: ...


async def in_time(work: Awaitable[T], errand: Errand, reading: Reading | None, patience: float) -> T:
    """What the work comes to. A client that can wait gets a sign of life every `patience` seconds until then."""
    if not errand.can_wait(reading):
        return await work
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=patience))[0]:
            await errand.reply.stalled()
    except BaseException:
        task.add_done_callback(_close_late)
        task.cancel()
        raise
    return task.result()


def _close_late(task: asyncio.Future[Any]) -> None:
    """The client left just as the answer came."""
    if not task.cancelled() and task.exception() is None and isinstance(found := task.result(), _Open):
        found.close()
