"""The order in which lines are read, the tables among them, and all of them as one text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.seers.local.boxes import union
from sightline.seers.local.seen import Line, Table

# All in heights of a line, which is what "near" means in a text.
BAND = 2.5  # blank from side to side: what stands above is read before what stands below, in whatever columns
GUTTER = 1.2  # blank between two columns
CELL = 0.7  # blank between two cells of a row
PITCH = 4.5  # from one row of a table to the next, at most
MENU = 0.8  # blank between columns and a row that belongs to none of them
APART = 1.3  # blank above a new paragraph
ALIGNED = 0.6  # edges of a column
LEVEL = 0.3  # the middles of lines in a row: more would be chance
PROSE = 25  # characters: lines so long are read column by column, even where they stand in rows
MONO = 0.04  # what the width of a character may vary by where all are equally wide
SEARCHED = 600  # lines: beyond, no cut is looked for that would make room for another


@dataclass(frozen=True, slots=True)
class _Item:
    """A line, or a panel with all that stands in it, already in order."""

    box: Box
    lines: tuple[int, ...]
    letters: int

    @property
    def middle(self) -> float:
        return self.box.y + self.box.height / 2


def ordered(lines: Sequence[Line], boxes: Iterable[Box] = ()) -> tuple[Line, ...]:
    """The lines as a person reads them; `boxes` are panels, each of which is read as one."""
    return tuple(lines[place] for place in order(lines, boxes))


def order(lines: Sequence[Line], boxes: Iterable[Box] = (), plots: Sequence[Box] = ()) -> tuple[int, ...]:
    """The places of the lines, in reading order; what stands in `plots` is read row by row."""
    if not lines:
        return ()
    em = _em(lines)
    items = [_Item(line.box, (place,), len(line.text)) for place, line in enumerate(lines)]
    for box in sorted({*boxes, *plots}, key=lambda each: each.width * each.height):
        held = [item for item in items if _holds(box, item.box)]
        if len(held) > 1 and (len(held) < len(items) or box in plots):
            letters = int(median(item.letters for item in held))
            rest = [item for item in items if not _holds(box, item.box)]
            inner = _by_rows(held) if box in plots else _cut(held, em)
            items = [*rest, _Item(box, inner, letters)]
    return _cut(items, em)


def tables(lines: Sequence[Line], boxes: Iterable[Box] = (), but: frozenset[int] = frozenset()) -> tuple[Table, ...]:
    """Rows of cells that stand in columns. Lines of `but` are none of theirs; a table does not cross a panel's edge."""
    if not lines:
        return ()
    em = _em(lines)
    smallest = sorted(set(boxes), key=lambda each: each.width * each.height)
    homes: dict[Box | None, list[int]] = {}
    for place, line in enumerate(lines):
        if place not in but:
            homes.setdefault(next((box for box in smallest if _holds(box, line.box)), None), []).append(place)
    found = (table for places in homes.values() for run in _runs(lines, places, em) for table in _table(lines, run, em))
    return tuple(sorted(found, key=lambda table: (table.box.y, table.box.x)))


def laid_out(lines: Sequence[Line], found: Sequence[Table] = (), plots: Sequence[Box] = ()) -> str:
    """All lines, each as it is, in the order they have: rows of tables as rows, code with its indentation.

    What stands in `plots` is written row by row and close together: labels all over a chart are no paragraphs.
    """
    if not lines:
        return ""
    em = _em(lines)
    homes: dict[int, Table | Box] = {place: table for table in found for row in table.rows for c in row for place in c}
    for place, line in enumerate(lines):
        if plot := next((box for box in plots if _holds(box, line.box)), None):
            homes[place] = plot
    written: list[str] = []
    told: list[Table] = []
    for home, places in groupby(range(len(lines)), key=homes.get):
        match home:
            case Table():
                written += [] if home in told else [_as_rows(lines, home)]
                told.append(home)
            case Box():
                written.append("\n".join("  ".join(row) for row in _level(lines, list(places))))
            case None:
                written += _written(lines, list(places), em)
    return "\n\n".join(written)


