"""Listens to a stream that may hold calls of Sightline's own tools, and decides what of it the client gets.

The theory. A model that is offered `analyze_image` beside the client's tools answers in *legs*: it speaks until it
calls one of our tools, the proxy answers that call and asks again, and it goes on. The client must see one answer,
as if it had come in one piece from one request. So a listener is fed the bytes of each leg in turn and returns the
bytes for the client, under these rules:

1. What does not concern us is not touched. Until the name of one of our tools appears in the stream, bytes go out
   as they came and nothing is parsed. Only whole events go out, so that a name is never cut in two.
2. An event of one of our calls never goes out. What comes before it does, at once: the client is never kept waiting
   for the end of a leg.
3. The events that end an answer (stop reason, usage, [DONE]) are held back while it is open whether another leg
   follows. They go out with the last leg only, with the usage of all legs added up.
4. What follows in later legs is renumbered, so that the client counts the blocks of one answer.
5. Where the client is called as well, the answer ends there: the client answers its calls, ours are answered
   meanwhile and put back into the conversation by `weaving` when it returns.
6. Memory is bounded. If too much comes before a call, or a single event is too long, the listener lets everything
   pass unread from there on. In the first leg that costs nothing; in a later one the rest of the answer is not known,
   and `failed` says so.

The states, and what ends each:

    state      an event                                      ends when
    ---------  --------------------------------------------  ------------------------------------------------------
    SCANNING   goes out; is remembered                       one of our names appears: what is remembered is read,
                                                             -> READING; more than _MOST_SCANNED: -> PASSING
    READING    is parsed; each wire says what goes out       an event longer than _LONGEST_EVENT: -> PASSING, failed
    PASSING    goes out unread                               the next leg begins: -> READING

A first leg begins in SCANNING, every later one in READING. What a wire must say is at the end of the class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import lru_cache
from re import Match, escape
from re import compile as pattern

import orjson

from sightline.wire.jsonsize import parse_bounded
from sightline.wire.sse import EventBuffer, read_event, split_events
from sightline.wire.tool_loop.leg import Block, Leg, Reads, leg

_MOST_SCANNED = 16 * 1024 * 1024  # bytes
_LONGEST_EVENT = 32 * 1024 * 1024  # bytes


class State(Enum):
    SCANNING = auto()
    READING = auto()
    PASSING = auto()


class StreamListener(ABC):
    """One for each answer that a client sees; call `begin_next_leg` before the bytes of another leg."""

    reads: Reads
    beginnings: Sequence[str] = ()  # what a call may begin with before its name comes

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.failed = False  # the rest of this leg is not known
        self.earlier_legs = 0
        self.usages: list[Block] = []  # of each finished leg
        self.ending = b""  # the events that end the answer, once they are known
        self._find_name = _compile_names(names.union(self.beginnings))
        self._state = State.SCANNING
        self._buffer = EventBuffer()
        self._scanned: list[bytes] = []
        self._room = _MOST_SCANNED
        self._begin_leg()

    def _begin_leg(self) -> None:
        """Forget what belongs to one leg; a wire adds what it keeps of one."""
        self._blocks_by_number: dict[int, Block] = {}
        self._our_calls: set[int] = set()  # their numbers among the blocks
        self._calls_client = False
        self._stop: str | None = None  # why the model stopped
        self._usage: Block = {}

    # What the proxy calls.

    def begin_next_leg(self) -> None:
        self.earlier_legs += 1
        self._state = State.READING
        self._buffer.flush()
        self._begin_leg()

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the stream; return those that go to the client now."""
        if self._state is State.PASSING:
            return data
        whole = self._buffer.feed(data)
        if self._state is State.SCANNING:
            self._room -= len(whole)
            if self._room < self._buffer.size:
                return whole + self._pass_from_here()
            if self._find_name(whole) is None:
                self._scanned.append(whole)
                return whole
            self._read_scanned()
        out = b"".join(map(self._read_event, split_events(whole)))
        if self._buffer.size > _LONGEST_EVENT:
            self.failed = True
            return out + self._pass_from_here()
        return out

    def finish(self) -> bytes:
        """Return what goes to the client when the upstream has ended the leg."""
        rest = self._buffer.flush()
        if rest and self._state is State.SCANNING and self._find_name(rest):
            self._read_scanned()
        out = self._read_event(rest) if rest and self._state is State.READING else rest
        self.usages.append(self._usage)
        return out

    @property
    def calls_ours(self) -> bool:
        """Whether the leg holds a call of one of our tools that is to be answered."""
        return bool(self._our_calls) and not self.failed and self._stopped_for_calls

    @property
    def calls_client(self) -> bool:
        """Whether the leg holds a call of one of the client's tools: then the answer ends with this leg."""
        return self._calls_client

    @property
    def goes_on(self) -> bool:
        """Whether another leg follows."""
        return self.calls_ours and not self._calls_client

    def leg(self) -> Leg:
        return leg(self._blocks(), self.reads, self.names)

    # What the states do.

    def _pass_from_here(self) -> bytes:
        """Let everything pass unread; return what was held back."""
        self._state = State.PASSING
        self._scanned.clear()
        return self._buffer.flush()

    def _read_scanned(self) -> None:
        """Read what has gone out already: it is part of the leg."""
        self._state = State.READING
        for event in split_events(b"".join(self._scanned)):
            self._read_event(event)
        self._scanned.clear()

    def _read_event(self, raw: bytes) -> bytes:
        _, data = read_event(raw)
        try:
            value = parse_bounded(data) if data else None
        except orjson.JSONDecodeError:
            return self._end_stream(raw) if data.strip() == b"[DONE]" else raw
        return self._read(value, raw) if isinstance(value, dict) else raw

    # What wires share.

    @property
    def _usages(self) -> list[Block]:
        """The usage of every leg, with the one that is being read."""
        return [*self.usages, self._usage]

    def _end_with(self, raw: bytes) -> bytes:
        """Return an event that ends the answer, or hold it back where another leg may follow (rule 3)."""
        if self.goes_on:
            return b""
        if not self.earlier_legs and not self.calls_ours:
            return raw
        self.ending += raw
        return b""

    def _end_stream(self, raw: bytes) -> bytes:
        """Take `[DONE]`, with which some upstreams end the streams of any wire."""
        return self._end_with(raw)

    # What a wire says.

    @property
    @abstractmethod
    def _stopped_for_calls(self) -> bool:
        """Whether the model stopped in order to have its calls answered."""

    @abstractmethod
    def _read(self, value: Block, raw: bytes) -> bytes:
        """Take one event; return what of it goes to the client."""

    @abstractmethod
    def _blocks(self) -> list[Block]:
        """Return what was said in this leg, as a request carries it."""

    @abstractmethod
    def whole(self, before: Block) -> Block:
        """Return this leg as a body in one piece, in the shape of the one before it."""


@lru_cache(64)
def _compile_names(words: frozenset[str]) -> Callable[[bytes], Match[bytes] | None]:
    """Return a search for any of our names in quotes: it runs over every piece of every stream."""
    return pattern(b'"(?:' + b"|".join(escape(word.encode()) for word in sorted(words)) + b')"').search
