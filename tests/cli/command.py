"""The command as a person types it, in a process of its own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tests.cli.forked import Forked

COMMAND = (sys.executable, "-m", "sightline")

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
    powerless: bool = False,
) -> Ended:
    """Run the command and return how it ended.

    command: how it is to be started, where it matters that nothing of it was loaded before.
    powerless: without the right of the administrator to read and write every file.
    """
    variables = environment(**(env or {}))
    if command:
        ended = _started([*command, *words], variables, given, folder)
    else:
        ended = _forked(words, variables, given, folder, powerless=powerless)
    assert "Traceback" not in ended.err, ended.err
    return ended


def _started(words: Sequence[str], env: Mapping[str, str], given: str, folder: Path | None) -> Ended:
    ended = subprocess.run(
        words, input=given, capture_output=True, text=True, env=env, cwd=folder, timeout=120, check=False
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def _forked(words: Sequence[str], env: Mapping[str, str], given: str, folder: Path | None, *, powerless: bool) -> Ended:
    with TemporaryFile() as into, TemporaryFile() as out, TemporaryFile() as err:
        into.write(given.encode())
        into.seek(0)
        streams = (into.fileno(), out.fileno(), err.fileno())
        process = Forked(words, env, folder, streams, powerless=powerless)
        try:
            code = process.wait(120)
        finally:
            process.kill()
        out.seek(0)
        err.seek(0)
        return Ended(code, out.read().decode(), err.read().decode())


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
    process = Forked(words, environment(**env), folder, (slave, slave, slave))
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
