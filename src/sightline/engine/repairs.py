"""How a request that an upstream has rejected could be mended. Pure: nothing is sent or remembered here."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sightline.engine.prepared import Prepared, Taught
from sightline.model.edit import Insert
from sightline.model.profile import Lesson
from sightline.model.rules import Rules
from sightline.model.scene import Path
from sightline.model.source import Inline
from sightline.profiles.rejections import Rejection

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
