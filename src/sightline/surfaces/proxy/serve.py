"""The listening side: uvicorn on a socket that is bound already."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial

import uvicorn

from sightline.surfaces.proxy.connection import Connection
from sightline.surfaces.proxy.cycle import App

_KEPT = 31 * 1024 * 1024  # up to this size glibc then keeps what is freed; it takes no more than 32 MiB
_COLLECTED = (5_000, 20, 20)  # thresholds of the collector: hardly anything here is a circle
_SCRATCH = 256 * 1024  # bytes that are read at a time


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
        http=partial(Connection, memoryview(bytearray(_SCRATCH))),  # type: ignore[arg-type]
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
