"""What the passes need to know, found out: everything at once, and nothing twice at the same time."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Hashable
from dataclasses import dataclass
from typing import assert_never

from sightline.engine.eyes import Eyes, probed
from sightline.engine.links import fetched
from sightline.engine.looks import PENDING, Looks
from sightline.engine.options import Options
from sightline.model.facts import (
    Answer,
    Check,
    Fetch,
    History,
    Keep,
    Look,
    Need,
    Needs,
    Present,
    Probe,
    Recall,
    Refit,
)
from sightline.model.ports import Record
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Json, Scene
from sightline.model.upstream import Visitor
from sightline.wire.chain import chain
from sightline.wire.codec import Codec
from sightline.wire.shape import Texts

log = logging.getLogger("sightline")

_TOO_DEEP = Refusal("unavailable", "the conversation is nested too deep to be named", "begin a new one")
_BROKEN = Refusal("unavailable", "something went wrong inside Sightline while it was read", "ask for it again")


@dataclass(frozen=True, slots=True)
class Reading:
    """A body that could be read."""

    wire: Codec
    tree: Json
    texts: Texts
    scene: Scene


class Answers:
    def __init__(self, record: Record, eyes: Eyes, looks: Looks, options: Options) -> None:
        self._record = record
        self._eyes = eyes
        self._looks = looks
        self._patience = options.patience
        self._web = options.web
        self._flights: dict[Hashable, asyncio.Task[Answer]] = {}

    async def to(self, needs: Needs, reading: Reading, visitor: Visitor, rules: Rules) -> dict[Need, Answer]:
        """All needs at once. What takes longer than the user's patience goes on behind the request."""
        answers: dict[Need, Answer] = {}
        flights: dict[Need, asyncio.Task[Answer]] = {}
        paths: list[Present] = []
        for need in needs.needs:
            if isinstance(need, Probe):  # a few microseconds: not worth a task
                answers[need] = probed(need.image)
            elif isinstance(need, Present):
                paths.append(need)
            elif isinstance(need, Recall):
                answers[need] = await self._recalled(reading, visitor, rules)
            else:
                flights[need] = self._flight(need, visitor, rules)
        if paths:  # of everything that was ever retired: one thread for all
            answers |= await asyncio.to_thread(lambda: {need: _is_file(need.path) for need in paths})
        if flights:
            # Looks take as long as somebody else needs for them; work on pixels is our own, and is waited for.
            patience = self._patience if any(isinstance(need, Look) for need in flights) else None
            await asyncio.wait(set(flights.values()), timeout=patience)
        for need, flight in flights.items():
            answers[need] = flight.result() if flight.done() else PENDING
        return answers

    def _flight(self, need: Need, visitor: Visitor, rules: Rules) -> asyncio.Task[Answer]:
        """One task for one question, however many requests ask it at the same time."""
        key: Hashable = need
        if isinstance(need, Keep):
            key = (need, visitor.scope)
        if isinstance(need, Look):  # an agent's side requests ask for other models, but for the same eyes
            key = (need, visitor.scope, visitor.upstream.name, visitor.wire, rules.profile.sibling)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(self._safely(need, visitor, rules))
            flight.add_done_callback(lambda _: self._flights.pop(key, None))
        return flight

    async def _safely(self, need: Need, visitor: Visitor, rules: Rules) -> Answer:
        try:
            return await self._answer(need, visitor, rules)
        except Exception:
            log.exception("a need could not be answered: %s", type(need).__name__)
            return _BROKEN

    async def _answer(self, need: Need, visitor: Visitor, rules: Rules) -> Answer:
        answer: Answer
        match need:
            case Probe(image=image):
                answer = probed(image)
            case Check(image=image):
                answer = await self._eyes.check(image)
            case Refit():
                answer = await self._eyes.refit(need)
            case Look():
                answer = await self._looks.look(need, visitor, rules.profile)
            case Keep(image=image):
                answer = await self._looks.keep(image, visitor)
            case Fetch(link=link):
                answer = await fetched(link, self._web)
            case Present() | Recall():
                raise AssertionError("this is answered for one conversation, not for all that ask")
            case _:
                assert_never(need)
        return answer

    async def _recalled(self, reading: Reading, visitor: Visitor, rules: Rules) -> History | Refusal:
        """What is known of this conversation; and that it was here just now is known from now on."""
        wire, scene = reading.wire, reading.scene
        try:
            known = chain(reading.tree, wire.head, wire.items, reading.texts, scene.sights)
        except RecursionError:
            return _TOO_DEEP
        ends = [end for end in scene.ends if end < len(known.names)]
        life = rules.profile.cache.seconds
        met = await asyncio.to_thread(
            self._record.visit, visitor.scope, known.head, known.names, ends, life, rules.paid
        )
        cold = frozenset(index for index, name in enumerate(known.names) if name in met)
        return History(known.tokens, cold, known.head_tokens)


def _is_file(path: str) -> bool:
    """Only whole paths: where a client works, nobody here knows."""
    try:
        return os.path.isabs(path) and os.path.isfile(path)  # noqa: PTH113, PTH117
    except ValueError:
        return False
