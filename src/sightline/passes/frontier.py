"""Which images of a conversation have left it by now: a fold over its messages, on plain numbers.

Each decision rests on what stands before it and on nothing else. So whoever replays a conversation comes to the same
end, and what has left once has left in every conversation that goes on from there.

An image that stays in the cache costs its rent with every step; one that leaves costs once, since whatever stands
behind it is written anew. Nobody knows how long a conversation will last, so images leave when the rent that was paid
on them has reached the price of leaving. Several share that price: they leave together, all stale ones from some image
on. Those in front of it have more behind them, and may have to wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from typing import Literal

from sightline.model.profile import CachePrice, Limits

WINDOW = 8  # steps after which an image is stale, in a turn that goes on
NEWEST = 3  # images that are never stale
LINE = 80  # tokens of the line that stands where an image has left
PATIENCE = 1.0  # times the price

COLD = "nothing was cached when the conversation went on"
RENT = "in the cache it has cost as much as taking it out"


@dataclass(frozen=True, slots=True)
class Beat:
    """A message, as far as it matters here."""

    tokens: int  # of its words
    speaks: bool = False  # by the assistant
    opens: bool = False  # a turn begins with it
    cold: bool = False  # the request that ended with it found nothing cached


@dataclass(frozen=True, slots=True)
class View:
    """An image, and where it stands."""

    message: int
    tokens: int
    encoded: int = 0  # length of its base64
    edge: int = 0  # longer side, in pixels
    stays: bool = False  # it cannot be seen again, and never leaves
    lost: int | None = None  # the message from which on it cannot be seen again: if it has not left before, it stays


@dataclass(frozen=True, slots=True)
class Left:
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
    beats: Sequence[Beat],
    views: Sequence[View],
    price: CachePrice,
    limits: Limits,
    *,
    newest: int = NEWEST,
    window: int = WINDOW,
) -> dict[int, Left]:
    """By their numbers, the images that have left; `views` are in the order of their messages."""
    fold = _Fold(price, limits, newest, window)
    arriving = {message: list(group) for message, group in groupby(enumerate(views), key=lambda each: each[1].message)}
    for message, beat in enumerate(beats):
        fold.hear(message, beat, arriving.get(message, ()))
    return fold.left


def _end(view: View) -> float:
    return inf if view.lost is None else view.lost


class _Fold:
    def __init__(self, price: CachePrice, limits: Limits, newest: int, window: int) -> None:
        self.left: dict[int, Left] = {}
        self._price, self._limits = price, limits
        self._newest, self._window = newest, window
        self._live: list[_Live] = []  # those that may leave, by arrival
        self._stale = 0  # so many of them, the oldest
        self._saved = self._due = 0  # what these would save with each step, and had not saved yet when they came
        self._arrived = self._turned = 0  # of those that may leave: in all, and in earlier turns
        self._length = self._step = 0
        self._images = self._wide = self._encoded = 0  # what the limits of a provider are about
        self._spoke = False
        self._soonest = inf  # the message at which one of them is lost

    def hear(self, message: int, beat: Beat, views: Sequence[tuple[int, View]]) -> None:
        steps = beat.speaks and not self._spoke
        self._spoke = beat.speaks
        self._step += steps
        if beat.opens:
            self._turned = self._arrived
        cached = self._length
        self._length += beat.tokens
        for number, view in views:
            self._take(number, view)
        if message >= self._soonest:
            for one in [one for one in self._live if _end(one.view) <= message]:
                self._spare(one)
            self._soonest = min((_end(one.view) for one in self._live), default=inf)
        self._age()
        if beat.cold:
            self._leave(0, self._stale, message, COLD)
        elif steps or beat.opens:
            self._leave(self._cut(cached), self._stale, message, RENT)
        if views:
            self._heed_limits(message)

    def _take(self, number: int, view: View) -> None:
        if not view.stays and view.tokens > LINE:
            self._live.append(_Live(number, view, self._arrived, self._step, self._length, view.tokens - LINE))
            self._arrived += 1
            self._soonest = min(self._soonest, _end(view))
        self._length += view.tokens
        self._weigh(view, 1)

    def _spare(self, one: _Live) -> None:
        """It never leaves."""
        if self._live.index(one) < self._stale:
            self._forget_stale([one])
        self._live.remove(one)

    def _forget_stale(self, stale: Sequence[_Live]) -> None:
        self._stale -= len(stale)
        self._saved -= sum(one.saved for one in stale)
        self._due -= sum(one.saved * (one.step + 1) for one in stale)

    def _weigh(self, view: View, sign: int) -> None:
        self._images += sign
        self._wide += sign * (view.edge > (self._limits.crowd_edge or view.edge))
        self._encoded += sign * view.encoded

    def _age(self) -> None:
        while self._stale < len(self._live) and self._is_stale(one := self._live[self._stale]):
            self._stale += 1
            self._saved += one.saved
            self._due += one.saved * (one.step + 1)

    def _is_stale(self, one: _Live) -> bool:
        return self._is_old(one) and (one.order < self._turned or self._step - one.step > self._window)

    def _is_old(self, one: _Live) -> bool:
        """The model has had a step to look at it, and others have come since."""
        return one.order < self._arrived - self._newest and one.step < self._step

    def _cut(self, cached: int) -> int:
        """The stale image from which on all of them leave; `cached` is how much the last request has left behind."""
        read, dearer = self._price.read, self._price.write - self._price.read
        most = read * (self._saved * self._step - self._due)
        rent, saved, cut = 0.0, 0, self._stale
        for index in range(self._stale - 1, -1, -1):
            one = self._live[index]
            rent += read * one.saved * (self._step - one.step - 1)  # the first step wrote it
            saved += one.saved
            price = PATIENCE * dearer * max(0, cached - one.before - saved)
            if price > most:  # and the price only rises from here on
                break
            if rent >= price:
                cut = index
        return cut

    def _heed_limits(self, message: int) -> None:
        """Near a limit the stale ones leave, if that helps for long; at one that would cost images, others do too."""
        limits = self._limits
        if limits.crowd is not None and self._wide:
            self._heed(limits.crowd, self._images, message, "images", hard=False)
        if limits.count is not None:
            self._heed(limits.count, self._images, message, "images", hard=True)
        if limits.request_bytes is not None:
            self._heed(limits.request_bytes * 9 // 10, self._encoded, message, "bytes", hard=True)

    def _heed(self, most: int, load: int, message: int, what: Literal["images", "bytes"], *, hard: bool) -> None:
        if load <= most - most // 8:
            return
        weights = [1 if what == "images" else one.view.encoded for one in self._live]
        excess = load - most // 2
        leaving = self._stale
        if sum(weights[:leaving]) < excess:
            old = sum(map(self._is_old, self._live)) if hard and load > most else 0
            leaving = next((k for k in range(old) if sum(weights[:k]) >= excess), old)
        self._leave(0, leaving, message, f"the provider takes {most:,} {what} at most")

    def _leave(self, first: int, end: int, message: int, why: str) -> None:
        leaving = self._live[first:end]
        if not leaving:
            return
        shorter = sum(one.saved for one in leaving)
        for one in leaving:
            self.left[one.number] = Left(message, why)
            self._weigh(one.view, -1)
        for one in self._live[end:]:
            one.before -= shorter
        self._forget_stale(self._live[first : min(end, self._stale)])
        del self._live[first:end]
        self._length -= shorter
