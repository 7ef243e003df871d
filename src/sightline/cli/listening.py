"""How the proxy listens: its address, the server in front or in a thread, and its log.

It listens on this machine alone, unless a token guards it. A log for machines has one JSON object a line on stderr,
without an image byte, a text of a conversation, or a key. Verbs import this for the address: all else loads later.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
import traceback
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from sightline.agents import explain_omission
from sightline.cli.terminal import say
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    import asyncio
    from types import FrameType

    from sightline.model.receipt import Omission, Receipt
    from sightline.model.scene import Json
    from sightline.runtime import Runtime
    from sightline.sources.file import Policy
    from sightline.surfaces.proxy.telemetry import Metrics

DEFAULT_PORT = 8790
_TERMINATED = 128 + signal.SIGTERM
_OURS = "sightline"
_LONGEST = 300  # letters of a message


def port(text: str) -> int:
    return whole(text, 0, 65535)


def whole(text: str, low: int, high: int) -> int:
    """Parse a number for argparse, which prints what is wrong with it."""
    if not re.fullmatch(r"\d{1,9}", text) or not low <= int(text) <= high:
        raise ArgumentTypeError(f"{text!r:.40} is not a whole number from {low} to {high}")
    return int(text)


def add_address(parser: ArgumentParser) -> None:
    """Add where to listen, and the token that guards it."""
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="default: 127.0.0.1")
    parser.add_argument(
        "--port", type=port, default=DEFAULT_PORT, metavar="P", help=f"default: {DEFAULT_PORT}; 0: any free one"
    )
    parser.add_argument(
        "--token", metavar="T", default="",
        help="serve only who sends it in the header x-sightline-token; needed for a --host beyond this machine;"
        " SIGHTLINE_TOKEN keeps it out of the list of processes",
    )  # fmt: skip


def check_folder(root: Path | None) -> Refusal | None:
    if root is None or root.is_dir():
        return None
    return Refusal("not_found", f"there is no folder {root}", "create it, or give another --root")


def url_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind(host: str, number: int, *, guarded: bool = False) -> socket.socket | Refusal:
    """Return a listening socket; port 0 is any free one. Bind it first: what fails then has cost nothing."""
    from sightline.model.upstream import is_loopback  # a host that starts us on stdio waits for less

    if not is_loopback(host) and not guarded:
        return Refusal(
            "not_permitted",
            f"{host} is not an address of this machine alone, and whoever reaches the proxy can use it",
            "use --host 127.0.0.1, or ask for a token with --token",
        )
    host = "127.0.0.1" if host.endswith("localhost") else host
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":  # where it lets a port be taken at once after a restart, and not stolen
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, number))
        listening.listen(128)
    except OSError as trouble:
        listening.close()
        if trouble.errno == errno.EADDRINUSE:
            return Refusal("unavailable", f"port {number} is in use", "choose another one with --port")
        return Refusal(
            "unavailable", f"{url_of(host, number)} cannot be listened on: {trouble.strerror}", "choose another --host"
        )
    return listening


def url_on(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return url_of(host, port)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a proxy serves and what it logs."""

    verbose: bool = False
    as_json: bool = False  # a line for each request on stderr
    token: str = field(default="", repr=False)
    reach: Policy | None = None  # the files that a command may name; None: no file
    metrics: Metrics | None = None  # None: of this process alone
    alone: bool = True  # no other process listens on the same port
    proxies: bool = True  # else there is /mcp, and nothing is passed on


def in_front(whole: Runtime, listening: socket.socket, ready: Callable[[], None], manner: Manner) -> None:
    """Serve in this process until a signal stops it."""
    signal.signal(signal.SIGTERM, _end)
    work = _listen(whole, listening, ready, manner, signals=True)
    with _runner() as runner:
        try:
            runner.run(work)
        finally:
            work.close()  # which a signal may have kept from being started


class Beside:
    """A proxy in a thread of its own, from `start` to `stop`; it handles no signals."""

    def __init__(self, whole: Runtime, listening: socket.socket, manner: Manner) -> None:
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
        import asyncio

        try:
            with _runner() as runner:
                self._loop = runner.get_loop()
                runner.run(self._main())
        except asyncio.CancelledError:
            pass
        finally:
            self._ready.set()  # also where it could not start

    async def _main(self) -> None:
        import asyncio

        whole, listening, manner = self._work
        self._task = asyncio.current_task()
        await _listen(whole, listening, self._ready.set, manner, signals=False)


async def _listen(
    whole: Runtime, listening: socket.socket, ready: Callable[[], None], manner: Manner, *, signals: bool
) -> None:
    from sightline.cli import compose
    from sightline.server import serve_app
    from sightline.surfaces.proxy.telemetry import RequestLog

    if manner.as_json:
        begin_logs()
    elif manner.verbose:
        logging.basicConfig(level=logging.INFO, format="sightline: %(message)s", stream=sys.stderr)
    reach = manner.reach or compose.NOWHERE
    mcp = compose.mcp(whole, reach, manner.token, alone=manner.alone)
    try:
        if not manner.proxies:
            await serve_app(compose.only(mcp, manner.token), listening, ready, signals)
            return
        proxy = compose.proxy(
            whole,
            _tell if manner.verbose and not manner.as_json else _keep_quiet,
            token=manner.token,
            reach=reach,
            request_log=RequestLog(whole.record, *((log, _log_omission) if manner.as_json else (None, _warn))),
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
    import asyncio

    try:
        import uvloop
    except ImportError:  # not made for Windows
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def _tell(receipt: Receipt) -> None:
    say(str(receipt))


def _warn(omission: Omission) -> None:

    say(explain_omission(omission.client, omission.model))


def _log_omission(omission: Omission) -> None:

    log_warnings([explain_omission(omission.client, omission.model)])


def _keep_quiet(receipt: Receipt) -> None:
    """Say nothing about a request."""


def _end(signum: int, frame: FrameType | None) -> None:
    """Raise an exception, so that everything is closed on the way out."""
    raise SystemExit(_TERMINATED)


def log(said: Mapping[str, Json]) -> None:
    """Write one line with the time, in one piece: other processes may write to the same place."""
    print(json.dumps({"time": _now(), **said}), file=sys.stderr, flush=True)


def log_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        log({"level": "warning", "message": warning[:_LONGEST]})


def begin_logs() -> None:
    """Make everything that this process logs such a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


class _Lines(logging.Formatter):
    """Log of a fault its kind and where it was, never its words: they may quote a request."""

    def format(self, record: logging.LogRecord) -> str:
        ours = record.name.partition(".")[0] == _OURS
        said: dict[str, Json] = {"time": _now(), "level": record.levelname.lower(), "logger": record.name}
        said["message"] = record.getMessage()[:_LONGEST] if ours else "a library has logged something"
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            said["fault"] = record.exc_info[0].__name__
            said["at"] = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in frames]
        return json.dumps(said)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
