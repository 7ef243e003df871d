"""Line-based pipes: split a stream into lines, and hold or forward each line depending on its first bytes.

A line that isn't held is not buffered: its bytes are forwarded as they arrive, however long it is.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

Text = bytes | bytearray | memoryview

MAX_LINE = 256 * 1024 * 1024  # bytes: a longer line is not a prompt, and passes through unread
MAX_HEAD = 64 * 1024  # bytes within which a line must say which message it is
_NAME = re.compile(rb'[ \t\r\n]*"((?:[^"\\]|\\.)*)"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_SCALAR = re.compile(rb'("(?:[^"\\]|\\.)*"|[-+.0-9A-Za-z]+)[ \t\r\n]*([,}])', re.DOTALL)
_FIRST_BYTE = re.compile(rb"[ \t\r\n]*([^ \t\r\n])")


@dataclass(frozen=True, slots=True)
class MessageHead:
    """What the first members of a message say, up to the first one whose value is an object or a list."""

    method: str | None = None
    id: str | int | float | None = None
    object_member: str = ""  # the name of that member; what follows it is not known

    @property
    def is_undecided(self) -> bool:
        """Whether the rest of the line is needed to know which message it is."""
        return self.method is None and self.object_member not in ("result", "error", "")

    @property
    def is_response(self) -> bool:
        return self.method is None and self.object_member in ("result", "error")


def parse_head(line: Text) -> MessageHead | None:
    """Return what the first bytes of a line say about it; None: more bytes are needed."""
    start = _FIRST_BYTE.match(line)
    if start is None:
        return None if len(line) < MAX_HEAD else MessageHead()
    if start[1] != b"{":
        return MessageHead()
    return _parse_members(line, start.end())


def _parse_members(line: Text, at: int) -> MessageHead | None:
    members: dict[str, str | int | float | None] = {}
    while (name := _NAME.match(line, at)) is not None:
        key = name[1].decode("utf-8", "replace")
        opening = bytes(line[name.end() : name.end() + 1])
        if opening in (b"{", b"["):
            return _build_head(members, key)
        value = _SCALAR.match(line, name.end())
        if value is None:
            break
        if key in ("id", "method"):
            members[key] = _parse_scalar(value[1])
        at = value.end()
        if value[2] == b"}":
            return _build_head(members, "")
    return None if len(line) < MAX_HEAD else _build_head(members, "")


def _build_head(members: dict[str, str | int | float | None], object_member: str) -> MessageHead:
    method = members.get("method")
    return MessageHead(method if isinstance(method, str) else None, members.get("id"), object_member)


def _parse_scalar(token: bytes) -> str | int | float | None:
    try:
        value = json.loads(token)
    except ValueError:
        return None
    return value if isinstance(value, (str, int, float)) else None


LimitLine = Callable[[MessageHead], int]
"""Returns how many bytes of a line may be held; 0: it passes through."""


@dataclass(frozen=True, slots=True)
class PassedBytes:
    """Bytes that pass through; `ends_line`: they end with the end of a line."""

    data: Text
    ends_line: bool


@dataclass(frozen=True, slots=True)
class HeldLine:
    """A whole line, with its line break."""

    data: bytes
    head: MessageHead


class LineSplitter:
    """Splits a stream into bytes that pass through and lines that are held. Every byte comes out once, in order."""

    def __init__(self, limit_line: LimitLine) -> None:
        self._limit_line = limit_line
        self._line = bytearray()  # the part of the current line that is kept
        self._head: MessageHead | None = None
        self._limit = 0  # bytes of it that may be kept
        self._passing = False  # its beginning has passed through

    def feed(self, chunk: bytes) -> Iterator[PassedBytes | HeldLine]:
        view, start, at = memoryview(chunk), 0, 0  # from `start` to `at` the bytes pass through
        while at < len(chunk):
            end = chunk.find(b"\n", at) + 1
            stop = end or len(chunk)
            if self._passing or self._passes_on(view[at:stop], whole=bool(end)):
                if self._line:
                    assert start == at, "the kept part comes before this chunk"
                    yield PassedBytes(bytes(self._line), ends_line=False)
                    self._line.clear()
                self._passing = not end
            else:
                if start < at:
                    yield PassedBytes(view[start:at], ends_line=True)
                self._line += view[at:stop]
                start = stop
                if end:
                    yield self._take_line()
            at = stop
        if start < at:
            yield PassedBytes(view[start:at], ends_line=not self._passing)

    def flush(self) -> Iterator[PassedBytes | HeldLine]:
        """Return the rest of a stream that ends within a line."""
        if self._line:
            yield self._take_line()

    def _passes_on(self, piece: memoryview, *, whole: bool) -> bool:
        """Return whether the current line, of which this is the next piece, passes through."""
        if self._head is None:
            beginning: Text = piece if not self._line else bytes(self._line) + bytes(piece[:MAX_HEAD])
            self._head = parse_head(beginning[:MAX_HEAD]) or (
                MessageHead() if whole or len(beginning) >= MAX_HEAD else None
            )
            self._limit = 0 if self._head is None else self._limit_line(self._head)
        kept = len(self._line) + len(piece)
        if self._head is None or kept <= self._limit:
            return False
        self._head = None
        return True

    def _take_line(self) -> HeldLine:
        line = HeldLine(bytes(self._line), self._head or MessageHead())
        self._line.clear()
        self._head, self._limit = None, 0
        return line


_CHUNK = 1024 * 1024  # bytes; also the size of a pipe, if the system allows it
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which Python 3.11 does not define everywhere


class LineWriter:
    """Writes lines, one at a time: while a line passes through piece by piece, all others wait."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._line = threading.Lock()
        self._in_line = False
        _configure_pipe(descriptor)

    def write(self, *lines: Text) -> None:
        """Write whole lines. A reader that has gone away is ignored."""
        with self._line, suppress(OSError):
            for line in lines:
                self._write_all(line)

    def pass_on(self, data: Text, *, ends_line: bool) -> None:
        """Write a piece of a line; no other line is written before the line ends."""
        if not self._in_line:
            self._line.acquire()
        self._in_line = True
        try:
            self._write_all(data)
        except OSError:
            ends_line = True
            raise
        finally:
            if ends_line:
                self._in_line = False
                self._line.release()

    def abandon_line(self) -> None:
        """Let other lines be written, because the current one will never end."""
        if self._in_line:
            self._in_line = False
            self._line.release()

    def close(self) -> None:
        """Close the pipe for its reader. The descriptor stays in use, so no other file can get its number."""
        with self._line:
            redirect_to_null(self._descriptor)

    def _write_all(self, data: Text) -> None:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(self._descriptor, remaining) :]


