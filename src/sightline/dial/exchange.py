"""One HTTP/1.1 connection to an upstream: requests go out in buffers, answers come back as they arrive."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import cast

import httptools

Buffer = bytes | bytearray | memoryview
Header = tuple[bytes, bytes]
Body = Sequence[Buffer] | AsyncIterator[bytes]

_JOINED = 64 * 1024  # a smaller request is cheaper to copy once than to write in pieces
_STEP = 512 * 1024  # of a body goes through TLS at once: what is encrypted is kept until the socket has taken it
_UNREAD = 1024 * 1024  # with more than this unread, the upstream is asked to wait
_LARGEST_HEAD = 256 * 1024  # of an answer, or of what else in it is no body
_FOR_A_BYTE = 16  # bytes that may come beside each byte of a body: the framing of a chunk of one byte takes seven
_FRAMING = (b"content-length", b"transfer-encoding")
_VERSIONS = ("1.1", "1.0")
_SOON = 1.0  # seconds: whoever closes so soon after a question has closed before it came


class Cut(Exception):
    """The upstream broke off, or said what is no HTTP, before its answer was complete."""


class Endless(Cut):
    """More came beside the body (headers, trailers, extensions of chunks) than any answer needs."""


class Exchange(asyncio.Protocol):
    """A connection and the answer that is being read from it; reused for the next when the answer is whole."""

    def __init__(self) -> None:
        self.closed = False
        self.rested_at = 0.0
        self._written_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._take: Callable[[bytes], bool] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._begin(b"", ())

    def _begin(self, method: bytes, body: Body) -> None:
        self.status = 0
        self.headers: list[Header] = []
        self.heard = False  # a byte of the answer has come
        self.unheeded = False  # the connection ended before anybody can have worked on the question
        self._beside = 0  # bytes that came beside the body, less what the body makes up for
        self.whole = False
        self._lasting = False  # the upstream takes another request on this connection
        self._asked = isinstance(body, Sequence)  # the question is written to its end
        self._bodiless = method in (b"HEAD", b"CONNECT")
        self._head = False
        self._framed = False  # the answer says where it ends
        self._broken: Cut | None = None
        self._pieces: list[bytes] = []
        self._unread = 0
        self._owed: Iterator[list[Buffer]] | None = None  # what is still to be written of the question
        self._parser = httptools.HttpResponseParser(self)

    # What the caller does.

    async def send(self, method: bytes, head: bytes, body: Body) -> None:
        """Write a request and wait for the head of its answer; `Cut` when none comes."""
        self._begin(method, body)
        self._written_at = self._loop.time()
        if isinstance(body, Sequence):
            if sum(map(len, body)) < _JOINED:
                self._transport.write(b"".join((head, *body)))
            elif self._secured:
                self._owed = _steps([head, *body])
                self._write_on()
            else:
                self._transport.writelines([head, *body])
        else:
            self._transport.write(head)
            await self._pour(body)
        while not self._head:
            await self._wait()

    async def piece(self) -> bytes | None:
        """The next bytes of the body as they came, None at its end; `Cut` when it breaks off."""
        while not self._pieces:
            if self.whole:
                return None
            await self._wait()
        return self._gathered()

    async def hand(self, take: Callable[[bytes], bool]) -> None:
        """Give what comes to `take` as it comes, with no task between, while it says that it takes more."""
        self._take = take
        try:
            if not (self._pieces or self.whole):
                await self._wait()
        finally:
            self._take = None

    def _handed(self) -> bool:
        """Whether nobody need wake up for what has come."""
        if self._take is None or not self._pieces or self.whole or self._broken is not None:
            return False
        return self._take(self._gathered())

    def _gathered(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        if self._unread > _UNREAD:
            self._transport.resume_reading()
        self._unread = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def read(self, most: int, silence: float | None = None) -> bytes:
        """The beginning of the body, at most about so many bytes of it; `TimeoutError` when nothing comes so long."""
        parts: list[bytes] = []
        while most > 0:
            async with asyncio.timeout(silence):
                piece = await self.piece()
            if piece is None:
                break
            parts.append(piece)
            most -= len(piece)
        return b"".join(parts)

    async def peek(self, most: int, seconds: float | None, enough: Callable[[bytes], bool] | None = None) -> bytes:
        """What of the beginning has come when it is whole, enough, broken off or too slow; it will be read again."""
        data = self._gathered() if self._pieces else b""
        if not ((data and enough is not None and enough(data)) or self.whole or len(data) >= most):
            data = await self._peeked(bytearray(data), most, seconds, enough)
        self._pieces[:0] = [data] if data else []
        return data

    async def _peeked(
        self, seen: bytearray, most: int, seconds: float | None, enough: Callable[[bytes], bool] | None
    ) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                while len(seen) < most and (piece := await self.piece()) is not None:
                    seen += piece
                    if enough is not None and enough(bytes(seen)):
                        break
        except (TimeoutError, Cut):
            pass
        return bytes(seen)

    @property
    def ready(self) -> bool:
        """Nobody who reads now would have to wait."""
        return self.whole or bool(self._pieces)

    @property
    def drained(self) -> bool:
        """The answer is whole and has been read to its end."""
        return self.whole and not self._pieces

    @property
    def reusable(self) -> bool:
        """May another request follow? Not while an answer is unread, or bytes of a question are owed."""
        asked = self._asked and self._owed is None and not self._transport.get_write_buffer_size()
        return self.drained and self._lasting and asked

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key == name), b"")

    def close(self) -> None:
        self._transport.abort()

    async def secured(self, context: ssl.SSLContext, host: str) -> Exchange:
        """The same connection, with TLS on it from here on."""
        inner = Exchange()
        transport = await self._loop.start_tls(self._transport, inner, context, server_hostname=host)
        assert transport is not None
        inner.connection_made(transport)
        return inner

    def _write_on(self) -> None:
        """As much of what is owed as there is room for."""
        while self._owed is not None and self._room.is_set() and not self.closed:
            step = next(self._owed, None)
            if step is None:
                self._owed = None
            else:
                self._transport.writelines(step)

    async def _pour(self, body: AsyncIterator[bytes]) -> None:
        async for piece in body:
            if self.heard or self.closed:  # an answer before the end of the question: a refusal of it
                return
            self._transport.write(piece)
            await self._room.wait()
        self._asked = True

    async def _wait(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self.closed:
            raise Cut("the connection was closed")
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What the transport says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._secured = transport.get_extra_info("ssl_object") is not None

    def data_received(self, data: bytes) -> None:
        if self.whole:  # words after the last word: this connection cannot be trusted with another request
            self._lasting = False
            self.close()
            return
        self.heard = True
        if not self._asked:
            self._room.set()  # whoever waits to write learns that there is an answer already
        self._beside += len(data)
        try:
            self._parser.feed_data(data)
            if self._beside > _LARGEST_HEAD:
                self._spoilt(Endless("its head has no end"))
        except httptools.HttpParserError as error:
            refused = error.__context__  # what a callback raised
            self._spoilt(refused if isinstance(refused, Cut) else Cut("the answer is not HTTP"))
        if not self._handed():
            self._wake()

    def _spoilt(self, why: Cut) -> None:
        self._broken = why
        self._lasting = False
        self.close()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._written_at = self._loop.time()
        self._room.set()
        self._write_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._lasting = False
        writing = self._owed is not None or not self._room.is_set()
        self.unheeded = not self.heard and (writing or self._loop.time() - self._written_at < _SOON)
        self._owed = None
        if self._head and not self._framed and exc is None and self._broken is None:
            self.whole = True  # an answer without a length ends with its connection
        self._room.set()
        self._wake()

    # What the parser says.

    def on_message_begin(self) -> None:
        if self.whole:  # … and these came along with it
            raise Cut("the answer goes on after its end")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head:  # a trailer is none
            return
        name = name.lower()
        if name in _FRAMING:
            self._framed = True
            # Any other coding would reach the client as if it were the content.
            if name == b"transfer-encoding" and value.strip(b" \t").lower() != b"chunked":
                raise Cut("its transfer-encoding is not supported")
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._parser.get_http_version() not in _VERSIONS:
            raise Cut("it does not speak HTTP/1.1")
        if status == 101:  # nobody asked for it, and what follows is no HTTP
            raise Cut("it switched to another protocol")
        if status < 200:
            return
        self.status = status
        self._head = True
        self.whole = self._bodiless  # what the parser takes for the body of a HEAD never comes

    def on_body(self, body: bytes) -> None:
        self._beside = max(0, self._beside - _FOR_A_BYTE * len(body))
        if self._bodiless:
            return
        self._pieces.append(body)
        self._unread += len(body)
        if self._unread > _UNREAD:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if not self._head:  # an interim answer; the real one follows
            self.headers = []
            self._framed = False
            return
        self.whole = True
        self._lasting = self._parser.should_keep_alive() and not self._bodiless


def _steps(buffers: Sequence[Buffer]) -> Iterator[list[Buffer]]:
    """The same bytes in steps of one size, so that not all of them are handed over at once."""
    step: list[Buffer] = []
    room = _STEP
    for buffer in buffers:
        view = memoryview(buffer)
        while len(view) >= room:
            yield [*step, view[:room]]
            view, step, room = view[room:], [], _STEP
        step.append(view)
        room -= len(view)
    yield step
