"""Decides, finds out what the passes need to know, and decides again."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sightline.engine.eyes import Eyes
from sightline.engine.looks import PENDING, Looks
from sightline.engine.options import Options, SeersOf
from sightline.engine.shelf import Shelf
from sightline.model import receipt
from sightline.model.facts import Answer, Check, Facts, Look, Need, Needs, Probe, Refit
from sightline.model.fate import Refused
from sightline.model.ports import Record
from sightline.model.profile import Lesson, Profile, WireName
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Scene
from sightline.model.source import Inline
from sightline.model.upstream import Upstream, Visitor
from sightline.passes import decide
from sightline.pixels.worker import Workers
from sightline.profiles import lookup
from sightline.profiles.rejections import Rejection, lesson
from sightline.wire import Wire
from sightline.wire.jsontext import Buffer, Document, lift

log = logging.getLogger("sightline")

_LESSON_DAYS = 7.0
_SUSPICION_SECONDS = 3600.0
_SUSPICIONS = 256
_PLAIN = ("image/png", "image/jpeg")
_ROUNDS = 8
_POISON_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Reading:
    """A body that could be read."""

    wire: Wire
    document: Document
    scene: Scene


@dataclass(frozen=True, slots=True)
class Prepared:
    """A body as it goes to the upstream."""

    body: Sequence[Buffer]
    edited: bool
    reading: Reading
    scene: Scene
    rules: Rules
    receipt: Receipt
    taught: Taught | None = None


@dataclass(frozen=True, slots=True)
class Taught:
    """What a rejection will have taught, if the repair that it led to is taken."""

    lesson: Lesson | None = None
    suspected: Lesson | None = None  # likely, but the words could mean another thing: not for the record
    poison: frozenset[str] = frozenset()  # images that this upstream cannot read


class Engine:
    def __init__(self, record: Record, seers: SeersOf, options: Options, workers: Workers) -> None:
        self._record = record
        self._options = options
        self._eyes = Eyes(workers)
        self._looks = Looks(record, seers, options, self._eyes)
        self._flights: dict[Hashable, asyncio.Task[Answer]] = {}
        self._poison: Shelf[str] = Shelf(_POISON_REMEMBERED)
        self._suspected: Shelf[tuple[float, Lesson]] = Shelf(_SUSPICIONS)

    def read(self, body: bytes | bytearray, wire: Wire) -> Reading | None:
        """What stands in a body; None for one that cannot be read, which then goes on untouched."""
        document = lift(body, f"sightline-{secrets.token_hex(8)}-")
        if document is None:
            return None
        return Reading(wire, document, wire.read(document.tree, document.text_of))

    async def prepare(self, reading: Reading, visitor: Visitor, paid: bool = True) -> Prepared:
        rules = Rules(
            profile=self._profile(visitor, reading.scene.model),
            mode=self._options.mode,
            max_images=self._options.max_images,
            paid=paid,
            poison=self._poisoned(reading.scene, visitor),
        )
        return await self._prepared(reading, visitor, rules)

    def _profile(self, visitor: Visitor, model: str) -> Profile:
        known = known_profile(self._record, visitor.upstream, visitor.wire, model, self._options.overrides)
        suspicion = self._suspected.get((visitor.upstream.name, model))
        if suspicion is None or suspicion[0] < asyncio.get_running_loop().time():
            return known
        return known.learnt(suspicion[1])

    async def repair(self, before: Prepared, visitor: Visitor, status: int, text: str) -> Prepared | None:
        """The body again, after a rejection; None when images were not its cause, or nothing else can be done."""
        said = lesson(status, text)
        if said is None:
            return None
        for rules, taught in _ways(before, said):
            after = await self._prepared(before.reading, visitor, rules)
            if after.scene != before.scene:
                note = f"sent again after the upstream said {status} ({said.kind})"
                poison = _refused(after.scene) if rules.distrust else frozenset[str]()
                return replace(
                    after,
                    receipt=replace(after.receipt, notes=(note,)),
                    taught=replace(taught, poison=poison),
                )
        return None

    async def taken(self, prepared: Prepared, visitor: Visitor) -> None:
        """A repaired request was accepted: what it took to repair it was right, and is remembered."""
        if prepared.taught is None:
            return
        for key in prepared.taught.poison:
            self._poison.put((visitor.upstream.name, key), key)
        if lesson := prepared.taught.lesson:
            name, model = visitor.upstream.name, prepared.scene.model
            await asyncio.to_thread(self._record.learn, name, model, lesson, _LESSON_DAYS)
        if suspected := prepared.taught.suspected:
            until = asyncio.get_running_loop().time() + _SUSPICION_SECONDS
            self._suspected.put((visitor.upstream.name, prepared.scene.model), (until, suspected))

    async def _prepared(self, reading: Reading, visitor: Visitor, rules: Rules) -> Prepared:
        scene = await self._decided(reading.scene, visitor, rules)
        edits = reading.wire.lower(scene, reading.document.tree, rules.profile)
        body = reading.document.splice(edits)
        said = receipt.of(scene, visitor.upstream.name)
        return Prepared(body, bool(edits), reading, scene, rules, said)

    async def _decided(self, scene: Scene, visitor: Visitor, rules: Rules) -> Scene:
        facts = Facts()
        for _ in range(_ROUNDS):
            outcome = decide(scene, facts, rules)
            if isinstance(outcome, Scene):
                return outcome
            facts = facts.with_answers(await self._answers(outcome, visitor, rules))
        raise AssertionError("the passes ask without end")

    async def _answers(self, needs: Needs, visitor: Visitor, rules: Rules) -> dict[Need, Answer]:
        """All needs at once. What takes longer than the user's patience goes on behind the request."""
        answers: dict[Need, Answer] = {}
        flights: dict[Need, asyncio.Task[Answer]] = {}
        for need in needs.needs:
            if isinstance(need, Probe):  # a few microseconds: not worth a task
                answers[need] = self._eyes.probe(need.image)
            else:
                flights[need] = self._flight(need, visitor, rules)
        if flights:
            # Looks take as long as somebody else needs for them; work on pixels is our own, and is waited for.
            patience = self._options.patience if any(isinstance(need, Look) for need in flights) else None
            await asyncio.wait(set(flights.values()), timeout=patience)
        for need, flight in flights.items():
            answers[need] = flight.result() if flight.done() else PENDING
        return answers

    def _flight(self, need: Need, visitor: Visitor, rules: Rules) -> asyncio.Task[Answer]:
        """One task for one question, however many requests ask it at the same time."""
        key: Hashable = need
        if isinstance(need, Look):  # an agent's side requests ask for other models, but for the same eyes
            key = (need, visitor.scope, visitor.upstream.name, visitor.wire, rules.profile.sibling)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(self._answer(need, visitor, rules))
            flight.add_done_callback(lambda _: self._flights.pop(key, None))
        return flight

    async def _answer(self, need: Need, visitor: Visitor, rules: Rules) -> Answer:
        try:
            match need:
                case Probe(image=image):
                    return self._eyes.probe(image)
                case Check(image=image):
                    return await self._eyes.check(image)
                case Refit():
                    return await self._eyes.refit(need)
                case Look():
                    return await self._looks.look(need, visitor, rules.profile)
                case _:
                    assert_never(need)
        except Exception:
            log.exception("a need could not be answered: %s", type(need).__name__)
            return Refusal("unavailable", "something went wrong inside Sightline while it was read", "ask for it again")

    def _poisoned(self, scene: Scene, visitor: Visitor) -> frozenset[str]:
        if not self._poison:  # nothing is poisoned nearly always, and a key reads every byte of an image
            return frozenset()
        keys = (sight.source.key for sight in scene.sights if isinstance(sight.source, Inline))
        return frozenset(key for key in keys if (visitor.upstream.name, key) in self._poison)


