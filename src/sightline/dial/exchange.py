"""One HTTP/1.1 connection to an upstream: writes a request and reads its response as it arrives."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Protocol, Self, TypeGuard, cast

import httptools

Buffer = bytes | bytearray | memoryview
Header = tuple[bytes, bytes]
Body = Sequence[Buffer] | AsyncIterator[bytes]
Origin = tuple[str, str]
"""The scheme of a server, and its host with the port if the address has one."""

_SMALL_REQUEST = 64 * 1024  # a smaller request is cheaper to copy once than to write in pieces
_TLS_STEP = 512 * 1024  # bytes that are encrypted at a time: they stay in memory until the socket takes them
_MAX_UNREAD = 1024 * 1024  # reading pauses when more than this is unread
_MAX_OVERHEAD_BYTES = 256 * 1024  # bytes of a response that are not body, beyond those that its body allows
_OVERHEAD_PER_BYTE = 16  # bytes that each byte of a body allows: the framing of a chunk of one byte takes seven
_FRAMING_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
_BODILESS_METHODS = (b"HEAD", b"CONNECT")
_VERSIONS = ("1.1", "1.0")
_RACE_SECONDS = 1.0  # an upstream that closes so soon after a request has closed before the request arrived


def is_whole(body: Body) -> TypeGuard[Sequence[Buffer]]:
    """Return whether a body is in memory, not streamed; `isinstance(body, Sequence)` would take ten times as long."""
    return not hasattr(body, "__anext__")


class BrokenResponse(Exception):
    """The upstream's response broke off or is not HTTP."""


class EndlessResponse(BrokenResponse):
    """A response has more headers, trailers or chunk extensions than any response needs."""


class BodyObserver(Protocol):
    """Sees the body of a response as it arrives. It must not raise."""

    def add(self, piece: bytes) -> None: ...

    def end(self) -> None:
        """Note that the response is complete or has broken off."""
        ...


