"""The order of the lines of a page, and how large and wide its letters are."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.reading import Colour, TextLine

# All in heights of a line, which is what "near" means in a text.
BAND = 2.5  # a blank across all columns: what is above it is read before what is below
GUTTER = 1.2  # blank between two columns
MENU = 0.8  # blank between columns and a row that belongs to none of them
LEVEL = 0.3  # how far apart the middles of lines in a row may be
PROSE = 25  # characters: longer lines are read column by column, even where they are level
MAX_SEARCHED = 600  # lines: with more of them, the best place to split is not searched for
HEADS = 3  # rows across the page above a bar at its side
SIDE_ROWS = 4  # lines of a bar at the side, at least
NARROW, LENGTHY = 0.3, 0.4  # shares of the width that such a bar has at most, and of the height that it has at least
HEADED = 3  # heights of a line: how far from the left of its column a heading may begin
TOGGLED = 0.5  # share of a column that labels of toggles are, where it is a list of them
LONG = 8  # characters: shorter lines do not tell how wide a character is
DIGITS = 7  # of the number of a row, at most
MONO = 0.04  # how much the width of characters may vary in monospaced text


@dataclass(frozen=True, slots=True)
class LayoutItem:
    """A line, or a panel with all its lines, already in order."""

    box: Box
    lines: tuple[int, ...]
    letters: int
    toggle: bool = False  # whether it is the label of a check box, a radio button or a switch
    ground: Colour | None = None  # the colour behind a line

    @property
    def middle(self) -> float:
        return self.box.y + self.box.height / 2


def order_lines(
    lines: Sequence[TextLine],
    boxes: Iterable[Box] = (),
    plots: Sequence[Box] = (),
    labels: Container[int] = (),
) -> tuple[int, ...]:
    """Return the indexes of the lines in reading order; lines in `plots` are read row by row.

    `labels` are the lines beside toggles.
    """
    if not lines:
        return ()
    em = measure_line_height(lines)
    items = [
        LayoutItem(line.box, (place,), len(line.text), place in labels, line.ground) for place, line in enumerate(lines)
    ]
    for box in sorted({*boxes, *plots}, key=lambda each: each.width * each.height):
        inside = [item for item in items if contains_line(box, item.box)]
        if len(inside) > 1 and (len(inside) < len(items) or box in plots):
            letters = int(median(item.letters for item in inside))
            rest = [item for item in items if not contains_line(box, item.box)]
            inner = _order_by_rows(inside) if box in plots else _order_items(inside, em)
            items = [*rest, LayoutItem(box, inner, letters)]
    return _order_items(items, em)


def measure_line_height(lines: Iterable[TextLine]) -> float:
    return max(4.0, median(line.box.height for line in lines))


def contains_line(box: Box, inner: Box) -> bool:
    middle = (inner.x + inner.width / 2, inner.y + inner.height / 2)
    return (
        box.x <= middle[0] <= box.right
        and box.y <= middle[1] <= box.bottom
        and inner.x >= box.x - 4
        and inner.y >= box.y - 4
        and inner.width <= box.width + 8
        and inner.height <= box.height + 8
    )


def _order_items(items: Sequence[LayoutItem], em: float) -> tuple[int, ...]:
    if len(items) == 1:
        return items[0].lines
    parts = _separate_menu(items, em)
    if len(parts) == 1:
        parts = _separate_side_bar(items, em)
    if len(parts) == 1:
        parts = _split_at_blanks(items, _get_vertical_span, BAND * em)
    if len(parts) == 1:
        parts = _split_columns(items, em)
    if len(parts) == 1:
        parts = _split_bands(items, em)
    if len(parts) == 1:
        return _order_by_rows(items)
    return tuple(place for part in parts for place in _order_items(part, em))


def _order_by_rows(items: Iterable[LayoutItem]) -> tuple[int, ...]:
    return tuple(place for row in group_rows(items) for item in row for place in item.lines)


def _get_vertical_span(item: LayoutItem) -> tuple[int, int]:
    return item.box.y, item.box.bottom


def _get_horizontal_span(item: LayoutItem) -> tuple[int, int]:
    return item.box.x, item.box.right


def _split_at_blanks(
    items: Sequence[LayoutItem], along: Callable[[LayoutItem], tuple[int, int]], gap: float
) -> list[list[LayoutItem]]:
    """Return the items in groups that are separated by at least `gap` pixels."""
    groups: list[list[LayoutItem]] = []
    reached = float("-inf")
    for item in sorted(items, key=along):
        start, end = along(item)
        if not groups or start - reached >= gap:
            groups.append([])
        groups[-1].append(item)
        reached = max(reached, end)
    return groups


def _separate_side_bar(items: Sequence[LayoutItem], em: float) -> list[list[LayoutItem]]:
    """Separate a narrow column of short texts beside all others, perhaps below a few rows across the page."""
    bands = _split_at_blanks(items, _get_vertical_span, 1)
    for skipped in range(min(HEADS + 1, len(bands))):
        head, rest = ([item for band in part for item in band] for part in (bands[:skipped], bands[skipped:]))
        columns = _split_at_blanks(rest, _get_horizontal_span, GUTTER * em)
        for bar in (columns[0], columns[-1]) if len(columns) > 1 else ():
            others = [item for column in columns if column is not bar for item in column]
            if _is_side_bar(bar, others, em):
                sides = [bar, others] if bar is columns[0] else [others, bar]
                return [head, *sides] if head else sides
    return [list(items)]


def _is_side_bar(bar: Sequence[LayoutItem], others: Sequence[LayoutItem], em: float) -> bool:
    """Return whether a column is a list at the side: narrow, long, and not in the rows of what is beside it."""
    wide, high = (_measure_extent([*bar, *others], along) for along in (_get_horizontal_span, _get_vertical_span))
    if (
        sum(len(item.lines) for item in bar) < SIDE_ROWS
        or len(group_rows(others)) < 2
        or sum(item.toggle for item in bar) > TOGGLED * len(bar)
        or median(item.letters for item in bar) >= PROSE
        or _measure_extent(bar, _get_horizontal_span) > NARROW * wide
        or _measure_extent(bar, _get_vertical_span) < LENGTHY * high
    ):
        return False
    grounds = [{item.ground for item in side if item.ground} for side in (bar, others)]
    own = len(bar) == 1 or (all(grounds) and not grounds[0] & grounds[1])
    return own or not _align_in_rows([bar, others], em)


def _measure_extent(items: Sequence[LayoutItem], along: Callable[[LayoutItem], tuple[int, int]]) -> int:
    spans = [along(item) for item in items]
    return max(end for _, end in spans) - min(start for start, _ in spans)


def _separate_menu(items: Sequence[LayoutItem], em: float) -> list[list[LayoutItem]]:
    """Separate a row of several short texts directly above or below columns."""
    bands = _split_at_blanks(items, _get_vertical_span, MENU * em)
    for menu, rest in ((bands[0], bands[1:]), (bands[-1], bands[:-1])):
        below = [item for band in rest for item in band]
        columns = _split_columns(below, em) if len(menu) > 2 and len(group_rows(menu)) == 1 and below else []
        if len(columns) > 1 and not _head_columns(menu, columns):
            return [menu, below] if menu is bands[0] else [below, menu]
    return [list(items)]


def _head_columns(row: Sequence[LayoutItem], columns: Sequence[Sequence[LayoutItem]]) -> bool:
    """Return whether each item of a row is above a column of its own."""
    starts = {min(item.box.x for item in column) for column in columns}
    return all(any(abs(item.box.x - start) <= item.box.height * HEADED for start in starts) for item in row)


def _split_columns(items: Sequence[LayoutItem], em: float) -> list[list[LayoutItem]]:
    """Return the columns, unless their content belongs together by rows."""
    columns = _split_at_blanks(items, _get_horizontal_span, GUTTER * em)
    if len(columns) == 1 or min(median(item.letters for item in column) for column in columns) >= PROSE:
        return columns
    return _separate_panels(columns) if _align_in_rows(columns, em) else columns


def _separate_panels(columns: Sequence[Sequence[LayoutItem]]) -> list[list[LayoutItem]]:
    """Return items that belong together by rows; a panel alone beside several lines is in none of their rows."""
    lines = [item for column in columns if len(column) > 1 for item in column]
    groups: list[list[LayoutItem]] = []
    whole = False  # whether the last group takes no more
    for column in columns:
        alone = len(column) == 1 and len(column[0].lines) > 1 and sum(_is_beside(column[0], line) for line in lines) > 1
        if alone or whole or not groups:
            groups.append([])
        groups[-1] += column
        whole = alone
    return groups


def _is_beside(panel: LayoutItem, line: LayoutItem) -> bool:
    return panel.box.y <= line.middle <= panel.box.bottom


def _align_in_rows(columns: Sequence[Sequence[LayoutItem]], em: float) -> bool:
    """Return whether most lines of each column are level with lines of the next one, and not labels of toggles."""
    for left, right in pairwise(column for column in columns if len(column) > 1):
        if all(sum(item.toggle for item in column) > TOGGLED * len(column) for column in (left, right)):
            return False
        fewer, more = sorted((left, right), key=len)
        level = [any(abs(one.middle - other.middle) <= LEVEL * em for other in more) for one in fewer]
        if sum(level) < 0.7 * len(level):
            return False
    return True


def _split_bands(items: Sequence[LayoutItem], em: float) -> list[list[LayoutItem]]:
    """Split across where the most lines can then be read in columns; else at every blank."""
    bands = _split_at_blanks(items, _get_vertical_span, 1)
    if len(bands) > 1 and len(items) <= MAX_SEARCHED:
        best, best_gain = 0, 0
        for place in range(1, len(bands)):
            halves = [[item for band in half for item in band] for half in (bands[:place], bands[place:])]
            gain = max((len(half) for half in halves if len(_split_columns(half, em)) > 1 and len(half) > 3), default=0)
            best, best_gain = (place, gain) if gain > best_gain else (best, best_gain)
        if best:
            return [[item for band in half for item in band] for half in (bands[:best], bands[best:])]
    return bands


def group_rows(items: Iterable[LayoutItem]) -> list[list[LayoutItem]]:
    """Return items that are level, from left to right."""
    rows: list[list[LayoutItem]] = []
    for item in sorted(items, key=lambda each: each.middle):
        last = rows[-1][0] if rows else None
        if last is not None and abs(item.middle - last.middle) <= 0.5 * min(item.box.height, last.box.height):
            rows[-1].append(item)
        else:
            rows.append([item])
    return [sorted(row, key=lambda each: each.box.x) for row in rows]


def is_row_number(text: str) -> bool:
    """Return whether a text may be the number of a row: signs such as ² and very long numbers are none."""
    return text.isdecimal() and len(text) <= DIGITS


def is_gutter(texts: Sequence[str]) -> bool:
    """Return whether texts are the numbers of successive lines, as beside a program."""
    numbers = [int(last) for text in texts for last in text.split()[-1:] if is_row_number(last)]
    steps = [other - one for one, other in pairwise(numbers)]
    return len(numbers) >= max(3, 0.9 * len(texts)) and all(1 <= step <= 3 for step in steps)


def divide_width(line: TextLine) -> float:
    """Return the width of a character."""
    if line.middles and len(line.text) > 1:
        return (line.middles[1] - line.middles[0]) / (len(line.text) - 1)
    return line.box.width / (len(line.text) - 0.15)  # the blank after the last character is not ink


def measure_letter_size(line: TextLine) -> float:
    """Return the size of a line's letters by the height of its ink, allowing for ascenders and descenders."""
    head = 0.74 if re.search(r"[^\W_acegmnopqrsuvwxyz]|[()\[\]{}/|]", line.text) else 0.54
    tail = 0.21 if re.search(r"[gjpqyQ,;()\[\]{}/|_]", line.text) else 0.0
    upright = line.box.height <= 2 * line.box.width or len(line.text) < 3
    return (line.box.height if upright else line.box.width) / (head + tail)
