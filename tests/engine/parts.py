"""An engine with a real record, and seers that follow a script: the one part of it that is the outside world."""

from __future__ import annotations

import asyncio
import atexit
import copy
import json
import tempfile
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sightline.engine import Engine, Options, Prepared, Reading
from sightline.model.asking import Answer, Question, Usage
from sightline.model.facts import NO_FORM
from sightline.model.fate import Refused, Told
from sightline.model.image import Image
from sightline.model.ports import Seer, Store
from sightline.model.profile import Limits
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream, Visitor
from sightline.pixels.worker import Workers
from sightline.profiles.lookup import Override
from sightline.sources.file import policy_for
from sightline.store import open_record
from sightline.vision.chooser import Candidate
from sightline.vision.prompts import version
from sightline.vision.service import VisionService
from sightline.wire import ANTHROPIC, Wire
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.wire.bodies import block, body, part, result, text, user

UP = Upstream("up", {"anthropic": "http://localhost:1", "openai_chat": "http://localhost:1/v1"})
WORKERS = Workers()
"""Shared by all tests of a process; they end with it."""
atexit.register(WORKERS.end)

BLIND, SEEING = "blind-1", "seeing-1"
TOLD = "look"
PROMPT = version(TOLD)
"""The name in the record of what these seers are told."""


@dataclass
class ScriptedSeer:
    """Implements the port `Seer`; it waits at its gate, then says its lines, the last one again and again."""

    lines: Sequence[str | Refusal | Exception] = ("a description",)
    name: str = "up/eye"
    limits: Limits = field(default_factory=Limits)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    looks: list[Image] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    at_once: int = 0
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.gate.set()

    async def ask(self, question: Question) -> Answer | Refusal:
        self.looks += question.images
        self.asked.append((question.instructions, question.words))
        self.questions.append(question)
        line = self.lines[min(len(self.asked), len(self.lines)) - 1]
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.gate.wait()
        finally:
            self.at_once -= 1
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, Refusal) else Answer(line, self.usage, self.name)


@cache
def picture(seed: int = 0, size: tuple[int, int] = (320, 240), kind: str = "png") -> bytes:
    return paint_quadrants(some_colours(seed), size, kind)


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def asking(*pictures: bytes, model: str = BLIND, wire: Wire = ANTHROPIC, mime: str = "image/png") -> dict[str, Any]:
    """A request body: these pictures in one message."""
    made = block if wire is ANTHROPIC else part
    return {**body(user(*(made(encoded(data), mime) for data in pictures), text("what is it"))), "model": model}


def visitor(scope: str = "somebody", wire: Wire = ANTHROPIC) -> Visitor:
    return Visitor(UP, wire.name, scope)


class Stage:
    """One engine and whoever looks for it."""

    def __init__(
        self, *seers: Seer | Refusal, record: Store | None = None, workers: Workers = WORKERS, **options: Any
    ) -> None:
        self.seers: list[Seer | Refusal] = list(seers)
        self.record = record or open_record(Path("unused"), kind="memory")
        overrides = [Override("blind*", vision=False), Override("sure*", vision=True)]
        reach = policy_for(None, Path(tempfile.gettempdir()), (), None)
        grounds, price = options.pop("grounds", lambda seer: NO_FORM), options.pop("price", lambda seer, usage: None)
        vision = VisionService(
            self.record,
            self._choose,
            grounds=lambda candidate: grounds(candidate.name),
            price=lambda candidate, usage: price(candidate.name, usage),
        )
        options_ = Options(TOLD, "what?", overrides=overrides, **{"reach": lambda: reach, **options})
        self.engine = Engine(self.record, vision, options_, workers)

    async def _choose(self, *_: object) -> Sequence[Candidate]:
        return [Candidate(each) for each in self.seers]

    def read(self, request: dict[str, Any], wire: Wire = ANTHROPIC) -> Reading:
        reading = self.engine.read(json.dumps(request).encode(), wire)
        assert reading is not None
        return reading

    async def prepare(
        self, request: dict[str, Any], who: Visitor | None = None, wire: Wire = ANTHROPIC, paid: bool = True
    ) -> Prepared:
        return await self.engine.prepare(self.read(request, wire), who or visitor(wire=wire), paid=paid)

    async def repair(self, before: Prepared, status: int, words: str) -> Prepared | None:
        error = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
        return await self.engine.repair(before, visitor(), status, error)


def sent(prepared: Prepared) -> Any:
    """What goes out, as the upstream reads it."""
    return json.loads(b"".join(prepared.body))


def content(prepared: Prepared) -> list[Any]:
    found: list[Any] = sent(prepared)["messages"][0]["content"]
    return found


def words(prepared: Prepared) -> list[str]:
    return [each["text"] for each in content(prepared)[:-1] if each["type"] == "text"]


async def turns(condition: Callable[[], object]) -> None:
    """Let others go on until something holds."""
    async with asyncio.timeout(30):
        while not condition():
            await _turn()


async def a_while() -> None:
    """Time enough for everybody who can go on."""
    for _ in range(1000):
        await _turn()


async def _turn() -> None:
    await asyncio.sleep(0)


@dataclass
class Talk:
    """A conversation on the Messages wire, as its client holds it."""

    model: str = BLIND
    system: str = "be brief"
    messages: list[Any] = field(default_factory=list)
    calls: int = 0

    def say(self, words: str, *pictures: bytes) -> Talk:
        """A turn begins: the user says something, with pictures."""
        self.messages.append(user(*(block(encoded(data)) for data in pictures), text(words)))
        return self

    def answer(self, words: str) -> Talk:
        self.messages.append({"role": "assistant", "content": [text(words)]})
        return self

    def read(self, *files: tuple[str, bytes], words: str = "") -> Talk:
        """A step: the assistant reads files, and gets them."""
        ids = [f"toolu_{self.calls + number}" for number in range(len(files))]
        self.calls += len(files)
        uses = [
            {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": f"/shots/{file}"}}
            for name, (file, _) in zip(ids, files, strict=True)
        ]
        self.messages.append({"role": "assistant", "content": [*([text(words)] if words else []), *uses]})
        results = [result(name, block(encoded(data))) for name, (_, data) in zip(ids, files, strict=True)]
        self.messages.append(user(*results))
        return self

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = {"model": self.model, "system": self.system, "messages": self.messages}
        return copy.deepcopy(found)


def all_words(prepared: Prepared) -> list[str]:
    """What was put in the place of each image, in their order."""
    return [fate.words for sight in prepared.scene.sights if isinstance(fate := sight.fate, Told | Refused)]
