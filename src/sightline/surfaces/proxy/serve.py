"""The listening side: uvicorn on a socket that is bound already."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import httptools
import uvicorn
from uvicorn._types import HTTPScope
from uvicorn.protocols.http import httptools_impl

from sightline.surfaces.proxy.bodies import Message, unwritten
from sightline.surfaces.proxy.line import AT_ONCE, LINE

App = Callable[..., Coroutine[Any, Any, None]]

_LARGEST_HEAD = 256 * 1024
_HEAD_SECONDS = 30.0
_BODY_SECONDS = 60.0
_MOST_QUEUED = 16  # requests of a client that does not wait for answers
_KEPT = 31 * 1024 * 1024
_COLLECTED = (5_000, 20, 20)

# Bodies of megabytes are the rule here: what has not come yet of one is read straight into its place. Of one that only
# flows through, to ask a client to wait at every 64 KiB costs more than to take a megabyte.
_STRAIGHT = 64 * 1024
_UNREAD = 1024 * 1024
_SCRATCH = 256 * 1024

_sound = re.compile(rb"(?:[^\x00-\x20\x7f()<>@,;:\\\[\]={}\"]+: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*").fullmatch


class _Cycle(httptools_impl.RequestResponseCycle):
    """A request and its answer, at less cost than what it replaces.

    Pieces of a body are handed on as they came, and a head goes out together with the first bytes behind it, if
    they are there.
    """

    def __init__(self, protocol: _Protocol, scope: HTTPScope, *, expects: bool, keep_alive: bool) -> None:
        self.protocol, self.scope, self.transport, self.flow = protocol, scope, protocol.transport, protocol.flow
        self.message_event = asyncio.Event()
        self.on_response = protocol.on_response_complete
        self.disconnected = self.response_started = self.response_complete = False
        self.keep_alive, self.waiting_for_100_continue, self.more_body = keep_alive, expects, True
        self.chunked_encoding, self.expected_content_length = None, 0
        self.pieces: list[bytes] = []
        self.unread, self.most = 0, _STRAIGHT  # bytes; until the application says what it wants of the rest
        self.leaving: Callable[[], None] | None = None
        self._head = b""

    async def run_asgi(self, app: App) -> None:  # type: ignore[override]
        self.scope["extensions"] = {LINE: self}  # type: ignore[dict-item]
        try:
            with contextlib.suppress(BaseException):  # the application has said what there is to say of it
                await app(self.scope, self.receive, self.send)
            self._put(b"")
            if not self.response_started and not self.disconnected:
                await self.send_500_response()
            elif not self.response_complete and not self.disconnected:
                self.transport.close()
        finally:
            del self.scope["extensions"]  # a circle that only the collector would find
            self.leaving = None
            self.on_response = _nothing
            if self.protocol.serving is self:
                self.protocol.serving = None
            self.protocol.tasks.discard(asyncio.current_task())
            del self.protocol  # another one

    async def receive(self) -> Message:  # type: ignore[override]
        self._go_on()
        if not self.disconnected and not self.response_complete:
            self.most = _UNREAD
            self.flow.resume_reading()
            await self._more()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        pieces, self.pieces, self.unread = self.pieces, [], 0
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def whole(self, length: int) -> bytes | bytearray | None:
        """The whole body, of which so many bytes are announced; None: the client has left."""
        self._go_on()
        if self.more_body and length - self.unread >= _STRAIGHT and not self.disconnected:
            return await self._filled(length)
        self.most = length + 1  # it is wanted to its end
        self.flow.resume_reading()
        while self.more_body and not self.disconnected:
            await self._more()
        pieces, self.pieces, self.unread = self.pieces, [], 0
        return None if self.disconnected else pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _filled(self, length: int) -> bytearray | None:
        data = unwritten(length)
        with memoryview(data) as view:
            begun = b"".join(self.pieces)
            view[: len(begun)] = begun
            self.pieces, self.unread = [], 0
            self.protocol.fill(view[len(begun) :])
            while self.more_body and not self.disconnected:
                await self._more()
        return None if self.disconnected else data

    def _go_on(self) -> None:
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False

    async def _more(self) -> None:
        await self.message_event.wait()
        self.message_event.clear()

    async def send(self, message: Message) -> None:  # type: ignore[override]
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if not self.response_started:
            self._begin(message["status"], message["headers"])
            if not message.get(AT_ONCE):
                asyncio.get_running_loop().call_soon(self._put, b"")
            return
        more = message["more_body"]
        self._put(self._framed(message["body"], more=more))
        if not more:
            self._end()

    def write(self, data: bytes) -> bool:
        """Bytes of a body, at once; false: no more of them until there is room."""
        if self.chunked_encoding and data and not self._head and not self.disconnected:  # as nearly always
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        elif not self.disconnected:
            self._put(self._framed(data, more=True))
        return not self.flow.write_paused

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        if not _sound(lines) or lines.count(b"\n") != len(headers):
            raise RuntimeError("a header that is none")
        length = next((value for name, value in headers if name == b"content-length"), None)
        if length is not None:
            self.expected_content_length = int(length)
        elif self.scope["method"] != "HEAD" and status not in (204, 304):
            self.chunked_encoding = True
            lines += b"transfer-encoding: chunked\r\n"
        if not self.keep_alive:
            lines += b"connection: close\r\n"
        self._head = b"%b%b\r\n" % (httptools_impl.STATUS_LINE[status], lines)

    def _framed(self, data: bytes, *, more: bool) -> bytes:
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            return b""
        if self.chunked_encoding:
            framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            return framed if more else framed + b"0\r\n\r\n"
        if len(data) > self.expected_content_length:
            raise RuntimeError("more than the head has announced")
        self.expected_content_length -= len(data)
        return data

    def _put(self, data: bytes) -> None:
        """Behind the head, if that is still here."""
        if self._head:
            data, self._head = self._head + data, b""
        if data and not self.disconnected:
            self.transport.write(data)

    def left(self) -> None:
        """The client has."""
        self.disconnected = not self.response_complete
        self.message_event.set()
        if self.leaving is not None:
            self.leaving()

    def _end(self) -> None:
        if self.expected_content_length:
            raise RuntimeError("less than the head has announced")
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _nothing() -> None:
    """Its connection is nobody's any more."""


