"""Documents: content that flows from top to bottom to blocks and plain text, and blocks to the strips of pages.

A table becomes one strip for each row, with columns as wide as their content asks for. A table that is wider than the
page is divided into groups of columns, one below the other; each repeats the first column, so that its rows can be
told apart.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from itertools import zip_longest
from typing import TYPE_CHECKING

from sightline.pixels.file_types import make_visible
from sightline.pixels.renderers.page_layout import (
    CODE_GROUND,
    MUTED,
    RULE_COLOUR,
    TEXT_WIDTH,
    CodeBlock,
    PageBreak,
    PageCanvas,
    Paragraph,
    PictureBlock,
    RuleBlock,
    Span,
    Strip,
    break_lines,
    lay_code,
    lay_paragraph,
    lay_picture,
    lay_rule,
    make_gap,
    paint_line,
)
from sightline.pixels.renderers.text_fonts import FontLibrary, TextStyle, get_line_height

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

_DATA_URL = re.compile(r"data:image/(?:png|jpeg|jpg|gif|webp);base64,", re.IGNORECASE)
_MAX_PIXELS = 40_000_000


def open_data_url(url: str) -> Pillow | None:
    """Return the picture of a data URL; None: it is another address, or damaged."""
    found = _DATA_URL.match(url)
    return open_base64(url[found.end() :]) if found else None


def open_base64(text: str) -> Pillow | None:
    """Return a picture on a white ground, or None if it is damaged or too large."""
    try:
        return open_picture(BytesIO(base64.b64decode("".join(text.split()).replace("%2B", "+"))))
    except (binascii.Error, ValueError):
        return None


def open_picture(file: BytesIO) -> Pillow | None:
    """Return a picture on a white ground, or None if it is damaged, too large, or no usual bitmap."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file, formats=("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                return None
            picture = opened.convert("RGBA")
    except (ValueError, OSError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError):
        return None
    page = Image.new("RGBA", picture.size, "#ffffff")
    page.alpha_composite(picture)
    return page.convert("RGB")


_PADDING = 8  # left and right of a text
_MIN_WIDTH, _MAX_WIDTH = 56, 520


@dataclass(frozen=True, slots=True)
class TableCell:
    spans: Sequence[Span]
    is_right: bool = False  # aligned to the right, as numbers are


@dataclass(frozen=True, slots=True)
class TableBlock:
    rows: Sequence[Sequence[TableCell]]  # the first one is the header
    indent: int = 0
    space: int = 14
    max_lines: int = 80  # of a cell, since a row has to fit on a page; more are cut


@dataclass(frozen=True, slots=True)
class _Row:
    lines: list[list[list[Span]]]  # of each cell
    cells: Sequence[TableCell]
    widths: Sequence[int]
    height: int
    is_header: bool
    is_odd: bool = False
    is_cut: bool = False


_EMPTY = TableCell([])


def lay_table(block: TableBlock, width: int, fonts: FontLibrary) -> list[Strip]:
    """Return the rows of a table, in as many groups of columns as it needs."""
    count = max(map(len, block.rows), default=0)
    if not count:
        return []
    rows = [[cell for _, cell in zip_longest(range(count), row, fillvalue=_EMPTY)] for row in block.rows]
    natural = [max(_measure_cell(row[at], fonts) for row in rows) for at in range(count)]
    strips: list[Strip] = []
    for group in _group_columns(natural, width - block.indent):
        widths = _share_width([natural[at] for at in group], width - block.indent)
        strips += _lay_group([[row[at] for at in group] for row in rows], widths, block, fonts)
        strips.append(make_gap(block.space))
    return strips


def _measure_cell(cell: TableCell, fonts: FontLibrary) -> int:
    if not cell.spans:
        return 0
    return min(_MAX_WIDTH, sum(fonts.measure(span.text[:_MAX_WIDTH], span.style) for span in cell.spans))


def _group_columns(natural: Sequence[int], width: int) -> list[list[int]]:
    """Return the columns of each group. All are in one if their texts may be wrapped to have room."""
    least = [min(each, _MIN_WIDTH * 2) + 2 * _PADDING for each in natural]
    groups: list[list[int]] = [[]]
    used = 0
    for at, size in enumerate(least):
        if used + size > width and groups[-1]:
            repeated = len(natural) > 1 and least[0] + size <= width
            groups.append([0] if repeated else [])
            used = least[0] if repeated else 0
        groups[-1].append(at)
        used += size
    return groups


def _share_width(natural: Sequence[int], width: int) -> list[int]:
    """Return the width of each column. Narrow ones get what they ask for, and the others share the rest."""
    asked = [each + 2 * _PADDING for each in natural]
    if sum(asked) <= width:
        return asked
    given = [0] * len(asked)
    left, waiting = width, sorted(range(len(asked)), key=lambda at: asked[at])
    while waiting:
        share = left // len(waiting)
        at = waiting.pop(0)
        given[at] = min(asked[at], share)
        left -= given[at]
    return given


