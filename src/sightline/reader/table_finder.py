"""Decide which rows of text are tables: divide them into columns, and score what comes out.

Rows are proposed generously: by what is drawn between them, or by cells that begin or end at the same places. Columns
are separated by corridors that almost all rows leave blank. A small model, trained on pages by `bench/train_tables.py`,
then tells tables from menus, forms, cards and prose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.page_text import LONG, MONO, LayoutItem, divide_width, group_rows
from sightline.reader.phrases import begins_like_value
from sightline.reader.reading import Table, TextLine
from sightline.reader.rectangles import enclose_boxes
from sightline.reader.table_columns import (
    ROWS,
    SHIFT,
    LineWords,
    Span,
    Word,
    add_empty_columns,
    cut_at_bars,
    cut_at_shared_edges,
    find_columns,
)

WEEK = 7  # columns of a calendar
KEYED = 0.8  # share of the names of values that end with a colon
HEAVY = 1.12  # bold text has so many times the ink of other text


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows that may be a table: the indexes of the lines of each."""

    rows: tuple[tuple[int, ...], ...]
    ends: Span | None = None  # where what is drawn between them begins and ends; None if nothing is


@dataclass(frozen=True, slots=True)
class TableCandidate:
    """A block in columns: the words of each cell, as spans with the indexes of their lines."""

    block: RowBlock
    columns: tuple[Span, ...]
    cells: tuple[tuple[tuple[tuple[int, Span], ...], ...], ...]
    score: float = 0.0


def choose_tables(words: LineWords, blocks: Iterable[RowBlock], em: float) -> tuple[list[TextLine], list[Table]]:
    """Return all lines, those of tables split at their columns, and the tables; the best of overlapping ones."""
    found = [each for block in blocks if (each := make_candidate(words, block, em)) is not None]
    scored = [replace(each, score=score_candidate(measure_candidate(each, words, em))) for each in found]
    kept: list[TableCandidate] = []
    for each in sorted(scored, key=lambda one: -one.score * sum(map(len, one.cells))):
        if each.score > 0 and not any(_share_lines(each, other) for other in kept):
            kept.append(each)
    return make_tables(words, kept)


def _share_lines(one: TableCandidate, other: TableCandidate) -> bool:
    return not {at for row in one.block.rows for at in row}.isdisjoint(at for row in other.block.rows for at in row)


def make_candidate(words: LineWords, block: RowBlock, em: float) -> TableCandidate | None:
    """Return a block in columns without rows at its ends that don't fit; None if it has no columns."""
    cut_at_shared_edges(words, block.rows)
    block = _remove_odd_ends(words, _remove_title(words.lines, block), em)
    bars = cut_at_bars(words, block.rows, em)
    spans = [_list_words(words, row) for row in block.rows]
    columns = add_empty_columns(find_columns(spans, em, words, bars=bars), spans[0], em) if spans else []
    if len(block.rows) < ROWS or len(columns) < 2:
        return None
    cells = tuple(fill_row(words, row, columns) for row in block.rows)
    table = TableCandidate(block, tuple(columns), cells)
    text = block.ends is None and _is_monospaced(table, words.lines) and not _is_headed(table, words)
    return None if text or _is_calendar(table, words.lines) or _is_list_with_counts(table, words.lines) else table


def _is_headed(table: TableCandidate, words: LineWords) -> bool:
    """Return whether several columns have heads that look different; programs and terminals have columns without."""
    return len(table.columns) >= ROWS and (_has_other_look(table.cells, words.lines) or is_bold(table.cells, words))


def _is_list_with_counts(table: TableCandidate, lines: Sequence[TextLine]) -> bool:
    """Return whether there are two columns, and the second one has only whole numbers, and perhaps signs."""
    texts = [_guess_text(row[1], lines) for row in table.cells if len(row) == 2]
    return bool(texts) and all(text.isdigit() or not any(map(str.isalnum, text)) for text in texts)


def _is_calendar(table: TableCandidate, lines: Sequence[TextLine]) -> bool:
    """Return whether the cells are the days of weeks."""
    texts = [_guess_text(cell, lines) for row in table.cells[1:] for cell in row if cell]
    return len(table.columns) == WEEK and sum(map(str.isdigit, texts)) >= 0.8 * len(texts)


