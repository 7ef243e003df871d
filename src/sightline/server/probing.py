"""Finds out whether the client of a half-closed connection has left.

When a client will send no more (FIN), TCP does not tell whether it still listens (`shutdown(SHUT_WR)`, `nc -N`) or has
left (`close()`). Most servers and proxies take it for the latter: nginx and Go cancel the request. Here it gets its
response, and something is written meanwhile that does not change the response (`RequestCycle.probe`), after a moment
and again in growing intervals. A kernel whose process has closed the socket answers that with a reset, and the
connection is aborted, which cancels the request; a client that listens skips it.

An HTTP/1.0 client may not be sent an interim response, and a response with a content-length has no room for a probe:
there the response itself is the next thing that finds out.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from sightline.server.cycle import RequestCycle

_FIRST_SECONDS = 0.1  # most responses are complete by then
_GROWTH = 4  # of the interval between two probes
_LOOK_SECONDS = 1.0  # between two looks at the socket: from afar, a reset takes a while


class ClientProbe:
    """Probes the client of the request that is being served, until `stop` or until it turns out to have left."""

    def __init__(self, transport: asyncio.Transport, serving: Callable[[], RequestCycle | None]) -> None:
        self._transport = transport
        self._serving = serving
        self._loop = asyncio.get_running_loop()
        self._interval = _FIRST_SECONDS
        self._next = self._loop.time() + _FIRST_SECONDS
        self._timer = self._loop.call_later(_FIRST_SECONDS, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        now, cycle = self._loop.time(), self._serving()
        if now >= self._next and cycle is not None and not self._transport.get_write_buffer_size():
            cycle.probe()
            self._interval *= _GROWTH
            self._next = now + self._interval
        if self._was_reset():
            self._transport.abort()
        elif not self._transport.is_closing():
            self._timer = self._loop.call_later(_LOOK_SECONDS, self._look)

    def _was_reset(self) -> bool:
        """Ask the socket: it is not read any more, and it may be long until it is written to."""
        sock = self._transport.get_extra_info("socket")
        return sock is not None and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
