"""Find the letters that the detector missed: ink in the rows of a text that belongs to none of its lines.

The network overlooks punctuation that stands apart: a dot before a name, brackets, quotes, a row with nothing else.
Rows of a text follow each other at equal distances, so what is level with one of them and no higher than it is text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import numpy as np

from sightline.reader.ocr.line_image import Mask, TextArea, find_ink, find_ink_columns, trim_rows
from sightline.reader.reading import Pixels

_ROWS = 4  # rows of a block, at least
_DENSE, _LOOSE = 1.1, 2.6  # heights of the letters: how far apart two rows are
_MISSING = 5  # rows that may be missing between two others
_UNEVEN, _INEXACT = 0.17, 0.3  # share of the distance of two rows by which it may differ, or that of a row of signs
_SIGN = 0.7  # heights of the letters: signs such as dashes are lower
_BESIDE = 2.0  # distances of two rows: how far outside of the other lines a piece may be
_NEAR = 0.9  # the same: the blank within a line, at most
_WIDE = 1.5  # the same: the width of what may be a letter
_JOINED = 4.0  # the same where it goes on with letters that were found: underscores before a name
_CHANNEL = 0.4  # the same: the blank between line numbers and a program, at least
_NUMBERS = 4.0  # the same: how wide line numbers are, at most
_LINE = 4.0  # the same: the length of a long line
_SOLID = 0.85  # share of a mark that is ink, above which it is a patch of colour
_THIN, _BAR = 0.12, 0.25  # distances of two rows: the height of underscores, at most, and their width, at least
_LOW, _DEPTH = 0.65, 0.68  # the same: how far below the top and the middle of a row they begin and end
_EDGE = 0.15  # share of a row at its top and its bottom where letters of other rows may end
_DIM = 0.15  # share of the strongest contrast in a row: line numbers and comments are dim
_STACKED = 1.6  # an area this many times as high as wide may be several numbers below each other
_APART, _LEAST = 0.3, 5  # heights between two of them, and their height in pixels, at least
_SIZE = 0.3  # the same: the height or width of what stands alone
_DASH, _DASH_MIDDLE = 0.12, 0.2  # the same: the least width of a dash, and how far from the middle of its row it is
_FLAT = 1.5  # how many times as wide as high a dash is
_MOST = 1_500  # areas; more are left as they are, since each is compared with many others

Span = tuple[float, float]  # where something begins and ends in a row


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows of text at equal distances."""

    middles: tuple[float, ...]  # of its rows, those without a line included
    pitch: float
    edges: Span
    growth: float  # the usual one of its areas
    high: float  # the same: their height


def add_missed_ink(pixels: Pixels, areas: Sequence[TextArea]) -> list[TextArea]:
    """Return the areas from top to bottom, with the ink beside them, and new ones for other ink in their rows."""
    if len(areas) > _MOST:
        return sorted(areas, key=_get_middle)
    found = sorted((piece for area in areas for piece in _split_stack(pixels, area)), key=_get_middle)
    reach = max((area.height for area in found), default=0.0) / 2
    for block in _find_blocks([area for area in found if not area.tilt]):
        rows = [_find_row_ink(pixels, block, middle) for middle in block.middles]
        gutter = _find_gutter([ink.marks for ink in rows], block)
        for middle, ink in zip(block.middles, rows, strict=True):
            far = max(reach, block.pitch)
            first = bisect_left(found, middle - far, key=_get_middle)
            last = bisect_right(found, middle + far, key=_get_middle)
            near = _complete_row(found[first:last], block, middle, ink, gutter)
            found[first:last] = sorted(near, key=_get_middle)
    return found


