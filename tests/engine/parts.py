"""An engine with a real record and scripted seers, the only part that is not real."""

from __future__ import annotations

import asyncio
import atexit
import copy
import json
import random
import tempfile
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import PIL.Image

from sightline.engine import Engine, EngineOptions, PreparedRequest, Reading
from sightline.model.facts import NO_COORDINATES
from sightline.model.image import Image
from sightline.model.ports import Store
from sightline.model.profile import ImageLimits, RequestOrigin, Upstream
from sightline.model.refusal import Refusal
from sightline.model.scene import Refused, Told
from sightline.model.seer import Question, Seer, SeerAnswer, Usage
from sightline.pixels.workers import WorkerPool
from sightline.profiles.profile_lookup import ProfileOverride
from sightline.sources.files import build_path_policy
from sightline.store import open_record
from sightline.vision.chooser import Candidate, Candidates
from sightline.vision.prompts import hash_prompt
from sightline.vision.service import VisionService
from sightline.wire import ANTHROPIC, Wire
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.wire.bodies import block, body, part, result, text, user

UP = Upstream("up", {"anthropic": "http://localhost:1", "openai_chat": "http://localhost:1/v1"})
WORKERS = WorkerPool()
"""Shared by all tests of a process."""
atexit.register(WORKERS.shut_down)

BLIND, SEEING = "blind-1", "seeing-1"
TOLD = "look"
PROMPT = hash_prompt(TOLD)
"""The key of these seers' prompt in the record."""


@dataclass
class ScriptedSeer:
    """Implements the port `Seer`; it waits at its gate, then returns its lines, the last one repeatedly."""

    lines: Sequence[str | Refusal | Exception] = ("a description",)
    name: str = "up/eye"
    limits: ImageLimits = field(default_factory=ImageLimits)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    looks: list[Image] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    at_once: int = 0
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.gate.set()

    async def ask(self, question: Question) -> SeerAnswer | Refusal:
        self.looks += question.images
        self.asked.append((question.instructions, question.text))
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
        return line if isinstance(line, Refusal) else SeerAnswer(line, self.usage, self.name)


@cache
def picture(seed: int = 0, size: tuple[int, int] = (320, 240), kind: str = "png") -> bytes:
    return paint_quadrants(some_colours(seed), size, kind)


def draw_noise(seed: int, edge: int = 1000) -> bytes:
    """Return a PNG of noise, which is three bytes for each pixel."""
    noise = random.Random(seed).randbytes(3 * edge * edge)
    file = BytesIO()
    PIL.Image.frombytes("RGB", (edge, edge), noise).save(file, "PNG", compress_level=0)
    return file.getvalue()


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def asking(*pictures: bytes, model: str = BLIND, wire: Wire = ANTHROPIC, mime: str = "image/png") -> dict[str, Any]:
    """Return a request body with these pictures in one message."""
    made = block if wire is ANTHROPIC else part
    return {**body(user(*(made(encoded(data), mime) for data in pictures), text("what is it"))), "model": model}


def visitor(scope: str = "somebody", wire: Wire = ANTHROPIC) -> RequestOrigin:
    return RequestOrigin(UP, wire.name, scope)


def build_engine(record: Store, vision: VisionService, options: EngineOptions, workers: WorkerPool) -> Engine:
    return Engine(
        vision,
        options,
        workers,
        images=record.images,
        descriptions=record.descriptions,
        conversations=record.conversations,
        policy=record.policy,
    )


class Stage:
    """An engine with its seers."""

    def __init__(
        self, *seers: Seer | Refusal, record: Store | None = None, workers: WorkerPool = WORKERS, **options: Any
    ) -> None:
        self.seers: list[Seer | Refusal] = list(seers)
        self.record = record or open_record(Path("unused"), kind="memory")
        overrides = [ProfileOverride("blind*", vision=False), ProfileOverride("sure*", vision=True)]
        reach = build_path_policy(None, Path(tempfile.gettempdir()), (), None)
        grounds, price = (
            options.pop("grounds", lambda seer: NO_COORDINATES),
            options.pop("price", lambda seer, usage: None),
        )
        vision = VisionService(
            self.record.descriptions,
            self.record.ledger,
            self._choose,
            find_form=lambda candidate: grounds(candidate.name),
            price=lambda candidate, usage: price(candidate.name, usage),
        )
        options_ = EngineOptions(TOLD, "what?", overrides=overrides, **{"find_file_policy": lambda: reach, **options})
        self.engine = build_engine(self.record, vision, options_, workers)

    async def _choose(self, *_: object) -> Candidates:
        return Candidates([Candidate(each) for each in self.seers])

    def read(self, request: dict[str, Any], wire: Wire = ANTHROPIC) -> Reading:
        reading = self.engine.read(json.dumps(request).encode(), wire)
        assert reading is not None
        return reading

    async def prepare(
        self, request: dict[str, Any], who: RequestOrigin | None = None, wire: Wire = ANTHROPIC, paid: bool = True
    ) -> PreparedRequest:
        return await self.engine.prepare(self.read(request, wire), who or visitor(wire=wire), paid=paid)

    async def repair(self, before: PreparedRequest, status: int, words: str) -> PreparedRequest | None:
        error = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
        return await self.engine.repair(before, visitor(), status, error)


def sent(prepared: PreparedRequest) -> Any:
    """Return the body that the upstream gets."""
    return json.loads(b"".join(prepared.body))


def content(prepared: PreparedRequest) -> list[Any]:
    found: list[Any] = sent(prepared)["messages"][0]["content"]
    return found


def words(prepared: PreparedRequest) -> list[str]:
    return [each["text"] for each in content(prepared)[:-1] if each["type"] == "text"]


async def turns(condition: Callable[[], object]) -> None:
    """Let other tasks run until a condition holds."""
    async with asyncio.timeout(30):
        while not condition():
            await _turn()


async def a_while() -> None:
    """Let every task run that can."""
    for _ in range(1000):
        await _turn()


async def _turn() -> None:
    await asyncio.sleep(0)


@dataclass
class Talk:
    """A conversation on the Messages wire, as its client has it."""

    model: str = BLIND
    system: str = "be brief"
    messages: list[Any] = field(default_factory=list)
    calls: int = 0

    def say(self, words: str, *pictures: bytes) -> Talk:
        """Begin a turn with a message of the user, with pictures."""
        self.messages.append(user(*(block(encoded(data)) for data in pictures), text(words)))
        return self

    def answer(self, words: str) -> Talk:
        self.messages.append({"role": "assistant", "content": [text(words)]})
        return self

    def read(self, *files: tuple[str, bytes], words: str = "") -> Talk:
        """Add a step in which the assistant reads files."""
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


def all_words(prepared: PreparedRequest) -> list[str]:
    """Return the texts that replace the images, in their order."""
    return [fate.text for sight in prepared.scene.sights if isinstance(fate := sight.fate, Told | Refused)]
