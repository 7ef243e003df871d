"""`sightline serve`: run the proxy on this machine until it is stopped."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket as sockets
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from socket import socket

from sightline.cli.proxy_server import (
    ServeOptions,
    add_address,
    bind_socket,
    check_folder,
    exit_on_signal,
    find_url,
    log_as_json,
    log_warnings,
    read_number,
    serve_until_signal,
)
from sightline.cli.terminal import VerbOutcome, print_refusal, print_status, print_warnings
from sightline.cli.verbs import silence_warnings
from sightline.model.refusal import Refusal
from sightline.model.shared_address import SharedAddress
from sightline.settings import COMMAND_LINE, Settings, load_settings

EXAMPLE = """  sightline serve
  sightline serve --upstream deepseek
  sightline serve --upstream work=https://llm.example.com/v1"""

_log = logging.getLogger(__name__)
_MAX_WORKERS = 64
_QUICK = 2.0  # seconds: a worker that ends sooner would fail again
_PATIENCE = 8.0  # seconds for a worker to end its requests
_FAILED = 1
_Serve = Callable[[socket, Callable[[], None], int], int]
"""Serves on a socket, calls a function when it listens; the number is that of the worker."""
_Children = dict[int, tuple[int, float]]  # by process id: the number of the worker, and when it was started


def add_arguments(parser: ArgumentParser) -> None:
    add_address(parser)
    parser.add_argument(
        "--upstream", action="append", default=[], metavar="[NAME=]URL",
        help="where to send requests: a URL, or the NAME of a known provider; default: the provider that owns the API",
    )  # fmt: skip
    parser.add_argument(
        "--workers",
        type=_read_count,
        default=1,
        metavar="N",
        help="the number of processes, which share the port and the record; default: 1",
    )
    parser.add_argument(
        "--root", type=Path, metavar="DIR",
        help="the folder whose files clients may name, as in `/vision-proxy describe PATH`; default: none;"
        " they can then name images only by sha256",
    )  # fmt: skip
    parser.add_argument(
        "--store", metavar="URL",
        help="a record that replicas share, in PostgreSQL: postgresql://USER@HOST/DATABASE, with the password in"
        " PGPASSWORD; needs --blobs",
    )  # fmt: skip
    parser.add_argument("--blobs", metavar="URL", help="where its images are: s3://BUCKET/PREFIX or file:///FOLDER")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the settings file to use")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the receipt of every request with images")
    parser.add_argument(
        "--log", choices=("text", "json"),
        help="json: print one JSON object per request on stderr, without images, texts or keys; or set SIGHTLINE_LOG",
    )  # fmt: skip


def _read_count(text: str) -> int:
    return read_number(text, 1, _MAX_WORKERS)


def run(args: Namespace) -> VerbOutcome:
    if args.config and not args.config.is_file():
        return Refusal("not_found", f"there is no file {args.config}", "give another --config")
    settings = load_settings(config_file=args.config)
    flags = {name: value for name in ("store", "blobs") if (value := getattr(args, name)) is not None}
    settings = settings.override(flags, COMMAND_LINE)
    if refusal := check_folder(args.root) or (settings.shared_address and settings.shared_address.check()):
        return refusal
    as_json = (args.log or settings.environment.get("SIGHTLINE_LOG")) == "json"
    (log_warnings if as_json else print_warnings)((*settings.warnings, *settings.advice))
    token = args.token or settings.environment.get("SIGHTLINE_TOKEN", "")
    listening = bind_socket(args.host, args.port, guarded=bool(token))
    if isinstance(listening, Refusal):
        return listening
    needs_check = args.workers > 1  # else it is opened at once
    if refusal := _check_upstreams(settings, args.upstream) or (needs_check and _check_shared_record(settings)):
        listening.close()
        return refusal
    address = find_url(listening)
    banner = threading.Thread(target=_print_banner, args=(address, bool(token)), name="banner", daemon=True)

    def ready() -> None:
        print(f"Sightline listens on {address}", flush=True)
        banner.start()

    serve = _build_server(args, settings, token, as_json=as_json)
    try:
        with listening:
            if args.workers == 1:
                return serve(listening, ready, 0)
            return _serve_in_processes(args.workers, listening, serve, ready)
    finally:
        if banner.ident is not None:  # it was started; if it still printed when Python ends, Python would abort
            banner.join()


def _build_server(args: Namespace, settings: Settings, token: str, *, as_json: bool) -> _Serve:
    from sightline.cli import compose
    from sightline.model.profile import is_loopback
    from sightline.runtime import build_runtime
    from sightline.surfaces.proxy.telemetry import Metrics, SharedCounts

    named, looked_for = compose.find_policies(settings, args.root, args.host)
    together = SharedCounts(args.workers) if args.workers > 1 else None

    def serve(listening: socket, ready: Callable[[], None], who: int) -> int:
        if as_json:
            log_as_json()
        with silence_warnings("sightline.store", when=who > 0):  # the first worker reports what is wrong with it
            runtime = build_runtime(
                settings, args.upstream, path_policy=looked_for, local_clients=is_loopback(args.host),
                requires_record=True, report=_log.warning if who == 0 else _ignore_change,
            )  # fmt: skip
        if isinstance(runtime, Refusal):
            return print_refusal(runtime)
        metrics = Metrics(together, who)
        alone = args.workers == 1
        options = ServeOptions(args.verbose, as_json, token, named, metrics, alone, prints_changes=True)
        serve_until_signal(runtime, listening, ready, options)
        return 0

    return serve


