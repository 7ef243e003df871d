"""Run the proxy's HTTP server, in this process or in a thread: its address, options and log.

It listens on this machine alone, unless a token guards it. With `--log json`, stderr has one JSON object per line,
without image bytes, texts of conversations, or keys. Verbs import this module for the options alone, so that everything
heavy is imported when the server starts.
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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from sightline.cli import set_serving_thresholds
from sightline.cli.terminal import format_dollars, print_status
from sightline.model.fence import to_printable
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

if TYPE_CHECKING:
    import asyncio
    from types import FrameType

    from sightline.model.records import Omission, Receipt
    from sightline.model.scene import Json
    from sightline.runtime import Runtime
    from sightline.sources.files import PathPolicy
    from sightline.surfaces.proxy.request_context import LogEntry
    from sightline.surfaces.proxy.telemetry import Metrics, RequestLog

DEFAULT_PORT = 8790
_OWN_LOGGER = "sightline"
_MAX_MESSAGE = 300  # characters


def read_port(text: str) -> int:
    return read_number(text, 0, 65535)


def read_number(text: str, low: int, high: int) -> int:
    """Return a number; argparse prints what is wrong with it."""
    if not re.fullmatch(r"\d{1,9}", text) or not low <= int(text) <= high:
        raise ArgumentTypeError(f"{text!r:.40} is not a whole number from {low} to {high}")
    return int(text)


def add_address(parser: ArgumentParser) -> None:
    """Add the options for the address, and for the token that guards it."""
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="default: 127.0.0.1")
    parser.add_argument(
        "--port", type=read_port, default=DEFAULT_PORT, metavar="P", help=f"default: {DEFAULT_PORT}; 0: any free port"
    )
    parser.add_argument(
        "--token", metavar="T", default="",
        help="require this token in the header x-sightline-token; needed for a --host that others can reach;"
        " set SIGHTLINE_TOKEN instead to keep it out of the process list",
    )  # fmt: skip


def check_folder(root: Path | None) -> Refusal | None:
    if root is None or root.is_dir():
        return None
    return Refusal("not_found", f"there is no folder {root}", "create it, or give another --root")


def format_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind_socket(host: str, number: int, *, guarded: bool = False) -> socket.socket | Refusal:
    """Return a listening socket; port 0 is any free one. Verbs bind it first, because it fails most often."""
    from sightline.model.profile import is_loopback  # `sightline mcp` on stdio has to start quickly

    if not is_loopback(host) and not guarded:
        return Refusal(
            "not_permitted",
            f"{host} can be reached from other machines, and the proxy would serve anyone there",
            "use --host 127.0.0.1, or require a token with --token",
        )
    host = "127.0.0.1" if host.endswith("localhost") else host
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":  # there it allows a quick restart, and not two servers on one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, number))
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            return Refusal("unavailable", f"port {number} is in use", "choose another one with --port")
        return Refusal(
            "unavailable",
            f"cannot listen on {format_url(host, number)}: {error.strerror}",
            "choose another --host",
        )
    return listening


def find_url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return format_url(host, port)


@value_class
class ServeOptions:
    """How a proxy serves and what it logs."""

    verbose: bool = False  # print every receipt on stderr
    as_json: bool = False  # a line for each request on stderr
    token: str = field(default="", repr=False)
    policy: PathPolicy | None = None  # the files that commands and tools may name; None: none
    metrics: Metrics | None = None  # None: those of this process alone
    is_only_process: bool = True  # no other process listens on the same port
    with_proxy: bool = True  # otherwise only /mcp is served
    inspector_only: bool = False  # instead of /mcp
    prints_changes: bool = False  # print a line on stderr for each request that was changed


def serve_until_signal(
    runtime: Runtime, listening: socket.socket, ready: Callable[[], None], options: ServeOptions
) -> None:
    """Serve in this process until a signal stops it."""
    signal.signal(signal.SIGTERM, exit_on_signal)
    with _build_runner() as runner:
        work = _serve(runtime, listening, ready, options, signals=True)
        try:
            runner.run(work)
        finally:
            runner.close()
            work.close()  # a signal may have come before it was started


class ProxyThread:
    """A proxy in its own thread, which handles no signals."""

    def __init__(self, runtime: Runtime, listening: socket.socket, options: ServeOptions) -> None:
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._work = (runtime, listening, options)
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def start(self) -> bool:
        """Start the thread. Return True once it listens, or False if it cannot."""
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
            with _build_runner() as runner:
                self._loop = runner.get_loop()
                runner.run(self._main())
        except asyncio.CancelledError:
            pass
        finally:
            self._ready.set()  # also if it could not start

    async def _main(self) -> None:
        import asyncio

        runtime, listening, options = self._work
        self._task = asyncio.current_task()
        await _serve(runtime, listening, self._ready.set, options, signals=False)


async def _serve(
    runtime: Runtime, listening: socket.socket, ready: Callable[[], None], options: ServeOptions, *, signals: bool
) -> None:
    from sightline.cli import compose
    from sightline.server import serve_app

    def report_ready() -> None:
        set_serving_thresholds()
        ready()

    if options.as_json:
        log_as_json()
    elif options.verbose:
        logging.basicConfig(level=logging.INFO, format="sightline: %(message)s", stream=sys.stderr)
    if options.inspector_only:
        try:
            await serve_app(compose.build_inspector_app(runtime), listening, report_ready, signals)
        finally:
            await runtime.close()
        return
    reach = options.policy or compose.NO_FILES
    mcp = compose.build_mcp_mount(runtime, reach, options.token, is_only_process=options.is_only_process)
    try:
        if not options.with_proxy:
            await serve_app(compose.build_mcp_app(mcp, options.token), listening, report_ready, signals)
            return
        proxy = compose.build_proxy(
            runtime,
            token=options.token,
            policy=reach,
            request_log=_build_request_log(runtime, options),
            metrics=options.metrics,
            mcp=mcp,
        )
        preloader = compose.Preloader(compose.preload(proxy))

        def start_preloading() -> None:
            report_ready()
            preloader.start()

        try:
            await serve_app(proxy, listening, start_preloading, signals)
        finally:
            preloader.stop()
            await proxy.close()
    finally:
        await mcp.close()
        await runtime.close()


def _build_runner() -> asyncio.Runner:
    import asyncio

    try:
        import uvloop
    except ImportError:  # it doesn't exist for Windows
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def _build_request_log(runtime: Runtime, options: ServeOptions) -> RequestLog:
    from sightline.surfaces.proxy.telemetry import RequestLog, RequestPrinter

    if options.as_json:
        return RequestLog(runtime.record, write_log_line, _log_omission)
    printer = RequestPrinter(_print_change, _print_wait) if options.prints_changes else None
    on_receipt = _print_receipt if options.verbose else _ignore_receipt
    return RequestLog(runtime.record, None, _print_omission, printer, on_receipt)


def _print_change(entry: LogEntry) -> None:
    """Print one line about a request that was changed: time, model, what was done, how long it took, what it cost."""
    _print_about(entry, f"{'; '.join(_describe_changes(entry.receipts))}; {entry.seconds:.1f} s, {_format_cost(entry)}")


def _print_wait(entry: LogEntry) -> None:
    """Print that a request waits for a seer, which may take long the first time that it sees an image."""
    seers = ", ".join(dict.fromkeys(entry.activity.seers)) if entry.activity else ""
    _print_about(entry, f"waiting for {seers} to answer about images ({entry.seconds:.0f} s so far)")


def _print_about(entry: LogEntry, words: str) -> None:
    line = f"{datetime.now().astimezone():%H:%M:%S} {entry.model or 'unknown model'}: {words}"
    print(to_printable(line), file=sys.stderr, flush=True)


def _describe_changes(receipts: Sequence[Receipt]) -> list[str]:
    """Return what was done to the images of a request when it was last sent, and all notes."""
    last = next((each for each in reversed(receipts) if each.sights), None)
    counts = Counter((line.fate, line.why) for line in last.sights if line.why) if last else {}
    images = [
        f"{count} {'image' if count == 1 else 'images'} {_DONE[fate].format(why)}"
        for (fate, why), count in counts.items()
    ]
    return [*images, *dict.fromkeys(note for each in receipts for note in each.notes)]


_DONE = {
    "shown": "{}",
    "refitted": "refitted {}",
    "told": "described {}",
    "retired": "retired ({})",
    "refused": "left out: {}",
    "repeated": "left out {}",
}


def _format_cost(entry: LogEntry) -> str:
    costs = entry.activity.costs if entry.activity else []
    known = [cost for cost in costs if cost is not None]
    if len(known) == len(costs):
        return format_dollars(sum(known))
    return f"{format_dollars(sum(known))} and calls of unknown price" if known else "price unknown"


def _print_receipt(receipt: Receipt) -> None:
    print_status(str(receipt))


def _print_omission(omission: Omission) -> None:
    from sightline.agents import explain_omission

    print_status(explain_omission(omission.client, omission.model))


def _log_omission(omission: Omission) -> None:
    from sightline.agents import explain_omission

    log_warnings([explain_omission(omission.client, omission.model)])


def _ignore_receipt(receipt: Receipt) -> None:
    """Do nothing: changed requests are printed elsewhere, or not at all."""


def exit_on_signal(signum: int, frame: FrameType | None) -> None:
    """Raise SystemExit, so that everything is closed on the way out."""
    raise SystemExit(128 + signum)


def write_log_line(said: Mapping[str, Json]) -> None:
    """Write one JSON line with the time, in one piece: other processes may write to the same stream."""
    print(json.dumps({"time": _format_time(), **said}), file=sys.stderr, flush=True)


def log_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        write_log_line({"level": "warning", "message": warning[:_MAX_MESSAGE]})


def log_as_json() -> None:
    """Write everything that this process logs as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


class _JsonFormatter(logging.Formatter):
    """Formats log records as JSON. An exception is logged by type and place: its message may quote a request."""

    def format(self, record: logging.LogRecord) -> str:
        is_own = record.name.partition(".")[0] == _OWN_LOGGER
        said: dict[str, Json] = {"time": _format_time(), "level": record.levelname.lower(), "logger": record.name}
        said["message"] = record.getMessage()[:_MAX_MESSAGE] if is_own else "a library logged a message"
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            said["fault"] = record.exc_info[0].__name__
            said["at"] = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in frames]
        return json.dumps(said)


def _format_time() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