class LinePump(threading.Thread):
    """A thread that relays everything from one side to the other, until one of them closes its end."""

    def __init__(
        self,
        source: int,
        writer: LineWriter,
        limit_line: LimitLine,
        on_line: Callable[[HeldLine], None],
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(daemon=True)
        self._source, self._outlet = source, writer
        self._cutter = LineSplitter(limit_line)
        self._read, self._done = on_line, on_end
        self.last_read_at = self.ended_at = time.monotonic()
        self.is_busy = False  # with bytes that it has read
        _configure_pipe(source)

    def run(self) -> None:
        try:
            while chunk := os.read(self._source, _CHUNK):
                self.is_busy = True
                for piece in self._cutter.feed(chunk):
                    self._handle(piece)
                self.is_busy, self.last_read_at = False, time.monotonic()
            for piece in self._cutter.flush():
                self._handle(piece)
        except OSError:  # the other side has closed its end, so nothing more is read here
            redirect_to_null(self._source)
        finally:
            self._outlet.abandon_line()
            self._done()
            self.is_busy, self.ended_at = False, time.monotonic()

    def _handle(self, piece: PassedBytes | HeldLine) -> None:
        if isinstance(piece, HeldLine):
            self._read(piece)
        else:
            self._outlet.pass_on(piece.data, ends_line=piece.ends_line)


def redirect_to_null(descriptor: int) -> None:
    """Close a pipe but keep its descriptor in use."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, descriptor)
        os.close(null)


def _configure_pipe(descriptor: int) -> None:
    """Make a pipe blocking, and as large as the system allows."""
    with suppress(OSError, ImportError, AttributeError):
        os.set_blocking(descriptor, True)
        from fcntl import fcntl

        fcntl(descriptor, _SET_PIPE_SIZE, _CHUNK)
