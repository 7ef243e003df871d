"""An HTTP/1.1 connection of a client: parse what comes, start each request, wait for nothing without a bound.

llhttp (through httptools) parses, in its strict mode. What it lets through is checked once more in `head.py`; what
neither accepts is answered with one 400, behind the responses that are still due, and the connection is closed. Bytes
behind such a request, or behind one that closes its connection, are never parsed.

**Bodies.** llhttp copies every piece of a body. Where the application wants a long body whole, the rest of it is read
from the socket straight into its final place, past the parser (`fill`); the parser that still waits for it is then
replaced. All connections of a server read into one buffer: what is there is parsed before another connection reads.

**Upgrade.** The server accepts none, so by RFC 9110 an `Upgrade` is ignored and the body read as usual. llhttp has no
switch for that: where a head has `Connection: upgrade` and `Upgrade`, httptools makes it skip the body, reports the
message as complete and raises `HttpParserUpgrade` with the offset of the first byte behind the head. A new parser then
gets a head of our own that has nothing but the framing of the request (`Content-Length` or `Transfer-Encoding`, which
llhttp and `head.py` have validated), and reads on from that offset. No byte of the client is changed or searched, so it
does not matter how the head was split into segments.

**Half-closed connections.** A client that will send no more gets the responses that are due, and is probed meanwhile,
because it may have left (`cycle.py`). A request that is not complete by then is answered with 400.

**Time and size.** A head has `head_seconds` from its first byte (or from the connection) and 256 KiB; a body must
make progress every `body_seconds`, except while its reader is the slow one; chunk headers, extensions and trailers are
bounded in proportion to the body. At most `MOST_QUEUED` requests wait behind the one being served before reading stops.
The keep-alive timer is set once and looks when it fires: setting and cancelling one per request costs more.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Any, cast

import httptools

from sightline.server.asgi import App, Headers
from sightline.server.cycle import ClientProbe, FlowControl, RequestCycle
from sightline.server.head import BadRequest, check_head, framing_of

_HEAD_SECONDS = 30.0
_BODY_SECONDS = 60.0
_KEEP_ALIVE_SECONDS = 75.0  # longer than clients keep theirs, so that none is reused while it is being closed
_LINGER_SECONDS = 2.0  # for a client to read the last response while it is still sending
_MOST_DISCARDED = 1024 * 1024  # bytes that are read and dropped after the last request
_LARGEST_HEAD = 256 * 1024
_LARGEST_FRAMING = 512 * 1024  # bytes on the wire beyond 16 for each byte of a body
MOST_QUEUED = 16  # requests that wait behind the one being served
_MOST_PARSED = 512  # the same, when they came in one read

_PLAIN_ERRORS = {
    "Pause on PRI/Upgrade": "HTTP/2 is not supported; send HTTP/1.1",
    "Expected HTTP/, RTSP/ or ICE/": "the request line must end in HTTP/1.1",
}
_ENDED_EARLY = "the connection ended before the request did"


class ServerState:
    """What the connections of one server share."""

    def __init__(self, app: App, scratch: memoryview) -> None:
        self.app = app
        self.scratch = scratch  # into which all connections read
        self.connections: set[HttpProtocol] = set()
        self.tasks: set[asyncio.Task[None]] = set()


class HttpProtocol(asyncio.BufferedProtocol):
    """One connection. `_cycle` is the newest request, `_serving` the one being answered, `_queue` those between."""

    head_seconds = _HEAD_SECONDS
    body_seconds = _BODY_SECONDS
    keep_alive_seconds = _KEEP_ALIVE_SECONDS
    transport: asyncio.Transport
    flow: FlowControl

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._scratch = state.scratch
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._cycle: RequestCycle | None = None
        self._serving: RequestCycle | None = None
        self._queue: deque[RequestCycle] = deque()
        self._place: memoryview | None = None  # for the rest of a long body
        self._client: tuple[str, int] | None = None
        self._url = b""
        self._headers: Headers = []
        self._in_head = True
        self._head_bytes = 0  # of a head that has not ended
        self._wire_bytes = self._body_bytes = 0  # of the current request, without its head
        self._body_at = 0.0  # when the last bytes of a body came
        self._offers_upgrade = False  # the head that was just parsed does
        self._replays = False  # the parser is being fed a head of our own
        self._discarded = 0  # bytes that came since
        self._ignores_input = False  # nothing that comes is parsed any more
        self._half_closed = False  # nothing comes any more
        self._last_response = b""  # a 400 behind the responses that are still due
        self._timer: asyncio.TimerHandle | None = None  # of the head, the body or the closing
        self._keep_alive_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0  # 0: a request is under way
        self._probe: ClientProbe | None = None  # of a half-closed connection

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.flow = FlowControl(self.transport)
        self._client = _address_of(self.transport)
        self._state.connections.add(self)
        self._set_timer(self.head_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(self)
        self._cancel_timer()
        if self._probe is not None:
            self._probe.stop()
            self._probe = None  # it holds this object
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()
        self._ignores_input = True
        self._place = None
        self._queue.clear()
        self.flow.resume_writing()
        if self._serving is not None:
            self._serving.disconnect()
        self._cycle = None
        del self._parser  # it holds this object

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._scratch if self._place is None else self._place

    def buffer_updated(self, nbytes: int) -> None:
        if self._place is not None:
            self._advance_place(self._place, nbytes)
        elif not self._ignores_input:
            self._feed(self._scratch[:nbytes])
        else:
            self._discarded += nbytes
            if self._discarded > _MOST_DISCARDED:
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

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._ignores_input:
            raise BadRequest("nothing may follow this request")  # nor is it answered
        if not self._replays:
            self._url, self._headers = b"", []
            self._in_head, self._head_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer, or of our own
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._replays:
            return
        parser, headers = self._parser, self._headers
        method, version = parser.get_method(), parser.get_http_version()
        head = check_head(method, version, self._url, headers)
        self._in_head = False
        if self._timer is not None:
            self._cancel_timer()
        self._wire_bytes = self._body_bytes = 0
        self._offers_upgrade = parser.should_upgrade()
        scope = {
            "type": "http",
            "method": method.decode("ascii"),
            "headers": headers,
            "raw_path": head.path,
            "query_string": head.query,
            "client": self._client,
        }
        is_http10 = version == "1.0"
        lasts = not is_http10 and parser.should_keep_alive()
        before, self._cycle = (
            self._cycle,
            RequestCycle(self, scope, expects=head.expects_continue, keep_alive=lasts, is_http10=is_http10),
        )
        if before is None or before.response_complete:
            self._start(self._cycle)
        else:
            self._enqueue(self._cycle)

    def on_body(self, body: bytes) -> None:
        cycle = self._cycle
        assert cycle is not None
        size = len(body)
        self._body_bytes += size
        if not cycle.response_complete:
            cycle.pieces.append(body)
            cycle.unread += size
            cycle.notify()

    def on_message_complete(self) -> None:
        if self._offers_upgrade:  # so says llhttp, which has not seen the body
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
        """Parse what was read, then see to the bounds of what is incomplete."""
        size, before = len(data), self._cycle
        had_body = before is not None and before.more_body
        self._idle_since = 0.0
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                self._replay_framing()
                continue
            except httptools.HttpParserError as error:
                if not self._ignores_input:
                    self._refuse(_explain(error))
            break
        if self._ignores_input:
            return
        if self._in_head:  # a read that holds the end of another request does not count
            self._bound_head(1 if had_body or self._cycle is not before else size)
        elif self._cycle is not None and self._cycle.more_body:
            self._bound_body(self._cycle, size)

    def _replay_framing(self) -> None:
        """Make a new parser expect the body of the request whose head the old one has read."""
        self._offers_upgrade = False
        self._parser = httptools.HttpRequestParser(self)
        self._replays = True
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing_of(self._headers))
        self._replays = False

    def _bound_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > _LARGEST_HEAD:
            self._refuse(f"the head of the request is larger than {_LARGEST_HEAD // 1024} KiB")
        elif self._timer is None:
            self._set_timer(self.head_seconds, self.transport.abort)

    def _bound_body(self, cycle: RequestCycle, size: int) -> None:
        self._wire_bytes += size
        self._body_at = self._loop.time()
        if self._wire_bytes - 16 * self._body_bytes > _LARGEST_FRAMING:
            self._refuse("the body has more chunk headers, extensions and trailers than content")
            return
        if cycle.unread >= cycle.most and not cycle.response_complete:
            self.flow.pause_reading()
        if self._timer is None:
            self._set_timer(self.body_seconds, self._check_progress)

    def _check_progress(self) -> None:
        """Give up a body that makes no progress, unless its reader is the slow one."""
        now = self._loop.time()
        if self.flow.read_paused:
            self._body_at = now
        left = self._body_at + self.body_seconds - now
        if left > 0:
            self._set_timer(left, self._check_progress)
        else:
            self.transport.abort()

    def fill(self, place: memoryview) -> None:
        """Read the rest of the current body, which has a content-length, into `place` and past the parser."""
        self._place = place
        self.flow.resume_reading()

    def _advance_place(self, place: memoryview, nbytes: int) -> None:
        self._body_at = self._loop.time()
        if nbytes < len(place):
            self._place = place[nbytes:]
            return
        self._place = None
        self._parser = httptools.HttpRequestParser(self)  # the old one still waits for the rest of this body
        self.on_message_complete()

    # Requests in their order.

    def _start(self, cycle: RequestCycle) -> None:
        self._serving = cycle
        self._state.tasks.add(self._loop.create_task(cycle.run(self._state.app)))  # `forget` takes it out again

    def _enqueue(self, cycle: RequestCycle) -> None:
        self._queue.append(cycle)
        waiting = len(self._queue)
        if waiting >= _MOST_PARSED:
            raise BadRequest("too many requests on this connection wait for their response")
        if waiting >= MOST_QUEUED:  # until then it is read on, so that a client that leaves is noticed
            self.flow.pause_reading()

    def finish_response(self) -> None:
        """Go on with what comes after a response that is complete."""
        self._serving = None
        if self.transport.is_closing():
            return
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

        While it is still sending, a plain close would reset the connection and take the response back.
        """
        cycle = self._cycle
        self._serving = None
        self._ignores_input = True
        if self._half_closed or cycle is None or not cycle.more_body or self.transport.is_closing():
            self.transport.close()
            return
        self._place = None
        self._discarded = -sys.maxsize  # it is the body of that request
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._set_timer(_LINGER_SECONDS, self.transport.abort)

    def forget(self, cycle: RequestCycle) -> None:
        """Let go of a cycle whose application has returned."""
        if self._serving is cycle:
            self._serving = None
        task = asyncio.current_task()
        assert task is not None
        self._state.tasks.discard(task)

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

    # What cannot be read.

    def _refuse(self, reason: str) -> None:
        """Answer what cannot be read with 400, behind the responses that are due, and read no more."""
        cycle = self._cycle
        self._ignores_input = True
        self._place = None
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
        """Give up the request whose body cannot be read; false means that its response has begun, and so is cut."""
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


def _address_of(transport: asyncio.Transport) -> tuple[str, int] | None:
    """Return the host and port of the other side, or None if it has none, as on a Unix socket."""
    peer = transport.get_extra_info("peername")
    return (peer[0], peer[1]) if isinstance(peer, tuple) and len(peer) >= 2 else None


def _explain(error: httptools.HttpParserError) -> str:
    """Return in one line what is wrong with a request, in our words or in those of llhttp."""
    if isinstance(error.__context__, BadRequest):
        return str(error.__context__)
    return _PLAIN_ERRORS.get(str(error), str(error))
