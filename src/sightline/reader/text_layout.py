"""Write all lines of a page as one text in Markdown."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.page_text import (
    LONG,
    contains_line,
    divide_width,
    is_gutter,
    measure_line_height,
)
from sightline.reader.reading import Table, TextLine
from sightline.reader.rectangles import contains_centre, enclose_boxes
from sightline.reader.sections import TOGGLE_LETTERS, escape_line, escape_marks, fence_code
from sightline.reader.trees import split_trees

APART = 1.3  # heights of a line: the blank above a new paragraph
RULE = "\n\n---"  # between columns and around cards
BULLET = re.compile(r"^[•◦▪‣●○·] ?(?=\S)")
FITS = 0.6  # characters: how far the length of a monospaced line may be from its number of characters
SPREAD = 4  # characters: how much the lengths of monospaced lines must differ to tell that they are
GUTTER_BLANK = 2  # characters between line numbers and a program
HIGHEST = 2.0  # heights of a line of a program: what is higher and could not be read is no text of it
UNREAD = "?"  # stands for text that could not be read, always as a doubtful letter
ROW = 0.5  # heights of the highest line of a row: how far from its middle other signs are
FEW = 3  # characters of a line that tell about how wide they are
MANY = 4  # lines that are needed to tell a monospaced text


def lay_out_text(
    lines: Sequence[TextLine],
    found: Sequence[Table] = (),
    plots: Sequence[Box] = (),
    code: Sequence[Box] = (),
    headings: Mapping[int, int] | None = None,
    cards: Sequence[Box] = (),
    unread: Sequence[Box] = (),
) -> str:
    """Return all lines as one text in Markdown: headings, lists, tables, code with its indentation, paragraphs apart.

    Lines in `plots` are written row by row without blank lines: labels of a chart are not paragraphs. Those in `code`
    keep their columns. `headings` has the levels of lines. A rule is between columns, and around each of the `cards`.
    Text of a program that is `unread` is marked at its place.
    """
    if not lines:
        return ""
    em = measure_line_height(lines)
    dark = [TextLine(UNREAD, box, doubtful=(0,)) for box in unread]
    homes: dict[int, Table | Box] = {place: table for table in found for row in table.rows for c in row for place in c}
    for place, line in enumerate(lines):
        if area := next((box for box in (*code, *plots) if contains_line(box, line.box)), None):
            homes[place] = area
    written: list[TextBlock] = []
    done: list[Table] = []
    for home, each in groupby(range(len(lines)), key=homes.get):
        places = list(each)
        match home:
            case Table():
                written += [] if home in done else [TextBlock(_write_table(lines, home), places[0], places[-1])]
                done.append(home)
            case Box():
                text = _write_rows(lines, places, dark, columns=home in code)
                written.append(TextBlock(text, places[0], places[-1]))
            case None:
                written += _write_blocks(lines, places, em, headings or {}, dark)
    return _join_blocks(lines, written, cards)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A piece of the text, and the indexes of its first and last line."""

    text: str
    first: int
    last: int


def _join_blocks(lines: Sequence[TextLine], blocks: Sequence[TextBlock], cards: Sequence[Box]) -> str:
    """Join blocks by blank lines; a rule is where another column or card begins."""
    out = blocks[0].text
    for before, block in pairwise(blocks):
        last, first = lines[before.last].box, lines[block.first].box
        moved = first.bottom <= last.y or _find_card(last, cards) != _find_card(first, cards)
        out += f"{RULE if moved else ''}\n\n{block.text}"
    return out


def _find_card(line: Box, cards: Sequence[Box]) -> Box | None:
    """Return the smallest card around a line."""
    return min((c for c in cards if contains_line(c, line)), key=lambda c: c.width * c.height, default=None)


def _write_rows(lines: Sequence[TextLine], places: Sequence[int], dark: Sequence[TextLine], *, columns: bool) -> str:
    """Return rows as they stand, at their columns where these matter."""
    rows = _group_code_rows(lines, places) if columns else _join_rows(lines, places)
    width = None
    if columns and len(rows) > 1:
        width = _measure_character_width(lines, rows) or _estimate_width(lines, places)
    if width is not None:
        return _write_code(lines, rows, width, dark)
    return "\n".join(escape_line(_join_texts(lines, row)) for row in rows)


def _group_code_rows(lines: Sequence[TextLine], places: Sequence[int]) -> list[list[int]]:
    """Return the lines of each row of a program, from left to right; a sign may be high or low in its row."""
    rows: list[list[int]] = []
    high, middle = 0, 0.0  # of the highest line of the last row
    for place in sorted(places, key=lambda at: lines[at].box.y + lines[at].box.height / 2):
        box = lines[place].box
        own = box.y + box.height / 2
        if rows and own - middle <= ROW * max(high, box.height):
            rows[-1].append(place)
            high, middle = (box.height, own) if box.height > high else (high, middle)
        else:
            rows.append([place])
            high, middle = box.height, own
    return [sorted(row, key=lambda at: lines[at].box.x) for row in rows]


