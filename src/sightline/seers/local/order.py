"""The order in which lines are read: cut where it is blank, across before down, until nothing is left to cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.seers.local.seen import Line

# All in heights of a line, which is what "near" means in a text.
BAND = 2.5  # blank from side to side: what stands above is read before what stands below, in whatever columns
GUTTER = 1.2  # blank between two columns
MENU = 0.8  # blank between columns and a row that belongs to none of them
LEVEL = 0.3  # the middles of lines in a row: more would be chance
PROSE = 25  # characters: lines so long are read column by column, even where they stand in rows
SEARCHED = 600  # lines: beyond, no cut is looked for that would make room for another


@dataclass(frozen=True, slots=True)
class Item:
    """A line, or a panel with all that stands in it, already in order."""

    box: Box
    lines: tuple[int, ...]
    letters: int

    @property
    def middle(self) -> float:
        return self.box.y + self.box.height / 2


def order(lines: Sequence[Line], boxes: Iterable[Box] = (), plots: Sequence[Box] = ()) -> tuple[int, ...]:
    """The places of the lines, in reading order; what stands in `plots` is read row by row."""
    if not lines:
        return ()
    em = em_of(lines)
    items = [Item(line.box, (place,), len(line.text)) for place, line in enumerate(lines)]
    for box in sorted({*boxes, *plots}, key=lambda each: each.width * each.height):
        held = [item for item in items if holds(box, item.box)]
        if len(held) > 1 and (len(held) < len(items) or box in plots):
            letters = int(median(item.letters for item in held))
            rest = [item for item in items if not holds(box, item.box)]
            inner = _by_rows(held) if box in plots else _cut(held, em)
            items = [*rest, Item(box, inner, letters)]
    return _cut(items, em)


def em_of(lines: Iterable[Line]) -> float:
    return max(4.0, median(line.box.height for line in lines))


def holds(box: Box, inner: Box) -> bool:
    middle = (inner.x + inner.width / 2, inner.y + inner.height / 2)
    return (
        box.x <= middle[0] <= box.right
        and box.y <= middle[1] <= box.bottom
        and inner.x >= box.x - 4
        and inner.y >= box.y - 4
        and inner.width <= box.width + 8
        and inner.height <= box.height + 8
    )


def _cut(items: Sequence[Item], em: float) -> tuple[int, ...]:
    if len(items) == 1:
        return items[0].lines
    parts = _split(items, _down, BAND * em)
    if len(parts) == 1:
        parts = _menu(items, em)
    if len(parts) == 1:
        parts = _columns(items, em)
    if len(parts) == 1:
        parts = _peeled(items, em)
    if len(parts) == 1:
        return _by_rows(items)
    return tuple(place for part in parts for place in _cut(part, em))


def _by_rows(items: Iterable[Item]) -> tuple[int, ...]:
    return tuple(place for row in rows_of(items) for item in row for place in item.lines)


def _down(item: Item) -> tuple[int, int]:
    return item.box.y, item.box.bottom


def _across(item: Item) -> tuple[int, int]:
    return item.box.x, item.box.right


def _split(items: Sequence[Item], along: Callable[[Item], tuple[int, int]], gap: float) -> list[list[Item]]:
    """The items in groups with at least so much blank between them."""
    groups: list[list[Item]] = []
    reached = float("-inf")
    for item in sorted(items, key=along):
        start, end = along(item)
        if not groups or start - reached >= gap:
            groups.append([])
        groups[-1].append(item)
        reached = max(reached, end)
    return groups


def _menu(items: Sequence[Item], em: float) -> list[list[Item]]:
    """A row of several short texts right above or below columns is read by itself, though they could be cut through."""
    bands = _split(items, _down, MENU * em)
    for menu, rest in ((bands[0], bands[1:]), (bands[-1], bands[:-1])):
        below = [item for band in rest for item in band]
        if len(menu) > 2 and len(rows_of(menu)) == 1 and below and len(_columns(below, em)) > 1:
            return [menu, below] if menu is bands[0] else [below, menu]
    return [list(items)]


def _columns(items: Sequence[Item], em: float) -> list[list[Item]]:
    """The columns, unless what stands in them belongs together by rows."""
    columns = _split(items, _across, GUTTER * em)
    if len(columns) == 1 or min(median(item.letters for item in column) for column in columns) >= PROSE:
        return columns
    return _panels_apart(columns) if _in_rows(columns, em) else columns


def _panels_apart(columns: Sequence[Sequence[Item]]) -> list[list[Item]]:
    """What belongs together by rows; a panel that stands alone beside several lines is in no row of theirs."""
    lines = [item for column in columns if len(column) > 1 for item in column]
    groups: list[list[Item]] = []
    whole = False  # whether the last group takes no more
    for column in columns:
        alone = len(column) == 1 and len(column[0].lines) > 1 and sum(_level(column[0], line) for line in lines) > 1
        if alone or whole or not groups:
            groups.append([])
        groups[-1] += column
        whole = alone
    return groups


def _level(panel: Item, line: Item) -> bool:
    return panel.box.y <= line.middle <= panel.box.bottom


def _in_rows(columns: Sequence[Sequence[Item]], em: float) -> bool:
    """Whether most of a column's lines stand level with some of the next one's."""
    for left, right in pairwise(column for column in columns if len(column) > 1):
        fewer, more = sorted((left, right), key=len)
        level = [any(abs(one.middle - other.middle) <= LEVEL * em for other in more) for one in fewer]
        if sum(level) < 0.7 * len(level):
            return False
    return True


def _peeled(items: Sequence[Item], em: float) -> list[list[Item]]:
    """Cut across where it lets the most lines be read in columns; else wherever it is blank."""
    bands = _split(items, _down, 1)
    if len(bands) > 1 and len(items) <= SEARCHED:
        best, most = 0, 0
        for place in range(1, len(bands)):
            halves = [[item for band in half for item in band] for half in (bands[:place], bands[place:])]
            gain = max((len(half) for half in halves if len(_columns(half, em)) > 1 and len(half) > 3), default=0)
            best, most = (place, gain) if gain > most else (best, most)
        if best:
            return [[item for band in half for item in band] for half in (bands[:best], bands[best:])]
    return bands


def rows_of(items: Iterable[Item]) -> list[list[Item]]:
    """Items that stand level, from left to right."""
    rows: list[list[Item]] = []
    for item in sorted(items, key=lambda each: each.middle):
        last = rows[-1][0] if rows else None
        if last is not None and abs(item.middle - last.middle) <= 0.5 * min(item.box.height, last.box.height):
            rows[-1].append(item)
        else:
            rows.append([item])
    return [sorted(row, key=lambda each: each.box.x) for row in rows]
