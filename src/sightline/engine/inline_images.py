"""Images in request bodies, as base64: recognized when they come again, checked, refitted and kept in the record."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TypeVar

import pybase64

from sightline.memory_reads import NotInMemoryError, read_in_memory, read_record
from sightline.model.facts import KeptImage, Refit
from sightline.model.fence import to_one_line
from sightline.model.image import (
    BASE64_CHARACTERS,
    FitPart,
    Image,
    ImageInfo,
    ImageTarget,
    compute_decoded_size,
    decode_base64,
    decode_head,
)
from sightline.model.ports import ImageStore
from sightline.model.profile import RequestOrigin
from sightline.model.records import ReceiptLine
from sightline.model.refusal import Refusal
from sightline.model.scene import InlineSource, LinkSource, NamedText, Sight
from sightline.net import WebGrant, fetch_web_file
from sightline.pixels import pack_target, unpack_fit_result
from sightline.pixels.image_headers import is_animated, may_be_animated
from sightline.pixels.probe import probe
from sightline.pixels.similarity import compare_replies
from sightline.pixels.workers import WorkerPool
from sightline.vision.concurrency import FairThreads, LruCache
from sightline.wire.image_bytes import build_from_bytes

T = TypeVar("T")

_TEXT_BYTES = 32 * 1024 * 1024  # of base64 that is kept to compare new images with
_SAMPLE_BYTES = 32
_Sample = tuple[int, bytes]
"""The length of a text, and some bytes of it."""
_START_BYTES = 128  # of a text: more than the header that screenshots of one size share
_MAX_ALIKE = 16  # texts with the same beginning that are recognized before their end is searched for
_KEYS_KEPT = 4096
_HEAD_LENGTHS = (2048, 64 * 1024)  # characters of base64: enough for nearly all images; for those with a thumbnail
_ANIMATED_TYPES = ("image/gif", "image/webp")
_TRUNCATED = Refusal("corrupt", "the image is truncated or damaged", "send a complete one")
_LONG_TO_DECODE = 4 * 1024 * 1024  # characters of base64 that take more than a millisecond to decode
_CHECKS_KEPT = 4096
_REFITTED_BYTES = 128 * 1024 * 1024
_TEMPORARY_CODES = frozenset({"unavailable", "too_large"})  # a busy machine may be the cause: not cached
_DIGESTS_KEPT = 4096
_FEW = 32
_LONG_TO_HASH = 512 * 1024  # characters of base64 that take more than a millisecond to decode and hash
_SHORT_TO_HASH = 64 * 1024  # characters that take a tenth of one
_NOT_STORED = Refusal("unavailable", "the image could not be stored", "check the disk that holds the record")


class KnownText(NamedText):
    """The base64 text of an image that was sent before."""

    kept: KeptImage | None = None  # under which it may be in the record
    was_searched = False  # whether it was searched for characters that aren't base64


class ResentImages:
    """Recognizes images that were sent before, which is cheaper than hashing them: agents resend the whole history."""

    def __init__(self) -> None:
        self._texts: LruCache[KnownText] = LruCache(_TEXT_BYTES)
        self._samples: LruCache[tuple[_Sample, ...]] = LruCache(_KEYS_KEPT)  # of texts, by their first bytes
        self._seen: LruCache[bool] = LruCache(_KEYS_KEPT)  # by sample

    def is_new(self, image: InlineSource) -> bool:
        """Return whether an image was surely not sent lately, without reading all of it."""
        return not image.has_key and _take_sample(image) not in self._seen

    def find_key(self, image: InlineSource) -> str:
        """Return the key of an image, and keep its text to compare later ones with."""
        text = image.text
        if type(text) is KnownText:
            return text.key
        sample = _take_sample(image)
        if image.has_key and sample in self._seen:
            return image.key
        known = self._texts.get(sample)
        if known is None or len(known) != len(text) or not known.startswith(text):
            known = KnownText(text)
            known.key, known.sample_hash = image.key, hash(image)
            self._texts.put(sample, known, len(known))
        elif not known.was_searched:  # not while it is new: the search takes as long as hashing and copying it
            known.was_searched = True
            if not known.translate(None, BASE64_CHARACTERS):  # a quote in it would match the structure of another body
                self._keep_sample(known[:_START_BYTES], sample)
        image.set_key(known.key)
        self._seen.put(sample, value=True)
        return known.key

    def _keep_sample(self, start: bytes, sample: _Sample) -> None:
        others = [each for each in self._samples.get(start) or () if each != sample]
        self._samples.put(start, (sample, *others[: _MAX_ALIKE - 1]))

    def find_run(self, body: bytes | bytearray, start: int) -> KnownText | None:
        """Return the text of a known image that begins at an index of a body, if a quote ends it there."""
        for sample in self._samples.get(bytes(body[start : start + _START_BYTES])) or ():
            end = start + sample[0]
            if body[end : end + 1] == b'"' and (known := self._texts.get(sample)) and body.startswith(known, start):
                return known
        return None


def _take_sample(image: InlineSource) -> _Sample:
    """Return the length of an image, and some bytes of it where similar screenshots usually differ."""
    text, length = image.text, len(image.text)
    first, second = length // 4, length // 2
    pieces = (text[first : first + _SAMPLE_BYTES], text[second : second + _SAMPLE_BYTES], text[-_SAMPLE_BYTES:])
    return length, b"".join(pieces)


class ImageChecker:
    """Checks, refits and compares images in workers, and caches the results."""

    def __init__(self, workers: WorkerPool) -> None:
        self._workers = workers
        self._checked: LruCache[ImageInfo | Refusal] = LruCache(_CHECKS_KEPT)
        self._refitted: LruCache[FitPart | Refusal] = LruCache(_REFITTED_BYTES)

    async def check(self, image: InlineSource) -> ImageInfo | Refusal:
        """Return what the header says, if every pixel can be decoded."""
        known = self._checked.get(await _in_thread_if_long(image, _compute_key))
        if known is not None:
            return known
        data = await _decode(image.text)
        found = data if isinstance(data, Refusal) else await self._workers.run("check", data)
        picture = found if isinstance(found, Refusal) else probe_inline(image)
        return picture if _is_temporary(picture) else self._checked.put(image.key, picture)

    async def refit(self, need: Refit) -> FitPart | Refusal:
        key = (need.image.key, need.target)
        known = self._refitted.get(key)
        if known is not None:
            return known
        data = await _decode(need.image.text)
        fitted = data if isinstance(data, Refusal) else await self._fit(data, need.target)
        weight = len(fitted.image.data) if isinstance(fitted, FitPart) else 1
        return fitted if _is_temporary(fitted) else self._refitted.put(key, fitted, weight)

    async def measure_likeness(self, images: Sequence[Image]) -> list[list[float]]:
        """Return how similar each two images look."""
        return compare_replies([await self._workers.run("hash", image.data) for image in images])

    async def _fit(self, data: bytes, goal: ImageTarget) -> FitPart | Refusal:
        """Make one image fit."""
        fitted = await self._workers.run("fit", data, pack_target(replace(goal, images=1)))
        return fitted if isinstance(fitted, Refusal) else unpack_fit_result(fitted.facts, fitted.data).parts[0]


async def _decode(text: bytes | bytearray | memoryview) -> bytes | Refusal:
    """Decode base64; a long text in a thread."""
    return decode_base64(text) if len(text) <= _LONG_TO_DECODE else await asyncio.to_thread(decode_base64, text)


def probe_inline(image: InlineSource) -> ImageInfo | Refusal:
    """Return what an image's header says. It is nearly always in the first kilobytes."""
    if type(image.text) is KnownText and image.text.kept is not None:
        return image.text.kept.info
    size = compute_decoded_size(image.text)
    for length in _HEAD_LENGTHS:
        if picture := probe(decode_head(image.text, length), size):
            return _check_animation(picture, image)
    data = decode_base64(image.text)
    picture = data if isinstance(data, Refusal) else probe(data, len(data))
    return _check_animation(picture, image) if picture else _TRUNCATED