def _split_stack(pixels: Pixels, area: TextArea) -> list[TextArea]:
    """Return the rows of an area in which several numbers are below each other; else the area itself."""
    if area.tilt or area.height < _STACKED * area.width:
        return [area]
    left, top = max(0, round(area.x - area.width / 2)), max(0, round(area.y - area.height / 2))
    mask = find_ink(pixels[top : round(area.y + area.height / 2), left : round(area.x + area.width / 2)])
    mask[:, mask.all(0)] = False  # a line beside the numbers
    rows = [row for row in find_ink_columns(mask.T, 0, len(mask.T)) if row[0] > 0 and row[1] < len(mask)]
    highs = [end - start for start, end in rows]
    apart = [after[0] - before[1] for before, after in pairwise(rows)]
    if len(rows) < 2 or max(highs) > 1.2 * min(highs) or min(apart) < _APART * max(highs) or min(highs) < _LEAST:
        return [area]
    growth = min(area.growth, min(apart) / 2)
    width = area.width - 2 * (area.growth - growth)
    return [
        replace(area, y=top + (start + end) / 2, width=width, height=end - start + 2 * growth, growth=growth)
        for start, end in rows
    ]


def _find_blocks(areas: Sequence[TextArea]) -> Iterator[_Block]:
    for group in _group_neighbours(areas):
        rows: list[list[TextArea]] = []
        for area in sorted(group, key=lambda each: each.y):
            if rows and area.y - rows[-1][0].y < 0.5 * _get_core(area):
                rows[-1].append(area)
            else:
                rows.append([area])
        yield from _split_evenly_spaced(rows)


def _group_neighbours(areas: Sequence[TextArea]) -> list[list[TextArea]]:
    """Return areas of one size that are above, below or beside each other."""
    groups: list[list[TextArea]] = []
    for area in sorted(areas, key=lambda each: each.y):
        near = [group for group in groups if any(_is_neighbour(area, other) for other in group[-40:])]
        groups = [group for group in groups if group not in near]
        groups.append(sorted((each for group in (*near, [area]) for each in group), key=lambda each: each.y))
    return groups


def _is_neighbour(one: TextArea, other: TextArea) -> bool:
    gap = abs(one.x - other.x) - (one.width + other.width) / 2
    if gap > _LOOSE * max(one.height, other.height):  # most are that far apart
        return False
    high, low = sorted((_get_core(one), _get_core(other)))
    return low <= 1.7 * high and abs(one.y - other.y) <= _MISSING * _LOOSE * high and gap <= _LOOSE * low


def _get_core(area: TextArea) -> float:
    return area.height - 2 * area.growth


def _split_evenly_spaced(rows: Sequence[list[TextArea]]) -> Iterator[_Block]:
    """Yield a block for each run of rows at equal distances, which may be others than those of the text above it."""
    if len(rows) < _ROWS:
        return
    high = median(_get_core(area) for row in rows for area in row)
    middles = [_find_row_middle(row, high) for row in rows]
    near = [below - above for above, below in pairwise(middles) if _DENSE * high <= below - above <= _LOOSE * high]
    if not near:
        return
    pitch = median(near)
    first = left = 0  # where a run begins, and the rows above it that are in none
    for place in range(1, len(rows) + 1):
        slack = _UNEVEN if all(_list_letters(row, high) for row in rows[place - 1 : place + 1]) else _INEXACT
        if place < len(rows) and _count_steps(middles[place] - middles[place - 1], pitch, slack):
            continue
        if place - first >= _ROWS:
            yield from _split_evenly_spaced(rows[left:first])
            if _are_text(rows[first:place], pitch):
                yield _make_block(rows[first:place], middles[first:place], pitch)
            left = place
        first = place
    if left:
        yield from _split_evenly_spaced(rows[left:])


def _find_row_middle(row: Sequence[TextArea], high: float) -> float:
    """Return where the middle of a row is, by its letters if it has any."""
    return median(area.y for area in _list_letters(row, high) or row)


def _list_letters(row: Sequence[TextArea], high: float) -> list[TextArea]:
    """Return the areas of a row without signs such as dashes or quotes, whose middles aren't that of the row."""
    return [area for area in row if _get_core(area) >= _SIGN * high]


def _are_text(rows: Sequence[list[TextArea]], pitch: float) -> bool:
    """Return whether several rows are long: labels of a chart are not."""
    return sum(max(area.width for area in row) >= _LINE * pitch for row in rows) >= _ROWS


def _count_steps(apart: float, pitch: float, slack: float) -> int:
    """Return how many rows apart two rows are; 0 where that is no whole number."""
    steps = round(apart / pitch)
    return steps if steps <= _MISSING and abs(apart - steps * pitch) <= slack * pitch else 0


