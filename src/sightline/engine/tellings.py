"""What was said at the places of conversations, for as long as the record has room, and a while longer."""

from __future__ import annotations

from sightline.engine.fairness import FairThreads
from sightline.engine.shelf import Shelf
from sightline.model.ports import Store
from sightline.model.records import Said, Telling, read
from sightline.model.upstream import Visitor

_UNTAKEN = 4096


class Tellings:
    def __init__(self, record: Store) -> None:
        self._record = record
        self._threads = FairThreads()
        self._untaken: Shelf[Telling] = Shelf(_UNTAKEN)  # what the record had no room for: nobody is asked twice

    def told(self, visitor: Visitor, turn: str, *images: str) -> Said | None:
        """What was said of these at a place, or why nothing could be."""
        if not turn:
            return None
        key = visitor.scope, turn, tuple(sorted(images))
        found = self._record.descriptions.read_pinned(*key) or self._untaken.get(key)
        return read(found) if found else None

    async def tell(self, visitor: Visitor, telling: Telling) -> Said:
        """Words for their place; what stands there then, which may be another's."""
        if not telling.turn:
            return read(telling)
        key = visitor.scope, telling.turn, telling.images
        stands = await self._threads.run(visitor.scope, self._record.descriptions.pin, visitor.scope, telling)
        if self._record.descriptions.read_pinned(*key) is None:
            self._untaken.put(key, stands)
        return read(stands)
