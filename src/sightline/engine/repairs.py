"""How a request that an upstream has rejected could be mended. Pure: nothing is sent or remembered here."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sightline.engine.answers import Reading
from sightline.model.edit import Edit, Insert
from sightline.model.profile import Lesson
from sightline.model.receipt import Receipt
from sightline.model.rules import Rules
from sightline.model.scene import Json, Path, Scene
from sightline.model.source import Inline
from sightline.profiles.rejections import Rejection
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


_PLAIN = ("image/png", "image/jpeg")


def ways(before: Prepared, said: Rejection) -> Iterator[tuple[Rules, Taught]]:
    """How a rejected request could be mended, the gentlest way first; one that changes nothing is passed over."""
    # The user's word that a model sees stands; but this request was refused, and is mended like any other.
    rules, profile = before.rules, replace(before.rules.profile, settled=False)
    distrustful = replace(rules, distrust=True, poison=rules.poison | _accused(before, said))
    match said.kind:
        case "undecodable" | "media_type":
            yield distrustful, Taught()
            # Every image decodes, and yet one was refused: perhaps a plainer encoding will do.
            yield replace(distrustful, recode=True), Taught()
        case "unclear" | "tool_images":
            if said.kind == "tool_images":  # the model may well see them, only not there
                beside = Lesson(tool_images={profile.wire: "hoist"}, why=said.lesson.why)
                yield replace(rules, profile=profile.learnt(beside)), Taught(beside)
            yield distrustful, Taught()
            # Words are taken by every model.
            blind = Lesson(blind=True, why=said.lesson.why)
            yield replace(rules, profile=profile.learnt(blind)), Taught(suspected=blind)
        case "format":
            plain = Lesson(limits=replace(said.lesson.limits, formats=_PLAIN), why=said.lesson.why)
            yield replace(rules, profile=profile.learnt(said.lesson)), Taught(said.lesson)
            yield replace(rules, profile=profile.learnt(plain)), Taught(plain)
        case _:
            yield replace(rules, profile=profile.learnt(said.lesson)), Taught(said.lesson)


def _accused(before: Prepared, said: Rejection) -> frozenset[str]:
    """The keys of the images that a rejection names by their places in what was sent."""
    # Where lists were made anew, the places of what was sent are not the places of what was read.
    if before.rules.profile.tool_images != "native" or before.reading.routing is not None:
        return frozenset()
    if not said.places:
        return frozenset()
    added: dict[Path, list[int]] = {}
    for edit in before.edits:
        if isinstance(edit, Insert) and isinstance(index := edit.place[-1], int):
            insort(added.setdefault(edit.place[:-1], []), index)
    return frozenset(
        sight.source.key
        for sight in before.scene.sights
        if isinstance(sight.source, Inline) and _sent(sight.place, added) in said.places
    )


def _sent(place: Path, added: Mapping[Path, Sequence[int]]) -> Path:
    """A place of what was read, in what was sent: further on by all that was put before it into the same list."""
    return tuple(
        step if isinstance(step, str) else step + bisect_right(added.get(place[:depth], ()), step)
        for depth, step in enumerate(place)
    )


_PLAIN = ("image/png", "image/jpeg")
