"""Find tables whose rows are separated by lines or by backgrounds, as on most web pages.

Rows are the bands between stacked separators of one width; columns are where the rows leave the same places blank. A
line belongs to the band and the column that contain its centre, so that cells of different rows are never joined.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.colours import crop_pixels
from sightline.reader.ocr.line_image import find_ink, find_ink_columns
from sightline.reader.page_text import LayoutItem, group_rows, is_gutter, measure_line_height
from sightline.reader.reading import Pixels, Table, TextLine
from sightline.reader.rectangles import enclose_boxes
from sightline.reader.regions import ColourRegion

RULE = 4  # pixels: a line is at most this thick
WIDTH = 150  # pixels: the width of a table, at least
JOINED = 8  # pixels: the largest gap between pieces of one line
SAME = 6  # pixels by which the ends of separators may differ
BAND = (1.2, 12.0)  # the height of a row, in heights of a line
GAP, NARROW = 0.6, 0.45  # blank between two columns, in heights of a line; less where many rows have it
MANY = 6  # rows
APART = 0.45  # blank between two cells that were read as one line, in heights of that line, at least
SPACE = 0.3  # blank between two words, in heights of their line
ODD = 0.15  # share of the rows that may have text between two columns
ROWS, LINES = 3, 10  # rows of a table, at least, and lines of text in a row, at most
UNEVEN = 0.8  # heights of a line: a row that has this much more blank on one side is at the end of its table
FULL = 0.6  # share of the rows with texts side by side, at least


@dataclass(frozen=True, slots=True)
class _Separator:
    y: int
    left: int
    right: int


def find_ruled_tables(
    pixels: Pixels, regions: Sequence[ColourRegion], lines: Sequence[TextLine]
) -> tuple[list[TextLine], list[Table]]:
    """Return the tables that are separated into rows by what is drawn, and the lines, split where columns are."""
    if not lines:
        return [], []
    em = measure_line_height(lines)
    stacks = _stack_separators(_find_separators(regions, em), em)
    words = {line.box: find_word_spans(pixels, line.box) for line in lines} if stacks else {}
    whole = list(lines)
    for edges in stacks:
        for bands in _split_bands(edges, _fill_bands(edges, whole, em), whole, em):
            spans = [[span for at in band for span in words[whole[at].box]] for band in bands]
            columns = _find_columns(spans, em)
            whole = _split_lines(whole, {at for band in bands for at in band}, columns, words)
    found: list[Table] = []
    for edges in stacks:
        for bands in _split_bands(edges, _fill_bands(edges, whole, em), whole, em):
            table = _make_table(edges, bands, whole, em)
            if table and not any(_is_covered(table.box, other.box) for other in found):
                found.append(table)
    return whole, found


def _split_lines(
    lines: Sequence[TextLine],
    places: set[int],
    columns: Sequence[tuple[int, int]],
    words: dict[Box, list[tuple[int, int]]],
) -> list[TextLine]:
    """Return all lines, those at some places split at the columns."""
    pieces = (
        split_line(line, columns, words, APART) if at in places and columns else [line] for at, line in enumerate(lines)
    )
    return [piece for several in pieces for piece in several]


def find_word_spans(pixels: Pixels, box: Box) -> list[tuple[int, int]]:
    """Return where there is ink in a line, from left to right; blanks that are narrower than a space are filled."""
    mask = find_ink(crop_pixels(pixels, box))
    spans: list[tuple[int, int]] = []
    for start, end in find_ink_columns(mask, 0, len(mask)):
        if spans and start + box.x - spans[-1][1] < SPACE * box.height:
            spans[-1] = (spans[-1][0], box.x + end)
        else:
            spans.append((box.x + start, box.x + end))
    return spans or [(box.x, box.right)]


def split_line(
    line: TextLine, columns: Sequence[tuple[int, int]], words: dict[Box, list[tuple[int, int]]], least: float = 0.0
) -> list[TextLine]:
    """Split a line where it goes from one column to another; its text is split at the nearest space.

    `least` is the blank that must be there, in heights of the line: words of one cell are nearer to each other.
    """
    spans = words[line.box]
    homes = [max(range(len(columns)), key=lambda at: _measure_shared(span, columns[at])) for span in spans]
    cuts = [
        at for at in range(1, len(homes))
        if homes[at] != homes[at - 1] and spans[at][0] - spans[at - 1][1] >= least * line.box.height
    ]  # fmt: skip
    for cut in reversed(cuts):
        blank = (spans[cut - 1][1] + spans[cut][0]) / 2
        place = _find_split(line.text, (blank - line.box.x) / line.box.width)
        first, rest = line.text[:place].rstrip(), line.text[place:].lstrip()
        if not first or not rest:
            continue
        left = Box(line.box.x, line.box.y, spans[cut - 1][1] - line.box.x, line.box.height)
        right = Box(spans[cut][0], line.box.y, line.box.right - spans[cut][0], line.box.height)
        words[left], words[right] = spans[:cut], spans[cut:]
        shift = len(line.text) - len(rest)
        tail = replace(line, text=rest, box=right, doubtful=tuple(at - shift for at in line.doubtful if at >= shift))
        head = replace(line, text=first, box=left, doubtful=tuple(at for at in line.doubtful if at < len(first)))
        return [*split_line(head, columns, words, least), tail]
    return [line]


def _measure_shared(one: tuple[int, int], other: tuple[int, int]) -> int:
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


def _is_covered(one: Box, other: Box) -> bool:
    return one.x < other.right and other.x < one.right and one.y < other.bottom and other.y < one.bottom


def _find_separators(regions: Iterable[ColourRegion], em: float) -> list[_Separator]:
    """Return thin lines, and the upper and lower edges of strips that may be rows."""
    pieces: list[_Separator] = []
    for region in regions:
        box = region.box
        if box.height <= RULE and box.width >= 4 * em:
            pieces.append(_Separator(box.y, box.x, box.right))
        elif BAND[0] * em <= box.height <= BAND[1] * em and box.width >= 4 * em and region.ends >= 0.8:
            pieces += [_Separator(box.y - 1, box.x, box.right), _Separator(box.bottom, box.x, box.right)]
    return [whole for whole in _join_pieces(pieces) if whole.right - whole.left >= WIDTH]


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


def _make_table(
    edges: Sequence[_Separator], bands: Sequence[list[int]], lines: Sequence[TextLine], em: float
) -> Table | None:
    columns = _find_columns([[(lines[at].box.x, lines[at].box.right) for at in band] for band in bands], em)
    if len(bands) < ROWS or len(columns) < 2:
        return None
    rows = [fill_cells(band, columns, lines) for band in bands]
    if sum(sum(map(bool, row)) >= 2 for row in rows) < max(ROWS, FULL * len(rows)):
        return None
    if is_gutter([lines[cell[0]].text for row in rows for cell in row[:1] if cell]):
        return None
    if len(columns) == 2 and sum(bool(row[0]) and bool(row[1]) for row in rows) < 0.8 * len(rows):
        return None
    if len(columns) == 2 and all(lines[at].text.isdigit() for row in rows for at in row[1]):  # a list with counts
        return None
    text = enclose_boxes(lines[at].box for band in bands for at in band)
    below = min((edge.y - text.bottom for edge in edges if edge.y >= text.bottom), default=0)
    margin = min(below, text.y, round(em)) if below else 0
    box = Box(edges[0].left, text.y - margin, edges[0].right - edges[0].left, text.height + 2 * margin)
    return Table(enclose_boxes([text, box]), tuple(tuple(tuple(cell) for cell in row) for row in rows))


def _fill_bands(edges: Sequence[_Separator], lines: Sequence[TextLine], em: float) -> list[list[int]]:
    """Return the lines between each two separators, the row above the first one, and the row below the last one."""
    tops = [edge.y for edge in edges]
    bands: list[list[int]] = [[] for _ in range(len(tops) + 1)]
    for at, line in enumerate(lines):
        if edges[0].left - SAME <= line.box.x and line.box.right <= edges[0].right + SAME:
            bands[bisect_right(tops, line.box.y + line.box.height / 2)].append(at)
    pitch = max(2 * em, min(b - a for a, b in pairwise(tops)))
    above = [at for at in bands[0] if tops[0] - lines[at].box.y <= 1.2 * pitch]
    below = [at for at in bands[-1] if lines[at].box.bottom - tops[-1] <= 1.2 * pitch]
    return [above if _is_one_row(above, lines) else [], *bands[1:-1], below if _is_one_row(below, lines) else []]


def _split_bands(
    edges: Sequence[_Separator], bands: Sequence[list[int]], lines: Sequence[TextLine], em: float
) -> list[list[list[int]]]:
    """Return runs of bands that look like rows: blank space, text or another head ends a table."""
    tops = [None, *(edge.y for edge in edges), None]
    runs: list[list[list[int]]] = [[]]
    for band, (top, bottom) in zip(bands, pairwise(tops), strict=True):
        blank = _measure_blank(band, lines, top, bottom)
        if blank > UNEVEN * em or (runs[-1] and _join_texts(band, lines) == _join_texts(runs[-1][0], lines)):
            runs.append([])
        if _is_row_of_cells(band, lines, em) or (runs[-1] and _is_row_of_one(band, runs[-1], lines)):
            runs[-1].append(band)
        elif runs[-1]:
            runs.append([])
        if blank < -UNEVEN * em:
            runs.append([])
    return [rows for run in runs if len(rows := _remove_last_texts(run, lines, em)) >= ROWS]


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


def _remove_last_texts(run: Sequence[list[int]], lines: Sequence[TextLine], em: float) -> list[list[int]]:
    """Return a run without bands of one text at its end."""
    last = max((at for at, band in enumerate(run) if _is_row_of_cells(band, lines, em)), default=-1)
    return list(run[: last + 1])


def _is_row_of_cells(band: Sequence[int], lines: Sequence[TextLine], em: float) -> bool:
    """Return whether texts are side by side in a band, in a few lines."""
    rows = group_rows(LayoutItem(lines[at].box, (at,), 0) for at in band)
    apart = any(right.box.x - left.box.right >= GAP * em for row in rows for left, right in pairwise(row))
    return apart and len(rows) <= LINES


def _is_one_row(places: Sequence[int], lines: Sequence[TextLine]) -> bool:
    return len(places) > 1 and len(group_rows(LayoutItem(lines[at].box, (at,), 0) for at in places)) == 1


def _find_columns(bands: Sequence[Sequence[tuple[int, int]]], em: float) -> list[tuple[int, int]]:
    """Return the spans between places that almost all rows leave blank."""
    spans = [span for band in bands for span in band]
    if not spans:
        return []
    left, right = min(start for start, _ in spans), max(end for _, end in spans)
    inked = np.zeros(right - left + 1, dtype=np.int64)
    for band in bands:
        row = np.zeros(len(inked), dtype=bool)
        for start, end in band:
            row[start - left : end - left] = True
        inked += row
    filled = np.flatnonzero(inked > ODD * len(bands))
    if not len(filled):
        return []
    breaks = np.flatnonzero(np.diff(filled) > (NARROW if len(bands) >= MANY else GAP) * em)
    starts, ends = np.append(filled[0], filled[breaks + 1]), np.append(filled[breaks], filled[-1])
    return [(left + int(a), left + int(b) + 1) for a, b in zip(starts, ends, strict=True)]


def fill_cells(band: Iterable[int], columns: Sequence[tuple[int, int]], lines: Sequence[TextLine]) -> list[list[int]]:
    """Return the lines of a row in the cells that they share the most with."""
    cells: list[list[int]] = [[] for _ in columns]
    ordered = [
        at
        for row in group_rows(LayoutItem(lines[at].box, (at,), 0) for at in band)
        for item in row
        for at in item.lines
    ]
    for at in ordered:
        box = lines[at].box
        shared = [min(box.right, end) - max(box.x, start) for start, end in columns]
        cells[int(np.argmax(shared))].append(at)
    return cells


def renumber_table(table: Table, places: dict[int, int]) -> Table:
    """Return the same table after the lines were reordered."""
    rows = tuple(tuple(tuple(places[at] for at in cell) for cell in row) for row in table.rows)
    return Table(table.box, rows)
