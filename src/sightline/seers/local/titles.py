"""What an image is titled by: its title bar, or its largest line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sightline.model.geometry import Box
from sightline.seers.local.boxes import overlap_across
from sightline.seers.local.finding import of_kind
from sightline.seers.local.seen import Line, Seen

_LARGER = 1.1  # times the usual size of letters is a heading


@dataclass(frozen=True, slots=True)
class Titles:
    bar: Line | None  # in a title bar
    heading: Line | None  # larger than the rest beside bars and buttons,
    largest: bool = False  # and than everything else that was read


def titles(seen: Seen) -> Titles:
    bars = sorted((part for part in of_kind(seen, "bar") if part.lines), key=lambda part: part.box.y)
    heads = [seen.lines[part.lines[0]] for part in bars if _has_most_below(part.box, seen)]
    head = heading(seen)
    others = [letter_size(line) for line in seen.lines if line is not head]
    largest = head is not None and all(letter_size(head) > size for size in others)
    return Titles(heads[0] if heads else None, head, largest)


def _has_most_below(box: Box, seen: Seen) -> bool:
    """A bar at the foot of a window titles nothing."""
    level = [line.box for line in seen.lines if overlap_across(line.box, box)]
    return sum(each.y >= box.bottom for each in level) > sum(each.bottom <= box.y for each in level)


def heading(seen: Seen) -> Line | None:
    """The largest line beside those of bars, buttons and cells, if clearly larger than most; of equals the first."""
    held = {at for part in of_kind(seen, "button", "field", "bar") for at in part.lines}
    cells = {at for table in seen.tables for row in table.rows[1:] for cell in row for at in cell}
    free = [at for at, line in enumerate(seen.lines) if at not in held and any(map(str.isalpha, line.text))]
    sizes = {at: letter_size(seen.lines[at]) for at in free}
    largest = max((at for at in free if at not in cells), key=sizes.__getitem__, default=None)
    if largest is None:
        return None
    usual = sorted(sizes.values())[len(sizes) // 2]
    return seen.lines[largest] if sizes[largest] >= usual * _LARGER or len(free) == 1 else None


def letter_size(line: Line) -> float:
    """The size of its letters, by the height of its ink: letters with a tail, or without a head, differ in that."""
    head = 0.74 if re.search(r"[^\W_acegmnopqrsuvwxyz]|[()\[\]{}/|]", line.text) else 0.54
    tail = 0.21 if re.search(r"[gjpqyQ,;()\[\]{}/|_]", line.text) else 0.0
    upright = line.box.height <= 2 * line.box.width or len(line.text) < 3
    return (line.box.height if upright else line.box.width) / (head + tail)
