"""Pictures for the pages: the stored bytes, thumbnails, and an image as it was sent. Workers make them, once each.

The record keeps an image and the views that a tool has shown of it, but not what the proxy made of it for a model. That
is made again by the same function, from the same bytes, to the same size. If it has the sha256 that the receipt names,
these are the very bytes that were sent; else the page says that they were made again.
"""

from __future__ import annotations

import asyncio
from dataclasses import astuple, replace
from typing import NamedTuple

from sightline.api.session import ANY_PROVIDER, SAFE_EDGE
from sightline.model.geometry import Size
from sightline.model.image import (
    FitPart,
    Image,
    ImageTarget,
    Sizing,
    compute_base64_length,
    compute_seen_size,
    is_illegibly_tall,
)
from sightline.model.ports import ImageStore
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.pixels.fit_image import pack_target, unpack_fit_result
from sightline.pixels.workers import WorkerPool
from sightline.profiles.profile_lookup import FAMILIES
from sightline.vision.concurrency import LruCache, SingleFlight

THUMBNAIL_EDGE = 320
MAX_EDGE = 2400
MAX_SENT_EDGE = 8000
SAFE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
"""Types that every browser shows and that contain no scripts."""
_CACHED_BYTES = 64 * 1024 * 1024
_MAX_CONCURRENT = 4
_FORMATS = ("image/webp", "image/png", "image/jpeg")
_NOT_STORED = Refusal("not_found", "the record does not have this image", "it may have expired or been forgotten")

Picture = tuple[str, bytes]
"""A media type and the bytes."""


class SentImage(NamedTuple):
    """What a receipt says about an image as it was sent."""

    sha256: str
    size: tuple[int, int]
    bytes: int


class PictureMaker:
    def __init__(self, images: ImageStore, workers: WorkerPool) -> None:
        self._images = images
        self._workers = workers
        self._made: LruCache[Picture] = LruCache(_CACHED_BYTES)
        self._flights: SingleFlight[Picture | Refusal] = SingleFlight()
        self._semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

    async def read(self, sha256: str) -> Picture | Refusal:
        """Return an image as it is stored; in another format if browsers might not show it or run what is in it."""
        image = await asyncio.to_thread(self._read_stored, sha256)
        if image is None:
            return _NOT_STORED
        return (image.mime, image.data) if image.mime in SAFE_TYPES else await self.scale(sha256, MAX_EDGE)

    async def scale(self, sha256: str, edge: int) -> Picture | Refusal:
        """Return an image whose longer edge has at most this many pixels."""
        key = sha256, edge
        made = self._made.get(key)
        if made is None:
            return await self._flights.run(key, lambda: self._make(sha256, edge))
        if await asyncio.to_thread(self._is_stored, sha256):
            return made
        self._made.discard(key)  # it was forgotten, or has expired
        return _NOT_STORED

    async def _make(self, sha256: str, edge: int) -> Picture | Refusal:
        async with self._semaphore:
            image = await asyncio.to_thread(self._read_stored, sha256)
            target = ImageTarget(_FORMATS, edge=edge, still=True, keeps_geometry=True)
            made = _NOT_STORED if image is None else await self._fit(image, target)
        if isinstance(made, Refusal):
            return made
        return self._made.put((sha256, edge), (made.image.mime, made.image.data), len(made.image.data))

    async def make_sent(self, sha256: str, sent: SentImage) -> tuple[Picture, bool] | Refusal:
        """Return an image as it was sent, and whether these are the very bytes."""
        image = await asyncio.to_thread(self._read_stored, sha256)
        if image is None:
            return _NOT_STORED
        edge, encoded = max(sent.size), compute_base64_length(sent.bytes)
        scaled = ImageTarget((), encoded, edge, still=True, keeps_geometry=True)
        rules = _list_folding_rules(image, sent)
        folded = [replace(scaled, edge=None, sizing=rule, keeps_geometry=False) for rule in rules]
        again: Picture | None = None
        for target in (*folded, scaled):
            for mime in _FORMATS:
                async with self._semaphore:
                    made = await self._fit(image, replace(target, formats=(mime,)))
                if isinstance(made, FitPart) and made.image.sha256 == sent.sha256:
                    return (mime, made.image.data), True
                if target in folded and not (isinstance(made, FitPart) and astuple(made.image.size) == sent.size):
                    break  # no other format has another layout
                if isinstance(made, FitPart) and again is None:
                    again = mime, made.image.data
        return _NOT_STORED if again is None else (again, False)

    async def find_pieces(self, sha256: str, pixels: str) -> list[Json]:
        """Return the rectangles of an image that a view shows, in the order in which it shows them; empty: unknown."""
        image = await asyncio.to_thread(self._read_stored, sha256)
        for target in (replace(ANY_PROVIDER, edge=SAFE_EDGE), ANY_PROVIDER) if image else ():
            async with self._semaphore:
                made = await self._fit(image, target) if image else _NOT_STORED
            if isinstance(made, FitPart) and made.image.sha256 == pixels:
                sources = [piece.source for piece in made.map.pieces]
                return [[round(each.x), round(each.y), round(each.width), round(each.height)] for each in sources]
        return []

    def _is_stored(self, sha256: str) -> bool:
        return bool(self._images.find_stored([sha256])) or self._images.read_pixels(sha256) is not None

    def _read_stored(self, sha256: str) -> Image | None:
        return self._images.read(None, sha256) or self._images.read_pixels(sha256)

    async def _fit(self, image: Image, target: ImageTarget) -> FitPart | Refusal:
        fitted = await self._workers.run("fit", image.data, pack_target(target))
        return fitted if isinstance(fitted, Refusal) else unpack_fit_result(fitted.facts, fitted.data).parts[0]


def _list_folding_rules(image: Image, sent: SentImage) -> list[Sizing]:
    """Return the rules of providers by which an image may have been folded into one of the size that was sent."""
    size = Size(*sent.size)
    if image.size.width * size.height == image.size.height * size.width:
        return []
    known = dict.fromkeys(family.sizing for family in FAMILIES if family.sizing is not None)
    return [rule for rule in known if is_illegibly_tall(image.size, rule) and compute_seen_size(size, rule) == size]
