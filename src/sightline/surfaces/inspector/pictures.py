"""Pictures for the pages: the stored bytes, thumbnails, and an image as it was sent. Workers make them, once each."""

from __future__ import annotations

import asyncio

from sightline.model.image import Image, ImageTarget
from sightline.model.ports import ImageStore
from sightline.model.refusal import Refusal
from sightline.pixels.fit_image import pack_target, unpack_fit_result
from sightline.pixels.workers import WorkerPool
from sightline.vision.concurrency import LruCache, SingleFlight

THUMBNAIL_EDGE = 320
MAX_EDGE = 2400
SAFE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
"""Types that every browser shows and that contain no scripts."""
_CACHED_BYTES = 64 * 1024 * 1024
_MAX_CONCURRENT = 4
_NOT_STORED = Refusal("not_found", "the record does not have this image", "it may have expired or been forgotten")

Picture = tuple[str, bytes]
"""A media type and the bytes."""


class PictureMaker:
    def __init__(self, images: ImageStore, workers: WorkerPool) -> None:
        self._images = images
        self._workers = workers
        self._made: LruCache[Picture] = LruCache(_CACHED_BYTES)
        self._flights: SingleFlight[Picture | Refusal] = SingleFlight()
        self._semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

    async def read(self, sha256: str) -> Picture | Refusal:
        """Return an image as it is stored; in another format if browsers might not show it or run what is in it."""
        image = await asyncio.to_thread(self._images.read, None, sha256)
        if image is None:
            return _NOT_STORED
        return (image.mime, image.data) if image.mime in SAFE_TYPES else await self.scale(sha256, MAX_EDGE)

    async def scale(self, sha256: str, edge: int) -> Picture | Refusal:
        """Return an image whose longer edge has at most this many pixels."""
        key = sha256, edge
        return self._made.get(key) or await self._flights.run(key, lambda: self._make(sha256, edge))

    async def _make(self, sha256: str, edge: int) -> Picture | Refusal:
        async with self._semaphore:
            image = await asyncio.to_thread(self._images.read, None, sha256)
            made = _NOT_STORED if image is None else await self._fit(image, edge)
        return made if isinstance(made, Refusal) else self._made.put((sha256, edge), made, len(made[1]))

    async def _fit(self, image: Image, edge: int) -> Picture | Refusal:
        target = ImageTarget(("image/webp", "image/png", "image/jpeg"), edge=edge, still=True, keeps_geometry=True)
        fitted = await self._workers.run("fit", image.data, pack_target(target))
        if isinstance(fitted, Refusal):
            return fitted
        part = unpack_fit_result(fitted.facts, fitted.data).parts[0].image
        return part.mime, part.data