def _join_texts(lines: Sequence[TextLine], row: Sequence[int]) -> str:
    return "  ".join(lines[place].marked_text for place in row)


def _write_table(lines: Sequence[TextLine], table: Table) -> str:
    """Return a table in Markdown; its first row is the head."""
    texts = [[escape_marks(" ".join(lines[at].marked_text for at in cell)) for cell in row] for row in table.rows]
    rows = [f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in texts]
    rule = "|" + "---|" * max(map(len, texts))
    return "\n".join([rows[0], rule, *rows[1:]])


def _join_rows(lines: Sequence[TextLine], places: Sequence[int], alone: Container[int] = ()) -> list[list[int]]:
    """Return lines that continue each other, row by row, except those that stay alone."""
    rows: list[list[int]] = []
    for place in places:
        last = rows[-1][-1] if rows else None
        if (
            last is not None
            and not (last in alone or place in alone)
            and _is_continuation(lines[last].box, lines[place].box)
        ):
            rows[-1].append(place)
        else:
            rows.append([place])
    return rows


def _write_blocks(
    lines: Sequence[TextLine],
    places: Sequence[int],
    em: float,
    headings: Mapping[int, int],
    dark: Sequence[TextLine],
) -> list[TextBlock]:
    """Return the headings and paragraphs of lines that follow each other."""
    blocks: list[list[list[int]]] = []
    for row in _join_rows(lines, places, headings):
        apart = not blocks or row[0] in headings or blocks[-1][-1][0] in headings
        if not apart and _is_below(lines, blocks[-1][-1], row, em):
            blocks[-1].append(row)
        else:
            blocks.append([row])
    return [
        TextBlock(mark + text, rows[0][0], rows[-1][-1])
        for block in blocks
        for mark in ["#" * headings[block[0][0]] + " " if block[0][0] in headings else ""]
        for text, rows in _write_paragraphs(lines, block, em, dark)
    ]


def _is_continuation(before: Box, box: Box) -> bool:
    """Return whether a line is to the right of the one before it."""
    level = abs(before.y + before.height / 2 - box.y - box.height / 2) <= 0.5 * min(before.height, box.height)
    return level and box.x >= before.right - 2


def _is_below(lines: Sequence[TextLine], above: Sequence[int], row: Sequence[int], em: float) -> bool:
    """Return whether a row is directly below another, blank lines of code included."""
    before, box = lines[above[0]].box, lines[row[0]].box
    near = -0.5 * em <= box.y - before.bottom <= 3.5 * em
    return near and box.x < max(lines[place].box.right for place in above) and abs(box.x - before.x) < 40 * em


def _write_paragraphs(
    lines: Sequence[TextLine], block: Sequence[list[int]], em: float, dark: Sequence[TextLine]
) -> list[tuple[str, Sequence[list[int]]]]:
    """Return each paragraph and its rows."""
    width = _measure_monospace_width(lines, block)
    if width is not None:
        return [(_write_code(lines, block, width, dark), block)]
    out: list[tuple[str, Sequence[list[int]]]] = []
    for run, levels in split_trees(lines, block):
        out += [(_write_tree(lines, run, levels), run)] if levels else _write_prose(lines, run, em)
    return out


def _write_prose(
    lines: Sequence[TextLine], block: Sequence[list[int]], em: float
) -> list[tuple[str, Sequence[list[int]]]]:
    out: list[tuple[str, list[list[int]]]] = []
    for at, row in enumerate(block):
        written = _join_texts(lines, row)
        bullet = BULLET.match(written)
        text = f"- {escape_line(written[bullet.end() :])}" if bullet else escape_line(written)
        above = max((lines[place].box.bottom for place in block[at - 1]), default=0) if at else 0
        if not out or lines[row[0]].box.y - above > APART * em:
            out.append((text, [row]))
        else:
            out[-1] = (f"{out[-1][0]}\n{text}", [*out[-1][1], row])
    return list(out)


def _write_tree(lines: Sequence[TextLine], block: Sequence[list[int]], levels: Sequence[int]) -> str:
    """Return rows as a list of lists."""
    out = []
    for row, level in zip(block, levels, strict=True):
        text = _join_texts(lines, row)
        bullet = BULLET.match(text)
        out.append(f"{'  ' * level}- {escape_line(text[bullet.end() :] if bullet else text)}")
    return "\n".join(out)


def _measure_monospace_width(lines: Sequence[TextLine], block: Sequence[list[int]]) -> float | None:
    """Return the width of a character where all are equally wide, as in code; None in other text."""
    long = [lines[place] for row in block for place in row if len(lines[place].text) >= LONG]
    width = _measure_character_width(lines, block)
    if len(block) < 3 or width is None or is_gutter([lines[row[0]].text for row in block]):
        return width if len(block) >= 3 else None
    lengths = [len(line.text) for line in _select_fitting(long, width)]
    return width if len(lengths) >= max(MANY, 0.75 * len(long)) and max(lengths) - min(lengths) >= SPREAD else None


