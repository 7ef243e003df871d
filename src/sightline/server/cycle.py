"""One request: its body and response as the application receives and sends them.

**Probes.** When a client has finished sending (FIN), TCP does not tell whether it still reads (`shutdown(SHUT_WR)`,
`nc -N`) or has left (`close()`). Most servers and proxies assume the latter: nginx and Go cancel the request. Here the
client gets its response. Meanwhile, `RequestCycle.probe` writes something that does not change the response, first
after 0.1 s and then in growing intervals. A kernel whose process has closed the socket answers with a reset; then the
connection is aborted, which cancels the request. A client that still reads skips the probe. An HTTP/1.0 client must not
be sent an interim response, and a response with a content-length has no room for a probe: there the response itself
finds out.
"""

from __future__ import annotations

import asyncio
import http
import logging
import socket
from collections.abc import Callable
from typing import Any, Protocol

from sightline.server.asgi import BODY_FOLLOWS, DIRECT_CONNECTION, App, Headers, Message, allocate_buffer

log = logging.getLogger("sightline")

# If at least this much of a body is still to come, it is read straight into its final buffer.
_DIRECT_READ_BYTES = 64 * 1024
# Reading pauses at this many unread bytes of a body that is only streamed through. Pausing at every 64 KiB would cost
# more than the memory is worth.
_MAX_UNREAD = 1024 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_SERVER_ERROR = (
    b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n"
)
_CONTROL_BYTES = bytes((*range(0x09), *range(0x0A, 0x20), 0x7F))
_VALUE_BYTES = bytes(byte for byte in range(256) if byte not in _CONTROL_BYTES)  # that values of headers may have
_NAME_BYTES = _VALUE_BYTES.translate(None, b'\t ()<>@,;:\\[]={}"')
_PHRASES = {status.value: status.phrase for status in http.HTTPStatus}
_STATUS_LINES = {status: f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode() for status in range(100, 600)}
_FIRST_PROBE_SECONDS = 0.1  # most responses are complete by then
_INTERVAL_GROWTH = 4  # of the interval between two probes
_CHECK_SECONDS = 1.0  # between two checks of the socket: a reset from another machine takes a while


