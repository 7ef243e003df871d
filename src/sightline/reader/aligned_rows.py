"""Propose rows of text that may be tables without lines: their cells begin or end at the same places."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.page_text import LayoutItem, contains_line, group_rows
from sightline.reader.rectangles import are_level, enclose_boxes, overlap_horizontally
from sightline.reader.regions import ColourRegion
from sightline.reader.table_columns import GAP, ROWS, LineWords, cut_at_shared_edges, find_columns
from sightline.reader.table_finder import RowBlock

EDGE = 0.15  # heights of a line by which the edges of cells of one column may differ
STEP = (0.8, 4.5)  # heights of a line: the distance of rows that have no line between them
NEAR, APART = 0.75, 1.6  # the blank between lines of one cell in heights of a line, and how much more is between cells
MOST_PIECES = 15_000  # of a page; of more, as columns are compared with each other, none are said to be a table
MOST = 1000  # pieces of a page in which cells of several lines are searched for
SINGLE = 4  # rows with one piece that end a table
LEVEL = 0.7  # share of the cells of one column that are level with those of another
HEAD = 2.0  # heights of a line: the blank below the heads of columns, at most
WIDER = 5.0  # heights of a line: how much longer the head of the last column may be than its cells
FAR = 40  # heights of a line: the blank between two columns, at most
PANEL = (8, 5)  # heights of a line: a region that is as wide and high may be a card
SAME = 4  # pixels by which the edges of the columns of a table and those of their heads may differ


@dataclass(frozen=True, slots=True)
class _Piece:
    """Words of a line without a wide blank between them, or several such below each other, and their card."""

    box: Box
    lines: tuple[int, ...]
    home: int
    high: int  # of its first line


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
    pieces = list(_list_pieces(words, em, _find_cards(regions, em), taken))
    if len(pieces) > MOST_PIECES:
        return
    yield from _list_linked_rows(pieces, words, em)
    stacked = _stack_pieces(pieces, em) if len(pieces) <= MOST else pieces
    if len(stacked) < len(pieces):
        yield from _list_linked_rows(stacked, words, em)


def _find_cards(regions: Sequence[ColourRegion], em: float) -> list[Box]:
    """Return regions that may be cards, the smallest first; a column of a table, below its head, is none."""
    found = {
        region.box for region in regions
        if region.box.width >= PANEL[0] * em and region.box.height >= PANEL[1] * em and region.sides > 0.5
    }  # fmt: skip
    ends: dict[tuple[int, int], list[Box]] = {}
    for region in regions:
        ends.setdefault((region.box.x // SAME, region.box.right // SAME), []).append(region.box)
    tops: dict[tuple[int, int], list[Box]] = {}
    for box in (box for box in found if _is_headed(box, ends)):
        tops.setdefault((box.y, box.bottom), []).append(box)
    columns = {box for row in tops.values() for one, other in pairwise(sorted(row, key=lambda box: box.x))
               if 0 <= other.x - one.right <= SAME for box in (one, other)}  # fmt: skip
    return sorted(found - columns, key=lambda box: box.width * box.height)


def _is_headed(card: Box, ends: Mapping[tuple[int, int], Sequence[Box]]) -> bool:
    """Return whether a lower region that is as wide is directly above."""
    left, right = card.x // SAME, card.right // SAME
    near = (box for x in (-1, 0, 1) for end in (-1, 0, 1) for box in ends.get((left + x, right + end), ()))
    return any(0 <= card.y - box.bottom <= SAME and 2 * box.height < card.height
               and abs(box.x - card.x) <= SAME and abs(box.right - card.right) <= SAME for box in near)  # fmt: skip


def _list_linked_rows(pieces: Sequence[_Piece], words: LineWords, em: float) -> Iterator[RowBlock]:
    """Yield the rows of chains that are beside each other."""
    chains = list(dict.fromkeys(_find_chains(pieces, em)))  # cells may both begin and end at one place
    links: list[list[int]] = [[] for _ in chains]
    for (at, one), (to, other) in combinations(enumerate(chains), 2):
        if _is_linked(one, other, em):
            links[at].append(to)
            links[to].append(at)
    seen: set[int] = set()
    for start in range(len(chains)):
        group, open_ones = set[int](), [start] if start not in seen else []
        while open_ones:
            at = open_ones.pop()
            group.add(at)
            open_ones += [to for to in links[at] if to not in group]
        seen |= group
        if len(group) > 1:
            yield from _list_rows([chains[at] for at in group], pieces, words, em)


def _stack_pieces(pieces: Sequence[_Piece], em: float) -> list[_Piece]:
    """Return the pieces, those that are lines of one cell as one.

    They are nearer to each other than others of their column are.
    """
    stacks: list[_Piece] = []
    used: set[tuple[Box, int]] = set()
    for chain in _find_chains(pieces, em):
        blanks = [below.box.y - above.box.bottom for above, below in pairwise(chain.pieces)]
        near = [blank for blank in blanks if blank <= NEAR * em]
        if not near or len(near) == len(blanks) or min(set(blanks) - set(near)) < max(APART * max(near), NEAR * em):
            continue
        groups: list[list[_Piece]] = [[chain.pieces[0]]]
        for piece, blank in zip(chain.pieces[1:], blanks, strict=True):
            if blank <= NEAR * em:
                groups[-1].append(piece)
            else:
                groups.append([piece])
        for group in groups:
            keys = {(piece.box, piece.lines[0]) for piece in group}
            if len(group) > 1 and used.isdisjoint(keys):
                used |= keys
                lines = tuple(at for piece in group for at in piece.lines)
                stacks.append(_Piece(enclose_boxes(p.box for p in group), lines, group[0].home, group[0].high))
    return [*stacks, *(piece for piece in pieces if (piece.box, piece.lines[0]) not in used)]


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
        high = line.box.height
        yield from (_Piece(Box(start, line.box.y, end - start, high), (at,), home, high) for start, end in spans)


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
            last = runs[-1][-1]
            high, low = max(last.high, piece.high), min(last.high, piece.high)
            if piece.box.y - last.box.bottom > (2 * STEP[1] - 1) * em or high > 1.7 * low:
                runs.append([])
        runs[-1].append(piece)
    return runs


def _is_linked(one: _Chain, other: _Chain, em: float) -> bool:
    """Return whether most pieces of two chains are level, side by side, and in one card."""
    top, bottom = max(one.span[0], other.span[0]), min(one.span[1], other.span[1])
    if bottom <= top or one.pieces[0].home != other.pieces[0].home:
        return False
    own = [piece for piece in one.pieces if top <= piece.box.y + piece.box.height / 2 <= bottom]
    others = [piece for piece in other.pieces if top <= piece.box.y + piece.box.height / 2 <= bottom]
    if min(len(own), len(others)) < ROWS:
        return False
    level = _list_level_pairs(own, others)
    gaps = [max(b.box.x - a.box.right, a.box.x - b.box.right) for a, b in level]
    return (
        len(level) >= max(ROWS, LEVEL * min(len(own), len(others)), 0.4 * max(len(own), len(others)))
        and min(gaps) >= 0
        and median(gaps) <= FAR * em
    )


def _list_level_pairs(own: Sequence[_Piece], others: Sequence[_Piece]) -> list[tuple[_Piece, _Piece]]:
    """Return the pieces of two chains that are level; each is compared with those near its height only."""
    ordered = sorted(others, key=_get_top)
    high = max((piece.box.height for piece in ordered), default=0)
    return [
        (one, other)
        for one in own
        for other in ordered[
            bisect_left(ordered, one.box.y - high, key=_get_top) : bisect_right(ordered, one.box.bottom, key=_get_top)
        ]
        if one is not other and are_level(one.box, other.box)
    ]


def _get_top(piece: _Piece) -> int:
    return piece.box.y


def _list_rows(chains: Sequence[_Chain], pieces: Sequence[_Piece], words: LineWords, em: float) -> Iterator[RowBlock]:
    """Yield the rows in which at least two chains have a piece, and what is between them."""
    own = {(piece.box, piece.lines): piece for chain in chains for piece in chain.pieces}
    runs: list[list[list[LayoutItem]]] = [[]]
    for level in _group_levels(own.values()):
        single = sum(len(each) == 1 for each in runs[-1][-SINGLE:])
        if runs[-1] and (_measure_step(runs[-1][-1], level) > STEP[1] * em or single == SINGLE):
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
        joined = _join_wrapped(_group_levels(inside), em)
        yield _make_block(joined)
        if head := _find_head(joined, [piece for piece in pieces if piece.home == home], words, em):
            yield _make_block([head, *joined])


def _group_levels(pieces: Iterable[_Piece]) -> list[list[LayoutItem]]:
    """Return pieces that are level, from left to right; a line is level with each cell that is beside it."""
    items = [LayoutItem(piece.box, piece.lines, 0) for piece in pieces]
    if all(len(item.lines) == 1 for item in items):
        return group_rows(items)
    rows: list[list[LayoutItem]] = []
    high = items[0]  # the highest of the last row
    for item in sorted(items, key=lambda each: (each.box.y, -each.box.height)):
        if rows and are_level(item.box, high.box):
            rows[-1].append(item)
        else:
            rows.append([item])
        high = item if len(rows[-1]) == 1 or item.box.height > high.box.height else high
    return [sorted(row, key=lambda each: each.box.x) for row in rows]


def _measure_step(above: Sequence[LayoutItem], below: Sequence[LayoutItem]) -> float:
    """Return how far a row is from the one above: from their middles, or from the ends of cells of several lines."""
    if all(len(item.lines) == 1 for item in (*above, *below)):
        return below[0].middle - above[0].middle
    return min(item.box.y for item in below) - max(item.box.bottom for item in above)


def _make_block(rows: Iterable[Sequence[LayoutItem]]) -> RowBlock:
    return RowBlock(tuple(tuple(dict.fromkeys(at for item in row for at in item.lines)) for row in rows))


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
    levels = group_rows(LayoutItem(piece.box, piece.lines, 0) for piece in above)
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


def _get_left(item: LayoutItem) -> int:
    return item.box.x


def _join_wrapped(rows: Sequence[list[LayoutItem]], em: float) -> list[list[LayoutItem]]:
    """Join rows without a first cell to the row above where rows are further from each other than lines of one cell."""
    joined: list[list[LayoutItem]] = []
    left = min(item.box.x for row in rows for item in row)
    for row in rows:
        if joined:
            blank = min(item.box.y for item in row) - max(item.box.bottom for item in joined[-1])
            first, above = (min(items, key=_get_left).box for items in (row, joined[-1]))
            if blank < 0.6 * em and first.x > left + em and abs(first.right - above.right) > max(2.0, EDGE * em):
                joined[-1] = [*joined[-1], *row]
                continue
        joined.append(list(row))
    return joined
