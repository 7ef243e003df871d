"""The answer's half of a wire, pure: what goes to the client as an answer comes, stalls, breaks or ends.

`listen(state, event)` gives the next state and the bytes to send. What the upstream says goes out as it came;
words of our own appear only while nothing has come yet (keep-alives) and after the upstream broke off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

_blank_line = re.compile(rb"\n\r?\n").search
_ended = re.compile(rb"\n\r?\n\Z").search


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
            whole = state.whole or (ending and (not state.voice.amid or bool(_blank_line(seen, found))))
            tail = seen[-max(map(len, state.voice.last)) :]
            return replace(state, tail=tail, begun=True, ending=ending, whole=whole), data
        case Stalled(between=between):
            # Once the upstream speaks, it keeps its own stream alive.
            return state, b"" if state.begun and not between else state.voice.alive
        case Broken(message=message):
            if state.whole:
                return state, b""
            # A blank line ends the event that was cut, so that the client does not read both as one.
            gap = b"" if not state.begun or _ended(state.tail) else b"\n\n"
            return replace(state, whole=True), gap + state.voice.failure(message)
        case _:
            assert_never(event)