def _remove_title(lines: Sequence[TextLine], block: RowBlock) -> RowBlock:
    """Remove lines above the heads of columns which are in the same band: the title of a table."""
    levels = [group_rows(LayoutItem(lines[at].box, (at,), 0) for at in row) for row in block.rows]
    if len(levels) < ROWS or len(levels[0]) <= max(map(len, levels[1:])) or len(levels[0][-1]) < 2:
        return block
    return replace(block, rows=(tuple(item.lines[0] for item in levels[0][-1]), *block.rows[1:]))


def _remove_odd_ends(words: LineWords, block: RowBlock, em: float) -> RowBlock:
    """Remove first and last rows that cross the columns of the others: titles, and tools above or below a table."""
    rows = list(block.rows)
    for _ in range(4):
        spans = [_list_words(words, row) for row in rows]
        if len(rows) <= ROWS:
            break
        whole = max(_count_full_columns(spans, em), _count_full_columns(spans, em, narrow=True))
        better = [(_count_full_columns(rest, em), at) for at, rest in ((0, spans[1:]), (-1, spans[:-1]))]
        most, end = max(better)
        if most <= whole:
            break
        del rows[end]
    return replace(block, rows=tuple(rows))


def _count_full_columns(rows: Sequence[Sequence[Word]], em: float, *, narrow: bool = False) -> int:
    """Return how many columns have a text in at least half of the rows."""
    spans = find_columns(rows, em, narrow=narrow)
    counts = [sum(any(word[0] < end and word[1] > start for word in row) for row in rows) for start, end in spans]
    return sum(2 * count >= len(rows) for count in counts)


def _list_words(words: LineWords, row: Sequence[int]) -> list[Word]:
    return sorted((start, end, at) for at in row for start, end in words[at])


def fill_row(words: LineWords, row: Sequence[int], columns: Sequence[Span]) -> tuple[tuple[tuple[int, Span], ...], ...]:
    """Return the words of each cell, from top to bottom and from left to right."""
    cells: list[list[tuple[int, Span]]] = [[] for _ in columns]
    lines = words.lines
    items = (LayoutItem(lines[at].box, (at,), 0) for at in row)
    for at in (item.lines[0] for level in group_rows(items) for item in level):
        for span in words[at]:
            shared = [min(span[1], end) - max(span[0], start) for start, end in columns]
            cells[int(np.argmax(shared))].append((at, span))
    return tuple(map(tuple, cells))


def make_tables(words: LineWords, kept: Sequence[TableCandidate]) -> tuple[list[TextLine], list[Table]]:
    """Return all lines, split where their words are in different cells, and the tables."""
    pieces: dict[int, list[TextLine]] = {}
    for table in kept:
        for at in {at for row in table.block.rows for at in row}:
            pieces[at] = split_line(words.lines[at], words[at], table.columns)
    whole, first = list[TextLine](), dict[int, int]()
    for at, line in enumerate(words.lines):
        first[at] = len(whole)
        whole += pieces.get(at, [line])
    return whole, [_make_table(table, whole, first, pieces) for table in kept]


def _make_table(
    table: TableCandidate, lines: Sequence[TextLine], first: dict[int, int], pieces: dict[int, list[TextLine]]
) -> Table:
    rows = []
    for row in table.block.rows:
        cells: list[list[int]] = [[] for _ in table.columns]
        items = (LayoutItem(lines[place].box, (place,), 0) for at in row
                 for place in range(first[at], first[at] + len(pieces[at])))  # fmt: skip
        for place in (item.lines[0] for level in group_rows(items) for item in level):
            box = lines[place].box
            shared = [min(box.right, end) - max(box.x, start) for start, end in table.columns]
            cells[int(np.argmax(shared))].append(place)
        rows.append(tuple(map(tuple, cells)))
    return Table(
        measure_box(table.block, [[lines[at].box for cell in row for at in cell] for row in rows]), tuple(rows)
    )


def measure_box(block: RowBlock, rows: Sequence[Sequence[Box]]) -> Box:
    """Return the box of a table with half of the blank between its rows around it, from end to end of its lines."""
    bands = [enclose_boxes(row) for row in rows if row]
    text = enclose_boxes(bands)
    blanks = [max(0, lower.y - upper.bottom) for upper, lower in pairwise(bands)]
    margin = min(text.y, round(median(blanks) / 2)) if blanks else 0
    left, right = block.ends or (text.x, text.right)
    return enclose_boxes([text, Box(left, text.y - margin, right - left, text.height + 2 * margin)])


