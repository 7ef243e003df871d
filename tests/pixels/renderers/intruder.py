"""What a renderer that was taken over would try, for workers of tests. It runs in the worker."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sightline.pixels.renderers import isolation

IN_FORCE: list[str] = []


def isolate() -> None:
    """Isolate the worker as renderers are, once this module is loaded: its folder cannot be read afterwards."""
    IN_FORCE.extend(sorted(isolation.isolate_worker()))


def try_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return for each attempt whether it succeeded, or the name of the error."""
    port, path, parent = arguments["port"], Path(arguments["path"]), arguments["parent"]
    attempts: dict[str, Callable[[], object]] = {
        "connect": lambda: socket.create_connection(("127.0.0.1", port), 5).close(),
        "socketpair": socket.socketpair,
        "read": path.read_bytes,
        "list": lambda: list(path.parent.iterdir()),
        "write": lambda: path.with_name("new.txt").write_bytes(b"x"),
        "read a password file": Path("/etc/passwd").read_bytes,
        "read keys of the parent": Path(f"/proc/{parent}/environ").read_bytes,
        "signal": lambda: os.kill(parent, 0),
        "signal by thread": lambda: _call("tgkill", parent, parent, 0),
        "signal with data": lambda: _call("sigqueue", parent, 0, None),
        "limit": lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE)),
        "prioritize": lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent)),
        "pin": lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent)),
        "share memory": lambda: _call("shmctl", _call("shmget", 0, 4096, 0o1600), 0, None),
        "set the mode": lambda: path.chmod(0o600),
        "set the mode of a library": lambda: _set_mode(os.__file__),
        "set the times": lambda: os.utime(path),
        "set an attribute": lambda: os.setxattr(path, "user.test", b"x"),
        "set the owner": lambda: os.chown(path, os.getuid(), os.getgid()),
        "change the root": lambda: os.chroot("/"),
        "fork": _fork,
        "run": lambda: subprocess.run(["/bin/true"], check=True),
        "ring": _set_up_ring,
        "signal itself": lambda: signal.raise_signal(signal.SIGCONT),
        "limit itself": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
        "pin itself": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
        "read a library": Path(os.__file__).read_bytes,
    }
    return {"in force": IN_FORCE, **{name: _try(attempt) for name, attempt in attempts.items()}}, b""


def _fork() -> None:
    """Start a process, which would have none of the limits on time."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _call(name: str, *arguments: object) -> int:
    """Call a function of libc."""
    result: int = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def _set_mode(path: str) -> None:
    """Give a file the mode that it has, through a descriptor that was opened for reading."""
    with Path(path).open("rb") as file:
        os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & 0o7777)


def _set_up_ring() -> None:
    """Set up an io_uring, by which a process can open sockets without the usual calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(425, 4, ctypes.create_string_buffer(256))
    if found < 0:
        raise OSError(ctypes.get_errno(), "no ring")
    os.close(found)


def _try(attempt: Callable[[], object]) -> bool | str:
    try:
        attempt()
    except OSError as error:
        return type(error).__name__
    return True
