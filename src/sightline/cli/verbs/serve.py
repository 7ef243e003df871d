"""`sightline serve`: the proxy on this machine, until it is stopped."""

from __future__ import annotations

import os
import signal
import socket as sockets
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from types import FrameType

from sightline.agents import AGENTS
from sightline.cli.listening import (
    Manner,
    add_address,
    begin_logs,
    bind,
    check_folder,
    in_front,
    log_warnings,
    url_on,
    whole,
)
from sightline.cli.terminal import Outcome, refused, say, warn
from sightline.cli.verbs import quiet
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

EXAMPLE = """  sightline serve
  sightline serve --upstream deepseek
  sightline serve --upstream work=https://llm.example.com/v1"""

_MOST_WORKERS = 64
_QUICK = 2.0  # seconds: a worker that lives no longer will not live the next time either
_PATIENCE = 8.0  # seconds for a worker to end its requests
_FAILED = 1
_Serve = Callable[[socket, Callable[[], None], int], int]
"""Its socket, what to call when it listens, and which of them it is."""
_Children = dict[int, tuple[int, float]]  # by the number of its process: which of them it is, and since when


def arguments(parser: ArgumentParser) -> None:
    add_address(parser)
    parser.add_argument(
        "--upstream", action="append", default=[], metavar="[NAME=]URL",
        help="where requests go on to, also the NAME of a known provider; default: the one that owns the wire",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=count, default=1, metavar="N", help="processes that share the port and the record; default: 1"
    )
    parser.add_argument(
        "--root", type=Path, metavar="DIR",
        help="the folder whose files may be named to the proxy, as in `/vision-proxy describe PATH`; default: none,"
        " and images go by their sha256",
    )  # fmt: skip
    parser.add_argument("--config", type=Path, metavar="FILE", help="the settings file to use")
    parser.add_argument("-v", "--verbose", action="store_true", help="say on stderr what is done to requests")
    parser.add_argument(
        "--log", choices=("text", "json"),
        help="json: one JSON object on stderr for each request, without its images, texts and keys; also SIGHTLINE_LOG",
    )  # fmt: skip


def count(text: str) -> int:
    return whole(text, 1, _MOST_WORKERS)


def run(args: Namespace) -> Outcome:
    if args.config and not args.config.is_file():
        return Refusal("not_found", f"there is no file {args.config}", "give another --config")
    if no := check_folder(args.root):
        return no
    settings = load(config=args.config)
    as_json = (args.log or settings.environment.get("SIGHTLINE_LOG")) == "json"
    (log_warnings if as_json else warn)((*settings.warnings, *settings.advice))
    token = args.token or settings.environment.get("SIGHTLINE_TOKEN", "")
    listening = bind(args.host, args.port, guarded=bool(token))
    if isinstance(listening, Refusal):
        return listening
    from sightline.cli import compose
    from sightline.runtime import build_runtime
    from sightline.surfaces.proxy.telemetry import Metrics, SharedCounts

    if no := _check_upstreams(settings, args.upstream):
        listening.close()
        return no
    named, looked_for = compose.reaches(settings, args.root, args.host)

    address = url_on(listening)
    together = SharedCounts(args.workers) if args.workers > 1 else None

    def serve(listening: socket, ready: Callable[[], None], who: int = 0) -> int:
        if as_json:
            begin_logs()
        with quiet("sightline.store", when=who > 0):  # what is wrong with the record, the first worker says
            whole = build_runtime(settings, args.upstream, reach=looked_for)
        if isinstance(whole, Refusal):
            return refused(whole)
        metrics = Metrics(together, who)
        alone = args.workers == 1
        in_front(whole, listening, ready, Manner(args.verbose, as_json, token, named, metrics, alone))
        return 0

    def ready() -> None:
        print("\n".join(_banner(address, guarded=bool(token))), flush=True)

    with listening:
        if args.workers == 1:
            return serve(listening, ready)
        return _serve_side_by_side(args.workers, listening, serve, ready)


def _check_upstreams(settings: Settings, flags: Sequence[str]) -> Refusal | None:
    """Return what would stop every worker, before there are any."""
    from sightline.settings.upstreams import directory
    from sightline.vision.providers import named_seer

    found = directory(settings, flags)
    named = found if isinstance(found, Refusal) else named_seer(settings, found)
    return named if isinstance(named, Refusal) else None


def _banner(address: str, *, guarded: bool) -> Iterator[str]:
    yield f"Sightline listens on {address}"
    yield "Point an agent here:"
    for agent in AGENTS.values():
        yield f"  {agent.title:<12} {agent.render(address).brief}"
    yield f"  {'any other':<12} {address} (Anthropic), {address}/v1 (OpenAI), {address}/u/NAME/v1 (provider NAME)"
    if find_spec("mcp") is not None:
        yield f"  {'MCP hosts':<12} {address}/mcp"
    if guarded:
        yield "Nobody is served who does not send the header x-sightline-token: TOKEN"
        yield "  Claude Code sends it where ANTHROPIC_CUSTOM_HEADERS='x-sightline-token: TOKEN' is set"
    yield "`sightline setup AGENT` tells more. Ctrl-C stops it."


# Several processes on one port: each serves whole requests, and one that ends by itself is started again.


def _serve_side_by_side(number: int, listening: socket, serve: _Serve, ready: Callable[[], None]) -> Outcome:
    """Run `serve` in several processes, until this one is stopped; the first that listens calls `ready`.

    Each has a socket of its own on the port of `listening`: of one that they share, the first process would take all.
    """
    if not hasattr(os, "fork"):
        return Refusal("unsupported_type", "this system has no --workers", "leave it out")
    signal.signal(signal.SIGTERM, _stop)
    where = listening.getsockname()
    listening.close()  # it has shown that the port is free
    with _share(listening.family, where) as kept:
        return _keep_up(number, kept, serve, ready)


def _keep_up(number: int, kept: socket, serve: _Serve, ready: Callable[[], None]) -> int:
    """Start the processes, and another for each that ends. `kept` is never read from: it only holds the port."""
    children: _Children = {}
    try:
        for who in range(number):
            _start(children, who, kept, serve, _keep_quiet if who else ready)
        while True:
            child, status = os.wait()
            who, began = children.pop(child)
            lived = time.monotonic() - began
            if lived < _QUICK:
                return os.waitstatus_to_exitcode(status) or _FAILED
            say(f"a worker ended ({os.waitstatus_to_exitcode(status)}); another takes its place")
            _start(children, who, kept, serve, _keep_quiet)
    finally:
        _end(list(children))


def _start(children: _Children, who: int, kept: socket, serve: _Serve, ready: Callable[[], None]) -> None:
    """Start one more child. Signals wait until it is noted, so that it is ended with the others."""
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    child = os.fork()
    if child:
        children[child] = who, time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
        return
    try:  # a process of its own: it never returns to what its parent was doing
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
        threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()
        with _share(kept.family, kept.getsockname()) as own:
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


def _end(children: list[int]) -> None:
    """End all of them, also one that did not listen yet when the signal came."""
    for child in children:
        os.kill(child, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    for child in children:
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.02)


def _leave_with(parent: int) -> None:
    """End this worker when its parent is gone, which would have ended it."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _stop(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)


def _keep_quiet() -> None:
    """Say nothing: the first process says that it listens."""


def _share(family: int, where: object) -> socket:
    """Return one of several sockets on one port: the system distributes connections among those that listen."""
    other = socket(family)
    other.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    other.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEPORT, 1)
    other.bind(where)  # type: ignore[arg-type] # as the system has told it
    return other
