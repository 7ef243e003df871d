"""Words in the place of images: descriptions of single images, and of the images of a turn together.

What was said at a place of a conversation is said there again. A description that was made without the conversation is
good for every place and is shared; one that was made with it belongs to the turn that it was made in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from sightline.engine.images import ImageChecker, Images
from sightline.engine.options import Options
from sightline.engine.places import IN_ALL, Place
from sightline.model.asking import LOCAL, LONGEST
from sightline.model.facts import NO_FORM, Compare, Description, Joint, Look, Member
from sightline.model.fence import sound
from sightline.model.image import Image
from sightline.model.ports import Store
from sightline.model.profile import Profile
from sightline.model.records import Entry, Said, Telling, read, written
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.source import Inline
from sightline.model.upstream import Visitor
from sightline.passes import joint
from sightline.passes.words import fallen
from sightline.pixels.worker import Workers
from sightline.vision.chooser import Caller, Candidate
from sightline.vision.fairness import FairThreads
from sightline.vision.fitting import fit_images
from sightline.vision.lru_cache import LruCache
from sightline.vision.prompts import TOGETHER, Prompt, version
from sightline.vision.results import (
    Attempt,
    CacheRule,
    Quota,
    VisionImage,
    VisionRequest,
    VisionResult,
    find_placed,
    skip_entry,
    write_boxes,
)
from sightline.vision.seers.wire_seer import AGAIN
from sightline.vision.service import VisionService

P = TypeVar("P", Description, Joint)
_TURNS = 256
_UNTAKEN = 4096
_MOST_BOXES = 12_000  # characters of the boxes behind a description
_RETRY = "send another message in a while to have it looked at again"
_NOT_KEPT = "(The image itself could not be kept: nothing is to be found under its sha256.)"
_UNREAD = ""  # stands for an image that has no name, since it cannot be read

PENDING = Refusal("pending", "its description is still being made", "it will stand here with the next message")
_NOT_HERE = Refusal(
    "not_permitted",
    "the request only names where it is kept, and the model that looks needs the image itself",
    "attach the image itself",
)
_NOBODY = Refusal(
    "unavailable",
    "this model takes no images and no model that could look at them was found",
    "the user can start a vision model on this machine (for example `ollama pull qwen3-vl`), or name one with "
    "`sightline config set provider` and `sightline config set modelId`",
)
_NOT_NEWEST = Refusal(
    "unavailable",
    "only the newest images of a request are described and it is not among them",
    "`sightline config set maxImagesPerTurn` raises their number",
)
_TOO_MANY = Refusal(
    "unavailable",
    "as many images as one turn allows were described already",
    "another message has it looked at, or `sightline config set maxImagesPerTurn` raises their number",
)
_UNSAID = Refusal("unavailable", "nothing was said of them together", "ask about them with analyze_image")
_ONE_FAILS = Refusal(
    "corrupt", "one of the images cannot be read, so they are not looked at together", "send that image again"
)


class Tellings:
    """What was said at the places of conversations: in the record, and in memory where the record has no room."""

    def __init__(self, record: Store) -> None:
        self._record = record
        self._threads = FairThreads()
        self._untaken: LruCache[Telling] = LruCache(_UNTAKEN)

    def find(self, visitor: Visitor, turn: str, *images: str) -> Said | None:
        """Return what was said of these images at a place, or why nothing could be."""
        if not turn:
            return None
        key = visitor.scope, turn, tuple(sorted(images))
        found = self._record.descriptions.read_pinned(*key) or self._untaken.get(key)
        return read(found) if found else None

    async def tell(self, visitor: Visitor, telling: Telling) -> Said:
        """Keep words for their place; return what stands there then, which may be another request's words."""
        if not telling.turn:
            return read(telling)
        key = visitor.scope, telling.turn, telling.images
        stands = await self._threads.run(visitor.scope, self._record.descriptions.pin, visitor.scope, telling)
        if self._record.descriptions.read_pinned(*key) is None:
            self._untaken.put(key, stands)
        return read(stands)


