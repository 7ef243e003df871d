"""Runs an application on a socket that is already bound, until it is told to stop; then lets requests finish."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from sightline.server.asgi import App
from sightline.server.protocol import HttpProtocol, ServerState

_SCRATCH = 256 * 1024  # bytes that are read at a time
_BACKLOG = 2048
_DRAIN_SECONDS = 3.0  # for requests to finish after a signal
_DRAIN_STEP = 0.02
_LARGEST_KEPT = 31 * 1024 * 1024  # bytes; the limit in glibc is 32 MiB
_GC_THRESHOLDS = (5_000, 20, 20)  # hardly anything here is a reference cycle
_SWITCH_SECONDS = 0.001  # after which a computing thread lets the event loop go on; by default, 5 ms
_SIGNALS = [signal.SIGINT, signal.SIGTERM]
if sys.platform == "win32":
    _SIGNALS.append(signal.SIGBREAK)


async def serve_app(
    app: App, sock: socket.socket, ready: Callable[[], None] = lambda: None, signals: bool = True
) -> None:
    """Serve until cancelled or, with `signals`, until the process is told to stop; `ready` is called once it listens.

    A second signal ends the wait for requests to finish.
    """
    stop = asyncio.Event()
    state = ServerState(app, memoryview(bytearray(_SCRATCH)))
    with _stop_on_signals(stop, signals) as received:
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(lambda: HttpProtocol(state), sock=sock, backlog=_BACKLOG)
        try:
            if signals:
                _tune_process()
            ready()
            await stop.wait()
        finally:
            listener.close()
            await _drain(state, received)


def _tune_process() -> None:
    """Prepare a process that only serves: keep what it has loaded, and reuse the memory of bodies."""
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_SECONDS)
    bytes(_LARGEST_KEPT)  # never touched; freeing it raises the size up to which glibc keeps freed memory


async def _drain(state: ServerState, received: list[int]) -> None:
    """Close connections as their responses complete, and all that are left after a while."""
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

    # Ctrl-C is ignored in the background of a script: there it is meant for the program in front.
    handled = [each for each in _SIGNALS if each != signal.SIGINT or signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, receive) for each in handled}
    try:
        yield received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    for signum in reversed(received):
        signal.raise_signal(signum)
