"""The types of ASGI, and what this server offers an application beyond it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

Scope = dict[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

LINE = "sightline.line"
"""The key of the `Line` among the extensions of a scope. Other servers do not set it; applications work without it."""

AT_ONCE = "sightline.at_once"
"""A key of `http.response.start`: the first bytes of the body follow before the event loop runs anything else."""


class Line(Protocol):
    """Direct access to the connection of one request: no message per piece of a body, no task that waits."""

    disconnected: bool
    leaving: Callable[[], None] | None  # called when the client disconnects

    async def whole(self, length: int) -> bytes | bytearray | None:
        """Return the body of a request whose content-length is `length`, or None if the client disconnected."""

    def write(self, data: bytes) -> bool:
        """Write bytes of a response body that has begun; false means: wait with the next ones until there is room."""
