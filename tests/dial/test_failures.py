"""The HTTP client against misbehaving upstreams: each failure is a refusal or an error, never a hang or a leak."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from sightline.dial import BrokenResponse, EndlessResponse, Exchange, Header, HttpClient
from sightline.model.refusal import Refusal
from tests.dial.test_http_client import everything, fetched, forever, saying, sent
from tests.dial.upstream import Peer, listening, turn, until_it_rests
from tests.refusals import assert_refusal
from tests.requirements import requirement


async def test_a_stale_idle_connection_is_replaced() -> None:
    async with listening(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")) as upstream:
        dialler = HttpClient()
        for number in (1, 2, 3):
            assert await fetched(dialler, upstream) == b"ok"
            assert upstream.connections == number
        await dialler.close()


@requirement("dial.once")
async def test_a_request_on_a_stale_connection_is_retried_once() -> None:
    async def script(peer: Peer) -> None:
        if peer.number == 1:
            await peer.request()
            await peer.answer()
        await peer.request()  # heard, and not answered

    async with listening(script) as upstream:
        dialler = HttpClient()
        await fetched(dialler, upstream, body=[b"first"])
        outcome = await dialler.send("POST", upstream.url, [], [b"second"])
        assert_refusal(outcome, "unavailable", f"localhost:{upstream.port} ", "connection")
        assert [request.body for request in upstream.requests] == [b"first", b"second", b"second"]
        assert upstream.connections == 2


@requirement("dial.once")
async def test_a_request_that_may_have_been_processed_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection was alive when the request came, and ended long after it."""
    monkeypatch.setattr("sightline.dial.exchange._RACE_SECONDS", 0.0)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        await peer.request()

    async with listening(script) as upstream:
        dialler = HttpClient()
        await fetched(dialler, upstream)
        assert isinstance(await dialler.send("POST", upstream.url, [], [b"{}"]), Refusal)
        assert (upstream.connections, len(upstream.requests)) == (1, 2)


@requirement("dial.once")
async def test_a_connection_that_ends_during_the_request_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.dial.exchange._RACE_SECONDS", 0.0)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        if peer.number == 1:
            await peer.reader.readexactly(1000)  # of many, and no more

    async with listening(script) as upstream:
        dialler = HttpClient()
        await fetched(dialler, upstream)
        assert await fetched(dialler, upstream, body=[bytes(50_000_000)]) == b"ok"
        assert (upstream.connections, len(upstream.requests)) == (2, 2)
        await dialler.close()


