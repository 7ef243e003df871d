"""The HTTP/1.1 server: an `asyncio.BufferedProtocol` on httptools that runs an ASGI application.

`serve_app` listens on a socket, and stops when its process gets a signal, after the requests in progress. `protocol.py`
is a connection, `request_head.py` the head of a request, `cycle.py` one request with its response, and `asgi.py` what
an application sees.

The server relies on these, beyond the documentation of asyncio (`tests/server` fails where one of them does not hold):

- httptools: the callbacks of `HttpRequestParser`; `HttpParserUpgrade.args[0]`, the offset of the first byte after the
  head; an error that a callback raises is the `__context__` of the `HttpParserError` that `feed_data` raises.
- llhttp is strict: it accepts no head that RFC 9112 forbids, except for what `request_head.check_head` checks.
- glibc: `mallopt` and `malloc_trim`. Other systems keep their own way of reusing memory.
- CPython: `PyByteArray_FromStringAndSize(NULL, n)` does not touch the memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from sightline.server.asgi import (
    BODY_FOLLOWS,
    DIRECT_CONNECTION,
    App,
    DirectConnection,
    Headers,
    Message,
    Receive,
    Scope,
    Send,
)
from sightline.server.protocol import HttpProtocol, ServerState

__all__ = [
    "BODY_FOLLOWS",
    "DIRECT_CONNECTION",
    "App",
    "DirectConnection",
    "Headers",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "serve_app",
]

_READ_BUFFER_BYTES = 256 * 1024  # of all connections
_BACKLOG = 2048
_DRAIN_SECONDS = 3.0  # time for requests to finish after a signal
_DRAIN_STEP = 0.02
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt
_MAX_REUSED_BYTES = 32 * 1024 * 1024  # of one buffer: the limit in glibc
_MAX_FREED_BYTES = 1024 * 1024 * 1024  # of all buffers, as much as all bodies may take
_TRIM_SECONDS = 10.0  # without a long body, after which freed memory is returned to the system
_SWITCH_SECONDS = 0.001  # after which a computing thread lets the event loop run; the default is 5 ms
_SIGNALS = [signal.SIGINT, signal.SIGTERM]
if sys.platform == "win32":
    _SIGNALS.append(signal.SIGBREAK)


async def serve_app(
    app: App, sock: socket.socket, ready: Callable[[], None] = lambda: None, signals: bool = True
) -> None:
    """Serve until cancelled or, with `signals`, until the process gets a signal to stop; call `ready` once it listens.

    A second signal ends the wait for requests to finish.
    """
    stop = asyncio.Event()
    state = ServerState(app, memoryview(bytearray(_READ_BUFFER_BYTES)))
    with _stop_on_signals(stop, signals) as received:
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(lambda: HttpProtocol(state), sock=sock, backlog=_BACKLOG)
        try:
            if signals:
                _tune_process()
                _keep_freed_memory(state)
            ready()
            await stop.wait()
        finally:
            listener.close()
            await _drain(state, received)


def _tune_process() -> None:
    """Exempt what was imported from garbage collection, and tune thread switching, for a process that only serves."""
    gc.freeze()
    sys.setswitchinterval(_SWITCH_SECONDS)


def _keep_freed_memory(state: ServerState) -> None:
    """Let glibc keep the memory of long bodies for the next ones, and return it to the system when none come.

    Else it is returned and requested again between bursts: with 36 bodies of 20 MB at a time, the page faults cost 8 of
    24 ms for each.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        return
    libc.mallopt(_M_MMAP_THRESHOLD, _MAX_REUSED_BYTES)
    libc.mallopt(_M_TRIM_THRESHOLD, _MAX_FREED_BYTES)
    loop = asyncio.get_running_loop()
    trim: Callable[[int], int] = libc.malloc_trim
    at_last_check = at_last_trim = 0

    def check() -> None:
        nonlocal at_last_check, at_last_trim
        if state.long_bodies == at_last_check != at_last_trim:
            at_last_trim = at_last_check
            loop.run_in_executor(None, trim, 0)
        at_last_check = state.long_bodies
        loop.call_later(_TRIM_SECONDS, check)

    check()


async def _drain(state: ServerState, received: list[int]) -> None:
    """Close connections as their responses complete, and after a while all of them."""
    for connection in list(state.connections):
        connection.shut_down()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while (state.connections or state.tasks) and len(received) < 2:  # noqa: ASYNC110  it happens once
                await asyncio.sleep(_DRAIN_STEP)
    for connection in list(state.connections):
        connection.transport.abort()
    tasks = list(state.tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def _stop_on_signals(stop: asyncio.Event, signals: bool) -> Iterator[list[int]]:
    """Set `stop` on a signal, and afterwards deliver the signal to its previous handler."""
    received: list[int] = []
    if not signals or threading.current_thread() is not threading.main_thread():
        yield received
        return
    loop = asyncio.get_running_loop()

    def receive(signum: int, frame: FrameType | None) -> None:
        received.append(signum)
        loop.call_soon_threadsafe(stop.set)

    # A shell ignores Ctrl-C for a script's background processes: it is meant for the one in the foreground.
    handled = [each for each in _SIGNALS if each != signal.SIGINT or signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, receive) for each in handled}
    try:
        yield received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    for signum in reversed(received):
        signal.raise_signal(signum)
