"""One request and its response, as the application receives and sends them."""

from __future__ import annotations

import asyncio
import http
import logging
import re
from collections.abc import Callable
from typing import Any, Protocol

from sightline.server.asgi import AT_ONCE, LINE, App, Headers, Message
from sightline.server.buffers import allocate
from sightline.server.flow import FlowControl

log = logging.getLogger("sightline")

# A body of which at least this much is still to come is read straight into its final place.
_STRAIGHT = 64 * 1024
# The client of a body that only flows through is asked to wait at this many unread bytes: stopping it at every
# 64 KiB would cost more than the memory is worth.
_UNREAD = 1024 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_FAILED = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n"
_are_headers = re.compile(rb"(?:[^\x00-\x20\x7f()<>@,;:\\\[\]={}\"]+: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*").fullmatch


def status_line(status: int) -> bytes:
    phrase = http.HTTPStatus(status).phrase if status in http.HTTPStatus.__members__.values() else ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


_STATUS_LINES = {status: status_line(status) for status in range(100, 600)}


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
