"""Find tables in letters of one width, as programs in terminals show them: below heads that look different.

A listing has columns too. What tells a table is its first row, which is on another background than the others, in
another colour or bold, and that every row has its cells where the others have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.page_text import LONG, LayoutItem, contains_line, divide_width, group_rows
from sightline.reader.reading import Pixels, Table, TextLine
from sightline.reader.rectangles import overlap_horizontally
from sightline.reader.table_columns import LineWords, Span
from sightline.reader.table_finder import RowBlock, TableCandidate, fill_row, is_bold, make_tables

COLUMNS, ROWS = 3, 4  # of a table, at least, with its heads
BLANK = 1.6  # characters: the blank between two cells; one between two words is narrower
CROSSED = 0.1  # share of the rows of a text that may have letters between two columns
EDGE = 0.5  # characters by which the places of cells that begin or end together may differ
STRAIGHT, FILLED = 0.9, 0.7  # shares of the cells of a column that begin or end together, and of the rows with a cell
MOST = 0.6  # share of the columns that are straight, at least
SHORT = 24  # characters of most cells, at most
STEP = 1.5  # distances of two rows: how far the next row is, at most
SAME_LOOK = 0.2  # share of the cells that look like a head, at most


def find_mono_tables(
    pixels: Pixels, lines: Sequence[TextLine], areas: Sequence[Box]
) -> tuple[list[TextLine], list[Table]]:
    """Return the lines, split where columns are, and the tables that `areas` of monospaced text are."""
    words = LineWords(pixels, lines)
    found = [table for area in areas if (table := _make_candidate(words, area)) is not None]
    return make_tables(words, found)


def _make_candidate(words: LineWords, area: Box) -> TableCandidate | None:
    """Return the table whose rows an area of text has, with those directly above and below that have its columns."""
    width = _measure_width(words.lines, area)
    rows = _group_lines(words.lines, area)
    own = [row for row in rows if any(contains_line(area, words.lines[at].box) for at in row)]
    columns = _find_columns([_list_cells(words, row, width) for row in own], width) if width else []
    if len(columns) < COLUMNS:
        return None
    kept = _list_fitting_rows(words, rows, columns, width)
    if len(kept) < ROWS or not all(row in kept for row in own):
        return None
    wide = tuple(_widen_columns(columns, [_list_cells(words, row, width) for row in kept]))
    table = TableCandidate(RowBlock(tuple(kept)), wide, tuple(fill_row(words, row, wide) for row in kept))
    return table if _is_table(table, words, width) else None


def _measure_width(lines: Sequence[TextLine], area: Box) -> float:
    """Return how wide a character is, or 0 where that is not known."""
    known = [line for line in lines if line.middles and contains_line(area, line.box)]
    widths = [divide_width(line) for line in known if len(line.text) >= LONG // 2]
    return median(widths) if widths else 0.0


def _group_lines(lines: Sequence[TextLine], area: Box) -> list[tuple[int, ...]]:
    """Return the rows of all lines above, in and below an area."""
    items = [LayoutItem(line.box, (at,), 0) for at, line in enumerate(lines) if overlap_horizontally(line.box, area)]
    return [tuple(item.lines[0] for item in row) for row in group_rows(items)]


def _list_cells(words: LineWords, row: Sequence[int], width: float) -> list[Span]:
    """Return where the texts of a row are that have wide blanks between them."""
    cells: list[Span] = []
    for start, end in sorted(span for at in row for span in words[at]):
        if cells and start - cells[-1][1] < BLANK * width:
            cells[-1] = (cells[-1][0], max(end, cells[-1][1]))
        else:
            cells.append((start, end))
    return cells


def _find_columns(rows: Sequence[Sequence[Span]], width: float) -> list[Span]:
    """Return the spans between blanks that almost all rows have."""
    right = max((end for row in rows for _, end in row), default=0)
    inked = np.zeros(right, dtype=np.int64)
    for row in rows:
        for start, end in row:
            inked[start:end] += 1
    filled = np.flatnonzero(inked > CROSSED * len(rows))
    if not len(filled):
        return []
    groups = np.split(filled, np.flatnonzero(np.diff(filled) > BLANK * width) + 1)
    return [(int(group[0]), int(group[-1]) + 1) for group in groups]


def _list_fitting_rows(
    words: LineWords, rows: Sequence[tuple[int, ...]], columns: Sequence[Span], width: float
) -> list[tuple[int, ...]]:
    """Return the longest run of rows near each other of which each cell is in one column."""
    runs: list[list[tuple[int, ...]]] = [[]]
    tops = [min(words.lines[at].box.y for at in row) for row in rows]
    steps = [below - above for above, below in pairwise(tops)]
    usual = median(steps) if steps else 0
    for row, step in zip(rows, [0, *steps], strict=True):
        if step > STEP * usual or not _fits(_list_cells(words, row, width), columns):
            runs.append([])
        if _fits(_list_cells(words, row, width), columns):
            runs[-1].append(row)
    return max(runs, key=len)


def _fits(cells: Sequence[Span], columns: Sequence[Span]) -> bool:
    """Return whether each text is in one column, and not all are in the same one."""
    homes = [[at for at, column in enumerate(columns) if _share(cell, column)] for cell in cells]
    return all(len(home) == 1 for home in homes) and len({home[0] for home in homes}) > 1


def _share(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _widen_columns(columns: Sequence[Span], rows: Sequence[Sequence[Span]]) -> Iterator[Span]:
    """Yield the columns as wide as the cells of all rows are."""
    for column in columns:
        own = [cell for row in rows for cell in row if _share(cell, column)]
        yield min(cell[0] for cell in own), max(cell[1] for cell in own)


def _is_table(table: TableCandidate, words: LineWords, width: float) -> bool:
    """Return whether short texts are in columns below heads that look different."""
    columns = [[row[at] for row in table.cells if row[at]] for at in range(len(table.columns))]
    spans = [[(cell[0][1][0], cell[-1][1][1]) for cell in column] for column in columns]
    straight = sum(_is_straight(column, EDGE * width) for column in spans)
    full = all(len(column) >= FILLED * len(table.cells) for column in columns)
    short = median(end - start for column in spans for start, end in column) <= SHORT * width
    return full and short and straight >= MOST * len(columns) and _has_heads(table, words)


def _is_straight(spans: Sequence[Span], slack: float) -> bool:
    """Return whether nearly all cells begin, or end, at one place."""
    for edges in ([span[side] for span in spans] for side in (0, 1)):
        middle = median(edges)
        if sum(abs(edge - middle) <= slack for edge in edges) >= STRAIGHT * len(edges):
            return True
    return False


def _has_heads(table: TableCandidate, words: LineWords) -> bool:
    """Return whether the first row is on one background, and bold or in other colours than nearly all other texts."""
    looks = [[(words.lines[at].ink, words.lines[at].ground) for cell in row for at, _ in cell] for row in table.cells]
    rest = [look for row in looks[1:] for look in row]
    grounds = {ground for _, ground in looks[0]}
    if len(grounds) > 1 or sum(map(bool, table.cells[0])) < max(COLUMNS, len(table.columns) - 1):
        return False
    return all(rest.count(look) <= SAME_LOOK * len(rest) for look in looks[0]) or is_bold(table.cells, words)
