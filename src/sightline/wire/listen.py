"""The answer's half of a wire, pure: what goes to the client as an answer comes, stalls, breaks or ends.

`listen(state, event)` gives the next state and the bytes to send. What the upstream says goes out as it came;
words of our own appear only while nothing has come yet (keep-alives) and after the upstream broke off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from re import compile as pattern
from typing import assert_never

import orjson

from sightline.model.scene import Json
from sightline.wire.jsonsize import parse_bounded
from sightline.wire.sse import (
    ends_with_event_end,
    has_event_end,
    may_begin_stream,
    read_event,
    skip_byte_order_mark,
    split_events,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """It has begun to answer, or to say what is none of our business."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A no: the status that it would have had, and its words."""

    status: int
    words: str


Opening = Answer | Rejected
ANSWER = Answer()

_BARE = (b'{"error":{', b'{"error":"', b'{"type":"error"')  # as some break into their streams, or answer without one
_space = pattern(rb"\s+").sub

_PRELUDE = frozenset({"ping", "response.created", "response.queued", "response.in_progress"})
_KINDS = (  # what stands in the name of an error: it is about the caller or the moment, whatever its words
    ("rate_limit", 429),
    ("quota", 429),
    ("billing", 402),
    ("authentication", 401),
    ("permission", 403),
    ("timeout", 408),
    ("overloaded", 529),
)


def opening(seen: bytes) -> Opening | None:
    """What the beginning of a body is; None: it cannot be known yet."""
    seen = bytes(skip_byte_order_mark(seen))
    if seen.startswith((b"{", b"[")):
        return _bare(seen)
    if not may_begin_stream(seen):
        return ANSWER
    events = list(split_events(seen))
    last = b"" if not events or ends_with_event_end(events[-1]) else events.pop()
    told = next((said for event in events if (said := _event(event))), None)
    return told or (_bare(last) if last.startswith((b"{", b"[")) else None)


def _bare(seen: bytes) -> Opening | None:
    """JSON without an event around it: an error begins with its name."""
    start = _space(b"", seen[:256]).removeprefix(b"[")
    if not start.startswith(_BARE):
        return None if any(mark.startswith(start) for mark in _BARE) else ANSWER
    try:
        value = parse_bounded(seen)
    except orjson.JSONDecodeError:
        return None
    return _said("", value[0] if isinstance(value, list) else value) or ANSWER


def _event(event: bytes) -> Opening | None:
    """One whole event; None: it says nothing."""
    name, data = read_event(event)
    if not data.strip():
        return None
    try:
        return _said(name, parse_bounded(data))
    except orjson.JSONDecodeError:
        return Rejected(400, data.decode("utf-8", "replace")) if name == "error" else ANSWER


def _said(name: str, value: Json) -> Opening | None:
    match value:
        case {"type": "response.failed", "response": {"error": dict() | str() as error}} if error:
            return _rejected(error)
        case {"error": dict() | str() as error} if error:
            return _rejected(error)
        case {"type": "error"}:
            return _rejected(value)
        case {"type": str(kind)} if kind in _PRELUDE:
            return None
        case _:
            return _rejected(value) if name == "error" else ANSWER


def _rejected(error: Json) -> Rejected:
    return Rejected(_status(error), error if isinstance(error, str) else orjson.dumps(error).decode())


def _status(error: Json) -> int:
    if not isinstance(error, dict):
        return 400
    named = [error.get(key) for key in ("code", "status", "type")]
    for value in named:
        if (number := int(value) if isinstance(value, str) and value.isdecimal() else value) and _is_status(number):
            return int(str(number))
    words = " ".join(value.lower() for value in named if isinstance(value, str))
    return next((status for kind, status in _KINDS if kind in words), 400)


def _is_status(value: Json) -> bool:
    return isinstance(value, int) and 400 <= value < 600


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes from the upstream."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Stalled:
    """Nothing has come for a while."""

    between: bool = False  # the upstream has said a part of its answer, and the next one is not there yet


@dataclass(frozen=True, slots=True)
class Broken:
    """The upstream failed: before its answer, or in the middle of it."""

    message: str


Event = Chunk | Stalled | Broken


@dataclass(frozen=True, slots=True)
class Voice:
    """How one wire says, inside a stream, what every wire has to say."""

    last: tuple[bytes, ...]  # one of these stands in the last event of a stream that is whole
    alive: bytes  # a keep-alive that every client of the wire skips; empty: there is none
    failure: Callable[[str], bytes]  # what tells of an error
    amid: bool = False  # more of the last event comes behind it: whole is only what has its end, too


@dataclass(frozen=True, slots=True)
class Hearing:
    """What has been heard of a stream so far."""

    voice: Voice
    tail: bytes = b"\n"  # the end of what has gone out, long enough to know where an event stands
    begun: bool = False  # the upstream's own bytes have gone out
    ending: bool = False  # its last event has begun to
    whole: bool = False  # … and has


def _first(seen: bytes, marks: tuple[bytes, ...]) -> int:
    """Where the first of these stands, or -1."""
    return min((at for mark in marks if (at := seen.find(mark)) >= 0), default=-1)


def listen(state: Hearing, event: Event) -> tuple[Hearing, bytes]:
    match event:
        case Chunk(data=data):
            seen = state.tail + data
            found = 0 if state.ending else _first(seen, state.voice.last)
            ending = found >= 0
            whole = state.whole or (ending and (not state.voice.amid or has_event_end(seen, found)))
            tail = seen[-max(map(len, state.voice.last)) :]
            return replace(state, tail=tail, begun=True, ending=ending, whole=whole), data
        case Stalled(between=between):
            # Once the upstream speaks, it keeps its own stream alive.
            return state, b"" if state.begun and not between else state.voice.alive
        case Broken(message=message):
            if state.whole:
                return state, b""
            # A blank line ends the event that was cut, so that the client does not read both as one.
            gap = b"" if not state.begun or ends_with_event_end(state.tail) else b"\n\n"
            return replace(state, whole=True), gap + state.voice.failure(message)
        case _:
            assert_never(event)
