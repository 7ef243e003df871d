"""Images as requests bring them: known again by their base64, and kept so that they can be referred to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from hashlib import sha256
from typing import TypeVar

from sightline.engine.again import Again
from sightline.engine.eyes import probed
from sightline.engine.fairness import FairThreads
from sightline.engine.shelf import Shelf
from sightline.model.facts import Kept
from sightline.model.image import Image
from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.model.source import Inline
from sightline.model.upstream import Visitor
from sightline.sources.inline import decode

T = TypeVar("T")

_DIGESTS = 4096
_FEW = 32
_LONG = 512 * 1024  # letters of base64, of which decoding and hashing takes more than a millisecond
_UNKEPT = Refusal("unavailable", "the record could not take it", "see to the disk that holds the record")


class Images:
    def __init__(self, record: Store) -> None:
        self._record = record
        self._again = Again()
        self._threads = FairThreads()
        self._digests: Shelf[str] = Shelf(_DIGESTS)  # an image that is sent again is not decoded again

    async def find_digest(self, inline: Inline) -> str | Refusal:
        """Return the sha256 of an image; a long one is decoded in a thread."""
        return await _in_thread_if_long(inline, self.digest)

    async def open(self, inline: Inline) -> Image | Refusal:
        """Decode an image; a long one in a thread."""
        return await _in_thread_if_long(inline, self.opened)

    def digest(self, inline: Inline) -> str | Refusal:
        """The sha256 of an image, decoded only if it has not been here lately."""
        if known := self._digests.get(self._again.key(inline)):
            return known
        image = self.opened(inline)
        return image if isinstance(image, Refusal) else image.sha256

    def opened(self, inline: Inline) -> Image | Refusal:
        seen = probed(inline)
        if isinstance(seen, Refusal):
            return seen
        data = decode(inline.text)
        if isinstance(data, Refusal):
            return data
        digest = self._digests.put(inline.key, sha256(data).hexdigest())
        return Image(digest, seen.mime, seen.size, data, seen.turned)

    async def keep(self, inline: Inline, visitor: Visitor) -> Kept | Refusal:
        """An image into the record, so that a reference to it can be given."""
        return await self._threads.run(visitor.scope, self._keep, inline, visitor)

    def _keep(self, inline: Inline, visitor: Visitor) -> Kept | Refusal:
        image = self.opened(inline)
        if isinstance(image, Refusal):
            return image
        kept = self._record.images.keep(visitor.scope, image)
        seen = probed(inline)
        return Kept(image.sha256, seen) if kept and not isinstance(seen, Refusal) else _UNKEPT

    def held(self, images: Iterable[Inline], visitor: Visitor) -> dict[Inline, Kept]:
        """Those that were kept and still are: a resent one costs neither a decode nor a task."""
        found = ((inline, digest, probed(inline)) for inline, digest in self._there(images, visitor).items())
        return {inline: Kept(digest, seen) for inline, digest, seen in found if not isinstance(seen, Refusal)}

    async def keep_again(self, images: Collection[Inline], visitor: Visitor) -> None:
        """What is said of an image names it: its bytes are to be found under that name for as long as that is said."""
        if len(images) <= _FEW:
            there = self._there(images, visitor)
        else:
            there = await asyncio.to_thread(self._there, images, visitor)
        for inline in images:
            if inline not in there:
                await self.keep(inline, visitor)

    def _there(self, images: Iterable[Inline], visitor: Visitor) -> dict[Inline, str]:
        known = {inline: digest for inline in images if (digest := self._digests.get(self._again.key(inline)))}
        held = self._record.images.find_kept(visitor.scope, set(known.values())) if known else frozenset()
        return {inline: digest for inline, digest in known.items() if digest in held}


async def _in_thread_if_long(inline: Inline, work: Callable[[Inline], T]) -> T:
    return work(inline) if len(inline.text) <= _LONG else await asyncio.to_thread(work, inline)
