"""A relay on the proxy's event loop and HTTP parser that reads no body: relay.py UPSTREAM_PORT [--compare].

It is a simple proxy of this kind. A body goes past the parser into one buffer, and is sent on from it. With --compare,
each body is compared with the last one, which is one way to recognize what was sent before.
"""

import asyncio
import sys
from typing import cast

import httptools
import uvloop

FIRST = 64 * 1024  # bytes of a request that are read at once, until its length is known


class ClientConnection(asyncio.BufferedProtocol):
    """Collects a request, sends it on when it is whole, and relays the response."""

    def __init__(self, upstreams: "UpstreamPool") -> None:
        self.upstreams = upstreams
        self.first = memoryview(bytearray(FIRST))
        self._begin()

    def _begin(self) -> None:
        self.headers: list[bytes] = []
        self.body, self.filled = bytearray(), 0
        self.is_headed = False
        self.parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def get_buffer(self, _sizehint: int) -> memoryview:
        return memoryview(self.body)[self.filled :] if self.is_headed else self.first

    def buffer_updated(self, nbytes: int) -> None:
        if self.is_headed:
            self.filled += nbytes
        else:
            self.parser.feed_data(self.first[:nbytes])
        if self.is_headed and self.filled == len(self.body):
            self._send_on()

    def on_url(self, url: bytes) -> None:
        self.url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append(b"%b: %b\r\n" % (name, value))
        if name.lower() == b"content-length":
            self.body = bytearray(int(value))

    def on_headers_complete(self) -> None:
        self.is_headed = True

    def on_body(self, piece: bytes) -> None:
        self.body[self.filled : self.filled + len(piece)] = piece
        self.filled += len(piece)

    def _send_on(self) -> None:
        head = b"POST %b HTTP/1.1\r\n%b\r\n" % (self.url, b"".join(self.headers))
        body = self.body
        self._begin()
        self.upstreams.compare(body)
        self.upstreams.send(self, head, body)


class UpstreamConnection(asyncio.Protocol):
    """Relays one response after the other, each to the client whose request was sent."""

    def __init__(self, upstreams: "UpstreamPool") -> None:
        self.upstreams = upstreams

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def send(self, client: ClientConnection, head: bytes, body: bytearray) -> None:
        self.client, self.parser = client, httptools.HttpResponseParser(self)
        self.transport.writelines([head, body])

    def data_received(self, data: bytes) -> None:
        self.client.transport.write(data)
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.upstreams.idle.append(self)


class UpstreamPool:
    """The connections to the upstream that are kept alive."""

    def __init__(self, port: int, *, keeps_bodies: bool) -> None:
        self.port, self.keeps_bodies = port, keeps_bodies
        self.last = bytearray()
        self.equal = 0
        self.idle: list[UpstreamConnection] = []
        self.tasks: set[asyncio.Task[None]] = set()

    def compare(self, body: bytearray) -> None:
        """Count a body that is the same as the last one."""
        if self.keeps_bodies:
            self.equal += body == self.last
            self.last = body

    def send(self, client: ClientConnection, head: bytes, body: bytearray) -> None:
        if self.idle:
            self.idle.pop().send(client, head, body)
            return
        task = asyncio.get_running_loop().create_task(self._connect_and_send(client, head, body))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _connect_and_send(self, client: ClientConnection, head: bytes, body: bytearray) -> None:
        loop = asyncio.get_running_loop()
        _, upstream = await loop.create_connection(lambda: UpstreamConnection(self), "127.0.0.1", self.port)
        upstream.send(client, head, body)


async def serve(upstream_port: int, *, keeps_bodies: bool) -> None:
    upstreams = UpstreamPool(upstream_port, keeps_bodies=keeps_bodies)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ClientConnection(upstreams), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), keeps_bodies="--compare" in sys.argv))
