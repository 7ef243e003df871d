"""Images as requests bring them: known again by their base64, checked, refitted, fetched, and kept in the record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TypeVar

import pybase64

from sightline.model.base64_text import decoded_size
from sightline.model.facts import Kept, Refit
from sightline.model.image import Image, Picture, Target
from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.model.source import Inline, Link
from sightline.model.upstream import Visitor
from sightline.pixels.fit import fitted, task
from sightline.pixels.headers import animated
from sightline.pixels.probe import probe
from sightline.pixels.similar import likeness
from sightline.pixels.worker import Workers
from sightline.sources import web
from sightline.sources.inline import decode, head
from sightline.vision.fairness import FairThreads
from sightline.vision.lru_cache import LruCache

_BYTES = 32 * 1024 * 1024  # of texts that are held to compare with
_SAMPLE = 32
_MET = 4096


class ResentImages:
    def __init__(self) -> None:
        self._texts: LruCache[tuple[bytes, str]] = LruCache(_BYTES)
        self._met: LruCache[str] = LruCache(_MET)

    def key(self, image: Inline) -> str:
        """Its own key. A text is held from the second time on: most that come once do not come again."""
        if image.is_named:
            return image.key
        text, sample = image.text, _sample(image)
        known = self._texts.get(sample)
        if known is not None and len(known[0]) == len(text) and known[0].startswith(text):
            image.named(known[1])
        elif image.key in self._met:
            self._texts.put(sample, (bytes(text), image.key), len(text))
        else:
            self._met.put(image.key, image.key)
        return image.key


def _sample(image: Inline) -> tuple[int, bytes]:
    """Where two pictures of one kind and size differ, it is in the middle."""
    text, length = image.text, len(image.text)
    places = (length // 4, length // 2, length - _SAMPLE)
    return length, b"".join([bytes(text[at : at + _SAMPLE]) for at in places if at >= 0])


_HEADS = (2048, 64 * 1024)  # letters of base64: enough for nearly all, and for those with a preview in front
_MAY_MOVE = ("image/gif", "image/webp")
_CUT = Refusal("corrupt", "it ends before its size is told", "ask for the image again")
_LONG_TO_DECODE = 4 * 1024 * 1024  # letters of base64, of which decoding takes more than a millisecond
_REMEMBERED = 4096
_REFITTED_BYTES = 128 * 1024 * 1024
_MAY_PASS = frozenset({"unavailable", "too_large"})  # a busy machine may be the cause: asked again the next time


class ImageChecker:
    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._checked: LruCache[Picture | Refusal] = LruCache(_REMEMBERED)
        self._refitted: LruCache[Image | Refusal] = LruCache(_REFITTED_BYTES)

    async def check(self, image: Inline) -> Picture | Refusal:
        """What the header says, when every pixel can be decoded."""
        known = self._checked.get(image.key)
        if known is not None:
            return known
        data = await _decode(image.text)
        found = data if isinstance(data, Refusal) else await self._workers.run("check", data)
        seen = found if isinstance(found, Refusal) else probed(image)
        return seen if _passes(seen) else self._checked.put(image.key, seen)

    async def refit(self, need: Refit) -> Image | Refusal:
        key = (need.image.key, need.target)
        known = self._refitted.get(key)
        if known is not None:
            return known
        data = await _decode(need.image.text)
        made = data if isinstance(data, Refusal) else await self._fit(data, need.target)
        weight = len(made.data) if isinstance(made, Image) else 1
        return made if _passes(made) else self._refitted.put(key, made, weight)

    async def likeness(self, images: Sequence[Image]) -> list[list[float]]:
        """How alike each two look."""
        return likeness([await self._workers.run("hash", image.data) for image in images])

    async def _fit(self, data: bytes, goal: Target) -> Image | Refusal:
        """One image for one, nothing cut away or moved: a chat's words may be about coordinates."""
        made = await self._workers.run("fit", data, task(replace(goal, images=1, plain=True)))
        return made if isinstance(made, Refusal) else fitted(made.facts, made.data).parts[0].image


async def _decode(text: bytes | bytearray | memoryview) -> bytes | Refusal:
    """Decode base64; a long text in a thread."""
    return decode(text) if len(text) <= _LONG_TO_DECODE else await asyncio.to_thread(decode, text)


def probed(image: Inline) -> Picture | Refusal:
    """From the header, which is nearly always in the first kilobytes: cheaper than to look it up."""
    size = decoded_size(image.text)
    for length in _HEADS:
        if seen := probe(head(image.text, length), size):
            return _watched(seen, image)
    data = decode(image.text)
    seen = data if isinstance(data, Refusal) else probe(data, len(data))
    return _watched(seen, image) if seen else _CUT


def _watched(seen: Picture | Refusal, image: Inline) -> Picture | Refusal:
    """With whether it moves, which only its whole length tells."""
    if isinstance(seen, Refusal) or seen.mime not in _MAY_MOVE:
        return seen
    data = decode(image.text)
    return replace(seen, moving=True) if isinstance(data, bytes) and animated(data) else seen


def _passes(answer: object) -> bool:
    return isinstance(answer, Refusal) and answer.code in _MAY_PASS


async def fetched(link: Link, grant: web.Grant | None) -> Inline | Refusal:
    page = await web.read(link.url, grant)
    return page if isinstance(page, Refusal) else Inline("", pybase64.b64encode(page.data))


T = TypeVar("T")

_DIGESTS = 4096
_FEW = 32
_LONG = 512 * 1024  # letters of base64, of which decoding and hashing takes more than a millisecond
_UNKEPT = Refusal("unavailable", "the record could not take it", "see to the disk that holds the record")


class Images:
    def __init__(self, record: Store) -> None:
        self._record = record
        self._resent = ResentImages()
        self._threads = FairThreads()
        self._digests: LruCache[str] = LruCache(_DIGESTS)  # an image that is sent again is not decoded again

    async def find_digest(self, inline: Inline) -> str | Refusal:
        """Return the sha256 of an image; a long one is decoded in a thread."""
        return await _in_thread_if_long(inline, self.digest)

    async def open(self, inline: Inline) -> Image | Refusal:
        """Decode an image; a long one in a thread."""
        return await _in_thread_if_long(inline, self.opened)

    def digest(self, inline: Inline) -> str | Refusal:
        """The sha256 of an image, decoded only if it has not been here lately."""
        if known := self._digests.get(self._resent.key(inline)):
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
        known = {inline: digest for inline in images if (digest := self._digests.get(self._resent.key(inline)))}
        held = self._record.images.find_kept(visitor.scope, set(known.values())) if known else frozenset()
        return {inline: digest for inline, digest in known.items() if digest in held}


async def _in_thread_if_long(inline: Inline, work: Callable[[Inline], T]) -> T:
    return work(inline) if len(inline.text) <= _LONG else await asyncio.to_thread(work, inline)
