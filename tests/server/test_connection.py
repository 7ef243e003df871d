"""A server connection from its first byte to its last: framing, keep-alive, closing and draining."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from sightline.server import DIRECT_CONNECTION, App, Receive, Send, serve_app
from sightline.server.protocol import HttpProtocol
from tests.dial.upstream import until
from tests.requirements import requirement
from tests.server.serving import answered, served

GET = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"
CLOSING = b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n"
Scope = dict[str, Any]


def post(length: int, *headers: bytes, version: bytes = b"HTTP/1.1") -> bytes:
    lines = [b"POST / " + version, b"host: here", b"content-length: %d" % length, *headers, b"", b""]
    return b"\r\n".join(lines)


def saying(*pieces: bytes, headers: tuple[tuple[bytes, bytes], ...] = (), status: int = 200) -> App:
    """Return an application that answers without looking at the request."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    return app


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:  # it was reset, not closed
        return b""


async def test_a_response_of_unknown_length_is_chunked_only_for_http_1_1() -> None:
    app = saying(b"one", b"two")
    head, _, body = (await answered(app, CLOSING)).partition(b"\r\n\r\n")
    assert (b"transfer-encoding: chunked" in head, body) == (True, b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
    head, _, body = (await answered(app, b"GET / HTTP/1.0\r\n\r\n")).partition(b"\r\n\r\n")
    assert (b"transfer-encoding" in head, b"connection: close" in head, body) == (False, True, b"onetwo")


@pytest.mark.parametrize(("method", "status"), [(b"HEAD", 200), (b"GET", 204), (b"GET", 304)])
async def test_a_response_without_a_body_has_no_framing(method: bytes, status: int) -> None:
    said = await answered(saying(status=status), CLOSING.replace(b"GET", method))
    assert said.startswith(b"HTTP/1.1 %d" % status)
    assert said.endswith(b"\r\nconnection: close\r\n\r\n")
    assert b"transfer-encoding" not in said


@pytest.mark.parametrize("pieces", [(b"too long",), (b"sho",)], ids=["longer", "shorter"])
async def test_a_response_that_differs_from_its_length_is_cut(
    pieces: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
) -> None:
    said = await answered(saying(*pieces, headers=((b"content-length", b"5"),)), GET)
    assert len(said.partition(b"\r\n\r\n")[2]) < 5
    assert "content-length" in caplog.text


async def test_a_failing_application_is_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("no such thing")

    with caplog.at_level(logging.ERROR):
        said = await answered(app, GET + GET)
    assert said.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert said.count(b"HTTP/1.1") == 1
    assert "no such thing" in caplog.text


@pytest.mark.parametrize("closing", [b"connection: close", b"x-a: b"])
async def test_a_response_is_read_by_a_client_that_is_still_sending(closing: bytes) -> None:
    """A connection that is closed with unread bytes is reset, and the response lost with it."""
    length = 30_000_000
    refusal = saying(b"no", headers=((b"content-length", b"2"),), status=413)
    async with served(refusal) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(post(length, closing))
        writer.write(bytes(length))
        await writer.drain()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413")
        assert await reader.readexactly(2) == b"no"
        writer.close()


async def test_a_400_is_read_by_a_client_that_is_still_sending() -> None:
    async with served(saying()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"BAD / HTTP/1.1\r\nhost: here\r\n\r\n" + bytes(500_000))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 400")
        writer.close()


async def test_an_unread_body_is_not_waited_for() -> None:
    """Whether a client that expects 100 Continue sends its body after a final response is up to the client."""
    said = await answered(saying(b"no"), post(9, b"expect: 100-continue"))
    assert said.count(b"HTTP/1.1") == 1
    assert b"connection: close" in said


async def test_the_scope_has_the_address_of_the_client() -> None:
    clients: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        clients.append(scope["client"])
        await saying(b"ok")(scope, receive, send)

    async with served(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET + CLOSING)
        await reader.read()
        assert clients == [writer.get_extra_info("sockname")] * 2
        writer.close()


async def test_requests_on_one_connection_are_all_answered() -> None:
    async with served(saying(b"ok", headers=((b"content-length", b"2"),))) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(GET)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
        writer.close()


async def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpProtocol, "keep_alive_seconds", 0.05)
    said = await answered(saying(b"ok", headers=((b"content-length", b"2"),)), GET + GET)
    assert said.count(b"HTTP/1.1 200") == 2


