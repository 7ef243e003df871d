"""`/vision-proxy …` typed into a conversation: answered here in the wire's own shape, and never seen by the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from sightline.commands import NAME, find_command
from sightline.engine import Reading
from sightline.model.edit import Rebuild
from sightline.model.scene import Json
from sightline.model.upstream import Visitor
from sightline.surfaces.proxy.routes import Route
from sightline.vision.fairness import FairSemaphore
from sightline.wire.jsontext import Document
from sightline.wire.replies import Saying, said
from sightline.wire.shape import at, items
from sightline.wire.typed import demands_data, newest, without

Answer = Callable[[str, Visitor, str, Sequence[str]], str]
"""What a command answers: its text, who typed it, the model that they talk to, the images of the conversation."""

_AT_ONCE = 8  # commands that are answered at a time
_SIGN = NAME.strip("/").encode()  # some write \\/ for the slash


class Commands:
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        # A command may wait for a look: threads of its own, so that nobody else has to wait for one.
        self._threads = ThreadPoolExecutor(_AT_ONCE, "sightline-command")
        self._turns = FairSemaphore(_AT_ONCE)

    def typed(self, reading: Reading, way: Route) -> str | None:
        """The command that a request is, if it is one."""
        if way.endpoint.counts or (command := newest(_messages(reading, way), find_command)) is None:
            return None
        return None if demands_data(reading.tree) else command

    async def answered(
        self, text: str, reading: Reading, way: Route, visitor: Visitor, images: Sequence[str]
    ) -> tuple[bytes, bytes]:
        """Its answer: a content type and a body."""
        assert way.wire is not None
        model = reading.scene.model
        loop = asyncio.get_running_loop()
        async with self._turns.turn(visitor.scope):
            words = await loop.run_in_executor(self._threads, self._answer, text, visitor, model, images)
        return said(way.wire.name, Saying(words, model), stream=reading.scene.stream, listed=is_listed(way))


def is_listed(way: Route) -> bool:
    """Is a stream asked for as one JSON list? Gemini streams so unless it is told otherwise."""
    return way.api == "gemini" and "alt=sse" not in way.url


def without_commands(reading: Reading, way: Route) -> bytes | None:
    """The body without earlier commands and their answers; None: there are none."""
    kept = without(_messages(reading, way), find_command)
    if kept is None or not isinstance(reading.texts, Document):
        return None
    assert way.wire is not None
    return b"".join(reading.texts.splice([Rebuild((way.wire.items,), kept)]))


def _messages(reading: Reading, way: Route) -> list[Json]:
    """All that was said, if there may be a command in it; a bare text is one message of the user's."""
    assert way.wire is not None
    if isinstance(reading.texts, Document) and _SIGN not in reading.texts.skeleton:
        return []
    if isinstance(words := at(reading.tree, way.wire.items), str):
        return [{"role": "user", "content": words}]
    return items(reading.tree, way.wire.items)
