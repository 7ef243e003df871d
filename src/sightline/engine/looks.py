"""Answers in words: an image is looked at once, and what was said of it is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from sightline.engine.eyes import Eyes, probed
from sightline.engine.options import Options, SeersOf
from sightline.engine.shelf import Shelf
from sightline.model.facts import Description, Kept, Look
from sightline.model.image import Image
from sightline.model.ports import Record, Seer
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.model.source import Inline
from sightline.model.upstream import Visitor
from sightline.passes.fit import target
from sightline.passes.words import fallen
from sightline.sources.inline import decode

_AT_ONCE = 4
_DIGESTS = 4096
_FAILURE_SECONDS = 120.0  # clients repeat a failed request dozens of times: a repeat must not look again

PENDING = Refusal("pending", "its description is still being made", "it will stand here with the next message")
_NOT_HERE = Refusal(
    "not_permitted",
    "the request only names where it is kept, and the model that looks needs the image itself",
    "attach the image itself",
)
_UNKEPT = Refusal("unavailable", "the record could not take it", "see to the disk that holds the record")
_NOBODY = Refusal(
    "unavailable",
    "this model takes no images and no model that could look at them was found",
    "the user can start a vision model on this machine (for example `ollama pull qwen3-vl`), or name one with "
    "`sightline config set provider` and `sightline config set modelId`",
)

_NOT_KEPT = "(The image itself could not be kept: nothing is to be found under its sha256.)"


class Looks:
    def __init__(self, record: Record, seers: SeersOf, options: Options, eyes: Eyes) -> None:
        self._record = record
        self._seers = seers
        self._options = options
        self._eyes = eyes
        self._digests: Shelf[str] = Shelf(_DIGESTS)  # an image that is sent again is not decoded again
        self._kept: Shelf[str] = Shelf(_DIGESTS)
        self._failed: dict[tuple[str, ...], tuple[float, Refusal]] = {}
        self._busy = asyncio.Semaphore(_AT_ONCE)

    async def look(self, need: Look, visitor: Visitor, profile: Profile) -> Description | Refusal:
        if not isinstance(need.image, Inline):
            return _NOT_HERE
        seers = await self._seers(visitor, profile)
        found = await self._found(need, need.image, seers, visitor)
        return found if isinstance(found, Refusal) else _explained(found, seers)

    async def _found(
        self, need: Look, inline: Inline, seers: Sequence[Seer | Refusal], visitor: Visitor
    ) -> Description | Refusal:
        if known := self._remembered(seers, self._digests.get(inline.key), visitor):
            return known
        image = self._opened(inline)
        if isinstance(image, Refusal):
            return image
        if known := self._remembered(seers, image.sha256, visitor):
            return known
        return PENDING if need.remembered_only else await self._asked(seers, image, visitor)

    async def keep(self, inline: Inline, visitor: Visitor) -> Kept | Refusal:
        """An image into the record, so that a reference to it can be given."""
        seen = probed(inline)
        digest = self._digests.get(inline.key)
        if isinstance(seen, Refusal):
            return seen
        if digest is None or (visitor.scope, digest) not in self._kept:
            image = self._opened(inline)
            if isinstance(image, Refusal):
                return image
            digest = image.sha256
            if not await asyncio.to_thread(self._record.keep_image, visitor.scope, image):
                return _UNKEPT
            self._kept.put((visitor.scope, digest), digest)
        return Kept(digest, seen)

    def _opened(self, inline: Inline) -> Image | Refusal:
        seen = probed(inline)
        if isinstance(seen, Refusal):
            return seen
        data = decode(inline.text)
        if isinstance(data, Refusal):
            return data
        digest = self._digests.put(inline.key, sha256(data).hexdigest())
        return Image(digest, seen.mime, seen.size, data, seen.turned)

    def _remembered(self, seers: Sequence[Seer | Refusal], digest: str | None, visitor: Visitor) -> Description | None:
        if digest is None:
            return None
        names = [seer.name for seer in seers if not isinstance(seer, Refusal)]
        found = (self._record.description(visitor.scope, digest, name, self._options.prompt) for name in names)
        return next((each for each in found if each is not None), None)

    async def _asked(self, seers: Sequence[Seer | Refusal], image: Image, visitor: Visitor) -> Description | Refusal:
        now = asyncio.get_running_loop().time
        asked = tuple(seer.name for seer in seers if not isinstance(seer, Refusal))
        key = (visitor.scope, image.sha256, *asked)
        self._failed = {each: failure for each, failure in self._failed.items() if failure[0] > now()}
        if key in self._failed:
            return self._failed[key][1]
        # Bytes are stored before a reference to them is emitted.
        kept = await asyncio.to_thread(self._record.keep_image, visitor.scope, image)
        failure = _NOBODY
        for seer in seers:
            outcome = seer if isinstance(seer, Refusal) else await self._one(seer, image)
            if isinstance(outcome, Description):
                outcome = outcome if kept else replace(outcome, text=f"{outcome.text}\n\n{_NOT_KEPT}")
                await asyncio.to_thread(self._record.keep_description, visitor.scope, outcome, self._options.prompt)
                return outcome
            asked_in_vain = not isinstance(seer, Refusal) and failure.code != "no_consent"
            failure = outcome if asked_in_vain or failure is _NOBODY else failure
        if asked:  # that nobody may be asked can change at any moment
            self._failed[key] = now() + _FAILURE_SECONDS, failure
        return failure

    async def _one(self, seer: Seer, image: Image) -> Description | Refusal:
        sent = await self._eyes.fitting(image, target(seer.limits))
        if isinstance(sent, Refusal):
            return sent
        async with self._busy:
            words = await seer.look(sent, self._options.instructions, self._options.question)
        return words if isinstance(words, Refusal) else Description(image.sha256, image.size, words, seer.name)


def _explained(seen: Description, seers: Sequence[Seer | Refusal]) -> Description:
    """A description, with why it is not by the one whom the user has named: what is kept of it does not say so."""
    no = next((each for each in seers if isinstance(each, Refusal) and each.code == "no_consent"), None)
    return replace(seen, text=f"{seen.text}\n\n{fallen(no, seen.seer)}") if no else seen