def _em(lines: Iterable[Line]) -> float:
    return max(4.0, median(line.box.height for line in lines))


def _holds(box: Box, inner: Box) -> bool:
    middle = (inner.x + inner.width / 2, inner.y + inner.height / 2)
    return (
        box.x <= middle[0] <= box.right
        and box.y <= middle[1] <= box.bottom
        and inner.x >= box.x - 4
        and inner.y >= box.y - 4
        and inner.width <= box.width + 8
        and inner.height <= box.height + 8
    )


# Reading order: cut where it is blank, across before down, until nothing is left to cut.


def _cut(items: Sequence[_Item], em: float) -> tuple[int, ...]:
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


def _by_rows(items: Iterable[_Item]) -> tuple[int, ...]:
    return tuple(place for row in _rows(items) for item in row for place in item.lines)


def _down(item: _Item) -> tuple[int, int]:
    return item.box.y, item.box.bottom


def _across(item: _Item) -> tuple[int, int]:
    return item.box.x, item.box.right


def _split(items: Sequence[_Item], along: Callable[[_Item], tuple[int, int]], gap: float) -> list[list[_Item]]:
    """The items in groups with at least so much blank between them."""
    groups: list[list[_Item]] = []
    reached = float("-inf")
    for item in sorted(items, key=along):
        start, end = along(item)
        if not groups or start - reached >= gap:
            groups.append([])
        groups[-1].append(item)
        reached = max(reached, end)
    return groups


def _menu(items: Sequence[_Item], em: float) -> list[list[_Item]]:
    """A row of several short texts right above or below columns is read by itself, though they could be cut through."""
    bands = _split(items, _down, MENU * em)
    for menu, rest in ((bands[0], bands[1:]), (bands[-1], bands[:-1])):
        below = [item for band in rest for item in band]
        if len(menu) > 2 and len(_rows(menu)) == 1 and below and len(_columns(below, em)) > 1:
            return [menu, below] if menu is bands[0] else [below, menu]
    return [list(items)]


def _columns(items: Sequence[_Item], em: float) -> list[list[_Item]]:
    """The columns, unless what stands in them belongs together by rows."""
    columns = _split(items, _across, GUTTER * em)
    if len(columns) == 1 or min(median(item.letters for item in column) for column in columns) >= PROSE:
        return columns
    return [list(items)] if _in_rows(columns, em) else columns


def _in_rows(columns: Sequence[Sequence[_Item]], em: float) -> bool:
    """Whether most of a column's lines stand level with some of the next one's."""
    for left, right in pairwise(column for column in columns if len(column) > 1):
        fewer, more = sorted((left, right), key=len)
        level = [any(abs(one.middle - other.middle) <= LEVEL * em for other in more) for one in fewer]
        if sum(level) < 0.7 * len(level):
            return False
    return True


def _peeled(items: Sequence[_Item], em: float) -> list[list[_Item]]:
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


def _rows(items: Iterable[_Item]) -> list[list[_Item]]:
    """Items that stand level, from left to right."""
    rows: list[list[_Item]] = []
    for item in sorted(items, key=lambda each: each.middle):
        last = rows[-1][0] if rows else None
        if last is not None and abs(item.middle - last.middle) <= 0.5 * min(item.box.height, last.box.height):
            rows[-1].append(item)
        else:
            rows.append([item])
    return [sorted(row, key=lambda each: each.box.x) for row in rows]


# Tables: runs of rows with several cells, whose cells stand below each other.


def _runs(lines: Sequence[Line], places: Iterable[int], em: float) -> list[list[list[int]]]:
    """Rows that follow each other closely, the first and the last with several cells."""
    rows = [[item.lines[0] for item in row] for row in _rows(_Item(lines[place].box, (place,), 0) for place in places)]
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


