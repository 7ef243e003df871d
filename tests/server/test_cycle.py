"""Responses of an application as the client receives them."""

from __future__ import annotations

import asyncio

import pytest

from sightline.server.asgi import HEAD_NOTES
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


_HOST = b"host: here\r\n"
_FIRST = b"POST /a HTTP/1.1\r\n" + _HOST + b"x-one: 1\r\ncontent-length: 2\r\nx-two: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    ("second", "is_shared"),
    [
        (_FIRST, True),
        (_FIRST.replace(b"length: 2", b"length: 3").replace(b"{}", b"{ }"), True),
        (_FIRST.replace(b"/a", b"/b"), False),
        (_FIRST.replace(b"POST", b"PUT"), False),
        (_FIRST.replace(b"x-one: 1", b"x-one: 3"), False),
        (_FIRST.replace(b"x-two: 2", b"x-two: 3"), False),
        (_FIRST.replace(b"x-two: 2\r\n", b""), False),
        (_FIRST.replace(b"x-two: 2", b"x-two: 2\r\norigin: null"), False),
        (_FIRST.replace(b"content-length: 2", b"x-length: 2").replace(b"{}", b""), False),
        (_FIRST.replace(b"content-length: 2", b"transfer-encoding: chunked").replace(b"{}", b"0\r\n\r\n"), False),
    ],
)
async def test_requests_share_notes_if_only_the_content_length_differs(second: bytes, is_shared: bool) -> None:
    notes: list[dict[object, object]] = []

    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        notes.append(scope[HEAD_NOTES])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    await answered(app, _FIRST + second + _ASKED)
    assert len(notes) == 3
    assert (notes[0] is notes[1]) is is_shared
    assert notes[2] is not notes[1]


async def test_a_head_that_is_not_accepted_is_refused_after_one_that_is() -> None:
    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    said = await answered(app, _FIRST + _FIRST.replace(b"host: here", b"host: he re"))
    assert [line.split()[1] for line in said.splitlines() if line.startswith(b"HTTP/1.1")] == [b"200", b"400"]
