"""A proxy while it listens: in front for `serve`, in a thread of its own beside an agent for `run`."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

from sightline.cli import compose, logs
from sightline.cli.agents import omits
from sightline.cli.verb import say
from sightline.model.receipt import Omission, Receipt
from sightline.server import serve_app
from sightline.sources.file import Policy
from sightline.surfaces.proxy.telemetry import Metrics, RequestLog

_TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True, slots=True)
class Manner:
    """How a proxy treats whoever calls it and whoever watches it."""

    verbose: bool = False
    as_json: bool = False  # a line for each request on stderr
    token: str = field(default="", repr=False)
    reach: Policy = compose.NOWHERE  # the files that a command may name
    metrics: Metrics = field(default_factory=Metrics)
    alone: bool = True  # no other process listens on the same port
    proxies: bool = True  # else there is /mcp, and nothing is passed on


def in_front(whole: compose.Parts, listening: socket.socket, ready: Callable[[], None], manner: Manner) -> None:
    """Serve in this process until it is told to stop."""
    signal.signal(signal.SIGTERM, _end)
    with _runner() as runner:
        runner.run(_listen(whole, listening, ready, manner, signals=True))


class Beside:
    """Listens from `start` on, which returns when it does, until `stop`; signals are somebody else's."""

    def __init__(self, whole: compose.Parts, listening: socket.socket, manner: Manner) -> None:
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._work = (whole, listening, manner)
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def start(self) -> bool:
        """Start the thread; true once it listens, false if it could not."""
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
        whole, listening, manner = self._work
        self._task = asyncio.current_task()
        await _listen(whole, listening, self._ready.set, manner, signals=False)


async def _listen(
    whole: compose.Parts, listening: socket.socket, ready: Callable[[], None], manner: Manner, *, signals: bool
) -> None:
    tells = manner.verbose and not manner.as_json
    if manner.as_json:
        logs.begin()
    elif manner.verbose:
        logging.basicConfig(level=logging.INFO, format="sightline: %(message)s", stream=sys.stderr)
    mcp = compose.mcp(whole, manner.reach, manner.token, alone=manner.alone)
    try:
        if not manner.proxies:
            await serve_app(compose.only(mcp, manner.token), listening, ready, signals)
            return
        request_log = RequestLog(whole.record, *((logs.write, _log_omission) if manner.as_json else (None, _warn)))
        said = _tell if tells else _keep_quiet
        proxy = compose.proxy(
            whole,
            said,
            token=manner.token,
            reach=manner.reach,
            request_log=request_log,
            metrics=manner.metrics,
            mcp=mcp,
        )
        try:
            await serve_app(proxy, listening, ready, signals)
        finally:
            await proxy.close()
    finally:
        await mcp.close()
        await whole.close()


def _runner() -> asyncio.Runner:
    try:
        import uvloop
    except ImportError:  # not made for Windows
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def _tell(receipt: Receipt) -> None:
    say(str(receipt))


def _warn(omission: Omission) -> None:
    say(omits(omission.client, omission.model))


def _log_omission(omission: Omission) -> None:
    logs.warned([omits(omission.client, omission.model)])


def _keep_quiet(receipt: Receipt) -> None:
    """For whoever has not asked to see receipts."""


def _end(signum: int, frame: FrameType | None) -> None:
    """As an exception, so that everything is closed on the way out."""
    raise SystemExit(_TERMINATED)