@pytest.mark.parametrize(
    "header",
    [
        (b"x-goog-api-key", b"abcd\r\nX-Evil: 1"),
        (b"x-a\r\nx-b", b"c"),
        (b"x-a", b"b\nc"),
        (b"x-a", b"b\rc"),
        (b"x-a", b"b\0c"),
    ],
)
@requirement("dial.lines")
async def test_a_header_with_a_line_break_is_refused(header: Header) -> None:
    async with listening(forever) as upstream:
        outcome = await HttpClient().send("POST", upstream.url, [(b"x-first", b"1"), header], [b"{}"])
        assert isinstance(outcome, Refusal)
        assert (outcome.code, upstream.connections) == ("invalid_input", 0)


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"x-header: " + b"y" * 8000 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nx-header: ", b"y" * 8000),
        (b"", b"HTTP/1.1 100 Continue\r\nx-header: " + b"y" * 8000 + b"\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"x-a: " + b"y" * 8000 + b"\r\n"),
    ],
    ids=["headers", "one header", "interim answers", "trailers"],
)
@requirement("dial.head_bound")
async def test_an_endless_response_head_is_cut_off(start: bytes, more: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(start)
        with contextlib.suppress(ConnectionError):
            while True:
                await peer.say(more)

    async with listening(script) as upstream:
        dialler = HttpClient()
        outcome = await dialler.send("POST", upstream.url, [], [b"{}"])
        if isinstance(outcome, Exchange):
            with pytest.raises(EndlessResponse):
                await everything(outcome)
        else:
            assert_refusal(outcome, "unavailable", f"localhost:{upstream.port} ", "head")
        await upstream.ended.wait()


@requirement("dial.once")
async def test_a_request_with_a_partial_response_is_not_retried() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\ncont")

    async with listening(script) as upstream:
        dialler = HttpClient()
        await fetched(dialler, upstream)
        outcome = await dialler.send("POST", upstream.url, [], [b"{}"])
        assert isinstance(outcome, Refusal)
        assert (upstream.connections, len(upstream.requests)) == (1, 2)


async def test_a_streamed_body_never_uses_an_idle_connection() -> None:
    async with listening(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")) as upstream:
        dialler = HttpClient()
        await fetched(dialler, upstream)
        exchange = await sent(dialler, "POST", upstream.url, [(b"content-length", b"4")], flowing(b"ab", b"cd"))
        assert await everything(exchange) == b"ok"
        assert [request.body for request in upstream.requests] == [b"{}", b"abcd"]
        exchange.close()
        await dialler.close()


async def flowing(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        await turn()
        yield part


REFUSED = b"HTTP/1.1 413 Payload Too Large\r\ncontent-length: 3\r\n\r\nno!"


async def test_a_response_is_read_while_the_upstream_stops_reading() -> None:
    written = 0
    stuck, done = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await stuck.wait()
        await peer.say(REFUSED)
        await done.wait()  # reads no more, and leaves the connection open

    async def endless() -> AsyncIterator[bytes]:
        nonlocal written
        while True:
            written += 1
            await turn()
            yield bytes(100_000)

    async with listening(script) as upstream:
        work = asyncio.ensure_future(
            sent(HttpClient(), "POST", upstream.url, [(b"content-length", b"100000000000")], endless())
        )
        await until_it_rests(lambda: written)
        stuck.set()
        exchange = await work
        assert (exchange.status, await everything(exchange)) == (413, b"no!")
        exchange.close()
        done.set()


async def test_an_incomplete_request_never_shares_its_connection() -> None:
    heard = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.say(REFUSED)
        heard.set()
        await peer.gone()

    async def slow() -> AsyncIterator[bytes]:
        yield b"the beginning"
        await heard.wait()
        while True:
            await turn()
            yield b"more"

    async with listening(script) as upstream:
        dialler = HttpClient()
        for number in (1, 2):
            heard.clear()
            exchange = await sent(dialler, "POST", upstream.url, [(b"content-length", b"1000000")], slow())
            assert await everything(exchange) == b"no!"
            # What was promised was never sent: the next request would be read as the rest of this one.
            dialler.release(exchange)
            assert upstream.connections == number
        await fetched(dialler, upstream)
        assert upstream.connections == 3


async def test_an_early_response_is_read_during_a_large_request() -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.say(REFUSED)
        await done.wait()

    done = asyncio.Event()
    async with listening(script) as upstream:
        dialler = HttpClient()
        exchange = await sent(dialler, "POST", upstream.url, [], [bytes(50_000_000)])
        assert (exchange.status, await everything(exchange)) == (413, b"no!")
        dialler.release(exchange)
        again = await sent(dialler, "POST", upstream.url, [], [b"{}"])
        assert upstream.connections == 2
        again.close()
        done.set()


@pytest.mark.parametrize(
    "said",
    [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\ncontent-len", b"HTTP/1.1 100 Continue\r\n\r\n"],
    ids=["before it", "in its first line", "in a header", "after an interim one"],
)
async def test_a_response_cut_in_its_head_is_a_refusal(said: bytes) -> None:
    async with listening(saying(said)) as upstream:
        outcome = await HttpClient().send("POST", upstream.url, [], [b"{}"])
        assert_refusal(outcome, "unavailable", f"localhost:{upstream.port} ", "connection")


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n64\r\nhello",
    ],
    ids=["in its length", "between chunks", "in a chunk"],
)
async def test_a_response_cut_in_its_body_returns_the_part_and_fails(said: bytes) -> None:
    async with listening(saying(said)) as upstream:
        dialler = HttpClient()
        exchange = await sent(dialler, "POST", upstream.url, [], [b"{}"])
        assert await exchange.read_piece() == b"hello"
        with pytest.raises(BrokenResponse, match="connection"):
            await exchange.read_piece()
        assert not exchange.fully_read
        dialler.release(exchange)
        reply = await dialler.ask("GET", upstream.url, {}, b"", seconds=20)
        assert isinstance(reply, Refusal)
        assert upstream.connections == 2


@pytest.mark.parametrize(
    "said", [b"SSH-2.0-OpenSSH_9.9\r\n", b"\x15\x03\x01\x00\x02\x02\x16", b"<html>", b"HTTP/9 ?\r\n\r\n"]
)
async def test_a_response_that_is_not_http_is_a_refusal(said: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(said)
        await peer.gone()

    async with listening(script) as upstream:
        outcome = await HttpClient().send("POST", upstream.url, [], [b"{}"])
        assert_refusal(outcome, "unavailable", f"localhost:{upstream.port} ", "HTTP")


async def test_garbage_within_a_response_breaks_it() -> None:
    said = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"
    async with listening(saying(said)) as upstream:
        exchange = await sent(HttpClient(), "GET", upstream.url)
        assert await exchange.read_piece() == b"hello"
        with pytest.raises(BrokenResponse, match="HTTP"):
            await exchange.read_piece()


async def test_a_protocol_switch_is_refused() -> None:
    async with listening(saying(b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n")) as upstream:
        assert isinstance(await HttpClient().send("GET", upstream.url, [], []), Refusal)


async def test_an_unreachable_upstream_is_a_clear_refusal() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        outcome = await HttpClient().send("GET", f"http://127.0.0.1:{port}/", [], [])
        assert isinstance(outcome, Refusal)
        assert f"127.0.0.1:{port} " in outcome.what
        assert outcome.code == "unavailable"


@pytest.mark.parametrize("url", ["http://localhost:99999/", "ftp://localhost/", "localhost:80/", "", "http://[::1/"])
async def test_an_invalid_address_is_a_refusal(url: str) -> None:
    assert isinstance(await HttpClient().send("GET", url, [], []), Refusal)
    assert isinstance(await HttpClient().ask("GET", url, {}, b"", seconds=5), Refusal)


@requirement("dial.clean")
async def test_a_cancelled_request_leaves_no_connection_behind() -> None:
    heard = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        heard.set()
        await peer.gone()

    async with listening(script) as upstream:
        for _ in range(2):
            heard.clear()
            upstream.ended.clear()
            task = asyncio.ensure_future(HttpClient().send("POST", upstream.url, [], [b"{}"]))
            await heard.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await upstream.ended.wait()


async def test_a_cancelled_streamed_body_leaves_no_connection_behind() -> None:
    begun = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.gone()

    async def stuck() -> AsyncIterator[bytes]:
        yield b"beginning"
        begun.set()
        await asyncio.Event().wait()

    async with listening(script) as upstream:
        task = asyncio.ensure_future(HttpClient().send("POST", upstream.url, [(b"content-length", b"99")], stuck()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await upstream.ended.wait()


async def test_a_failing_body_closes_its_connection() -> None:
    class Gone(Exception):
        pass

    async def failing() -> AsyncIterator[bytes]:
        yield b"beginning"
        raise Gone

    async def script(peer: Peer) -> None:
        await peer.gone()

    async with listening(script) as upstream:
        with pytest.raises(Gone):
            await HttpClient().send("POST", upstream.url, [(b"content-length", b"99")], failing())
        await upstream.ended.wait()


async def test_closing_the_client_closes_idle_connections() -> None:
    async with listening(forever) as upstream:
        dialler = HttpClient()
        await fetched(dialler, upstream)
        assert not upstream.ended.is_set()
        await dialler.close()
        await upstream.ended.wait()
        assert isinstance(await dialler.send("GET", upstream.url, [], []), Exchange)  # and it may go on
