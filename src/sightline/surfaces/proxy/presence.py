"""Work that ends when its client leaves."""

from __future__ import annotations

import asyncio
from typing import Any

from sightline.surfaces.proxy.bodies import Receive


class Presence:
    """Around the work for one request: when the client hangs up, whoever waits upstream is cancelled."""

    def __init__(self, receive: Receive, after: asyncio.Event | None = None) -> None:
        """`after`: until then somebody else receives, and would be told."""
        self._receive = receive
        self._after = after
        self._gone = False

    async def __aenter__(self) -> None:
        self._watch = asyncio.ensure_future(self._leaving(asyncio.current_task()))

    async def _leaving(self, worker: asyncio.Task[Any] | None) -> None:
        if self._after is not None:
            await self._after.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        if worker is not None:
            worker.cancel()

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        self._watch.cancel()
        worker = asyncio.current_task()
        if self._gone and kind is asyncio.CancelledError and worker is not None:
            worker.uncancel()
            return True
        return False
