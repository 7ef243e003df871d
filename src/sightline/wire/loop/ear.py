"""A stream as it comes, leg after leg: what of it goes to the client, and what of it is a call of ours.

Until the name of a tool of ours is heard, nothing is parsed and everything goes out as it came, event by event. From
then on every event is looked at; those of our own calls and the ends between two legs are left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from re import Match, escape
from re import compile as pattern

import orjson

from sightline.wire.jsonsize import parse_bounded
from sightline.wire.loop.leg import Block, Leg, Reads, leg
from sightline.wire.sse import EventBuffer, read_event, split_events

_MOST_HEARD = 16 * 1024 * 1024  # bytes of an answer in which no tool of ours was named
_LONGEST_EVENT = 32 * 1024 * 1024  # bytes: a longer one goes on as it comes, and is not listened to


class Ear(ABC):
    """One for one visible answer; `begin` when its next leg is asked for."""

    reads: Reads
    beginnings: Sequence[str] = ()  # what a call may begin with before its name comes

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self._named = _naming(names.union(self.beginnings))
        self._buffer = EventBuffer()
        self._heard: list[bytes] = []
        self._room = _MOST_HEARD
        self._close = False  # every event is looked at
        self._deaf = False  # everything goes on as it comes
        self.legs = 0  # that have come to their end before this one
        self.usages: list[Block] = []  # of each leg
        self.last = b""  # what ends the answer: it waits until the answer is known again
        self._opened()

    def _opened(self) -> None:
        self._said: dict[int, Block] = {}  # by their numbers in this leg
        self._held: set[int] = set()  # … those that are calls of ours
        self._theirs = False  # the client is called, too
        self._stop: str | None = None  # why the model stopped
        self._usage: Block = {}
        self.failed = False

    def begin(self) -> None:
        """Listen to the next leg of the same answer."""
        self.legs += 1
        self._close = True
        self._buffer.flush()
        self._opened()

    def hear(self, data: bytes) -> bytes:
        """What goes to the client now."""
        if self._deaf:
            return data
        whole = self._buffer.feed(data)
        if not self._close:
            self._room -= len(whole)
            if self._room < self._buffer.size:  # nobody says so much before a call; from here on it is only passed on
                return whole + self._stop_listening()
            if self._named(whole) is None:
                self._heard.append(whole)
                return whole
            self._attend()
        told = b"".join(map(self._passed, split_events(whole)))
        if self._buffer.size > _LONGEST_EVENT:
            self.failed = True  # what is left of this leg is not known
            return told + self._stop_listening()
        return told

    def _stop_listening(self) -> bytes:
        """Pass everything on from here; return what has been waiting."""
        self._deaf = True
        self._heard.clear()
        return self._buffer.flush()

    def _attend(self) -> None:
        """What has gone out already is part of the leg."""
        self._close = True
        for each in split_events(b"".join(self._heard)):
            self._passed(each)
        self._heard.clear()

    def over(self) -> bytes:
        """The upstream has said all of this leg; what is left of it."""
        rest = self._buffer.flush()
        if rest and not self._close and not self._deaf and self._named(rest):
            self._attend()
        told = self._passed(rest) if rest and self._close and not self._deaf else rest
        self.usages.append(self._usage)
        return told

    @property
    def _used(self) -> list[Block]:
        """What each leg has used, with the one that is being heard."""
        return [*self.usages, self._usage]

    @property
    def asks(self) -> bool:
        """Is there a call of ours to be answered?"""
        return bool(self._held) and not self.failed and self._called

    @property
    def beside(self) -> bool:
        """… while the client has calls to answer as well, and so the answer is at its end?"""
        return self._theirs

    @property
    def inner(self) -> bool:
        """Does the answer go on with another leg?"""
        return self.asks and not self._theirs

    def leg(self) -> Leg:
        return leg(self._blocks(), self.reads, self.names)

    def _passed(self, raw: bytes) -> bytes:
        _, data = read_event(raw)
        try:
            value = parse_bounded(data) if data else None
        except orjson.JSONDecodeError:
            return self._bare(data, raw)
        return self._event(value, raw) if isinstance(value, dict) else raw

    def _bare(self, data: bytes, raw: bytes) -> bytes:
        """An event that is no JSON."""
        return raw

    def _ends(self, raw: bytes) -> bytes:
        """One of the events that end the answer."""
        if self.inner:
            return b""
        if not self.legs and not self.asks:
            return raw
        self.last += raw
        return b""

    @property
    @abstractmethod
    def _called(self) -> bool:
        """Did the model stop in order to have its calls answered?"""

    @abstractmethod
    def _event(self, value: Block, raw: bytes) -> bytes: ...

    @abstractmethod
    def _blocks(self) -> list[Block]:
        """What was said in this leg, as a request carries it."""

    @abstractmethod
    def whole(self, before: Block) -> Block:
        """This leg in one piece, as the one before it came."""


@lru_cache(64)
def _naming(words: frozenset[str]) -> Callable[[bytes], Match[bytes] | None]:
    """Whether a tool of ours is named: every piece of every stream is asked, and this is the fastest way."""
    return pattern(b'"(?:' + b"|".join(escape(word.encode()) for word in sorted(words)) + b')"').search
