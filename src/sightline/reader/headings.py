"""Find the title of a window and the headings of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.page_text import contains_line, measure_letter_size
from sightline.reader.reading import ImageReading, InterfacePart, TextLine, select_parts
from sightline.reader.rectangles import are_level

_TITLE_LINES = 2  # in a title bar: its text, and perhaps a button that was read as a letter
_INDENT = 1.5  # heights of a title bar: a text that begins further from its left is in the middle
_OFF_MIDDLE = 0.1  # share of a title bar's width: how far from its middle a centred text may be
_TOUCH = 3  # pixels between a title bar and its window
_LARGER = 1.1  # a heading is this many times as large as most text
_HEADING = 1.2  # a line written as a heading is this many times as large as most text
_LEVELS = 3  # of headings
_SAME_SIZE = 1.12  # headings of one level differ by less
_LETTERS = 3  # of a heading, at least
_LONGEST = 90  # characters of a heading
_BESIDE = 1.5  # heights of a heading: nothing is nearer to it in its row
_BELOW = 4  # sizes of its letters: how far below it the text begins that it heads


@dataclass(frozen=True, slots=True)
class PageTitles:
    """The line in the title bar, and the heading."""

    bar: TextLine | None  # in a title bar
    heading: TextLine | None  # larger than the rest, bars and buttons aside
    largest: bool = False  # whether the heading is the largest text of all


def find_titles(reading: ImageReading) -> PageTitles:
    """Find the title of the window, if the image shows one, and the heading."""
    heads = [reading.lines[bar.lines[0]] for bar in select_parts(reading, "bar") if _is_title_bar(bar, reading)]
    head = find_heading(reading)
    others = [measure_letter_size(line) for line in reading.lines if line is not head]
    largest = head is not None and all(measure_letter_size(head) > size for size in others)
    return PageTitles(heads[0] if len(heads) == 1 else None, head, largest)


def _is_title_bar(bar: InterfacePart, reading: ImageReading) -> bool:
    """Return whether a bar is the top of a window: a short text on a panel that stands alone on a background."""
    if not 0 < len(bar.lines) <= _TITLE_LINES or bar.box.x <= 0 or bar.box.right >= reading.size.width:
        return False
    title, usual = reading.lines[bar.lines[0]], median(measure_letter_size(line) for line in reading.lines)
    left, right = title.box.x - bar.box.x, bar.box.right - title.box.right
    centred = left > _INDENT * bar.box.height
    if centred and (measure_letter_size(title) > _LARGER * usual or abs(left - right) > _OFF_MIDDLE * bar.box.width):
        return False  # the head of a card, or a menu
    stacked = [part for part in select_parts(reading, "panel", "bar") if _has_same_sides(part.box, bar.box)]
    below = [
        part.box for part in stacked
        if abs(part.box.y - bar.box.bottom) <= _TOUCH and part.box.height >= 2 * bar.box.height
        and part.colour != bar.colour
    ]  # fmt: skip
    if not below or any(abs(part.box.bottom - bar.box.y) <= _TOUCH for part in stacked):
        return False
    window = Box(bar.box.x, bar.box.y, bar.box.width, below[0].bottom - bar.box.y)
    level = [line.box for line in reading.lines if window.y <= line.box.y < window.bottom]
    return all(contains_line(window, box) for box in level) and (
        _stands_alone(bar.box, reading) or _has_close_button(bar.box, reading)
    )


def _stands_alone(bar: Box, reading: ImageReading) -> bool:
    """Return whether all text of the image is in a bar or below it: cards of a page have text around them."""
    return all(
        line.box.y >= bar.y and line.box.x >= bar.x and line.box.right <= bar.right + _TOUCH for line in reading.lines
    )


def _has_close_button(bar: Box, reading: ImageReading) -> bool:
    """Return whether a mark is at the right end of a bar."""
    letters = [line.box for line in reading.lines if len(line.text) == 1]
    return any(
        are_level(mark, bar) and 0 <= bar.right - mark.right <= bar.height and mark.width <= bar.height
        for mark in (*letters, *reading.icons, *reading.unread)
    )


def _has_same_sides(one: Box, other: Box) -> bool:
    return abs(one.x - other.x) <= _TOUCH and abs(one.right - other.right) <= _TOUCH


def find_heading(reading: ImageReading) -> TextLine | None:
    """Return the first of the largest lines outside bars, buttons and cells, if clearly larger than most."""
    used = {at for part in select_parts(reading, "button", "field", "bar") for at in part.lines}
    cells = {at for table in reading.tables for row in table.rows[1:] for cell in row for at in cell}
    free = [at for at, line in enumerate(reading.lines) if at not in used and any(map(str.isalpha, line.text))]
    sizes = {at: measure_letter_size(reading.lines[at]) for at in free}
    largest = max((at for at in free if at not in cells), key=sizes.__getitem__, default=None)
    if largest is None:
        return None
    usual = sorted(sizes.values())[len(sizes) // 2]
    return reading.lines[largest] if sizes[largest] >= usual * _LARGER or len(free) == 1 else None


def rank_headings(lines: Sequence[TextLine], others: frozenset[int] = frozenset()) -> dict[int, int]:
    """Return the level, 1 to 3, of each line that is written larger than most text, above smaller text.

    `others` are lines that can't be headings: those of controls, cells, charts and programs.
    """
    sizes = [measure_letter_size(line) for line in lines]
    usual = _find_usual_size(lines, sizes)
    found = [
        at for at, line in enumerate(lines)
        if at not in others and sizes[at] >= _HEADING * usual and _is_heading(line, lines, sizes[at])
    ]  # fmt: skip
    levels: dict[int, int] = {}
    last, level = float("inf"), 0
    for at in sorted(found, key=lambda each: -sizes[each]):
        if sizes[at] * _SAME_SIZE < last:
            last, level = sizes[at], min(_LEVELS, level + 1)
        levels[at] = level
    return levels


def _find_usual_size(lines: Sequence[TextLine], sizes: Sequence[float]) -> float:
    """Return the size that half of all characters have at most."""
    ranked = sorted(zip(sizes, map(len, (line.text for line in lines)), strict=True))
    half, count = sum(letters for _, letters in ranked) / 2, 0
    for size, letters in ranked:
        count += letters
        if count >= half:
            return size
    return 0.0


def _is_heading(line: TextLine, lines: Sequence[TextLine], size: float) -> bool:
    """Return whether a line stands alone in its row and has smaller text below it."""
    box = line.box
    if not (sum(map(str.isalpha, line.text)) >= _LETTERS and len(line.text) <= _LONGEST and box.width > box.height):
        return False
    level = [other.box for other in lines if other is not line and are_level(other.box, box)]
    if any(-_BESIDE * box.height < other.x - box.right < _BESIDE * box.height
           or -_BESIDE * box.height < box.x - other.right < _BESIDE * box.height for other in level):  # fmt: skip
        return False
    return any(
        0 <= other.box.y - box.bottom <= _BELOW * size
        and other.box.x < box.right
        and other.box.right > box.x - size
        and measure_letter_size(other) * _LARGER <= size
        for other in lines
    )
