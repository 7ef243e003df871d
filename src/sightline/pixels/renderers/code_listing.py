"""Lines of a fixed-width font on pages: coloured by Pygments, with line numbers, wrapped, in columns.

The largest font size is chosen at which the whole text has room on one page, in columns if its lines are short. A
longer text has several pages of the smallest size. Only the lines of a page are coloured and drawn, so that a page of
a file of a million lines costs little more than one of a short file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from sightline.model.refusal import Refusal
from sightline.pixels.file_types import make_visible
from sightline.pixels.renderers.page_layout import (
    MAX_EDGE,
    MUTED,
    PageCanvas,
    Span,
    Strip,
    draw_columns,
    fits_provider,
    paint_line,
)
from sightline.pixels.renderers.renderer import RenderedDocument, RenderedPage, RenderOptions, check_page
from sightline.pixels.renderers.text_fonts import INK, FontLibrary, TextStyle, get_cell_width, get_line_height

if TYPE_CHECKING:
    from pygments.lexer import Lexer

# Font sizes, and how many cells a row may have; a longer line is wrapped. The first at which all is on one page is
# chosen, else the last.
_FORMATS = ((16, 100), (15, 100), (14, 100), (14, 88), (12, 100), (14, 88))
_MAX_FOLDED_LINES, _MAX_FOLDED_CHARACTERS = 600, 30_000  # that may have room on one page
_MIN_CELLS = 24
_MAX_COLUMNS = 4
_MARGIN = 12
_TAB = 4
_MAX_COLOURED = 400_000  # characters for one page
_LINES_BEFORE = 300  # that are read for the colours of a page in a long text

# Colours on white, all dark enough to be read when small; the first that a token type belongs to is used.
_COLOURS: tuple[tuple[str, str, bool], ...] = (
    ("Token.Comment.Preproc", "#6f2da8", False),
    ("Token.Comment", "#57606a", False),
    ("Token.Keyword", "#a31515", True),
    ("Token.Operator.Word", "#a31515", True),
    ("Token.Name.Function", "#6f2da8", False),
    ("Token.Name.Class", "#6f2da8", True),
    ("Token.Name.Decorator", "#6f2da8", False),
    ("Token.Name.Builtin", "#0b5394", False),
    ("Token.Name.Tag", "#116329", True),
    ("Token.Name.Attribute", "#0b5394", False),
    ("Token.Name.Constant", "#0b5394", False),
    ("Token.Literal.String", "#0a4f8f", False),
    ("Token.Literal.Number", "#9a3d00", False),
    ("Token.Generic.Heading", "#0b5394", True),
    ("Token.Generic.Deleted", "#a31515", False),
    ("Token.Generic.Inserted", "#116329", False),
    ("Token.Generic.Strong", INK, True),
)


class LineTint(NamedTuple):
    """The look of a whole line, such as one that a diff adds."""

    ground: str
    colour: str = INK
    bold: bool = False
    has_sign: bool = False  # its first character is one, and is drawn bold


@dataclass(frozen=True, slots=True)
class CodeListing:
    """Text to draw, and how."""

    lines: Sequence[str]  # as `split_lines` returns them
    lexer: Lexer | None = None
    has_numbers: bool = True
    gap: int = 2  # cells after the numbers
    tint: Callable[[str], LineTint | None] | None = None  # of a line; None: coloured by its words
    note: str = ""


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as they are drawn: without tabs and control characters."""
    text = make_visible(text)
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return [line.expandtabs(_TAB) for line in lines] if "\t" in text else lines


def render_listing(listing: CodeListing, options: RenderOptions) -> RenderedDocument | Refusal:
    """Draw the pages that were asked for, of all lines or of some."""
    count = len(listing.lines)
    first, last = options.lines or (1, count)
    if first > count:
        return Refusal("invalid_input", f"there is no line {first:,}", f"give lines from 1 to {count:,}")
    pages = _ListingPages(listing, range(first - 1, min(last, count)), FontLibrary())
    if refusal := check_page(options.page, pages.total):
        return refusal
    numbers = range(options.page, min(options.page + options.count, pages.total + 1))
    return RenderedDocument(tuple(RenderedPage(pages.draw(at), at) for at in numbers), pages.total, listing.note)