def _make_block(rows: Sequence[list[TextArea]], middles: Sequence[float], pitch: float) -> _Block:
    places = np.cumsum([0, *(round((below - above) / pitch) for above, below in pairwise(middles))])
    step, start = np.polyfit(places, middles, 1)
    every = tuple(float(start + step * place) for place in range(int(places[-1]) + 1))
    areas = [area for row in rows for area in row]
    starts, ends = zip(*map(_get_span, areas), strict=True)
    growth, high = median(area.growth for area in areas), median(area.height for area in areas)
    return _Block(every, float(step), (min(starts), max(ends)), growth, high)


@dataclass(frozen=True, slots=True)
class _RowInk:
    """Where the ink of a row begins and ends, without lines that cross the row."""

    marks: list[Span]
    dashes: list[Span]  # those of them that may be dashes, such as before a line that was removed


def _find_row_ink(pixels: Pixels, block: _Block, middle: float) -> _RowInk:
    pitch, edges = block.pitch, block.edges
    top, bottom = max(0, round(middle - pitch / 2)), min(len(pixels), round(middle + pitch / 2))
    left, right = max(0, round(edges[0] - _BESIDE * pitch)), round(edges[1] + _BESIDE * pitch)
    strip = pixels[top:bottom, left:right]
    if not strip.size:
        return _RowInk([], [])
    mask = find_ink(pixels[top : round(middle + _DEPTH * pitch), left:right], _DIM)
    found = sorted({*_find_letters(strip, mask[: len(strip)]), *_find_underscores(mask, pitch)})
    dashes = [span for span in found if _is_dash(mask[: len(strip)], span, pitch)]
    return _RowInk(
        [(first + left, last + left) for first, last in found], [(first + left, last + left) for first, last in dashes]
    )


def _is_dash(mask: Mask, columns: tuple[int, int], pitch: float) -> bool:
    """Return whether ink is flat and in the middle of its row."""
    top, bottom = trim_rows(mask, (0, len(mask)), columns)
    wide = columns[1] - columns[0]
    level = abs((top + bottom) / 2 - len(mask) / 2) <= _DASH_MIDDLE * pitch
    return level and wide >= max(_DASH * pitch, _FLAT * (bottom - top))


