"""The listening side: uvicorn on a socket that is bound already."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http import httptools_impl

App = Callable[..., Coroutine[Any, Any, None]]

_LARGEST_HEAD = 256 * 1024
_HEAD_SECONDS = 30.0

# Bodies of megabytes are the rule here: to ask a client to wait at every 64 KiB costs more than to take it all.
setattr(httptools_impl, "HIGH_WATER_LIMIT", 1024 * 1024)  # noqa: B010, not a name that it exports


class _Protocol(httptools_impl.HttpToolsProtocol):
    """Requests whose head is too long or too slow end here, and trailers are no headers."""

    head_seconds = _HEAD_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head = 0  # bytes of a head that has not ended
        self._in_head = True
        self._slow: asyncio.TimerHandle | None = self.loop.call_later(self.head_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._head += len(data)
            if self._head > _LARGEST_HEAD:
                self.send_400_response("The head of this request is too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head = True, 0
        if self._slow is None:
            self._slow = self.loop.call_later(self.head_seconds, self.transport.abort)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._in_time()
        super().on_headers_complete()

    def _in_time(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], signals: bool) -> None:
        super().__init__(config)
        self._ready = ready
        self._signals = signals

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
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
