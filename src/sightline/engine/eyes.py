"""Answers about pixels: what an image is, whether it decodes, what it becomes. What is dear is found out once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sightline.engine.shelf import Shelf
from sightline.model.facts import Refit
from sightline.model.image import Image, Picture, Target
from sightline.model.refusal import Refusal
from sightline.model.source import Inline
from sightline.pixels.fit import base64_length, check, fit
from sightline.pixels.probe import probe
from sightline.sources.inline import decode, decoded_size, head

T = TypeVar("T")

_HEAD = 64 * 1024
_AT_ONCE = 2
_REMEMBERED = 4096
_SECONDS = 5.0
_TOO_SLOW = Refusal("too_large", "it takes too long to decode", "ask for a plain PNG or JPEG of it")
_REFITTED_BYTES = 128 * 1024 * 1024


class Eyes:
    def __init__(self) -> None:
        self._checked: Shelf[Picture | Refusal] = Shelf(_REMEMBERED)
        self._refitted: Shelf[Image | Refusal] = Shelf(_REFITTED_BYTES)
        self._busy = asyncio.Semaphore(_AT_ONCE)

    def probe(self, image: Inline) -> Picture | Refusal:
        """From the header, which is nearly always in the first kilobytes: cheaper than to look it up."""
        seen = probe(head(image.text, _HEAD), decoded_size(image.text))
        if seen is None:
            data = decode(image.text)
            seen = data if isinstance(data, Refusal) else probe(data, len(data))
        return seen or Refusal("corrupt", "it ends before its size is told", "ask for the image again")

    async def check(self, image: Inline) -> Picture | Refusal:
        known = self._checked.get(image.key)
        if known is not None:
            return known
        seen = await self._worked(image, check)
        return seen if seen is _TOO_SLOW else self._checked.put(image.key, seen)

    async def refit(self, need: Refit) -> Image | Refusal:
        key = (need.image.key, need.target)
        known = self._refitted.get(key)
        if known is not None:
            return known
        made = await self._worked(need.image, lambda data: fit(data, need.target))
        if made is _TOO_SLOW:  # a busy machine may be the cause: asked again the next time
            return made
        return self._refitted.put(key, made, len(made.data) if isinstance(made, Image) else 1)

    async def fitting(self, image: Image, goal: Target) -> Image | Refusal:
        """An image for somebody with limits of their own, upright: not everybody reads what a header says of it."""
        encoded = base64_length(len(image.data))
        if not image.turned and goal.admits(Picture(image.mime, image.size, len(image.data)), encoded):
            return image
        return await self._within_time(lambda: fit(image.data, goal))

    async def _worked(self, image: Inline, work: Callable[[bytes], T | Refusal]) -> T | Refusal:
        data = decode(image.text)
        return data if isinstance(data, Refusal) else await self._within_time(lambda: work(data))

    async def _within_time(self, work: Callable[[], T | Refusal]) -> T | Refusal:
        """A picture that is made to take for ever costs a refusal; its thread ends by itself, some time."""
        await self._busy.acquire()
        task = asyncio.ensure_future(asyncio.to_thread(work))
        task.add_done_callback(lambda _: self._busy.release())
        done, _ = await asyncio.wait({task}, timeout=_SECONDS)
        return task.result() if done else _TOO_SLOW
