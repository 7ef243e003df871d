"""Upstreams of the tests' own on loopback: each connection follows a script, down to the byte."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

TLS = Path(__file__).parent / "tls"
AUTHORITY = TLS / "authority.pem"
GUARD = 30.0  # seconds after which a test that hangs has failed


@dataclass(frozen=True)
class Request:
    head: bytes  # with its blank line
    body: bytes  # as it stands on the wire, framing included

    @property
    def line(self) -> str:
        return self.head.split(b"\r\n", 1)[0].decode()

    @property
    def headers(self) -> list[tuple[str, str]]:
        lines = self.head.decode("latin-1").strip().split("\r\n")[1:]
        return [(name, value) for name, _, value in (line.partition(": ") for line in lines)]


@dataclass
class Peer:
    """One connection, as the upstream sees it."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    upstream: Upstream = field(repr=False)

    async def request(self) -> Request:
        head = await self.reader.readuntil(b"\r\n\r\n")
        named = {name.lower(): value for name, value in Request(head, b"").headers}
        if "transfer-encoding" in named:
            body = await self.reader.readuntil(b"0\r\n\r\n")
        else:
            body = await self.reader.readexactly(int(named.get("content-length", "0")))
        self.upstream.requests.append(Request(head, body))
        return self.upstream.requests[-1]

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes = b"ok", status: str = "200 OK", headers: bytes = b"") -> None:
        await self.say(b"HTTP/1.1 %b\r\ncontent-length: %d\r\n%b\r\n" % (status.encode(), len(body), headers) + body)

    async def gone(self) -> None:
        """Until the other side has left."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass


async def turn() -> None:
    """Let everybody else go on for a moment."""
    await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await turn()


async def until_it_rests(amount: Callable[[], int]) -> None:
    """Until an amount that has begun to grow grows no further."""
    before = -1
    while not amount() or amount() != before:
        before = amount()
        for _ in range(100):
            await turn()


Script = Callable[[Peer], Awaitable[None]]


@dataclass
class Upstream:
    port: int
    secured: bool
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)  # a connection has come to the end of its script

    @property
    def url(self) -> str:
        return f"{'https' if self.secured else 'http'}://localhost:{self.port}"


@asynccontextmanager
async def listening(script: Script, secured: bool = False) -> AsyncIterator[Upstream]:
    """An upstream whose every connection follows `script` and is closed at its end."""
    troubles: list[Exception] = []
    peers: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        peers.add(task)
        upstream.connections += 1
        try:
            await script(Peer(upstream.connections, reader, writer, upstream))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client may leave at any time
        except Exception as trouble:  # noqa: BLE001  told at the end, where the test sees it
            troubles.append(trouble)
        finally:
            writer.close()
            upstream.ended.set()

    context = None
    if secured:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "server.pem")
    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    upstream = Upstream(server.sockets[0].getsockname()[1], secured)
    try:
        async with asyncio.timeout(GUARD):
            yield upstream
    finally:
        server.close()
        for peer in peers:
            peer.cancel()
        await asyncio.gather(*peers, return_exceptions=True)
    assert troubles == []
