"""The open sessions of /mcp: bounded for each caller and in all, so that nobody can lock others out.

A new session is always let in. Where that is one too many, another one ends, and its id is answered with 404, upon
which a client has to initialize again. Which one ends: of those with no request under way, first one that was only
opened and never used, then the least recently used one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Caller = tuple[str, str]
"""The address and the credential that a session was opened from.

All programs of this machine without a credential are one caller: they share the address of the loopback interface.
"""

MOST_SESSIONS = 1000
MOST_PER_CALLER = 250


@dataclass(slots=True)
class _Session:
    caller: Caller
    requests: int = 0  # that came after the one that opened it
    under_way: int = 0

    @property
    def rank(self) -> tuple[bool, bool]:
        """The session with the lowest rank ends first."""
        return self.under_way > 0, self.requests > _OPENING_REQUESTS


_OPENING_REQUESTS = 1  # `notifications/initialized` belongs to the opening


class Sessions:
    def __init__(self, end: Callable[[str], Awaitable[None]]) -> None:
        """`end` ends a session at the server."""
        self._end = end
        self._open: OrderedDict[str, _Session] = OrderedDict()  # the least recently used one first

    def knows(self, name: str) -> bool:
        """Return whether a session is open."""
        return name in self._open

    @contextmanager
    def using(self, name: str) -> Iterator[None]:
        """Note that a session has a request under way. A session that is unknown here is left alone."""
        session = self._open.get(name)
        if session is None:
            yield
            return
        session.requests += 1
        session.under_way += 1
        self._open.move_to_end(name)
        try:
            yield
        finally:
            session.under_way -= 1

    def add(self, name: str, caller: Caller) -> None:
        """Add a session that was opened. Its client may use it as soon as it knows the name."""
        self._open[name] = _Session(caller)

    async def end_excess(self, name: str, caller: Caller) -> None:
        """End the session that is one too many by this one."""
        own = [each for each, session in self._open.items() if session.caller == caller and each != name]
        if len(own) >= MOST_PER_CALLER:
            await self._end_one(own)
        elif len(self._open) > MOST_SESSIONS:
            await self._end_one([each for each in self._open if each != name])

    def forget(self, name: str) -> None:
        """Remove a session that has ended."""
        self._open.pop(name, None)

    async def _end_one(self, names: list[str]) -> None:
        name = min(names, key=lambda each: self._open[each].rank)  # the first of several is the least recently used
        self.forget(name)
        await self._end(name)