async def test_an_empty_line_does_not_keep_an_idle_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpProtocol, "keep_alive_seconds", 0.05)
    async with served(saying(b"ok", headers=((b"content-length", b"2"),))) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        await reader.readuntil(b"ok")
        writer.write(b"\r\n")
        with suppress(ConnectionError):  # on a busy machine, it was closed before
            assert await reader.read() == b""
        writer.close()


@requirement("http.pipelined")
async def test_too_many_pipelined_requests_are_refused() -> None:
    started = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal started
        started += 1
        await saying(b"ok", headers=((b"content-length", b"2"),))(scope, receive, send)

    said = await answered(app, GET * 3000)
    assert said.count(b"HTTP/1.1 200") == started < 3000
    assert b"HTTP/1.1 400" in said[-300:]
    assert b"too many requests" in said[-300:]


@requirement("http.head_bound")
async def test_the_end_of_another_request_does_not_count_as_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that begins in the last bytes of one read and ends in the next is not a large head."""
    most = 4096
    monkeypatch.setattr("sightline.server._READ_BUFFER_BYTES", most)
    monkeypatch.setattr("sightline.server.protocol._MAX_HEAD_BYTES", most)
    first = post(3000) + bytes(3000)
    padded = CLOSING.replace(b"host", b"x-a: " + b"y" * 2000 + b"\r\nhost")
    long = CLOSING.replace(b"host", b"x-a: " + b"y" * 3 * most + b"\r\nhost")
    for between in (b"", GET * 3):
        said = await answered(_reading(), first + between + padded)
        assert said.count(b"HTTP/1.1 200") == 2 + between.count(b"GET")
    assert b"HTTP/1.1 400" in await answered(_reading(), long)


def _reading() -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await saying(b"ok", headers=((b"content-length", b"2"),))(scope, receive, send)

    return app


async def test_receive_returns_when_the_response_is_complete() -> None:
    """As ASGI says: whatever still receives learns that the exchange is over."""
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive()) == {"type": "http.request", "body": b"", "more_body": False}
        waiting = asyncio.ensure_future(_forward(receive, seen))
        await asyncio.sleep(0)
        await saying(b"ok")(scope, receive, send)
        await waiting

    await answered(app, CLOSING)
    assert seen == ["http.disconnect"]


async def _forward(receive: Receive, seen: list[str]) -> None:
    seen.append((await receive())["type"])


@pytest.mark.parametrize("broken", [b"zz\r\n", b"1\r\nxy\r\n"])
async def test_a_bad_body_cuts_a_response_that_has_started(broken: bytes) -> None:
    """No second status would fit into what has begun."""
    left: list[bool] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        line = scope["extensions"][DIRECT_CONNECTION]
        gone = asyncio.Event()
        line.on_disconnect = gone.set
        await gone.wait()
        left.append(line.disconnected)

    async with served(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n")
        assert await reader.readuntil(b"begun")
        writer.write(broken + GET)
        assert not (await read_to_end(reader)).strip()
        writer.close()
        await until(lambda: bool(left))
    assert left == [True]


async def _serving_one(app: App, act: Callable[[int, asyncio.Task[None]], Awaitable[None]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        serving = asyncio.ensure_future(serve_app(app, sock, signals=False))
        async with asyncio.timeout(60):
            await act(sock.getsockname()[1], serving)


async def test_a_stopping_server_finishes_its_requests() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await go_on.wait()
        await saying(b"done", headers=((b"content-length", b"4"),))(scope, receive, send)

    async def act(port: int, serving: asyncio.Task[None]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        idle, other = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        await begun.wait()
        serving.cancel()
        assert await idle.read() == b"", "what waits for nothing is closed at once"
        go_on.set()
        said = await reader.read()
        assert said.endswith(b"connection: close\r\n\r\ndone")
        with pytest.raises(asyncio.CancelledError):
            await serving
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        other.close()

    await _serving_one(app, act)


async def test_a_stopping_server_does_not_wait_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.server._DRAIN_SECONDS", 0.1)
    begun, ended = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def act(port: int, serving: asyncio.Task[None]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        await begun.wait()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert ended.is_set()
        assert await read_to_end(reader) == b""
        writer.close()

    await _serving_one(app, act)


async def test_a_pipelined_request_has_no_context_of_the_one_before() -> None:
    seen: list[str] = []
    label = contextvars.ContextVar("label", default="none")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(label.get())
        label.set("an earlier request's")
        await saying(b"ok", headers=((b"content-length", b"2"),))(scope, receive, send)

    await answered(app, GET + GET + CLOSING)
    assert seen == ["none"] * 3
