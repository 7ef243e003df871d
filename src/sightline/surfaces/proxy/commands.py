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
        # A command may wait for a seer: it has threads of its own, so that other requests don't wait for one.
        self._threads = ThreadPoolExecutor(_AT_ONCE, "sightline-command")
        self._turns = FairSemaphore(_AT_ONCE)

    def find(self, reading: Reading, route: Route) -> str | None:
        """Return the command that a request is, or None."""
        if route.endpoint.counts or (command := newest(_find_messages(reading, route), find_command)) is None:
            return None
        return None if demands_data(reading.tree) else command

    async def answer(
        self, text: str, reading: Reading, route: Route, visitor: Visitor, images: Sequence[str]
    ) -> tuple[bytes, bytes]:
        """Return the answer to a command: a content type and a body."""
        assert route.wire is not None
        model = reading.scene.model
        loop = asyncio.get_running_loop()
        async with self._turns.turn(visitor.scope):
            words = await loop.run_in_executor(self._threads, self._answer, text, visitor, model, images)
        return said(route.wire.name, Saying(words, model), stream=reading.scene.stream, listed=route.streams_json_list)


def remove_commands(reading: Reading, route: Route) -> bytes | None:
    """Return the body without earlier commands and their answers; None: there are none."""
    kept = without(_find_messages(reading, route), find_command)
    if kept is None or not isinstance(reading.texts, Document):
        return None
    assert route.wire is not None
    return b"".join(reading.texts.splice([Rebuild((route.wire.items,), kept)]))


def _find_messages(reading: Reading, route: Route) -> list[Json]:
    """Return all messages, if there may be a command in them; a bare text is one message of the user."""
    assert route.wire is not None
    if isinstance(reading.texts, Document) and _SIGN not in reading.texts.skeleton:
        return []
    if isinstance(words := at(reading.tree, route.wire.items), str):
        return [{"role": "user", "content": words}]
    return items(reading.tree, route.wire.items)
