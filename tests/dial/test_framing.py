"""Responses with unusual framing: read as RFC 9112 says, or refused."""

from __future__ import annotations

import pytest

from sightline.dial import Exchange, HttpClient
from sightline.model.refusal import Refusal
from tests.dial.test_http_client import everything
from tests.dial.upstream import Peer, Script, listening
from tests.requirements import requirement

OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = OK + b"content-length: 2\r\n\r\nok"


def say_and_stay(said: bytes) -> Script:
    """Answer one request and keep the connection open, so that only the framing can tell where the answer ends."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(said)
        await peer.gone()

    return script


ODD = {
    "an upgrade that is offered": (OK + b"connection: Upgrade\r\nupgrade: h2,h2c\r\ncontent-length: 2\r\n\r\nok", 200),
    "an upgrade that is offered with chunks": (
        OK
        + b"connection: Upgrade, Keep-Alive\r\nupgrade: h2c\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        200,
    ),
    "an upgrade that is demanded": (
        b"HTTP/1.1 426 Upgrade Required\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\nok",
        426,
    ),
    "interim responses": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 199 Odd\r\n\r\n" + WHOLE,
        200,
    ),
    "an interim response with a length": (b"HTTP/1.1 103 Early Hints\r\ncontent-length: 5\r\n\r\n" + WHOLE, 200),
    "an interim response with chunks": (b"HTTP/1.1 100 Continue\r\ntransfer-encoding: chunked\r\n\r\n" + WHOLE, 200),
}


@pytest.mark.parametrize("case", ODD)
@requirement("dial.framing")
async def test_an_odd_head_does_not_change_what_the_response_says(case: str) -> None:
    said, status = ODD[case]
    async with listening(say_and_stay(said)) as upstream:
        exchange = await HttpClient().send("POST", upstream.url, [], [b"{}"])
        assert isinstance(exchange, Exchange)
        assert (exchange.status, await everything(exchange)) == (status, b"ok")
        assert exchange.get_header(b"link") == b"", "what an interim response said is not repeated"
        exchange.close()


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("framing", [b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n", b""])
@requirement("dial.framing")
async def test_a_response_without_a_body_is_complete_despite_its_head(status: int, framing: bytes) -> None:
    async with listening(say_and_stay(b"HTTP/1.1 %d None\r\n%b\r\n" % (status, framing))) as upstream:
        exchange = await HttpClient().send("GET", upstream.url, [], [])
        assert isinstance(exchange, Exchange)
        assert (exchange.status, await everything(exchange)) == (status, b"")
        exchange.close()


SWITCHED = "it switched to another protocol"
CODED = "its transfer-encoding is not supported"
VERSION = "it does not speak HTTP/1.1"
NOT_HTTP = "the response is not HTTP"
REFUSED = {
    "a switch of protocols": (
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\nraw",
        SWITCHED,
    ),
    "a switch of protocols without a name": (b"HTTP/1.1 101 Switching Protocols\r\n\r\nraw", SWITCHED),
    "a switch of protocols with a length": (b"HTTP/1.1 101 Switching\r\ncontent-length: 3\r\n\r\nraw", SWITCHED),
    "a length, then chunks": (OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", NOT_HTTP),
    "chunks, then a length": (OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n", NOT_HTTP),
    "two lengths": (OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nok", NOT_HTTP),
    "a list of lengths": (OK + b"content-length: 2, 2\r\n\r\nok", NOT_HTTP),
    "a length with a sign": (OK + b"content-length: +2\r\n\r\nok", NOT_HTTP),
    "a folded header": (OK + b"x-a: b\r\n c\r\ncontent-length: 2\r\n\r\nok", NOT_HTTP),
    "bare line feeds": (b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok", NOT_HTTP),
    "gzip": (OK + b"transfer-encoding: gzip\r\n\r\nok", CODED),
    "identity": (OK + b"transfer-encoding: identity\r\n\r\nok", CODED),
    "gzip, then chunked": (OK + b"transfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", CODED),
    "chunked, then gzip": (OK + b"transfer-encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n", CODED),
    "HTTP/0.9": (b"HTTP/0.9 200 OK\r\ncontent-length: 2\r\n\r\nok", VERSION),
    "HTTP/2.0": (b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nok", VERSION),
}


@pytest.mark.parametrize("case", REFUSED)
@requirement("dial.framing")
async def test_a_response_that_could_be_read_in_two_ways_is_refused(case: str) -> None:
    said, why = REFUSED[case]
    async with listening(say_and_stay(said)) as upstream:
        outcome = await HttpClient().send("POST", upstream.url, [], [b"{}"])
        assert isinstance(outcome, Refusal)
        assert (outcome.code, outcome.what) == (
            "unavailable",
            f"the request to localhost:{upstream.port} failed: {why}",
        )
        await upstream.ended.wait()
