"""Server-sent events: the one module that knows how they are framed.

An event is a few lines (`event: NAME`, `data: TEXT`, comments) and a blank line that ends it. Lines end in LF, CRLF
or CR; several `data` lines are one text with line breaks in it. https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from sightline.model.scene import Json

DONE = b"data: [DONE]\n\n"
"""Ends the streams of OpenAI's Chat Completions, and of all that imitate them."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELDS = (b"event:", b"data:", b"id:", b"retry:", b":")
_find_ends = re.compile(rb"\r?\n\r?\n|\r\r").finditer
_find_end = re.compile(rb"\n\r?\n").search
_ends_at_the_end = re.compile(rb"(?:\n\r?\n|\r\r)\Z").search


def write_event(name: str, data: Json, line_end: bytes = b"\n") -> bytes:
    """Return one event, with its blank line; an empty name is left out."""
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
    """Return whether an event ends somewhere behind `start`."""
    return _find_end(stream, start) is not None


def ends_with_event_end(stream: bytes) -> bool:
    return _ends_at_the_end(stream) is not None


def skip_byte_order_mark(stream: bytes | bytearray) -> bytes | bytearray:
    """Return the stream without a byte order mark and blank lines at its beginning."""
    return stream.removeprefix(_BYTE_ORDER_MARK).lstrip()


def begins_stream(stream: bytes | bytearray) -> bool:
    """Return whether these bytes are the beginning of events, whatever they are called."""
    return skip_byte_order_mark(stream).startswith(_FIELDS)


def may_begin_stream(stream: bytes) -> bool:
    """Return whether these bytes begin a stream or might, once more of them have come."""
    return any(stream.startswith(field) or field.startswith(stream) for field in _FIELDS)


class EventBuffer:
    """Holds back the beginning of an event until its end has come."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0  # bytes that are held back

    def feed(self, data: bytes) -> bytes:
        """Return all whole events of what has come; the rest waits for its end."""
        if not self.size and data.endswith(b"\n\n"):
            return data
        before = self._pieces[-1][-3:] if self._pieces else b""
        near = before + data
        end = max(near.rfind(b"\n\n") + 2, near.rfind(b"\n\r\n") + 3) - len(before)
        if end <= 2 - len(before) or end < 0:  # neither was found
            self._pieces.append(data)
            self.size += len(data)
            return b""
        whole = b"".join((*self._pieces, data[:end]))
        self._pieces = [data[end:]] if end < len(data) else []
        self.size = len(data) - end
        return whole

    def flush(self) -> bytes:
        """Return what is held back, and hold nothing."""
        rest = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return rest