def _check_animation(picture: ImageInfo | Refusal, image: InlineSource) -> ImageInfo | Refusal:
    """Add whether the image is animated, which takes all of its bytes to tell."""
    if isinstance(picture, Refusal) or picture.mime not in _ANIMATED_TYPES:
        return picture
    if not may_be_animated(decode_head(image.text, _HEAD_LENGTHS[0])):
        return picture
    data = decode_base64(image.text)
    return replace(picture, is_animated=True) if isinstance(data, bytes) and is_animated(data) else picture


def _is_temporary(answer: object) -> bool:
    return isinstance(answer, Refusal) and answer.code in _TEMPORARY_CODES


async def fetch_image(link: LinkSource, grant: WebGrant | None) -> InlineSource | Refusal:
    """Fetch an image from its address."""
    page = await fetch_web_file(link.url, grant)
    return page if isinstance(page, Refusal) else InlineSource("", pybase64.b64encode(page.data))


class InlineImages:
    """Decodes and hashes images, and keeps them in the record."""

    def __init__(self, store: ImageStore) -> None:
        self._store = store
        self._resent = ResentImages()
        self.find_run = self._resent.find_run
        self._threads = FairThreads()
        self._known: LruCache[KeptImage] = LruCache(
            _DIGESTS_KEPT
        )  # by key: images that are resent aren't decoded again

    def find_known_keys(self, sights: Iterable[Sight]) -> None:
        """Find the keys of images that were sent before, or that may be equal: a long computation, in this thread."""
        sources = _list_inline_sources(sights)
        alike = Counter(map(hash, sources))
        for source in sources:
            if alike[hash(source)] > 1 or not self._resent.is_new(source):
                self._resent.find_key(source)

    async def find_all_keys(self, sights: Iterable[Sight], origin: RequestOrigin) -> None:
        """Find the key of each image, in threads if there is much to hash: the names of messages contain them."""
        sources = _list_inline_sources(sights)
        unnamed = [each for each in sources if not each.has_key]
        long = [each for each in unnamed if len(each.text) > _LONG_TO_HASH and self._resent.is_new(each)]
        await asyncio.gather(*(self._threads.run(origin.scope, self._resent.find_key, each) for each in long))
        if sum(len(each.text) for each in unnamed if not each.has_key) > _LONG_TO_HASH:
            await self._threads.run(origin.scope, self._find_one_by_one, sources)
        else:
            self._find_one_by_one(sources)

    def _find_one_by_one(self, sources: Iterable[InlineSource]) -> None:
        for each in sources:
            self._resent.find_key(each)

    async def find_digest(self, inline: InlineSource) -> str | Refusal:
        """Return the sha256 of an image; a long one is decoded in a thread."""
        return await _in_thread_if_long(inline, self.compute_digest)

    async def open(self, inline: InlineSource) -> Image | Refusal:
        """Decode an image; a long one in a thread."""
        return await _in_thread_if_long(inline, self.decode)

    def compute_digest(self, inline: InlineSource) -> str | Refusal:
        """Return the sha256 of an image, which is decoded only if it was not seen lately."""
        if known := self._find_known(inline):
            return known.sha256
        image = self.decode(inline)
        return image if isinstance(image, Refusal) else image.sha256

    def hash_missing(self, lines: Sequence[ReceiptLine], sights: Sequence[Sight], digests: dict[int, str]) -> None:
        """Add the sha256 of images whose lines lack one to `digests`: of short ones now, of long ones in a thread."""
        sources = [(number, sights[number].source) for number, line in enumerate(lines) if not line.sha256]
        if not sources:
            return
        images = [(number, source) for number, source in sources if isinstance(source, InlineSource)]
        self._add_digests([each for each in images if len(each[1].text) <= _SHORT_TO_HASH], digests)
        if long := [each for each in images if len(each[1].text) > _SHORT_TO_HASH]:
            asyncio.get_running_loop().run_in_executor(None, self._add_digests, long, digests)

    def _add_digests(self, images: Iterable[tuple[int, InlineSource]], digests: dict[int, str]) -> None:
        for number, inline in images:
            try:
                digest = self.compute_digest(inline)
            except Exception:  # noqa: BLE001, its request may be over, and nothing depends on it
                return
            if isinstance(digest, str):
                digests[number] = digest

    def find_known_digest(self, inline: InlineSource) -> str:
        """Return the sha256 of an image if it was computed lately, without reading the image; else an empty text."""
        known = self._known.get(inline.key) if inline.has_key else None
        return known.sha256 if known else ""

    def decode(self, inline: InlineSource) -> Image | Refusal:
        """Return the image with its bytes and its sha256."""
        picture = probe_inline(inline)
        if isinstance(picture, Refusal):
            return picture
        data = decode_base64(inline.text)
        if isinstance(data, Refusal):
            return data
        digest = self._known.put(self._resent.find_key(inline), KeptImage(sha256(data).hexdigest(), picture)).sha256
        return Image(digest, picture.mime, picture.size, data, picture.is_rotated)

    def list_references(self, sights: Iterable[Sight], origin: RequestOrigin) -> list[str]:
        """Return the images that are kept for this client, each as its reference and its file name."""
        found: dict[str, str] = {}
        for sight in sights:
            digest = self.compute_digest(sight.source) if isinstance(sight.source, InlineSource) else None
            if isinstance(digest, str) and self._store.read(origin.scope, digest) is not None:
                found.setdefault(digest, f"sha256:{digest} {to_one_line(sight.filename or '')}".strip())
        return list(found.values())

    async def keep(self, inline: InlineSource, origin: RequestOrigin) -> KeptImage | Refusal:
        """Keep an image in the record, so that references to it can be resolved."""
        return await self._threads.run(origin.scope, self._keep, inline, origin)

    def keep_now(self, inline: InlineSource, origin: RequestOrigin) -> KeptImage | None:
        """Keep an image in this thread; None if it can't be kept."""
        kept = self._keep(inline, origin)
        return None if isinstance(kept, Refusal) else kept

    def load(self, digest: str, origin: RequestOrigin) -> InlineSource | None:
        """Return an image that was kept for this client."""
        image = self._store.read(origin.scope, digest) if digest else None
        return None if image is None else build_from_bytes(image.data)

    def _keep(self, inline: InlineSource, origin: RequestOrigin) -> KeptImage | Refusal:
        image = self.decode(inline)
        if isinstance(image, Refusal):
            return image
        known = self._known.get(inline.key)  # since it was decoded
        return known if known is not None and self._store.keep(origin.scope, image) else _NOT_STORED

    def find_kept_images(self, images: Iterable[InlineSource], origin: RequestOrigin) -> dict[InlineSource, KeptImage]:
        """Return the images that are kept already, without decoding them."""
        known: dict[InlineSource, KeptImage] = {}
        for inline in images:
            text = inline.text
            image = text.kept if type(text) is KnownText else None
            if image is not None or (image := self._find_known(inline)) is not None:
                known[inline] = image
        if not known:
            return known
        kept = self._store.find_kept_images(origin.scope, {image.sha256 for image in known.values()})
        if len(kept) == len(known):
            return known
        return {inline: image for inline, image in known.items() if image.sha256 in kept}

    def _find_known(self, inline: InlineSource) -> KeptImage | None:
        """Return what is known of an image, if it was decoded lately. A new one isn't hashed to find that out."""
        if self._resent.is_new(inline):
            return None
        known = self._known.get(self._resent.find_key(inline))
        if isinstance(inline.text, KnownText):
            inline.text.kept = known
        return known

    def recall_kept_images(
        self, images: Iterable[InlineSource], origin: RequestOrigin
    ) -> dict[InlineSource, KeptImage]:
        """Return the images that are known to be kept without asking a server."""
        try:
            return read_in_memory(self.find_kept_images, images, origin)
        except NotInMemoryError:
            return {}

    async def ask_for_kept_images(
        self, images: Collection[InlineSource], origin: RequestOrigin
    ) -> dict[InlineSource, KeptImage]:
        """Return the images that are kept; many, or those about which a server has to be asked, in a thread."""
        if len(images) <= _FEW:
            return await read_record(self.find_kept_images, images, origin)
        return await asyncio.to_thread(self.find_kept_images, images, origin)

    async def keep_missing(self, images: Collection[InlineSource], origin: RequestOrigin) -> None:
        """Keep the images that aren't kept: their descriptions contain references, which must be resolvable."""
        kept = await self.ask_for_kept_images(images, origin)
        await asyncio.gather(*(self.keep(inline, origin) for inline in images if inline not in kept))


def _list_inline_sources(sights: Iterable[Sight]) -> list[InlineSource]:
    return [sight.source for sight in sights if isinstance(sight.source, InlineSource)]


def _compute_key(inline: InlineSource) -> str:
    return inline.key


async def _in_thread_if_long(inline: InlineSource, work: Callable[[InlineSource], T]) -> T:
    return work(inline) if len(inline.text) <= _LONG_TO_HASH else await asyncio.to_thread(work, inline)
