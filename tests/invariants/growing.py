"""Long conversations, grown step by step out of requests that real clients have sent.

What a client said between its user's words and its newest result is one step. It is repeated with other ids, other
paths and other pictures, with words of the user in between, and with the signed and encrypted thoughts of a model
before each call, in the shapes that their providers document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from sightline.wire import Wire
from tests.engine.parts import encoded, picture
from tests.golden.captures import Capture, Payload, captures, payloads
from tests.golden.preparing import Desk
from tests.golden.talk import lines
from tests.wire.bodies import MARK
from tests.wire.json_texts import base64_like

SEEDS = [
    "claude-code/read-2", "pi/read.anthropic-2", "aisdk7/read.anthropic-file-2",
    "langchain/parallel.chat-2", "qwen-code/read-2", "aisdk7/read.chat-media-2", "aisdk7/read.chat-json-2",
    "codex/read-2", "codex/parallel-2", "pi/read.responses-2",
    "gemini-cli/read-3", "gemini-cli/parallel-3", "litellm/read.gemini3-2",
]  # fmt: skip
"""Captures of each wire, with images native, hoisted by the client, in strings, and of parallel calls."""
_path = re.compile(r"/home/dev/project/\w+\.png")


@cache
def seeds() -> dict[str, Capture]:
    return {capture.name: capture for capture in captures() if capture.name in SEEDS}


@dataclass
class Growing:
    """A conversation; `messages` is the client's copy of it."""

    seed: Capture
    folder: str = "/home/dev/project"
    size: tuple[int, int] = (64, 48)
    messages: list[Any] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.messages = list(self._held[: self._start])

    @property
    def wire(self) -> Wire:
        return self.seed.wire

    @property
    def _held(self) -> list[Any]:
        found: list[Any] = self.seed.body[self.wire.messages_key]
        return found

    @property
    def _start(self) -> int:
        """The index of the first message with a tool call."""
        alone = (lines({self.wire.messages_key: [message]}, self.wire) for message in self._held)
        return next(index for index, each in enumerate(alone) if any(kind == "call" for kind, _ in each))

    def step(self) -> None:
        """Add a step: the model thinks and calls tools, and the tools answer."""
        self.count += 1
        written = json.dumps(self._held[self._start :])
        ids = {name for kind, name in lines(self.seed.body, self.wire) if kind == "call"}
        for name in ids:
            written = written.replace(name, f"{name}-{self.count}")
        for number, text in enumerate(sorted({payload.text for payload in payloads(json.loads(written))})):
            written = written.replace(text, encoded(picture(self.count * 7 + number, self.size)))
        written = _path.sub(f"{self.folder}/{self.count}.png", written)
        self.messages += thinking(json.loads(written), self.wire, self.count)

    def say(self, words: str) -> None:
        """Add an answer of the model and a user message."""
        for role, text in (("assistant", f"I have seen {self.count} of them."), ("user", words)):
            self.messages.append(said(role, text, self.wire))

    def body(self, *, marked: bool = False) -> Any:
        """Return the request; with `marked`, a cache mark is on the newest message."""
        found = {**self.seed.body, self.wire.messages_key: self.messages}
        return (
            moved_mark(found, self.wire) if marked and self.wire.name == "anthropic" else json.loads(json.dumps(found))
        )


def said(role: str, text: str, wire: Wire) -> dict[str, Any]:
    match wire.name:
        case "gemini":
            return {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]}
        case "openai_responses":
            kind = "output_text" if role == "assistant" else "input_text"
            return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        case _:
            return {"role": role, "content": [{"type": "text", "text": text}]}


