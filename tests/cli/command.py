"""The command as a person types it, in a process of its own."""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import pty
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sightline.cli.main import VERBS, main

COMMAND = (sys.executable, "-m", "sightline")

# Most of what it costs to start a command is to load it. What is run to its end is forked off a process that has done
# so already and nothing else: it gets its own words, variables, folder and streams, and ends as any process does.
_LOADED = multiprocessing.get_context("forkserver")
_LOADED.set_forkserver_preload([
    *(f"sightline.cli.{verb.replace('-', '_')}" for verb in VERBS),
    *("sightline.cli.compose", "sightline.commands", "sightline.look", "sightline.seers.registry", "asyncio"),
])  # fmt: skip

# The same without the right of the administrator to read and write every file: Linux lets a process give that up.
_GIVEN_UP = """
import ctypes, os, sys
for right in (1, 2) if os.getuid() == 0 else ():
    ctypes.CDLL(None).prctl(24, right)
os.execv(sys.executable, [sys.executable, "-m", "sightline", *sys.argv[1:]])
"""
POWERLESS = (sys.executable, "-c", _GIVEN_UP)

# Nothing that happens to run on the machine takes part.
_NOBODY = {"baseUrl": "http://127.0.0.1:9/v1"}
ALONE = {"SIGHTLINE_UPSTREAMS": json.dumps(dict.fromkeys(("ollama", "lmstudio", "llamacpp", "vllm"), _NOBODY))}


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONWARNINGS": "error", **more}


def sightline(
    *words: str,
    env: Mapping[str, str] | None = None,
    given: str = "",
    folder: Path | None = None,
    command: Sequence[str] = (),
) -> Ended:
    """`command`: how it is to be started, where it matters that nothing of it was loaded before."""
    variables = environment(**(env or {}))
    ended = (
        _started([*command, *words], variables, given, folder) if command else _forked(words, variables, given, folder)
    )
    assert "Traceback" not in ended.err, ended.err
    return ended


def _started(words: Sequence[str], env: Mapping[str, str], given: str, folder: Path | None) -> Ended:
    ended = subprocess.run(
        words, input=given, capture_output=True, text=True, env=env, cwd=folder, timeout=120, check=False
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def _forked(words: Sequence[str], env: Mapping[str, str], given: str, folder: Path | None) -> Ended:
    with TemporaryDirectory() as place:
        streams = [Path(place, name) for name in ("in", "out", "err")]
        streams[0].write_text(given)
        process = _LOADED.Process(target=_command, args=(words, dict(env), folder or Path.cwd(), streams))
        process.start()
        process.join(120)
        code = process.exitcode
        process.kill()
        process.join()
        process.close()
        assert code is not None, "it does not end"
        return Ended(code, *(stream.read_text() for stream in streams[1:]))


def _command(words: Sequence[str], env: Mapping[str, str], folder: Path, streams: Sequence[Path]) -> None:
    """The process itself, which has nothing but the modules of the one that it was forked off."""
    for number, path in enumerate(streams):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    warnings.simplefilter("error")
    sys.argv = ["sightline", *words]
    try:
        sys.exit(main())
    finally:
        atexit._run_exitfuncs()


def assert_refused(ended: Ended, *words: str) -> None:
    """Exit 1, nothing on stdout, one line on stderr that has these words."""
    assert (ended.code, ended.out) == (1, ""), ended
    assert ended.err.startswith("sightline: ")
    assert ended.err.count("\n") == 1, ended.err
    for word in words:
        assert word in ended.err


def typed(words: list[str], answer: bytes, env: dict[str, str], folder: Path) -> tuple[int, str]:
    """A command on a terminal of its own, whose questions get this answer."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], stdin=slave, stdout=slave, stderr=slave, env=environment(**env), cwd=folder, close_fds=True
    )
    os.close(slave)
    os.write(master, answer)
    heard = b""
    try:
        while piece := os.read(master, 4096):
            heard += piece
    except OSError:  # the other end is closed
        pass
    os.close(master)
    return process.wait(60), heard.decode()