def _lay_group(
    rows: Sequence[Sequence[TableCell]], widths: Sequence[int], block: TableBlock, fonts: FontLibrary
) -> list[Strip]:
    strips: list[Strip] = []
    head: Strip | None = None
    for number, cells in enumerate(rows):
        row = _lay_row(cells, widths, fonts, number, block.max_lines)
        paint = partial(_paint_row, row, block.indent)
        strip = Strip(row.height, paint, keeps_next=number == 0, head=head, is_cut=row.is_cut)
        head = head or strip
        strips.append(strip)
    return strips


def _lay_row(cells: Sequence[TableCell], widths: Sequence[int], fonts: FontLibrary, number: int, most: int) -> _Row:
    lines = [
        break_lines(cell.spans, size - 2 * _PADDING, fonts, most) for cell, size in zip(cells, widths, strict=True)
    ]
    size = max((span.style.size for cell in cells for span in cell.spans), default=14)
    height = max(map(len, lines)) * get_line_height(size) + 8
    is_cut = any(len(each) == most and each[-1] and each[-1][-1].text.endswith("…") for each in lines)
    return _Row(lines, cells, widths, height, is_header=number == 0, is_odd=number % 2 == 1, is_cut=is_cut)


def _paint_row(row: _Row, indent: int, canvas: PageCanvas, x: int, y: int) -> None:
    left, total = x + indent, sum(row.widths)
    if row.is_header or not row.is_odd:
        canvas.fill(left, y, total, row.height, "#e4e9f0" if row.is_header else CODE_GROUND)
    canvas.fill(left, y + row.height - 1, total, 1, RULE_COLOUR)
    if row.is_header:
        canvas.fill(left, y, total, 1, RULE_COLOUR)
    for cell, lines, width in zip(row.cells, row.lines, row.widths, strict=True):
        for number, line in enumerate(lines):
            at = left + _PADDING
            if cell.is_right:
                used = sum(canvas.fonts.measure(span.text, span.style) for span in line)
                at = left + width - _PADDING - used
            size = line[0].style.size if line else 14
            paint_line(canvas, at, y + 4 + number * get_line_height(size), line)
        left += width
        canvas.fill(left - 1, y, 1, row.height, RULE_COLOUR)
    canvas.fill(x + indent, y, 1, row.height, RULE_COLOUR)


Block = Paragraph | CodeBlock | TableBlock | PictureBlock | RuleBlock | PageBreak


def lay_blocks(blocks: Iterable[Block], fonts: FontLibrary) -> list[Strip]:
    """Return the strips of all blocks, from top to bottom."""
    strips: list[Strip] = []
    for block in blocks:
        match block:
            case Paragraph():
                strips += lay_paragraph(block, TEXT_WIDTH, fonts)
            case CodeBlock():
                strips += lay_code(block, TEXT_WIDTH, fonts)
            case TableBlock():
                strips += lay_table(block, TEXT_WIDTH, fonts)
            case PictureBlock():
                strips += lay_picture(block, TEXT_WIDTH)
            case RuleBlock():
                strips += lay_rule(block, TEXT_WIDTH)
            case PageBreak():
                strips.append(replace(make_gap(0), starts_page=True))
    return strips


BODY_SIZE, CELL_SIZE = 16, 14
HEADING_SIZES = (28, 23, 19, 17, 16, 15)
LIST_STEP = 28  # pixels that a list is indented
LINK_COLOUR = "#0b4fa8"
_MAX_CELL_CHARACTERS, _MAX_CELL_LINES = 1200, 48  # of a cell that has its place in a table
_MAX_COLUMNS, _MAX_ROWS = 60, 2000
_MAX_PICTURES = 200
_MAX_PARAGRAPH = 20_000  # characters
_MAX_CHARACTERS = 300_000  # that are laid out


@dataclass(slots=True)
class FlowContent:
    """The blocks of a document, and what to say about them."""

    blocks: list[Block] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def cut(self) -> None:
        """Leave out what is too much to be laid out, and note it."""
        room, pictures = _MAX_CHARACTERS, _MAX_PICTURES
        for at, whole in enumerate(self.blocks):
            block = self.blocks[at] = self._cut_block(whole)
            room -= _count_characters(block)
            pictures -= isinstance(block, PictureBlock)
            if room < 0 or pictures < 0:
                del self.blocks[max(1, at) :]
                self.add_note("too long: only its beginning is shown")
                return

    def _cut_block(self, block: Block) -> Block:
        if not isinstance(block, Paragraph) or _count_characters(block) <= _MAX_PARAGRAPH:
            return block
        self.add_note(f"of a paragraph only {_MAX_PARAGRAPH:,} characters are shown")
        text = "".join(span.text for span in block.spans)[:_MAX_PARAGRAPH]
        return replace(block, spans=[Span(f"{text}…", block.spans[0].style)])