class _Protocol(httptools_impl.HttpToolsProtocol):
    """Requests whose head is too long, or that do not come on, end here, and trailers are no headers."""

    head_seconds = _HEAD_SECONDS
    body_seconds = _BODY_SECONDS
    serving: _Cycle | None = None  # what is being answered; others may wait behind it
    came = 0.0  # when the last bytes of a body did
    cycle: _Cycle | None  # type: ignore[assignment]

    def __init__(self, scratch: memoryview, **given: Any) -> None:
        """All connections of a server read into `scratch`: what is there is parsed before another comes to read."""
        super().__init__(**given)
        self._reader = _Reader(self, scratch)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_protocol(self._reader)
        self._head = 0  # bytes of a head that has not ended
        self._in_head = True
        self._slow: asyncio.TimerHandle | None = self.loop.call_later(self.head_seconds, self.transport.abort)
        self._resting = 0.0  # since when nothing is asked; 0: something is

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        super().connection_lost(exc)
        self._reader.place = None
        if self.serving is not None:
            self.serving.left()

    def data_received(self, data: bytes | memoryview) -> None:
        super().data_received(data)  # type: ignore[arg-type]
        cycle = self.cycle
        if cycle is not None and cycle.more_body and cycle.unread >= cycle.most and not cycle.response_complete:
            self.flow.pause_reading()
        if self._in_head and not self.transport.is_closing():
            self._head += len(data)
            if self._head > _LARGEST_HEAD:
                self.send_400_response("The head of this request is too long.")
            elif self._slow is None:
                self._slow = self.loop.call_later(self.head_seconds, self.transport.abort)
        elif cycle is not None and cycle.more_body:
            self.came = self.loop.time()
            if self._slow is None:
                self._slow = self.loop.call_later(self.body_seconds, self._waited)

    def on_message_begin(self) -> None:
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._in_head, self._head = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._in_time()
        where, version = httptools.parse_url(self.url), self.parser.get_http_version()
        where.path.decode("ascii")  # or it is none
        scope: Any = {
            "type": "http",
            "method": self.parser.get_method().decode("ascii"),
            "headers": self.headers,
            "raw_path": where.path,
            "query_string": where.query or b"",
        }
        waits = self.cycle is not None and not self.cycle.response_complete
        lasting = version != "1.0" and self.parser.should_keep_alive()
        self.cycle = _Cycle(self, scope, expects=self.expect_100_continue, keep_alive=lasting)
        if waits:  # for its turn behind another; if it were not read on, nobody would hear that its client left
            self.pipeline.appendleft((self.cycle, self.app))
            if len(self.pipeline) >= _MOST_QUEUED:
                self.flow.pause_reading()
        else:
            self._start_asgi_task(self.cycle, self.app)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_time()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self.serving = cycle
        self.tasks.add(self.loop.create_task(cycle.run_asgi(app)))  # it takes itself out: a callback costs a turn

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._resting = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._rest_for(self.timeout_keep_alive)

    def _unset_keepalive_if_required(self) -> None:
        self._resting = 0.0  # the timer stays, and will see: to set and to take back one for each request costs more

    def _rest_for(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        left = self._resting + self.timeout_keep_alive - self.loop.time()
        if self._resting and left <= 0:
            super().timeout_keep_alive_handler()
        elif self._resting:
            self._rest_for(left)

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        assert isinstance(cycle, _Cycle)
        if cycle.response_complete:
            return
        cycle.pieces.append(body)
        cycle.unread += len(body)
        cycle.message_event.set()

    def fill(self, place: memoryview) -> None:
        """The rest of a body, as long as its head has announced, goes to this place and past the parser."""
        self._reader.place = place
        self.flow.resume_reading()

    def filled(self) -> None:
        """What comes now is another request: the parser still waits for the rest of this one."""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
        self.on_message_complete()

    def _waited(self) -> None:
        """A body that does not come on is waited for no longer, unless its client is the one who waits."""
        now = self.loop.time()
        if self.flow.read_paused:
            self.came = now
        left = self.came + self.body_seconds - now
        if left > 0:
            self._slow = self.loop.call_later(left, self._waited)
        else:
            self.transport.abort()

    def _in_time(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None


class _Reader(asyncio.BufferedProtocol):
    """Takes for a `_Protocol` what comes, where it belongs: the rest of a long body is not copied once."""

    def __init__(self, protocol: _Protocol, scratch: memoryview) -> None:
        self._protocol = protocol
        self._scratch = scratch
        self.place: memoryview | None = None  # of what is still to come of a body
        self.pause_writing, self.resume_writing = protocol.pause_writing, protocol.resume_writing  # type: ignore[method-assign]
        self.connection_lost = protocol.connection_lost  # type: ignore[method-assign]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._scratch if self.place is None else self.place

    def buffer_updated(self, nbytes: int) -> None:
        if self.place is None:
            self._protocol.data_received(self._scratch[:nbytes])
            return
        self.place = self.place[nbytes:]
        self._protocol.came = self._protocol.loop.time()
        if not self.place:
            self.place = None
            self._protocol.filled()


def _settled() -> None:
    """For a process that only serves: what it has loaded stays, and memory of a body is kept for the next one."""
    gc.freeze()
    gc.set_threshold(*_COLLECTED)
    bytes(_KEPT)  # never touched; that it was freed raises the size up to which glibc keeps what is freed


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], signals: bool) -> None:
        super().__init__(config)
        self._ready = ready
        self._signals = signals

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._signals:
            _settled()
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if not self._signals:
            yield
            return
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        with super().capture_signals():
            if ignored:  # in the background of a script: there Ctrl-C is meant for whoever is in front
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            yield


async def listen(app: App, sock: socket.socket, ready: Callable[[], None] = lambda: None, signals: bool = True) -> None:
    """Serve until cancelled, or, with `signals`, until the process is told to stop."""
    # What it has to say of a request, the application has said: to the client, and in our own log.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http=partial(_Protocol, memoryview(bytearray(_SCRATCH))),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=75,  # longer than clients keep theirs, so that none is taken up as it is closed
    )
    server = _Server(config, ready, signals)
    try:
        await server.serve([sock])
    except asyncio.CancelledError:
        await server.shutdown([sock])
        raise
