"""A client that leaves ends the work for it: told by our own server, or found out through plain ASGI."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from sightline.surfaces.proxy.bodies import Message
from sightline.surfaces.proxy.cycle import App
from sightline.surfaces.proxy.presence import Presence
from sightline.surfaces.proxy.serve import listen
from tests.dial.upstream import GUARD, until


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
        async with Presence(never, line=line):
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
        async with Presence(receive):
            left.set()
            await asyncio.Event().wait()


@asynccontextmanager
async def served(app: App) -> AsyncIterator[int]:
    """The port on which our server serves an application."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        serving = asyncio.ensure_future(listen(app, sock, signals=False))
        try:
            async with asyncio.timeout(GUARD):
                yield sock.getsockname()[1]
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def answered(app: App, requests: bytes) -> bytes:
    """What an application says through our server, until the connection ends."""
    async with served(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(requests)
        said = await reader.read()
        writer.close()
    return said


_ASKED = b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n"


async def test_a_head_goes_out_before_there_is_a_body() -> None:
    seen = asyncio.Event()
    said: list[bytes] = []

    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-one", b"1")]})
        await until(seen.is_set)
        await send({"type": "http.response.body", "body": b"late", "more_body": False})

    async def client(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_ASKED)
        said.append(await reader.readuntil(b"\r\n\r\n"))
        seen.set()
        said.append(await reader.read())
        writer.close()

    async with served(app) as port:
        await client(port)
    assert said == [
        b"HTTP/1.1 200 OK\r\nx-one: 1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        b"4\r\nlate\r\n0\r\n\r\n",
    ]


@pytest.mark.parametrize("header", [(b"x-one", b"1\r\nx-two: 2"), (b"x one", b"1"), (b"x-one", b"\x00")])
async def test_a_header_that_would_be_another_is_never_sent(header: tuple[bytes, bytes]) -> None:
    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        await send({"type": "http.response.start", "status": 200, "headers": [header]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    said = await answered(app, _ASKED)
    assert b"x-" not in said
    assert b"x one" not in said


async def test_an_answer_without_its_end_keeps_its_head_and_is_cut() -> None:
    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})

    assert await answered(app, _ASKED) == b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n"
