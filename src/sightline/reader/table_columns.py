"""Divide rows of words into columns: at corridors that almost all rows leave blank."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.cell_edges import CellEdges
from sightline.reader.colours import crop_pixels
from sightline.reader.ocr.line_image import find_ink, find_ink_columns
from sightline.reader.reading import Pixels, TextLine
from sightline.reader.rectangles import enclose_boxes
from sightline.reader.regions import ColourRegion

Span = tuple[int, int]
Word = tuple[int, int, int]  # where it begins and ends, and the index of its line

SPACE = 0.3  # blank between two words, in heights of their line
GAP = 0.6  # blank between two columns, in heights of a line, however their cells begin
WIDE = 1.4  # the same where it is in the middle of lines
SPARSE, ORDINARY = 0.3, 0.8  # share of the rows with text after a blank, where words go on after it as within a cell
HEADED = 1.0  # blank between two heads, in heights of a line
_AMOUNT = re.compile(r"(?<=[\d%])(?= ?[$€£¥₹#] ?\d)")  # where an amount or a number begins after another value
NARROW = 0.2  # the same where the cells of all rows begin or end at one place
LEAST = 3  # pixels: the same; letters are nearer to each other
ODD = 0.15  # share of the rows that may have text between two columns
SHIFT, LARGE = 2, 0.12  # pixels by which the edges of aligned cells may differ, or heights of a line: of large letters
ALIGNED = 0.9  # share of the cells of a column that begin or end at one place
ROWS = 3  # of a table, at least
BARS = 2  # lines between columns which divide all of them, at least
NEAR = 4  # letters: how exactly the place of a letter in a line is known
SHARED = 0.6  # share of the rows in which a word begins at a place where others are divided


class LineWords:
    """Where the words of lines are, and how heavy their strokes; measured when they are asked for."""

    def __init__(
        self,
        pixels: Pixels,
        lines: Sequence[TextLine],
        toggled: frozenset[int] = frozenset(),
        regions: Sequence[ColourRegion] = (),
    ) -> None:
        self._pixels, self._known = pixels, dict[int, tuple[list[Span], float]]()
        self._strokes: dict[int, list[Span]] = {}
        self.lines, self.toggled, self.edges = lines, toggled, CellEdges(regions)

    def __getitem__(self, at: int) -> list[Span]:
        return self._measure(at)[0]

    def weigh(self, at: int) -> float:
        """Return the share of ink in a line."""
        return self._measure(at)[1]

    def may_divide(self, at: int, place: float) -> bool:
        """Return whether two texts may meet near a place in a line: at a space, or where letters and digits do."""
        line = self.lines[at]
        index = round((place - line.box.x) * len(line.text) / line.box.width)
        near = line.text[max(0, index - NEAR) : index + NEAR]
        return " " in near or any(_is_turn(one, other) for one, other in pairwise(near))

    def cut(self, at: int, place: int) -> None:
        """Divide the word of a line that goes over a place where a stroke begins after a blank, if there is one."""
        spans, weight = self._measure(at)
        box = self.lines[at].box
        if at not in self._strokes:
            mask = find_ink(crop_pixels(self._pixels, box))
            self._strokes[at] = [(box.x + start, box.x + end) for start, end in find_ink_columns(mask, 0, len(mask))]
        for before, after in pairwise(self._strokes[at]):
            over = next((span for span in spans if span[0] < before[1] and after[0] < span[1]), None)
            if over and abs(after[0] - place) <= SHIFT and self.may_divide(at, place):
                at_span = spans.index(over)
                pieces = [*spans[:at_span], (over[0], before[1]), (after[0], over[1]), *spans[at_span + 1 :]]
                self._known[at] = (pieces, weight)
                return

    def cut_at_bar(self, at: int, bar: int) -> None:
        """Divide the words of a line at a line between two columns, whose ink is no text."""
        spans, weight = self._measure(at)
        pieces = [piece for start, end in spans for piece in ((start, min(end, bar - 1)), (max(start, bar + 1), end))]
        if kept := [(start, end) for start, end in pieces if end - start >= LEAST - 1]:
            self._known[at] = (kept, weight)

    def begins_amount(self, at: int, place: float) -> bool:
        """Return whether an amount of money begins after another value near a place in a line."""
        line = self.lines[at]
        letter = line.box.width / max(1, len(line.text))
        return any(
            abs(line.box.x + match.end() * letter - place) <= 2 * letter for match in _AMOUNT.finditer(line.text)
        )

    def _measure(self, at: int) -> tuple[list[Span], float]:
        if at not in self._known:
            self._known[at] = find_word_spans(self._pixels, self.lines[at].box)
        return self._known[at]


def _is_turn(one: str, other: str) -> bool:
    """Return whether two letters are seldom in one word: a letter and a digit, or a small letter and a capital."""
    if other in "$€£¥₹#":
        return True
    return (one.isalpha() and other.isdigit()) or (one.isdigit() and other.isalpha()) or one.islower() < other.isupper()


def find_word_spans(pixels: Pixels, box: Box) -> tuple[list[Span], float]:
    """Return where there is ink in a line, from left to right, without narrow blanks, and the share of ink there."""
    mask = find_ink(crop_pixels(pixels, box))
    spans: list[Span] = []
    for start, end in find_ink_columns(mask, 0, len(mask)):
        if spans and start + box.x - spans[-1][1] < NARROW * box.height:
            spans[-1] = (spans[-1][0], box.x + end)
        else:
            spans.append((box.x + start, box.x + end))
    spans = spans or [(box.x, box.right)]
    return spans, float(mask.sum()) / max(1, mask.shape[0] * sum(end - start for start, end in spans))


def cut_at_shared_edges(words: LineWords, rows: Sequence[Sequence[int]]) -> None:
    """Divide words where those of most other rows begin: a narrow blank between two cells looks like one in a word."""
    starts = [[(span[0], at) for at in row for span in words[at]] for row in rows]
    for edge in _find_shared_edges(starts, len(rows)):
        for row, known in zip(rows, starts, strict=True):
            if not any(abs(start - edge) <= SHIFT for start, _ in known):
                for at in row:
                    words.cut(at, edge)


def _find_shared_edges(starts: Sequence[Sequence[tuple[int, int]]], rows: int) -> list[int]:
    """Return where words of most rows begin."""
    counts: dict[int, set[int]] = {}
    for row, own in enumerate(starts):
        for start, _ in own:
            for near in range(start - SHIFT // 2, start + SHIFT // 2 + 1):
                counts.setdefault(near, set()).add(row)
    return [edge for edge, own in counts.items() if len(own) >= max(ROWS, SHARED * rows) and len(own) < rows]


def cut_at_bars(words: LineWords, rows: Sequence[Sequence[int]], em: float) -> list[int]:
    """Divide words at the lines between columns; return where these are."""
    bands = [enclose_boxes(words.lines[at].box for at in row) for row in rows]
    whole = enclose_boxes(bands)
    found = [bar for bar in words.edges.find_bars(bands, em) if whole.x < bar[0] < whole.right]
    for bar, crossed in found:
        for at in (at for row in crossed for at in rows[row]):
            words.cut_at_bar(at, bar)
    return [bar for bar, _ in found]


def find_columns(
    rows: Sequence[Sequence[Word]],
    em: float,
    words: LineWords | None = None,
    *,
    narrow: bool = True,
    bars: Sequence[int] = (),
) -> list[Span]:
    """Return the spans between corridors that almost all rows leave blank, or between `bars`, which are drawn.

    A narrow corridor, or one in the middle of lines, counts only where cells begin or end at one place beside it,
    whatever the other cell is, or where amounts begin, as the `words` tell: words have blanks too.
    """
    spans = [word for row in rows for word in row]
    if not spans:
        return []
    left, right = min(start for start, _, _ in spans), max(end for _, end, _ in spans)
    inked = np.zeros(right - left + 1, dtype=np.int64)
    for row in rows:
        own = np.zeros(len(inked), dtype=bool)
        for start, end, _ in row:
            own[start - left : end - left] = True
        inked += own
    for bar in bars:
        inked[max(0, bar - 1 - left) : bar + 1 - left] = 0
    filled = np.flatnonzero(inked > ODD * len(rows))
    if not len(filled):
        return []
    columns: list[Span] = []
    for group in np.split(filled, np.flatnonzero(np.diff(filled) > 1) + 1):
        start, end = left + int(group[0]), left + int(group[-1]) + 1
        drawn = columns and any(columns[-1][1] <= bar + 1 and bar - 1 <= start for bar in bars)
        divided = not columns or drawn or (
            len(bars) < BARS and _is_corridor((columns[-1][1], start), rows, em, words, narrow=narrow)
        )  # fmt: skip
        if divided:
            columns.append((start, end))
        else:
            columns[-1] = (columns[-1][0], end)
    return columns if len(bars) >= BARS else _join_sparse_columns(columns, rows, em)


def _join_sparse_columns(columns: Sequence[Span], rows: Sequence[Sequence[Word]], em: float) -> list[Span]:
    """Join columns whose words go on as within a cell, if few rows have such words, or the first one has none."""
    joined: list[Span] = []
    for start, end in columns:
        firsts = [min((word for word in row if start <= word[0] < end), default=None) for row in rows]
        known = [(first, row) for first, row in zip(firsts, rows, strict=True) if first is not None]
        blanks = [
            first[0] - max((word[1] for word in row if word[1] <= first[0]), default=-math.inf) for first, row in known
        ]
        few = len(known) <= SPARSE * len(rows) and known
        headed = any(start <= sum(word[:2]) / 2 < end or word[0] < start < end <= word[1] for word in rows[0])
        headless = known and not headed and any(joined[-1][0] <= word[0] < start for word in rows[0] if joined)
        if joined and ((few and max(blanks) < ORDINARY * em) or (headless and median(blanks) < GAP * em)):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _is_corridor(
    blank: Span, rows: Sequence[Sequence[Word]], em: float, words: LineWords | None, *, narrow: bool
) -> bool:
    """Return whether a blank separates two columns."""
    wide = blank[1] - blank[0]
    if wide < GAP * em and not narrow:
        return False
    middle = (blank[0] + blank[1]) / 2
    before = [max((word[1:] for word in row if word[1] <= middle), default=None) for row in rows]
    after = [min((word[::2] for word in row if word[0] >= middle), default=None) for row in rows]
    pairs = [(one, other) for one, other in zip(before, after, strict=True) if one is not None and other is not None]
    same = [(one, other) for one, other in pairs if one[1] == other[1]]
    if wide >= GAP * em and (wide >= WIDE * em or len(same) < 0.5 * len(pairs) or not pairs):
        return True
    if len(pairs) < max(ROWS, 0.8 * len(rows)) or _has_head_over(blank, rows[0], words):
        return False
    if words and sum(words.begins_amount(other[1], other[0]) for _, other in pairs) >= ALIGNED * len(pairs):
        return True
    return _may_divide(same, words) and (_has_edge(blank, rows, em, pairs) or _has_two_edges(blank, rows, em))


def _has_edge(blank: Span, rows: Sequence[Sequence[Word]], em: float, pairs: Sequence[tuple[Span, Span]]) -> bool:
    """Return whether cells begin or end at one place beside a blank; `pairs` are the words around it in each row."""
    wide, middle = blank[1] - blank[0], (blank[0] + blank[1]) / 2
    left, right = [one[0] for one, _ in pairs], [other[0] for _, other in pairs]
    if wide < max(LEAST, NARROW * em):
        return _is_exact_edge(left, right, len(rows), em)
    known = any(word[1] <= middle for word in rows[0]) and any(word[0] >= middle for word in rows[0])
    if not known or (_share_edge(left) and _differ(right)):
        return known
    shared = _share_edge(right) or (len(pairs) > ROWS and _share_edge(right[1:]))  # heads may be centred
    return shared and (_differ(left) or _has_other_word_first(rows, middle, em))


def _has_two_edges(blank: Span, rows: Sequence[Sequence[Word]], em: float) -> bool:
    """Return whether cells of various widths end at one place before a blank, and others begin at one after it.

    How wide their heads are says nothing.
    """
    middle = (blank[0] + blank[1]) / 2
    before = [max((word for word in row if word[1] <= middle), default=None) for row in rows]
    after = [min((word for word in row if word[0] >= middle), default=None) for row in rows]
    pairs = [(one, other) for one, other in zip(before, after, strict=True) if one and other]
    if len(pairs) <= ROWS or blank[1] - blank[0] < max(LEAST, NARROW * em):
        return False
    slack = max(SHIFT, LARGE * em)
    inner = [one[1] for one, _ in pairs], [other[0] for _, other in pairs]
    outer = [one[0] for one, _ in pairs[1:]], [other[1] for _, other in pairs[1:]]
    various = all(max(edges) - min(edges) > em for edges in outer)
    return various and all(max(edges) - min(edges) <= 2 * slack for edges in inner)


def _has_head_over(blank: Span, heads: Sequence[Word], words: LineWords | None) -> bool:
    """Return whether a word of the heads is over a blank: it heads both sides. Values may be read as one word."""
    over = [at for start, end, at in heads if start < blank[0] and blank[1] < end]
    return words is not None and any(not any(map(str.isdigit, words.lines[at].text)) for at in over)


def _may_divide(pairs: Sequence[tuple[Span, Span]], words: LineWords | None) -> bool:
    """Return whether most words that were read as one line may be two texts."""
    return words is None or sum(words.may_divide(other[1], other[0]) for _, other in pairs) >= 0.8 * len(pairs)


def _is_exact_edge(ends: Sequence[int], starts: Sequence[int], rows: int, em: float) -> bool:
    """Return whether words begin at one place in all rows, and those before end at various ones."""
    return len(starts) == rows > ROWS and max(starts) - min(starts) <= SHIFT and max(ends) - min(ends) > em


def _has_other_word_first(rows: Sequence[Sequence[Word]], middle: float, em: float) -> bool:
    """Return whether the word before a place begins elsewhere in the first row, which names the columns."""
    words = [max((word for word in row if word[1] <= middle), default=None) for row in rows]
    first, rest = words[0], [word[0] for word in words[1:] if word is not None]
    after = min((word[0] for word in rows[0] if word[0] >= middle), default=None)
    if first is None or after is None or after - first[1] < SPACE * em:  # nearer are letters of one word
        return False
    return all(abs(first[0] - start) > 2 * SHIFT for start in rest)


def _share_edge(edges: Sequence[int]) -> bool:
    usual = median(edges)
    return sum(abs(edge - usual) <= SHIFT for edge in edges) >= ALIGNED * len(edges)


def _differ(edges: Sequence[int]) -> bool:
    return max(edges) - min(edges) > 2 * SHIFT


def add_empty_columns(columns: list[Span], heads: Sequence[Word], em: float) -> list[Span]:
    """Return the columns with those of heads that have no text below them, such as one of pictures or bars."""
    pieces: list[Span] = []
    for start, end, _ in heads:
        if pieces and start - pieces[-1][1] < HEADED * em:
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    alone = [
        piece for piece in pieces
        if all(piece[1] + NARROW * em <= start or end + NARROW * em <= piece[0] for start, end in columns)
    ]  # fmt: skip
    return sorted([*columns, *alone]) if len(columns) > 1 and len(pieces) > 2 else columns
