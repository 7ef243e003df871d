"""Find programs and terminals by their letters, which are all equally wide and in the same columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.page_text import LONG, LayoutItem, contains_line, divide_width, group_rows
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import enclose_boxes, is_inside, overlap_horizontally

ROWS = 3  # of a program or a terminal, at least
LETTERS = 40  # of all its lines, at least
PROSE = 16  # characters: a line of other text that ends an area has at least as many
SAME_WIDTH = 0.6  # characters: how far a line may be from the number of characters that its length tells
SAME_COLUMN = 0.25  # characters: how far a letter may be from its column
SAME_EDGE = 0.35  # the same where only the edge of the first letter is known
CERTAIN = 30  # characters: the width of a character is known no better from longer lines
BLANK = 6.0  # heights of a line: the blank between two lines of one area, at most
ADJACENT, INDENTED = 1.2, 2.0  # the same above a line that was read badly, and if it is indented, too
CLOSING, ASIDE = 3, 16  # characters of a line before all others, such as a bracket, and how far before
SKIPPED = 3  # lines that were read badly, in a row
RECENT = 12  # lines above one that show the columns
HIGH = 1.5  # how many times as high as the others a line may be
BESIDE = 0.8  # share of the rows of a column of a table that have other cells beside them
GAP = 12  # characters: the blank between the longest line of one part of a text and the next part, at most
LEVEL = 0.15  # heights of a line: how exactly these are level
SHORT = 30  # characters of most cells of such a column, at most
FILLED, EVEN = 0.9, 0.12  # share of the letters of a panel that are monospaced, and how much their widths may differ


class _Area:
    """Lines in the same columns, from top to bottom."""

    def __init__(self, line: TextLine) -> None:
        self.lines, self.box, self.width, self.bottom = [line], line.box, divide_width(line), line.box.bottom
        self.skipped = 0  # lines since the last one that fits

    def add(self, line: TextLine) -> None:
        self.lines.append(line)
        self.skipped = 0
        self._measure(line)

    def skip(self, line: TextLine) -> None:
        """Go on below a line that was read badly."""
        self.skipped += 1
        self.bottom = max(self.bottom, line.box.bottom)

    def join(self, other: _Area) -> None:
        for line in other.lines:
            self.lines.append(line)
            self._measure(line)
        self.lines.sort(key=_get_middle)

    def _measure(self, line: TextLine) -> None:
        self.box, self.bottom = enclose_boxes([self.box, line.box]), max(self.bottom, line.box.bottom)
        long = sorted(self.lines[-RECENT:], key=lambda each: -len(each.text))[:ROWS]
        widths = [divide_width(each) for each in long if len(each.text) >= LONG]
        self.width = median(widths) if widths else self.width

    def accepts(self, line: TextLine) -> bool:
        """Return whether a line goes on below: near, as high, and in the same columns."""
        closing = len(line.text) <= CLOSING and 0 <= self.box.x - line.box.right <= ASIDE * self.width
        if not (line.middles or len(line.text) >= LONG) or not (closing or overlap_horizontally(self.box, line.box)):
            return False
        return self._is_near(line, BLANK) and self.has_columns_of(line)

    def has_columns_of(self, line: TextLine) -> bool:
        if len(line.text) > 1 and not _fits_width(line, self.width):
            return False
        return any(_shares_columns(line, other, self.width) for other in self.lines[-RECENT:] if other.middles)

    def may_have(self, line: TextLine) -> bool:
        """Return whether a line that is not in the columns may still be one of the area, which was read badly."""
        indent = line.box.x - self.box.x
        blank = INDENTED if indent > self.width else ADJACENT
        return self.skipped < SKIPPED and indent >= -self.width and self._is_near(line, blank)

    def _is_near(self, line: TextLine, blank: float) -> bool:
        high = max(each.box.height for each in self.lines[-ROWS:])
        return line.box.y - self.bottom <= blank * high and line.box.height <= HIGH * high


def find_mono_areas(lines: Sequence[TextLine], panels: Sequence[Box] = ()) -> list[Box]:
    """Return the areas of text whose letters are equally wide, several rows of it, short lines included.

    What is written in one of the `panels` and has no other text beside it is one area, and none goes beyond its panel.
    """
    found: list[Box] = []
    loose = list(lines)
    for panel in _choose_panels(lines, panels):
        own = [line for line in loose if contains_line(panel, line.box)]
        loose = [line for line in loose if not contains_line(panel, line.box)]
        found.append(enclose_boxes(line.box for line in own))
    return [*found, *(box for box in _find_open_areas(loose) if not _is_column(box, lines))]


def _choose_panels(lines: Sequence[TextLine], panels: Sequence[Box]) -> list[Box]:
    """Return the panels with nothing but monospaced text; of one in another, the outer one if that has more of it."""
    chosen: list[Box] = []
    for panel in sorted(panels, key=lambda box: box.width * box.height):
        own = [line for line in lines if contains_line(panel, line.box)]
        if not _is_written(own):
            continue
        inner = [box for box in chosen if is_inside(box, panel)]
        rest = [line for line in own if not any(contains_line(box, line.box) for box in inner)]
        if not inner or (len(rest) >= max(ROWS, 2 * len(inner)) and all(line.middles for line in rest)):
            chosen = [*(box for box in chosen if box not in inner), panel]
    return chosen


def _is_written(lines: Sequence[TextLine]) -> bool:
    """Return whether lines are a program or a terminal: several rows, nearly all of it in letters of one width."""
    known = [line for line in lines if line.middles]
    if not known or sum(len(line.text) for line in known) < FILLED * sum(len(line.text) for line in lines):
        return False
    long = [divide_width(line) for line in known if len(line.text) >= LONG]
    area = _Area(known[0])
    area.lines = list(lines)
    return _is_text(area) and bool(long) and max(long) - min(long) <= EVEN * median(long)


def _find_open_areas(lines: Sequence[TextLine]) -> list[Box]:
    """Return the areas of lines, wherever they are; a column of a table may be one."""
    areas: list[_Area] = []
    done: list[_Area] = []
    for line in sorted(lines, key=_get_middle):
        home = next((area for area in areas if area.accepts(line)), None)
        if home is not None:
            home.add(line)
            continue
        if len(line.text) >= PROSE:
            over = [area for area in areas if overlap_horizontally(area.box, line.box)]
            ended = [area for area in over if not area.may_have(line)]
            for area in over:
                area.skip(line)
            done += ended
            areas = [area for area in areas if area not in ended]
        if line.middles and len(line.text) >= LONG:
            areas.append(_Area(line))
    return [_add_short_lines(area, lines) for area in _join_level([*done, *areas]) if _is_text(area)]


def _get_middle(line: TextLine) -> float:
    return line.box.y + line.box.height / 2


def _join_level(areas: Sequence[_Area]) -> list[_Area]:
    """Join areas that are one text: in the same columns, and side by side in the same rows, or one in the other."""
    joined: list[_Area] = []
    for area in sorted(areas, key=lambda each: -len(each.lines)):
        home = next((other for other in joined if _is_beside(area, other)), None)
        if home is None:
            joined.append(area)
        else:
            home.join(area)
    return joined


def _is_beside(area: _Area, other: _Area) -> bool:
    if area.box.y > other.box.bottom or other.box.y > area.box.bottom or not other.has_columns_of(area.lines[0]):
        return False
    blank = max(area.box.x, other.box.x) - min(area.box.right, other.box.right)
    level = blank <= GAP * area.width and _count_level(area.lines, other.lines) >= BESIDE * len(area.lines)
    return level or overlap_horizontally(area.box, other.box)


def _count_level(lines: Sequence[TextLine], others: Sequence[TextLine]) -> int:
    """Return how many lines have another one exactly beside them."""
    if not lines or not others:
        return 0
    sorted_others = sorted(others, key=_get_middle)
    middles = [_get_middle(other) for other in sorted_others]
    reach = LEVEL * max(line.box.height for line in (*lines, *others))
    count = 0
    for line in lines:
        first, last = bisect_left(middles, _get_middle(line) - reach), bisect_right(middles, _get_middle(line) + reach)
        count += any(_is_exactly_level(line, other) for other in sorted_others[first:last])
    return count


def _fits_width(line: TextLine, width: float) -> bool:
    """Return whether the characters of a line are this wide, as far as its length tells."""
    return abs(divide_width(line) / width - 1) * min(len(line.text), CERTAIN) <= SAME_WIDTH


def _shares_columns(line: TextLine, other: TextLine, width: float) -> bool:
    one, two = (each.middles[0] if each.middles else each.box.x + width / 2 for each in (line, other))
    apart = (one - two) / width
    return abs(apart - round(apart)) <= (SAME_COLUMN if line.middles else SAME_EDGE)


def _is_text(area: _Area) -> bool:
    rows = group_rows(LayoutItem(line.box, (), 0) for line in area.lines)
    return len(rows) >= ROWS and sum(len(line.text) for line in area.lines) >= LETTERS


def _add_short_lines(area: _Area, lines: Sequence[TextLine]) -> Box:
    """Return the box of an area with lines directly above and below that were read badly or are short as a bracket."""
    box, high = area.box, max(line.box.height for line in area.lines)
    steps = [below.box.bottom - above.box.bottom for above, below in pairwise(area.lines)]
    step = min((each for each in steps if each >= 0.8 * high), default=high)
    for line in sorted(lines, key=lambda each: each.box.bottom):
        if 0 < line.box.bottom - box.bottom <= 1.3 * step and _may_continue(line, box, area):
            box = enclose_boxes([box, line.box])
    for line in sorted(lines, key=lambda each: -each.box.y):
        if 0 < box.y - line.box.y <= 1.3 * step and _may_continue(line, box, area):
            box = enclose_boxes([box, line.box])
    return box


def _may_continue(line: TextLine, box: Box, area: _Area) -> bool:
    """Return whether a line is short and between the sides of an area, or long and begins in one of its columns."""
    if not _is_between_sides(line.box, box):
        return False
    if len(line.text) < LONG:
        return True
    apart = (line.box.x - area.box.x) / area.width
    alike = line.ground is not None and line.ground == area.lines[-1].ground
    return alike and line.box.height <= HIGH * area.lines[-1].box.height and abs(apart - round(apart)) <= SAME_COLUMN


def _is_between_sides(line: Box, area: Box) -> bool:
    return area.x - 2 <= line.x and line.right <= area.right


def _is_column(box: Box, lines: Sequence[TextLine]) -> bool:
    """Return whether an area is a column of a table: its lines are short, and most have others exactly beside them."""
    own = [line for line in lines if contains_line(box, line.box)]
    if median(len(line.text) for line in own) > SHORT:
        return False
    outer = [line for line in lines if not contains_line(box, line.box) and not line.text.isdecimal()]
    return _count_level(own, outer) >= BESIDE * len(own)


def _is_exactly_level(line: TextLine, other: TextLine) -> bool:
    return abs(_get_middle(line) - _get_middle(other)) <= LEVEL * max(line.box.height, other.box.height)
