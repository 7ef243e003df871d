"""Several images of a turn, looked at together: once for a turn, and for the place at which it was first said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from sightline.engine.eyes import Eyes
from sightline.engine.looks import Looks, first, names_of
from sightline.engine.options import Options, SeersOf
from sightline.engine.places import IN_ALL, Place
from sightline.model.asking import Answer, Question
from sightline.model.entry import Entry
from sightline.model.facts import Compare, Joint, Member
from sightline.model.image import Image, base64_length
from sightline.model.ports import Record, Seer
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.telling import Telling, written
from sightline.model.upstream import Visitor
from sightline.passes import joint
from sightline.passes.fit import target
from sightline.seers.prompt import TOGETHER, with_context

_LONGEST = 30_000  # characters of an answer: nobody reads more, and everybody pays for it
_UNSAID = Refusal("unavailable", "nothing was said of them together", "ask about them with analyze_image")
_ONE_FAILS = Refusal(
    "corrupt", "one of the images cannot be read, so they are not looked at together", "send that image again"
)
_COMPARED = "What differs between these images?"  # is asked of a seer that cannot make out anything else by itself
_UNREAD = ""  # stands for an image that has no name, since it cannot be read


@dataclass(frozen=True, slots=True)
class _Asked:
    """What whoever looks is told and asked, and what that is made of."""

    members: tuple[Member, ...]
    images: tuple[Image, ...]
    question: str
    instructions: str
    words: str
    spoken: str  # by the user, or what goes without saying
    likeness: float | None


class Comparisons:
    def __init__(self, record: Record, seers: SeersOf, options: Options, eyes: Eyes, looks: Looks) -> None:
        self._record = record
        self._seers = seers
        self._options = options
        self._eyes = eyes
        self._looks = looks

    async def compare(self, need: Compare, place: Place, visitor: Visitor, profile: Profile) -> Joint | Refusal:
        images = self._named(need)
        if isinstance(said := self._looks.told(visitor, place.turn, *images), Joint | Refusal):
            return said
        seers = await self._seers(visitor, profile)
        if need.remembered_only or not place.turn or not names_of(seers) or len(images) < 2:
            return _UNSAID
        opened = [] if _UNREAD in images else await self._opened(need)
        made = await self._looked(opened, seers, place, visitor) if opened else _ONE_FAILS
        if isinstance(made, Refusal):
            await self._looks.skip(visitor, made, *filter(None, images))
        return await self._said(visitor, place, images, made)

    async def waive(self, need: Compare, place: Place, visitor: Visitor) -> Joint | Refusal:
        """A request goes out without it: nothing is said there from now on, or all that stands behind would change."""
        return _UNSAID if need.remembered_only else await self._said(visitor, place, self._named(need), _UNSAID)

    def _named(self, need: Compare) -> tuple[str, ...]:
        """The name under which it is kept: each image once, and that there is one that cannot be read."""
        found = [self._looks.digest(image) for image in need.images]
        names = {_UNREAD if isinstance(each, Refusal) else each for each in found}
        return tuple(sorted(names if need.whole else {*names, _UNREAD}))

    async def _opened(self, need: Compare) -> list[tuple[Image, str]]:
        """Each image once, with its file name; none, if one of them fails to decode."""
        checked = await asyncio.gather(*(self._eyes.check(image) for image in need.images))
        found: dict[str, tuple[Image, str]] = {}
        for seen, inline, name in zip(checked, need.images, need.names, strict=True):
            image = self._looks.opened(inline)
            if isinstance(seen, Refusal) or isinstance(image, Refusal):
                return []
            found.setdefault(image.sha256, (image, name.encode("utf-8", "replace").decode()))
        return list(found.values())

    async def _said(
        self, visitor: Visitor, place: Place, images: tuple[str, ...], made: Joint | Refusal
    ) -> Joint | Refusal:
        """For good, also where it failed: nobody comes back to a place that is passed."""
        stands = await self._looks.tell(visitor, Telling(place.turn, images, written(made), during=place.now))
        return stands if isinstance(stands, Joint | Refusal) else made

    async def _looked(
        self,
        opened: Sequence[tuple[Image, str]],
        seers: Sequence[Seer | Refusal],
        place: Place,
        visitor: Visitor,
    ) -> Joint | Refusal:
        for image, _ in opened:  # before anything refers to it
            await asyncio.to_thread(self._record.keep_image, visitor.scope, image)
        asked = await self._asked(opened, place)
        began = monotonic()
        answer = await first(seers, lambda seer: self._answered(seer, asked))
        if isinstance(answer, Refusal):
            return answer
        await asyncio.to_thread(self._record.note, visitor.scope, self._entry(asked, answer, monotonic() - began))
        return Joint(asked.members, answer.text[:_LONGEST].strip(), answer.seer)

    async def _asked(self, opened: Sequence[tuple[Image, str]], place: Place) -> _Asked:
        images = tuple(image for image, _ in opened)
        members = tuple(Member(image.sha256, image.size, name) for image, name in opened)
        names = [each.filename for each in members]
        said, spoken = place.said() if self._options.context else (), place.asked()[:IN_ALL]
        question = (spoken if said else "") or TOGETHER
        alike = list(joint.similar(await self._eyes.likeness(images), self._options.alike))
        told = joint.prompt(len(images), question, joint.hints(names, alike))
        named = joint.introduced([(each.size, each.filename) for each in members])
        likeness = max((how for *_, how in alike), default=None)
        words = with_context(f"{named}\n\n{question}", said)
        return _Asked(members, images, question, told, words, spoken or _COMPARED, likeness)

    async def _answered(self, seer: Seer, asked: _Asked) -> Answer | Refusal:
        encoded = sum(base64_length(len(image.data)) for image in asked.images)
        goal = target(seer.limits, len(asked.images), encoded)
        sent = [await self._eyes.fitting(image, goal) for image in asked.images]
        for each in sent:
            if isinstance(each, Refusal):
                return each
        images = tuple(each for each in sent if isinstance(each, Image))
        async with self._looks.busy:
            return await seer.ask(Question(asked.words, images, asked.instructions, asked=asked.spoken))

    def _entry(self, asked: _Asked, answer: Answer, seconds: float) -> Entry:
        about: dict[str, Json] = {
            "question": asked.question,
            "grounding_format": "none",
            "dimensions": [str(each.size) for each in asked.members],
            "filename_hint": joint.filename_hint([each.filename for each in asked.members]),
            "phash_similarity": asked.likeness,
        }
        return Entry(
            "vision_proxy.joint_description",
            tuple(each.sha256 for each in asked.members),
            answer.seer,
            answer.usage,
            self._options.price(answer.seer, answer.usage),
            latency_ms=round(seconds * 1000),
            about=about,
        )
