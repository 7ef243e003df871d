"""Compute which images of a conversation have been removed so far: a fold over its messages, on plain numbers.

Each decision depends only on what comes before it in the conversation. So every replica that replays a conversation
gets the same result, and an image that was removed once stays removed in every continuation.

An image that stays in the prompt cache costs rent with every step. Removing it costs once, since everything behind it
is written to the cache again. How long a conversation will last is unknown, so images are removed when the rent paid
for them has reached the price of removing them. Several images share that price: they are removed together, all stale
ones from some image on. Images before that one have more behind them, and may have to wait.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Literal, NamedTuple

from sightline.model.profile import CachePrice, ImageLimits

STALE_AFTER_STEPS = 8  # in a turn that goes on
NEWEST_KEPT = 3  # images that are never stale
LINE_TOKENS = 80  # of the line that replaces an image
RENT_FACTOR = 1.0  # removal pays when the rent has reached this many times its price

COLD_CACHE = "the cache was cold when the conversation continued"
RENT_PAID = "keeping it in the cache has cost as much as removing it"


class HistoryMessage(NamedTuple):
    """The facts about a message that decide removals."""

    tokens: int  # of its text
    by_assistant: bool = False
    opens_turn: bool = False
    cold: bool = False  # the request that ended with it found nothing in the cache


MessageTuple = tuple[int, bool, bool, bool]
"""A `HistoryMessage` or a plain tuple of its fields, which is created three times as fast."""


class HistoryImage(NamedTuple):
    """The facts about an image that decide removals."""

    message: int
    tokens: int
    encoded_bytes: int = 0  # length of its base64
    edge: int = 0  # longer side, in pixels
    is_permanent: bool = False  # it cannot be seen again, so it is never removed
    lost_at: int | None = None  # the message at which a tool can no longer show it; it is removed before that or never


class Removal(NamedTuple):
    message: int  # the last one of the first request without the image
    why: str


@dataclass(slots=True)
class _LiveImage:
    number: int
    image: HistoryImage
    order: int  # among all removable images
    step: int  # in which it arrived
    before: int  # tokens before it, as the provider gets them
    saved: int  # tokens that its removal saves


def compute_frontier(
    messages: Iterable[MessageTuple],
    images: Sequence[HistoryImage],
    price: CachePrice,
    limits: ImageLimits,
    *,
    newest: int = NEWEST_KEPT,
    window: int = STALE_AFTER_STEPS,
) -> dict[int, Removal]:
    """Return the removed images by number; `images` are in the order of their messages."""
    fold = _Fold(price, limits, newest, window)
    arrivals: dict[int, list[tuple[int, HistoryImage]]] = {}
    for number, image in enumerate(images):
        arrivals.setdefault(image.message, []).append((number, image))
    for index, message in enumerate(messages):
        fold.add_message(index, message, arrivals.get(index, ()))
    return fold.removals


def _get_lost_at(live: _LiveImage) -> float:
    return inf if live.image.lost_at is None else live.image.lost_at


def _approach_limit(limit: int | None) -> float:
    """Return the number at which a limit is close: seven eighths of it."""
    return inf if limit is None else limit - limit // 8


class _Fold:
    """The state after some messages. It keeps running sums, so that each message costs little."""

    def __init__(self, price: CachePrice, limits: ImageLimits, newest: int, window: int) -> None:
        self.removals: dict[int, Removal] = {}
        self._rent, self._price = price.read, RENT_FACTOR * (price.write - price.read)  # per token
        self._newest, self._window = newest, window
        self._live: list[_LiveImage] = []  # the removable images, in order of arrival
        self._stale_count = 0  # the oldest of them are stale
        # The rent that the stale images have cost by a step is `_saved * step - _saved_at_arrival`, in tokens.
        self._saved = self._saved_at_arrival = 0
        self._arrived = self._arrived_before_turn = 0  # removable images: in all, and in earlier turns
        self._length = self._step = 0
        self._images = self._wide_images = self._encoded = 0  # what providers limit
        self._wide_edge = limits.crowd_edge or inf
        self._crowd, self._count = limits.crowd, limits.count
        self._request = limits.request_bytes
        self._bytes = None if limits.request_bytes is None else limits.request_bytes * 9 // 10
        self._near_crowd, self._near_count, self._near_bytes = map(
            _approach_limit, (self._crowd, self._count, self._bytes)
        )
        self._after_assistant = False
        self._next_loss = inf  # the message at which the next image is lost

    def add_message(self, index: int, message: MessageTuple, images: Sequence[tuple[int, HistoryImage]]) -> None:
        tokens, by_assistant, opens_turn, cold = message
        new_step = by_assistant and not self._after_assistant
        self._after_assistant = by_assistant
        self._step += new_step
        if opens_turn:
            self._arrived_before_turn = self._arrived
        cached = self._length
        self._length += tokens
        for number, image in images:
            self._add_image(number, image)
        if index >= self._next_loss:
            self._drop_lost_images(index)
        if cold or new_step or opens_turn:
            self._mark_stale()
            cut = 0 if cold else self._find_cut(cached)
            if cut < self._stale_count:
                self._remove(cut, self._stale_count, index, COLD_CACHE if cold else RENT_PAID)
        if images:
            self._check_limits(index)

    def _add_image(self, number: int, image: HistoryImage) -> None:
        tokens = image.tokens
        if tokens > LINE_TOKENS and not image.is_permanent:
            self._live.append(_LiveImage(number, image, self._arrived, self._step, self._length, tokens - LINE_TOKENS))
            self._arrived += 1
            if image.lost_at is not None:
                self._next_loss = min(self._next_loss, image.lost_at)
        self._length += tokens
        self._update_totals(image, 1)

    def _drop_lost_images(self, message: int) -> None:
        """Drop images that can no longer be shown again from the removable ones."""
        self._forget_stale([live for live in self._live[: self._stale_count] if _get_lost_at(live) <= message])
        self._live = [live for live in self._live if _get_lost_at(live) > message]
        self._next_loss = min(map(_get_lost_at, self._live), default=inf)

    def _forget_stale(self, stale: Sequence[_LiveImage]) -> None:
        self._stale_count -= len(stale)
        self._saved -= sum(live.saved for live in stale)
        self._saved_at_arrival -= sum(live.saved * (live.step + 1) for live in stale)

    def _update_totals(self, image: HistoryImage, sign: int) -> None:
        self._images += sign
        self._encoded += sign * image.encoded_bytes
        if image.edge > self._wide_edge:
            self._wide_images += sign

    def _mark_stale(self) -> None:
        """Count the images that have become stale. A stale image stays stale, so this can be done late."""
        older = self._arrived - self._newest
        while self._stale_count < len(self._live):
            live = self._live[self._stale_count]
            step = self._step if live.order < self._arrived_before_turn else self._step - self._window
            if live.order >= older or live.step >= step:
                return
            self._stale_count += 1
            self._saved += live.saved
            self._saved_at_arrival += live.saved * (live.step + 1)

    def _find_cut(self, cached: int) -> int:
        """Return the first of the stale images to remove; `cached` is the length of the last request.

        Going from the oldest on, both rent and price fall, and the price never below that of the last image alone.
        """
        if not self._stale_count:
            return 0
        step, rent, saved = self._step, self._saved * self._step - self._saved_at_arrival, self._saved
        last = self._live[self._stale_count - 1]
        lowest_price = self._price * max(0, cached - last.before - last.saved)
        for index, live in enumerate(self._live):
            paid = self._rent * rent
            if paid < lowest_price:
                break
            behind = cached - live.before - saved
            if behind <= 0 or paid >= self._price * behind:
                return index
            rent -= live.saved * (step - live.step - 1)  # in its first step it was written, not read
            saved -= live.saved
        return self._stale_count

    def _check_limits(self, message: int) -> None:
        """Remove stale images near a limit if that helps for a while; at a limit that rejects requests, also others."""
        if self._crowd is not None and self._wide_images and self._images > self._near_crowd:
            self._check_limit(self._crowd, self._images, message, "images", hard=False)
        if self._count is not None and self._images > self._near_count:
            self._check_limit(self._count, self._images, message, "images", hard=True)
        if self._bytes is not None and self._encoded > self._near_bytes:
            self._check_limit(self._bytes, self._encoded, message, "bytes", hard=True)

    def _check_limit(
        self, limit: int, load: int, message: int, what: Literal["images", "bytes"], *, hard: bool
    ) -> None:
        weights = [1 if what == "images" else live.image.encoded_bytes for live in self._live]
        excess = load - limit // 2
        self._mark_stale()
        count = self._stale_count
        if sum(weights[:count]) < excess:
            old = sum(map(self._is_old, self._live)) if hard and load > limit else 0
            count = min(old, bisect_left([0, *accumulate(weights)], excess))
        if count:
            shown_limit = self._request if what == "bytes" else limit
            self._remove(0, count, message, f"the provider takes at most {shown_limit:,} {what}")

    def _is_old(self, live: _LiveImage) -> bool:
        """Return whether the model has had a step to look at the image, and newer ones have come since."""
        return live.order < self._arrived - self._newest and live.step < self._step

    def _remove(self, first: int, end: int, message: int, why: str) -> None:
        removed = self._live[first:end]
        saved = sum(live.saved for live in removed)
        removal = Removal(message, why)
        for live in removed:
            self.removals[live.number] = removal
            self._update_totals(live.image, -1)
        for live in self._live[end:]:
            live.before -= saved
        self._forget_stale(self._live[first : min(end, self._stale_count)])
        del self._live[first:end]
        self._length -= saved
