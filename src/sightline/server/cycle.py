"""One request and its response, as the application receives and sends them; flow control, and probes of the client.

**Probes.** When a client will send no more (FIN), TCP does not tell whether it still listens (`shutdown(SHUT_WR)`,
`nc -N`) or has left (`close()`). Most servers and proxies take it for the latter: nginx and Go cancel the request. Here
it gets its response, and something is written meanwhile that does not change the response (`RequestCycle.probe`), after
a moment and again in growing intervals. A kernel whose process has closed the socket answers that with a reset, and the
connection is aborted, which cancels the request; a client that listens skips it. An HTTP/1.0 client may not be sent an
interim response, and a response with a content-length has no room for a probe: there the response itself finds out.
"""

from __future__ import annotations

import asyncio
import http
import logging
import re
import socket
from collections.abc import Callable
from typing import Any, Protocol

from sightline.server.asgi import AT_ONCE, LINE, App, Headers, Message
from sightline.server.bodies import allocate

log = logging.getLogger("sightline")

# A body of which at least this much is still to come is read straight into its final place.
_STRAIGHT = 64 * 1024
# The client of a body that only flows through is asked to wait at this many unread bytes: stopping it at every
# 64 KiB would cost more than the memory is worth.
_UNREAD = 1024 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_FAILED = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n"
_are_headers = re.compile(rb"(?:[^\x00-\x20\x7f()<>@,;:\\\[\]={}\"]+: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*").fullmatch
_PHRASES = {status.value: status.phrase for status in http.HTTPStatus}
_STATUS_LINES = {status: f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode() for status in range(100, 600)}
_FIRST_SECONDS = 0.1  # most responses are complete by then
_GROWTH = 4  # of the interval between two probes
_LOOK_SECONDS = 1.0  # between two looks at the socket: from afar, a reset takes a while


