"""Requests with the head of the last one on their connection, or nearly: they are read as if they came alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.server.serving import served

_HEAD = b"POST /a?b HTTP/1.1\r\nHost: here\r\nX-One: 1\r\nContent-Length: 2\r\nX-Two: 2\r\n\r\n"
_SAME = _HEAD + b"{}"
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
Seen = tuple[str, bytes, bytes, tuple[tuple[bytes, bytes], ...], bytes]


async def _send(requests: list[bytes]) -> tuple[list[Seen], bytes]:
    """Send requests, each after the answer to the last one, and return what the application and the client see."""
    seen: list[Seen] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        seen.append((scope["method"], scope["raw_path"], scope["query_string"], tuple(scope["headers"]), body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    said = b""
    async with served(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in requests[:-1]:
            writer.write(request)
            said += await reader.readexactly(len(_ANSWER))
        writer.write(requests[-1])
        writer.write_eof()
        said += await reader.read()
        writer.close()
    return seen, said


@pytest.mark.parametrize(
    "last",
    [
        _SAME,
        _SAME.replace(b"Length: 2", b"Length: 3").replace(b"{}", b"{ }"),
        _SAME.replace(b"Length: 2", b"Length: 0").replace(b"{}", b""),
        _SAME.replace(b"Length: 2", b"Length: 02"),
        _SAME.replace(b"Length: 2", b"Length: 2 "),
        _SAME.replace(b"Length: 2", b"Length:"),
        _SAME.replace(b"Length: 2", b"Length: +2"),
        _SAME.replace(b"Length: 2", b"Length: 2, 2"),
        _SAME.replace(b"Length: 2", b"Length: 2\r\nContent-Length: 2"),
        _SAME.replace(b"Length: 2", b"Length: 2\r\nTransfer-Encoding: chunked"),
        _SAME.replace(b"X-One: 1", b"X-One: 3"),
        _SAME.replace(b"X-Two: 2", b"X-Two: 3"),
        _SAME.replace(b"POST", b"PUT"),
        _SAME + _SAME,
        _SAME + b"GET",
        b"\r\n" + _SAME,
    ],
)
async def test_a_request_like_the_last_one_is_read_as_if_it_came_alone(last: bytes) -> None:
    seen, said = await _send([_SAME, _SAME, _SAME, last])
    alone, answer = await _send([last])
    assert said == 3 * _ANSWER + answer
    assert seen[3:] == alone


@pytest.mark.parametrize("length", [b"Content-Length: 2\r\n", b"Transfer-Encoding: chunked\r\n", b""])
async def test_a_body_after_requests_without_one_is_read_as_if_it_came_alone(length: bytes) -> None:
    bare = b"POST /a HTTP/1.1\r\nHost: here\r\nX-One: 1\r\n"
    body = {b"C": b"{}", b"T": b"2\r\n{}\r\n0\r\n\r\n", b"": b""}[length[:1]]
    last = bare + length + b"\r\n" + body
    seen, said = await _send([bare + b"\r\n", bare + b"\r\n", last, last])
    alone, answer = await _send([last])
    assert said == 2 * _ANSWER + 2 * answer
    assert seen[2:] == 2 * alone


async def test_the_host_of_an_absolute_target_is_read_again_with_each_request() -> None:
    request = _SAME.replace(b"/a?b", b"http://there/a?b")
    same_host = request.replace(b"Host: here", b"Host: there")
    seen, _ = await _send([request, request, same_host, request])
    assert [dict(headers)[b"host"] for _, _, _, headers, _ in seen] == [b"there"] * 4


async def test_a_head_that_offers_an_upgrade_again_is_read_as_if_it_came_alone() -> None:
    request = _SAME.replace(b"X-One: 1", b"Connection: Upgrade\r\nUpgrade: h2c")
    seen, said = await _send([request] * 4)
    alone, answer = await _send([request])
    assert (seen, said) == (4 * alone, 4 * answer)