def _check_upstreams(settings: Settings, flags: Sequence[str]) -> Refusal | None:
    """Return an error that would stop every worker, before any is started."""
    from sightline.settings.upstreams import build_directory
    from sightline.vision.providers import find_configured_model

    found = build_directory(settings, flags)
    named = found if isinstance(found, Refusal) else find_configured_model(settings, found)
    return named if isinstance(named, Refusal) else None


def _check_shared_record(settings: Settings) -> Refusal | None:
    """Return why the shared record can't be used, before any worker is started.

    It is opened in a process that ends: the client of object storage has threads, without which it would hang in every
    process that is forked after it was used.
    """
    if settings.shared_address is None or not hasattr(os, "fork"):
        return None
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writer, "w") as answer:
            json.dump(_find_record_refusal(settings.shared_address), answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        found = answer.read()
    os.waitpid(child, 0)
    if not found or found == "null":
        return None
    code, what, remedy = json.loads(found)
    return Refusal(code, what, remedy)


def _find_record_refusal(address: SharedAddress) -> list[str] | None:
    from sightline.store import open_server_record

    opened = open_server_record(address)
    if isinstance(opened, Refusal):
        return [opened.code, opened.what, opened.remedy]
    opened.close()
    return None


def _print_banner(address: str, guarded: bool) -> None:
    """Print how to use the proxy, in a thread: requests need no agents, and don't wait until they are imported."""
    with suppress(OSError):  # a program that started this one may read the first line only
        print("\n".join(_list_banner_lines(address, guarded=guarded)), flush=True)


def _list_banner_lines(address: str, *, guarded: bool) -> Iterator[str]:
    from sightline.agents import AGENTS

    yield "Point an agent here:"
    for agent in AGENTS.values():
        yield f"  {agent.title:<12} {agent.render(address).brief}"
    yield f"  {'any other':<12} {address} (Anthropic), {address}/v1 (OpenAI), {address}/u/NAME/v1 (provider NAME)"
    if find_spec("mcp") is not None:
        yield f"  {'MCP hosts':<12} {address}/mcp"
    if guarded:
        yield "Requests must send the header x-sightline-token: TOKEN"
        yield "  Claude Code: ANTHROPIC_CUSTOM_HEADERS='x-sightline-token: TOKEN'"
    yield "`sightline setup AGENT` explains more, and with --write makes it permanent. Ctrl-C stops the proxy."


# Several processes on one port. Each serves whole requests, and is replaced if it ends by itself.


def _serve_in_processes(number: int, listening: socket, serve: _Serve, ready: Callable[[], None]) -> VerbOutcome:
    """Run `serve` in several processes until this one is stopped; the first that listens calls `ready`.

    Each has its own socket on the port of `listening`: from a shared one, the first process would take all connections.
    """
    if not hasattr(os, "fork"):
        return Refusal("unsupported_type", "--workers does not work on this system", "leave it out")
    signal.signal(signal.SIGTERM, exit_on_signal)
    where = listening.getsockname()
    listening.close()  # it was only needed to check that the port is free
    with _open_shared_socket(listening.family, where) as kept:
        return _supervise(number, kept, serve, ready)


def _supervise(number: int, kept: socket, serve: _Serve, ready: Callable[[], None]) -> int:
    """Start the processes, and a new one for each that ends. `kept` only reserves the port."""
    children: _Children = {}
    try:
        for who in range(number):
            _start_worker(children, who, kept, serve, _do_nothing if who else ready)
        while True:
            child, status = os.wait()
            who, began = children.pop(child)
            lived = time.monotonic() - began
            if lived < _QUICK:
                return os.waitstatus_to_exitcode(status) or _FAILED
            print_status(f"a worker ended ({os.waitstatus_to_exitcode(status)}); starting another one")
            _start_worker(children, who, kept, serve, _do_nothing)
    finally:
        _stop_workers(list(children))


def _start_worker(children: _Children, who: int, kept: socket, serve: _Serve, ready: Callable[[], None]) -> None:
    """Start one more child. Signals are blocked until it is in `children`, so that it is stopped with the others."""
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    child = os.fork()
    if child:
        children[child] = who, time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
        return
    try:  # the child must never return to the code of its parent
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
        threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
        with _open_shared_socket(kept.family, kept.getsockname()) as own:
            own.listen(128)
            code = serve(own, ready, who)
    except KeyboardInterrupt:
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else _FAILED
    except BaseException:  # noqa: BLE001, printed, and then the process ends
        sys.excepthook(*sys.exc_info())
        code = _FAILED
    sys.stdout.flush()
    os._exit(code)


def _stop_workers(children: list[int]) -> None:
    """Stop all workers, also one that did not listen yet."""
    for child in children:
        os.kill(child, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    for child in children:
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.02)


def _exit_with_parent(parent: int) -> None:
    """Stop this worker when its parent process has ended, and so can't stop it."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _ignore_change(line: str) -> None:
    """Report nothing: the first process does."""


def _do_nothing() -> None:
    """Print nothing: the first process prints that it listens."""


def _open_shared_socket(family: int, where: object) -> socket:
    """Return one of several sockets on a port, among which the system distributes connections."""
    other = socket(family)
    other.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    other.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEPORT, 1)
    other.bind(where)  # type: ignore[arg-type] # from getsockname()
    return other
