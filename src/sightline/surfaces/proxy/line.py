"""What our own server offers beyond ASGI: to take a body where it stays, to hear at
once that a client left, and to write without a task between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

LINE = "sightline.line"
"""Its name among the extensions of a scope; under another server it is missing, and everything works without it."""

AT_ONCE = "sightline.at_once"
"""In the message that begins an answer: the next one follows before anybody else has a turn."""


class Line(Protocol):
    disconnected: bool
    leaving: Callable[[], None] | None  # called when the client has left

    async def whole(self, length: int) -> bytes | bytearray | None:
        """The body of a request that has announced its length; None: the client has left."""

    def write(self, data: bytes) -> bool:
        """Bytes of a body that has begun; false: no more of them until there is room."""
