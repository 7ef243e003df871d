"""Answers in words: what was said at a place is said there again, and an image is looked at no more than needed.

A description that was made without the conversation is good for every place and is shared. One that was made with it
is for the turn that it was made in. Either is kept at its place with the first word that is said there.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import TypeVar

from sightline.engine import flights
from sightline.engine.boxes import blocks, placed
from sightline.engine.eyes import Eyes
from sightline.engine.fairness import FairSemaphore, FairThreads
from sightline.engine.flights import Here
from sightline.engine.images import Images
from sightline.engine.options import Options, SeersOf
from sightline.engine.places import Place
from sightline.engine.shelf import Shelf
from sightline.engine.tellings import Tellings
from sightline.model.asking import LOCAL, Answer, Question, bounded
from sightline.model.facts import NO_FORM, Description, Joint, Look, Member
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.ports import Seer, Store
from sightline.model.profile import Profile
from sightline.model.records import Entry, Said, Telling, read, written
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.source import Inline
from sightline.model.upstream import Visitor
from sightline.passes.words import fallen
from sightline.seers.asking import AGAIN
from sightline.seers.prompt import version, with_context, with_form

T = TypeVar("T")
P = TypeVar("P", Description, Joint)
_AT_ONCE = 4
_TURNS = 256
_RETRY = "send another message in a while to have it looked at again"

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

_MOST_BOXES = 12_000  # characters of what stands behind a description
_NOT_KEPT = "(The image itself could not be kept: nothing is to be found under its sha256.)"


class Looks:
    def __init__(
        self, record: Store, seers: SeersOf, options: Options, eyes: Eyes, images: Images, tellings: Tellings
    ) -> None:
        self._record = record
        self._seers = seers
        self._options = options
        self._eyes = eyes
        self._images = images
        self._tellings = tellings
        self._turns: Shelf[set[str]] = Shelf(_TURNS)  # at what somebody was asked to look in each turn
        self._flights: Here[Description | Refusal] = Here()
        self._turns_to_ask = FairSemaphore(_AT_ONCE)
        self._threads = FairThreads()

    async def look(self, need: Look, place: Place, visitor: Visitor, profile: Profile) -> Description | Refusal:
        if not isinstance(need.image, Inline):
            return _NOT_HERE
        digest = await self._images.find_digest(need.image)
        if isinstance(digest, Refusal):
            return digest
        if isinstance(said := self._tellings.told(visitor, place.turn, digest), Description):
            return said
        seers = await self._seers(visitor, profile)
        if known := self._remembered(seers, digest, visitor):
            known = _explained(known, seers)
            return known if need.remembered_only else await self._described(visitor, place, known)
        if isinstance(held := self._tellings.told(visitor, place.now, digest), Refusal):
            return held
        return PENDING if need.remembered_only else await self._looked(need, need.image, seers, place, visitor)

    async def _looked(
        self, need: Look, inline: Inline, seers: Sequence[Seer | Refusal], place: Place, visitor: Visitor
    ) -> Description | Refusal:
        image, asked = await self._images.open(inline), names_of(seers)
        if isinstance(image, Refusal):
            return image
        if asked and (no := self._too_many(need, place, visitor, image.sha256)):
            await self.skip(visitor, no, image.sha256)
            await self._held(visitor, place, image.sha256, no)
            return no
        made = await self._once(seers, image, place, visitor)
        if isinstance(made, Description):
            return await self._described(visitor, place, _explained(made, seers), during=place.now)
        # That nobody may be asked can change at any moment.
        stands = await self._held(visitor, place, image.sha256, made, during=place.now) if asked else made
        return stands if isinstance(stands, Refusal) else await self._described(visitor, place, stands)

    async def _described(self, visitor: Visitor, place: Place, said: Description, during: str = "") -> Description:
        stands = await self._tellings.tell(visitor, Telling(place.turn, (said.sha256,), written(said), during=during))
        return stands if isinstance(stands, Description) else said

    async def _held(
        self, visitor: Visitor, place: Place, digest: str, why: Refusal, during: str = ""
    ) -> Description | Refusal:
        """A failure, for as long as the turn lasts in which it came: clients repeat a request dozens of times.

        Where the user has had it described meanwhile, that counts.
        """
        stands = await self._tellings.tell(
            visitor, Telling(place.now, (digest,), written(why), failed=True, during=during)
        )
        return stands if isinstance(stands, Description) else why

    def _remembered(self, seers: Sequence[Seer | Refusal], digest: str, visitor: Visitor) -> Description | None:
        """What anybody who may look has said of it without a conversation."""
        found = (
            self._record.descriptions.read(visitor.scope, digest, name, prompt)
            for name, prompt in zip(names_of(seers), self._prompts(seers), strict=True)
        )
        known = next((each for each in found if each is not None), None)
        return self.pointing(known, [known.image]) if known else None

    def _prompts(self, seers: Sequence[Seer | Refusal]) -> list[str]:
        """The name of what each is told and asked."""
        return [version(self._options.instructions, self._options.grounds(name)) for name in names_of(seers)]

    def pointing(self, said: P, images: Sequence[Member]) -> P:
        """With all that the words point at behind them."""
        if said.form == NO_FORM or not self._options.boxes:
            return said
        return replace(said, boxes=blocks(images, placed(said.text, said.form, images), _MOST_BOXES))

    def _too_many(self, need: Look, place: Place, visitor: Visitor, digest: str) -> Refusal | None:
        """Why a turn has no look left for it; if it has one, this is it."""
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

    async def skip(self, visitor: Visitor, why: Refusal, *images: str) -> None:
        """That nobody was asked, for people who wonder."""
        entry = Entry("vision_proxy.skip", images, about={"reason": str(why)})
        await self._threads.run(visitor.scope, self._record.ledger.add_entry, visitor.scope, entry)

    async def _once(
        self, seers: Sequence[Seer | Refusal], image: Image, place: Place, visitor: Visitor
    ) -> Description | Refusal:
        """One look for all who want the same: without a conversation, wherever the image stands.

        With one, wherever the same words brought it moments ago: an agent asks for a title and for what is to be
        remembered beside the turn itself, each time under another head.
        """
        said = place.said() if self._options.context and place.is_new else ()
        words = f"{place.before()}\n{place.asked()}" if self._options.context else ""
        key = (visitor.scope, image.sha256, names_of(seers), words)
        return await self._flights.once(key, lambda: self._asked(seers, image, words, said, visitor))

    async def _asked(
        self, seers: Sequence[Seer | Refusal], image: Image, words: str, said: Sequence[str], visitor: Visitor
    ) -> Description | Refusal:
        # Bytes are stored before a reference to them is emitted.
        kept = await self._threads.run(visitor.scope, self._record.images.keep, visitor.scope, image)
        prompts: list[Json] = [*self._prompts(seers)]
        name = flights.named("describe", image.sha256, [*names_of(seers)], prompts, words)

        async def look() -> Description | Refusal:
            return await first(seers, lambda seer: self._one(seer, image, said, visitor))

        made = await flights.once(self._record, visitor.scope, name, look, shared, since=0.0)
        if isinstance(made, str):  # the same look was under way in another process
            same = read(Telling("", (image.sha256,), json.loads(made)))
            assert isinstance(same, Description), "that is what was shared"
            return same
        if isinstance(made, Description):
            made = made if kept else replace(made, text=f"{made.text}\n\n{_NOT_KEPT}")
            if not said or made.seer == LOCAL:  # which looks at pixels alone
                prompt = version(self._options.instructions, made.form)
                await self._threads.run(visitor.scope, self._record.descriptions.keep, visitor.scope, made, prompt)
        return made

    async def _one(self, seer: Seer, image: Image, said: Sequence[str], visitor: Visitor) -> Description | Refusal:
        form = self._options.grounds(seer.name)
        sent = await self._eyes.sent(seer, form, [image])
        if isinstance(sent, Refusal):
            await self.skip(visitor, sent, image.sha256)
            return sent
        words, told = with_context(self._options.question, said), with_form(self._options.instructions, form)
        about: dict[str, Json] = {
            "question": self._options.question,
            "grounding_format": form,
            "dimensions": [str(image.size)],
        }
        noted = Entry("vision_proxy.description", (image.sha256,), about=about)
        answer = await self.ask(seer, Question(words, tuple(sent), told, asked=""), noted, visitor)
        if isinstance(answer, Refusal):
            return replace(answer, remedy=_RETRY) if answer.remedy in ("", AGAIN) else answer
        seen = resized(sent[0].size, image.size)
        made = Description(image.sha256, image.size, bounded(answer.text), seer.name, form, seen)
        return self.pointing(made, [made.image])

    async def ask(self, seer: Seer, question: Question, noted: Entry, visitor: Visitor) -> Answer | Refusal:
        """Somebody is asked; what that cost is noted, and that it failed."""
        async with self._turns_to_ask.turn(visitor.scope):
            began = monotonic()
            answer = await seer.ask(question)
        noted = replace(noted, seer=seer.name, latency_ms=round((monotonic() - began) * 1000))
        if isinstance(answer, Refusal):
            noted = replace(noted, error=answer.code)
        else:
            noted = replace(noted, usage=answer.usage, cost_usd=self._options.price(seer.name, answer.usage))
        await self._threads.run(visitor.scope, self._record.ledger.add_entry, visitor.scope, noted)
        return answer


def _explained(seen: Description, seers: Sequence[Seer | Refusal]) -> Description:
    """A description, with why it is not by the one whom the user has named: what is kept of it does not say so."""
    no = next((each for each in seers if isinstance(each, Refusal) and each.code == "no_consent"), None)
    return replace(seen, text=f"{seen.text}\n\n{fallen(no, seen.seer)}") if no else seen


def resized(sent: Size, own: Size) -> Size | None:
    """The size in which an image was sent, where that is not its own."""
    return None if sent == own else sent


def shared(made: Said) -> str | None:
    """For another process that wants the same; a failure is not shared."""
    return None if isinstance(made, Refusal) else json.dumps(written(made))


def names_of(seers: Sequence[Seer | Refusal]) -> tuple[str, ...]:
    """The names of those who can be asked."""
    return tuple(seer.name for seer in seers if not isinstance(seer, Refusal))


async def first(seers: Sequence[Seer | Refusal], look: Callable[[Seer], Awaitable[T | Refusal]]) -> T | Refusal:
    """What the first who can says; else why the last who was asked could not, or that the user has not agreed."""
    failure = _NOBODY
    for seer in seers:
        outcome = seer if isinstance(seer, Refusal) else await look(seer)
        if not isinstance(outcome, Refusal):
            return outcome
        asked_in_vain = not isinstance(seer, Refusal) and failure.code != "no_consent"
        failure = outcome if asked_in_vain or failure is _NOBODY else failure
    return failure