def _find_letters(strip: Pixels, mask: Mask, *, nested: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the columns of what is no line across the strip; a wide one is another background, with its own letters."""
    whole = (0, len(mask))
    for first, last in find_ink_columns(mask, *whole):
        rows = trim_rows(mask, whole, (first, last))
        if rows[1] <= _EDGE * len(mask) or rows[0] >= (1 - _EDGE) * len(mask):
            continue  # the end of a letter of the row above or below
        if rows != whole:
            solid = last - first > len(mask) / 2 and mask[rows[0] : rows[1], first:last].mean() > _SOLID
            yield from () if solid else [(first, last)]
        elif last - first > len(mask) and not nested:
            inner = strip[:, first:last]
            yield from ((first + x, first + end) for x, end in _find_letters(inner, find_ink(inner, _DIM), nested=True))


def _find_underscores(mask: Mask, pitch: float) -> Iterator[tuple[int, int]]:
    """Yield the columns of thin bars below the letters of a row, which may be lower than its half of the blank."""
    low = mask[round(_LOW * pitch) :].copy()
    if not low.size:
        return
    low[:, low[-1]] = False  # what is drawn through the row, and letters of the next one
    for first, last in find_ink_columns(low, 0, len(low)):
        top, bottom = trim_rows(low, (0, len(low)), (first, last))
        if bottom - top <= max(3, _THIN * pitch) and top > 0 and bottom < len(low) and last - first >= _BAR * pitch:
            yield first, last


def _find_gutter(rows: Sequence[Sequence[Span]], block: _Block) -> Span | None:
    """Return the blank between line numbers and a program: no row has ink there, and most have some before it."""
    start, end = block.edges
    inked = np.zeros(max(1, round(end - start)), bool)
    for marks in rows:
        for first, last in marks:
            inked[max(0, round(first - start)) : max(0, round(last - start))] = True
    blanks = [(first + start, last + start) for first, last in find_ink_columns(~inked[None], 0, 1)]
    for first, last in blanks:
        before = sum(any(mark[1] <= first + 1 and mark[0] >= start for mark in marks) for marks in rows)
        if last - first >= _CHANNEL * block.pitch and before:
            narrow = first - start <= _NUMBERS * block.pitch
            return (first, last) if narrow and before >= max(_ROWS, len(rows) / 2) and last < end - 1 else None
    return None


def _complete_row(
    areas: list[TextArea], block: _Block, middle: float, ink: _RowInk, gutter: Span | None
) -> list[TextArea]:
    """Return areas near one row of a block with what is written in it: near pieces joined, and all of one height."""
    row: list[TextArea] = []
    rest: list[TextArea] = []
    for area in areas:
        (row if _is_in_row(area, block, middle) else rest).append(area)
    rest = [area for area in rest if not _covers_rows(area, block, middle, ink.marks)]
    others = [_get_span(area) for area in rest if abs(area.y - middle) < area.height / 2]
    known = [(start + area.growth, end - area.growth) for area in row for start, end in [_get_span(area)]]
    free = [
        mark for mark in ink.marks
        if mark[1] - mark[0] <= (_JOINED if _touches(mark, known) else _WIDE) * block.pitch
        and not any(start < sum(mark) / 2 < end for start, end in others)
    ]  # fmt: skip
    sides = _split_at(sorted([*known, *free]), gutter) if gutter else [sorted([*known, *free])]
    new = [
        _make_area(block, span, middle)
        for side in sides for span in _group_spans(side, _NEAR * block.pitch)
        if span[1] - span[0] >= _SIZE * block.pitch or span in known or span in ink.dashes
    ]  # fmt: skip
    return rest + new


def _covers_rows(area: TextArea, block: _Block, middle: float, marks: Sequence[Span]) -> bool:
    """Return whether a narrow area is as high as several rows, with words of this one in it."""
    left, right = _get_span(area)
    if not 1.5 * block.pitch < area.height < 4 * block.pitch or right - left > _WIDE * block.pitch or area.tilt:
        return False
    inside = block.edges[0] <= left and right <= block.edges[1] and abs(area.y - middle) < area.height / 2
    return inside and any(left < sum(mark) / 2 < right for mark in marks)


def _touches(mark: Span, spans: Sequence[Span]) -> bool:
    """Return whether a mark goes on where some span begins or ends; a frame around one contains it."""
    return any(mark[0] < start < mark[1] < end or start < mark[0] < end < mark[1] for start, end in spans)


def _split_at(spans: Sequence[Span], gutter: Span) -> list[list[Span]]:
    """Return the spans before and after a gutter; those that cross it are in both."""
    before = [(first, min(last, gutter[0])) for first, last in spans if first < gutter[0]]
    after = [(max(first, gutter[1]), last) for first, last in spans if last > gutter[1]]
    return [before, after]


def _is_in_row(area: TextArea, block: _Block, middle: float) -> bool:
    if abs(area.y - middle) >= 0.4 * block.pitch or area.tilt or area.height > 1.5 * block.pitch:
        return False
    left, right = _get_span(area)
    return left >= block.edges[0] and right <= block.edges[1]


def _get_middle(area: TextArea) -> float:
    return area.y


def _get_span(area: TextArea) -> Span:
    return area.x - area.width / 2, area.x + area.width / 2


def _group_spans(spans: Sequence[Span], near: float) -> list[Span]:
    """Return spans with those joined that are near to each other."""
    groups: list[Span] = []
    for start, end in spans:
        if groups and start - groups[-1][1] <= near:
            groups[-1] = (groups[-1][0], max(end, groups[-1][1]))
        else:
            groups.append((start, end))
    return groups


def _make_area(block: _Block, span: Span, middle: float) -> TextArea:
    width = span[1] - span[0] + 2 * block.growth
    return TextArea(sum(span) / 2, middle, width, block.high, 0.0, block.growth, 1.0)
