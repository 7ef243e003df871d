"""Responses that are handed over as they arrive, without waking a task."""

from __future__ import annotations

import asyncio

import pytest

from sightline.dial import BrokenResponse, Exchange, HttpClient
from tests.dial.upstream import Peer, listening, turn, until

_HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Taker:
    """Takes pieces, and says after each that it takes more, until it has `most`."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.pieces: list[bytes] = []
        self.waits = asyncio.Event()  # somebody hands on
        self.changed = asyncio.Event()

    def __call__(self, piece: bytes) -> bool:
        self.pieces.append(piece)
        self.changed.set()
        return len(self.pieces) < self.most

    async def has(self, count: int) -> None:
        while len(self.pieces) < count:
            self.changed.clear()
            await self.changed.wait()


async def begun(dialler: HttpClient, url: str) -> Exchange:
    exchange = await dialler.send("POST", url, [], (b"{}",))
    assert isinstance(exchange, Exchange), exchange
    assert await exchange.read_piece() == b"first"
    return exchange


async def handed(exchange: Exchange, taker: Taker) -> None:
    handing = asyncio.ensure_future(exchange.hand_over(taker))
    await turn()
    taker.waits.set()
    await handing


async def test_each_piece_is_handed_over_except_the_last() -> None:
    dialler, taker = HttpClient(), Taker()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(_HEAD + framed(b"first"))
        await taker.waits.wait()
        for number in range(3):
            await taker.has(number)  # the piece before has gone out: nothing waits for the end
            await peer.say(framed(b"%d" % number))
        await taker.has(3)
        await peer.say(framed(b"last") + b"0\r\n\r\n")

    async with listening(script) as upstream:
        exchange = await begun(dialler, upstream.url)
        await handed(exchange, taker)
        assert taker.pieces == [b"0", b"1", b"2"]
        assert await exchange.read_piece() == b"last"
        assert await exchange.read_piece() is None
        await dialler.close()


async def test_a_receiver_that_returns_false_gets_no_more() -> None:
    dialler, taker = HttpClient(), Taker(most=1)
    read: list[bytes | None] = []

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(_HEAD + framed(b"first"))
        await taker.waits.wait()
        await peer.say(framed(b"taken"))
        await taker.has(1)
        await peer.say(framed(b"kept"))
        await until(lambda: bool(read) or len(taker.pieces) > 1)
        await peer.say(b"0\r\n\r\n")

    async with listening(script) as upstream:
        exchange = await begun(dialler, upstream.url)
        await handed(exchange, taker)
        read.append(await exchange.read_piece())
        assert read == [b"kept"]
        assert taker.pieces == [b"taken"]
        await dialler.close()


async def test_a_broken_response_fails_after_what_was_handed_over() -> None:
    dialler, taker = HttpClient(), Taker()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(_HEAD + framed(b"first"))
        await taker.waits.wait()
        await peer.say(framed(b"taken"))
        await taker.has(1)

    async with listening(script) as upstream:
        exchange = await begun(dialler, upstream.url)
        await handed(exchange, taker)
        with pytest.raises(BrokenResponse):
            await exchange.read_piece()
        assert taker.pieces == [b"taken"]
        exchange.close()
        await dialler.close()


class Watcher:
    """Notes what an observer is told."""

    def __init__(self) -> None:
        self.told: list[bytes | None] = []  # None: the end

    def add(self, piece: bytes) -> None:
        self.told.append(piece)

    def end(self) -> None:
        self.told.append(None)


async def test_an_observer_sees_all_pieces_and_then_the_end() -> None:
    dialler, taker, watcher = HttpClient(), Taker(), Watcher()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(_HEAD + framed(b"first"))
        await taker.waits.wait()
        await peer.say(framed(b"in ") + framed(b"one ") + framed(b"read"))
        await taker.has(1)
        await peer.say(framed(b"last") + b"0\r\n\r\n")

    async with listening(script) as upstream:
        exchange = await begun(dialler, upstream.url)
        exchange.observe(watcher)
        await handed(exchange, taker)
        assert taker.pieces == [b"in one read"]
        assert watcher.told == [b"in one read", b"last", None]
        assert await exchange.read_piece() == b"last"
        await dialler.close()