@dataclass(frozen=True, slots=True)
class _Group:
    """The images of a joint description, and what their names and likeness say."""

    images: tuple[VisionImage, ...]
    likeness: float | None = None
    hints: Sequence[str] = field(default=())


class Descriptions:
    def __init__(
        self,
        record: Store,
        vision: VisionService,
        options: Options,
        checker: ImageChecker,
        images: Images,
        workers: Workers,
    ) -> None:
        self._record = record
        self._vision = vision
        self._options = options
        self._checker = checker
        self._images = images
        self._workers = workers
        self._tellings = Tellings(record)
        self._turns: LruCache[set[str]] = LruCache(_TURNS)  # the images that were looked at in each turn

    async def describe(self, need: Look, place: Place, visitor: Visitor, profile: Profile) -> Description | Refusal:
        """Return the description of an image, or why there is none."""
        digest = await self._images.find_digest(need.image) if isinstance(need.image, Inline) else _NOT_HERE
        if isinstance(digest, Refusal) or not isinstance(need.image, Inline):
            return digest if isinstance(digest, Refusal) else _NOT_HERE
        if isinstance(said := self._tellings.find(visitor, place.turn, digest), Description):
            return said
        candidates = await self._vision.choose(Caller(visitor, profile))
        if known := self._vision.find_description(visitor.scope, digest, candidates, self._cache_rule(())):
            known = _explain(self._point(known, [known.image]), candidates)
            return known if need.remembered_only else await self._tell(visitor, place, known)
        held = self._tellings.find(visitor, place.now, digest)
        if isinstance(held, Refusal) or need.remembered_only:
            return held if isinstance(held, Refusal) else PENDING
        return await self._look(need, need.image, place, visitor, candidates)

    async def _look(
        self, need: Look, inline: Inline, place: Place, visitor: Visitor, candidates: Sequence[Candidate]
    ) -> Description | Refusal:
        image = await self._images.open(inline)
        if isinstance(image, Refusal):
            return image
        request = self._describe_request(need, image, place, visitor)
        made = await self._vision.look(request, candidates)
        if isinstance(made, VisionResult):
            said = made.as_description(image.sha256)
            said = said if made.stored else replace(said, text=f"{said.text}\n\n{_NOT_KEPT}")
            said = _explain(self._point(said, [said.image]), candidates)
            return await self._tell(visitor, place, said, during=place.now)
        if not any(each.name for each in candidates):  # that nobody may be asked can change at any moment
            await self._images.keep(inline, visitor)
            return made
        # A request that was never made doesn't count among those of the turn.
        asked = made not in (_TOO_MANY, _NOT_NEWEST)
        stands = await self._hold(visitor, place, image.sha256, made, during=place.now if asked else "")
        if not asked:
            return made
        return stands if isinstance(stands, Refusal) else await self._tell(visitor, place, stands)

    def _describe_request(self, need: Look, image: Image, place: Place, visitor: Visitor) -> VisionRequest:
        """Return the request for a description.

        With context, the same words that brought the same image moments ago make it the same request: an agent asks
        for a title beside the turn itself, under another head.
        """
        context, options = place.said() if self._options.context and place.is_new else (), self._options
        words = f"{place.before()}\n{place.asked()}" if options.context else ""
        images = (VisionImage(image),)

        def entries(attempt: Attempt) -> Sequence[Entry]:
            about: dict[str, Json] = {
                "question": options.question,
                "grounding_format": attempt.form,
                "dimensions": [str(image.size)],
            }
            return _entries(attempt, Entry("vision_proxy.description", (image.sha256,), about=about))

        return VisionRequest(
            scope=visitor.scope,
            prompt=Prompt(options.instructions, options.question, asked="", context=context),
            fit=partial(fit_images, self._workers, images, decoded=False),
            identity=["describe", image.sha256, words],
            entries=entries,
            nobody=_NOBODY,
            images=images,
            sha256s=(image.sha256,),
            cache=self._cache_rule(context),
            quota=Quota(partial(self._count, need, place, visitor, image.sha256)),
            keep_images=partial(self._record.images.keep, visitor.scope, image),
            advise=_advise_retry,
            longest=LONGEST,
            in_turn=True,
        )

    def _cache_rule(self, context: Sequence[str]) -> CacheRule:
        """Return where descriptions are kept: those that were made without a conversation are for all places."""
        return CacheRule(
            version=partial(version, self._options.instructions),
            keeps=lambda seer: not context or seer == LOCAL,  # which looks at pixels alone
        )

    async def _tell(self, visitor: Visitor, place: Place, said: Description, during: str = "") -> Description:
        stands = await self._tellings.tell(visitor, Telling(place.turn, (said.sha256,), written(said), during=during))
        return stands if isinstance(stands, Description) else said

    async def _hold(
        self, visitor: Visitor, place: Place, digest: str, why: Refusal, during: str
    ) -> Description | Refusal:
        """Keep a failure for as long as its turn lasts: clients repeat a request dozens of times.

        Return the description if the user has had the image described meanwhile.
        """
        telling = Telling(place.now, (digest,), written(why), failed=True, during=during)
        stands = await self._tellings.tell(visitor, telling)
        return stands if isinstance(stands, Description) else why

    def _point(self, said: P, images: Sequence[Member]) -> P:
        """Return the words with the boxes of all that they point at."""
        if said.form == NO_FORM or not self._options.boxes:
            return said
        return replace(said, boxes=write_boxes(images, find_placed(said.text, said.form, images), _MOST_BOXES))

    def _count(self, need: Look, place: Place, visitor: Visitor, digest: str) -> Refusal | None:
        """Count an image among those of the turn; return why the turn has no room for it."""
        if need.beyond:
            return _NOT_NEWEST
        if not self._options.max_images or not place.now:
            return None
        key = visitor.scope, place.now
        begun = self._turns.get(key)
        if begun is None:
            begun = self._turns.put(key, set(self._record.descriptions.find_asked(*key)))
        if digest not in begun and len(begun) >= self._options.max_images:
            return _TOO_MANY
        begun.add(digest)
        return None

    async def compare(self, need: Compare, place: Place, visitor: Visitor, profile: Profile) -> Joint | Refusal:
        """Return what several images of a turn show together: once for a turn, at the place where it was first said."""
        names = self._name(need)
        if isinstance(said := self._tellings.find(visitor, place.turn, *names), Joint | Refusal):
            return said
        candidates = await self._vision.choose(Caller(visitor, profile))
        askable = any(each.name for each in candidates)
        if need.remembered_only or not place.turn or not askable or len(names) < 2:
            return _UNSAID
        images = () if _UNREAD in names else await self._open(need)
        if images:
            made = await self._look_together(images, place, visitor, candidates)
        else:
            made = _ONE_FAILS
            await self._vision.note(visitor.scope, skip_entry(made, [*filter(None, names)]))
        return await self._tell_together(visitor, place, names, made)

    async def waive(self, need: Compare, place: Place, visitor: Visitor) -> Joint | Refusal:
        """Say nothing there from now on: a request goes out without it, and all that stands behind would change."""
        if need.remembered_only:
            return _UNSAID
        return await self._tell_together(visitor, place, self._name(need), _UNSAID)

    def _name(self, need: Compare) -> tuple[str, ...]:
        """Return the name under which it is kept: each image once, and whether there is one that cannot be read."""
        found = [self._images.digest(image) for image in need.images]
        names = {_UNREAD if isinstance(each, Refusal) else each for each in found}
        return tuple(sorted(names if need.whole else {*names, _UNREAD}))

    async def _open(self, need: Compare) -> tuple[VisionImage, ...]:
        """Return each image once, with its file name; none, if one of them fails to decode."""
        checked = await asyncio.gather(*(self._checker.check(image) for image in need.images))
        found: dict[str, VisionImage] = {}
        for seen, inline, name in zip(checked, need.images, need.names, strict=True):
            image = await self._images.open(inline)
            if isinstance(seen, Refusal) or isinstance(image, Refusal):
                return ()
            found.setdefault(image.sha256, VisionImage(image, sound(name)))
        return tuple(found.values())

    async def _tell_together(
        self, visitor: Visitor, place: Place, names: tuple[str, ...], made: Joint | Refusal
    ) -> Joint | Refusal:
        """Keep it for good, also where it failed: nobody comes back to a place that is passed."""
        stands = await self._tellings.tell(visitor, Telling(place.turn, names, written(made), during=place.now))
        return stands if isinstance(stands, Joint | Refusal) else made

    async def _look_together(
        self, images: tuple[VisionImage, ...], place: Place, visitor: Visitor, candidates: Sequence[Candidate]
    ) -> Joint | Refusal:
        likeness = await self._checker.likeness([each.image for each in images])
        alike = list(joint.similar(likeness, self._options.alike))
        hints = joint.hints([each.filename for each in images], alike)
        group = _Group(images, max((how for *_, how in alike), default=None), hints)
        made = await self._vision.look(self._joint_request(group, place, visitor), candidates)
        if isinstance(made, Refusal):
            return made
        return self._point(Joint(made.images, made.answer.text, made.seer, made.form), made.images)

    def _joint_request(self, group: _Group, place: Place, visitor: Visitor) -> VisionRequest:
        images, context = group.images, self._options.context
        said, spoken = place.said() if context else (), place.asked()[:IN_ALL]
        question = (spoken if said else "") or TOGETHER
        names: list[Json] = [[each.image.sha256, each.filename] for each in images]
        return VisionRequest(
            scope=visitor.scope,
            prompt=Prompt(
                joint.prompt(len(images), question, group.hints),
                question,
                asked=spoken,
                context=said,
                introduces=True,
                described=True,
            ),
            fit=partial(fit_images, self._workers, images, decoded=False),
            identity=["together", names, context, place.before() if context else "", place.asked()],
            entries=lambda attempt: _entries(attempt, _joint_entry(group, question, attempt.form)),
            nobody=_NOBODY,
            images=images,
            sha256s=tuple(each.image.sha256 for each in images),
            keep_images=partial(self._keep_all, visitor.scope, images),
            longest=LONGEST,
            in_turn=True,
        )

    def _keep_all(self, scope: str, images: Sequence[VisionImage]) -> bool:
        kept = [self._record.images.keep(scope, each.image) for each in images]
        return all(kept)


