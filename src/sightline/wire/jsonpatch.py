"""Edits of a JSON text: they are written where they belong, and every other character of it stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sightline.model.edit import Edit, Insert, Rebuild, Remove, Replace
from sightline.model.scene import Json, Path
from sightline.wire.jsonplaces import Member, Slot, locate
from sightline.wire.jsontree import dumps


def patched(text: str, edits: Sequence[Edit]) -> str:
    """A JSON text after `edits`: every other character of it stays."""
    slots = locate(text, [place for edit in edits for place in (edit.place, *_kept(edit))])
    pieces: list[str] = []
    at = 0
    for start, end, new in sorted(_strokes(text, edits, slots), key=lambda stroke: stroke[0]):
        if start >= at:  # else it stands in what another edit has replaced already
            pieces += [text[at:start], new]
            at = end
    return "".join([*pieces, text[at:]])


def _strokes(text: str, edits: Sequence[Edit], slots: Mapping[Path, Slot]) -> Iterator[tuple[int, int, str]]:
    """What is written, each time from where to where.

    Insertions at one place keep the order in which they were asked for, and stand before whatever replaces the value
    there; of several that do, the first.
    """
    together: dict[Path, list[Edit]] = {}
    for edit in edits:
        together.setdefault(edit.place, []).append(edit)
    leaving: dict[Path, list[Member]] = {}
    for place, here in together.items():
        slot = slots[place]
        inserted = [edit for edit in here if isinstance(edit, Insert)]
        others = [edit for edit in here if not isinstance(edit, Insert)]
        if any(isinstance(edit, Remove) for edit in others):
            leaving.setdefault(place[:-1], []).extend(slot.members)
            continue
        values = ",".join([_value(edit, text, slots) for edit in (*inserted, *others[:1])])
        yield (slot.start, slot.end, values) if others else (slot.start, slot.start, slot.lead + values + slot.trail)
    for members in leaving.values():
        yield from _cuts(members)


def _cuts(members: list[Member]) -> Iterator[tuple[int, int, str]]:
    """Of the members that leave one object: each takes a comma along, the one behind it where nothing stays before."""
    first = 0
    for member in sorted(members):
        if member.number == first:
            first += 1
            yield member.start, member.following, ""
        else:
            yield member.before, member.end, ""


def _kept(edit: Edit) -> list[Path]:
    """The places of the values that an edit puts elsewhere as they are."""
    return [(*edit.place, each) for each in edit.elements if isinstance(each, int)] if isinstance(edit, Rebuild) else []


def _value(edit: Edit, text: str, slots: Mapping[Path, Slot]) -> str:
    """The text that an edit writes."""
    if isinstance(edit, Replace | Insert):
        return dumps(edit.value)
    assert isinstance(edit, Rebuild), "what leaves writes nothing"
    return f"[{','.join([_element(edit.place, each, text, slots) for each in edit.elements])}]"


def _element(place: Path, each: int | dict[str, Json], text: str, slots: Mapping[Path, Slot]) -> str:
    if not isinstance(each, int):
        return dumps(each)
    kept = slots[(*place, each)]
    return text[kept.start : kept.end]
