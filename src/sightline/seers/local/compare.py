"""Several images at once: what text appeared, vanished, moved or changed from each to the next, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from sightline.model.asking import Spot
from sightline.model.geometry import Box
from sightline.seers.local.boxes import corners, union
from sightline.seers.local.phrases import key
from sightline.seers.local.seen import Line, Seen
from sightline.seers.local.subjects import Said
from sightline.seers.local.titles import titles

if TYPE_CHECKING:
    from sightline.seers.local.regions import Pixels

_STILL = 3  # pixels that a line may be off by and not have moved
_MOST = 60  # changes of one kind that are told
_BLOCK = 16  # pixels on each side of what is compared as one,
_VISIBLE = 24  # and how much of a channel must differ somewhere in it
_REGIONS = 12
_FEW, _HARDLY, _MUCH = 3, 0.1, 0.3  # lines, and shares of them and of the picture: less is another screen
_compares = re.compile(
    r"\b(?:compar\w*|differ\w*|chang\w*|same|identical|alike|between|new|appear\w*|disappear\w*|vanish\w*|mov(?:ed|e)|"
    r"before|after|added|removed|missing|now|versus|vs)\b",
    re.IGNORECASE,
)


def is_comparison(question: str) -> bool:
    return not question or _compares.search(question) is not None


@dataclass(frozen=True, slots=True)
class Difference:
    appeared: tuple[Line, ...]
    vanished: tuple[Line, ...]
    moved: tuple[tuple[Line, Line], ...]
    changed: tuple[tuple[Line, Line], ...]
    same: int


def difference(before: Seen, after: Seen) -> Difference:
    """Each line of the one with the line of the other that says the same, else with the one in its place."""
    gone, new = list(before.lines), list(after.lines)
    still = _paired(gone, new, lambda one, other: _same(one, other) and _near(one.box, other.box))
    moved = _paired(gone, new, _same)
    changed = _paired(gone, new, lambda one, other: _in_place(one.box, other.box))
    return Difference(tuple(new), tuple(gone), tuple(moved), tuple(changed), len(still))


def _paired(gone: list[Line], new: list[Line], fits: object) -> list[tuple[Line, Line]]:
    """The pairs that fit, taken out of both lists."""
    pairs = []
    for one in list(gone):
        other = next((each for each in new if fits(one, each)), None)  # type: ignore[operator]
        if other is not None:
            gone.remove(one)
            new.remove(other)
            pairs.append((one, other))
    return pairs


def _same(one: Line, other: Line) -> bool:
    """A reader may see a space at one time and none at another."""
    return one.text == other.text or (key(one.text) == key(other.text) and bool(key(one.text)))


def _near(one: Box, other: Box) -> bool:
    return abs(one.x - other.x) <= _STILL and abs(one.y - other.y) <= _STILL


def _in_place(one: Box, other: Box) -> bool:
    """Whether two boxes overlap enough, down and across, to be the same thing at one place."""
    down = min(one.bottom, other.bottom) - max(one.y, other.y)
    across = min(one.right, other.right) - max(one.x, other.x)
    return down > 0.5 * min(one.height, other.height) and across > 0.3 * min(one.width, other.width)


def compare(before: Seen, after: Seen, regions: Sequence[Box] | None, first: int = 0) -> Said:
    """Two images in words; `regions` of the second are where pixels differ, None where that cannot be compared."""
    found = difference(before, after)
    one, other = f"Image {first + 1}", f"Image {first + 2}"
    if _unrelated(found, before, after, regions):
        return Said("\n".join(_apart(found, before, after, (one, other))))
    said = list(_told(found, before, after, regions, (one, other)))
    spots = [
        *(Spot(f"appeared: {line.text}", line.box, first + 1) for line in found.appeared),
        *(Spot(f"vanished: {line.text}", line.box, first) for line in found.vanished),
        *(Spot(f"changed: {new.text}", new.box, first + 1) for _, new in found.changed),
        *(Spot(f"moved: {new.text}", new.box, first + 1) for _, new in found.moved),
        *(Spot("changed region", box, first + 1) for box in regions or ()),
    ]
    return Said("\n".join(said), tuple(spots))


def _unrelated(found: Difference, before: Seen, after: Seen, regions: Sequence[Box] | None) -> bool:
    """Whether hardly a line of the one is in the other, and hardly a part of the picture is the same."""
    alike = sum(SequenceMatcher(None, old.text, new.text).ratio() > 0.5 for old, new in found.changed)
    most = max(len(before.lines), len(after.lines))
    share = 1.0 if regions is None else sum(box.size.pixels for box in regions) / max(1, after.size.pixels)
    return most >= _FEW and found.same + len(found.moved) + alike <= _HARDLY * most and share >= _MUCH


def _apart(found: Difference, before: Seen, after: Seen, names: tuple[str, str]) -> Iterator[str]:
    one, other = names
    shared = found.same + len(found.moved)
    both = f"{shared} {'is' if shared == 1 else 'are'}" if shared else "none is"
    lines = f"{len(before.lines)} and {len(after.lines)} lines of text"
    yield f"{one} and {other} are different screens: of their {lines} {both} in both."
    if heads := " ".join(filter(None, (_head(one, before), _head(other, after)))):
        yield heads
    if before.size != after.size:
        yield f"The sizes differ: {before.size} and {after.size}."


def _head(name: str, seen: Seen) -> str:
    there = titles(seen)
    if there.bar:
        return f'{name} is titled "{there.bar.text}".'
    return f'{name} has the heading "{there.heading.text}".' if there.heading else ""


def _told(
    found: Difference, before: Seen, after: Seen, regions: Sequence[Box] | None, names: tuple[str, str]
) -> Iterator[str]:
    one, other = names
    whole = len(before.lines)
    yield f"From {one} to {other}: {found.same} of {whole} lines of text are the same, in the same place."
    yield from _rows("Appeared", [f'"{line.text}" at {corners(line.box)}' for line in found.appeared])
    yield from _rows("Vanished", [f'"{line.text}" from {corners(line.box)}' for line in found.vanished])
    yield from _rows(
        "Changed", [f'"{old.text}" became "{new.text}" at {corners(new.box)}' for old, new in found.changed]
    )
    yield from _rows(
        "Moved", [f'"{new.text}" from {corners(old.box)} to {corners(new.box)}' for old, new in found.moved]
    )
    if before.size != after.size:
        yield f"The sizes differ: {before.size} and {after.size}."
    if regions is None:
        return
    if not regions:
        yield "No pixel differs visibly."
    else:
        yield from _rows("Regions whose pixels differ", list(map(corners, regions)))


def _rows(kind: str, rows: Sequence[str]) -> Iterator[str]:
    if rows:
        more = [f"and {len(rows) - _MOST} more"] if len(rows) > _MOST else []
        yield f"{kind}: " + "; ".join([*rows[:_MOST], *more]) + "."


def regions(before: Pixels, after: Pixels) -> list[Box] | None:
    """Where two images of one size differ, the largest regions first."""
    import numpy as np

    if before.shape != after.shape:
        return None
    height, width = before.shape[:2]
    rows, columns = -(-height // _BLOCK), -(-width // _BLOCK)
    differs = np.zeros((rows, columns), bool)
    for row in range(rows):  # a strip at a time: the difference of a large image would need as much memory again
        strip = slice(row * _BLOCK, (row + 1) * _BLOCK)
        apart = np.abs(before[strip].astype(np.int16) - after[strip]).max(axis=(0, 2)) > _VISIBLE
        differs[row] = np.logical_or.reduceat(apart, np.arange(0, width, _BLOCK))
    found = [_pixels(cells, before, after) for cells in _islands(differs)]
    return sorted(found, key=lambda box: -box.size.pixels)[:_REGIONS]


def _islands(cells: object) -> Iterator[Box]:
    """Boxes, in blocks, around those that touch."""
    left = {(int(y), int(x)) for y, x in zip(*cells.nonzero(), strict=True)}  # type: ignore[attr-defined]
    while left:
        island, edge = [], [left.pop()]
        while edge:
            y, x = edge.pop()
            island.append(Box(x, y, 1, 1))
            near = {(y + down, x + across) for down in (-1, 0, 1) for across in (-2, -1, 0, 1, 2)} & left
            left -= near
            edge += near
        yield union(island)


def _pixels(cells: Box, before: Pixels, after: Pixels) -> Box:
    """The pixels of some blocks that really differ."""
    import numpy as np

    y, x = cells.y * _BLOCK, cells.x * _BLOCK
    part = (slice(y, cells.bottom * _BLOCK), slice(x, cells.right * _BLOCK))
    apart = np.abs(before[part].astype(np.int16) - after[part]).max(axis=2) > _VISIBLE
    down, across = np.flatnonzero(apart.any(axis=1)), np.flatnonzero(apart.any(axis=0))
    top, start = int(down[0]), int(across[0])
    return Box(x + start, y + top, int(across[-1]) + 1 - start, int(down[-1]) + 1 - top)
