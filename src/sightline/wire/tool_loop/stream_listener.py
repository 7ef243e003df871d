"""Listens to a stream that may contain calls of Sightline's own tools, and decides what the client gets of it.

A model that is offered `analyze_image` beside the client's tools answers in *legs*: it speaks until it calls one of our
tools, the proxy runs that call and asks again, and the model goes on. The client must see one answer, as if it had come
in one piece from one request. So a listener is fed the bytes of each leg in turn and returns the bytes for the client,
under these rules:

1. Other streams aren't touched. Until the name of one of our tools appears, bytes are sent as they came and nothing is
   parsed. Only complete events are sent, so that a name is never cut in two.
2. An event of one of our calls is never sent. Everything before it is, at once: the client doesn't wait for the end of
   a leg.
3. The events that end an answer (stop reason, usage, [DONE]) are held back as long as another leg may follow. They are
   sent with the last leg only, with the usage of all legs added up.
4. Blocks of later legs are renumbered, so that the client counts the blocks of one answer.
5. If a leg calls one of the client's tools as well, the answer ends there. The client runs its calls, the proxy ours
   meanwhile, and `restoration` puts ours back into the conversation when the client returns.
6. Memory is bounded. If too much comes before a call, or one event is too long, everything after that passes unread.
   In the first leg this loses nothing but our call. In a later one the rest isn't known, and `failed` is set.

The states, and what ends each:

    state      what happens to an event                      ends when
    ---------  --------------------------------------------  ------------------------------------------------------
    SCANNING   it is sent and remembered                     one of our names appears: what is remembered is read,
                                                             -> READING; more than _MAX_SCANNED: -> PASSING
    READING    it is parsed; the wire decides what is sent   an event is longer than _MAX_EVENT: -> PASSING, failed
    PASSING    it is sent unread                             the next leg begins: -> READING

The first leg begins in SCANNING, every later one in READING. What a wire must implement is at the end of the class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import lru_cache
from re import Match, escape
from re import compile as pattern

import orjson

from sightline.wire.json_tree import Block, parse_bounded_json
from sightline.wire.sse import EventBuffer, read_event, split_events
from sightline.wire.tool_loop.leg import ClassifyBlock, Leg, build_leg

_MAX_SCANNED = 16 * 1024 * 1024  # bytes
_MAX_EVENT = 32 * 1024 * 1024  # bytes


class ListenerState(Enum):
    SCANNING = auto()
    READING = auto()
    PASSING = auto()


class StreamListener(ABC):
    """Listens to one answer that a client sees. Call `begin_next_leg` before the bytes of another leg."""

    classify_block: ClassifyBlock
    call_keys: Sequence[str] = ()  # keys that can come before the name of a call

    def __init__(self, tool_names: frozenset[str]) -> None:
        self.tool_names = tool_names
        self.failed = False  # the rest of this leg isn't known
        self.earlier_legs = 0
        self.usages: list[Block] = []  # of each finished leg
        self.ending = b""  # the events that end the answer, once they are known
        self._find_name = _compile_names(tool_names.union(self.call_keys))
        self._state = ListenerState.SCANNING
        self._buffer = EventBuffer()
        self._scanned: list[bytes] = []
        self._room = _MAX_SCANNED
        self._begin_leg()

    def _begin_leg(self) -> None:
        """Reset the state of one leg; a wire adds its own."""
        self._blocks_by_number: dict[int, Block] = {}
        self._our_calls: set[int] = set()  # their numbers among the blocks
        self._calls_client = False
        self._stop: str | None = None  # why the model stopped
        self._usage: Block = {}

    # Called by the proxy.

    def begin_next_leg(self) -> None:
        self.earlier_legs += 1
        self._state = ListenerState.READING
        self._buffer.flush()
        self._begin_leg()

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the stream; return those that go to the client now."""
        if self._state is ListenerState.PASSING:
            return data
        complete = self._buffer.feed(data)
        if self._state is ListenerState.SCANNING:
            self._room -= len(complete)
            if self._room < self._buffer.size:
                return complete + self._pass_from_here()
            if self._find_name(complete) is None:
                self._scanned.append(complete)
                return complete
            self._read_scanned_events()
        out = b"".join(map(self._read_event, split_events(complete)))
        if self._buffer.size > _MAX_EVENT:
            self.failed = True
            return out + self._pass_from_here()
        return out

    def finish(self) -> bytes:
        """Return the bytes for the client when the upstream has ended the leg."""
        rest = self._buffer.flush()
        if rest and self._state is ListenerState.SCANNING and self._find_name(rest):
            self._read_scanned_events()
        if self._state is ListenerState.READING:
            rest = b"".join(map(self._read_event, split_events(rest)))
        self.usages.append(self._usage)
        return rest

    @property
    def calls_ours(self) -> bool:
        """Whether the leg has a call of one of our tools that is to be answered."""
        return bool(self._our_calls) and not self.failed and self._stopped_for_calls

    @property
    def calls_client(self) -> bool:
        """Whether the leg has a call of one of the client's tools: then the answer ends with this leg."""
        return self._calls_client

    @property
    def continues(self) -> bool:
        """Whether another leg follows."""
        return self.calls_ours and not self._calls_client

    def build_leg(self) -> Leg:
        return build_leg(self._build_blocks(), self.classify_block, self.tool_names)

    # The states.

    def _pass_from_here(self) -> bytes:
        """Let everything after this pass unread; return what was held back."""
        self._state = ListenerState.PASSING
        self._scanned.clear()
        return self._buffer.flush()

    def _read_scanned_events(self) -> None:
        """Read what was sent already: it is part of the leg."""
        self._state = ListenerState.READING
        for event in split_events(b"".join(self._scanned)):
            self._read_event(event)
        self._scanned.clear()

    def _read_event(self, raw: bytes) -> bytes:
        _, data = read_event(raw)
        try:
            value = parse_bounded_json(data) if data else None
        except orjson.JSONDecodeError:
            return self._end_stream(raw) if data.strip() == b"[DONE]" else raw
        return self._read(value, raw) if isinstance(value, dict) else raw

    # Shared by the wires.

    @property
    def _all_usages(self) -> list[Block]:
        """The usage of every leg, including the current one."""
        return [*self.usages, self._usage]

    def _end_or_hold(self, raw: bytes) -> bytes:
        """Return an event that ends the answer, or hold it back if another leg may follow (rule 3)."""
        if self.continues:
            return b""
        if not self.earlier_legs and not self.calls_ours:
            return raw
        self.ending += raw
        return b""

    def _end_stream(self, raw: bytes) -> bytes:
        """Handle `[DONE]`, with which some upstreams end the streams of any wire."""
        return self._end_or_hold(raw)

    # Implemented by each wire.

    @property
    @abstractmethod
    def _stopped_for_calls(self) -> bool:
        """Whether the model stopped in order to have its calls answered."""

    @abstractmethod
    def _read(self, value: Block, raw: bytes) -> bytes:
        """Read one event; return the bytes of it for the client."""

    @abstractmethod
    def _build_blocks(self) -> list[Block]:
        """Return the blocks of this leg as a request contains them."""

    @abstractmethod
    def build_body(self, before: Block) -> Block:
        """Return this leg as a body that isn't streamed, in the shape of the body before it."""


@lru_cache(64)
def _compile_names(words: frozenset[str]) -> Callable[[bytes], Match[bytes] | None]:
    """Return a search for any of these words in quotes. It runs over every piece of every stream."""
    return pattern(b'"(?:' + b"|".join(escape(word.encode()) for word in sorted(words)) + b')"').search
