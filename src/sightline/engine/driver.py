"""Decides, finds out what the passes need to know, and decides again."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ParamSpec, TypeVar

from sightline.engine.answers import Answers, Reading, named
from sightline.engine.descriptions import Descriptions
from sightline.engine.images import ImageChecker, Images, probed
from sightline.engine.options import Options
from sightline.engine.repairs import Prepared, ways
from sightline.model import receipt
from sightline.model.facts import Facts, Needs
from sightline.model.fate import Refused
from sightline.model.fence import sound
from sightline.model.ports import Store
from sightline.model.profile import Lesson, Profile, WireName
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Json, Scene, Sight
from sightline.model.source import Inline
from sightline.model.upstream import Upstream, Visitor
from sightline.passes import decide
from sightline.passes.together import route
from sightline.pixels.worker import Workers
from sightline.profiles import lookup
from sightline.profiles.lookup import Override
from sightline.profiles.rejections import lesson
from sightline.vision.fairness import Offload
from sightline.vision.lru_cache import LruCache
from sightline.vision.service import VisionService
from sightline.wire import routed
from sightline.wire.codec import Codec
from sightline.wire.jsontext import Document, Lifted, lift_runs
from sightline.wire.shape import Whole, items, value_in

_LESSON_DAYS = 7.0
_SUSPICION_SECONDS = 3600.0
_SUSPICIONS = 256
_ROUNDS = 8
MOST_IMAGES = 5_000  # in a request; the most that any provider takes are 3,600
MOST_MESSAGES = 100_000  # in a request, as many as Anthropic takes
_LIFTED_AT_ONCE = 4 * 1024 * 1024  # bytes: of a larger body even the base64 is lifted out in a thread
_PARSED_AT_ONCE = 128 * 1024  # bytes without base64: a larger body is parsed in a thread
_PREPARED_AT_ONCE = 64 * 1024  # bytes without base64: a larger body with images is prepared in a thread
_HASHED_AT_ONCE = 8 * 1024 * 1024  # bytes: of a larger body the images are compared and hashed in a thread
_SHORT = 4096  # bytes without base64: of a shorter body not even the parts are counted
_FEW_PARTS = 500  # messages, or parts of them
_FEW_IMAGES = 100
_REMEDY = "it is forwarded as it came"
_TOO_MANY_IMAGES = Refusal("too_large", f"there are more than {MOST_IMAGES:,} images", _REMEDY)
_TOO_MANY_MESSAGES = Refusal("too_large", f"there are more than {MOST_MESSAGES:,} messages", _REMEDY)

P = ParamSpec("P")
T = TypeVar("T")
_POISON_REMEMBERED = 1024


class Engine:
    def __init__(self, record: Store, vision: VisionService, options: Options, workers: Workers) -> None:
        self._record = record
        self._options = options
        self._offload = Offload()
        checker, images = ImageChecker(workers), Images(record)
        descriptions = Descriptions(record, vision, options, checker, images, workers)
        self._answers = Answers(record, checker, images, descriptions, options, self.offload)
        self._poison: LruCache[str] = LruCache(_POISON_REMEMBERED)
        self._moved: LruCache[str] = LruCache(_SUSPICIONS)  # where images were once moved out of tool results in vain
        self._suspected: LruCache[tuple[float, Lesson]] = LruCache(_SUSPICIONS)

    def read_objects(self, tree: Json, wire: Codec) -> Reading:
        """What stands in a body that a program holds as objects."""
        whole = Whole()
        return Reading(wire, tree, whole, wire.read(tree, whole))

    def read(self, body: bytes | bytearray, wire: Codec) -> Reading | None:
        """What stands in a body; None for one that cannot be read, which then goes on untouched."""
        reading = _read(_lifted(body), wire)
        return None if isinstance(reading, Refusal) else reading

    async def open(
        self, body: bytes | bytearray, wire: Codec, caller: Callable[[], str] = str
    ) -> Reading | Refusal | None:
        """Read a body without holding up the event loop; a refusal says by which bound it is too large to be read.

        `caller` says whose it is: callers with large bodies take turns.
        """
        if len(body) > _LIFTED_AT_ONCE:
            return await self._offload.run(owner := caller(), lambda: _read(_lifted(body), wire, owner))
        lifted = _lifted(body)
        if len(lifted.skeleton) > _PARSED_AT_ONCE:
            return await self._offload.run(owner := caller(), _read, lifted, wire, owner)
        document = lifted.parse()
        if document is None:
            return None
        if many := _has_many_parts(document, wire):
            return await self._offload.run(owner := caller(), _understand, document, wire, many, owner)
        return _understand(document, wire, many)

    @property
    def thread(self) -> Offload:
        """The thread for long computations; there is one for all surfaces of a process."""
        return self._offload

    async def offload(self, reading: Reading, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` on a reading returns; if the reading is heavy, it is done in a thread."""
        if not reading.heavy:
            return work(*args, **kwargs)
        return await self._offload.run(reading.caller, work, *args, **kwargs)

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
        poison = (
            await self.offload(reading, self._poisoned, reading.scene, visitor) if self._poison else frozenset[str]()
        )
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
            poison=poison,
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
        if suspicion is None or suspicion[0] < time.monotonic():
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
            await asyncio.to_thread(self._record.policy.keep_lesson, name, model, lesson, _LESSON_DAYS)
        if suspected := prepared.taught.suspected:
            until = time.monotonic() + _SUSPICION_SECONDS
            self._suspected.put((visitor.upstream.name, prepared.scene.model), (until, suspected))

    async def _prepared(self, reading: Reading, visitor: Visitor, rules: Rules) -> Prepared:
        facts: Facts | None = None
        for _ in range(_ROUNDS):
            if reading.heavy:
                outcome = await self.offload(reading, self._attempt, reading, visitor, rules, facts)
            else:
                outcome = self._attempt(reading, visitor, rules, facts)
            if isinstance(outcome, Prepared):
                return outcome
            facts, needs = outcome
            facts = facts.with_answers(await self._answers.to(needs, reading, visitor, rules))
        raise AssertionError("the passes ask without end")

    def _attempt(
        self, reading: Reading, visitor: Visitor, rules: Rules, facts: Facts | None
    ) -> Prepared | tuple[Facts, Needs]:
        """Decide with these facts, at first with those at hand; return also what has to be known before."""
        known = Facts(self._answers.at_hand(reading.scene, visitor, rules)) if facts is None else facts
        outcome = decide(reading.scene, known, rules)
        return (known, outcome) if isinstance(outcome, Needs) else _written(outcome, known, reading, visitor, rules)

    def _poisoned(self, scene: Scene, visitor: Visitor) -> frozenset[str]:
        """Return the images that this upstream could not read before; it takes a hash of every image."""
        keys = (sight.source.key for sight in scene.sights if isinstance(sight.source, Inline))
        return frozenset(key for key in keys if (visitor.upstream.name, key) in self._poison)