def split_line(line: TextLine, spans: Sequence[Span], columns: Sequence[Span]) -> list[TextLine]:
    """Split a line where it goes from one column to another; its text is split at the nearest space."""
    homes = [max(range(len(columns)), key=lambda at: _measure_shared(span, columns[at])) for span in spans]
    cuts = [
        at for at in range(1, len(homes))
        if homes[at] != homes[at - 1]
    ]  # fmt: skip
    for cut in reversed(cuts):
        blank = (spans[cut - 1][1] + spans[cut][0]) / 2
        place = _find_split(line.text, (blank - line.box.x) / line.box.width)
        first, rest = line.text[:place].rstrip(), line.text[place:].lstrip()
        if not first or not rest:
            continue
        left = Box(line.box.x, line.box.y, spans[cut - 1][1] - line.box.x, line.box.height)
        right = Box(spans[cut][0], line.box.y, line.box.right - spans[cut][0], line.box.height)
        shift = len(line.text) - len(rest)
        line = replace(line, middles=None)
        tail = replace(line, text=rest, box=right, doubtful=tuple(at - shift for at in line.doubtful if at >= shift))
        head = replace(line, text=first, box=left, doubtful=tuple(at for at in line.doubtful if at < len(first)))
        return [*split_line(head, spans[:cut], columns), tail]
    return [line]


def _measure_shared(one: Span, other: Span) -> int:
    return min(one[1], other[1]) - max(one[0], other[0])


def _find_split(text: str, share: float) -> int:
    """Return the index at a share of the text's width, or that of a space nearby."""
    place = round(share * len(text))
    near = range(max(1, place - 3), min(len(text), place + 4))
    spaces = [at for at, letter in enumerate(text) if letter == " " and abs(at - place) <= max(2, 0.15 * len(text))]
    turns = [
        at for at in near if text[at - 1].isdigit() != text[at].isdigit() or text[at - 1].islower() < text[at].isupper()
    ]
    return min(spaces or turns, key=lambda at: abs(at - place), default=place)


# What the model weighs. Fitted as bench/train_tables.py does it, on its pictures and 115 more pages of their packages.
WEIGHTS = {
    "ruled": 0.704,
    "rows": 1.108,
    "filled": 4.641,
    "aligned": 4.078,
    "valued": 2.891,
    "gap": -0.371,
    "least gap": -0.556,
    "header": 1.320,
    "monospaced": 0.348,
    "wide": 1.637,
    "lines": -3.649,
    "first filled": -3.944,
    "bold header": 1.060,
    "toggled": -3.547,
    "numbers": -4.829,
    "open length": -0.658,
    "open rows": -0.477,
    "open two columns": 0.275,
    "keyed": 2.5,  # set by hand: such lists are rare in the pages of the training
}
FEATURES, BIAS = tuple(WEIGHTS), -6.051
SURE = 0.25  # what a table scores, at least


def score_candidate(features: Sequence[float]) -> float:
    """Return how sure it is that a candidate is a table: above 0 it is one."""
    return float(np.dot(tuple(WEIGHTS.values()), features)) + BIAS - SURE


def measure_candidate(table: TableCandidate, words: LineWords, em: float) -> list[float]:
    """Return what the model scores, in the order of `FEATURES`."""
    lines, rows, columns = words.lines, len(table.cells), len(table.columns)
    boxes = [[_enclose_words(cell, lines) if cell else None for cell in row] for row in table.cells]
    texts = [[_guess_text(cell, lines) for cell in row] for row in table.cells]
    down = [[box for row in boxes if (box := row[at])] for at in range(columns)]
    gaps = [right[0] - left[1] for left, right in pairwise(table.columns)]
    body = [[row[at] for row in texts[1:] if row[at]] for at in range(columns)]
    flat = [text for row in texts for text in row if text]
    heights = [_count_lines(cell, lines) for row in table.cells for cell in row if cell]
    toggled = [{at for row in table.cells for at, _ in row[column]} & words.toggled for column in range(columns)]
    opened = float(table.block.ends is None)
    return [
        1 - opened,
        math.log(rows),
        sum(map(len, down)) / (rows * columns),
        sum(_is_straight(each, em) for each in down) / columns,
        sum(map(_is_valued, body)) / columns,
        math.log(1 + median(gaps) / em),
        math.log(1 + max(0, min(gaps)) / em),
        float(_has_other_look(table.cells, lines)),
        float(_is_monospaced(table, lines)),
        math.log((table.columns[-1][1] - table.columns[0][0]) / em),
        float(np.mean(heights)),
        len(down[0]) / rows,
        float(is_bold(table.cells, words)),
        sum(map(bool, toggled)) / columns,
        float(all(text.isdigit() for text in flat if len(text) > 1)),
        opened * math.log(1 + float(np.mean([len(text) for text in flat]))),
        opened * math.log(rows),
        opened * float(columns == 2),
        float(columns == 2 and _is_keyed([row[0] for row in texts])),
    ]


