"""Find the line that labels each field or toggle, and texts that are paler than others of their kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sightline.model.geometry import Box
from sightline.reader.phrases import match_phrase
from sightline.reader.reading import (
    TOGGLES,
    ImageReading,
    InterfacePart,
    PartKind,
    TextLine,
    find_lines,
    join_part_text,
    select_parts,
)
from sightline.reader.rectangles import are_level, contains_centre, measure_distance, overlap_horizontally

_PALER = 0.7  # of the contrast that other texts have


def label_parts(reading: ImageReading) -> dict[InterfacePart, TextLine]:
    """Return the line that labels each field and toggle, where there is one.

    A form has its labels all before its fields or all above them: where a field has lines at both places, the majority
    decides, else the nearest.
    """
    checks, fields = select_parts(reading, *TOGGLES), select_parts(reading, "field")
    near = {
        part: [line for line in _find_free_lines(part, reading) if _is_label_beside(line, part, reading)]
        for part in (*checks, *fields)
    }
    over = {
        part: [line for line in _find_free_lines(part, reading) if _is_label_above(line, part, fields)]
        for part in fields
    }
    before = sum(map(bool, near.values())) - sum(bool(near[part]) for part in checks)
    above = sum(map(bool, over.values()))
    found = {part: reading.lines[part.lines[0]] for part in checks if part.lines}
    for part in (*checks, *fields):
        ways = [near[part], over.get(part, [])]
        lines = ways[above > before] or ways[above < before] if above != before else [*ways[0], *ways[1]]
        if lines and part not in found:
            found[part] = min(lines, key=lambda line: measure_distance(line.box, part.box))
    return found


def _find_free_lines(part: InterfacePart, reading: ImageReading) -> Iterator[TextLine]:
    """Yield lines with words that are in no other part, unless that one also surrounds this one."""
    others = [
        other for other in select_parts(reading, "field", "button", "bar", "panel", *TOGGLES)
        if other.kind != "panel" or not contains_centre(other.box, part.box)
    ]  # fmt: skip
    used = {at for other in (part, *others) for at in other.lines}
    return (line for at, line in enumerate(reading.lines) if at not in used and any(map(str.isalpha, line.text)))


def _is_label_beside(line: TextLine, part: InterfacePart, reading: ImageReading) -> bool:
    """Return whether a line is in the part's row with nothing between: before a field, usually after a toggle."""
    before, behind = part.box.x - line.box.right, line.box.x - part.box.right
    reach = 0 <= before <= 24 * line.box.height or (part.kind in TOGGLES and 0 <= behind <= 3 * line.box.height)
    return reach and are_level(line.box, part.box) and _is_clear_between(line, part.box, reading)


def _is_label_above(line: TextLine, part: InterfacePart, fields: Sequence[InterfacePart]) -> bool:
    """Return whether a line is directly above a field, and not closer to another field above it."""
    height, gap = line.box.height, part.box.y - line.box.bottom
    if not (-2 <= gap <= 2 * height and part.box.x - height <= line.box.x < part.box.right):
        return False
    return not any(
        field is not part and 0 <= line.box.y - field.box.bottom < gap and overlap_horizontally(line.box, field.box)
        for field in fields
    )


def _is_clear_between(line: TextLine, box: Box, reading: ImageReading) -> bool:
    left, right = min(line.box.right, box.right), max(line.box.x, box.x)
    return not any(
        are_level(line.box, each.box) and left <= each.box.x and each.box.right <= right for each in reading.lines
    )


def find_labelled_part(line: TextLine, reading: ImageReading) -> InterfacePart | None:
    """Return the field or toggle that a line labels."""
    return next((part for part, label in label_parts(reading).items() if label is line), None)


def find_named_parts(reading: ImageReading, phrase: str, *kinds: PartKind) -> list[InterfacePart]:
    """Return the parts that contain a phrase, or are labelled by it."""
    inside = [
        (rank, part)
        for part in select_parts(reading, *kinds)
        if (rank := match_phrase(join_part_text(part, reading), phrase)) is not None
    ]
    if inside:
        best = min(rank for rank, _ in inside)
        return [part for rank, part in inside if rank == best]
    beside = (find_labelled_part(line, reading) for line in find_lines(reading, phrase))
    return [part for part in beside if part and part.kind in kinds]


def _measure_contrast(line: TextLine) -> int:
    if line.ink is None or line.ground is None:
        return 0
    return max(abs(one - other) for one, other in zip(line.ink, line.ground, strict=True))


def is_placeholder(part: InterfacePart, reading: ImageReading) -> bool:
    """Return whether the text in a field is paler than that in others, or than the labels."""
    own = max((_measure_contrast(reading.lines[at]) for at in part.lines), default=0)
    typed = [reading.lines[at] for field in select_parts(reading, "field") if field is not part for at in field.lines]
    beside = [label for field, label in label_parts(reading).items() if field.kind == "field"]
    return 0 < own <= _PALER * max(map(_measure_contrast, (*typed, *beside)), default=0)


def has_disabled_state(part: InterfacePart, reading: ImageReading) -> bool:
    """Return whether a control is among those that are perhaps disabled."""
    return any(state.kind == "disabled" and state.box == part.box for state in reading.states)


def is_pale_button(part: InterfacePart, reading: ImageReading) -> bool:
    """Return whether a button is perhaps disabled, or its text has clearly less contrast than that of other buttons."""
    if has_disabled_state(part, reading):
        return True
    own = max((_measure_contrast(reading.lines[at]) for at in part.lines), default=0)
    others = [reading.lines[at] for each in select_parts(reading, "button") if each is not part for at in each.lines]
    return 0 < own <= _PALER * max(map(_measure_contrast, others), default=0)
