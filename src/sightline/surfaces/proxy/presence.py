"""Work that ends when its client leaves."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from sightline.server import Line
from sightline.surfaces.proxy.bodies import Receive


class Presence:
    """Around the work for one request: when the client hangs up, whoever waits upstream is cancelled."""

    def __init__(self, receive: Receive, after: asyncio.Event | None = None, line: Line | None = None) -> None:
        """`after`: until then somebody else receives, and would be told."""
        self._receive = receive
        self._after = after
        self._line = line
        self._watch: asyncio.Future[None] | None = None
        self._gone = False

    async def __aenter__(self) -> None:
        worker = asyncio.current_task()
        if self._line is None:
            self._watch = asyncio.ensure_future(self._watched(worker))
            return
        self._line.leaving = partial(self._left, worker)
        if self._line.disconnected:
            self._left(worker)

    async def _watched(self, worker: asyncio.Task[Any] | None) -> None:
        if self._after is not None:
            await self._after.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left(worker)

    def _left(self, worker: asyncio.Task[Any] | None) -> None:
        self._gone = True
        if worker is not None:
            worker.cancel()

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        if self._watch is not None:
            self._watch.cancel()
        if self._line is not None:
            self._line.leaving = None
        worker = asyncio.current_task()
        if self._gone and kind is asyncio.CancelledError and worker is not None:
            worker.uncancel()
            return True
        return False
