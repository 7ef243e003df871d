"""Several processes on one port: each serves whole requests, and one that ends by itself is started again."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from socket import socket
from types import FrameType

from sightline.cli.address import shared
from sightline.cli.verb import refused, say
from sightline.model.refusal import Refusal

_QUICK = 2.0  # seconds: a worker that lives no longer will not live the next time either
_PATIENCE = 8.0  # seconds for a worker to end its requests
_FAILED = 1
Serve = Callable[[socket, Callable[[], None], int], int]
"""Its socket, what to call when it listens, and which of them it is."""
Children = dict[int, tuple[int, float]]  # by the number of its process: which of them it is, and since when


def side_by_side(number: int, listening: socket, serve: Serve, ready: Callable[[], None]) -> int:
    """`serve` in so many processes, until this one is told to stop; `ready` is said once, by the first that listens.

    Each has a socket of its own on the port of `listening`: out of one that is shared, whoever is first takes all.
    """
    if not hasattr(os, "fork"):
        return refused(Refusal("unsupported_type", "this system has no --workers", "leave it out"))
    signal.signal(signal.SIGTERM, _stop)
    where = listening.getsockname()
    listening.close()  # it was there to see that the port is free
    with shared(listening.family, where) as kept:
        return _kept_up(number, kept, serve, ready)


def _kept_up(number: int, kept: socket, serve: Serve, ready: Callable[[], None]) -> int:
    """Start the processes, and another for each that ends. `kept` is never read from: it only holds the port."""
    children: Children = {}
    try:
        for who in range(number):
            _start(children, who, kept, serve, _quietly if who else ready)
        while True:
            child, status = os.wait()
            who, began = children.pop(child)
            lived = time.monotonic() - began
            if lived < _QUICK:
                return os.waitstatus_to_exitcode(status) or _FAILED
            say(f"a worker ended ({os.waitstatus_to_exitcode(status)}); another takes its place")
            _start(children, who, kept, serve, _quietly)
    finally:
        _ended(list(children))


def _start(children: Children, who: int, kept: socket, serve: Serve, ready: Callable[[], None]) -> None:
    """One more child; a signal waits until it is noted, or nobody would end it."""
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
        with shared(kept.family, kept.getsockname()) as own:
            own.listen(128)
            code = serve(own, ready, who)
    except KeyboardInterrupt:
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else _FAILED
    except BaseException:  # noqa: BLE001, told, and then the process ends
        sys.excepthook(*sys.exc_info())
        code = _FAILED
    sys.stdout.flush()
    os._exit(code)


def _ended(children: list[int]) -> None:
    """All of them, also one that was told so early that it did not listen yet."""
    for child in children:
        os.kill(child, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    for child in children:
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.02)


def _leave_with(parent: int) -> None:
    """A worker whose parent was killed has nobody left who would end it."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _stop(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)


def _quietly() -> None:
    """For all but the first process, which has said already that it listens."""
