"""Server-sent events: how they are framed, and what a client gets while a stream starts, stalls, breaks or ends.

An event is a few lines (`event: NAME`, `data: TEXT`, comments) and a blank line that ends it. Lines end in LF, CRLF
or CR; several `data` lines are one text with line breaks in it. https://html.spec.whatwg.org/multipage/server-sent-events.html

The module has three parts, all pure:

1. Framing: write, read, split and buffer events. No other module knows the syntax.
2. The opening: some upstreams answer 200 and then send an error. `read_opening` tells an error from an answer by the
   first bytes, so that the proxy can repair the request before the client has got anything.
3. Relaying: `listen(state, event)` returns the next state and the bytes for the client. The upstream's bytes go out as
   they came. Sightline's own bytes appear only before the first of them (keep-alives), and after the upstream broke
   off (an error event).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

import orjson

from sightline.model.scene import Json
from sightline.model.value import value_class
from sightline.wire.json_tree import parse_bounded_json

# Framing

DONE = b"data: [DONE]\n\n"
"""Ends a stream of OpenAI's Chat Completions, and of all APIs that imitate them."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELDS = (b"event:", b"data:", b"id:", b"retry:", b":")
_find_ends = re.compile(rb"\r?\n\r?\n|\r\r").finditer
_find_end = re.compile(rb"\n\r?\n").search
_ends_at_the_end = re.compile(rb"(?:\n\r?\n|\r\r)\Z").search


def write_event(name: str, data: Json, line_end: bytes = b"\n") -> bytes:
    """Return one event with its blank line; an empty name is left out."""
    head = b"event: " + name.encode() + line_end if name else b""
    return head + b"data: " + orjson.dumps(data) + line_end + line_end


def read_event(event: bytes) -> tuple[str, bytes]:
    """Return the name of an event (empty: it has none) and its data."""
    name, data = "", []
    for line in event.splitlines():
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            name = line[6:].strip().decode("latin-1")
    return name, b"\n".join(data)


def split_events(stream: bytes) -> Iterator[bytes]:
    """Yield each event with the blank line that ends it; the last one may be without."""
    start = 0
    for found in _find_ends(stream):
        yield stream[start : found.end()]
        start = found.end()
    if start < len(stream):
        yield stream[start:]


def has_event_end(stream: bytes, start: int = 0) -> bool:
    """Return whether an event ends somewhere after `start`."""
    return _find_end(stream, start) is not None


def ends_with_event_end(stream: bytes) -> bool:
    return _ends_at_the_end(stream) is not None


def skip_byte_order_mark(stream: bytes | bytearray) -> bytes | bytearray:
    """Return the stream without a byte order mark and blank lines at its beginning."""
    return stream.removeprefix(_BYTE_ORDER_MARK).lstrip()


def begins_stream(stream: bytes | bytearray) -> bool:
    """Return whether these bytes are the start of an event stream, regardless of their content type."""
    return skip_byte_order_mark(stream).startswith(_FIELDS)


def may_begin_stream(stream: bytes) -> bool:
    """Return whether these bytes begin a stream, or may begin one once more bytes have come."""
    return any(stream.startswith(field) or field.startswith(stream) for field in _FIELDS)


