"""Decides, finds out what the passes need to know, and decides again."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

from sightline.engine.answers import Answers, Reading, named
from sightline.engine.comparing import Comparisons
from sightline.engine.eyes import Eyes, probed
from sightline.engine.images import Images
from sightline.engine.looks import Looks
from sightline.engine.options import Options, SeersOf
from sightline.engine.prepared import Prepared
from sightline.engine.repairs import ways
from sightline.engine.shelf import Shelf
from sightline.engine.tellings import Tellings
from sightline.model import receipt
from sightline.model.facts import Facts
from sightline.model.fate import Refused
from sightline.model.fence import sound
from sightline.model.ports import Record
from sightline.model.profile import Lesson, Profile, WireName
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Json, Scene, Sight
from sightline.model.source import Inline
from sightline.model.upstream import Upstream, Visitor
from sightline.passes import decide
from sightline.passes.route import route
from sightline.pixels.worker import Workers
from sightline.profiles import lookup
from sightline.profiles.lookup import Override
from sightline.profiles.rejections import lesson
from sightline.wire import routed
from sightline.wire.codec import Codec
from sightline.wire.jsontext import lift
from sightline.wire.shape import Whole

_LESSON_DAYS = 7.0
_SUSPICION_SECONDS = 3600.0
_SUSPICIONS = 256
_ROUNDS = 8
_POISON_REMEMBERED = 1024


class Engine:
    def __init__(self, record: Record, seers: SeersOf, options: Options, workers: Workers) -> None:
        self._record = record
        self._options = options
        eyes, images, tellings = Eyes(workers), Images(record), Tellings(record)
        looks = Looks(record, seers, options, eyes, images, tellings)
        together = Comparisons(record, seers, options, eyes, looks, images, tellings)
        self._answers = Answers(record, eyes, images, looks, together, options)
        self._poison: Shelf[str] = Shelf(_POISON_REMEMBERED)
        self._moved: Shelf[str] = Shelf(_SUSPICIONS)  # where images were once moved out of tool results in vain
        self._suspected: Shelf[tuple[float, Lesson]] = Shelf(_SUSPICIONS)

    def read_objects(self, tree: Json, wire: Codec) -> Reading:
        """What stands in a body that a program holds as objects."""
        whole = Whole()
        return Reading(wire, tree, whole, wire.read(tree, whole))

    def read(self, body: bytes | bytearray, wire: Codec) -> Reading | None:
        """What stands in a body; None for one that cannot be read, which then goes on untouched."""
        document = lift(body, f"sightline-{secrets.token_hex(8)}-")
        if document is None:
            return None
        return Reading(wire, document.tree, document, wire.read(document.tree, document))

    def sees(self, visitor: Visitor, model: str) -> bool:
        """Does this model get pixels?"""
        return self._options.mode != "always" and self._profile(visitor, model).vision is not False

    def names(self, reading: Reading) -> tuple[str, ...]:
        """Of what was spoken: before its messages, and up to each; none where it is nested too deep."""
        known = named(reading, spoken=True)
        return () if known is None else (known.head, *known.names)

    def references(self, reading: Reading, visitor: Visitor) -> list[str]:
        """The images of a body that were kept for this visitor, by their sha256 and the file that they came from."""
        return self._answers.references(reading.scene.sights, visitor)

    async def prepare(
        self,
        reading: Reading,
        visitor: Visitor,
        paid: bool = True,
        references: bool | None = None,
        meant: Callable[[Profile], Profile] = lambda known: known,
    ) -> Prepared:
        """`references` stands for the setting of this name; `meant` is what a door knows beyond the profile."""
        reading = self._routed(_sound(reading), visitor)
        profile = meant(self._profile(visitor, reading.scene.model))
        if reading.routing is not None:  # who sees for this upstream is said: it looks for the other one as well
            profile = replace(profile, sibling=self._image_model(visitor))
        rules = Rules(
            profile=profile,
            mode=self._options.mode,
            max_images=self._options.max_images,
            max_batch=self._options.max_batch,
            joint_turns=self._options.joint_turns,
            paid=paid,
            retention=self._options.retention,
            poison=self._poisoned(reading.scene, visitor),
            references=self._options.references if references is None else references,
            by_turn=reading.routing is not None,
        )
        return await self._prepared(reading, visitor, rules)

    def _image_model(self, visitor: Visitor) -> str:
        """By its name at this upstream, with which the settings may lead it."""
        return self._options.image_model.removeprefix(f"{visitor.upstream.name}/")

    def _routed(self, reading: Reading, visitor: Visitor) -> Reading:
        """With the model that takes it, where turns with new images have one of their own."""
        scene, image_model = reading.scene, self._image_model(visitor)
        wanted = self._options.mode == "route" and image_model and image_model != scene.model
        # What a provider holds of a conversation, it may hold for one model alone.
        if not wanted or scene.partial or reading.wire.name not in routed.WIRES:
            return reading
        if self._profile(visitor, image_model).vision is False:
            return reading
        way = route(scene.with_sights(tuple(filter(_is_image, scene.sights))), image_model)
        return replace(reading, scene=replace(scene, model=way.model), routing=way)

    def _profile(self, visitor: Visitor, model: str) -> Profile:
        said, hoist = self._options.overrides, self._options.hoist
        known = known_profile(self._record, visitor.upstream, visitor.wire, model, said, hoist=hoist)
        suspicion = self._suspected.get((visitor.upstream.name, model))
        if suspicion is None or suspicion[0] < asyncio.get_running_loop().time():
            return known
        return known.learnt(suspicion[1])

    async def repair(self, before: Prepared, visitor: Visitor, status: int, text: str) -> Prepared | None:
        """The body again, after a rejection; None when images were not its cause, or nothing else can be done."""
        said = lesson(status, text)
        if said is None:
            return None
        place = (visitor.upstream.name, visitor.wire, before.scene.model)
        for rules, taught in ways(before, said):
            if taught.lesson and taught.lesson.tool_images:
                if place in self._moved:  # that was tried before, and did not help
                    continue
                self._moved.put(place, said.kind)
            after = await self._prepared(before.reading, visitor, rules)
            if after.scene != before.scene:
                note = f"sent again after the upstream said {status} ({said.kind})"
                poison = _refused(after.scene) if rules.distrust else frozenset[str]()
                return replace(
                    after,
                    receipt=replace(after.receipt, notes=(*after.receipt.notes, note)),
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
        scene, facts = await self._decided(reading, visitor, rules)
        edits = [*reading.wire.lower(scene, reading.tree, rules.profile), *reading.added]
        notes = reading.notes
        if way := reading.routing:
            edits = routed.routed(reading.wire.name, reading.tree, edits, way)
            notes += (f"instead of {way.named}, for the new images of this turn",) if way.elsewhere else ()
        said = receipt.of(scene, visitor.upstream.name, rules.profile.sizing, facts, notes)
        return Prepared(edits, reading, scene, rules, said)

    async def _decided(self, reading: Reading, visitor: Visitor, rules: Rules) -> tuple[Scene, Facts]:
        facts = Facts(self._answers.at_hand(reading.scene, visitor, rules))
        for _ in range(_ROUNDS):
            outcome = decide(reading.scene, facts, rules)
            if isinstance(outcome, Scene):
                return outcome, facts
            facts = facts.with_answers(await self._answers.to(outcome, reading, visitor, rules))
        raise AssertionError("the passes ask without end")

    def _poisoned(self, scene: Scene, visitor: Visitor) -> frozenset[str]:
        if not self._poison:  # nothing is poisoned nearly always, and a key reads every byte of an image
            return frozenset()
        keys = (sight.source.key for sight in scene.sights if isinstance(sight.source, Inline))
        return frozenset(key for key in keys if (visitor.upstream.name, key) in self._poison)


def known_profile(
    record: Record,
    upstream: Upstream,
    wire: WireName,
    model: str,
    overrides: Sequence[Override],
    *,
    hoist: bool = False,
) -> Profile:
    """What is known of a model: the user's word, the table, and what the upstream itself has said."""
    moved = hoist if upstream.hoist is None else upstream.hoist
    known = lookup.profile(upstream.preset, wire, model, overrides, name=upstream.name, hoist=moved)
    learnt = record.lesson(upstream.name, model)
    return known if learnt is None else known.learnt(learnt)


def _sound(reading: Reading) -> Reading:
    """With a name for the model that can be written down, whatever a client has sent for one."""
    model = sound(reading.scene.model)
    return reading if model == reading.scene.model else replace(reading, scene=replace(reading.scene, model=model))


def _is_image(sight: Sight) -> bool:
    """Of what is written into a text, some only looks like an image."""
    return sight.within is None or not isinstance(sight.source, Inline) or not isinstance(probed(sight.source), Refusal)


def _refused(scene: Scene) -> frozenset[str]:
    return frozenset(
        sight.source.key
        for sight in scene.sights
        if isinstance(sight.fate, Refused) and isinstance(sight.source, Inline)
    )
