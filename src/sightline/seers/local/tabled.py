"""The tables among lines: runs of rows with several cells, whose cells stand below each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from sightline.model.geometry import Box
from sightline.seers.local.boxes import union
from sightline.seers.local.order import PROSE, Item, em_of, holds, rows_of
from sightline.seers.local.seen import Line, Table

# All in heights of a line.
CELL = 0.7  # blank between two cells of a row
PITCH = 4.5  # from one row of a table to the next, at most
ALIGNED = 0.6  # edges of a column


def tables(lines: Sequence[Line], boxes: Iterable[Box] = (), but: frozenset[int] = frozenset()) -> tuple[Table, ...]:
    """Rows of cells that stand in columns. Lines of `but` are none of theirs; a table does not cross a panel's edge."""
    if not lines:
        return ()
    em = em_of(lines)
    smallest = sorted(set(boxes), key=lambda each: each.width * each.height)
    homes: dict[Box | None, list[int]] = {}
    for place, line in enumerate(lines):
        if place not in but:
            homes.setdefault(next((box for box in smallest if holds(box, line.box)), None), []).append(place)
    found = (table for places in homes.values() for run in _runs(lines, places, em) for table in _table(lines, run, em))
    return tuple(sorted(found, key=lambda table: (table.box.y, table.box.x)))


def _runs(lines: Sequence[Line], places: Iterable[int], em: float) -> list[list[list[int]]]:
    """Rows that follow each other closely, the first and the last with several cells."""
    rows = [[item.lines[0] for item in row] for row in rows_of(Item(lines[place].box, (place,), 0) for place in places)]
    runs: list[list[list[int]]] = [[]]
    for row in rows:
        if runs[-1] and _top(lines, row) - _top(lines, runs[-1][-1]) > PITCH * em:
            runs.append([])
        runs[-1].append(row)
    return [part for run in runs for part in _several(lines, run, em)]


def _several(lines: Sequence[Line], run: Sequence[list[int]], em: float) -> list[list[list[int]]]:
    """Cut where two rows in a row have one cell: that is text."""
    parts: list[list[list[int]]] = [[]]
    single = 0
    for row in run:
        single = 0 if len(row) > 1 else single + 1
        if single and (single > 1 or not parts[-1]):
            if parts[-1] and len(parts[-1][-1]) == 1:
                parts[-1].pop()
            if parts[-1]:
                parts.append([])
            continue
        parts[-1].append(row)
    if parts[-1] and len(parts[-1][-1]) == 1:
        parts[-1].pop()
    return [part for part in parts if len(part) > 1]


def _top(lines: Sequence[Line], row: Sequence[int]) -> float:
    return median(lines[place].box.y for place in row)


def _table(lines: Sequence[Line], run: Sequence[list[int]], em: float) -> list[Table]:
    columns = _spans([lines[place].box for row in run if len(row) > 1 for place in row], CELL * em)
    if len(columns) < 2:
        return []
    rows = [_celled(lines, row, columns) for row in run]
    rows = _joined(lines, rows, em)
    full = [row for row in rows if sum(bool(cell) for cell in row) >= max(2, 0.6 * len(columns))]
    if len(full) < (2 if len(columns) > 2 else 3) or len(full) < 0.7 * len(rows):
        return []
    straight = [place for place in range(len(columns)) if _straight([row[place] for row in full], lines, em)]
    if len(straight) < max(2, 0.6 * len(columns)) or _is_prose(lines, full):
        return []
    box = union(lines[place].box for row in rows for cell in row for place in cell)
    return [Table(box, tuple(tuple(tuple(cell) for cell in row) for row in rows))]


def _spans(boxes: Iterable[Box], gap: float) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for box in sorted(boxes, key=lambda each: each.x):
        if spans and box.x - spans[-1][1] < gap:
            spans[-1] = (spans[-1][0], max(spans[-1][1], box.right))
        else:
            spans.append((box.x, box.right))
    return spans


def _celled(lines: Sequence[Line], row: Iterable[int], columns: Sequence[tuple[int, int]]) -> list[list[int]]:
    cells: list[list[int]] = [[] for _ in columns]
    for place in row:
        box = lines[place].box
        middle = box.x + box.width / 2
        nearest = min(
            range(len(columns)), key=lambda each: max(columns[each][0] - middle, middle - columns[each][1], 0.0)
        )
        cells[nearest].append(place)
    return cells


def _joined(lines: Sequence[Line], rows: Sequence[list[list[int]]], em: float) -> list[list[list[int]]]:
    """A row without its first cell, close below another, goes on with that one's cells."""
    joined: list[list[list[int]]] = []
    for row in rows:
        if joined and not row[0] and any(joined[-1]):
            above = max(lines[place].box.bottom for cell in joined[-1] for place in cell)
            below = min(lines[place].box.y for cell in row for place in cell)
            if below - above < 0.5 * em:
                joined[-1] = [one + other for one, other in zip(joined[-1], row, strict=True)]
                continue
        joined.append(row)
    return joined


def _straight(cells: Iterable[list[int]], lines: Sequence[Line], em: float) -> bool:
    """Whether the cells of a column share an edge or their middle, but for one in five."""
    boxes = [lines[cell[0]].box for cell in cells if cell]
    if len(boxes) < 2:
        return False
    edges = (
        [float(box.x) for box in boxes],
        [float(box.right) for box in boxes],
        [box.x + box.width / 2 for box in boxes],
    )
    return any(
        sum(abs(value - median(values)) <= ALIGNED * em for value in values) >= 0.8 * len(values) for values in edges
    )


def _is_prose(lines: Sequence[Line], rows: Sequence[list[list[int]]]) -> bool:
    """Two columns of long lines are text that happens to be level."""
    lengths = [len(lines[cell[0]].text) for row in rows for cell in row if cell]
    return len(rows[0]) == 2 and median(lengths) >= PROSE