def _entries(attempt: Attempt, entry: Entry) -> Sequence[Entry]:
    """Return what the ledger says of an automatic look: nothing where nobody was asked, why where nobody could be."""
    if attempt.cached:
        return ()
    if isinstance(attempt.outcome, Refusal) and not attempt.fitted:
        return (skip_entry(attempt.outcome, entry.images),)
    return (attempt.as_entry(entry.kind, entry.images, entry.about),)


def _joint_entry(group: _Group, question: str, form: str) -> Entry:
    about: dict[str, Json] = {
        "question": question,
        "grounding_format": form,
        "dimensions": [str(each.image.size) for each in group.images],
        "filename_hint": joint.filename_hint([each.filename for each in group.images]),
        "phash_similarity": group.likeness,
    }
    return Entry("vision_proxy.joint_description", tuple(each.image.sha256 for each in group.images), about=about)


def _advise_retry(no: Refusal, candidate: Candidate) -> Refusal:
    """Return a seer's refusal for a reader that cannot ask again by itself."""
    return replace(no, remedy=_RETRY) if no.remedy in ("", AGAIN) else no


def _explain(seen: Description, candidates: Sequence[Candidate]) -> Description:
    """Return a description with why it is not by the model that the user has named: what is kept does not say so."""
    no = next((each.refusal for each in candidates if each.lacks_consent), None)
    return replace(seen, text=f"{seen.text}\n\n{fallen(no, seen.seer)}") if no else seen
