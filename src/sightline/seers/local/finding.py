"""The lines and the parts of what was read, by their words, kind and place."""

from __future__ import annotations

from collections.abc import Iterator

from sightline.model.geometry import Box
from sightline.seers.local.boxes import has_middle_of
from sightline.seers.local.phrases import EXACT, match
from sightline.seers.local.seen import Line, Part, PartKind, Seen


def found(seen: Seen, phrase: str) -> list[Line]:
    """The lines that say something, those that say nothing else first."""
    ranked = [(rank, line) for line in seen.lines if (rank := match(line.text, phrase)) is not None]
    best = min((rank for rank, _ in ranked), default=EXACT)
    return [line for rank, line in ranked if rank == best]


def within(seen: Seen, box: Box) -> Iterator[Line]:
    """The lines whose middle lies in a box."""
    yield from (line for line in seen.lines if has_middle_of(box, line.box))


def of_kind(seen: Seen, *kinds: PartKind) -> list[Part]:
    return [part for part in seen.parts if part.kind in kinds]


def text_of(part: Part, seen: Seen) -> str:
    return " ".join(seen.lines[at].text for at in part.lines)


def unread_in(seen: Seen, box: Box) -> bool:
    """Whether something stands in a box that could not be read."""
    return any(has_middle_of(box, each) for each in (*seen.unread, *seen.late, *seen.marked))


def unread(seen: Seen) -> str:
    """What a count must add: something may be where nothing was read."""
    marks = [part.box for part in of_kind(seen, "check", "radio", "picture")]  # which are no text
    count = sum(not any(has_middle_of(mark, box) for mark in marks) for box in (*seen.unread, *seen.late))
    places = f"in {count} place{'s' if count > 1 else ''} text could not be read" if count else ""
    return places or ("" if seen.searched else "not all of it was searched")