class _Grid(NamedTuple):
    """How rows are put on a page."""

    size: int  # of the font
    columns: int
    rows: int  # of a column
    width: int  # of a column, in pixels


class _ListingPages:
    """The pages of some lines of a listing."""

    def __init__(self, listing: CodeListing, chosen: range, fonts: FontLibrary) -> None:
        self._listing, self._chosen, self._fonts = listing, chosen, fonts
        self._digits = len(str(chosen.stop)) if listing.has_numbers else 0
        self._gutter = self._digits + listing.gap if listing.has_numbers else 0
        lines = [listing.lines[at] for at in chosen]
        is_short = len(lines) <= _MAX_FOLDED_LINES and sum(map(len, lines)) <= _MAX_FOLDED_CHARACTERS
        for size, cells in _FORMATS if is_short else _FORMATS[-1:]:
            self._wrap = _LineWrapper(lines, cells, fonts)
            self._ends = list(accumulate(map(self._wrap.count_rows, lines)))
            self._grid = _choose_grid(size, self._ends[-1], self._wrap.cells + self._gutter)
            self.total = ceil(self._ends[-1] / (self._grid.columns * self._grid.rows))
            if self.total == 1:
                break

    def draw(self, page: int) -> bytes:
        """Return the picture of a page."""
        grid = self._grid
        start = (page - 1) * grid.columns * grid.rows
        stop = min(start + grid.columns * grid.rows, self._ends[-1])
        strips = list(self._list_strips(start, stop))
        columns = [strips[at : at + grid.rows] for at in range(0, len(strips), grid.rows)]
        return draw_columns(columns, grid.width, _MARGIN, self._fonts)

    def _list_strips(self, start: int, stop: int) -> Iterator[Strip]:
        """Yield the rows of a page. The first and the last line may have rows on other pages, too."""
        first = bisect_right(self._ends, start)
        last = bisect_right(self._ends, stop - 1)
        coloured = self._colour(first, last + 1)
        row = self._ends[first - 1] if first else 0
        height = get_line_height(self._grid.size)
        for index in range(first, last + 1):
            line = self._wrap.lines[index]
            tint = self._listing.tint(line) if self._listing.tint else None
            for number, (left, right) in enumerate(self._wrap.list_rows(line)):
                if start <= row < stop:
                    label = "" if number or not self._digits else str(self._chosen[index] + 1)
                    spans = _cut_spans(coloured[index - first], left, right, line)
                    yield Strip(height, partial(self._paint_row, spans, label, tint))
                row += 1

    def _colour(self, first: int, stop: int) -> list[list[tuple[int, int, TextStyle]]]:
        """Return the coloured parts of some lines: their first and last character, and the style."""
        lines, lexer, size = self._wrap.lines, self._listing.lexer, self._grid.size
        plain = TextStyle(size, mono=True)
        before = 0 if self._ends[first] < _LINES_BEFORE * 10 else max(0, first - _LINES_BEFORE)
        text = lines[before:stop]
        if lexer is None or sum(map(len, text)) > _MAX_COLOURED:
            return [[(0, len(line), plain)] for line in lines[first:stop]]
        return colour_lines(text, lexer, size)[first - before :]

    def _paint_row(
        self, spans: list[Span], label: str, tint: LineTint | None, canvas: PageCanvas, x: int, y: int
    ) -> None:
        size = self._grid.size
        cell, height = get_cell_width(size), get_line_height(size)
        if tint is not None:
            canvas.fill(x, y, self._grid.width, height, tint.ground)
            style = TextStyle(size, mono=True, bold=tint.bold, colour=tint.colour)
            text = "".join(span.text for span in spans)
            signs = int(tint.has_sign and bool(label))
            spans = [Span(text[:signs], replace(style, bold=True)), Span(text[signs:], style)]
        if label:
            paint_line(canvas, x, y, [Span(label.rjust(self._digits), TextStyle(size, mono=True, colour=MUTED))])
        paint_line(canvas, x + self._gutter * cell, y, spans)


