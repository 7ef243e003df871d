"""One client connection of the HTTP/1.1 server: parses requests, starts each one, and bounds every wait.

llhttp (through httptools) parses in strict mode, and `request_head.check_head` checks each head once more. What either
rejects is answered with one 400, after the responses that are still due, and the connection is closed. Bytes after such
a request, or after one that closes its connection, are never parsed.

**Bodies.** llhttp copies every piece of a body. When the application wants a long body whole, the rest of it is read
from the socket straight into its final buffer, bypassing the parser (`read_body_into`). The parser, which still waits
for that body, is then replaced. All connections of a server share one read buffer: its content is parsed before another
connection reads.

**Upgrade.** The server accepts no upgrade, so by RFC 9110 it ignores `Upgrade` and reads the body as usual. llhttp has
no option for that: when a head has `Connection: upgrade` and `Upgrade`, httptools makes it skip the body, reports the
message as complete and raises `HttpParserUpgrade` with the offset of the first byte after the head. A new parser then
gets a generated head that has only the framing of the request (`Content-Length` or `Transfer-Encoding`, validated
before), and continues at that offset. No byte from the client is changed or searched, so it does not matter how the
head was split into segments.

**Half-closed connections.** A client that has finished sending gets the responses that are due. Meanwhile it is probed,
because it may have left (`cycle.py`). A request that is still incomplete is answered with 400.

**Time and size.** A head has `head_seconds` from its first byte (or from the connection) and 256 KiB. A body must make
progress every `body_seconds`, unless the application is the slow side. Chunk headers, extensions and trailers are
bounded in proportion to the body. Reading stops when `MAX_QUEUED` requests wait behind the one being served. The
keep-alive timer is set once and checks the idle time when it fires: setting and cancelling one per request costs more.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections import deque
from typing import Any, cast

import httptools

from sightline.server.asgi import App, Headers
from sightline.server.cycle import ClientProbe, FlowControl, RequestCycle
from sightline.server.request_head import BadRequest, CheckedHead, get_framing_line

_HEAD_SECONDS = 30.0
_BODY_SECONDS = 60.0
_KEEP_ALIVE_SECONDS = 75.0  # longer than clients keep idle connections, so that none is reused while it is closing
_LINGER_SECONDS = 2.0  # for a client to read the last response while it is still sending
_MAX_DISCARDED = 1024 * 1024  # bytes that are read and dropped after the last request
_MAX_HEAD_BYTES = 256 * 1024
_MAX_FRAMING_BYTES = 512 * 1024  # bytes on the wire beyond 16 for each byte of a body
MAX_QUEUED = 16  # requests that wait behind the one being served, before reading stops
_MAX_PARSED = 512  # requests that wait because they came in one read

_ERROR_WORDING = {
    "Pause on PRI/Upgrade": "HTTP/2 is not supported; send HTTP/1.1",
    "Expected HTTP/, RTSP/ or ICE/": "the request line must end in HTTP/1.1",
}
_ENDED_EARLY = "the connection ended before the request did"


class ServerState:
    """State that all connections of one server share."""

    def __init__(self, app: App, read_buffer: memoryview) -> None:
        self.app = app
        self.read_buffer = read_buffer
        self.connections: set[HttpProtocol] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.long_bodies = 0  # that were read into buffers


class HttpProtocol(asyncio.BufferedProtocol):
    """One connection. `_cycle` is the newest request, `_serving` the one being answered, `_queue` those between."""

    head_seconds = _HEAD_SECONDS
    body_seconds = _BODY_SECONDS
    keep_alive_seconds = _KEEP_ALIVE_SECONDS
    transport: asyncio.Transport
    flow: FlowControl

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._read_buffer = state.read_buffer
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._cycle: RequestCycle | None = None
        self._serving: RequestCycle | None = None
        self._queue: deque[RequestCycle] = deque()
        self._context = contextvars.copy_context()
        self._body_buffer: memoryview | None = None  # for the rest of a long body
        self._client_address: tuple[str, int] | None = None
        self._url = b""
        self._headers: Headers = []
        self._checked: CheckedHead | None = None  # the last head
        self._in_head = True
        self._head_bytes = 0  # of a head that has not ended
        self._wire_bytes = self._body_bytes = 0  # of the current request, without its head
        self._last_body_at = 0.0  # time of the last bytes of a body
        self._offers_upgrade = False  # the head that was just parsed has an Upgrade
        self._is_replaying = False  # the parser is reading a generated head
        self._ignores_input = False  # input is no longer parsed
        self._discarded = 0  # bytes of input since then
        self._half_closed = False  # the client has finished sending
        self._last_response = b""  # a 400 to send after the responses that are still due
        self._timer: asyncio.TimerHandle | None = None  # for the head, the body or closing
        self._keep_alive_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0  # 0: a request is in progress
        self._probe: ClientProbe | None = None  # of a half-closed connection

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.flow = FlowControl(self.transport)
        self._client_address = _get_peer_address(self.transport)
        self._state.connections.add(self)
        self._set_timer(self.head_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(self)
        self._cancel_timer()
        if self._probe is not None:
            self._probe.stop()
            self._probe = None  # it refers to this object
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()
        self._ignores_input = True
        self._body_buffer = None
        self._queue.clear()
        self.flow.resume_writing()
        if self._serving is not None:
            self._serving.disconnect()
        self._cycle = self._checked = None
        del self._parser  # it refers to this object

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._read_buffer if self._body_buffer is None else self._body_buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._body_buffer is not None:
            self._advance_body_buffer(self._body_buffer, nbytes)
        elif not self._ignores_input:
            self._feed(self._read_buffer[:nbytes])
        else:
            self._discarded += nbytes
            if self._discarded > _MAX_DISCARDED:
                self.transport.abort()

    def eof_received(self) -> bool:
        """Return whether responses are still due."""
        cycle = self._cycle
        if self._half_closed:
            return True
        self._half_closed = True
        if not self._ignores_input and (self._head_bytes if self._in_head else cycle is not None and cycle.more_body):
            self._refuse(_ENDED_EARLY)
        if self.transport.is_closing() or cycle is None or (self._serving is None and not self._queue):
            return False
        self._ignores_input = True
        if not self._last_response:
            cycle.keep_alive = False
        self._cancel_timer()
        self._probe = ClientProbe(self.transport, lambda: self._serving)
        return True

    def pause_writing(self) -> None:
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        self.flow.resume_writing()

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        if self._ignores_input:
            raise BadRequest("nothing may follow this request")  # stops the parser; no response is sent
        if not self._is_replaying:
            self._url, self._headers = b"", []
            self._in_head, self._head_bytes = True, 0
            self._idle_since = 0.0  # not before: an empty line, which may precede a request, begins none

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer or belongs to a generated head
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._is_replaying:
            return
        parser, headers = self._parser, self._headers
        method, version = parser.get_method(), parser.get_http_version()
        checked = self._checked
        if checked is None or not checked.is_same(method, version, self._url, headers):
            lasts, upgrades = parser.should_keep_alive(), parser.should_upgrade()
            checked = CheckedHead(method, version, self._url, headers, keep_alive=lasts, offers_upgrade=upgrades)
            self._checked = checked
        self._in_head = False
        self._offers_upgrade = checked.offers_upgrade
        if self._timer is not None:
            self._cancel_timer()
        self._wire_bytes = self._body_bytes = 0
        scope = checked.scope.copy()
        scope["headers"], scope["client"] = headers, self._client_address
        before = self._cycle
        cycle = self._cycle = RequestCycle(self, scope, checked.expects_continue, checked.keep_alive, version == "1.0")
        if before is None or before.response_complete:
            self._start(cycle)
        else:
            self._enqueue(cycle)

    def on_body(self, body: bytes) -> None:
        cycle = self._cycle
        assert cycle is not None
        size = len(body)
        self._body_bytes += size
        if not cycle.response_complete:
            cycle.add_piece(body, size)

    def on_message_complete(self) -> None:
        if self._offers_upgrade:  # llhttp has skipped the body
            return
        cycle = self._cycle
        assert cycle is not None
        cycle.more_body = False
        if not cycle.response_complete:
            cycle.notify()
        if not cycle.keep_alive:
            self._ignores_input = True
        if self._timer is not None:
            self._cancel_timer()

    # Reading.

    def _feed(self, data: memoryview) -> None:
        """Parse input, then apply the bounds to the head or body that is still incomplete."""
        size, before = len(data), self._cycle
        had_body = before is not None and before.more_body
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                self._replay_framing()
                continue
            except httptools.HttpParserError as error:
                if not self._ignores_input:
                    self._refuse(_explain_error(error))
            break
        if self._ignores_input:
            return
        if self._in_head:  # a read that also has the end of another request does not count
            self._limit_head(1 if had_body or self._cycle is not before else size)
        elif self._cycle is not None and self._cycle.more_body:
            self._limit_body(self._cycle, size)

    def _replay_framing(self) -> None:
        """Start a new parser that expects the body of the current request."""
        self._offers_upgrade = False
        self._parser = httptools.HttpRequestParser(self)
        self._is_replaying = True
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % get_framing_line(self._headers))
        self._is_replaying = False

    def _limit_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > _MAX_HEAD_BYTES:
            self._refuse(f"the head of the request is larger than {_MAX_HEAD_BYTES // 1024} KiB")
        elif self._timer is None:
            self._set_timer(self.head_seconds, self.transport.abort)

    def _limit_body(self, cycle: RequestCycle, size: int) -> None:
        self._wire_bytes += size
        self._last_body_at = self._loop.time()
        if self._wire_bytes - 16 * self._body_bytes > _MAX_FRAMING_BYTES:
            self._refuse("the body has more chunk headers, extensions and trailers than content")
            return
        if cycle.unread_bytes >= cycle.read_limit and not cycle.response_complete:
            self.flow.pause_reading()
        if self._timer is None:
            self._set_timer(self.body_seconds, self._check_progress)

    def _check_progress(self) -> None:
        """Abort if the body makes no progress, unless the application is the slow side."""
        now = self._loop.time()
        if self.flow.read_paused:
            self._last_body_at = now
        left = self._last_body_at + self.body_seconds - now
        if left > 0:
            self._set_timer(left, self._check_progress)
        else:
            self.transport.abort()

    def read_body_into(self, buffer: memoryview) -> None:
        """Read the rest of the current body, which has a content-length, into `buffer`, bypassing the parser."""
        self._state.long_bodies += 1
        self._body_buffer = buffer
        self.flow.resume_reading()

    def _advance_body_buffer(self, buffer: memoryview, nbytes: int) -> None:
        self._last_body_at = self._loop.time()
        if nbytes < len(buffer):
            self._body_buffer = buffer[nbytes:]
            return
        self._body_buffer = None
        self._parser = httptools.HttpRequestParser(self)  # the old one still waits for the rest of this body
        self.on_message_complete()

    # The order of requests.

    def _start(self, cycle: RequestCycle) -> None:
        self._serving = cycle
        # A request that was queued is started by the one before it, whose context isn't its own.
        cycle.task = self._loop.create_task(cycle.run(self._state.app), context=self._context.copy())
        self._state.tasks.add(cycle.task)  # until `remove_cycle`

    def _enqueue(self, cycle: RequestCycle) -> None:
        self._queue.append(cycle)
        waiting = len(self._queue)
        if waiting >= _MAX_PARSED:
            raise BadRequest("too many requests on this connection wait for their response")
        if waiting >= MAX_QUEUED:  # reading goes on until then, so that a disconnect is noticed
            self.flow.pause_reading()

    def finish_response(self) -> None:
        """Continue with the next request after a complete response."""
        self._serving = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self._queue:
            self._start(self._queue.popleft())
        elif self._last_response:
            self._write_last_response()
        elif self._half_closed:
            self.transport.close()
        else:
            self._idle_since = self._loop.time()
            if self._keep_alive_timer is None:
                self._set_keep_alive(self.keep_alive_seconds)

    def close_after_response(self) -> None:
        """Close the connection so that the client can still read the response.

        While the client is sending, a plain close would reset the connection, and the response would be lost.
        """
        cycle = self._cycle
        self._serving = None
        self._ignores_input = True
        if self._half_closed or cycle is None or not cycle.more_body or self.transport.is_closing():
            self.transport.close()
            return
        self._body_buffer = None
        self._discarded = -sys.maxsize  # no bound: it is the rest of the request's body
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._set_timer(_LINGER_SECONDS, self.transport.abort)

    def remove_cycle(self, cycle: RequestCycle) -> None:
        """Drop a cycle whose application has returned."""
        if self._serving is cycle:
            self._serving = None
        self._state.tasks.discard(cycle.task)

    def shut_down(self) -> None:
        """Close the connection as soon as the responses that are due are complete."""
        cycle = self._cycle
        if cycle is None or cycle.response_complete:
            self.transport.close()
        else:
            cycle.keep_alive = False

    def _set_keep_alive(self, seconds: float) -> None:
        self._keep_alive_timer = self._loop.call_later(seconds, self._check_idle)

    def _check_idle(self) -> None:
        self._keep_alive_timer = None
        left = self._idle_since + self.keep_alive_seconds - self._loop.time()
        if self._idle_since and left <= 0:
            self.transport.close()
        elif self._idle_since:
            self._set_keep_alive(left)

    # Bad requests.

    def _refuse(self, reason: str) -> None:
        """Answer with 400, after the responses that are due, and stop reading."""
        cycle = self._cycle
        self._ignores_input = True
        self._body_buffer = None
        self._cancel_timer()
        if cycle is not None and cycle.more_body and cycle.response_complete:
            self.close_after_response()
            return
        body = f"Sightline: bad request: {reason}\n".encode()
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
        self._last_response = head % len(body) + b"connection: close\r\n\r\n" + body
        if cycle is not None and cycle.more_body and not self._abandon(cycle):
            return
        if self._serving is None and not self._queue:
            self._write_last_response()

    def _abandon(self, cycle: RequestCycle) -> bool:
        """Cancel the request whose body is bad; return false if its response has started and had to be cut off."""
        cycle.more_body = False
        if cycle is not self._serving:
            if self._queue:
                self._queue.pop()
            return True
        if cycle.response_started:
            self.transport.abort()
            return False
        self._serving = None
        cycle.disconnect()
        return True

    def _write_last_response(self) -> None:
        self.transport.write(self._last_response)
        self._last_response = b""
        if self._half_closed:
            self.transport.close()
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._set_timer(_LINGER_SECONDS, self.transport.abort)

    # Timers.

    def _set_timer(self, seconds: float, callback: Any) -> None:
        self._cancel_timer()
        self._timer = self._loop.call_later(seconds, callback)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _get_peer_address(transport: asyncio.Transport) -> tuple[str, int] | None:
    """Return the host and port of the client, or None if it has none, as on a Unix socket."""
    peer = transport.get_extra_info("peername")
    return (peer[0], peer[1]) if isinstance(peer, tuple) and len(peer) >= 2 else None


def _explain_error(error: httptools.HttpParserError) -> str:
    """Return in one line what is wrong with a request."""
    if isinstance(error.__context__, BadRequest):
        return str(error.__context__)
    return _ERROR_WORDING.get(str(error), str(error))
