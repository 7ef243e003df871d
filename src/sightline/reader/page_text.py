"""The text of a page: the order of its lines, and one laid-out text."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.reader.reading import Table, TextLine

# All in heights of a line, which is what "near" means in a text.
BAND = 2.5  # a blank across all columns: what is above it is read before what is below
GUTTER = 1.2  # blank between two columns
MENU = 0.8  # blank between columns and a row that belongs to none of them
LEVEL = 0.3  # how far apart the middles of lines in a row may be
PROSE = 25  # characters: longer lines are read column by column, even where they are level
MAX_SEARCHED = 600  # lines: with more of them, the best place to split is not searched for
APART = 1.3  # heights of a line: the blank above a new paragraph
LONG = 8  # characters: shorter lines do not tell how wide a character is
RULE = "\n\n---"  # between columns and around cards
FENCE = "```"
BULLET = re.compile(r"^[•◦▪‣●○·] ?(?=\S)")
MONO = 0.04  # how much the width of characters may vary in monospaced text
FITS = 0.6  # characters: how far the length of a monospaced line may be from its number of characters
SPREAD = 4  # characters: how much the lengths of monospaced lines must differ to tell that they are
MANY = 4  # lines that are needed to tell a monospaced text


@dataclass(frozen=True, slots=True)
class LayoutItem:
    """A line, or a panel with all its lines, already in order."""

    box: Box
    lines: tuple[int, ...]
    letters: int

    @property
    def middle(self) -> float:
        return self.box.y + self.box.height / 2


def order_lines(lines: Sequence[TextLine], boxes: Iterable[Box] = (), plots: Sequence[Box] = ()) -> tuple[int, ...]:
    """Return the indexes of the lines in reading order; lines in `plots` are read row by row."""
    if not lines:
        return ()
    em = measure_line_height(lines)
    items = [LayoutItem(line.box, (place,), len(line.text)) for place, line in enumerate(lines)]
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
    parts = _split_at_blanks(items, _get_vertical_span, BAND * em)
    if len(parts) == 1:
        parts = _separate_menu(items, em)
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


def _separate_menu(items: Sequence[LayoutItem], em: float) -> list[list[LayoutItem]]:
    """Separate a row of several short texts directly above or below columns."""
    bands = _split_at_blanks(items, _get_vertical_span, MENU * em)
    for menu, rest in ((bands[0], bands[1:]), (bands[-1], bands[:-1])):
        below = [item for band in rest for item in band]
        if len(menu) > 2 and len(group_rows(menu)) == 1 and below and len(_split_columns(below, em)) > 1:
            return [menu, below] if menu is bands[0] else [below, menu]
    return [list(items)]


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
    """Return whether most lines of each column are level with lines of the next one."""
    for left, right in pairwise(column for column in columns if len(column) > 1):
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


def is_gutter(texts: Sequence[str]) -> bool:
    """Return whether texts are the numbers of successive lines, as beside a program."""
    numbers = [int(text.split()[-1]) for text in texts if text.split() and text.split()[-1].isdigit()]
    steps = [other - one for one, other in pairwise(numbers)]
    return len(numbers) >= max(3, 0.9 * len(texts)) and all(1 <= step <= 3 for step in steps)


def lay_out_text(
    lines: Sequence[TextLine],
    found: Sequence[Table] = (),
    plots: Sequence[Box] = (),
    code: Sequence[Box] = (),
    headings: Mapping[int, int] | None = None,
    cards: Sequence[Box] = (),
) -> str:
    """Return all lines as one text in Markdown: headings, lists, tables, code with its indentation, paragraphs apart.

    Lines in `plots` are written row by row without blank lines: labels of a chart are not paragraphs. Those in `code`
    keep their columns. `headings` has the levels of lines. A rule is between columns, and around each of the `cards`.
    """
    if not lines:
        return ""
    em = measure_line_height(lines)
    homes: dict[int, Table | Box] = {place: table for table in found for row in table.rows for c in row for place in c}
    for place, line in enumerate(lines):
        if plot := next((box for box in (*code, *plots) if contains_line(box, line.box)), None):
            homes[place] = plot
    written: list[TextBlock] = []
    done: list[Table] = []
    for home, each in groupby(range(len(lines)), key=homes.get):
        places = list(each)
        match home:
            case Table():
                written += [] if home in done else [TextBlock(_write_table(lines, home), places[0], places[-1])]
                done.append(home)
            case Box():
                text = _write_rows(lines, places, columns=home in code)
                written.append(TextBlock(text, places[0], places[-1]))
            case None:
                written += _write_blocks(lines, places, em, headings or {})
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


def _write_rows(lines: Sequence[TextLine], places: Sequence[int], *, columns: bool) -> str:
    """Return rows as they stand, at their columns where these matter."""
    level = [
        [item.lines[0] for item in row] for row in group_rows(LayoutItem(lines[at].box, (at,), 0) for at in places)
    ]
    rows = level if columns else _join_rows(lines, places)
    width = _measure_character_width(lines, rows) if columns and len(rows) > 1 else None
    if width is not None:
        return _write_code(lines, rows, width)
    return "\n".join("  ".join(lines[place].marked_text for place in row) for row in rows)


def _write_table(lines: Sequence[TextLine], table: Table) -> str:
    """Return a table in Markdown; its first row is the head."""
    texts = [[" ".join(lines[place].marked_text for place in cell) for cell in row] for row in table.rows]
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
    lines: Sequence[TextLine], places: Sequence[int], em: float, headings: Mapping[int, int]
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
        for text, rows in _write_paragraphs(lines, block, em)
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
    lines: Sequence[TextLine], block: Sequence[list[int]], em: float
) -> list[tuple[str, Sequence[list[int]]]]:
    """Return each paragraph and its rows."""
    width = _measure_monospace_width(lines, block)
    if width is not None:
        return [(_write_code(lines, block, width), block)]
    out: list[tuple[str, list[list[int]]]] = []
    for at, row in enumerate(block):
        text = BULLET.sub("- ", "  ".join(lines[place].marked_text for place in row))
        above = max((lines[place].box.bottom for place in block[at - 1]), default=0) if at else 0
        if not out or lines[row[0]].box.y - above > APART * em:
            out.append((text, [row]))
        else:
            out[-1] = (f"{out[-1][0]}\n{text}", [*out[-1][1], row])
    return list(out)


def _measure_monospace_width(lines: Sequence[TextLine], block: Sequence[list[int]]) -> float | None:
    """Return the width of a character where all are equally wide, as in code; None in other text."""
    long = [lines[place] for row in block for place in row if len(lines[place].text) >= LONG]
    if len(block) < 3 or len(long) < 3:
        return None
    if is_gutter([lines[row[0]].text for row in block]):
        return median(map(divide_width, long))
    width, fitting = max(((each, _select_fitting(long, each)) for each in map(divide_width, long)), key=_count_fitting)
    lengths = [len(line.text) for line in fitting]
    return width if len(fitting) >= max(MANY, 0.75 * len(long)) and max(lengths) - min(lengths) >= SPREAD else None


def _select_fitting(lines: Sequence[TextLine], width: float) -> list[TextLine]:
    """Return the lines whose characters are of this width, whatever their number."""
    return [line for line in lines if abs(divide_width(line) / width - 1) * len(line.text) <= FITS]


def _count_fitting(found: tuple[float, list[TextLine]]) -> int:
    return len(found[1])


def _measure_character_width(lines: Sequence[TextLine], block: Sequence[list[int]]) -> float | None:
    """Return the median width of a character in longer lines; None where there are too few of them."""
    widths = [divide_width(lines[place]) for row in block for place in row if len(lines[place].text) >= LONG]
    return median(widths) if len(widths) >= 3 else None


def divide_width(line: TextLine) -> float:
    """Return the width of a character."""
    return line.box.width / (len(line.text) - 0.15)  # the blank after the last character is not ink


def _write_code(lines: Sequence[TextLine], block: Sequence[list[int]], width: float) -> str:
    """Return each line at its own column, fenced; one blank line stands for several."""
    left = min(lines[place].box.x for row in block for place in row)
    steps = [max(1, lines[b[0]].box.bottom - lines[a[0]].box.bottom) for a, b in pairwise(block)]
    high = measure_line_height(lines[row[0]] for row in block)
    whole: list[float] = [step for step in steps if step >= 0.8 * high] or [high]
    pitch = max(1.0, min(median(whole), median([step for step in whole if step <= 1.5 * min(whole)])))
    out: list[str] = []
    for number, row in enumerate(block):
        text = ""
        for place in row:
            column = round((lines[place].box.x - left) / width)
            text += " " * max(column - len(text), 1 if text else 0) + lines[place].marked_text
        out += [""] if number and round(steps[number - 1] / pitch) > 1 else []
        out.append(text)
    return "\n".join([FENCE, *out, FENCE])


def measure_letter_size(line: TextLine) -> float:
    """Return the size of a line's letters by the height of its ink, allowing for ascenders and descenders."""
    head = 0.74 if re.search(r"[^\W_acegmnopqrsuvwxyz]|[()\[\]{}/|]", line.text) else 0.54
    tail = 0.21 if re.search(r"[gjpqyQ,;()\[\]{}/|_]", line.text) else 0.0
    upright = line.box.height <= 2 * line.box.width or len(line.text) < 3
    return (line.box.height if upright else line.box.width) / (head + tail)
