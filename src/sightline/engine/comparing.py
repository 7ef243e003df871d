"""Several images of a turn, looked at together: once for a turn, and for the place at which it was first said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sightline.engine import flights
from sightline.engine.eyes import Eyes
from sightline.engine.flights import Here
from sightline.engine.images import Images
from sightline.engine.looks import Looks, first, names_of, resized, shared
from sightline.engine.options import Options, SeersOf
from sightline.engine.places import IN_ALL, Place
from sightline.engine.tellings import Tellings
from sightline.grounding.formats import FORMATS
from sightline.model.asking import Question, bounded
from sightline.model.facts import Compare, Joint, Member
from sightline.model.fence import sound
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.ports import Seer, Store
from sightline.model.profile import Profile
from sightline.model.records import Entry, Telling, read, written
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.upstream import Visitor
from sightline.passes import joint
from sightline.seers.prompt import TOGETHER, with_context, with_form

_UNSAID = Refusal("unavailable", "nothing was said of them together", "ask about them with analyze_image")
_ONE_FAILS = Refusal(
    "corrupt", "one of the images cannot be read, so they are not looked at together", "send that image again"
)
_Opened = tuple[Image, str]  # with its file name
_UNREAD = ""  # stands for an image that has no name, since it cannot be read


@dataclass(frozen=True, slots=True)
class _Asked:
    """What whoever looks is told and asked, and what that is made of."""

    members: tuple[Member, ...]
    images: tuple[Image, ...]
    question: str
    instructions: str
    said: Sequence[str]  # before
    spoken: str  # by the user; may be empty
    likeness: float | None


class Comparisons:
    def __init__(
        self,
        record: Store,
        seers: SeersOf,
        options: Options,
        eyes: Eyes,
        looks: Looks,
        images: Images,
        tellings: Tellings,
    ) -> None:
        self._record = record
        self._seers = seers
        self._options = options
        self._eyes = eyes
        self._looks = looks
        self._images = images
        self._tellings = tellings
        self._flights: Here[Joint | Refusal] = Here()

    async def compare(self, need: Compare, place: Place, visitor: Visitor, profile: Profile) -> Joint | Refusal:
        images = self._named(need)
        if isinstance(said := self._tellings.told(visitor, place.turn, *images), Joint | Refusal):
            return said
        seers = await self._seers(visitor, profile)
        if need.remembered_only or not place.turn or not names_of(seers) or len(images) < 2:
            return _UNSAID
        opened = [] if _UNREAD in images else await self._opened(need)
        if opened:
            made = await self._once(opened, seers, place, visitor)
        else:
            made = _ONE_FAILS
            await self._looks.skip(visitor, made, *filter(None, images))
        return await self._said(visitor, place, images, made)

    async def waive(self, need: Compare, place: Place, visitor: Visitor) -> Joint | Refusal:
        """A request goes out without it: nothing is said there from now on, or all that stands behind would change."""
        return _UNSAID if need.remembered_only else await self._said(visitor, place, self._named(need), _UNSAID)

    def _named(self, need: Compare) -> tuple[str, ...]:
        """The name under which it is kept: each image once, and that there is one that cannot be read."""
        found = [self._images.digest(image) for image in need.images]
        names = {_UNREAD if isinstance(each, Refusal) else each for each in found}
        return tuple(sorted(names if need.whole else {*names, _UNREAD}))

    async def _opened(self, need: Compare) -> list[_Opened]:
        """Each image once, with its file name; none, if one of them fails to decode."""
        checked = await asyncio.gather(*(self._eyes.check(image) for image in need.images))
        found: dict[str, tuple[Image, str]] = {}
        for seen, inline, name in zip(checked, need.images, need.names, strict=True):
            image = await self._images.open(inline)
            if isinstance(seen, Refusal) or isinstance(image, Refusal):
                return []
            found.setdefault(image.sha256, (image, sound(name)))
        return list(found.values())

    async def _said(
        self, visitor: Visitor, place: Place, images: tuple[str, ...], made: Joint | Refusal
    ) -> Joint | Refusal:
        """For good, also where it failed: nobody comes back to a place that is passed."""
        stands = await self._tellings.tell(visitor, Telling(place.turn, images, written(made), during=place.now))
        return stands if isinstance(stands, Joint | Refusal) else made

    async def _once(
        self, opened: Sequence[_Opened], seers: Sequence[Seer | Refusal], place: Place, visitor: Visitor
    ) -> Joint | Refusal:
        """One look for all who want the same, under whichever head the same words brought the same images."""
        before, context = place.before() if self._options.context else "", self._options.context
        images: list[Json] = [[image.sha256, name] for image, name in opened]
        forms: list[Json] = [self._options.grounds(name) for name in names_of(seers)]
        name = flights.named("together", images, [*names_of(seers)], forms, context, before, place.asked())
        return await self._flights.once(
            (visitor.scope, name), lambda: self._shared(name, opened, seers, place, visitor)
        )

    async def _shared(
        self, name: str, opened: Sequence[_Opened], seers: Sequence[Seer | Refusal], place: Place, visitor: Visitor
    ) -> Joint | Refusal:
        for image, _ in opened:  # before anything refers to it
            await asyncio.to_thread(self._record.images.keep, visitor.scope, image)

        async def look() -> Joint | Refusal:
            asked = await self._asked(opened, place)
            return await first(seers, lambda seer: self._answered(seer, asked, visitor))

        made = await flights.once(self._record, visitor.scope, name, look, shared, since=0.0)
        if not isinstance(made, str):
            return made
        same = read(Telling("", tuple(image.sha256 for image, _ in opened), json.loads(made)))
        assert isinstance(same, Joint), "that is what was shared"
        return same

    async def _asked(self, opened: Sequence[_Opened], place: Place) -> _Asked:
        images = tuple(image for image, _ in opened)
        members = tuple(Member(image.sha256, image.size, name) for image, name in opened)
        names = [each.filename for each in members]
        said, spoken = place.said() if self._options.context else (), place.asked()[:IN_ALL]
        question = (spoken if said else "") or TOGETHER
        alike = list(joint.similar(await self._eyes.likeness(images), self._options.alike))
        told = joint.prompt(len(images), question, joint.hints(names, alike))
        likeness = max((how for *_, how in alike), default=None)
        return _Asked(members, images, question, told, said, spoken, likeness)

    async def _answered(self, seer: Seer, asked: _Asked, visitor: Visitor) -> Joint | Refusal:
        form = self._options.grounds(seer.name)
        sent = await self._eyes.sent(seer, form, asked.images)
        if isinstance(sent, Refusal):
            await self._looks.skip(visitor, sent, *(member.sha256 for member in asked.members))
            return sent
        members = tuple(
            replace(one, sent=resized(image.size, one.size)) for one, image in zip(asked.members, sent, strict=True)
        )
        words = with_context(f"{joint.introduced(counted(members, form))}\n\n{asked.question}", asked.said)
        question = Question(words, tuple(sent), with_form(asked.instructions, form), asked=asked.spoken, described=True)
        answer = await self._looks.ask(seer, question, _entry(asked, form), visitor)
        if isinstance(answer, Refusal):
            return answer
        return self._looks.pointing(Joint(members, bounded(answer.text), seer.name, form), members)


def counted(images: Sequence[Member], form: str) -> list[tuple[Size, str]]:
    """The size of each as whoever looks is told it: where that counts in pixels, those that it is sent."""
    pixels = FORMATS[form].counts_pixels
    return [(each.seen if pixels else each.region, each.filename) for each in images]


def _entry(asked: _Asked, form: str) -> Entry:
    about: dict[str, Json] = {
        "question": asked.question,
        "grounding_format": form,
        "dimensions": [str(each.size) for each in asked.members],
        "filename_hint": joint.filename_hint([each.filename for each in asked.members]),
        "phash_similarity": asked.likeness,
    }
    return Entry("vision_proxy.joint_description", tuple(each.sha256 for each in asked.members), about=about)
