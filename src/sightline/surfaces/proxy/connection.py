"""A client's connection: what comes is parsed, each request is begun, and nobody is waited for without end."""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http import httptools_impl

from sightline.surfaces.proxy.cycle import Cycle

_LARGEST_HEAD = 256 * 1024
_HEAD_SECONDS = 30.0
_BODY_SECONDS = 60.0
MOST_QUEUED = 16  # requests of a client that does not wait for answers


class Connection(httptools_impl.HttpToolsProtocol):
    """Requests whose head is too long, or that do not come on, end here, and trailers are no headers."""

    head_seconds = _HEAD_SECONDS
    body_seconds = _BODY_SECONDS
    serving: Cycle | None = None  # what is being answered; others may wait behind it
    came = 0.0  # when the last bytes of a body did
    cycle: Cycle | None  # type: ignore[assignment]

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
        self.cycle = Cycle(self, scope, expects=self.expect_100_continue, keep_alive=lasting)
        if waits:  # for its turn behind another; if it were not read on, nobody would hear that its client left
            self.pipeline.appendleft((self.cycle, self.app))
            if len(self.pipeline) >= MOST_QUEUED:
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
        assert isinstance(cycle, Cycle)
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
    """Takes for a `Connection` what comes, where it belongs: the rest of a long body is not copied once."""

    def __init__(self, connection: Connection, scratch: memoryview) -> None:
        self._connection = connection
        self._scratch = scratch
        self.place: memoryview | None = None  # of what is still to come of a body
        self.pause_writing, self.resume_writing = connection.pause_writing, connection.resume_writing  # type: ignore[method-assign]
        self.connection_lost = connection.connection_lost  # type: ignore[method-assign]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._scratch if self.place is None else self.place

    def buffer_updated(self, nbytes: int) -> None:
        if self.place is None:
            self._connection.data_received(self._scratch[:nbytes])
            return
        self.place = self.place[nbytes:]
        self._connection.came = self._connection.loop.time()
        if not self.place:
            self.place = None
            self._connection.filled()
