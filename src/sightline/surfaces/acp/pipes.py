"""The two directions of the relay: bytes are read, cut into lines, told apart by their first bytes, and passed on."""

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

WHOLE = 256 * 1024 * 1024  # bytes: a longer line is nobody's prompt, and goes on unread
HEAD = 64 * 1024  # bytes in which a line has to say what it is
_NAME = re.compile(rb'[ \t\r\n]*"((?:[^"\\]|\\.)*)"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_SCALAR = re.compile(rb'("(?:[^"\\]|\\.)*"|[-+.0-9A-Za-z]+)[ \t\r\n]*([,}])', re.DOTALL)
_OPENS = re.compile(rb"[ \t\r\n]*([^ \t\r\n])")


@dataclass(frozen=True, slots=True)
class Head:
    """What the first members of a message say."""

    method: str | None = None
    id: str | int | float | None = None
    holds: str = ""  # the member whose value is an object or a list; what stands behind it is not known

    @property
    def tells_nothing(self) -> bool:
        """What it is about stands behind an object: it has to be read."""
        return self.method is None and self.holds not in ("result", "error", "")

    @property
    def is_plain_answer(self) -> bool:
        return self.method is None and self.holds in ("result", "error")


def head(line: Text) -> Head | None:
    """What a line is about, as far as its first bytes tell; None: more of them are needed."""
    start = _OPENS.match(line)
    if start is None:
        return None if len(line) < HEAD else Head()
    if start[1] != b"{":
        return Head()
    return _members(line, start.end())


def _members(line: Text, at: int) -> Head | None:
    found: dict[str, str | int | float | None] = {}
    while (name := _NAME.match(line, at)) is not None:
        key = name[1].decode("utf-8", "replace")
        opening = bytes(line[name.end() : name.end() + 1])
        if opening in (b"{", b"["):
            return _made(found, key)
        value = _SCALAR.match(line, name.end())
        if value is None:
            break
        if key in ("id", "method"):
            found[key] = _read(value[1])
        at = value.end()
        if value[2] == b"}":
            return _made(found, "")
    return None if len(line) < HEAD else _made(found, "")


def _made(found: dict[str, str | int | float | None], holds: str) -> Head:
    method = found.get("method")
    return Head(method if isinstance(method, str) else None, found.get("id"), holds)


def _read(token: bytes) -> str | int | float | None:
    try:
        value = json.loads(token)
    except ValueError:
        return None
    return value if isinstance(value, (str, int, float)) else None


Judge = Callable[[Head], int]
"""How many bytes of a line are held for somebody who reads it; 0: it goes on as it comes."""


@dataclass(frozen=True, slots=True)
class Passing:
    """Bytes that go on; with `ends` they end where a line does."""

    data: Text
    ends: bool


@dataclass(frozen=True, slots=True)
class Held:
    """A whole line, with its end."""

    data: bytes
    head: Head


class Cutter:
    """Cuts a stream into what goes on and what is held. Every byte comes out once, in order."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._line = bytearray()  # the begun line, as far as it is kept
        self._head: Head | None = None
        self._most = 0  # bytes of it that are held
        self._passing = False  # its beginning has gone on

    def feed(self, chunk: bytes) -> Iterator[Passing | Held]:
        view, start, at = memoryview(chunk), 0, 0  # from `start` to `at` stands what goes on
        while at < len(chunk):
            end = chunk.find(b"\n", at) + 1
            stop = end or len(chunk)
            if self._passing or self._goes_on(view[at:stop], whole=bool(end)):
                if self._line:
                    assert start == at, "what was kept stands before this chunk"
                    yield Passing(bytes(self._line), ends=False)
                    self._line.clear()
                self._passing = not end
            else:
                if start < at:
                    yield Passing(view[start:at], ends=True)
                self._line += view[at:stop]
                start = stop
                if end:
                    yield self._taken()
            at = stop
        if start < at:
            yield Passing(view[start:at], ends=not self._passing)

    def rest(self) -> Iterator[Passing | Held]:
        """What is left where a stream ends within a line."""
        if self._line:
            yield self._taken()

    def _goes_on(self, piece: memoryview, *, whole: bool) -> bool:
        """Does the begun line, of which this is the next piece, go on without being read?"""
        if self._head is None:
            known: Text = piece if not self._line else bytes(self._line) + bytes(piece[:HEAD])
            self._head = head(known[:HEAD]) or (Head() if whole or len(known) >= HEAD else None)
            self._most = 0 if self._head is None else self._judge(self._head)
        kept = len(self._line) + len(piece)
        if self._head is None or kept <= self._most:
            return False
        self._head = None
        return True

    def _taken(self) -> Held:
        held = Held(bytes(self._line), self._head or Head())
        self._line.clear()
        self._head, self._most = None, 0
        return held


_CHUNK = 1024 * 1024  # bytes, also of a pipe where the system lets it be so wide
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which Python 3.11 does not always name


class Outlet:
    """Where lines are written, one at a time: a line that goes on while it comes in keeps all others waiting."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._line = threading.Lock()
        self._begun = False
        _made_ready(descriptor)

    def write(self, *lines: Text) -> None:
        """Whole lines. Whoever does not read any more is no trouble of ours."""
        with self._line, suppress(OSError):
            for line in lines:
                self._push(line)

    def pass_on(self, data: Text, *, ends: bool) -> None:
        """A piece of what comes in; between its pieces no other line can be."""
        if not self._begun:
            self._line.acquire()
        self._begun = True
        try:
            self._push(data)
        except OSError:
            ends = True
            raise
        finally:
            if ends:
                self._begun = False
                self._line.release()

    def stop(self) -> None:
        """What was begun will never end."""
        if self._begun:
            self._begun = False
            self._line.release()

    def close(self) -> None:
        """Whoever reads there learns that nothing more comes. The number stays taken: it may be anything by then."""
        with self._line:
            silence(self._descriptor)

    def _push(self, data: Text) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]


class Pump(threading.Thread):
    """Everything that one side says, until it says no more or nobody listens."""

    def __init__(
        self, source: int, outlet: Outlet, judge: Judge, read: Callable[[Held], None], done: Callable[[], None]
    ) -> None:
        super().__init__(daemon=True)
        self._source, self._outlet = source, outlet
        self._cutter = Cutter(judge)
        self._read, self._done = read, done
        self.heard = self.ended = time.monotonic()  # when it last said something, and when it said the last
        self.busy = False  # with something that was said
        _made_ready(source)

    def run(self) -> None:
        try:
            while chunk := os.read(self._source, _CHUNK):
                self.busy = True
                for piece in self._cutter.feed(chunk):
                    self._handle(piece)
                self.busy, self.heard = False, time.monotonic()
            for piece in self._cutter.rest():
                self._handle(piece)
        except OSError:  # nobody listens there, so nothing more is taken here
            silence(self._source)
        finally:
            self._outlet.stop()
            self._done()
            self.busy, self.ended = False, time.monotonic()

    def _handle(self, piece: Passing | Held) -> None:
        if isinstance(piece, Held):
            self._read(piece)
        else:
            self._outlet.pass_on(piece.data, ends=piece.ends)


def silence(descriptor: int) -> None:
    """Ends a pipe without giving its number away."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def _made_ready(descriptor: int) -> None:
    """Waits where it has to, and takes as much at once as the system allows."""
    with suppress(OSError, ImportError, AttributeError):
        os.set_blocking(descriptor, True)
        from fcntl import fcntl

        fcntl(descriptor, _SET_PIPE_SIZE, _CHUNK)
