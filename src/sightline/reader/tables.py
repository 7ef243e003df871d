"""Tables: cells that form rows and columns, with or without ruling lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.page_text import LayoutItem, contains_line, group_rows, is_gutter, measure_line_height
from sightline.reader.phrases import begins_like_value, parse_number
from sightline.reader.reading import ImageReading, InterfacePart, PartKind, Table, TextLine, has_unread_text
from sightline.reader.rectangles import are_level, enclose_boxes, is_inside, overlap_horizontally
from sightline.reader.table_finder import WEEK

# All in heights of a line.
CELL = 0.7  # blank between two cells of a row
PITCH = 4.5  # the largest distance from one row to the next
ALIGNED = 0.6  # how far the edges of a column may differ
_KINDS: frozenset[PartKind] = frozenset({"field", "button", "panel", "bar", "check"})
_SLACK = 3  # pixels: a ruling line belongs to both of its cells
_TILE = 8  # pixels: more than twice the slack
_CELLS = 6  # a table has at least this many: four tiles may be a window in four parts
_LINES = 4  # lines of text in a cell, at most

_VALUE = re.compile(r"\d|@")


def find_tables(
    lines: Sequence[TextLine], boxes: Iterable[Box] = (), but: frozenset[int] = frozenset()
) -> tuple[Table, ...]:
    """Find rows of cells that form columns. Lines in `but` are ignored; a table doesn't cross a panel's edge."""
    if not lines:
        return ()
    em = measure_line_height(lines)
    smallest = sorted(set(boxes), key=lambda each: each.width * each.height)
    homes: dict[Box | None, list[int]] = {}
    for place, line in enumerate(lines):
        if place not in but:
            homes.setdefault(next((box for box in smallest if contains_line(box, line.box)), None), []).append(place)
    found = (
        table
        for places in homes.values()
        for run in _find_row_runs(lines, places, em)
        for table in _make_table(lines, run, em)
    )
    return tuple(sorted(found, key=lambda table: (table.box.y, table.box.x)))


def _find_row_runs(lines: Sequence[TextLine], places: Iterable[int], em: float) -> list[list[list[int]]]:
    """Return rows that follow each other closely, the first and the last with several cells."""
    rows = [
        [item.lines[0] for item in row]
        for row in group_rows(LayoutItem(lines[place].box, (place,), 0) for place in places)
    ]
    runs: list[list[list[int]]] = [[]]
    for row in rows:
        if runs[-1] and _find_row_top(lines, row) - _find_row_top(lines, runs[-1][-1]) > PITCH * em:
            runs.append([])
        runs[-1].append(row)
    return [part for run in runs for part in _split_at_text(lines, run, em)]


def _split_at_text(lines: Sequence[TextLine], run: Sequence[list[int]], em: float) -> list[list[list[int]]]:
    """Split where two consecutive rows have one cell: that is text."""
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


def _find_row_top(lines: Sequence[TextLine], row: Sequence[int]) -> float:
    return median(lines[place].box.y for place in row)


def _make_table(lines: Sequence[TextLine], run: Sequence[list[int]], em: float) -> list[Table]:
    columns = _find_column_spans([lines[place].box for row in run if len(row) > 1 for place in row], CELL * em)
    if len(columns) < 2:
        return []
    rows = [_assign_cells(lines, row, columns) for row in run]
    rows = _join_wrapped_rows(lines, rows, em)
    full = [row for row in rows if sum(bool(cell) for cell in row) >= max(2, 0.6 * len(columns))]
    if len(full) < (2 if len(columns) > 2 else 3) or len(full) < 0.7 * len(rows):
        return []
    straight = [place for place in range(len(columns)) if _is_aligned([row[place] for row in full], lines, em)]
    numbered = is_gutter([lines[row[0][0]].text for row in full if row[0]])
    if len(straight) < max(2, 0.6 * len(columns)) or numbered or not _has_values(lines, full):
        return []
    box = enclose_boxes(lines[place].box for row in rows for cell in row for place in cell)
    return [Table(box, tuple(tuple(tuple(cell) for cell in row) for row in rows))]


def _find_column_spans(boxes: Iterable[Box], gap: float) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for box in sorted(boxes, key=lambda each: each.x):
        if spans and box.x - spans[-1][1] < gap:
            spans[-1] = (spans[-1][0], max(spans[-1][1], box.right))
        else:
            spans.append((box.x, box.right))
    return spans


def _assign_cells(lines: Sequence[TextLine], row: Iterable[int], columns: Sequence[tuple[int, int]]) -> list[list[int]]:
    cells: list[list[int]] = [[] for _ in columns]
    for place in row:
        box = lines[place].box
        middle = box.x + box.width / 2
        nearest = min(
            range(len(columns)), key=lambda each: max(columns[each][0] - middle, middle - columns[each][1], 0.0)
        )
        cells[nearest].append(place)
    return cells


def _join_wrapped_rows(lines: Sequence[TextLine], rows: Sequence[list[list[int]]], em: float) -> list[list[list[int]]]:
    """Join a row without a first cell, close below another, to that one's cells."""
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


