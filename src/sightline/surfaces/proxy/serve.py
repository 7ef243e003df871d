"""The listening side: uvicorn on a socket that is bound already."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, cast
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.protocols.http import httptools_impl

from sightline.surfaces.proxy.bodies import Message
from sightline.surfaces.proxy.line import LINE

App = Callable[..., Coroutine[Any, Any, None]]

_LARGEST_HEAD = 256 * 1024
_HEAD_SECONDS = 30.0
_BODY_SECONDS = 60.0
_MOST_QUEUED = 16  # requests of a client that does not wait for answers
_KEPT = 31 * 1024 * 1024
_COLLECTED = (5_000, 20, 20)

# Bodies of megabytes are the rule here: to ask a client to wait at every 64 KiB costs more than to take it all.
_UNREAD = 1024 * 1024

_sound = re.compile(rb"(?:[^\x00-\x20\x7f()<>@,;:\\\[\]={}\"]+: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*").fullmatch


class _Cycle(httptools_impl.RequestResponseCycle):
    """A request and its answer, at less cost than what it replaces.

    Pieces of a body are handed on as they came, and a head goes out together with the first bytes behind it, if
    they are there.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pieces: list[bytes] = []
        self.unread = 0
        self.leaving: Callable[[], None] | None = None
        self.serving: set[_Cycle] = set()  # those of the connection that are being answered
        self._head = b""

    async def run_asgi(self, app: App) -> None:  # type: ignore[override]
        self.scope["extensions"] = {LINE: self}  # type: ignore[dict-item]
        self.serving.add(self)
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
            self.serving.discard(self)
            self.leaving = None
            self.on_response = _nothing

    async def receive(self) -> Message:  # type: ignore[override]
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            self.flow.resume_reading()
            await self.message_event.wait()
            self.message_event.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        pieces, self.pieces, self.unread = self.pieces, [], 0
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: Message) -> None:  # type: ignore[override]
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if not self.response_started:
            self._begin(message["status"], message["headers"])
            return
        more = message["more_body"]
        self._put(self._framed(message["body"], more=more))
        if not more:
            self._end()

    def write(self, data: bytes) -> bool:
        """Bytes of a body, at once; false: no more of them until there is room."""
        if not self.disconnected:
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
        asyncio.get_running_loop().call_soon(self._put, b"")

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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._serving: set[_Cycle] = set()
        self._came = 0.0  # when the last bytes did
        self._head = 0  # bytes of a head that has not ended
        self._in_head = True
        self._slow: asyncio.TimerHandle | None = self.loop.call_later(self.head_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)
        for cycle in list(self._serving):  # not only the newest
            cycle.left()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._head += len(data)
            if self._head > _LARGEST_HEAD:
                self.send_400_response("The head of this request is too long.")
            elif self._slow is None:
                self._slow = self.loop.call_later(self.head_seconds, self.transport.abort)
        elif (cycle := self._newest) is not None and cycle.more_body:
            self._came = self.loop.time()
            if self._slow is None:
                self._slow = self.loop.call_later(self.body_seconds, self._waited)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """As what it replaces, with a cycle of our own, and no more of them queued than makes sense."""
        self._in_head = False
        self._in_time()
        version, url = self.parser.get_http_version(), httptools.parse_url(self.url)
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["http_version"] = version
        self.scope["path"] = unquote(url.path.decode("ascii"))
        self.scope["raw_path"] = url.path
        self.scope["query_string"] = url.query or b""
        former = self._newest
        self.cycle = cycle = _Cycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        cycle.serving = self._serving
        if former is None or former.response_complete:
            task = self.loop.create_task(cycle.run_asgi(self.app))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)
            return
        self.pipeline.appendleft((cycle, self.app))
        if len(self.pipeline) >= _MOST_QUEUED:  # until then it is read on, or nobody would hear that its client left
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_time()

    def on_body(self, body: bytes) -> None:
        cycle = self._newest
        assert cycle is not None
        if cycle.response_complete:
            return
        cycle.pieces.append(body)
        cycle.unread += len(body)
        if cycle.unread > _UNREAD:
            self.flow.pause_reading()
        cycle.message_event.set()

    @property
    def _newest(self) -> _Cycle | None:
        return cast("_Cycle | None", self.cycle)

    def _waited(self) -> None:
        """A body that does not come on is waited for no longer, unless its client is the one who waits."""
        now = self.loop.time()
        if self.flow.read_paused:
            self._came = now
        left = self._came + self.body_seconds - now
        if left > 0:
            self._slow = self.loop.call_later(left, self._waited)
        else:
            self.transport.abort()

    def _in_time(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None


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
        with super().capture_signals():
            yield


async def listen(app: App, sock: socket.socket, ready: Callable[[], None] = lambda: None, signals: bool = True) -> None:
    """Serve until cancelled, or, with `signals`, until the process is told to stop."""
    # What it has to say of a request, the application has said: to the client, and in our own log.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http=_Protocol,
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