class FlowControl:
    """Remembers whether reading and writing are paused; pausing or resuming twice does nothing."""

    __slots__ = ("_transport", "_writable", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable: asyncio.Event | None = None  # set by `resume_writing`; made when something waits for it
        self.read_paused = False
        self.write_paused = False

    async def drain(self) -> None:
        """Wait until there is room to write."""
        while self.write_paused:
            if self._writable is None:
                self._writable = asyncio.Event()
            await self._writable.wait()

    def pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None


class Connection(Protocol):
    """What a cycle needs of its connection."""

    transport: asyncio.Transport
    flow: FlowControl

    def fill(self, place: memoryview) -> None:
        """Read the rest of the current body, which has a content-length, into `place` and past the parser."""

    def finish_response(self) -> None:
        """Go on with what comes after a response that is complete."""

    def close_after_response(self) -> None:
        """Close the connection so that the client can still read the response."""

    def forget(self, cycle: RequestCycle) -> None:
        """Let go of a cycle whose application has returned."""


class RequestCycle:
    """A request and its response.

    Pieces of the body are handed on as they came. The head of the response is written together with the first
    bytes of its body if they are there in the same turn of the event loop.
    """

    __slots__ = (
        "_changed",
        "_chunked",
        "_expected",
        "_head",
        "_waiter",
        "connection",
        "disconnected",
        "flow",
        "is_http10",
        "keep_alive",
        "leaving",
        "more_body",
        "most",
        "pieces",
        "response_complete",
        "response_started",
        "scope",
        "transport",
        "unread",
        "waits_for_continue",
    )

    def __init__(
        self, connection: Connection, scope: dict[str, Any], *, expects: bool, keep_alive: bool, is_http10: bool
    ) -> None:
        self.connection, self.scope = connection, scope
        self.transport, self.flow = connection.transport, connection.flow
        self.keep_alive, self.is_http10, self.waits_for_continue = keep_alive, is_http10, expects
        self.disconnected = self.response_started = self.response_complete = False
        self.more_body = True
        self.pieces: list[bytes] = []
        self.unread, self.most = 0, _STRAIGHT  # bytes; `most` grows when the application asks for the body
        self.leaving: Callable[[], None] | None = None
        self._changed = False  # since the application last looked at the body
        self._waiter: asyncio.Event | None = None
        self._chunked = False
        self._expected: int | None = 0  # bytes of the response body still to come; None: it ends with the connection
        self._head = b""  # of the response, not yet written

    async def run(self, app: App) -> None:
        """Call the application; whatever it leaves undone closes the connection."""
        self.scope["extensions"] = {LINE: self}
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError:
            pass
        except Exception:  # the outermost edge
            log.exception("a request could not be served")
        finally:
            self._settle()

    def _settle(self) -> None:
        self._put(b"")
        if not self.response_started and not self.disconnected:
            self.response_started = self.response_complete = True
            self.transport.write(_FAILED + b"connection: close\r\n\r\nInternal Server Error")
            self.connection.close_after_response()
        elif not self.response_complete and not self.disconnected:
            self.transport.close()
        # Break the reference cycles; only the garbage collector would find them.
        del self.scope["extensions"]
        self.leaving = None
        self.connection.forget(self)
        del self.connection

    # The request.

    async def receive(self) -> Message:
        self._ask_for_body()
        if not self.disconnected and not self.response_complete:
            self.most = _UNREAD
            self.flow.resume_reading()
            await self._wait_for_change()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self._take_pieces(), "more_body": self.more_body}

    async def whole(self, length: int) -> bytes | bytearray | None:
        """Return the whole body, of which `length` bytes are announced, or None if the client disconnected."""
        self._ask_for_body()
        if self.more_body and length - self.unread >= _STRAIGHT and not self.disconnected:
            return await self._read_into_place(length)
        self.most = length + 1  # it is wanted to its end
        self.flow.resume_reading()
        while self.more_body and not self.disconnected:
            await self._wait_for_change()
        return None if self.disconnected else self._take_pieces()

    async def _read_into_place(self, length: int) -> bytearray | None:
        data = allocate(length)
        with memoryview(data) as view:
            begun = self._take_pieces()
            view[: len(begun)] = begun
            self.connection.fill(view[len(begun) :])
            while self.more_body and not self.disconnected:
                await self._wait_for_change()
        return None if self.disconnected else data

    def _take_pieces(self) -> bytes:
        pieces, self.pieces, self.unread = self.pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _ask_for_body(self) -> None:
        if self.waits_for_continue and not self.transport.is_closing():
            self.transport.write(_CONTINUE)
            self.waits_for_continue = False

    def notify(self) -> None:
        """Wake up whatever waits for the body or for the client to leave."""
        self._changed = True
        if self._waiter is not None:
            self._waiter.set()
            self._waiter = None

    async def _wait_for_change(self) -> None:
        if not self._changed:
            if self._waiter is None:
                self._waiter = asyncio.Event()
            await self._waiter.wait()
        self._changed = False

    def disconnect(self) -> None:
        """Tell the application that its client has left."""
        self.disconnected = not self.response_complete
        self.notify()
        if self.leaving is not None:
            self.leaving()

    # The response.

    async def send(self, message: Message) -> None:
        if self.flow.write_paused:
            await self.flow.drain()
        if self.disconnected or self.response_complete:
            return
        if not self.response_started:
            self._begin(message["status"], message["headers"])
            if not message.get(AT_ONCE):
                asyncio.get_running_loop().call_soon(self._put, b"")
            return
        more = message.get("more_body", False)
        self._put(self._frame(message.get("body", b""), more=more))
        if not more:
            self._end()

    def write(self, data: bytes) -> bool:
        """Write bytes of the body at once; false means: wait with the next ones until there is room."""
        if self._chunked and data and not self._head and not self.disconnected:  # nearly always
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        elif not self.disconnected:
            self._put(self._frame(data, more=True))
        return not self.flow.write_paused

    def probe(self) -> None:
        """Write something that does not change the response, to find out whether anything still receives it.

        Before the response that is an interim one, which every HTTP/1.1 client skips; within a chunked response a
        zero ahead of the size of the next chunk. In between there is nothing that could be written.
        """
        if self.disconnected or self.response_complete or self._head:
            return
        if not self.response_started and not self.is_http10:
            self.transport.write(_CONTINUE)
        elif self._chunked:
            self.transport.write(b"0")

    def _begin(self, status: int, headers: Headers) -> None:
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        if not _are_headers(lines) or lines.count(b"\n") != len(headers):
            raise RuntimeError("the response has a header that is not allowed")
        self.response_started = True
        length = dict(headers).get(b"content-length")
        if length is not None:
            self._expected = int(length)
        elif self.scope["method"] != "HEAD" and status not in (204, 304):
            self._chunked = not self.is_http10
            self._expected = None if self.is_http10 else 0
            if self._chunked:
                lines += b"transfer-encoding: chunked\r\n"
        if self.waits_for_continue and self.more_body:
            self.keep_alive = False  # whether the body will come is up to the client: nothing could be read after it
        if not self.keep_alive:
            lines += b"connection: close\r\n"
        self._head = b"%b%b\r\n" % (_STATUS_LINES[status], lines)

    def _frame(self, data: bytes, *, more: bool) -> bytes:
        if self.scope["method"] == "HEAD":
            self._expected = 0
            return b""
        if self._chunked:
            framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            return framed if more else framed + b"0\r\n\r\n"
        if self._expected is not None:
            if len(data) > self._expected:
                raise RuntimeError("the response is longer than its content-length")
            self._expected -= len(data)
        return data

    def _put(self, data: bytes) -> None:
        """Write `data`, behind the head if that is still here."""
        if self._head:
            data, self._head = self._head + data, b""
        if data and not self.disconnected:
            self.transport.write(data)

    def _end(self) -> None:
        if self._expected:
            raise RuntimeError("the response is shorter than its content-length")
        self.response_complete = True
        self.notify()
        if self.keep_alive:
            self.connection.finish_response()
        else:
            self.connection.close_after_response()


class ClientProbe:
    """Probes the client of the request that is being served, until `stop` or until it turns out to have left."""

    def __init__(self, transport: asyncio.Transport, serving: Callable[[], RequestCycle | None]) -> None:
        self._transport = transport
        self._serving = serving
        self._loop = asyncio.get_running_loop()
        self._interval = _FIRST_SECONDS
        self._next = self._loop.time() + _FIRST_SECONDS
        self._timer = self._loop.call_later(_FIRST_SECONDS, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        now, cycle = self._loop.time(), self._serving()
        if now >= self._next and cycle is not None and not self._transport.get_write_buffer_size():
            cycle.probe()
            self._interval *= _GROWTH
            self._next = now + self._interval
        if self._was_reset():
            self._transport.abort()
        elif not self._transport.is_closing():
            self._timer = self._loop.call_later(_LOOK_SECONDS, self._look)

    def _was_reset(self) -> bool:
        """Ask the socket: it is not read any more, and it may be long until it is written to."""
        sock = self._transport.get_extra_info("socket")
        return sock is not None and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