def _is_aligned(cells: Iterable[list[int]], lines: Sequence[TextLine], em: float) -> bool:
    """Return whether four of five cells in a column share an edge or their centre."""
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


def _has_values(lines: Sequence[TextLine], rows: Sequence[list[list[int]]]) -> bool:
    """Return whether a column has numbers or dates below its head: texts that are only level are no table.

    Two columns of which the second has only whole numbers are a list with counts, and seven of them a calendar.
    """
    if len(rows[0]) == 2 and all(lines[at].text.isdigit() for row in rows for at in row[1]):
        return False
    texts = [lines[at].text for row in rows[1:] for cell in row for at in cell]
    if len(rows[0]) == WEEK and sum(map(str.isdigit, texts)) >= 0.8 * len(texts):
        return False
    for column in range(len(rows[0])):
        texts = [lines[row[column][0]].text for row in rows[1:] if row[column]]
        if len(texts) >= 2 and sum(begins_like_value(text) for text in texts) >= 0.7 * len(texts):
            return True
    return False


@dataclass(frozen=True, slots=True)
class CellGrid:
    """The cells of one drawn table, as indexes of parts, and where its columns and rows begin."""

    box: Box
    cells: frozenset[int]
    columns: tuple[int, ...]
    rows: tuple[int, ...]


def find_cell_grids(parts: Sequence[InterfacePart]) -> tuple[CellGrid, ...]:
    """Find boxes that share their edges across and down."""
    places = [at for at, part in enumerate(parts) if part.kind in _KINDS and len(part.lines) <= _LINES]
    found = (_make_grid(parts, group) for group in _group_connected_cells(parts, places))
    return tuple(lattice for lattice in found if lattice)


def _group_connected_cells(parts: Sequence[InterfacePart], places: Sequence[int]) -> list[list[int]]:
    """Return parts that are connected by whole edges."""
    begin: dict[tuple[int, int], list[int]] = {}
    for place in places:
        begin.setdefault(_find_tile(parts[place].box.x, parts[place].box.y), []).append(place)
    group = {place: [place] for place in places}
    for place in places:
        box = parts[place].box
        for x, y in (*_find_tiles_near(box.right, box.y), *_find_tiles_near(box.x, box.bottom)):
            for other in begin.get((x, y), ()):
                if group[other] is not group[place] and _share_edge(box, parts[other].box):
                    small, large = sorted((group[place], group[other]), key=len)
                    large += small
                    group.update(dict.fromkeys(small, large))
    return list({id(each): each for each in group.values()}.values())


def _find_tile(x: int, y: int) -> tuple[int, int]:
    return x // _TILE, y // _TILE


def _find_tiles_near(x: int, y: int) -> Iterable[tuple[int, int]]:
    """Return all tiles that may contain something that begins there."""
    return {_find_tile(x + right, y + down) for right in (-_SLACK, _SLACK) for down in (-_SLACK, _SLACK)}


