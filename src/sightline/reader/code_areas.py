"""Find programs in editors by the column of line numbers beside them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.page_text import measure_line_height
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import enclose_boxes

NUMBERS = 5  # line numbers, at least
ALIGNED = 0.8  # heights of a line: how far the right ends of numbers may differ
REGULAR = 0.7  # share of the numbers that follow each other as their places do
BESIDE = 0.4  # share of the numbers with a text beside them, at least


def find_code_areas(lines: Sequence[TextLine]) -> list[Box]:
    """Return the areas of programs with line numbers, numbers included."""
    if not lines:
        return []
    em = measure_line_height(lines)
    found = []
    for column in _find_number_columns(lines, em):
        gutter = enclose_boxes(line.box for line in column)
        beside = [
            line.box for line in lines
            if line.box.x >= gutter.right and gutter.y - em <= line.box.y and line.box.bottom <= gutter.bottom + em
        ]  # fmt: skip
        if len(beside) >= BESIDE * len(column):
            found.append(enclose_boxes([gutter, *beside]))
    return [box for box in found if not any(other is not box and _contains(other, box) for other in found)]


def _contains(outer: Box, inner: Box) -> bool:
    return outer.x <= inner.x and outer.y <= inner.y and outer.right >= inner.right and outer.bottom >= inner.bottom


def _find_number_columns(lines: Sequence[TextLine], em: float) -> list[list[TextLine]]:
    """Return columns of numbers that count the rows they are in."""
    columns: list[list[TextLine]] = []
    for line in sorted((line for line in lines if line.text.isdigit()), key=lambda each: each.box.y):
        home = next((c for c in columns if abs(c[-1].box.right - line.box.right) <= ALIGNED * em), None)
        if home is None:
            columns.append([line])
        else:
            home.append(line)
    return [column for column in columns if len(column) >= NUMBERS and _counts_rows(column)]


def _counts_rows(column: Sequence[TextLine]) -> bool:
    """Return whether most numbers grow by one from row to row."""
    steps = [
        (int(below.text) - int(above.text), below.box.bottom - above.box.bottom) for above, below in pairwise(column)
    ]
    near = [down for step, down in steps if step == 1]
    if not near:
        return False
    pitch = median(near)
    regular = sum(step > 0 and abs(down - step * pitch) <= 0.3 * pitch for step, down in steps)
    return regular >= REGULAR * len(steps)