def colour_lines(lines: Sequence[str], lexer: Lexer, size: int) -> list[list[tuple[int, int, TextStyle]]]:
    """Return the parts of each line that have one style."""
    found: list[list[tuple[int, int, TextStyle]]] = [[] for _ in lines]
    row = column = 0
    for _, kind, value in lexer.get_tokens_unprocessed("\n".join(lines) + "\n"):
        style = _choose_style(kind, size)
        for number, part in enumerate(value.split("\n")):
            if number:
                row, column = row + 1, 0
            if part and row < len(found):
                found[row].append((column, column + len(part), style))
                column += len(part)
    return found


@cache
def _choose_style(kind: Any, size: int) -> TextStyle:
    name = str(kind)
    for prefix, colour, bold in _COLOURS:
        if name.startswith(prefix):
            return TextStyle(size, mono=True, bold=bold, colour=colour)
    return TextStyle(size, mono=True)


def _cut_spans(parts: Sequence[tuple[int, int, TextStyle]], left: int, right: int, line: str) -> list[Span]:
    """Return the part of a coloured line between two characters. Spaces are drawn with what is before them."""
    spans: list[Span] = []
    for at in range(max(0, bisect_right(parts, left, key=lambda part: part[0]) - 1), len(parts)):
        start, stop, style = parts[at]
        if start >= right:
            break
        text = line[max(start, left) : min(stop, right)]
        if text and spans and (spans[-1].style == style or text.isspace()):
            spans[-1] = Span(spans[-1].text + text, spans[-1].style)
        elif text:
            spans.append(Span(text, style))
    return spans


def _choose_grid(size: int, rows: int, cells: int) -> _Grid:
    """Return the fewest columns that show all rows on one page, or those that show the most rows."""
    cell, height = get_cell_width(size), get_line_height(size)
    width = cells * cell
    best = _Grid(size, 1, 1, width)
    for columns in range(1, _MAX_COLUMNS + 1):
        most = (_find_height(columns * (width + _MARGIN) + _MARGIN) - 2 * _MARGIN) // height
        if most * columns >= rows:
            return _Grid(size, columns, ceil(rows / columns), width)
        if most * columns > best.rows * best.columns:
            best = _Grid(size, columns, most, width)
    return best


def _find_height(width: int) -> int:
    """Return the largest height of a page of a width that the provider does not reduce; 0: it is too wide."""
    return next((height for height in range(MAX_EDGE, 0, -28) if fits_provider(width, height)), 0)


class _LineWrapper:
    """Divides lines into rows of at most as many cells as the longest line has, or `most`."""

    def __init__(self, lines: list[str], most: int, fonts: FontLibrary) -> None:
        self.lines = lines
        foreign = {each for line in lines if not line.isascii() for each in line if each > "\x7f"}
        self._widths = {each: cells for each in foreign if (cells := fonts.count_cells(each)) != 1}
        self._classes = str.maketrans({each: chr(cells) for each, cells in self._widths.items()})
        longest = max(map(self._count_cells, lines))
        self.cells = max(_MIN_CELLS, min(longest, most))

    def _count_cells(self, line: str) -> int:
        if not self._widths or line.isascii():
            return len(line)
        classes = line.translate(self._classes)
        return len(classes) + sum((cells - 1) * classes.count(chr(cells)) for cells in (0, 2, 4))

    def count_rows(self, line: str) -> int:
        """Return how many rows a line takes."""
        if len(line) <= self.cells and self._count_cells(line) <= self.cells:
            return 1
        return sum(1 for _ in self.list_rows(line))

    def list_rows(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield the first and the last character of each row. A break after a space or comma is preferred."""
        if self._count_cells(line) <= self.cells:
            yield 0, len(line)
        elif not self._widths or line.isascii():
            yield from _find_rows(line, self.cells)
        else:
            yield from self._list_wide_rows(line)

    def _list_wide_rows(self, line: str) -> Iterator[tuple[int, int]]:
        start = cells = 0
        for at, character in enumerate(line):
            width = self._widths.get(character, 1)
            if cells + width > self.cells:
                yield start, at
                start, cells = at, 0
            cells += width
        yield start, len(line)


def _find_rows(line: str, most: int) -> Iterator[tuple[int, int]]:
    at = 0
    while len(line) - at > most:
        end = line.rfind(" ", at + most // 2, at + most) + 1 or at + most
        yield at, end
        at = end
    yield at, len(line)