def _measure_character_width(lines: Sequence[TextLine], block: Sequence[list[int]]) -> float | None:
    """Return the width of a character that fits the most of the longer lines; None where there are too few of them."""
    long = [lines[place] for row in block for place in row if len(lines[place].text) >= LONG]
    if len(long) < 3 or any(line.text[0] in TOGGLE_LETTERS for line in long):
        return None
    usual = median(map(divide_width, long))
    return max(map(divide_width, long), key=lambda width: (len(_select_fitting(long, width)), -abs(width - usual)))


def _estimate_width(lines: Sequence[TextLine], places: Sequence[int]) -> float | None:
    """Return about the width of a character of a program whose lines are all short; None where nothing tells it."""
    widths = [divide_width(lines[at]) for at in places if len(lines[at].text) >= FEW and not lines[at].text.isdigit()]
    return median(widths) if widths else None


def _select_fitting(lines: Sequence[TextLine], width: float) -> list[TextLine]:
    """Return the lines whose characters are of this width, whatever their number."""
    return [line for line in lines if abs(divide_width(line) / width - 1) * len(line.text) <= FITS]


def _find_line_numbers(lines: Sequence[TextLine], block: Sequence[list[int]]) -> set[int]:
    """Return the numbers beside the lines of a program: most rows begin with one, and all end at one place."""
    found = [row[0] for row in block if lines[row[0]].text.isdigit()]
    if len(found) < max(3, 0.6 * len(block)):
        return set()
    end, high = (
        median(each) for each in zip(*((lines[at].box.right, lines[at].box.height) for at in found), strict=True)
    )
    return {at for at in found if abs(lines[at].box.right - end) <= high}


def _separate_number(line: TextLine, edge: int, width: float) -> list[tuple[str, float]]:
    """Return the pieces of a line and where their first letters are: two if it begins with a number up to `edge`."""
    match = re.match(r"(\d+) +(\S.*)", line.marked_text) if line.box.x < edge else None
    if match is None:
        return [(line.marked_text, _find_first_middle(line, width))]
    letters = len(match[2]) - 2 * match[2].count("‹")
    last = line.middles[1] if line.middles else line.box.right - width / 2
    return [(match[1], line.box.x), (match[2], last - (letters - 1) * width)]


def _find_first_middle(line: TextLine, width: float) -> float:
    """Return where the middle of the first letter of a line is."""
    return line.middles[0] if line.middles else line.box.x + min(width, line.box.width) / 2


def _add_unread(
    lines: Sequence[TextLine], block: Sequence[list[int]], dark: Sequence[TextLine]
) -> tuple[Sequence[TextLine], Sequence[list[int]]]:
    """Return a program with what could not be read between the ends of its lines, and all lines."""
    numbers = _find_line_numbers(lines, block)
    texts = [lines[place].box for row in block for place in row if place not in numbers]
    if not texts or not dark:
        return lines, block
    area, high = enclose_boxes(texts), median(box.height for box in texts)
    edge = max((lines[place].box.right for place in numbers), default=-1)
    left = min((box.x for box in texts if box.x > edge), default=area.x)  # marks before it fold the program
    inside = [
        line for line in dark
        if contains_centre(area, line.box) and line.box.height <= HIGHEST * high and line.box.right > left
    ]  # fmt: skip
    every = [*lines, *inside]
    places = [*(place for row in block for place in row), *range(len(lines), len(every))]
    return every, _group_code_rows(every, places) if inside else block


def _write_code(
    lines: Sequence[TextLine], block: Sequence[list[int]], width: float, dark: Sequence[TextLine] = ()
) -> str:
    """Return each line at its own column, fenced; one blank line stands for several."""
    lines, block = _add_unread(lines, block, dark)
    numbers = _find_line_numbers(lines, block)
    digits = max((len(lines[place].text) for place in numbers), default=0)
    edge = max((lines[place].box.right for place in numbers), default=-1)
    rows = [[piece for place in row for piece in _separate_number(lines[place], edge, width)] for row in block]
    left = min((x for row in rows for _, x in row if x > edge), default=0.0)
    start = digits + GUTTER_BLANK if numbers else 0
    ends = [max((lines[place].box for place in row), key=lambda box: box.height).bottom for row in block]
    steps = [max(1, below - above) for above, below in pairwise(ends)]
    high = measure_line_height(lines[row[0]] for row in block)
    whole: list[float] = [step for step in steps if step >= 0.8 * high] or [high]
    pitch = max(1.0, min(median(whole), median([step for step in whole if step <= 1.5 * min(whole)])))
    out: list[str] = []
    for number, row in enumerate(rows):
        text, end = "", 0
        for piece, x in row:
            length = len(piece) - 2 * piece.count("‹")
            column = start + round((x - left) / width) if x > edge else digits - length
            text += " " * max(column - end, 1 if text else 0) + piece
            end = max(column, end + 1 if end else 0) + length
        out += [""] if number and round(steps[number - 1] / pitch) > 1 else []
        out.append(text)
    return fence_code(out)
