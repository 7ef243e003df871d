"""The two ways through the relay: bytes are read, cut into lines, and written where they go."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from sightline.surfaces.acp.lines import Cutter, Held, Judge, Passing, Text

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