def _make_grid(parts: Sequence[InterfacePart], group: Sequence[int]) -> CellGrid | None:
    boxes = [parts[place].box for place in group]
    columns, rows = _merge_edges(box.x for box in boxes), _merge_edges(box.y for box in boxes)
    if len(group) < _CELLS or len(columns) < 2 or len(rows) < 2:
        return None
    own, whole = frozenset(group), enclose_boxes(boxes)
    wide = [at for at, part in enumerate(parts) if at not in own and _is_spanning_cell(part, whole, boxes)]
    all_boxes = [*boxes, *(parts[at].box for at in wide)]
    return CellGrid(enclose_boxes(all_boxes), own.union(wide), columns, _merge_edges(box.y for box in all_boxes))


def _share_edge(one: Box, other: Box) -> bool:
    """Return whether the other is as high and directly right of it, or as wide and directly below."""
    level = _is_close(one.y, other.y) and _is_close(one.height, other.height) and _is_close(one.right, other.x)
    stacked = _is_close(one.x, other.x) and _is_close(one.width, other.width) and _is_close(one.bottom, other.y)
    return level or stacked


def _is_spanning_cell(part: InterfacePart, whole: Box, boxes: Sequence[Box]) -> bool:
    """Return whether a part is a cell over several columns or rows: it ends where cells begin."""
    box = part.box
    if part.kind not in _KINDS or len(part.lines) > _LINES or any(is_inside(box, each) for each in boxes):
        return False
    wide = is_inside(Box(box.x, 0, box.width, 0), Box(whole.x, 0, whole.width, 0), _SLACK)
    high = is_inside(Box(0, box.y, 0, box.height), Box(0, whole.y, 0, whole.height), _SLACK)
    over = any(_is_close(box.bottom, each.y) or _is_close(each.bottom, box.y) for each in boxes)
    beside = any(_is_close(box.right, each.x) or _is_close(each.right, box.x) for each in boxes)
    return (wide and over) or (high and beside)


def _is_close(one: int, other: int) -> bool:
    return abs(one - other) <= _SLACK


def _merge_edges(edges: Iterable[int]) -> tuple[int, ...]:
    """Return the edges, those within a ruling line of each other only once."""
    starts: list[int] = []
    for edge in sorted(edges):
        if not starts or edge - starts[-1] > 2 * _SLACK:
            starts.append(edge)
    return tuple(starts)


def fill_cell_grid(lattice: CellGrid, lines: Sequence[TextLine]) -> Table | None:
    """Return the table, each line in the cell that contains its centre; empty rows and columns are left out."""
    cells: dict[tuple[int, int], list[int]] = {}
    for at, line in enumerate(lines):
        if is_inside(line.box, lattice.box):
            row = bisect_right(lattice.rows, line.box.y + line.box.height / 2)
            cells.setdefault((row, bisect_right(lattice.columns, line.box.x + line.box.width / 2)), []).append(at)
    rows, columns = sorted({row for row, _ in cells}), sorted({column for _, column in cells})
    if len(rows) < 2 or len(columns) < 2:
        return None
    return Table(lattice.box, tuple(tuple(tuple(cells.get((row, at), ())) for at in columns) for row in rows))


def add_table_heads(reading: ImageReading) -> list[Table]:
    """Return the tables with their heads, which may be on another background and found separately."""
    return [_add_heads(_remove_title_row(table), reading) for table in reading.tables]


def renumber_table(table: Table, places: dict[int, int]) -> Table:
    """Return the same table after the lines were reordered."""
    rows = tuple(tuple(tuple(places[at] for at in cell) for cell in row) for row in table.rows)
    return Table(table.box, rows)


def _remove_title_row(table: Table) -> Table:
    """Remove a first row of one cell over several columns: that is a title."""
    wide = max(map(len, table.rows), default=0) > 2 and len(table.rows) > 2
    return Table(table.box, table.rows[1:]) if wide and sum(map(bool, table.rows[0])) == 1 else table


