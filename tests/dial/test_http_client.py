"""The HTTP client against well-behaved upstreams: bytes are sent and returned unchanged."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from hashlib import sha256
from itertools import product

import pytest

from sightline.dial import Body, Buffer, Exchange, Header, HttpClient
from sightline.model.ports import HttpReply
from sightline.model.refusal import Refusal
from tests.dial.upstream import Peer, Script, Upstream, listening, turn, until, until_it_rests
from tests.refusals import assert_refusal
from tests.requirements import requirement


async def sent(
    dialler: HttpClient, method: str, url: str, headers: list[Header] | None = None, body: Body = ()
) -> Exchange:
    exchange = await dialler.send(method, url, headers or [], body)
    assert isinstance(exchange, Exchange), exchange
    return exchange


async def everything(exchange: Exchange) -> bytes:
    pieces = []
    while (piece := await exchange.read_piece()) is not None:
        pieces.append(piece)
    return b"".join(pieces)


async def fetched(dialler: HttpClient, upstream: Upstream, method: str = "POST", body: Body = (b"{}",)) -> bytes:
    """A whole exchange; its connection goes back to rest."""
    exchange = await sent(dialler, method, upstream.url, [], body)
    found = await everything(exchange)
    dialler.release(exchange)
    return found


async def forever(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.answer(b"answer")


def saying(*answers: bytes) -> Script:
    """Each answer after a request of its own; then the connection is closed."""

    async def script(peer: Peer) -> None:
        for answer in answers:
            await peer.request()
            await peer.say(answer)

    return script


@requirement("dial.verbatim")
async def test_a_request_gets_only_the_headers_that_http_needs() -> None:
    async with listening(forever) as upstream:
        dialler = HttpClient()
        headers = [(b"x-api-key", b"k"), (b"Accept", b"*/*"), (b"accept", b"second"), (b"x-odd", b"caf\xe9")]
        exchange = await sent(
            dialler, "POST", f"{upstream.url}/v1/messages?beta=true&x=%20", headers, [b'{"a":', b"1}"]
        )
        assert exchange.status == 200
        assert upstream.requests[0].head == (
            b"POST /v1/messages?beta=true&x=%20 HTTP/1.1\r\n"
            b"host: localhost:" + str(upstream.port).encode() + b"\r\n"
            b"x-api-key: k\r\nAccept: */*\r\naccept: second\r\nx-odd: caf\xe9\r\ncontent-length: 7\r\n\r\n"
        )
        assert upstream.requests[0].body == b'{"a":1}'
        exchange.close()


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        ("GET", [], None),
        ("GET", [b""], None),
        ("HEAD", [b""], None),
        ("DELETE", [b""], None),
        ("POST", [], "0"),
        ("POST", [b""], "0"),
        ("PUT", [b"", b"ab"], "2"),
        ("GET", [b"abc"], "3"),
    ],
)
async def test_a_content_length_is_sent_if_a_body_is_expected(
    method: str, body: list[bytes], length: str | None
) -> None:
    async with listening(saying(b"HTTP/1.1 204 No Content\r\n\r\n")) as upstream:
        exchange = await sent(HttpClient(), method, upstream.url, [], body)
        assert dict(upstream.requests[0].headers).get("content-length") == length
        assert upstream.requests[0].line == f"{method} / HTTP/1.1"
        exchange.close()


@requirement("dial.verbatim")
async def test_a_response_is_returned_unchanged() -> None:
    packed = gzip.compress(b"words")
    head = b"HTTP/1.1 302 Moved\r\nLocation: /elsewhere\r\nContent-Encoding: gzip\r\nSet-Cookie: a\r\nset-cookie: b\r\n"
    answer = head + b"content-length: %d\r\n\r\n" % len(packed) + packed
    async with listening(saying(answer)) as upstream:
        exchange = await sent(HttpClient(), "GET", upstream.url)
        assert exchange.status == 302
        assert exchange.headers == [
            (b"location", b"/elsewhere"),
            (b"content-encoding", b"gzip"),
            (b"set-cookie", b"a"),
            (b"set-cookie", b"b"),
            (b"content-length", str(len(packed)).encode()),
        ]
        assert exchange.get_header(b"set-cookie") == b"a"
        assert exchange.get_header(b"x-none") == b""
        assert await everything(exchange) == packed
        assert upstream.connections == 1
        exchange.close()


ANSWERS = {
    "a length": b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world",
    "chunks": (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        b"6\r\nhello \r\n5;x=y\r\nworld\r\n0\r\nx-trailer: 1\r\n\r\n"
    ),
    "until it closes": b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nhello world",
    "an old server": b"HTTP/1.0 200 OK\r\n\r\nhello world",
    "an interim answer": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world",
    "early hints": (
        b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </b>\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world"
    ),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "byte by byte"])
async def test_every_response_framing_is_supported(answer: bytes, bytewise: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        for start in range(0, len(answer), 1 if bytewise else len(answer)):
            await peer.say(answer[start : start + 1] if bytewise else answer)

    async with listening(script) as upstream:
        exchange = await sent(HttpClient(), "POST", upstream.url, [], [b"{}"])
        assert exchange.status == 200
        assert exchange.get_header(b"link") == b""
        assert await everything(exchange) == b"hello world"
        assert exchange.fully_read
        exchange.close()


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 11\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    ],
)
async def test_a_response_without_a_body_is_complete_at_once(method: str, answer: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(answer)
        await peer.gone()

    async with listening(script) as upstream:
        exchange = await sent(HttpClient(), method, upstream.url)
        assert await everything(exchange) == b""
        assert exchange.fully_read
        exchange.close()


async def test_a_connection_is_reused() -> None:
    async with listening(forever) as upstream:
        dialler = HttpClient()
        assert [await fetched(dialler, upstream) for _ in range(5)] == [b"answer"] * 5
        assert (upstream.connections, len(upstream.requests)) == (1, 5)
        await dialler.close()
        await upstream.ended.wait()


async def test_responses_of_all_framings_follow_each_other_on_one_connection() -> None:
    """One parser reads them all, so nothing of a response may be left in it."""
    empty = [b"HTTP/1.1 204 No Content\r\nx-empty: 1\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n"]
    framed = [ANSWERS[name] for name in ("a length", "chunks", "an interim answer", "early hints")]
    answers = [each for pair in product(framed, [*empty, *framed]) for each in pair]
    async with listening(saying(*answers)) as upstream:
        dialler = HttpClient()
        for answer in answers:
            exchange = await sent(dialler, "POST", upstream.url, [], [b"{}"])
            assert await everything(exchange) == (b"" if answer in empty else b"hello world")
            assert exchange.get_header(b"x-empty") == (b"1" if answer is empty[0] else b"")
            dialler.release(exchange)
        assert upstream.connections == 1
        await dialler.close()


async def test_concurrent_requests_get_separate_connections() -> None:
    async with listening(forever) as upstream:
        dialler = HttpClient()
        first, second = await asyncio.gather(*(sent(dialler, "GET", upstream.url) for _ in range(2)))
        assert upstream.connections == 2
        for exchange in (first, second):
            assert await everything(exchange) == b"answer"
            dialler.release(exchange)
        await asyncio.gather(*(fetched(dialler, upstream) for _ in range(2)))
        assert upstream.connections == 2
        await dialler.close()


async def test_one_upstream_s_connection_is_not_used_for_another() -> None:
    async with listening(forever) as one, listening(forever) as two:
        dialler = HttpClient()
        await fetched(dialler, one)
        await fetched(dialler, two)
        assert (one.connections, two.connections) == (1, 1)
        await dialler.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nanother",
    ],
    ids=["it says so", "an old server", "words after the last word"],
)
async def test_an_unsafe_connection_is_not_reused(answer: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(answer)
        await peer.gone()

    async with listening(script) as upstream:
        dialler = HttpClient()
        for number in (1, 2):
            exchange = await sent(dialler, "POST", upstream.url, [], [b"{}"])
            assert await everything(exchange) == b"ok"
            dialler.release(exchange)
            assert upstream.connections == number
        await dialler.close()


async def test_an_idle_connection_that_received_bytes_is_not_reused() -> None:
    spoken = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        if peer.number == 1:
            await rested.wait()
            await peer.say(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
            await peer.gone()
            spoken.set()

    rested = asyncio.Event()
    async with listening(script) as upstream:
        dialler = HttpClient()
        assert await fetched(dialler, upstream) == b"ok"
        rested.set()
        await spoken.wait()
        assert await fetched(dialler, upstream) == b"ok"
        assert upstream.connections == 2
        await dialler.close()


async def test_a_connection_that_was_idle_for_long_is_not_reused() -> None:
    async with listening(forever) as upstream:
        dialler = HttpClient()
        exchange = await sent(dialler, "GET", upstream.url)
        await everything(exchange)
        dialler.release(exchange)
        exchange.idle_since -= 3600
        await fetched(dialler, upstream)
        assert upstream.connections == 2
        await dialler.close()


async def test_an_unread_response_closes_its_connection() -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.answer(bytes(3_000_000))

    async with listening(script) as upstream:
        dialler = HttpClient()
        for number in (1, 2):
            exchange = await sent(dialler, "GET", upstream.url)
            assert len(await exchange.read(1000)) >= 1000
            dialler.release(exchange)
            assert upstream.connections == number


async def test_an_unread_complete_response_does_not_block_the_next() -> None:
    async with listening(saying(*ANSWERS_OF_A_MEGABYTE)) as upstream:
        dialler = HttpClient()
        first = await sent(dialler, "GET", upstream.url)
        await until(lambda: first.complete)
        dialler.release(first)
        second = await sent(dialler, "GET", upstream.url)
        assert len(await everything(second)) == MEGABYTE
        second.close()


MEGABYTE = 1024 * 1024 + 1  # one byte more than may stay unread
ANSWERS_OF_A_MEGABYTE = [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % MEGABYTE + bytes(MEGABYTE)] * 2


async def test_large_bodies_in_many_buffers_arrive_unchanged() -> None:
    block = bytes(range(256)) * 4096
    body: list[Buffer] = [b"{", memoryview(block), bytearray(block), b"", block[::-1], memoryview(block)[5:-5]] * 4
    async with listening(forever) as upstream:
        assert await fetched(HttpClient(), upstream, body=body) == b"answer"
        (request,) = upstream.requests
        assert sha256(request.body).digest() == sha256(b"".join(body)).digest()


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        await turn()
        yield part


async def test_a_body_of_unknown_length_keeps_its_framing() -> None:
    async with listening(forever) as upstream:
        dialler = HttpClient()
        framed = pieces(b"5\r\nhello\r\n", b"6\r\n world\r\n", b"0\r\n\r\n")
        exchange = await sent(dialler, "POST", upstream.url, [(b"transfer-encoding", b"chunked")], framed)
        assert await everything(exchange) == b"answer"
        assert upstream.requests[0].body == b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
        assert "content-length" not in dict(upstream.requests[0].headers)
        dialler.release(exchange)
        await fetched(dialler, upstream)
        assert upstream.connections == 1
        await dialler.close()


@requirement("dial.pressure")
async def test_a_large_body_is_sent_with_back_pressure() -> None:
    taken = 0

    async def flow() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(400):
            taken += 1
            yield bytes(100_000)

    may_read = asyncio.Event()

    async def script(peer: Peer) -> None:
        await may_read.wait()
        await peer.request()
        await peer.answer()

    async with listening(script) as upstream:
        work = asyncio.ensure_future(
            sent(HttpClient(), "PUT", upstream.url, [(b"content-length", b"40000000")], flow())
        )
        await until_it_rests(lambda: taken)
        assert taken < 400
        may_read.set()
        exchange = await work
        assert (taken, len(upstream.requests[0].body)) == (400, 40_000_000)
        exchange.close()


@requirement("dial.pressure")
async def test_a_client_that_does_not_read_does_not_make_memory_grow() -> None:
    size = 50_000_000

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(bytes(size))
        await peer.gone()

    async with listening(script) as upstream:
        exchange = await sent(HttpClient(), "GET", upstream.url)
        await until(lambda: not exchange._transport.is_reading())
        piece = await exchange.read_piece()
        assert piece is not None
        assert len(piece) < 2_000_000
        assert len(piece) + len(await everything(exchange)) == size
        exchange.close()


async def test_peeked_bytes_are_read_again() -> None:
    async with listening(saying(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 11\r\n\r\nhello world")) as upstream:
        exchange = await sent(HttpClient(), "GET", upstream.url)
        assert await exchange.peek(100, seconds=20) == b"hello world"
        assert not exchange.fully_read
        assert await everything(exchange) == b"hello world"
        exchange.close()


async def test_peek_returns_as_soon_as_it_has_enough() -> None:
    done = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello")
        await done.wait()
        await peer.say(b" world")
        await peer.gone()

    async with listening(script) as upstream:
        exchange = await sent(HttpClient(), "GET", upstream.url)
        assert await exchange.peek(100, None, is_enough=lambda seen: seen.startswith(b"hell")) == b"hello"
        done.set()
        assert await everything(exchange) == b"hello world"
        exchange.close()


async def test_peek_returns_what_arrived_before_a_stall_or_break() -> None:
    begun = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 99\r\n\r\nhello"
    async with listening(saying(begun)) as upstream:
        exchange = await sent(HttpClient(), "GET", upstream.url)
        assert await exchange.peek(100, seconds=0.05) == b"hello"
        assert await exchange.read_piece() == b"hello"
        exchange.close()


async def test_ask_returns_a_whole_reply() -> None:
    answer = b"HTTP/1.1 201 Created\r\nX-Note: caf\xe9\r\ncontent-length: 2\r\n\r\nok"
    async with listening(saying(answer, answer)) as upstream:
        dialler = HttpClient()
        for _ in range(2):
            reply = await dialler.ask("POST", f"{upstream.url}/a", {"x-key": "caf\xe9"}, b"{}", seconds=20)
            assert reply == HttpReply(201, [("x-note", "café"), ("content-length", "2")], b"ok")
        assert upstream.connections == 1
        assert upstream.requests[0].body == b"{}"
        await dialler.close()


async def test_ask_is_bounded_in_time() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe")
        await peer.gone()

    async with listening(script) as upstream:
        seconds = 0.05
        while not upstream.connections:  # a busy machine may need longer to connect
            reply = await HttpClient().ask("GET", upstream.url, {}, b"", seconds=seconds)
            assert_refusal(reply, "unavailable", f"localhost:{upstream.port} ")
            seconds *= 2
        await upstream.ended.wait()  # nothing is left open


@requirement("seer.sixty")
async def test_a_reply_may_take_longer_than_its_longest_silence() -> None:
    async def drip(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n")
        for _ in range(8):
            await asyncio.sleep(0.2)
            if peer.reader.at_eof():
                return
            await peer.say(b"x")

    async with listening(drip) as upstream:
        found = await HttpClient().ask("GET", upstream.url, {}, b"", 1.0)
        assert isinstance(found, HttpReply)
        assert found.body == b"x" * 8
        for short in (0.05, 0.3):  # nothing comes in that time; and in all of it not enough
            assert isinstance(await HttpClient().ask("GET", upstream.url, {}, b"", short), Refusal)