class FlowControl:
    """The pausing of reading and writing on a connection; pausing or resuming twice does nothing."""

    __slots__ = ("_transport", "_writable", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable: asyncio.Event | None = None  # set by `resume_writing`; created when something waits for it
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
    """The part of a connection that a request cycle uses."""

    transport: asyncio.Transport
    flow: FlowControl

    def read_body_into(self, buffer: memoryview) -> None:
        """Read the rest of the current body, which has a content-length, into `buffer`, bypassing the parser."""

    def finish_response(self) -> None:
        """Continue with the next request after a complete response."""

    def close_after_response(self) -> None:
        """Close the connection so that the client can still read the response."""

    def remove_cycle(self, cycle: RequestCycle) -> None:
        """Drop a cycle whose application has returned."""


class RequestCycle:
    """A request and its response.

    Pieces of the body are passed on as they arrive. The head of the response is written together with the first bytes
    of its body if they are available in the same iteration of the event loop.
    """

    __slots__ = (
        "_changed",
        "_chunked",
        "_omits_body",
        "_remaining",
        "_unsent_head",
        "_waiter",
        "connection",
        "disconnected",
        "flow",
        "is_http10",
        "keep_alive",
        "more_body",
        "on_disconnect",
        "pieces",
        "read_limit",
        "response_complete",
        "response_started",
        "scope",
        "task",
        "transport",
        "unread_bytes",
        "waits_for_continue",
    )

    def __init__(
        self,
        connection: Connection,
        scope: dict[str, Any],
        expects_continue: bool,
        keep_alive: bool,
        is_http10: bool,
    ) -> None:
        self.connection, self.scope = connection, scope
        self.task: asyncio.Task[None]  # set when the application is called
        self.transport, self.flow = connection.transport, connection.flow
        self.keep_alive, self.is_http10, self.waits_for_continue = keep_alive, is_http10, expects_continue
        self.disconnected = self.response_started = self.response_complete = False
        self.more_body = True
        self.pieces: list[bytes] = []
        self.unread_bytes = 0
        self.read_limit = _DIRECT_READ_BYTES  # of unread bytes; grows when the application asks for the body
        self.on_disconnect: Callable[[], None] | None = None
        self._changed = False  # since the application last read the body
        self._waiter: asyncio.Event | None = None
        self._chunked = self._omits_body = False
        self._remaining: int | None = 0  # bytes of the response body still to send; None: it ends with the connection
        self._unsent_head = b""  # of the response

    async def run(self, app: App) -> None:
        """Call the application; close the connection if the application does not complete the response."""
        self.scope["extensions"] = {DIRECT_CONNECTION: self}
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError:
            pass
        except Exception:  # the outermost edge
            log.exception("a request could not be served")
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        if not self.response_complete and not self.disconnected:
            self._end_incomplete()
        # Break the reference cycles: else their memory would wait for the garbage collector.
        del self.scope["extensions"]
        self.on_disconnect = None
        self.connection.remove_cycle(self)
        del self.connection, self.task

    def _end_incomplete(self) -> None:
        """End a response that the application has not completed."""
        self._write(b"")
        if self.response_started:
            self.transport.close()
            return
        self.response_started = self.response_complete = True
        self.transport.write(_SERVER_ERROR + b"connection: close\r\n\r\nInternal Server Error")
        self.connection.close_after_response()

    # The request.

    def add_piece(self, piece: bytes, size: int) -> None:
        """Add the next bytes of the body."""
        self.pieces.append(piece)
        self.unread_bytes += size
        self._changed = True
        if self._waiter is not None:
            self.notify()

    async def receive(self) -> Message:
        self._send_continue()
        if not self.disconnected and not self.response_complete:
            self.read_limit = _MAX_UNREAD
            self.flow.resume_reading()
            await self._wait_for_change()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self._take_pieces(), "more_body": self.more_body}

    async def read_body(self, length: int) -> bytes | bytearray | None:
        """Return the whole body, whose content-length is `length`, or None if the client disconnected."""
        if self.waits_for_continue:
            self._send_continue()
        if self.more_body and length - self.unread_bytes >= _DIRECT_READ_BYTES and not self.disconnected:
            return await self._read_into_buffer(length)
        self.read_limit = length + 1  # never pause
        if self.flow.read_paused:
            self.flow.resume_reading()
        while self.more_body and not self.disconnected:
            await self._wait_for_change()
        return None if self.disconnected else self._take_pieces()

    async def _read_into_buffer(self, length: int) -> bytearray | None:
        data = allocate_buffer(length)
        with memoryview(data) as view:
            beginning = self._take_pieces()
            view[: len(beginning)] = beginning
            self.connection.read_body_into(view[len(beginning) :])
            while self.more_body and not self.disconnected:
                await self._wait_for_change()
        return None if self.disconnected else data

    def _take_pieces(self) -> bytes:
        pieces, self.pieces, self.unread_bytes = self.pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _send_continue(self) -> None:
        if self.waits_for_continue and not self.transport.is_closing():
            self.transport.write(_CONTINUE)
            self.waits_for_continue = False

    def notify(self) -> None:
        """Wake up the application if it waits for the body or for a disconnect."""
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
        """Notify the application that its client has disconnected."""
        self.disconnected = not self.response_complete
        self.notify()
        if self.on_disconnect is not None:
            self.on_disconnect()

    # The response.

    async def send(self, message: Message) -> None:
        if self.flow.write_paused:
            await self.flow.drain()
        if self.disconnected or self.response_complete:
            return
        if not self.response_started:
            self._build_head(message["status"], message["headers"])
            if not message.get(BODY_FOLLOWS):
                asyncio.get_running_loop().call_soon(self._write, b"")
            return
        more = message.get("more_body", False)
        data = self._unsent_head + self._frame(message.get("body", b""), more=more)
        self._unsent_head = b""
        if data:
            self.transport.write(data)
        if not more:
            self._finish()

    def write_body(self, data: bytes) -> bool:
        """Write bytes of the body now; return false if the next ones have to wait for room."""
        if self._chunked and data and not self._unsent_head and not self.disconnected:  # nearly always
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        elif not self.disconnected:
            self._write(self._frame(data, more=True))
        return not self.flow.write_paused

    def probe(self) -> None:
        """Write something that does not change the response, to find out whether the client still reads.

        Before the response starts, this is an interim response, which every HTTP/1.1 client skips. Within a chunked
        response it is a zero in front of the next chunk's size. In between, nothing can be written.
        """
        if self.disconnected or self.response_complete or self._unsent_head:
            return
        if not self.response_started and not self.is_http10:
            self.transport.write(_CONTINUE)
        elif self._chunked:
            self.transport.write(b"0")

    def _build_head(self, status: int, headers: Headers) -> None:
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        values = dict(headers)
        has_bad_name = b"" in values or b"".join(values).translate(None, _NAME_BYTES)
        if has_bad_name or lines.translate(None, _VALUE_BYTES) != b"\r\n" * len(headers):
            raise RuntimeError("the response has an invalid header")
        self.response_started = True
        length = values.get(b"content-length")
        if self.scope["method"] == "HEAD":
            self._omits_body = True
        elif length is not None:
            self._remaining = int(length)
        elif status not in (204, 304):
            self._chunked = not self.is_http10
            self._remaining = None if self.is_http10 else 0
            if self._chunked:
                lines += b"transfer-encoding: chunked\r\n"
        if self.waits_for_continue and self.more_body:
            self.keep_alive = False  # the client may or may not send the body, so what follows would be ambiguous
        if not self.keep_alive:
            lines += b"connection: close\r\n"
        self._unsent_head = b"%b%b\r\n" % (_STATUS_LINES[status], lines)

    def _frame(self, data: bytes, *, more: bool) -> bytes:
        if self._chunked:
            framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            return framed if more else framed + b"0\r\n\r\n"
        if self._omits_body:
            return b""
        if self._remaining is not None:
            self._remaining -= len(data)
            if self._remaining < 0:
                raise RuntimeError("the response is longer than its content-length")
        return data

    def _write(self, data: bytes) -> None:
        """Write `data`, after the head if that is still unsent."""
        if self._unsent_head:
            data, self._unsent_head = self._unsent_head + data, b""
        if data and not self.disconnected:
            self.transport.write(data)

    def _finish(self) -> None:
        if self._remaining:
            raise RuntimeError("the response is shorter than its content-length")
        self.response_complete = self._changed = True
        if self._waiter is not None:
            self.notify()
        if self.keep_alive:
            self.connection.finish_response()
        else:
            self.connection.close_after_response()


class ClientProbe:
    """Probes of the client whose request is being served, until `stop` or until the client turns out to have left."""

    def __init__(self, transport: asyncio.Transport, get_cycle: Callable[[], RequestCycle | None]) -> None:
        self._transport = transport
        self._get_cycle = get_cycle
        self._loop = asyncio.get_running_loop()
        self._interval = _FIRST_PROBE_SECONDS
        self._next_probe_at = self._loop.time() + _FIRST_PROBE_SECONDS
        self._timer = self._loop.call_later(_FIRST_PROBE_SECONDS, self._check)

    def stop(self) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        now, cycle = self._loop.time(), self._get_cycle()
        if now >= self._next_probe_at and cycle is not None and not self._transport.get_write_buffer_size():
            cycle.probe()
            self._interval *= _INTERVAL_GROWTH
            self._next_probe_at = now + self._interval
        if self._is_reset():
            self._transport.abort()
        elif not self._transport.is_closing():
            self._timer = self._loop.call_later(_CHECK_SECONDS, self._check)

    def _is_reset(self) -> bool:
        # The socket is no longer read, and the next write may be far away: so ask it for an error.
        sock = self._transport.get_extra_info("socket")
        return sock is not None and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
