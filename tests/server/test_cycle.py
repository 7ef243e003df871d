"""Responses of an application as the client receives them."""

from __future__ import annotations

import asyncio

import pytest

from tests.dial.upstream import until
from tests.server.serving import answered, served

_ASKED = b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n"


async def test_a_head_is_sent_before_the_body_exists() -> None:
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
async def test_a_header_with_a_line_break_is_never_sent(header: tuple[bytes, bytes]) -> None:
    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        await send({"type": "http.response.start", "status": 200, "headers": [header]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    said = await answered(app, _ASKED)
    assert b"x-" not in said
    assert b"x one" not in said


async def test_an_incomplete_response_keeps_its_head_and_is_cut() -> None:
    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})

    assert await answered(app, _ASKED) == b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n"
