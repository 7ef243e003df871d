"""One request of a client, once it is known where it goes: what everybody who serves it needs of it."""

from __future__ import annotations

from collections.abc import Callable

from sightline.engine import Reading
from sightline.model.upstream import Visitor
from sightline.surfaces.proxy.headers import Request, credential_of, lent
from sightline.surfaces.proxy.reply import Reply
from sightline.surfaces.proxy.routes import Route


class Errand:
    __slots__ = ("_scope_of", "_visitor", "reply", "request", "way")

    def __init__(self, request: Request, way: Route, reply: Reply, scope_of: Callable[[str], str]) -> None:
        self.request = request
        self.way = way
        self.reply = reply
        self._scope_of = scope_of
        self._visitor: Visitor | None = None

    @property
    def visitor(self) -> Visitor:
        """Who asks. Only on a wire: of other requests nothing is remembered."""
        if self._visitor is None:
            assert self.way.wire is not None
            scope = self._scope_of(credential_of(self.request, self.way))
            self._visitor = Visitor(self.way.upstream, self.way.wire.name, scope, lent(self.request, self.way))
        return self._visitor

    def can_wait(self, reading: Reading | None) -> bool:
        """Whether its client can be kept alive while it waits: it asked for a stream, and its wire has words for it."""
        wire = self.way.wire
        return reading is not None and reading.scene.stream and wire is not None and bool(wire.voice.alive)
