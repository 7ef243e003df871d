"""Decides, finds out what the passes need to know, and decides again."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sightline.engine.answers import Answers, Reading, named
from sightline.engine.comparing import Comparisons
from sightline.engine.eyes import Eyes, probed
from sightline.engine.looks import Looks
from sightline.engine.options import Options, SeersOf
from sightline.engine.shelf import Shelf
from sightline.model import receipt
from sightline.model.edit import Edit, Insert
from sightline.model.facts import (
    Facts,
)
from sightline.model.fate import Refused
from sightline.model.fence import sound
from sightline.model.ports import Record
from sightline.model.profile import Lesson, Profile, WireName
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Json, Path, Scene, Sight
from sightline.model.source import Inline
from sightline.model.upstream import Upstream, Visitor
from sightline.passes import decide
from sightline.passes.route import route
from sightline.pixels.worker import Workers
from sightline.profiles import lookup
from sightline.profiles.lookup import Override
from sightline.profiles.rejections import Rejection, lesson
from sightline.wire import routed
from sightline.wire.codec import Codec
from sightline.wire.jsontext import Buffer, Document, lift
from sightline.wire.jsontree import graft
from sightline.wire.shape import Whole

log = logging.getLogger("sightline")

_LESSON_DAYS = 7.0
_SUSPICION_SECONDS = 3600.0
_SUSPICIONS = 256
_PLAIN = ("image/png", "image/jpeg")
_ROUNDS = 8
_POISON_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Prepared:
    """A body as it goes to the upstream."""

    edits: Sequence[Edit]
    reading: Reading
    scene: Scene
    rules: Rules
    receipt: Receipt
    taught: Taught | None = None

    @property
    def body(self) -> Sequence[Buffer]:
        """As bytes, where it was read from bytes."""
        document = self.reading.texts
        assert isinstance(document, Document)
        return document.splice(self.edits)

    def address(self, url: str) -> str:
        """Where it is sent, if `url` is where the client asked."""
        way = self.reading.routing
        return url if way is None else routed.address(self.reading.wire.name, url, way)

    @property
    def tree(self) -> Json:
        """As objects."""
        return graft(self.reading.tree, self.edits)


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
        eyes = Eyes(workers)
        looks = Looks(record, seers, options, eyes)
        self._answers = Answers(record, eyes, looks, Comparisons(record, seers, options, eyes, looks), options)
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
        for rules, taught in _ways(before, said):
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


def _ways(before: Prepared, said: Rejection) -> Iterator[tuple[Rules, Taught]]:
    """How a rejected request could be mended, the gentlest way first; one that changes nothing is passed over."""
    # The user's word that a model sees stands; but this request was refused, and is mended like any other.
    rules, profile = before.rules, replace(before.rules.profile, settled=False)
    distrustful = replace(rules, distrust=True, poison=rules.poison | _accused(before, said))
    match said.kind:
        case "undecodable" | "media_type":
            yield distrustful, Taught()
            # Every image decodes, and yet one was refused: perhaps a plainer encoding will do.
            yield replace(distrustful, recode=True), Taught()
        case "unclear" | "tool_images":
            if said.kind == "tool_images":  # the model may well see them, only not there
                beside = Lesson(tool_images={profile.wire: "hoist"}, why=said.lesson.why)
                yield replace(rules, profile=profile.learnt(beside)), Taught(beside)
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
    # Where lists were made anew, the places of what was sent are not the places of what was read.
    if before.rules.profile.tool_images != "native" or before.reading.routing is not None:
        return frozenset()
    added = [edit.place for edit in before.edits if isinstance(edit, Insert)]
    return frozenset(
        sight.source.key
        for sight in before.scene.sights
        if isinstance(sight.source, Inline) and _sent(sight.place, added) in said.places
    )


def _sent(place: Path, added: Sequence[Path]) -> Path:
    """A place of what was read, in what was sent: further on by all that was put before it."""
    return tuple(
        step if isinstance(step, str) else step + sum(_precedes(each, place[: depth + 1]) for each in added)
        for depth, step in enumerate(place)
    )


def _precedes(added: Path, place: Path) -> bool:
    """Does what was put in at `added` stand before `place`, in the same list?"""
    *there, index = added
    *here, own = place
    return there == here and isinstance(index, int) and isinstance(own, int) and index <= own


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