def _lifted(body: bytes | bytearray) -> Lifted:
    return lift_runs(body, f"sightline-{secrets.token_hex(8)}-")


def _read(lifted: Lifted, wire: Codec, caller: str = "") -> Reading | Refusal | None:
    values = lifted.measure()
    if isinstance(values, Refusal):
        return values
    document = lifted.parse()
    return None if document is None else _understand(document, wire, _has_many_parts(document, wire), caller, values)


def _understand(document: Document, wire: Codec, many: bool, caller: str = "", values: int = 0) -> Reading | Refusal:
    """Find the messages and images of a document; `many`: it has many messages, or parts of them."""
    scene = wire.read(document.tree, document)
    if len(scene.messages) > MOST_MESSAGES:
        return _TOO_MANY_MESSAGES
    if len(scene.sights) > MOST_IMAGES:
        return _TOO_MANY_IMAGES
    most = _PREPARED_AT_ONCE if scene.sights else _PARSED_AT_ONCE
    long = len(document.skeleton) > most or len(document.body) > _HASHED_AT_ONCE
    heavy = long or len(scene.sights) > _FEW_IMAGES or many
    return Reading(wire, document.tree, document, scene, heavy=heavy, values=values, caller=caller)


def _has_many_parts(document: Document, wire: Codec) -> bool:
    """Return whether its messages and their parts are so many that to go through them takes milliseconds."""
    if len(document.skeleton) < _SHORT:
        return False
    messages = items(document.tree, wire.items)
    if len(messages) > _FEW_PARTS:
        return True
    parts = (value_in(message, "content") or value_in(message, "parts") for message in messages)
    return sum(len(part) for part in parts if isinstance(part, list)) > _FEW_PARTS


def known_profile(
    record: Store,
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
    learnt = record.policy.read_lesson(upstream.name, model)
    return known if learnt is None else known.learnt(learnt)


def _written(scene: Scene, facts: Facts, reading: Reading, visitor: Visitor, rules: Rules) -> Prepared:
    """Return the request that a decided scene becomes."""
    edits = [*reading.wire.lower(scene, reading.tree, rules.profile), *reading.added]
    notes = reading.notes
    if way := reading.routing:
        edits = routed.routed(reading.wire.name, reading.tree, edits, way)
        notes += (f"instead of {way.named}, for the new images of this turn",) if way.elsewhere else ()
    said = receipt.of(scene, visitor.upstream.name, rules.profile.sizing, facts, notes)
    return Prepared(edits, reading, scene, rules, said)


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