def known_profile(
    record: Record, upstream: Upstream, wire: WireName, model: str, overrides: Sequence[tuple[str, bool]]
) -> Profile:
    """What is known of a model: the user's word, the table, and what the upstream itself has said."""
    known = lookup.profile(upstream.preset, wire, model, overrides, name=upstream.name)
    learnt = record.lesson(upstream.name, model)
    return known if learnt is None else known.learnt(learnt)


def _ways(before: Prepared, said: Rejection) -> Iterator[tuple[Rules, Taught]]:
    """How a rejected request could be mended, the gentlest way first; one that changes nothing is passed over."""
    rules, profile = before.rules, before.rules.profile
    distrustful = replace(rules, distrust=True, poison=rules.poison | _accused(before, said))
    match said.kind:
        case "undecodable" | "media_type":
            yield distrustful, Taught()
            # Every image decodes, and yet one was refused: perhaps a plainer encoding will do.
            yield replace(distrustful, recode=True), Taught()
        case "unclear" | "tool_images":
            yield distrustful, Taught()
            # Words are taken by every model.
            blind = Lesson(blind=True, why=said.lesson.why)
            yield replace(rules, profile=profile.learnt(blind)), Taught(suspected=blind)
        case "format":
            plain = Lesson(limits=replace(said.lesson.limits, formats=_PLAIN), why=said.lesson.why)
            yield replace(rules, profile=profile.learnt(said.lesson)), Taught(said.lesson)
            yield replace(rules, profile=profile.learnt(plain)), Taught(plain)
        case _:
            yield replace(rules, profile=profile.learnt(said.lesson)), Taught(said.lesson)


def _accused(before: Prepared, said: Rejection) -> frozenset[str]:
    """The keys of the images that a rejection names by their places in what was sent."""
    # Where messages were put in, the places of what was sent are not the places of what was read.
    if before.rules.profile.tool_images != "native":
        return frozenset()
    return frozenset(
        sight.source.key
        for sight in before.scene.sights
        if isinstance(sight.source, Inline) and sight.place in said.places
    )


def _refused(scene: Scene) -> frozenset[str]:
    return frozenset(
        sight.source.key
        for sight in scene.sights
        if isinstance(sight.fate, Refused) and isinstance(sight.source, Inline)
    )
