"""A client that leaves ends the work for it: told by our own server, or found out through plain ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sightline.server import Message
from sightline.surfaces.proxy.context import cancel_on_disconnect
from tests.dial.upstream import GUARD


class Told:
    """A line whose client can be sent away."""

    def __init__(self) -> None:
        self.disconnected = False
        self.leaving: Callable[[], None] | None = None

    async def whole(self, length: int) -> bytes | None:
        return None

    def write(self, data: bytes) -> bool:
        return True

    def leave(self) -> None:
        self.disconnected = True
        if self.leaving is not None:
            self.leaving()


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("early", [False, True])
async def test_work_ends_when_a_line_says_that_its_client_left(early: bool) -> None:
    line, working = Told(), asyncio.Event()

    async def work() -> str:
        async with cancel_on_disconnect(never, line=line):
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
    assert line.leaving is None


async def test_work_ends_when_plain_asgi_says_that_its_client_left() -> None:
    left = asyncio.Event()

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async with asyncio.timeout(GUARD):
        async with cancel_on_disconnect(receive):
            left.set()
            await asyncio.Event().wait()