def thinking(messages: list[Any], wire: Wire, number: int) -> list[Any]:
    """Return a step with thinking before its calls; every third thought is long."""
    sealed = base64_like(12_000 if number % 3 == 0 else 300, number)
    first = messages[0]
    match wire.name:
        case "anthropic":
            thought = {"type": "thinking", "thinking": f"thought {number}", "signature": sealed}
            hidden = {"type": "redacted_thinking", "data": sealed}
            first["content"] = [hidden if number % 5 == 0 else thought, *first["content"]]
        case "openai_chat":
            first["reasoning_content"] = f"thought {number}"
            first["reasoning_details"] = [{"type": "reasoning.encrypted", "data": sealed, "id": f"r{number}"}]
        case "openai_responses":
            item: Any = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": sealed}
            return [item, *messages]
        case "gemini":
            first["parts"][0]["thoughtSignature"] = sealed
    return messages


def moved_mark(body: Any, wire: Wire) -> Any:
    """Move the cache mark to the last block of the last message, as clients do."""
    bare = unmarked(body)
    content = bare[wire.messages_key][-1]["content"]
    if isinstance(content, list):
        content[-1]["cache_control"] = MARK
    else:
        bare[wire.messages_key][-1]["content"] = [{"type": "text", "text": content, "cache_control": MARK}]
    return bare


def unmarked(value: Any) -> Any:
    match value:
        case dict():
            return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
        case list():
            return [unmarked(item) for item in value]
        case _:
            return value


def normal(body: Any, wire: Wire) -> list[str]:
    """Return a request as a prompt cache reads it: the head, then the messages."""
    head = "".join(_read(json.dumps(body.get(key))) for key in wire.head_keys)
    return [head, *(_read(json.dumps(message)) for message in body[wire.messages_key])]


@lru_cache(4096)  # a message is said again with each request that comes after it
def _read(message: str) -> str:
    return json.dumps(plain(unmarked(json.loads(message))), sort_keys=True)


def plain(value: Any) -> Any:
    """Return the text of a list with one text block."""
    match value:
        case [{"text": str(text), **rest}] if rest.keys() <= {"type"}:
            return text
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case _:
            return value


def broken(asked: list[list[str]], sent: list[list[str]]) -> Iterator[tuple[int, int]]:
    """Return the pairs of requests where the client's extends the earlier one and ours does not."""
    for later, whole in enumerate(asked):
        for earlier, beginning in enumerate(asked[:later]):
            extends = whole[: len(beginning)] == beginning
            if extends and sent[later][: len(sent[earlier])] != sent[earlier]:
                yield earlier, later


def with_pasted(body: Any, wire: Wire) -> Any:
    """Return the request with a pasted image in its last user message."""
    data = encoded(picture(99))
    parts = body[wire.messages_key][-1]["parts" if wire.name == "gemini" else "content"]
    shapes: dict[str, Any] = {
        "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        "openai_chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        "openai_responses": {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
        "gemini": {"inlineData": {"data": data, "mimeType": "image/png"}},
    }
    parts.insert(0, shapes[wire.name])
    return body


@dataclass
class Views:
    """The images that were sent in each request of a session, and when the prefix changed."""

    live: list[list[str]]
    moves: list[int]
    told: list[int]  # how many the receipt of each request says are retired, and why
    pasted_stayed: bool


async def forty_views(talk: Growing, desk: Desk, folder: Path) -> Views:
    """Run a session in which the user pastes an image and has forty files viewed."""
    wire, path = talk.wire, talk.seed.path
    talk.messages = [said("user", "look at them all", wire)]
    with_pasted({wire.messages_key: talk.messages}, wire)
    sent, live, told = [], [], []
    for number in range(1, 41):
        (folder / f"{number}.png").write_bytes(picture(number * 7, talk.size))
        talk.step()
        prepared = await desk.prepared(talk.body(marked=True), wire, path)
        after = json.loads(b"".join(prepared.body))
        told.append(sum(line.startswith("retired (") for line in prepared.receipt.changes))
        sent.append(normal(after, wire))
        live.append([payload.sha256 for payload in payloads(after)])
    moves = [number for number, (one, two) in enumerate(pairwise(sent)) if two[: len(one)] != one]
    pasted = Payload((), encoded(picture(99))).sha256
    return Views(live, moves, told, all(pasted in found for found in live))
