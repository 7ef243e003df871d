"""Which line is the label of which field or check box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sightline.model.geometry import Box
from sightline.seers.local.boxes import has_middle_of, in_row, overlap_across, spacing
from sightline.seers.local.finding import found, of_kind, text_of
from sightline.seers.local.phrases import match
from sightline.seers.local.seen import Line, Part, PartKind, Seen


def labels(seen: Seen) -> dict[Part, Line]:
    """The line that each field and each check box is labelled by, where there is one.

    A form has its labels all before its fields or all above them: where a field has lines at both places, the way of
    the most decides, else the nearest.
    """
    checks, fields = of_kind(seen, "check", "radio"), of_kind(seen, "field")
    near = {part: [line for line in _free(part, seen) if _beside(line, part, seen)] for part in (*checks, *fields)}
    over = {part: [line for line in _free(part, seen) if _above(line, part, fields)] for part in fields}
    before = sum(map(bool, near.values())) - sum(bool(near[part]) for part in checks)
    above = sum(map(bool, over.values()))
    found = {part: seen.lines[part.lines[0]] for part in checks if part.lines}
    for part in (*checks, *fields):
        ways = [near[part], over.get(part, [])]
        lines = ways[above > before] or ways[above < before] if above != before else [*ways[0], *ways[1]]
        if lines and part not in found:
            found[part] = min(lines, key=lambda line: spacing(line.box, part.box))
    return found


def _free(part: Part, seen: Seen) -> Iterator[Line]:
    """Lines with words that stand in no other part, unless that one is around this one as well."""
    others = [
        other for other in of_kind(seen, "field", "button", "bar", "panel", "check", "radio")
        if other.kind != "panel" or not has_middle_of(other.box, part.box)
    ]  # fmt: skip
    held = {at for other in (part, *others) for at in other.lines}
    return (line for at, line in enumerate(seen.lines) if at not in held and any(map(str.isalpha, line.text)))


def _beside(line: Line, part: Part, seen: Seen) -> bool:
    """In its row, and nothing between: the label of a field stands before it, that of a check box mostly behind."""
    before, behind = part.box.x - line.box.right, line.box.x - part.box.right
    reach = 0 <= before <= 24 * line.box.height or (
        part.kind in ("check", "radio") and 0 <= behind <= 3 * line.box.height
    )
    return reach and in_row(line.box, part.box) and _nothing_between(line, part.box, seen)


def _above(line: Line, part: Part, fields: Sequence[Part]) -> bool:
    """Right over it; what is nearer to another field above is a word about that one."""
    height, gap = line.box.height, part.box.y - line.box.bottom
    if not (-2 <= gap <= 2 * height and part.box.x - height <= line.box.x < part.box.right):
        return False
    return not any(
        field is not part and 0 <= line.box.y - field.box.bottom < gap and overlap_across(line.box, field.box)
        for field in fields
    )


def _nothing_between(line: Line, box: Box, seen: Seen) -> bool:
    left, right = min(line.box.right, box.right), max(line.box.x, box.x)
    return not any(in_row(line.box, each.box) and left <= each.box.x and each.box.right <= right for each in seen.lines)


def part_of(line: Line, seen: Seen) -> Part | None:
    """The field or the box that a line is the label of."""
    return next((part for part, label in labels(seen).items() if label is line), None)


def named(seen: Seen, phrase: str, *kinds: PartKind) -> list[Part]:
    """The parts in which, or beside which, something is said."""
    inside = [
        (rank, part) for part in of_kind(seen, *kinds) if (rank := match(text_of(part, seen), phrase)) is not None
    ]
    if inside:
        best = min(rank for rank, _ in inside)
        return [part for rank, part in inside if rank == best]
    beside = (part_of(line, seen) for line in found(seen, phrase))
    return [part for part in beside if part and part.kind in kinds]