def make_heading(spans: Sequence[Span], level: int) -> Paragraph:
    """Return a heading of a level from 1 on."""
    size = HEADING_SIZES[min(max(level, 1), len(HEADING_SIZES)) - 1]
    bold = [Span(each.text, replace(each.style, size=size, bold=True)) for each in spans]
    return Paragraph(bold, space=12, keeps_next=True, underline=level <= 2)


def make_item(spans: Sequence[Span], marker: str, level: int) -> Paragraph:
    """Return an item of a list; an outer list has level 0."""
    return Paragraph(spans, LIST_STEP * (min(level, 8) + 1), Span(marker, TextStyle(BODY_SIZE)), space=4)


def make_label(text: str, style: TextStyle | None = None) -> Paragraph:
    """Return a line about what comes next, such as the number of a slide."""
    return Paragraph([Span(make_visible(text), style or TextStyle(13, colour=MUTED))], space=6, keeps_next=True)


def make_picture(data: bytes, name: str) -> Block:
    """Return a picture, or a line with its name if it cannot be drawn."""
    picture: Pillow | None = open_picture(BytesIO(data)) if data else None
    if picture is None:
        return Paragraph([Span(f"[image: {make_visible(name)[:200]}]", TextStyle(14, colour=MUTED))])
    return PictureBlock(picture)


def build_cells(rows: Sequence[Sequence[Sequence[Block]]], content: FlowContent) -> list[Block]:
    """Return a table as a block. One that only arranges other content, or has long cells, is dissolved into it."""
    if not any(rows):
        return []
    cells = [cell for row in rows for cell in row]
    if len(rows) * max(map(len, rows)) == 1 or any(map(_is_too_rich, cells)):
        return [block for cell in cells for block in cell]
    if len(rows) > _MAX_ROWS or max(map(len, rows)) > _MAX_COLUMNS:
        content.add_note(f"of a table at most {_MAX_ROWS:,} rows and {_MAX_COLUMNS} columns are shown")
    shown = [row[:_MAX_COLUMNS] for row in rows[:_MAX_ROWS]]
    table = [[_make_cell(cell, bold=at == 0) for cell in row] for at, row in enumerate(shown)]
    return [TableBlock(table, max_lines=_MAX_CELL_LINES)]


def _is_too_rich(cell: Sequence[Block]) -> bool:
    if not all(isinstance(block, Paragraph) for block in cell):
        return True
    return sum(map(_count_characters, cell)) > _MAX_CELL_CHARACTERS or len(cell) > _MAX_CELL_LINES // 2


def _make_cell(cell: Sequence[Block], *, bold: bool) -> TableCell:
    spans: list[Span] = []
    for block in cell:
        if isinstance(block, Paragraph):
            spans += [Span("\n", TextStyle(CELL_SIZE))] if spans else []
            spans += [Span(f"{block.marker.text} ", TextStyle(CELL_SIZE))] if block.marker else []
            spans += [
                Span(each.text, replace(each.style, size=CELL_SIZE, bold=bold or each.style.bold))
                for each in block.spans
            ]
    return TableCell(spans)


def _count_characters(block: Block) -> int:
    match block:
        case Paragraph():
            return 20 + sum(len(span.text) for span in block.spans)
        case TableBlock():
            return sum(5 + len(span.text) for row in block.rows for cell in row for span in cell.spans)
        case CodeBlock():
            return sum(len(span.text) for line in block.lines for span in line)
        case _:
            return 0


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return spans with neighbours of the same style joined, and characters without a look made visible."""
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1].style == span.style:
            merged[-1] = Span(merged[-1].text + span.text, span.style)
        elif span.text:
            merged.append(span)
    return [Span(make_visible(each.text.replace("\t", "    ")), each.style) for each in merged]


def write_text(content: FlowContent) -> str:
    """Return the text of a document: paragraphs as lines, rows of tables with tabs between their cells."""
    lines = list(_list_lines(content.blocks))
    lines += [f"--- {note} ---" for note in content.notes]
    return "\n".join(lines).strip("\n") + "\n"


def _list_lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Paragraph():
                marker = f"{'  ' * (block.indent // LIST_STEP - 1)}{block.marker.text} " if block.marker else ""
                yield marker + "".join(span.text for span in block.spans).strip()
                if not block.marker and not block.keeps_next:
                    yield ""
            case TableBlock():
                for row in block.rows:
                    yield "\t".join("".join(span.text for span in cell.spans).replace("\n", " ") for cell in row)
                yield ""
            case CodeBlock():
                yield from ("".join(span.text for span in line) for line in block.lines)
                yield ""
            case PageBreak() | RuleBlock():
                yield ""
            case PictureBlock():
                yield "[image]"
