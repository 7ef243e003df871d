"""Find tables: propose rows between what is drawn, and rows whose cells share their edges, and choose among them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sightline.model.geometry import Box
from sightline.reader.aligned_rows import list_aligned_blocks
from sightline.reader.page_text import LayoutItem, contains_line, group_rows, measure_line_height
from sightline.reader.reading import InterfacePart, Pixels, Table, TextLine
from sightline.reader.rectangles import are_level, enclose_boxes, overlap_horizontally
from sightline.reader.regions import ColourRegion
from sightline.reader.table_columns import GAP, ROWS, LineWords, find_columns
from sightline.reader.table_finder import RowBlock, choose_tables

RULE = 4  # pixels: a line is at most this thick
WIDTH = 150  # pixels: the width of a table, at least
JOINED = 8  # pixels: the largest gap between pieces of one line
SAME = 6  # pixels by which the ends of separators may differ
BAND = (1.2, 12.0)  # the height of a row, in heights of a line
SINGLE = 2  # rows that are one between separators, at least, where others are several
REACH = 1.2  # distances of two separators: how far beyond one at the end a row of one line may be
NEAR = 1.0  # heights of a line: the blank between two lines of a cell at the end of a table
LINES = 10  # lines of text in a row, at most
UNEVEN = 0.8  # heights of a line: a row that has this much more blank on one side is at the end of its table
BESIDE = 1.5  # heights of a line: how far after a toggle its label begins


@dataclass(frozen=True, slots=True)
class _Separator:
    y: int
    left: int
    right: int


def find_ruled_tables(
    pixels: Pixels,
    regions: Sequence[ColourRegion],
    lines: Sequence[TextLine],
    toggles: Iterable[InterfacePart] = (),
    taken: Sequence[Box] = (),
) -> tuple[list[TextLine], list[Table]]:
    """Return the tables that are separated into rows by what is drawn, and the lines, split where columns are.

    Lines in `taken` are in no table.
    """
    if not lines:
        return [], []
    em, words = measure_line_height(lines), LineWords(pixels, lines, find_toggled_lines(lines, toggles), regions)
    other = {at for at, line in enumerate(lines) if any(contains_line(box, line.box) for box in taken)}
    blocks = (
        block for block in list_ruled_blocks(regions, words, em) if all(other.isdisjoint(row) for row in block.rows)
    )
    return choose_tables(words, blocks, em)


def find_aligned_tables(
    pixels: Pixels,
    regions: Sequence[ColourRegion],
    lines: Sequence[TextLine],
    taken: Sequence[Box],
    toggles: Iterable[InterfacePart] = (),
) -> tuple[list[TextLine], list[Table]]:
    """Return the tables without lines, and the lines, split where columns are; lines in `taken` are left alone."""
    if not lines:
        return [], []
    em, words = measure_line_height(lines), LineWords(pixels, lines, find_toggled_lines(lines, toggles), regions)
    return choose_tables(words, list_aligned_blocks(regions, words, em, taken), em)


def find_toggled_lines(lines: Sequence[TextLine], toggles: Iterable[InterfacePart]) -> frozenset[int]:
    """Return the lines directly after a check box, a radio button or a switch."""
    boxes = [toggle.box for toggle in toggles]
    return frozenset(
        at for at, line in enumerate(lines)
        if any(are_level(box, line.box) and -2 <= line.box.x - box.right <= BESIDE * line.box.height for box in boxes)
    )  # fmt: skip


def list_ruled_blocks(regions: Sequence[ColourRegion], words: LineWords, em: float) -> Iterator[RowBlock]:
    """Yield runs of bands between stacked separators of one width."""
    lines = words.lines
    for edges in _stack_separators(_find_separators(regions, em), em):
        for bands in _split_bands(edges, _fill_bands(edges, lines, em), words, em):
            yield RowBlock(tuple(map(tuple, _split_full_bands(bands, words, em))), (edges[0].left, edges[0].right))


def _find_separators(regions: Iterable[ColourRegion], em: float) -> list[_Separator]:
    """Return thin lines, and the upper and lower edges of strips that may be rows."""
    pieces: list[_Separator] = []
    short: dict[int, list[_Separator]] = {}
    for region in regions:
        box = region.box
        if box.height <= RULE and box.width >= 4 * em:
            pieces.append(_Separator(box.y, box.x, box.right))
        elif box.height <= RULE and box.width >= em:
            short.setdefault(box.y, []).append(_Separator(box.y, box.x, box.right))
        elif BAND[0] * em <= box.height <= BAND[1] * em and box.width >= 4 * em and region.ends >= 0.8:
            pieces += [_Separator(box.y - 1, box.x, box.right), _Separator(box.bottom, box.x, box.right)]
    whole = [_add_short_pieces(piece, short.get(piece.y, ())) for piece in _join_pieces(pieces)]
    return [piece for piece in whole if piece.right - piece.left >= WIDTH]


def _add_short_pieces(line: _Separator, pieces: Iterable[_Separator]) -> _Separator:
    """Return a line with the short pieces that it touches: those of narrow columns."""
    for piece in pieces:
        if -RULE <= piece.left - line.right <= RULE or -RULE <= line.left - piece.right <= RULE:
            line = _Separator(line.y, min(line.left, piece.left), max(line.right, piece.right))
    return line


def _join_pieces(pieces: Sequence[_Separator]) -> list[_Separator]:
    """Join pieces of one line: the cells of a row may each have their own."""
    joined: list[_Separator] = []
    for piece in sorted(pieces, key=lambda each: (each.y, each.left)):
        near = next(
            (
                at for at in range(len(joined) - 1, max(-1, len(joined) - 40), -1)
                if abs(joined[at].y - piece.y) <= 2 and piece.left - joined[at].right <= JOINED
                and joined[at].left - piece.right <= JOINED
            ),
            None,
        )  # fmt: skip
        if near is None:
            joined.append(piece)
        else:
            old = joined[near]
            joined[near] = _Separator(old.y, min(old.left, piece.left), max(old.right, piece.right))
    return joined


def _stack_separators(found: Sequence[_Separator], em: float) -> list[list[_Separator]]:
    """Return stacks of separators with the same ends, at the distances of rows; the longest first."""
    families: list[list[_Separator]] = []
    for each in sorted(found, key=lambda one: one.y):
        home = next(
            (
                family for family in families
                if abs(family[-1].left - each.left) <= SAME and abs(family[-1].right - each.right) <= SAME
                and each.y - family[-1].y <= BAND[1] * em
            ),
            None,
        )  # fmt: skip
        if home is None:
            families.append([each])
        elif each.y - home[-1].y > RULE:
            home.append(each)
    return sorted((family for family in families if len(family) >= ROWS - 1), key=len, reverse=True)


def _fill_bands(edges: Sequence[_Separator], lines: Sequence[TextLine], em: float) -> list[list[int]]:
    """Return the lines between each two separators, the row above the first one, and the row below the last one."""
    tops = [edge.y for edge in edges]
    bands: list[list[int]] = [[] for _ in range(len(tops) + 1)]
    for at, line in enumerate(lines):
        if edges[0].left - SAME <= line.box.x and line.box.right <= edges[0].right + SAME:
            bands[bisect_right(tops, line.box.y + line.box.height / 2)].append(at)
    pitch = max(2 * em, min(b - a for a, b in pairwise(tops)))
    above = [(at, tops[0] - lines[at].box.y) for at in bands[0]]
    below = [(at, lines[at].box.bottom - tops[-1]) for at in bands[-1]]
    first = _choose_end_row(above, bands[1], lines, em, pitch)
    return [first, *bands[1:-1], _choose_end_row(below, bands[-2], lines, em, pitch)]


def _choose_end_row(
    far: Sequence[tuple[int, int]], beside: Sequence[int], lines: Sequence[TextLine], em: float, pitch: float
) -> list[int]:
    """Return the lines beyond the first or the last separator that are one more row, or none.

    Cells of several lines are above or below those of the row beside, of which one may be empty.
    """
    one = [at for at, distance in far if distance <= REACH * pitch]
    if _is_one_row(one, lines):
        return one
    for most in (REACH * pitch + em, REACH * pitch):
        several = [at for at, distance in far if distance <= most]
        cells = _list_level_cells([lines[at].box for at in several], em)
        shared = [cell for cell in cells if any(overlap_horizontally(cell, lines[at].box) for at in beside)]
        if len(shared) >= max(ROWS, len(cells) - 1):
            return several
    return []


def _split_bands(
    edges: Sequence[_Separator], bands: Sequence[list[int]], words: LineWords, em: float
) -> list[list[list[int]]]:
    """Return runs of bands that look like rows: blank space, text or another head ends a table."""
    lines, tops = words.lines, [None, *(edge.y for edge in edges), None]
    runs: list[list[list[int]]] = [[]]
    for band, (top, bottom) in zip(bands, pairwise(tops), strict=True):
        blank = _measure_blank(band, lines, top, bottom)
        if blank > UNEVEN * em or (runs[-1] and _join_texts(band, lines) == _join_texts(runs[-1][0], lines)):
            runs.append([])
        if _is_row_of_cells(band, words, em) or (runs[-1] and _is_row_of_one(band, runs[-1], lines)):
            runs[-1].append(band)
        elif runs[-1]:
            runs.append([])
        if blank < -UNEVEN * em:
            runs.append([])
    return [rows for run in runs if len(rows := _remove_last_texts(run, words, em)) >= ROWS]


def _split_full_bands(bands: Sequence[list[int]], words: LineWords, em: float) -> list[list[int]]:
    """Return the bands, those with several rows that have a text in each column as these rows.

    They are rows where other bands have one: where nothing but the selected row is drawn. Lines of one cell are not
    all beside lines of each other cell.
    """
    levels = [group_rows(LayoutItem(words.lines[at].box, (at,), 0) for at in band) for band in bands]
    rows = [[[item.lines[0] for item in level] for level in band] for band in levels]
    if sum(len(own) == 1 for own in rows) < SINGLE or len(rows) == sum(map(len, rows)):
        return list(bands)
    spans = {tuple(row): sorted((*span, at) for at in row for span in words[at]) for own in rows for row in own}
    columns = find_columns(list(spans.values()), em, words)
    if len(columns) < ROWS:
        return list(bands)
    full = {row for row, own in spans.items() if all(any(w[0] < end and start < w[1] for w in own)
                                                     for start, end in columns)}  # fmt: skip
    divided = [all(tuple(row) in full for row in own) for own in rows]
    return [row for band, own, parts in zip(bands, rows, divided, strict=True) for row in (own if parts else [band])]


def _measure_blank(places: Sequence[int], lines: Sequence[TextLine], top: int | None, bottom: int | None) -> int:
    """Return how much more blank a band has above its text than below it; 0 where its ends are unknown."""
    if not places or top is None or bottom is None:
        return 0
    text = enclose_boxes(lines[at].box for at in places)
    return (text.y - top) - (bottom - text.bottom)


def _join_texts(band: Sequence[int], lines: Sequence[TextLine]) -> str:
    return " ".join(lines[at].text for at in sorted(band, key=lambda at: lines[at].box.x))


def _is_row_of_one(band: Sequence[int], run: Sequence[Sequence[int]], lines: Sequence[TextLine]) -> bool:
    """Return whether a band has one text that begins as one in the row above: its other cells may have icons."""
    if not band or len(group_rows(LayoutItem(lines[at].box, (at,), 0) for at in band)) > ROWS:
        return False
    high = 1.5 * max(lines[at].box.height for at in run[-1])
    left = min(lines[at].box.x for at in band)
    return any(abs(lines[at].box.x - left) <= SAME for at in run[-1]) and all(
        lines[at].box.height <= high for at in band
    )


def _remove_last_texts(run: Sequence[list[int]], words: LineWords, em: float) -> list[list[int]]:
    """Return a run without bands of one text at its end."""
    last = max((at for at, band in enumerate(run) if _is_row_of_cells(band, words, em)), default=-1)
    return list(run[: last + 1])


def _is_row_of_cells(band: Sequence[int], words: LineWords, em: float) -> bool:
    """Return whether texts are side by side in a band, in a few lines."""
    rows = group_rows(LayoutItem(words.lines[at].box, (at,), 0) for at in band)
    for row in rows:
        spans = [span for item in row for span in words[item.lines[0]]]
        if any(right[0] - left[1] >= GAP * em for left, right in pairwise(spans)):
            return len(rows) <= LINES
    cells = _stack_lines([words.lines[at].box for at in band], em) if 1 < len(rows) <= LINES else []
    return any(are_level(left, right) for left, right in pairwise(cells))


def _stack_lines(boxes: Sequence[Box], em: float) -> list[Box]:
    """Return the boxes around lines that are above each other, from left to right."""
    stacks: list[Box] = []
    for box in sorted(boxes, key=lambda each: each.x):
        if stacks and box.x - stacks[-1].right < GAP * em:
            stacks[-1] = enclose_boxes([stacks[-1], box])
        else:
            stacks.append(box)
    return stacks


def _is_one_row(places: Sequence[int], lines: Sequence[TextLine]) -> bool:
    return len(places) > 1 and len(group_rows(LayoutItem(lines[at].box, (at,), 0) for at in places)) == 1


def _list_level_cells(boxes: Sequence[Box], em: float) -> list[Box]:
    """Return the cells of one row, each of one line or several near each other; none if they are no row."""
    cells = _stack_lines(boxes, em)
    high = max(cells, key=lambda cell: cell.height, default=None)
    if high is None or len(cells) < ROWS or not all(are_level(cell, high) for cell in cells):
        return []
    stacks = [sorted((box for box in boxes if overlap_horizontally(box, cell)), key=_get_top) for cell in cells]
    near = all(below.y - above.bottom <= NEAR * em for stack in stacks for above, below in pairwise(stack))
    return cells if near else []


def _get_top(box: Box) -> int:
    return box.y
