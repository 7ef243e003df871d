"""Content that flows from top to bottom, as office documents and web pages have it, to blocks and to plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import TYPE_CHECKING

from sightline.pixels.file_types import make_visible
from sightline.pixels.renderers.document_layout import Block, TableBlock, TableCell, open_picture
from sightline.pixels.renderers.page_layout import (
    MUTED,
    CodeBlock,
    PageBreak,
    Paragraph,
    PictureBlock,
    RuleBlock,
    Span,
)
from sightline.pixels.renderers.text_fonts import TextStyle

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

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


def make_picture(data: bytes, name: str, indent: int = 0) -> Block:
    """Return a picture, or a line with its name if it cannot be drawn."""
    picture: Pillow | None = open_picture(BytesIO(data)) if data else None
    if picture is None:
        return Paragraph([Span(f"[image: {make_visible(name)[:200]}]", TextStyle(14, colour=MUTED))], indent)
    return PictureBlock(picture, indent)


def build_cells(
    rows: Sequence[Sequence[Sequence[Block]]], content: FlowContent, *, has_head: bool = True
) -> list[Block]:
    """Return a table as a block. One that only arranges other content, or has long cells, is dissolved into it."""
    if not any(rows):
        return []
    cells = [cell for row in rows for cell in row]
    if len(rows) * max(map(len, rows)) == 1 or any(map(_is_too_rich, cells)):
        return [block for cell in cells for block in cell]
    if len(rows) > _MAX_ROWS or max(map(len, rows)) > _MAX_COLUMNS:
        content.add_note(f"of a table at most {_MAX_ROWS:,} rows and {_MAX_COLUMNS} columns are shown")
    shown = [row[:_MAX_COLUMNS] for row in rows[:_MAX_ROWS]]
    table = [[_make_cell(cell, bold=has_head and at == 0) for cell in row] for at, row in enumerate(shown)]
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