class Exchange(asyncio.Protocol):
    """A connection and the response that is being read from it; reusable once the response is complete."""

    def __init__(self) -> None:
        self.closed = False
        self.can_retry = False  # the connection ended before the upstream can have worked on the request
        self.origin: Origin = ("", "")  # set by the client that connected it
        self.idle_since = 0.0
        self._written_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._receiver: Callable[[bytes], bool] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._arrived: list[bytes] = []  # parts of the body in the read that is being parsed
        self.on_body = self._arrived.append  # a callback of the parser; a function in Python would take longer
        self._parser = httptools.HttpResponseParser(self)
        self._error: BrokenResponse | None = None
        self._pieces: list[bytes] = []
        self._unread_bytes = 0
        self._observer: BodyObserver | None = None
        self._unwritten: Iterator[list[Buffer]] | None = None  # the rest of the request
        self._has_no_body = False
        self._reset(b"", is_whole=True)

    def _reset(self, method: bytes, *, is_whole: bool) -> None:
        """Start with a request. What is the same in every exchange that is reusable stays as it is."""
        self.status = 0
        self.headers: list[Header] = []
        self.first_headers: dict[bytes, bytes] = {}  # of each name; set when the head is complete
        self.response_begun = False
        self._overhead = 0  # bytes beside the body, less those that the body allows
        self.complete = False
        self._keep_alive = False  # the upstream accepts another request on this connection
        self._request_written = is_whole  # false while a streamed body is incomplete
        self._head_complete = False
        if self._has_no_body:  # the parser still waits for a body; else it goes on with the next response
            self._parser = httptools.HttpResponseParser(self)
        self._has_no_body = method in _BODILESS_METHODS

    async def send(
        self, method: bytes, head: bytes, body: Sequence[Buffer], rest: AsyncIterator[bytes] | None = None
    ) -> Self:
        """Write a request and wait for the head of its response, then return this exchange.

        `rest` yields what follows `body`. Close the exchange and raise `BrokenResponse` if there is no response; also
        close it when the caller is cancelled.
        """
        try:
            self._written_at = self._loop.time()
            self._reset(method, is_whole=rest is None)
            self._write_whole(head, body)
            if rest is not None:
                await self._write_stream(rest)
            while not self._head_complete:
                await self._wait()
        except BaseException:
            self.close()
            raise
        return self

    def _write_whole(self, head: bytes, body: Sequence[Buffer]) -> None:
        if sum(map(len, body)) < _SMALL_REQUEST:
            self._transport.write(b"".join((head, *body)))
        elif self._uses_tls:
            self._unwritten = _split_into_steps([head, *body])
            self._write_more()
        else:
            self._transport.writelines([head, *body])

    async def read_piece(self) -> bytes | None:
        """Return the next bytes of the body, or None at its end; raise `BrokenResponse` if it breaks off."""
        while not self._pieces:
            if self.complete:
                return None
            await self._wait()
        return self._take_pieces()

    def observe(self, observer: BodyObserver) -> None:
        """Pass each piece of the body to `observer` as it arrives, first those that are unread."""
        self._observer = observer
        for piece in self._pieces:
            observer.add(piece)
        if self.complete or self.closed:
            self._end_observation()

    def _end_observation(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.end()

    async def hand_over(self, receiver: Callable[[bytes], bool]) -> None:
        """Pass bytes to `receiver` as they arrive, without waking a task, until it returns false."""
        self._receiver = receiver
        try:
            if not (self._pieces or self.complete):
                await self._wait()
        finally:
            self._receiver = None

    def _take_pieces(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        if self._unread_bytes > _MAX_UNREAD:
            self._transport.resume_reading()
        self._unread_bytes = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def read(self, max_bytes: int, silence_seconds: float | None = None) -> bytes:
        """Return the body, or about `max_bytes` of it; raise `TimeoutError` after a silence of `silence_seconds`."""
        parts: list[bytes] = []
        while max_bytes > 0:
            async with asyncio.timeout(silence_seconds):
                piece = await self.read_piece()
            if piece is None:
                break
            parts.append(piece)
            max_bytes -= len(piece)
        return b"".join(parts)

    def join_unread(self) -> bytes:
        """Return what has come of the body and wasn't read yet, without consuming it."""
        pieces = self._pieces
        if len(pieces) > 1:
            pieces[:] = [b"".join(pieces)]
        return pieces[0] if pieces else b""

    async def peek(
        self, max_bytes: int, seconds: float | None, is_enough: Callable[[bytes], bool] | None = None
    ) -> bytes:
        """Return the beginning of the body without consuming it.

        Wait until it is complete or broken off, has `max_bytes`, satisfies `is_enough`, or `seconds` have passed.
        """
        data = self.join_unread()
        if (data and is_enough is not None and is_enough(data)) or self.complete or len(data) >= max_bytes:
            return data
        return await self._peek_more(max_bytes, seconds, is_enough)

    async def _peek_more(
        self, max_bytes: int, seconds: float | None, is_enough: Callable[[bytes], bool] | None
    ) -> bytes:
        seen = bytearray(self._take_pieces())
        try:
            async with asyncio.timeout(seconds):
                while len(seen) < max_bytes and (piece := await self.read_piece()) is not None:
                    seen += piece
                    if is_enough is not None and is_enough(bytes(seen)):
                        break
        except (TimeoutError, BrokenResponse):
            pass
        data = bytes(seen)
        self._pieces[:0] = [data] if data else []
        return data

    @property
    def has_data(self) -> bool:
        """Whether `read_piece` would return without waiting."""
        return self.complete or bool(self._pieces)

    @property
    def fully_read(self) -> bool:
        """Whether the response is complete and all of it has been read."""
        return self.complete and not self._pieces

    @property
    def reusable(self) -> bool:
        """Whether another request may follow: the response has been read, and all of the request has been written."""
        read = self._keep_alive and self.complete and not self._pieces
        written = self._request_written and self._unwritten is None
        return read and written and not self._transport.get_write_buffer_size()

    def get_header(self, name: bytes) -> bytes:
        """Return the first header of this name, or nothing."""
        return self.first_headers.get(name, b"")

    def replace_header(self, header: Header) -> None:
        """Replace all headers of the same name."""
        self.headers = [*(each for each in self.headers if each[0] != header[0]), header]
        self.first_headers[header[0]] = header[1]

    def close(self) -> None:
        self._transport.abort()

    async def start_tls(self, context: ssl.SSLContext, host: str) -> Exchange:
        """Return an exchange on the same connection that uses TLS from here on."""
        inner = Exchange()
        transport = await self._loop.start_tls(self._transport, inner, context, server_hostname=host)
        assert transport is not None
        inner.connection_made(transport)
        return inner

    def _write_more(self) -> None:
        """Write as much of the rest of the request as there is room for."""
        while self._unwritten is not None and self._writable.is_set() and not self.closed:
            step = next(self._unwritten, None)
            if step is None:
                self._unwritten = None
            else:
                self._transport.writelines(step)

    async def _write_stream(self, body: AsyncIterator[bytes]) -> None:
        async for piece in body:
            if self.response_begun or self.closed:  # a response before the end of the request rejects it
                return
            self._transport.write(piece)
            await self._writable.wait()
        self._request_written = True

    def _wait(self) -> asyncio.Future[None]:
        """Return a future that is done when more has come; raise `BrokenResponse` if nothing can come."""
        if self._error is not None:
            raise self._error
        if self.closed:
            raise BrokenResponse("the connection was closed")
        self._waiter = waiter = self._loop.create_future()
        return waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._uses_tls = transport.get_extra_info("ssl_object") is not None

    def data_received(self, data: bytes) -> None:
        if self.complete:  # bytes after the response: this connection is not safe for another request
            self._keep_alive = False
            self.close()
            return
        self.response_begun = True
        if not self._request_written:
            self._writable.set()  # `_write_stream` stops when there is a response
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            cause = error.__context__  # what a callback raised
            self._fail(cause if isinstance(cause, BrokenResponse) else BrokenResponse("the response is not HTTP"))
        if not self._arrived or not self._pass_on_arrived():
            self._finish_read()

    def _finish_read(self) -> None:
        """Check what was read beside the body, and wake up the task that waits for the response."""
        if self._overhead > _MAX_OVERHEAD_BYTES and self._error is None:
            self._fail(EndlessResponse("its headers are too long"))
        if self.complete and self._observer is not None:
            self._end_observation()
        self._wake()

    def _pass_on_arrived(self) -> bool:
        """Pass on the part of the body that a read had; return whether no task has to wake up for it."""
        arrived = self._arrived
        piece = arrived[0] if len(arrived) == 1 else b"".join(arrived)
        arrived.clear()
        size = len(piece)
        allowed = _OVERHEAD_PER_BYTE * size
        self._overhead = self._overhead - allowed if self._overhead > allowed else 0
        if self._observer is not None:
            self._observer.add(piece)
        receiver = self._receiver
        if receiver is not None and not self.complete and self._error is None:
            return receiver(piece) and self._overhead <= _MAX_OVERHEAD_BYTES
        if not self._has_no_body:
            self._pieces.append(piece)
            self._unread_bytes += size
            if self._unread_bytes > _MAX_UNREAD:
                self._transport.pause_reading()
        return False

    def _fail(self, error: BrokenResponse) -> None:
        self._error = error
        self._keep_alive = False
        self.close()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._written_at = self._loop.time()
        self._writable.set()
        self._write_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._keep_alive = False
        writing = self._unwritten is not None or not self._writable.is_set()
        self.can_retry = not self.response_begun and (writing or self._loop.time() - self._written_at < _RACE_SECONDS)
        self._unwritten = None
        has_framing = not _FRAMING_HEADERS.isdisjoint(self.first_headers)  # the response says where it ends
        if self._head_complete and not has_framing and exc is None and self._error is None:
            self.complete = True  # a response without a length ends with its connection
        self._writable.set()
        self._end_observation()
        self._wake()

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        if self.complete:  # bytes after the response, in the same read
            raise BrokenResponse("the response goes on after its end")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_complete:  # else it is a trailer
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._parser.get_http_version() not in _VERSIONS:
            raise BrokenResponse("it does not speak HTTP/1.1")
        if status == 101:  # it was not requested, and what follows is not HTTP
            raise BrokenResponse("it switched to another protocol")
        if status < 200:
            return
        self.status = status
        self.first_headers = first = dict(reversed(self.headers))
        if b"transfer-encoding" in first:
            _check_coding(self.headers)
        self._head_complete = True
        self.complete = self._has_no_body  # the parser would wait for the body of a HEAD, which never comes

    def on_message_complete(self) -> None:
        if not self._head_complete:  # an interim response; the final one follows
            self.headers = []
            return
        self.complete = True
        self._keep_alive = self._parser.should_keep_alive() and not self._has_no_body


def _check_coding(headers: Sequence[Header]) -> None:
    """Check that a body is chunked if it has a coding: any other would reach the client as if it were the content."""
    for name, value in headers:
        if name == b"transfer-encoding" and value.strip(b" \t").lower() != b"chunked":
            raise BrokenResponse("its transfer-encoding is not supported")


def _split_into_steps(buffers: Sequence[Buffer]) -> Iterator[list[Buffer]]:
    """Yield the same bytes in steps of one size, so that the transport doesn't get all of them at once."""
    step: list[Buffer] = []
    room = _TLS_STEP
    for buffer in buffers:
        view = memoryview(buffer)
        while len(view) >= room:
            yield [*step, view[:room]]
            view, step, room = view[room:], [], _TLS_STEP
        step.append(view)
        room -= len(view)
    yield step