def _add_heads(table: Table, reading: ImageReading) -> Table:
    used = {at for row in table.rows for cell in row for at in cell}
    if not table.rows or not any(begins_like_value(join_cell(reading, cell)) for cell in table.rows[0]):
        return table  # its first row is no row of values
    height = max(reading.lines[at].box.height for at in used)
    above = [
        at for at, line in enumerate(reading.lines)
        if at not in used and 0 <= table.box.y - line.box.bottom <= 3 * height
        and table.box.x - height <= line.box.x < table.box.right
    ]  # fmt: skip
    last = max(above, key=lambda at: reading.lines[at].box.bottom, default=None)
    row = [at for at in above if last is not None and are_level(reading.lines[at].box, reading.lines[last].box)]
    heads = tuple(
        tuple(at for at in row if overlap_horizontally(reading.lines[at].box, span))
        for span in _find_column_boxes(table, reading)
    )
    if sum(map(bool, heads)) < max(2, len(heads) / 2) or len({at for head in heads for at in head}) < 2:
        return table
    return Table(enclose_boxes([table.box, *(reading.lines[at].box for at in row)]), (heads, *table.rows))


def _find_column_boxes(table: Table, reading: ImageReading) -> list[Box]:
    """Return the rectangle around each column."""
    columns = range(max(map(len, table.rows)))
    cells = [[at for row in table.rows if column < len(row) for at in row[column]] for column in columns]
    return [enclose_boxes(reading.lines[at].box for at in cell) if cell else Box(0, 0, 0, 0) for cell in cells]


def join_cell(reading: ImageReading, cell: Sequence[int]) -> str:
    return " ".join(reading.lines[at].text for at in cell)


@dataclass(frozen=True, slots=True)
class TableText:
    """A table as texts and boxes."""

    cells: tuple[tuple[str, ...], ...]
    boxes: tuple[tuple[Box | None, ...], ...]
    unread: frozenset[tuple[int, int]] = frozenset()  # cells with something that could not be read

    @staticmethod
    def from_table(reading: ImageReading, table: Table) -> TableText:
        cells = tuple(tuple(join_cell(reading, cell) for cell in row) for row in table.rows)
        boxes = tuple(
            tuple(enclose_boxes(reading.lines[at].box for at in cell) if cell else None for cell in row)
            for row in table.rows
        )
        return TableText(cells, boxes, frozenset(_find_unread_cells(reading, boxes)))

    @property
    def width(self) -> int:
        return max(map(len, self.cells), default=0)

    @property
    def has_heads(self) -> bool:
        """Return whether the first row seems to name the columns: it has no numbers."""
        first = [cell for cell in self.cells[0] if cell] if self.cells else []
        if len(first) < max(2, self.width / 2) or any(parse_number(cell) is not None for cell in first):
            return False
        return self.width > 2 or self.has_value_column

    @property
    def has_value_column(self) -> bool:
        """Return whether at least one column has values below words."""
        pairs = [(head, row[at]) for row in self.cells[1:] for at, head in enumerate(self.cells[0]) if at < len(row)]
        return any(
            (_VALUE.search(cell) and not _VALUE.search(head))
            or (parse_number(cell) is not None and parse_number(head) is None)
            for head, cell in pairs
        )

    @property
    def body(self) -> tuple[tuple[str, ...], ...]:
        return self.cells[1:] if self.has_heads else self.cells

    def get_heads(self) -> tuple[str, ...]:
        return self.cells[0] if self.has_heads else ()


def _find_unread_cells(reading: ImageReading, boxes: Sequence[Sequence[Box | None]]) -> Iterator[tuple[int, int]]:
    """Yield the empty cells in which something was found that could not be read."""
    for y, row in enumerate(boxes):
        for x, cell in enumerate(row):
            level = [box for box in row if box]
            below = [each[x] for each in boxes if x < len(each)]
            over = [box for box in below if box]
            if cell is None and level and over:
                wide, high = enclose_boxes(over), enclose_boxes(level)
                if has_unread_text(reading, Box(wide.x, high.y, wide.width, high.height)):
                    yield y, x


def read_tables(reading: ImageReading) -> list[TableText]:
    """Return the texts of all tables."""
    return [TableText.from_table(reading, table) for table in add_table_heads(reading)]