class EventBuffer:
    """Holds back the beginning of an event until its end has come."""

    __slots__ = ("_pieces", "_tail", "size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._tail = b""  # the last bytes that are held back: an event's end may begin there
        self.size = 0  # bytes that are held back

    def feed(self, data: bytes) -> bytes:
        """Return all complete events so far; keep the rest until it is complete."""
        if not self.size and data.endswith(b"\n\n"):
            return data
        near = self._tail + data
        ends = [at + len(mark) for mark in (b"\n\n", b"\n\r\n") if (at := near.rfind(mark)) >= 0]
        if not ends:
            self._pieces.append(data)
            self._tail = near[-2:]
            self.size += len(data)
            return b""
        end = max(ends) - len(self._tail)
        complete = b"".join((*self._pieces, data[:end]))
        self._pieces = [data[end:]] if end < len(data) else []
        self._tail = data[end:][-2:]
        self.size = len(data) - end
        return complete

    def flush(self) -> bytes:
        """Return everything that is held back, and hold nothing."""
        rest = b"".join(self._pieces)
        self._pieces, self._tail, self.size = [], b"", 0
        return rest


# The opening


@value_class
class AnswerStart:
    """The upstream has begun to answer, or to send something that isn't for us to judge."""


@value_class
class StreamRejection:
    """An error that came with status 200: the status that it should have had, and its text."""

    status: int
    words: str


Opening = AnswerStart | StreamRejection
ANSWER_START = AnswerStart()

# The beginnings of JSON errors that some upstreams send inside a stream, or instead of one.
_BARE_ERRORS = (b'{"error":{', b'{"error":"', b'{"type":"error"')
_LONGEST_MARK = max(map(len, _BARE_ERRORS))
_BARE_ERROR_LETTERS = {b"", b" ", *(mark[2:3] for mark in _BARE_ERRORS)}  # after a quote: an error may follow

_PRELUDE_TYPES = frozenset({"ping", "response.created", "response.queued", "response.in_progress"})
_STATUS_BY_KIND = (  # words in the name of an error that is about the caller or the load, not about the request
    ("rate_limit", 429),
    ("quota", 429),
    ("billing", 402),
    ("authentication", 401),
    ("permission", 403),
    ("timeout", 408),
    ("overloaded", 529),
    ("server_error", 500),
    ("api_error", 500),
    ("internal", 500),
    ("unavailable", 503),
)


def read_opening(seen: bytes) -> Opening | None:
    """Return what the beginning of a body is; None if more bytes are needed to know."""
    if seen.startswith(b'{"') and seen[2:3] not in _BARE_ERROR_LETTERS:  # nearly always, if it isn't a stream
        return ANSWER_START
    seen = bytes(skip_byte_order_mark(seen))
    if seen.startswith((b"{", b"[")):
        return _read_bare_json(seen)
    if not may_begin_stream(seen):
        return ANSWER_START
    events = list(split_events(seen))
    last = b"" if not events or ends_with_event_end(events[-1]) else events.pop()
    opening = next((found for event in events if (found := _read_opening_event(event))), None)
    return opening or (_read_bare_json(last) if last.startswith((b"{", b"[")) else None)


def _read_bare_json(seen: bytes) -> Opening | None:
    """Read JSON without an event around it. An error is known by its first key."""
    start = b"".join(seen[:256].split()).removeprefix(b"[")
    if not start.startswith(_BARE_ERRORS):
        may_follow = len(start) < _LONGEST_MARK and any(mark.startswith(start) for mark in _BARE_ERRORS)
        return None if may_follow else ANSWER_START
    try:
        value = parse_bounded_json(seen)
    except orjson.JSONDecodeError:
        return None
    return _classify("", value[0] if isinstance(value, list) else value) or ANSWER_START


def _read_opening_event(event: bytes) -> Opening | None:
    """Read one complete event; return None if it is neither an error nor part of an answer."""
    name, data = read_event(event)
    if not data.strip():
        return None
    try:
        return _classify(name, parse_bounded_json(data))
    except orjson.JSONDecodeError:
        return StreamRejection(400, data.decode("utf-8", "replace")) if name == "error" else ANSWER_START


def _classify(name: str, value: Json) -> Opening | None:
    match value:
        case {"type": "response.failed", "response": {"error": dict() | str() as error}} if error:
            return _build_rejection(error)
        case {"error": dict() | str() as error} if error:
            return _build_rejection(error)
        case {"type": "error"}:
            return _build_rejection(value)
        case {"type": str(kind)} if kind in _PRELUDE_TYPES:
            return None
        case _:
            return _build_rejection(value) if name == "error" else ANSWER_START


def _build_rejection(error: Json) -> StreamRejection:
    return StreamRejection(_find_status(error), error if isinstance(error, str) else orjson.dumps(error).decode())


def _find_status(error: Json) -> int:
    """Return the status that an error names, by a number or by its kind; 400 if it names none."""
    if not isinstance(error, dict):
        return 400
    named = [error.get(key) for key in ("code", "status", "type")]
    for value in named:
        if (number := int(value) if isinstance(value, str) and value.isdecimal() else value) and _is_status(number):
            return int(str(number))
    words = " ".join(value.lower() for value in named if isinstance(value, str))
    return next((status for kind, status in _STATUS_BY_KIND if kind in words), 400)


def _is_status(value: Json) -> bool:
    return isinstance(value, int) and 400 <= value < 600


# Relaying


@value_class
class UpstreamBytes:
    data: bytes


@value_class
class UpstreamSilence:
    """Nothing has come for a while."""

    between_legs: bool = False  # one leg of the answer has ended, and the next one hasn't begun


@value_class
class UpstreamFailure:
    """The upstream failed, before its answer or in the middle of it."""

    message: str


UpstreamEvent = UpstreamBytes | UpstreamSilence | UpstreamFailure


@value_class
class StreamFormat:
    """How a stream of one wire ends, is kept alive, and reports an error."""

    end_marks: tuple[bytes, ...]  # one of these is in the last event of a complete stream
    keep_alive: bytes  # an event that every client of the wire skips; empty: there is none
    write_error: Callable[[str], bytes]
    needs_event_end: bool = False  # the last event goes on after its mark: the stream is complete when the event is


@value_class
class StreamState:
    """What is known about a stream so far."""

    format: StreamFormat
    tail: bytes = b"\n"  # the last bytes that were sent: as many as an end mark has
    started: bool = False  # bytes of the upstream were sent
    ending: bool = False  # the end mark was sent
    complete: bool = False  # the last event was sent


def listen(state: StreamState, event: UpstreamEvent) -> tuple[StreamState, bytes]:
    """Return the state after an event, and the bytes that go to the client."""
    match event:
        case UpstreamBytes(data=data):
            seen = state.tail + data
            found = 0 if state.ending else _find_first(seen, state.format.end_marks)
            ending = found >= 0
            complete = state.complete or (ending and (not state.format.needs_event_end or has_event_end(seen, found)))
            tail = seen[-max(map(len, state.format.end_marks)) :]
            return StreamState(state.format, tail, started=True, ending=ending, complete=complete), data
        case UpstreamSilence(between_legs=between_legs):
            # Once the upstream has started, it keeps its own stream alive.
            return state, b"" if state.started and not between_legs else state.format.keep_alive
        case UpstreamFailure(message=message):
            if state.complete:
                return state, b""
            # A blank line ends the event that was cut, so that the client doesn't read both as one.
            gap = b"" if not state.started or ends_with_event_end(state.tail) else b"\n\n"
            return replace(state, complete=True), gap + state.format.write_error(message)
        case _:
            assert_never(event)


def _find_first(seen: bytes, marks: tuple[bytes, ...]) -> int:
    """Return where the first of these marks is, or -1."""
    return min((at for mark in marks if (at := seen.find(mark)) >= 0), default=-1)
