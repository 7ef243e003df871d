"""The blocks of a document to the strips of its pages, with its tables and the pictures within it.

A table becomes one strip for each row, with columns as wide as their content asks for. A table that is wider than the
page is divided into groups of columns, one below the other; each repeats the first column, so that its rows can be
told apart.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import zip_longest
from typing import TYPE_CHECKING

from sightline.pixels.renderers.page_layout import (
    CODE_GROUND,
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
from sightline.pixels.renderers.text_fonts import FontLibrary, get_line_height

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


def lay_blocks(blocks: Iterable[Block], fonts: FontLibrary, width: int = TEXT_WIDTH) -> list[Strip]:
    """Return the strips of all blocks, from top to bottom."""
    strips: list[Strip] = []
    for block in blocks:
        match block:
            case Paragraph():
                strips += lay_paragraph(block, width, fonts)
            case CodeBlock():
                strips += lay_code(block, width, fonts)
            case TableBlock():
                strips += lay_table(block, width, fonts)
            case PictureBlock():
                strips += lay_picture(block, width)
            case RuleBlock():
                strips += lay_rule(block, width)
            case PageBreak():
                strips.append(replace(make_gap(0), starts_page=True))
    return strips