# Text.


def _as_rows(lines: Sequence[Line], table: Table) -> str:
    return "\n".join(
        " | ".join(" ".join(lines[place].text for place in cell) for cell in row).rstrip() for row in table.rows
    )


def _level(lines: Sequence[Line], places: Sequence[int]) -> list[list[str]]:
    rows: list[list[int]] = []
    for place in places:
        if rows and _goes_on(lines[rows[-1][-1]].box, lines[place].box):
            rows[-1].append(place)
        else:
            rows.append([place])
    return [[lines[place].text for place in row] for row in rows]


def _written(lines: Sequence[Line], places: Sequence[int], em: float) -> list[str]:
    """Paragraphs of lines that follow each other."""
    rows: list[list[int]] = []
    for place in places:
        if rows and _goes_on(lines[rows[-1][-1]].box, lines[place].box):
            rows[-1].append(place)
        else:
            rows.append([place])
    blocks: list[list[list[int]]] = []
    for row in rows:
        if blocks and _follows(lines, blocks[-1][-1], row, em):
            blocks[-1].append(row)
        else:
            blocks.append([row])
    return [text for block in blocks for text in _paragraphs(lines, block, em)]


def _goes_on(before: Box, box: Box) -> bool:
    """Whether a line stands to the right of the one before it."""
    level = abs(before.y + before.height / 2 - box.y - box.height / 2) <= 0.5 * min(before.height, box.height)
    return level and box.x >= before.right - 2


def _follows(lines: Sequence[Line], above: Sequence[int], row: Sequence[int], em: float) -> bool:
    """Whether a row stands right below another, as far down as a blank line or two of code."""
    before, box = lines[above[0]].box, lines[row[0]].box
    near = -0.5 * em <= box.y - before.bottom <= 3.5 * em
    return near and box.x < max(lines[place].box.right for place in above) and abs(box.x - before.x) < 40 * em


def _paragraphs(lines: Sequence[Line], block: Sequence[list[int]], em: float) -> list[str]:
    width = _letter(lines, block)
    if width is not None:
        return [_code(lines, block, width)]
    texts = ["  ".join(lines[place].text for place in row) for row in block]
    out = [texts[0]]
    for (above, row), text in zip(pairwise(block), texts[1:], strict=True):
        gap = lines[row[0]].box.y - max(lines[place].box.bottom for place in above)
        if gap > APART * em:
            out.append(text)
        else:
            out[-1] += f"\n{text}"
    return out


def _letter(lines: Sequence[Line], block: Sequence[list[int]]) -> float | None:
    """The width of a character where all are equally wide, as in code; None in any other text."""
    long = [lines[place] for row in block for place in row if len(lines[place].text) >= 8]
    if len(long) < 3 or len(block) < 3:
        return None
    widths = [line.box.width / (len(line.text) - 0.15) for line in long]  # its last character's blank is not ink
    width = median(widths)
    alike = sum(abs(each / width - 1) <= MONO for each in widths)
    return width if alike >= 0.75 * len(widths) else None


def _code(lines: Sequence[Line], block: Sequence[list[int]], width: float) -> str:
    """Each line at its own column, blank lines kept."""
    left = min(lines[place].box.x for row in block for place in row)
    steps = [lines[b[0]].box.bottom - lines[a[0]].box.bottom for a, b in pairwise(block)]
    pitch = max(1.0, min(median(steps), median([step for step in steps if step <= 1.5 * min(steps)])))
    out: list[str] = []
    for number, row in enumerate(block):
        text = ""
        for place in row:
            column = round((lines[place].box.x - left) / width)
            text += " " * max(column - len(text), 1 if text else 0) + lines[place].text
        out += [""] * (max(0, round(steps[number - 1] / pitch) - 1) if number else 0)
        out.append(text)
    return "\n".join(out)
