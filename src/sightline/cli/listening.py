"""A proxy while it listens: in front for `serve`, in a thread of its own beside an agent for `run`."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType

from sightline.cli import compose
from sightline.cli.verb import say
from sightline.model.receipt import Receipt
from sightline.surfaces.proxy.serve import listen

_TERMINATED = 128 + signal.SIGTERM


def in_front(
    whole: compose.Parts, listening: socket.socket, ready: Callable[[], None], *, verbose: bool, token: str = ""
) -> None:
    """Until the process is told to stop."""
    signal.signal(signal.SIGTERM, _end)
    with _runner() as runner:
        runner.run(_listen(whole, listening, ready, verbose=verbose, signals=True, token=token))


class Beside:
    """Listens from `start` on, which returns when it does, until `stop`; signals are somebody else's."""

    def __init__(self, whole: compose.Parts, listening: socket.socket, *, verbose: bool) -> None:
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._work = (whole, listening, verbose)
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def start(self) -> bool:
        """Whether it listens."""
        self._thread.start()
        self._ready.wait()
        return self._thread.is_alive()

    def stop(self) -> None:
        if self._loop is not None and self._task is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        try:
            with _runner() as runner:
                self._loop = runner.get_loop()
                runner.run(self._main())
        except asyncio.CancelledError:
            pass
        finally:
            self._ready.set()  # whoever waits for a proxy that could not start waits no longer

    async def _main(self) -> None:
        whole, listening, verbose = self._work
        self._task = asyncio.current_task()
        await _listen(whole, listening, self._ready.set, verbose=verbose, signals=False)


async def _listen(
    whole: compose.Parts,
    listening: socket.socket,
    ready: Callable[[], None],
    *,
    verbose: bool,
    signals: bool,
    token: str = "",
) -> None:
    if verbose:
        logging.basicConfig(level=logging.INFO, format="sightline: %(message)s", stream=sys.stderr)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        proxy = compose.proxy(whole, _tell if verbose else _keep_quiet, token=token)
        await listen(proxy, listening, ready, signals)
    finally:
        await whole.close()


def _runner() -> asyncio.Runner:
    try:
        import uvloop
    except ImportError:  # not made for Windows
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def _tell(receipt: Receipt) -> None:
    say(str(receipt))


def _keep_quiet(receipt: Receipt) -> None:
    """Nobody asked."""


def _end(signum: int, frame: FrameType | None) -> None:
    """As an exception, so that everything is closed on the way out."""
    raise SystemExit(_TERMINATED)
