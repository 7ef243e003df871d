"""Compare two images: changed text, changed states, changed regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.model.seer import LabelledBox
from sightline.reader.colours import compare_colours, format_colour
from sightline.reader.describe import Report
from sightline.reader.field_labels import is_pale_button, label_parts
from sightline.reader.headings import find_titles
from sightline.reader.phrases import normalize
from sightline.reader.reading import (
    TOGGLES,
    Colour,
    ImageReading,
    InterfacePart,
    Pixels,
    TextLine,
    join_part_text,
    select_parts,
)
from sightline.reader.rectangles import enclose_boxes, format_box

_SAME_PLACE = 3  # pixels that a line may be off by and not have moved
_MAX_CHANGES = 60  # changes of one kind that are listed
_BLOCK = 16  # pixels on each side of a block, the unit of comparison
_VISIBLE = 24  # difference in a channel that the eye notices
_MAX_REGIONS = 12
_KINDS = {"check": "check box", "radio": "radio button", "switch": "switch"}
_ON = {"check": "checked", "radio": "selected", "switch": "on"}
_FEW, _HARDLY, _MUCH = 3, 0.1, 0.3  # lines, share of them, share of the picture: beyond these it is another screen


@dataclass(frozen=True, slots=True)
class TextDifference:
    """The lines of two images, matched."""

    appeared: tuple[TextLine, ...]
    vanished: tuple[TextLine, ...]
    moved: tuple[tuple[TextLine, TextLine], ...]
    changed: tuple[tuple[TextLine, TextLine], ...]
    same: tuple[tuple[TextLine, TextLine], ...]


@dataclass(frozen=True, slots=True)
class StateChange:
    """A part or a text that looks different: its name, the change in words, and where it is in the second image."""

    name: str
    change: str
    box: Box


def match_lines(before: ImageReading, after: ImageReading) -> TextDifference:
    """Match each line with the line of the other image that says the same, else with the one in its place."""
    removed, new = list(before.lines), list(after.lines)
    same = _take_pairs(removed, new, lambda one, other: _has_same_text(one, other) and _is_near(one.box, other.box))
    moved = _take_pairs(removed, new, _has_same_text)
    changed = _take_pairs(removed, new, lambda one, other: _is_in_place(one.box, other.box))
    return TextDifference(tuple(new), tuple(removed), tuple(moved), tuple(changed), tuple(same))


def _take_pairs(
    gone: list[TextLine], new: list[TextLine], fits: Callable[[TextLine, TextLine], bool]
) -> list[tuple[TextLine, TextLine]]:
    """Return the pairs that fit, and remove them from both lists."""
    pairs = []
    for one in list(gone):
        other = next((each for each in new if fits(one, each)), None)
        if other is not None:
            gone.remove(one)
            new.remove(other)
            pairs.append((one, other))
    return pairs


def _has_same_text(one: TextLine, other: TextLine) -> bool:
    """Return whether two lines say the same; a space may be read in one and not in the other."""
    return one.text == other.text or (normalize(one.text) == normalize(other.text) and bool(normalize(one.text)))


def _is_near(one: Box, other: Box) -> bool:
    return abs(one.x - other.x) <= _SAME_PLACE and abs(one.y - other.y) <= _SAME_PLACE


def _is_in_place(one: Box, other: Box) -> bool:
    """Return whether two boxes overlap enough, down and across, to be the same thing."""
    down = min(one.bottom, other.bottom) - max(one.y, other.y)
    across = min(one.right, other.right) - max(one.x, other.x)
    return down > 0.5 * min(one.height, other.height) and across > 0.3 * min(one.width, other.width)


def find_state_changes(before: ImageReading, after: ImageReading, lines: TextDifference) -> list[StateChange]:
    """Return toggles that were switched, buttons that were enabled or disabled, and parts and texts of new colours."""
    names = {id(part): name for each in (before, after) for part, name in _name_parts(each)}
    pairs = _match_parts(before, after, names)
    pale = {id(part) for each in (before, after) for part in select_parts(each, "button") if is_pale_button(part, each)}
    changes = [
        StateChange(f'{_KINDS.get(other.kind, other.kind)} "{names[id(other)]}"', change, other.box)
        for one, other in pairs
        for change in _list_part_changes(one, other, pale)
    ]
    if before.photograph or after.photograph:
        return changes
    covered = {after.lines[at] for _, part in pairs for at in part.lines}
    kept = (*lines.same, *lines.moved)
    return changes + [
        StateChange(f'"{new.text}"', change, new.box)
        for old, new in kept
        if new not in covered and (change := _describe_colour_change(old, new))
    ]


def _match_parts(
    before: ImageReading, after: ImageReading, names: Mapping[int, str]
) -> list[tuple[InterfacePart, InterfacePart]]:
    """Return the controls that are in both images: in the same place, or else of the same name."""
    old, new = (select_parts(each, *TOGGLES, "button", "field") for each in (before, after))
    pairs = []
    for one in old:
        similar = [other for other in new if other.kind == one.kind]
        same = [other for other in similar if _is_in_place(one.box, other.box)]
        named = [other for other in similar if names[id(one)] and names[id(other)] == names[id(one)]]
        other = next(iter([each for each in same if each in named] or named or same), None)
        if other is not None:
            new.remove(other)
            pairs.append((one, other))
    return pairs


def _name_parts(reading: ImageReading) -> Iterator[tuple[InterfacePart, str]]:
    labels = label_parts(reading)
    for part in select_parts(reading, *TOGGLES, "button", "field"):
        label = labels.get(part)
        yield part, label.text if label else join_part_text(part, reading) if part.kind == "button" else ""


def _list_part_changes(one: InterfacePart, other: InterfacePart, pale: set[int]) -> Iterator[str]:
    """Yield how a control changed; `pale` are the ids of buttons that may be disabled."""
    if one.checked is not None and other.checked is not None and one.checked != other.checked:
        on = _ON[other.kind]
        yield " → ".join(on if part.checked else f"not {on}" for part in (one, other))
    if (id(one) in pale) != (id(other) in pale):
        yield " → ".join("pale text, perhaps disabled" if id(part) in pale else "enabled" for part in (one, other))
    if other.kind in ("button", "field") and _is_visibly_different(one.colour, other.colour):
        yield f"{format_colour(one.colour)} → {format_colour(other.colour)}"


def _describe_colour_change(old: TextLine, new: TextLine) -> str:
    """Return the colours of a text before and after; "" if they are the same. A new background may mean selected."""
    changes = [
        f"{what} {format_colour(one)} → {format_colour(other)}"
        for what, one, other in (("text", old.ink, new.ink), ("background", old.ground, new.ground))
        if one and other and _is_visibly_different(one, other)
    ]
    return ", ".join(changes)


def _is_visibly_different(one: Colour, other: Colour) -> bool:
    return compare_colours(one, other) > _VISIBLE


def compare_images(before: ImageReading, after: ImageReading, regions: Sequence[Box] | None, first: int = 0) -> Report:
    """Return what changed from one image to the next, in words.

    `regions` are where the pixels of the second image differ; None where the sizes differ.
    """
    lines = match_lines(before, after)
    names = f"Image {first + 1}", f"Image {first + 2}"
    if _is_another_screen(lines, before, after, regions):
        return Report("\n".join(_describe_other_screen(lines, before, after, names)))
    states = find_state_changes(before, after, lines)
    spots = [
        *(LabelledBox(f"{each.name}: {each.change}", each.box, first + 1) for each in states),
        *(LabelledBox(f"appeared: {line.text}", line.box, first + 1) for line in lines.appeared),
        *(LabelledBox(f"vanished: {line.text}", line.box, first) for line in lines.vanished),
        *(LabelledBox(f"changed: {new.text}", new.box, first + 1) for _, new in lines.changed),
        *(LabelledBox(f"moved: {new.text}", new.box, first + 1) for _, new in lines.moved),
        *(LabelledBox("changed region", box, first + 1) for box in regions or ()),
    ]
    same = f"{len(lines.same)} of {len(before.lines)} lines of text are unchanged, in the same place"
    text = [f"From {names[0]} to {names[1]}: {same}."]
    text += [*_describe_changes(lines, states), *_describe_regions(before, after, regions)]
    return Report("\n".join(text), tuple(spots))


def _is_another_screen(
    found: TextDifference, before: ImageReading, after: ImageReading, regions: Sequence[Box] | None
) -> bool:
    """Return whether hardly a line and hardly a part of the picture is the same."""
    similar = sum(SequenceMatcher(None, old.text, new.text).ratio() > 0.5 for old, new in found.changed)
    line_count = max(len(before.lines), len(after.lines))
    share = 1.0 if regions is None else sum(box.size.pixels for box in regions) / max(1, after.size.pixels)
    return (
        line_count >= _FEW and len(found.same) + len(found.moved) + similar <= _HARDLY * line_count and share >= _MUCH
    )


def _describe_other_screen(
    found: TextDifference, before: ImageReading, after: ImageReading, names: tuple[str, str]
) -> Iterator[str]:
    one, other = names
    shared = len(found.same) + len(found.moved)
    lines = f"{len(before.lines)} and {len(after.lines)} lines of text"
    yield f"{one} and {other} are different screens: they have {lines}, and {shared or 'none'} in common."
    if heads := " ".join(filter(None, (_describe_title(one, before), _describe_title(other, after)))):
        yield heads
    if before.size != after.size:
        yield f"The sizes differ: {before.size} and {after.size}."


def _describe_title(name: str, reading: ImageReading) -> str:
    titles = find_titles(reading)
    if titles.bar:
        return f'{name} is titled "{titles.bar.text}".'
    return f'{name} has the heading "{titles.heading.text}".' if titles.heading else ""


def _describe_changes(lines: TextDifference, states: Sequence[StateChange]) -> Iterator[str]:
    yield from _list_changes(
        "Changed state", [f"{each.name}: {each.change} at {format_box(each.box)}" for each in states]
    )
    yield from _list_changes("Appeared", [f'"{line.marked_text}" at {format_box(line.box)}' for line in lines.appeared])
    yield from _list_changes(
        "Disappeared", [f'"{line.marked_text}" from {format_box(line.box)}' for line in lines.vanished]
    )
    yield from _list_changes(
        "Changed",
        [f'"{old.marked_text}" became "{new.marked_text}" at {format_box(new.box)}' for old, new in lines.changed],
    )
    yield from _list_changes(
        "Moved",
        [f'"{new.marked_text}" from {format_box(old.box)} to {format_box(new.box)}' for old, new in lines.moved],
    )


def _describe_regions(before: ImageReading, after: ImageReading, regions: Sequence[Box] | None) -> Iterator[str]:
    if before.size != after.size:
        yield f"The sizes differ: {before.size} and {after.size}."
    if regions:
        yield from _list_changes("Regions whose pixels differ", list(map(format_box, regions)))
    elif regions is not None:
        yield "There is no visible difference in the pixels."


def _list_changes(kind: str, changes: Sequence[str]) -> Iterator[str]:
    if changes:
        more = [f"and {len(changes) - _MAX_CHANGES} more"] if len(changes) > _MAX_CHANGES else []
        yield f"{kind}: " + "; ".join([*changes[:_MAX_CHANGES], *more]) + "."


def find_changed_regions(before: Pixels, after: Pixels) -> list[Box] | None:
    """Return where two images differ, the largest regions first; None if their sizes differ."""
    if before.shape != after.shape:
        return None
    height, width = before.shape[:2]
    rows, columns = -(-height // _BLOCK), -(-width // _BLOCK)
    differs = np.zeros((rows, columns), bool)
    for row in range(rows):  # a strip at a time: the difference of a large image would need as much memory again
        strip = slice(row * _BLOCK, (row + 1) * _BLOCK)
        apart = np.abs(before[strip].astype(np.int16) - after[strip]).max(axis=(0, 2)) > _VISIBLE
        differs[row] = np.logical_or.reduceat(apart, np.arange(0, width, _BLOCK))
    found = [_trim_to_pixels(cells, before, after) for cells in _cluster_blocks(differs)]
    return sorted(found, key=lambda box: -box.size.pixels)[:_MAX_REGIONS]


def _cluster_blocks(cells: NDArray[np.bool_]) -> Iterator[Box]:
    """Yield boxes, in blocks, around those that touch."""
    left = {(int(y), int(x)) for y, x in zip(*cells.nonzero(), strict=True)}
    while left:
        island, edge = [], [left.pop()]
        while edge:
            y, x = edge.pop()
            island.append(Box(x, y, 1, 1))
            near = {(y + down, x + across) for down in (-1, 0, 1) for across in (-2, -1, 0, 1, 2)} & left
            left -= near
            edge += near
        yield enclose_boxes(island)


def _trim_to_pixels(cells: Box, before: Pixels, after: Pixels) -> Box:
    """Return the box of the pixels in some blocks that really differ."""
    y, x = cells.y * _BLOCK, cells.x * _BLOCK
    part = (slice(y, cells.bottom * _BLOCK), slice(x, cells.right * _BLOCK))
    apart = np.abs(before[part].astype(np.int16) - after[part]).max(axis=2) > _VISIBLE
    down, across = np.flatnonzero(apart.any(axis=1)), np.flatnonzero(apart.any(axis=0))
    top, start = int(down[0]), int(across[0])
    return Box(x + start, y + top, int(across[-1]) + 1 - start, int(down[-1]) + 1 - top)
