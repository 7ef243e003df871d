"""Answers about pixels: what an image is, whether it decodes, what it becomes. What is dear is found out once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from sightline.model.base64_text import decoded_size
from sightline.model.facts import Refit
from sightline.model.image import Image, Picture, Target
from sightline.model.refusal import Refusal
from sightline.model.source import Inline
from sightline.pixels.fit import fitted, task
from sightline.pixels.headers import animated
from sightline.pixels.probe import probe
from sightline.pixels.similar import likeness
from sightline.pixels.worker import Workers
from sightline.sources.inline import decode, head
from sightline.vision.lru_cache import LruCache

_HEADS = (2048, 64 * 1024)  # letters of base64: enough for nearly all, and for those with a preview in front
_MAY_MOVE = ("image/gif", "image/webp")
_CUT = Refusal("corrupt", "it ends before its size is told", "ask for the image again")
_LONG = 4 * 1024 * 1024  # letters of base64, of which decoding takes more than a millisecond
_REMEMBERED = 4096
_REFITTED_BYTES = 128 * 1024 * 1024
_MAY_PASS = frozenset({"unavailable", "too_large"})  # a busy machine may be the cause: asked again the next time


class Eyes:
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
    return decode(text) if len(text) <= _LONG else await asyncio.to_thread(decode, text)


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
