"""Find programs and terminals: in editors by the column of line numbers, elsewhere by letters that are equally wide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.page_text import LONG, divide_width, is_row_number, measure_line_height
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import are_level, enclose_boxes, is_inside, overlap_horizontally

NUMBERS, FEW_NUMBERS = 5, 3  # line numbers, at least, and those of monospaced text
ALIGNED = 0.8  # heights of a line: how far the right ends of numbers may differ
REGULAR = 0.7  # share of the numbers that follow each other as their places do
STACKED = 1.6  # heights of a number: what is higher is several
FIRST = 6  # numbers above this are not counted down to 1
MARKS, DIFFERENCE = "vV-~>›+", "-+"  # what marks that fold a program are read as, and which of them may be signs
FOLD = 3.0  # widths of a digit after the line numbers where such marks are
THIN = 0.2  # heights of a number: a dash is thinner
JOINED = re.compile(r"(\d+)[.?]? +(\S.*)")  # a line that was read with its number, and perhaps a rule beside it
BESIDE = 0.4  # share of the numbers with a text beside them, at least


def find_code_areas(lines: Sequence[TextLine], texts: Sequence[Box] = ()) -> list[Box]:
    """Return the areas of programs and terminals: those of monospaced `texts`, and others by their line numbers."""
    if not lines:
        return []
    em, found = measure_line_height(lines), list(texts)
    for column in _find_number_columns(lines, em, FEW_NUMBERS):
        gutter = enclose_boxes(line.box for line in column)
        if any(is_inside(gutter, box) and gutter.x > box.x + em for box in texts):
            continue  # numbers in the lines of a program
        beside = _find_nearest_texts(gutter, texts) or [
            line.box for line in lines
            if line.box.x >= gutter.right and gutter.y - em <= line.box.y and line.box.bottom <= gutter.bottom + em
        ]  # fmt: skip
        enough = len(beside) >= BESIDE * len(column) and len(column) >= NUMBERS
        if enough or any(box in texts for box in beside):
            found.append(enclose_boxes([gutter, *beside]))
    return _join_overlapping(found)


def _find_nearest_texts(gutter: Box, texts: Sequence[Box]) -> list[Box]:
    """Return the areas in the column directly to the right of line numbers."""
    level = [box for box in texts if box.x >= gutter.x and box.y < gutter.bottom and gutter.y < box.bottom]
    first = min(level, key=lambda box: box.x, default=None)
    return [box for box in level if first is not None and overlap_horizontally(box, first)]


def _join_overlapping(boxes: Sequence[Box]) -> list[Box]:
    """Return the boxes, those that overlap as one."""
    joined: list[Box] = []
    for box in boxes:
        while over := [
            other for other in joined if overlap_horizontally(box, other) and _overlap_vertically(box, other)
        ]:
            joined = [other for other in joined if other not in over]
            box = enclose_boxes([box, *over])
        joined.append(box)
    return joined


def _overlap_vertically(one: Box, other: Box) -> bool:
    return one.y < other.bottom and other.y < one.bottom


def restore_line_numbers(lines: Sequence[TextLine]) -> list[TextLine]:
    """Return the lines with the numbers of a program that were read together as one, or not at all.

    Numbers above and below count the rows, so a missing one is known; it is marked as doubtful unless it was read.
    """
    lines = found = _split_joined_numbers(lines)
    for column in _find_number_columns(lines, measure_line_height(lines)) if lines else ():
        found = _remove_fold_marks(found, column)
        high, right = median(line.box.height for line in column), round(median(line.box.right for line in column))
        tall = [line for line in found if _may_be_stack(line, right, high)]
        known = [line for line in column if line not in tall]
        if len(known) >= NUMBERS:
            pitch = _measure_pitch(column)
            missing = [*_list_first(known, pitch), *_fill_gaps(known, pitch)]
            stacks = [(line, held) for line in tall if (held := _split_stack(line, missing))]
            read = {number.text for _, held in stacks for number in held}
            found = [line for line in found if not any(line is stack for stack, _ in stacks)]
            certain = [replace(number, doubtful=()) if number.text in read else number for number in missing]
            found += [number for number in certain if _is_missing(number, found, known)]
    return found


def _split_joined_numbers(lines: Sequence[TextLine]) -> list[TextLine]:
    """Return the lines, monospaced ones that were read together with the numbers of their rows apart from these."""
    pairs = {at: pair for at, line in enumerate(lines) if (pair := _split_joined_number(line))}
    if not pairs:
        return list(lines)
    em = measure_line_height(lines)
    numbers = [line for at, line in enumerate(lines) if at not in pairs] + [number for number, _ in pairs.values()]
    held = {id(number) for column in _find_number_columns(numbers, em) for number in column}
    found: list[TextLine] = []
    for at, line in enumerate(lines):
        found += pairs[at] if at in pairs and id(pairs[at][0]) in held else [line]
    return found


def _split_joined_number(line: TextLine) -> tuple[TextLine, TextLine] | None:
    """Return the number at the beginning of a monospaced line and the text after it, or None."""
    match = JOINED.fullmatch(line.text) if line.middles else None
    if match is None or not is_row_number(match[1]):
        return None
    width, digits = divide_width(line), len(match[1])
    number = replace(
        line,
        text=match[1],
        box=Box(line.box.x, line.box.y, max(1, round(digits * width)), line.box.height),
        doubtful=tuple(at for at in line.doubtful if at < digits),
        middles=None,
    )
    return number, _cut_start(line, match.start(2), width)


def _cut_start(line: TextLine, first: int, width: float) -> TextLine:
    """Return a line without the letters before the index `first`; letters are this wide."""
    text = line.text[first:]
    last = line.middles[1] if line.middles else line.box.right - width / 2
    start = last - (len(text) - 1) * width
    left = min(max(line.box.x, round(start - width / 2)), line.box.right - 1)
    return replace(
        line,
        text=text,
        box=Box(left, line.box.y, line.box.right - left, line.box.height),
        doubtful=tuple(at - first for at in line.doubtful if at >= first),
        middles=(start, last) if line.middles else None,
    )


def _remove_fold_marks(lines: Sequence[TextLine], column: Sequence[TextLine]) -> list[TextLine]:
    """Return the lines without the marks that fold a program, between its line numbers and its text."""
    pitch, letter = _measure_pitch(column), median(line.box.width / len(line.text) for line in column)
    right = round(median(line.box.right for line in column))
    zone = (right, right + FOLD * letter)
    lone = [line for line in lines if line.text in MARKS and zone[0] <= line.box.x and line.box.right <= zone[1]]
    thin = THIN * median(line.box.height for line in column)
    if any(line.text in DIFFERENCE and (line.text == "+" or line.box.height <= thin) for line in lone):
        return list(lines)  # what was added and removed
    missing = (*_list_first(column, pitch), *_fill_gaps(column, pitch), *_list_beyond(column, pitch))
    numbers = {number.text: number for number in missing}
    kept = [line for line in lines if line not in lone or not any(are_level(line.box, n.box) for n in column)]
    long = [divide_width(line) for line in kept if line.middles and len(line.text) >= LONG]
    return [piece for line in kept for piece in _split_at_mark(line, numbers, right, median(long or [letter]))]


def _list_beyond(column: Sequence[TextLine], pitch: float) -> Iterator[TextLine]:
    """Yield the numbers directly before the first one and after the last one."""
    for end, step in ((column[0], -1), (column[-1], 1)):
        box = Box(end.box.x, max(0, round(end.box.y + step * pitch)), end.box.width, end.box.height)
        yield replace(end, text=str(int(end.text) + step), box=box, middles=None)


def _split_at_mark(line: TextLine, numbers: Mapping[str, TextLine], right: int, width: float) -> list[TextLine]:
    """Return a line number and the text after it, or after its mark, where both were read as one; else the line."""
    match = re.fullmatch(rf"(\d+) *[{re.escape(MARKS)}?]? *(\S.*)?", line.text)
    number = numbers.get(match[1]) if match else None
    if match is None or number is None or not are_level(line.box, number.box):
        return [line]
    own = replace(number, doubtful=(), ink=line.ink, ground=line.ground)
    if not match[2]:
        return [own] if line.box.x < right else [line]
    if line.box.x < right:
        marked = line.text[match.end(1) : match.start(2)].strip()
        return [own, _cut_start(line, match.start(2), width)] if marked else [line]
    letters = line.box.width / width
    if abs(letters - len(match[2])) > abs(letters - len(line.text)):
        return [line]
    rest = _cut_start(line, match.start(2), width)  # a pale number is not in the box of the line
    return [own, replace(rest, box=line.box, middles=None)]


def _list_first(known: Sequence[TextLine], pitch: float) -> Iterator[TextLine]:
    """Yield a doubtful line for each number before the first one, where that is one of the smallest."""
    first = min(known, key=lambda line: line.box.y)
    for number in range(1, int(first.text) if pitch and int(first.text) <= FIRST else 1):
        y = round(first.box.y - pitch * (int(first.text) - number))
        if y >= 0:
            width = round(first.box.width / len(first.text))
            box = Box(first.box.right - width, y, width, first.box.height)
            yield replace(first, text=str(number), box=box, doubtful=(0,), middles=None)


def _fill_gaps(known: Sequence[TextLine], pitch: float) -> Iterator[TextLine]:
    """Yield a doubtful line for each number that is missing between two others, as many as there are rows between."""
    high, right = round(median(line.box.height for line in known)), round(median(line.box.right for line in known))
    letter = median(line.box.width / len(line.text) for line in known)
    for above, below in pairwise(known):
        step, down = int(below.text) - int(above.text), below.box.bottom - above.box.bottom
        if not _fits_pitch(step, down, pitch):
            continue
        for number in range(int(above.text) + 1, int(below.text)):
            text = str(number)
            width = round(letter * len(text))
            bottom = round(above.box.bottom + down * (number - int(above.text)) / step)
            box = Box(max(0, right - width), max(0, bottom - high), width, high)
            yield replace(known[0], text=text, box=box, doubtful=tuple(range(len(text))), middles=None)


def _is_missing(number: TextLine, lines: Sequence[TextLine], known: Sequence[TextLine]) -> bool:
    """Return whether no number is in the row of this one, and a text is, or this one was read."""
    row = [line for line in lines if are_level(line.box, number.box)]
    if any(line in known or line.box.x < number.box.right for line in row):
        return False
    return bool(row) or not number.doubtful


def _may_be_stack(line: TextLine, right: int, high: float) -> bool:
    """Return whether a line of digits is too high to be one number of the column."""
    return (
        line.text.replace(" ", "").isdecimal()
        and line.box.height > STACKED * high
        and abs(line.box.right - right) <= high
    )


def _split_stack(line: TextLine, missing: Sequence[TextLine]) -> list[TextLine]:
    """Return the missing numbers of the rows that a line covers if these are what it says; else it is another text."""
    level = [each for each in missing if line.box.y <= each.box.y + each.box.height / 2 <= line.box.bottom]
    said = line.text.split()
    if "".join(said) == "".join(each.text for each in level):
        return level
    held = [each for each in level if each.text in said]
    return held if [each.text for each in held] == said else []


def _find_number_columns(lines: Sequence[TextLine], em: float, least: int = NUMBERS) -> list[list[TextLine]]:
    """Return columns of numbers that count the rows they are in."""
    columns: list[list[TextLine]] = []
    for line in sorted((line for line in lines if is_row_number(line.text)), key=lambda each: each.box.y):
        home = next((c for c in columns if abs(c[-1].box.right - line.box.right) <= ALIGNED * em), None)
        if home is None:
            columns.append([line])
        else:
            home.append(line)
    return [column for column in columns if len(column) >= least and _counts_rows(column)]


def _counts_rows(column: Sequence[TextLine]) -> bool:
    """Return whether most numbers grow by one from row to row."""
    pitch = _measure_pitch(column)
    regular = sum(
        _fits_pitch(int(below.text) - int(above.text), below.box.bottom - above.box.bottom, pitch)
        for above, below in pairwise(column)
    )
    return regular >= REGULAR * (len(column) - 1)


def _measure_pitch(column: Sequence[TextLine]) -> float:
    """Return the distance of two rows whose numbers follow each other; 0 where there are none."""
    near = [
        below.box.bottom - above.box.bottom
        for above, below in pairwise(column) if int(below.text) - int(above.text) == 1
    ]  # fmt: skip
    return median(near) if near else 0


def _fits_pitch(step: int, down: int, pitch: float) -> bool:
    """Return whether two numbers are as many rows apart as they count."""
    return step > 0 and pitch > 0 and abs(down - step * pitch) <= 0.3 * pitch
