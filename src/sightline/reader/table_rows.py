"""Propose rows that may be tables: bands between what is drawn, and lines whose cells share their edges."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.page_text import LayoutItem, contains_line, group_rows, measure_line_height
from sightline.reader.reading import InterfacePart, Pixels, Table, TextLine
from sightline.reader.rectangles import are_level, enclose_boxes, overlap_horizontally
from sightline.reader.regions import ColourRegion
from sightline.reader.table_columns import ROWS, LineWords, cut_at_shared_edges, find_columns
from sightline.reader.table_finder import RowBlock, choose_tables

RULE = 4  # pixels: a line is at most this thick
WIDTH = 150  # pixels: the width of a table, at least
JOINED = 8  # pixels: the largest gap between pieces of one line
SAME = 6  # pixels by which the ends of separators may differ
BAND = (1.2, 12.0)  # the height of a row, in heights of a line
GAP = 0.6  # blank between two cells of a row, in heights of a line
LINES = 10  # lines of text in a row, at most
UNEVEN = 0.8  # heights of a line: a row that has this much more blank on one side is at the end of its table
EDGE = 0.15  # heights of a line by which the edges of cells of one column may differ
STEP = (0.8, 4.5)  # heights of a line: the distance of rows that have no line between them
SINGLE = 4  # rows with one piece that end a table
LEVEL = 0.7  # share of the cells of one column that are level with those of another
BESIDE = 1.5  # heights of a line: how far after a toggle its label begins
HEAD = 2.0  # heights of a line: the blank below the heads of columns, at most
WIDER = 5.0  # heights of a line: how much longer the head of the last column may be than its cells
FAR = 40  # heights of a line: the blank between two columns, at most
PANEL = (8, 5)  # heights of a line: a region that is as wide and high may be a card


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
    em, words = measure_line_height(lines), LineWords(pixels, lines, find_toggled_lines(lines, toggles))
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
    em, words = measure_line_height(lines), LineWords(pixels, lines, find_toggled_lines(lines, toggles))
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
            yield RowBlock(tuple(map(tuple, bands)), (edges[0].left, edges[0].right))


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
    return False


def _is_one_row(places: Sequence[int], lines: Sequence[TextLine]) -> bool:
    return len(places) > 1 and len(group_rows(LayoutItem(lines[at].box, (at,), 0) for at in places)) == 1


@dataclass(frozen=True, slots=True)
class _Piece:
    """Words of a line without a wide blank between them, and the card that they are in."""

    box: Box
    line: int
    home: int


@dataclass(frozen=True, slots=True)
class _Chain:
    """Pieces below each other that share an edge."""

    pieces: tuple[_Piece, ...]

    @property
    def span(self) -> tuple[int, int]:
        return self.pieces[0].box.y, self.pieces[-1].box.bottom


def list_aligned_blocks(
    regions: Sequence[ColourRegion], words: LineWords, em: float, taken: Sequence[Box]
) -> Iterator[RowBlock]:
    """Yield rows of columns that are level with each other."""
    cards = sorted(
        {region.box for region in regions
         if region.box.width >= PANEL[0] * em and region.box.height >= PANEL[1] * em and region.sides > 0.5},
        key=lambda box: box.width * box.height,
    )  # fmt: skip
    pieces = list(_list_pieces(words, em, cards, taken))
    chains = _find_chains(pieces, em)
    links = [[_is_linked(one, other, em) for other in chains] for one in chains]
    seen: set[int] = set()
    for start in range(len(chains)):
        group, open_ones = set[int](), [start] if start not in seen else []
        while open_ones:
            at = open_ones.pop()
            group.add(at)
            open_ones += [to for to, linked in enumerate(links[at]) if linked and to not in group]
        seen |= group
        if len(group) > 1:
            yield from _list_rows([chains[at] for at in group], pieces, words, em)


def _list_pieces(words: LineWords, em: float, cards: Sequence[Box], taken: Sequence[Box]) -> Iterator[_Piece]:
    for at, line in enumerate(words.lines):
        if any(contains_line(box, line.box) for box in taken):
            continue
        home = next((place for place, card in enumerate(cards) if contains_line(card, line.box)), -1)
        spans: list[tuple[int, int]] = []
        for start, end in words[at]:
            if spans and start - spans[-1][1] < GAP * em:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
        yield from (_Piece(Box(start, line.box.y, end - start, line.box.height), at, home) for start, end in spans)


def _find_chains(pieces: Sequence[_Piece], em: float) -> list[_Chain]:
    """Return pieces that begin, or end, at one place, at the distances of rows."""
    slack = max(2.0, EDGE * em)
    chains: list[_Chain] = []
    for right in (False, True):
        edges = [(piece.box.right if right else piece.box.x, piece.box.y, piece) for piece in pieces]
        clusters: list[list[tuple[int, int, _Piece]]] = []
        for each in sorted(edges, key=lambda one: (one[0], one[1])):
            if clusters and each[0] - clusters[-1][0][0] <= 2 * slack and each[0] - clusters[-1][-1][0] <= slack:
                clusters[-1].append(each)
            else:
                clusters.append([each])
        for cluster in clusters:
            for home in {piece.home for _, _, piece in cluster}:
                column = sorted((piece for _, _, piece in cluster if piece.home == home), key=lambda one: one.box.y)
                chains += [_Chain(tuple(run)) for run in _split_at_steps(column, em) if len(run) >= ROWS]
    return chains


def _split_at_steps(column: Sequence[_Piece], em: float) -> list[list[_Piece]]:
    runs: list[list[_Piece]] = [[]]
    for piece in column:
        if runs[-1]:
            last = runs[-1][-1].box
            high = max(last.height, piece.box.height)
            if piece.box.y - last.y > 2 * STEP[1] * em or high > 1.7 * min(last.height, piece.box.height):
                runs.append([])
        runs[-1].append(piece)
    return runs


def _is_linked(one: _Chain, other: _Chain, em: float) -> bool:
    """Return whether most pieces of two chains are level, side by side, and in one card."""
    if one is other or one.pieces[0].home != other.pieces[0].home:
        return False
    top, bottom = max(one.span[0], other.span[0]), min(one.span[1], other.span[1])
    own = [piece for piece in one.pieces if top <= piece.box.y + piece.box.height / 2 <= bottom]
    others = [piece for piece in other.pieces if top <= piece.box.y + piece.box.height / 2 <= bottom]
    if min(len(own), len(others)) < ROWS:
        return False
    level = [(a, b) for a in own for b in others if a is not b and are_level(a.box, b.box)]
    gaps = [max(b.box.x - a.box.right, a.box.x - b.box.right) for a, b in level]
    return (
        len(level) >= max(ROWS, LEVEL * min(len(own), len(others)), 0.4 * max(len(own), len(others)))
        and min(gaps) >= 0
        and median(gaps) <= FAR * em
    )


def _list_rows(chains: Sequence[_Chain], pieces: Sequence[_Piece], words: LineWords, em: float) -> Iterator[RowBlock]:
    """Yield the rows in which at least two chains have a piece, and what is between them."""
    own = {(piece.box, piece.line): piece for chain in chains for piece in chain.pieces}
    levels = group_rows(LayoutItem(piece.box, (piece.line,), 0) for piece in own.values())
    runs: list[list[list[LayoutItem]]] = [[]]
    for level in levels:
        single = sum(len(each) == 1 for each in runs[-1][-SINGLE:])
        if runs[-1] and (level[0].middle - runs[-1][-1][0].middle > STEP[1] * em or single == SINGLE):
            runs.append([])
        runs[-1].append(level)
    home = chains[0].pieces[0].home
    for run in runs:
        anchors = [at for at, level in enumerate(run) if len(level) > 1]
        if len(anchors) < ROWS:
            continue
        run = run[anchors[0] : anchors[-1] + 1]
        box = enclose_boxes(item.box for level in run for item in level)
        inside = [
            piece for piece in pieces
            if piece.home == home and box.x - em <= piece.box.x and piece.box.right <= box.right + FAR * em
            and box.y <= piece.box.y + piece.box.height / 2 <= box.bottom and piece.box.x <= box.right + em
        ]  # fmt: skip
        rows = group_rows(LayoutItem(piece.box, (piece.line,), 0) for piece in inside)
        joined = _join_wrapped(rows, em)
        yield _make_block(joined)
        if head := _find_head(joined, [piece for piece in pieces if piece.home == home], words, em):
            yield _make_block([head, *joined])


def _make_block(rows: Iterable[Sequence[LayoutItem]]) -> RowBlock:
    return RowBlock(tuple(tuple(dict.fromkeys(item.lines[0] for item in row)) for row in rows))


def _find_head(
    rows: Sequence[Sequence[LayoutItem]], pieces: Sequence[_Piece], words: LineWords, em: float
) -> list[LayoutItem]:
    """Return the row directly above, which may be centred above the columns, if all its texts head one each."""
    box = enclose_boxes(item.box for row in rows for item in row)
    pitch = (box.bottom - box.y) / len(rows)
    above = [
        piece for piece in pieces
        if 0 <= box.y - piece.box.bottom <= max(HEAD * em, pitch)
        and piece.box.x < box.right + em and piece.box.right > box.x - em
    ]  # fmt: skip
    levels = group_rows(LayoutItem(piece.box, (piece.line,), 0) for piece in above)
    heads = levels[-1] if levels else []
    if not heads or not all(box.x - em <= head.box.x and head.box.right <= box.right + WIDER * em for head in heads):
        return []
    headed = all(any(overlap_horizontally(item.box, head.box) for row in rows for item in row) for head in heads)
    inside = heads[-1].box.right <= box.right + em
    return heads if (len(heads) > 1 and headed and inside) or _heads_columns(rows, heads, words, em) else []


def _heads_columns(
    rows: Sequence[Sequence[LayoutItem]], heads: Sequence[LayoutItem], words: LineWords, em: float
) -> bool:
    """Return whether words that were read as one line are above one column each."""
    block = _make_block([heads, *rows]).rows
    cut_at_shared_edges(words, block)
    spans = [sorted((start, end, at) for at in row for start, end in words[at]) for row in block]
    columns = find_columns(spans, em, words)
    filled = all(any(start < word[1] and word[0] < end for word in spans[0]) for start, end in columns)
    return filled and len(columns) >= max(3, len(find_columns(spans[1:], em, words)))


def _join_wrapped(rows: Sequence[list[LayoutItem]], em: float) -> list[list[LayoutItem]]:
    """Join rows of one piece to the row above where rows are further from each other than lines of one cell."""
    joined: list[list[LayoutItem]] = []
    left = min(item.box.x for row in rows for item in row)
    for row in rows:
        if joined:
            blank = min(item.box.y for item in row) - max(item.box.bottom for item in joined[-1])
            if blank < 0.6 * em and min(item.box.x for item in row) > left + em:
                joined[-1] = [*joined[-1], *row]
                continue
        joined.append(list(row))
    return joined
