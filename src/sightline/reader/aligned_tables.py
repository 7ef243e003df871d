"""Find tables without lines, whose rows begin or end their cells at the same places.

Texts of neighbouring cells may nearly touch, and are then read as one line: where the cells of most rows begin is
searched for in the ink itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.colours import crop_pixels
from sightline.reader.ocr.line_image import find_ink, find_ink_columns
from sightline.reader.page_text import LONG, MONO, PROSE, contains_line, divide_width, is_gutter
from sightline.reader.phrases import begins_like_value
from sightline.reader.reading import Pixels, Table, TextLine
from sightline.reader.rectangles import are_level, enclose_boxes
from sightline.reader.ruled_tables import fill_cells, split_line

Span = tuple[int, int]

ROWS = 5  # of a table, at least
SAME = 0.8  # share of the rows that begin or end a cell at one place
CROSSED = 0.1  # share of the rows that may have ink before it
SHIFT = 2  # pixels by which these places may differ
PITCH = (0.8, 3.5)  # heights of a line: the distance of rows
BLANK = 0.8  # heights of a line: what most rows leave blank between two cells
TIGHT, WIDE = 4.0, 12.0  # heights of a line: the smallest blank between columns, of words and of values, at most


@dataclass(frozen=True, slots=True)
class _Row:
    lines: tuple[TextLine, ...]
    spans: tuple[Span, ...]  # of ink, from left to right


def find_aligned_tables(
    pixels: Pixels, lines: Sequence[TextLine], taken: Sequence[Box]
) -> tuple[list[TextLine], list[Table]]:
    """Return the tables, and the lines, split where columns begin; lines in `taken` are left alone."""
    whole, found = list(lines), list[Table]()
    free = [line for line in lines if not any(contains_line(box, line.box) for box in taken)]
    for chain in _find_chains(free):
        rows = [_make_row(pixels, first, free) for first in chain if first in free]
        starts = _find_cell_starts(rows)
        if len(rows) < ROWS or len(starts) < 2:
            continue
        columns = [*zip(starts, [*(start - 1 for start in starts[1:]), pixels.shape[1]], strict=True)]
        words = {line.box: _cut_spans(line.box, row.spans, starts) for row in rows for line in row.lines}
        pieces = {line: split_line(line, columns, words) for row in rows for line in row.lines}
        if not _are_cells([[piece for line in row.lines for piece in pieces[line]] for row in rows], columns):
            continue
        whole = [piece for line in whole for piece in pieces.get(line, [line])]
        places = {line: at for at, line in enumerate(whole)}
        cells = [
            fill_cells([places[piece] for line in row.lines for piece in pieces[line]], columns, whole) for row in rows
        ]
        used = {line for row in rows for line in row.lines}
        found.append(Table(enclose_boxes(line.box for line in used), tuple(tuple(map(tuple, row)) for row in cells)))
        free = [line for line in free if line not in used]
    return whole, found


def _find_chains(lines: Sequence[TextLine]) -> list[list[TextLine]]:
    """Return lines below each other that begin at one place, at one distance; from left to right."""
    chains: list[list[TextLine]] = []
    for line in sorted(lines, key=lambda each: each.box.bottom):
        home = next((chain for chain in reversed(chains) if _continues_chain(chain, line)), None)
        if home is None:
            chains.append([line])
        else:
            home.append(line)
    return sorted((chain for chain in chains if len(chain) >= ROWS), key=lambda chain: chain[0].box.x)


def _continues_chain(chain: Sequence[TextLine], line: TextLine) -> bool:
    last = chain[-1].box
    step, high = _find_middle(line.box) - _find_middle(last), max(last.height, line.box.height)
    if abs(line.box.x - last.x) > SHIFT + 1 or not PITCH[0] * high <= step <= PITCH[1] * high:
        return False
    return len(chain) < 2 or abs(step - _find_middle(last) + _find_middle(chain[-2].box)) <= 0.5 * high


def _find_middle(box: Box) -> float:
    return box.y + box.height / 2


def _make_row(pixels: Pixels, first: TextLine, lines: Sequence[TextLine]) -> _Row:
    """Return a line and those after it in its row, without a wide blank between them."""
    row = [first]
    for line in sorted(lines, key=lambda each: each.box.x):
        gap = line.box.x - row[-1].box.right
        if line is not first and gap >= 0 and are_level(first.box, line.box) and gap <= WIDE * first.box.height:
            row.append(line)
    spans = [span for line in row for span in _find_ink_spans(pixels, line.box)]
    return _Row(tuple(row), tuple(spans))


def _find_ink_spans(pixels: Pixels, box: Box) -> Iterator[Span]:
    mask = find_ink(crop_pixels(pixels, box))
    yield from ((box.x + start, box.x + end) for start, end in find_ink_columns(mask, 0, len(mask)))


def _cut_spans(box: Box, spans: Sequence[Span], starts: Sequence[int]) -> list[Span]:
    """Return the ink of one line as one span for each cell."""
    own = [span for span in spans if box.x <= span[0] < box.right]
    cells: dict[int, list[Span]] = {}
    for span in own:
        cells.setdefault(sum(start - SHIFT <= span[0] for start in starts), []).append(span)
    return [(cell[0][0], cell[-1][1]) for cell in cells.values()] or [(box.x, box.right)]


def _find_cell_starts(rows: Sequence[_Row]) -> list[int]:
    """Return where most rows begin a cell after a blank, the beginning of the rows included."""
    if not rows:
        return []
    high = median(row.lines[0].box.height for row in rows)
    first = min(row.spans[0][0] for row in rows if row.spans)
    gaps = [[(left[1], right[0]) for left, right in pairwise(row.spans)] for row in rows]
    found = [first]
    for start in sorted({end for row in gaps for begin, end in row if end - begin >= BLANK * high}):
        if start - found[-1] < high or not _share_place(gaps, start):
            continue
        crossed = sum(
            any(left < start - SHIFT and right > start - SHIFT + 1 for left, right in row.spans) for row in rows
        )
        blanks = [end - begin for row in gaps for begin, end in row if begin < start <= end + SHIFT]
        if crossed <= CROSSED * len(rows) and blanks and median(blanks) >= BLANK * high:
            found.append(start)
    return found


def _share_place(gaps: Sequence[Sequence[Span]], start: int) -> bool:
    """Return whether most rows begin a cell at a place, or end the one before it at one place."""
    enough = SAME * len(gaps)
    if sum(any(abs(end - start) <= SHIFT for _, end in row) for row in gaps) >= enough:
        return True
    ends = {begin for row in gaps for begin, end in row if abs(end - start) <= SHIFT}
    return any(
        sum(any(abs(begin - edge) <= SHIFT and end >= start - SHIFT for begin, end in row) for row in gaps) >= enough
        for edge in ends
    )


def _are_cells(rows: Sequence[Sequence[TextLine]], columns: Sequence[Span]) -> bool:
    """Return whether most cells have a text, and the columns are those of a table: near each other, or with values."""
    cells = [[[line for line in row if start - SHIFT <= line.box.x < end] for start, end in columns] for row in rows]
    if any(sum(bool(row[at]) for row in cells) < SAME * len(rows) for at in range(len(columns))):
        return False
    texts = [[row[at][0].text for row in cells if row[at]] for at in range(len(columns))]
    if is_gutter(texts[0]) or median(map(len, texts[0])) >= PROSE or _is_monospaced(rows):
        return False
    high = median(line.box.height for row in rows for line in row)
    blanks = [
        min(row[at + 1][0].box.x - row[at][-1].box.right for row in cells if row[at] and row[at + 1])
        for at in range(len(columns) - 1)
    ]
    valued = any(sum(map(begins_like_value, column)) >= SAME * (len(column) - 1) for column in texts[1:])
    if len(columns) == 2 and all(text.isdigit() for text in texts[1]):
        return False
    return valued if len(columns) > 2 and min(blanks) > TIGHT * high else max(blanks) <= TIGHT * high


def _is_monospaced(rows: Sequence[Sequence[TextLine]]) -> bool:
    """Return whether all characters are equally wide: a program or a terminal, which keep their columns as text."""
    widths = [divide_width(line) for row in rows for line in row if len(line.text) >= LONG]
    usual = median(widths) if len(widths) >= ROWS else 0.0
    return bool(usual) and sum(abs(width / usual - 1) <= MONO for width in widths) >= 0.9 * len(widths)
