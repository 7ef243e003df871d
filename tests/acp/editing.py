"""A scripted editor, and the relay in front of a scripted agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.cli.forked import Forked

RELAY = (sys.executable, "-m", "sightline", "acp", "--")
AGENT = str(Path(__file__).with_name("scripted_agent.py"))
SEES = {"protocolVersion": 1, "agentCapabilities": {"promptCapabilities": {"image": True, "embeddedContext": True}}}
BLIND = {"protocolVersion": 1, "agentInfo": {"name": "stone", "version": "1"}, "agentCapabilities": {}}
PATIENCE = 40  # seconds after which a test has failed: fewer than a look may take, so that none is waited for


class Editor:
    def __init__(self, process: subprocess.Popen[bytes] | Forked) -> None:
        self.process = process
        self.updates: list[dict[str, Any]] = []
        self._last = 100

    def write(self, *lines: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"".join(lines))
        self.process.stdin.flush()

    def read(self) -> bytes:
        assert self.process.stdout
        return self.process.stdout.readline()

    def send(self, method: str, params: Mapping[str, Any], request: Any = None) -> None:
        message = {"jsonrpc": "2.0", "id": request, "method": method, "params": params}
        self.write(json.dumps({key: value for key, value in message.items() if value is not None}).encode() + b"\n")

    def answer(self, request: Any) -> dict[str, Any]:
        """Return the response to a request; updates before it are kept in `updates`."""
        while line := self.read():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == request and "method" not in message:
                return message
            self.updates.append(message)
        raise AssertionError("the relay has ended")

    def ask(self, method: str, params: Mapping[str, Any] | None = None, request: Any = None) -> dict[str, Any]:
        self._last += 1
        number = self._last if request is None else request
        self.send(method, params or {}, number)
        return self.answer(number)

    def open(self, folder: Path, **params: Any) -> str:
        """Initialize, and open a session."""
        self.ask("initialize", {"protocolVersion": 1})
        return self.session(folder, **params)

    def session(self, folder: Path, **params: Any) -> str:
        found = self.ask("session/new", {"cwd": str(folder), "mcpServers": [], **params})
        name = found["result"]["sessionId"]
        assert isinstance(name, str)
        return name

    def heard(self) -> list[str]:
        """Return every line that the agent has read."""
        lines: list[str] = self.ask("_heard")["result"]["lines"]
        return lines

    def prompts(self) -> list[list[dict[str, Any]]]:
        """Return the blocks of every prompt that the agent has read."""
        told = [json.loads(line) for line in self.heard() if '"session/prompt"' in line]
        return [each["params"]["prompt"] for each in told]

    def prompt(self, session: str, *blocks: Mapping[str, Any], request: Any = None) -> dict[str, Any]:
        return self.ask("session/prompt", {"sessionId": session, "prompt": [*blocks]}, request)

    def said(self) -> str:
        """Return the text that came from the agent, or from the relay in its place."""
        updates = [each["params"]["update"] for each in self.updates if each.get("method") == "session/update"]
        chunks = [each for each in updates if each["sessionUpdate"] == "agent_message_chunk"]
        return "".join(each["content"]["text"] for each in chunks)

    def leave(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


@contextmanager
def editor(
    *argv: str, env: Mapping[str, str] | None = None, stderr: int = 2, relay: Sequence[str] = ()
) -> Iterator[Editor]:
    """Yield an editor that has started the relay in front of a command; `relay`: the command of the relay."""
    variables, streams = {**os.environ, **(env or {})}, (subprocess.PIPE, subprocess.PIPE, stderr)
    process: subprocess.Popen[bytes] | Forked
    if relay:
        process = subprocess.Popen([*relay, *argv], env=variables, stdin=streams[0], stdout=streams[1], stderr=stderr)
    else:
        process = Forked(["acp", "--", *argv], variables, None, streams)
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    try:
        yield Editor(process)
    finally:
        late.cancel()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def acting(**acts: Any) -> list[str]:
    """Return the command of a scripted agent."""
    return [sys.executable, AGENT, json.dumps(acts)]


def image(data: bytes, mime: str = "image/png") -> dict[str, str]:
    return {"type": "image", "mimeType": mime, "data": b64encode(data).decode()}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def blob(data: bytes, mime: str = "image/png") -> dict[str, Any]:
    held = {"uri": "file:///a.png", "mimeType": mime, "blob": b64encode(data).decode()}
    return {"type": "resource", "resource": held}


def link(path: Path, **more: str) -> dict[str, str]:
    return {"type": "resource_link", "uri": path.as_uri(), "name": path.name, **more}