def _enclose_words(cell: Sequence[tuple[int, Span]], lines: Sequence[TextLine]) -> Box:
    return enclose_boxes(Box(span[0], lines[at].box.y, span[1] - span[0], lines[at].box.height) for at, span in cell)


def _guess_text(cell: Sequence[tuple[int, Span]], lines: Sequence[TextLine]) -> str:
    """Return about the text of a cell: its share of each line."""
    pieces = []
    for at in dict.fromkeys(at for at, _ in cell):
        line, own = lines[at], [span for place, span in cell if place == at]
        wide = len(line.text) / line.box.width
        start, end = (own[0][0] - line.box.x) * wide, (own[-1][1] - line.box.x) * wide
        pieces.append(line.text[max(0, round(start)) : round(end)].strip())
    return " ".join(pieces)


def _count_lines(cell: Sequence[tuple[int, Span]], lines: Sequence[TextLine]) -> int:
    return len(group_rows(LayoutItem(lines[at].box, (at,), 0) for at in {at for at, _ in cell}))


def _is_straight(boxes: Sequence[Box], em: float) -> bool:
    """Return whether most cells of a column share an edge or their centre."""
    if len(boxes) < 2:
        return False
    slack = max(SHIFT, 0.25 * em)
    edges: tuple[list[float], ...] = (
        [float(box.x) for box in boxes], [float(box.right) for box in boxes], [box.x + box.width / 2 for box in boxes]
    )  # fmt: skip
    return any(sum(abs(value - median(each)) <= slack for value in each) >= 0.75 * len(each) for each in edges)


def _is_keyed(texts: Sequence[str]) -> bool:
    """Return whether the texts of a first column are the names of values: almost all end with a colon."""
    known = [text for text in texts if text]
    return len(known) >= ROWS and sum(text.endswith(":") for text in known) >= KEYED * len(known)


def _is_valued(texts: Sequence[str]) -> bool:
    return len(texts) >= 2 and sum(map(begins_like_value, texts)) >= 0.7 * len(texts)


def _has_other_look(rows: Sequence[Sequence[Sequence[tuple[int, Span]]]], lines: Sequence[TextLine]) -> bool:
    """Return whether the first row differs from the others in its ink or its background."""
    looks = [[(lines[at].ink, lines[at].ground) for cell in row for at, _ in cell[:1]] for row in rows]
    first, rest = looks[0], [look for row in looks[1:] for look in row]
    if not first or not rest:
        return False
    return all(sum(look == other for other in rest) < 0.2 * len(rest) for look in first)


def is_bold(rows: Sequence[Sequence[Sequence[tuple[int, Span]]]], words: LineWords) -> bool:
    """Return whether the strokes of the first row are heavier than those of the others."""
    weights = [[words.weigh(at) for cell in row for at, _ in cell[:1]] for row in rows]
    rest = [weight for row in weights[1:] for weight in row]
    return bool(weights[0] and rest) and median(weights[0]) > HEAVY * median(rest)


def _is_monospaced(table: TableCandidate, lines: Sequence[TextLine]) -> bool:
    """Return whether the letters of nearly all long lines are equally wide; digits are in most fonts."""
    long = [lines[at] for row in table.block.rows for at in row if len(lines[at].text) >= LONG]
    widths = [divide_width(line) for line in long if line.middles or any(map(str.isalpha, line.text))]
    usual = median(widths) if len(widths) >= ROWS else 0.0
    return bool(usual) and sum(abs(width / usual - 1) <= MONO for width in widths) >= 0.9 * len(widths)
