"""Plays one turn of an agent: a scripted provider, the agent in front of it, and what both had to say.

It is a process of its own, because provider, proxy and agent have to share one network namespace: a `Turn`
comes as JSON on standard input, an `Outcome` goes as JSON to standard output.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.scripted import chat, gemini, limits, messages, responses
from tests.scripted.provider import Provider, deepseek
from tests.scripted.replies import body_of
from tests.scripted.server import Exchange, Reply
from tests.scripted.talk import Asked, Call, Script

PATIENCE = 180  # seconds after which an agent that hangs is ended, and the turn has failed
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1

PROVIDERS: dict[str, Callable[..., Provider]] = {
    "seeing": Provider,
    "blind": deepseek,
    # No real provider is so strict; its words, and what follows from them, are the same.
    "narrow": partial(
        Provider,
        messages_limits=replace(limits.ANTHROPIC, edge=200),
        chat_limits=replace(limits.OPENAI, edge=200),
        responses_limits=replace(limits.RESPONSES, edge=200),
    ),
}
_FACES = {
    "/messages": messages,
    "/chat/completions": chat,
    "/responses": responses,
    ":generateContent": gemini,
    ":streamGenerateContent": gemini,
}


@dataclass(frozen=True, slots=True)
class Turn:
    """Commands of one agent, one after the other, in front of one provider."""

    commands: list[list[str]]
    environment: dict[str, str]
    folder: str
    provider: str  # of PROVIDERS
    script: list[list[tuple[str, dict[str, Any]]]]  # the calls that the model makes before it answers, step by step
    files: dict[str, str]  # written before the agent starts; `{url}` in them is the provider's address
    isolated: bool  # whether this process was given a network namespace of its own


@dataclass(frozen=True, slots=True)
class Request:
    """A model request as the provider met it."""

    model: str
    pictures: int
    status: int
    body: str = field(default="", repr=False, compare=False)
    key: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Ended:
    """What one command had to say."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Outcome:
    ends: list[Ended]
    requests: list[Request]

    @property
    def last(self) -> Ended:
        return self.ends[-1]


def raise_loopback() -> None:
    """Bring up the one interface of a new namespace."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    names = [name for _, name in socket.if_nameindex()]
    assert names == ["lo"], f"this namespace has more than loopback: {names}"


def play(turn: Turn) -> Outcome:
    requests: list[Request] = []

    def heard(exchange: Exchange, reply: Reply) -> None:
        face = next((face for end, face in _FACES.items() if exchange.path.endswith(end)), None)
        if exchange.method == "POST" and face is not None:
            body = body_of(exchange)
            body = gemini.addressed(exchange, body) if face is gemini else body
            asked = face.read(body)
            pictures = len(asked.pictures) if isinstance(asked, Asked) else 0
            keys = [*exchange.header("x-api-key"), *exchange.header("authorization")]
            key = ", ".join(each.removeprefix("Bearer ") for each in keys)
            requests.append(Request(str(body.get("model")), pictures, reply.status, exchange.body.decode(), key))

    script: Script = [[Call(name, arguments) for name, arguments in step] for step in turn.script]
    with PROVIDERS[turn.provider](script=script) as provider:
        provider.heard = heard
        for name, text in turn.files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text.replace("{url}", provider.url), "utf-8")
        environment = {name: text.replace("{url}", provider.url) for name, text in turn.environment.items()}
        commands = [[word.replace("{url}", provider.url) for word in command] for command in turn.commands]
        ends = [run(command, environment, turn.folder) for command in commands]
    return Outcome(ends, requests)


def run(command: list[str], environment: dict[str, str], folder: str) -> Ended:
    """Run to the end, or end it and all that it has started."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            stderr += f"\nended after {PATIENCE} s: it did not come to an end"
    return Ended(process.returncode, stdout, stderr)


def main() -> None:
    turn = Turn(**json.load(sys.stdin))
    if turn.isolated:
        raise_loopback()
    json.dump(asdict(play(turn)), sys.stdout)


if __name__ == "__main__":
    main()
