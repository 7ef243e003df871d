"""OpenDocument files (odt, odp, ods) to blocks: texts, slides and sheets, which share one format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from posixpath import basename

from sightline.pixels.file_types import make_visible
from sightline.pixels.renderers.document_layout import (
    BODY_SIZE,
    LINK_COLOUR,
    Block,
    FlowContent,
    build_cells,
    make_heading,
    make_item,
    make_label,
    make_picture,
    merge_spans,
)
from sightline.pixels.renderers.office_archive import ENCRYPTED_OFFICE, OfficeArchive, OfficeRefusalError, XmlNode
from sightline.pixels.renderers.page_layout import PageBreak, Paragraph, Span
from sightline.pixels.renderers.text_fonts import TextStyle
from sightline.pixels.renderers.word_document import format_number
from sightline.pixels.renderers.workbook import (
    MAX_SHEET_COLUMNS,
    MAX_SHEET_ROWS,
    SheetCell,
    build_sheet,
    make_sheet_head,
)

_MAX_REPEATED = 200  # times that a row, a cell or a space is repeated
_MAX_SLIDES = 500
_BULLETS = ("•", "◦", "▪")
_GROUPS = frozenset({"section", "table-of-content", "index-body", "table-row-group", "table-header-rows", "g", "frame"})
_NUMBERS = frozenset({"float", "percentage", "currency", "date", "time"})


def read_open_document(archive: OfficeArchive, content: FlowContent) -> None:
    """Read an OpenDocument file into `content`."""
    manifest = archive.parse("META-INF/manifest.xml")
    if manifest is not None and any(True for _ in manifest.walk("encryption-data")):
        raise OfficeRefusalError(ENCRYPTED_OFFICE)
    root = archive.parse("content.xml")
    body = root.find("body") if root else None
    if root is None or body is None:
        return
    reader = _OpenDocumentReader(archive, content)
    for name in ("styles.xml", ""):
        reader.read_styles(archive.parse(name) if name else root)
    for kind in body.list():
        if kind.name == "spreadsheet":
            reader.add_sheets(list(kind.list("table")))
        elif kind.name == "presentation":
            reader.add_slides(list(kind.list("page")))
        else:
            content.blocks += reader.read_blocks(kind)


@dataclass(slots=True)
class _OpenDocumentReader:
    archive: OfficeArchive
    content: FlowContent
    styles: dict[str, dict[str, str]] = field(default_factory=dict)  # of text, by their names
    lists: dict[str, list[str]] = field(default_factory=dict)  # the number format of each level; empty: a bullet

    def read_styles(self, root: XmlNode | None) -> None:
        """Add the styles of a part."""
        for node in root.walk("style") if root else ():
            properties = node.find("text-properties")
            self.styles[node.get("name")] = properties.attributes if properties else {}
        for node in root.walk("list-style") if root else ():
            levels = [each.get("num-format") if each.name.endswith("number") else "" for each in node.list()]
            self.lists[node.get("name")] = levels

    def add_slides(self, slides: list[XmlNode]) -> None:
        """Add each slide as a page, its title first."""
        if len(slides) > _MAX_SLIDES:
            self.content.add_note(f"only the first {_MAX_SLIDES} slides are shown")
        for number, slide in enumerate(slides[:_MAX_SLIDES], 1):
            self.content.blocks += [PageBreak()] if number > 1 else []
            self.content.blocks.append(make_label(f"Slide {number} of {len(slides)}"))
            shapes = [each for each in slide.list() if each.name != "notes"]
            titles = [each for each in shapes if each.get("class") == "title"]
            for title in titles:
                blocks = self.read_blocks(XmlNode("title", {}, [title]))
                self.content.blocks += [
                    make_heading(each.spans, 1) if isinstance(each, Paragraph) else each for each in blocks
                ]
            others: list[XmlNode | str] = [each for each in shapes if each not in titles]
            self.content.blocks += self.read_blocks(XmlNode("slide", {}, others))

    def add_sheets(self, sheets: list[XmlNode]) -> None:
        """Add each sheet as a page."""
        for number, sheet in enumerate(sheets, 1):
            self.content.blocks += [PageBreak()] if number > 1 else []
            self.content.blocks += make_sheet_head(sheet.get("name"), number, len(sheets))
            self.content.blocks += build_sheet(list(self._read_cells(sheet)), self.content)

    def read_blocks(self, parent: XmlNode, level: int = -1, list_style: str = "") -> list[Block]:
        """Return the blocks below an element; `level` is that of the list around it."""
        blocks: list[Block] = []
        for node in parent.list():
            match node.name:
                case "h":
                    depth = node.get("outline-level", "1")
                    blocks.append(make_heading(self._read_spans(node), int(depth) if depth.isdecimal() else 1))
                    blocks += self._read_frames(node)
                case "p":
                    spans = self._read_spans(node)
                    blocks += [Paragraph(spans)] if any(each.text.strip() for each in spans) else []
                    blocks += self._read_frames(node)
                case "list":
                    blocks += self._read_list(node, level + 1, node.get("style-name") or list_style)
                case "table":
                    blocks += self._read_table(node)
                case "image" | "text-box" | "frame" | "custom-shape" | "object" | "g" | "rect" | "a":
                    blocks += self._read_shape(node)
                case name if name in _GROUPS:
                    blocks += self.read_blocks(node, level, list_style)
        return blocks

    def _read_list(self, node: XmlNode, level: int, style: str) -> list[Block]:
        formats = self.lists.get(style, [])
        kind = formats[level] if level < len(formats) else ""
        blocks: list[Block] = []
        for number, item in enumerate((each for each in node.list() if each.name in ("list-item", "list-header")), 1):
            marker = f"{format_number(number, kind)}." if kind else _BULLETS[level % len(_BULLETS)]
            for at, block in enumerate(self.read_blocks(item, level, style)):
                is_text = isinstance(block, Paragraph) and block.marker is None
                shown = marker if at == 0 else ""
                blocks.append(
                    make_item(block.spans, shown, level) if is_text and isinstance(block, Paragraph) else block
                )
        return blocks

    def _read_table(self, table: XmlNode) -> list[Block]:
        rows = []
        for row in _list_rows(table):
            cells: list[list[Block]] = []
            for cell in row.list():
                if cell.name in ("table-cell", "covered-table-cell"):
                    cells += [self.read_blocks(cell)] * min(_read_count(cell, "number-columns-repeated"), 60)
            rows += [cells] * min(_read_count(row, "number-rows-repeated"), _MAX_REPEATED)
        return build_cells(rows, self.content)

    def _read_cells(self, sheet: XmlNode) -> Iterator[SheetCell]:
        """Yield the cells of a sheet. One row or cell may represent thousands of equal ones, mostly empty."""
        at = 1
        for row in _list_rows(sheet):
            times = _read_count(row, "number-rows-repeated")
            found = list(self._read_row(row))
            for more in range(min(times, MAX_SHEET_ROWS + 1) if any(each.text for each in found) else 0):
                yield from (replace(each, row=at + more) for each in found)
            at += times

    def _read_row(self, row: XmlNode) -> Iterator[SheetCell]:
        column = 0
        for cell in row.list():
            times = _read_count(cell, "number-columns-repeated")
            paragraphs = (self._read_spans(each) for each in cell.list("p"))
            text = "\n".join("".join(span.text for span in spans) for spans in paragraphs)[:400]
            for more in range(min(times, MAX_SHEET_COLUMNS + 1) if text else 0):
                yield SheetCell(0, column + more, text, cell.get("value-type") in _NUMBERS)
            column += times

    def _read_frames(self, paragraph: XmlNode) -> list[Block]:
        return [block for frame in _list_frames(paragraph) for block in self._read_shape(frame)]

    def _read_shape(self, shape: XmlNode) -> list[Block]:
        """Return the first picture or text of a frame: what follows it is there for programs that can't draw it."""
        if shape.name == "image":
            name = shape.get("href").removeprefix("./")
            return [make_picture(self.archive.read_picture(name), basename(name))]
        if shape.name == "object":
            return [make_picture(b"", "an embedded object")]
        if shape.name == "frame":
            choices = [self.read_blocks(XmlNode("frame", {}, [each])) for each in shape.list()]
            return next((each for each in choices if each), [])
        return self.read_blocks(XmlNode("shape", {}, list(shape.children)))

    def _read_spans(self, node: XmlNode) -> list[Span]:
        return merge_spans(self._list_spans(node, TextStyle(BODY_SIZE)))

    def _list_spans(self, node: XmlNode, style: TextStyle) -> Iterator[Span]:
        for child in node.children:
            if isinstance(child, str):
                yield Span(" ".join(child.split("\n")), style)
                continue
            match child.name:
                case "s":
                    yield Span(" " * min(_read_count(child, "c"), _MAX_REPEATED), style)
                case "tab":
                    yield Span("\t", style)
                case "line-break":
                    yield Span("\n", style)
                case "span":
                    yield from self._list_spans(child, _apply(self.styles.get(child.get("style-name"), {}), style))
                case "a":
                    yield from self._list_spans(child, replace(style, colour=LINK_COLOUR, line="under"))
                case "note":
                    texts = (make_visible(each.read_text().strip()) for each in child.list())
                    yield Span(f" [{': '.join(texts)}]", replace(style, italic=True))
                case "frame" | "custom-shape" | "annotation" | "tracked-changes" | "g" | "rect":
                    continue
                case _:
                    yield from self._list_spans(child, style)


def _list_rows(table: XmlNode) -> Iterator[XmlNode]:
    for node in table.list():
        if node.name == "table-row":
            yield node
        elif node.name in ("table-header-rows", "table-row-group", "table-rows"):
            yield from _list_rows(node)


def _list_frames(node: XmlNode) -> Iterator[XmlNode]:
    for child in node.list():
        if child.name in ("frame", "custom-shape", "g", "rect"):
            yield child
        elif child.name in ("span", "a"):
            yield from _list_frames(child)


def _read_count(node: XmlNode, name: str) -> int:
    text = node.get(name, "1")
    return max(1, int(text)) if text.isdecimal() and len(text) < 9 else 1


def _apply(properties: dict[str, str], style: TextStyle) -> TextStyle:
    struck = properties.get("text-line-through-style", "none") != "none"
    return replace(
        style,
        bold=style.bold or properties.get("font-weight") == "bold",
        italic=style.italic or properties.get("font-style") == "italic",
        line="through" if struck else style.line,
    )
