"""The command in a process of its own that need not load it first.

Most of what it costs to start a command is to load it, and tests start hundreds. These are forked off a process that
has loaded it and done nothing else: each has its own words, variables, folder and streams, and ends as any does.
"""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import iter_modules
from signal import SIGKILL, SIGTERM
from threading import Thread
from typing import Any

from sightline.cli import verbs
from sightline.cli.main import main
from sightline.vision import seers

_LOADED = multiprocessing.get_context("forkserver")
_PRELOADED = [
    *(f"sightline.cli.verbs.{module.name}" for module in iter_modules(verbs.__path__)),
    *(f"sightline.{name}" for name in ("commands.execution", "api", "runtime", "vision.chooser", "cli.compose")),
    *(
        f"sightline.surfaces.{name}"
        for name in ("acp.relay", "acp.prompt_images", "acp.negotiation", "mcp.tool_service", "mcp.server")
    ),
    "mcp.server.streamable_http_manager",
    __name__,  # each command is started by a function here
]
# The fork server passes over what it cannot import, and every command would be slower without a word.
assert all(map(find_spec, _PRELOADED))
_LOADED.set_forkserver_preload(_PRELOADED)


def call_forked(function: Callable[..., None], *args: object) -> int:
    """Call a function in a process of its own, and return the code with which that ends."""
    process = _LOADED.Process(target=function, args=args)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


class Forked:
    """Who started it sees of it what there is of a `Popen`."""

    def __init__(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        folder: Path | None,
        streams: Sequence[int] = (subprocess.PIPE, subprocess.PIPE, 2),
        *,
        text: bool = False,
        powerless: bool = False,
    ) -> None:
        """Start the command.

        streams: files that are open here and stay so, or pipes; with `text`, pipes of text.
        powerless: without the right of the administrator to read and write every file, as on Linux only.
        """
        own: list[int | None] = []
        given: list[Connection] = []
        for number, stream in enumerate(streams):
            ends = os.pipe() if stream == subprocess.PIPE else None
            own.append(None if ends is None else ends[0 if number else 1])
            given.append(Connection(os.dup(stream) if ends is None else ends[1 if number else 0]))
        pause = seers.RETRY_SECONDS
        args = (words, dict(env), folder or Path.cwd(), given, pause, powerless)
        self._process = _LOADED.Process(target=_command, args=args)
        self._process.start()
        for each in given:
            each.close()
        into, out, err = own
        mode = "" if text else "b"
        self.stdin: Any = None if into is None else os.fdopen(into, f"w{mode}")
        self.stdout: Any = None if out is None else os.fdopen(out, f"r{mode}")
        self.stderr: Any = None if err is None else os.fdopen(err, f"r{mode}")

    @property
    def pid(self) -> int:
        assert self._process.pid
        return self._process.pid

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired("sightline", timeout or 0)
        return code

    def poll(self) -> int | None:
        return self._process.exitcode

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def communicate(self, timeout: float) -> tuple[Any, Any]:
        """Return the rest of both pipes, once the process has ended."""
        said: list[Any] = []
        reader = Thread(target=lambda: said.append(self.stdout.read()))
        reader.start()
        err = self.stderr.read()
        reader.join(timeout)
        self.wait(timeout)
        return said[0], err

    def send_signal(self, signum: int) -> None:
        if self._process.is_alive():
            with suppress(ProcessLookupError):  # it ends just now
                os.kill(self.pid, signum)

    def terminate(self) -> None:
        self.send_signal(SIGTERM)

    def kill(self) -> None:
        self.send_signal(SIGKILL)


def _give_up_rights() -> None:
    """Give up CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, for this process and all that it starts."""
    system = ctypes.CDLL(None)
    for right in (1, 2) if os.getuid() == 0 else ():
        system.prctl(24, right)
    header, sets = (ctypes.c_uint32 * 2)(0x2008_0522, 0), (ctypes.c_uint32 * 6)()
    assert system.capget(header, sets) == 0
    for number in (0, 1):  # the rights that count, and those that it may take up again
        sets[number] &= ~0b110
    assert system.capset(header, sets) == 0


def _command(
    words: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    streams: Sequence[Connection],
    pause: float,
    powerless: bool,
) -> None:
    """The process itself, which has nothing but the modules of the one that it was forked off."""
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    if powerless:
        _give_up_rights()
    if env.get("PYTHONWARNINGS") == "error":
        warnings.simplefilter("error")
    sys.argv = ["sightline", *words]
    seers.RETRY_SECONDS = pause
    try:
        sys.exit(main())
    finally:
        atexit._run_exitfuncs()
