"""A request that is ready to go, and what a rejection of it would teach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sightline.engine.answers import Reading
from sightline.model.edit import Edit
from sightline.model.profile import Lesson
from sightline.model.receipt import Receipt
from sightline.model.rules import Rules
from sightline.model.scene import Json, Scene
from sightline.wire import routed
from sightline.wire.jsonedits import graft
from sightline.wire.jsontext import Buffer, Document


@dataclass(frozen=True, slots=True)
class Prepared:
    """A body as it goes to the upstream."""

    edits: Sequence[Edit]
    reading: Reading
    scene: Scene
    rules: Rules
    receipt: Receipt
    taught: Taught | None = None

    @property
    def body(self) -> Sequence[Buffer]:
        """As bytes, where it was read from bytes."""
        document = self.reading.texts
        assert isinstance(document, Document)
        return document.splice(self.edits)

    def address(self, url: str) -> str:
        """Where it is sent, if `url` is where the client asked."""
        way = self.reading.routing
        return url if way is None else routed.address(self.reading.wire.name, url, way)

    @property
    def tree(self) -> Json:
        """As objects."""
        return graft(self.reading.tree, self.edits)


@dataclass(frozen=True, slots=True)
class Taught:
    """What a rejection will have taught, if the repair that it led to is taken."""

    lesson: Lesson | None = None
    suspected: Lesson | None = None  # likely, but the words could mean another thing: not for the record
    poison: frozenset[str] = frozenset()  # images that this upstream cannot read
