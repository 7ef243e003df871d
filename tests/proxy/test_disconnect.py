"""A disconnect cancels the work for the client, on our own server and on plain ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sightline.server import Message
from sightline.surfaces.proxy.request_context import CancelOnDisconnect
from tests.dial.upstream import GUARD


class Told:
    """A line whose client can be sent away."""

    task: asyncio.Task[str]

    def __init__(self) -> None:
        self.disconnected = False
        self.on_disconnect: Callable[[], None] | None = None

    async def read_body(self, length: int) -> bytes | None:
        return None

    def write_body(self, data: bytes) -> bool:
        return True

    def leave(self) -> None:
        self.disconnected = True
        if self.on_disconnect is not None:
            self.on_disconnect()


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("early", [False, True])
async def test_work_ends_when_the_direct_connection_reports_a_disconnect(early: bool) -> None:
    line, working = Told(), asyncio.Event()

    async def work() -> str:
        line.task = task
        with CancelOnDisconnect(never, direct=line):
            working.set()
            await asyncio.Event().wait()
        return "ended"

    if early:
        line.leave()
    async with asyncio.timeout(GUARD):
        task = asyncio.ensure_future(work())
        await working.wait()
        if not early:
            line.leave()
        assert await task == "ended"
    assert line.on_disconnect is None


async def test_work_ends_when_plain_asgi_reports_a_disconnect() -> None:
    left = asyncio.Event()

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async with asyncio.timeout(GUARD):
        with CancelOnDisconnect(receive):
            left.set()
            await asyncio.Event().wait()
