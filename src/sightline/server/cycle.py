"""One request: the checks of its head, and its body and response as the application receives and sends them.

**Heads.** llhttp has checked the syntax of a head. `check_head` accepts only what has one meaning for every reader (RFC
9112): one target, one host, one way to tell where the body ends. Anything that could be read in two ways raises
`BadRequest`.

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
import re
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

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
_is_header_block = re.compile(rb"(?:[^\x00-\x20\x7f()<>@,;:\\\[\]={}\"]+: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*").fullmatch
_PHRASES = {status.value: status.phrase for status in http.HTTPStatus}
_STATUS_LINES = {status: f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode() for status in range(100, 600)}
_FIRST_PROBE_SECONDS = 0.1  # most responses are complete by then
_INTERVAL_GROWTH = 4  # of the interval between two probes
_CHECK_SECONDS = 1.0  # between two checks of the socket: a reset from another machine takes a while

MAX_HEADERS = 1000
_VERSIONS = ("1.1", "1.0")
_CHECKED_FIELDS = frozenset({b"host", b"transfer-encoding", b"expect"})
_is_target = re.compile(rb'[!"$-~]+').fullmatch  # printable ASCII without "#"
_is_host = re.compile(rb"[\w.\-~!$&'()*+,;=%:\[\]]*", re.ASCII).fullmatch


class BadRequest(Exception):
    """A request that is answered with 400. The message says in one line what is wrong with it."""


class RequestHead(NamedTuple):
    path: bytes
    query: bytes
    expects_continue: bool  # the client waits for `100 Continue` before it sends the body


class CheckedHead:
    """The last head of a connection. Most clients send the same one again, with another content-length at most."""

    __slots__ = ("_headers", "_length_at", "_line", "head", "notes")

    def __init__(self, method: bytes, version: str, target: bytes, headers: Headers) -> None:
        """Check a head; raise `BadRequest` if it isn't accepted."""
        self._line = (method, version, target)
        self._headers = headers
        self.head = check_head(method, version, target, headers)
        names = [name for name, _ in headers]
        self._length_at = names.index(b"content-length") if b"content-length" in names else len(names)
        self.notes: dict[object, Any] = {}  # of the application

    def is_same(self, method: bytes, version: str, target: bytes, headers: Headers) -> bool:
        """Return whether another head differs in nothing but the value of its content-length."""
        known, at = self._headers, self._length_at
        if self._line != (method, version, target) or len(headers) != len(known) or headers[:at] != known[:at]:
            return False
        return at == len(known) or (headers[at][0] == known[at][0] and headers[at + 1 :] == known[at + 1 :])


def check_head(method: bytes, version: str, target: bytes, headers: Headers) -> RequestHead:
    """Return what a request asks for.

    Names in `headers` are in lower case. The host of an absolute target replaces the value of the Host header.
    """
    if version not in _VERSIONS:
        raise BadRequest(f"HTTP/{version} is not supported; send HTTP/1.1")
    if method == b"CONNECT":
        raise BadRequest("CONNECT is not supported: this is not a forward proxy")
    if len(headers) > MAX_HEADERS:
        raise BadRequest(f"the request has more than {MAX_HEADERS} headers")
    if not _is_target(target):
        raise BadRequest("the request target has a character that is not allowed there")
    expects = _check_header_fields(version, headers)
    if target[:1] != b"/":
        target = _split_absolute_target(method, target, headers)
    path, _, query = target.partition(b"?")
    return RequestHead(path, query, expects)


def get_framing_line(headers: Headers) -> bytes:
    """Return the header line that says where the body ends, or nothing if there is no body."""
    for name, value in headers:
        if name in (b"content-length", b"transfer-encoding"):
            return b"%b: %b\r\n" % (name, value)
    return b""


def _check_header_fields(version: str, headers: Headers) -> bool:
    """Check the fields that matter for a connection; return whether the client waits for `100 Continue`."""
    hosts, expects = 0, False
    for name, value in headers:
        if name not in _CHECKED_FIELDS:
            continue
        if name == b"host":
            hosts += 1
            if not _is_host(value.strip(b" \t")):
                raise BadRequest("the Host header is not a host name with an optional port")
        elif name == b"expect":
            expects = version == "1.1" and value.strip(b" \t").lower() == b"100-continue"
        elif version == "1.0":
            raise BadRequest("HTTP/1.0 has no Transfer-Encoding")
        elif value.strip(b" \t").lower() != b"chunked":
            raise BadRequest("the only Transfer-Encoding that is supported is chunked")
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        raise BadRequest(f"the request has {hosts or 'no'} Host headers; it must have one")
    return expects


def _split_absolute_target(method: bytes, target: bytes, headers: Headers) -> bytes:
    """Return the path and query of a target that is an absolute URL or `*`."""
    if target == b"*" and method == b"OPTIONS":
        return target
    scheme, _, rest = target.partition(b"://")
    if scheme.lower() != b"http":
        raise BadRequest("the request target must be a path, such as /v1/messages")
    end = min((at for at in map(rest.find, (b"/", b"?")) if at >= 0), default=len(rest))
    authority, path = rest[:end], rest[end:]
    if not authority or not _is_host(authority):
        raise BadRequest("the request target has no valid host")
    headers[:] = [(name, authority if name == b"host" else value) for name, value in headers]
    return path if path.startswith(b"/") else b"/" + path


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
        "transport",
        "unread_bytes",
        "waits_for_continue",
    )

    def __init__(
        self,
        connection: Connection,
        scope: dict[str, Any],
        *,
        expects_continue: bool,
        keep_alive: bool,
        is_http10: bool,
    ) -> None:
        self.connection, self.scope = connection, scope
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
        self._chunked = False
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
        self._write(b"")
        if not self.response_started and not self.disconnected:
            self.response_started = self.response_complete = True
            self.transport.write(_SERVER_ERROR + b"connection: close\r\n\r\nInternal Server Error")
            self.connection.close_after_response()
        elif not self.response_complete and not self.disconnected:
            self.transport.close()
        # Break the reference cycles: else their memory would wait for the garbage collector.
        del self.scope["extensions"]
        self.on_disconnect = None
        self.connection.remove_cycle(self)
        del self.connection

    # The request.

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
        self._send_continue()
        if self.more_body and length - self.unread_bytes >= _DIRECT_READ_BYTES and not self.disconnected:
            return await self._read_into_buffer(length)
        self.read_limit = length + 1  # never pause
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
        self._write(self._frame(message.get("body", b""), more=more))
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
        if not _is_header_block(lines) or lines.count(b"\n") != len(headers):
            raise RuntimeError("the response has an invalid header")
        self.response_started = True
        length = dict(headers).get(b"content-length")
        if length is not None:
            self._remaining = int(length)
        elif self.scope["method"] != "HEAD" and status not in (204, 304):
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
        if self.scope["method"] == "HEAD":
            self._remaining = 0
            return b""
        if self._chunked:
            framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            return framed if more else framed + b"0\r\n\r\n"
        if self._remaining is not None:
            if len(data) > self._remaining:
                raise RuntimeError("the response is longer than its content-length")
            self._remaining -= len(data)
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
        self.response_complete = True
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
