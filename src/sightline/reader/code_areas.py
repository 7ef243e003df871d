"""Find programs in editors by the column of line numbers beside them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.page_text import measure_line_height
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import are_level, enclose_boxes

NUMBERS = 5  # line numbers, at least
ALIGNED = 0.8  # heights of a line: how far the right ends of numbers may differ
REGULAR = 0.7  # share of the numbers that follow each other as their places do
STACKED = 1.6  # heights of a number: what is higher is several
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


def restore_line_numbers(lines: Sequence[TextLine]) -> list[TextLine]:
    """Return the lines with the numbers of a program that were read together as one, or not at all.

    Numbers above and below count the rows, so a missing one is known; it is marked as doubtful unless it was read.
    """
    found = list(lines)
    for column in _find_number_columns(lines, measure_line_height(lines)) if lines else ():
        high, right = median(line.box.height for line in column), round(median(line.box.right for line in column))
        stacks = [line for line in found if _is_stack(line, right, high)]
        known = [line for line in column if line not in stacks]
        if len(known) >= NUMBERS:
            found = [line for line in found if line not in stacks]
            read = {text for stack in stacks for text in stack.text.split()}
            found += [line for line in _count_rows(known, read) if _is_missing(line, found, known)]
    return found


def _count_rows(known: Sequence[TextLine], read: Container[str]) -> Iterator[TextLine]:
    """Yield a line for each number between the first and the last."""
    zero, pitch = _fit_rows(known)
    high, right = round(median(line.box.height for line in known)), round(median(line.box.right for line in known))
    letter = median(line.box.width / len(line.text) for line in known)
    for number in range(int(known[0].text), int(known[-1].text) + 1):
        text = str(number)
        width = round(letter * len(text))
        box = Box(max(0, right - width), max(0, round(zero + pitch * number) - high), width, high)
        yield replace(known[0], text=text, box=box, doubtful=() if text in read else tuple(range(len(text))))


def _is_missing(number: TextLine, lines: Sequence[TextLine], known: Sequence[TextLine]) -> bool:
    """Return whether no number is in the row of this one, and a text is, or this one was read."""
    row = [line for line in lines if are_level(line.box, number.box)]
    if any(line in known or line.box.x < number.box.right for line in row):
        return False
    return bool(row) or not number.doubtful


def _is_stack(line: TextLine, right: int, high: float) -> bool:
    """Return whether a line is several numbers below each other that were read as one."""
    return (
        line.text.replace(" ", "").isdigit()
        and line.box.height > STACKED * high
        and abs(line.box.right - right) <= high
    )


def _fit_rows(column: Sequence[TextLine]) -> tuple[float, float]:
    """Return where the line with the number 0 would end, and the distance of two lines."""
    near = [
        (below.box.bottom - above.box.bottom) / (int(below.text) - int(above.text))
        for above, below in pairwise(column) if int(below.text) > int(above.text)
    ]  # fmt: skip
    pitch = median(near)
    return median(line.box.bottom - pitch * int(line.text) for line in column), pitch


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
