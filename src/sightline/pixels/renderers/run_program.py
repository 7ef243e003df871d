"""Start a program that converts an untrusted file, such as an office suite, with little that it may do.

It gets a folder of its own, which is its home and its working folder, holds its files, and is deleted afterwards. On
Linux it reaches no network and no other file but those of the system (`isolation`); everywhere it has limits on time
and memory and gets none of the environment's keys. When its time is up, all processes of its session are killed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

from sightline.model.refusal import Refusal

FOLDER_URL = "{folder-url}"
"""A placeholder in a command for the folder of the program, as a file: URL."""

_PARALLEL = threading.BoundedSemaphore(2)  # programs that run at a time; they are large
_OUTPUT_FILE = "standard-output"
_MAX_OUTPUT_BYTES = 128 * 1024 * 1024
_LAUNCH = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from sightline.pixels.renderers.isolation import launch_program; launch_program(*json.loads(sys.argv[2]))"
)
# The exit status of a process that used up its CPU time, and of a shell or launcher whose program did.
_KILLED = frozenset({-9, -24, 128 + 9, 128 + 24})
_NOT_DONE = "check that the file is not damaged"


def run_program(
    command: Sequence[str],
    files: Mapping[str, bytes],
    output: str = "",
    *,
    title: str = "",
    seconds: float = 10.0,
    cpu_seconds: float | None = None,
    memory: int = 2 * 1024 * 1024 * 1024,
    readable: Sequence[str] = (),
    socket_folders: Sequence[str] = (),
) -> bytes | Refusal:
    """Run a program until it ends, and return what it wrote.

    command: the program and its arguments; paths are relative to its folder; `FOLDER_URL` is replaced by it.
    files: what to put into that folder, by name or path.
    output: the name of the file to return; empty: its standard output.
    title: what refusals call the program.
    seconds: the wall time that it may take. cpu_seconds: the CPU time of each of its processes; None: the same.
    memory: bytes of data that each of its processes may have.
    readable: folders that it may read besides those of the system.
    socket_folders: where it may make sockets, and nothing else.
    """
    program, title = shutil.which(command[0]), title or command[0]
    if program is None:
        return Refusal("render_unavailable", f"{title} is not installed", f"install {title}")
    with _PARALLEL, tempfile.TemporaryDirectory(prefix="sightline-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        for file, data in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(data)
        arguments = [each.replace(FOLDER_URL, folder.as_uri()) for each in command[1:]]
        limits = _choose_limits(cpu_seconds or seconds, memory)
        wrapped = _wrap([program, *arguments], [str(folder), list(readable), list(socket_folders), limits])
        variables = {"PATH": os.defpath, "LANG": "C.UTF-8"}
        variables |= dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR"), str(folder))
        status = _run(wrapped, folder, variables, seconds)
        made = b"" if status is None else _read_output(folder / (output or _OUTPUT_FILE))
    if status is None or (not made and status in _KILLED):
        what = f"{title} took more than {cpu_seconds or seconds:.3g} seconds for the file"
        return Refusal("too_large", what, "give a smaller or simpler one")
    if not made:
        return Refusal("corrupt", f"{title} could not convert the file (exit {status})", _NOT_DONE)
    return made


def _choose_limits(seconds: float, memory: int) -> dict[str, int]:
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": ceil(seconds),
        "RLIMIT_DATA": memory,
        "RLIMIT_FSIZE": _MAX_OUTPUT_BYTES,
    }


def _wrap(command: list[str], restrictions: list[object]) -> list[str]:
    """Return a command that takes rights away from its process before it becomes the program."""
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-c", _LAUNCH, json.dumps(sys.path), json.dumps([*restrictions, command])]


def _run(command: list[str], folder: Path, variables: dict[str, str], seconds: float) -> int | None:
    """Return the exit status of a command, or None if its time was up. No process of its session is left."""
    with (folder / _OUTPUT_FILE).open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill_session(process)
        process.wait()


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # all have ended


def _read_output(path: Path) -> bytes:
    """Return the content of a regular file. A link, which may lead anywhere, counts as nothing."""
    flags = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MAX_OUTPUT_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
