"""Which images of a conversation have left it by now: a fold over its messages, on plain numbers.

Each decision rests on what stands before it and on nothing else. So whoever replays a conversation comes to the same
end, and what has left once has left in every conversation that goes on from there.

An image that stays in the cache costs its rent with every step; one that leaves costs once, since whatever stands
behind it is written anew. Nobody knows how long a conversation will last, so images leave when the rent that was paid
on them has reached the price of leaving. Several share that price: they leave together, all stale ones from some image
on. Those in front of it have more behind them, and may have to wait.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Literal, NamedTuple

from sightline.model.profile import CachePrice, Limits

WINDOW = 8  # steps after which an image is stale, in a turn that goes on
NEWEST = 3  # images that are never stale
LINE = 80  # tokens of the line that stands where an image has left
PATIENCE = 1.0  # times the price

COLD = "nothing was cached when the conversation went on"
RENT = "in the cache it has cost as much as taking it out"


class Beat(NamedTuple):
    """A message, as far as it matters here."""

    tokens: int  # of its words
    speaks: bool = False  # by the assistant
    opens: bool = False  # a turn begins with it
    cold: bool = False  # the request that ended with it found nothing cached


AnyBeat = tuple[int, bool, bool, bool]
"""A `Beat`, or the same without names: there is one for every message, and this one is made three times as fast."""


class View(NamedTuple):
    """An image, and where it stands."""

    message: int
    tokens: int
    encoded: int = 0  # length of its base64
    edge: int = 0  # longer side, in pixels
    stays: bool = False  # it cannot be seen again, and never leaves
    lost: int | None = None  # the message from which on it cannot be seen again: if it has not left before, it stays


class Left(NamedTuple):
    message: int  # the last one of the first request without it
    why: str


@dataclass(slots=True)
class _Live:
    number: int
    view: View
    order: int  # among all that may leave
    step: int  # that brought it
    before: int  # tokens in front of it, as the provider gets them
    saved: int  # tokens, once it has left


def frontier(
    beats: Iterable[AnyBeat],
    views: Sequence[View],
    price: CachePrice,
    limits: Limits,
    *,
    newest: int = NEWEST,
    window: int = WINDOW,
) -> dict[int, Left]:
    """By their numbers, the images that have left; `views` are in the order of their messages."""
    fold = _Fold(price, limits, newest, window)
    arriving: dict[int, list[tuple[int, View]]] = {}
    for number, view in enumerate(views):
        arriving.setdefault(view.message, []).append((number, view))
    for message, beat in enumerate(beats):
        fold.hear(message, beat, arriving.get(message, ()))
    return fold.left


def _end(one: _Live) -> float:
    return inf if one.view.lost is None else one.view.lost


def _near(most: int | None) -> float:
    """The number from which on a limit is near: seven eighths of it."""
    return inf if most is None else most - most // 8


class _Fold:
    def __init__(self, price: CachePrice, limits: Limits, newest: int, window: int) -> None:
        self.left: dict[int, Left] = {}
        self._rent, self._price = price.read, PATIENCE * (price.write - price.read)  # of a token
        self._newest, self._window = newest, window
        self._live: list[_Live] = []  # those that may leave, by arrival
        self._stale = 0  # so many of them, the oldest
        self._saved = self._due = 0  # what these would save with each step, and had not saved yet when they came
        self._arrived = self._turned = 0  # of those that may leave: in all, and in earlier turns
        self._length = self._step = 0
        self._images = self._wide = self._encoded = 0  # what the limits of a provider are about
        self._edge = limits.crowd_edge or inf
        self._crowd, self._count = limits.crowd, limits.count
        self._request = limits.request_bytes
        self._bytes = None if limits.request_bytes is None else limits.request_bytes * 9 // 10
        self._crowded, self._many, self._heavy = map(_near, (self._crowd, self._count, self._bytes))
        self._spoke = False
        self._soonest = inf  # the message at which one of them is lost

    def hear(self, message: int, beat: AnyBeat, views: Sequence[tuple[int, View]]) -> None:
        tokens, speaks, opens, cold = beat
        steps = speaks and not self._spoke
        self._spoke = speaks
        self._step += steps
        if opens:
            self._turned = self._arrived
        cached = self._length
        self._length += tokens
        for number, view in views:
            self._take(number, view)
        if message >= self._soonest:
            self._spare(message)
        if cold or steps or opens:
            self._age()
            cut = 0 if cold else self._cut(cached)
            if cut < self._stale:
                self._leave(cut, self._stale, message, COLD if cold else RENT)
        if views:
            self._heed_limits(message)

    def _take(self, number: int, view: View) -> None:
        tokens, lost = view.tokens, view.lost
        if tokens > LINE and not view.stays:
            self._live.append(_Live(number, view, self._arrived, self._step, self._length, tokens - LINE))
            self._arrived += 1
            if lost is not None:
                self._soonest = min(self._soonest, lost)
        self._length += tokens
        self._weigh(view, 1)

    def _spare(self, message: int) -> None:
        """Those that are lost by now never leave."""
        self._forget_stale([one for one in self._live[: self._stale] if _end(one) <= message])
        self._live = [one for one in self._live if _end(one) > message]
        self._soonest = min(map(_end, self._live), default=inf)

    def _forget_stale(self, stale: Sequence[_Live]) -> None:
        self._stale -= len(stale)
        self._saved -= sum(one.saved for one in stale)
        self._due -= sum(one.saved * (one.step + 1) for one in stale)

    def _weigh(self, view: View, sign: int) -> None:
        self._images += sign
        self._encoded += sign * view.encoded
        if view.edge > self._edge:
            self._wide += sign

    def _age(self) -> None:
        """Find out which are stale: what was so once is so for ever, so nobody has to ask after every message."""
        older = self._arrived - self._newest
        while self._stale < len(self._live):
            one = self._live[self._stale]
            step = self._step if one.order < self._turned else self._step - self._window
            if one.order >= older or one.step >= step:
                return
            self._stale += 1
            self._saved += one.saved
            self._due += one.saved * (one.step + 1)

    def _cut(self, cached: int) -> int:
        """The stale image from which on all of them leave; `cached` is how much the last request has left behind.

        From the oldest on, both rent and price fall, and the price never below that of the last one alone.
        """
        if not self._stale:
            return 0
        step, rent, saved = self._step, self._saved * self._step - self._due, self._saved
        last = self._live[self._stale - 1]
        least = self._price * max(0, cached - last.before - last.saved)
        for index, one in enumerate(self._live):
            paid = self._rent * rent
            if paid < least:
                break
            behind = cached - one.before - saved
            if behind <= 0 or paid >= self._price * behind:
                return index
            rent -= one.saved * (step - one.step - 1)  # the first step wrote it
            saved -= one.saved
        return self._stale

    def _heed_limits(self, message: int) -> None:
        """Near a limit the stale ones leave, if that helps for long; at one that would cost images, others do too."""
        if self._crowd is not None and self._wide and self._images > self._crowded:
            self._heed(self._crowd, self._images, message, "images", hard=False)
        if self._count is not None and self._images > self._many:
            self._heed(self._count, self._images, message, "images", hard=True)
        if self._bytes is not None and self._encoded > self._heavy:
            self._heed(self._bytes, self._encoded, message, "bytes", hard=True)

    def _heed(self, most: int, load: int, message: int, what: Literal["images", "bytes"], *, hard: bool) -> None:
        weights = [1 if what == "images" else one.view.encoded for one in self._live]
        excess = load - most // 2
        self._age()
        leaving = self._stale
        if sum(weights[:leaving]) < excess:
            old = sum(map(self._is_old, self._live)) if hard and load > most else 0
            leaving = min(old, bisect_left([0, *accumulate(weights)], excess))
        if leaving:
            named = self._request if what == "bytes" else most
            self._leave(0, leaving, message, f"the provider takes {named:,} {what} at most")

    def _is_old(self, one: _Live) -> bool:
        """The model has had a step to look at it, and others have come since."""
        return one.order < self._arrived - self._newest and one.step < self._step

    def _leave(self, first: int, end: int, message: int, why: str) -> None:
        leaving = self._live[first:end]
        shorter = sum(one.saved for one in leaving)
        left = Left(message, why)
        for one in leaving:
            self.left[one.number] = left
            self._weigh(one.view, -1)
        for one in self._live[end:]:
            one.before -= shorter
        self._forget_stale(self._live[first : min(end, self._stale)])
        del self._live[first:end]
        self._length -= shorter
