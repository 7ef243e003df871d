"""Excel workbooks (xlsx) and PowerPoint presentations (pptx) to blocks.

Each sheet begins a page, as a table with its column letters and row numbers. So does each slide, its title first, then
its content in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from posixpath import basename

from sightline.pixels.file_types import make_visible
from sightline.pixels.renderers.document_layout import (
    BODY_SIZE,
    Block,
    FlowContent,
    TableBlock,
    TableCell,
    build_cells,
    make_heading,
    make_item,
    make_label,
    make_picture,
    merge_spans,
)
from sightline.pixels.renderers.office_archive import OfficeArchive, XmlNode
from sightline.pixels.renderers.page_layout import MUTED, PageBreak, Paragraph, Span
from sightline.pixels.renderers.text_fonts import TextStyle

MAX_SHEET_ROWS, MAX_SHEET_COLUMNS = 2000, 40
_MAX_SHEET_CELLS = 20_000
_MAX_SHEETS, _MAX_CELL = 100, 32_767  # characters of a cell, of which Excel takes no more
_SIZE = 14
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_QUOTED = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.')
_EPOCH, _EPOCH_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)  # noqa: DTZ001, of a sheet, which has no time zone
# Formats that have no text in the file, by their numbers.
_BUILT_IN = {9: "0%", 10: "0.00%", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm"}
_BUILT_IN |= {17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 45: "mm:ss"}
_BUILT_IN |= {37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 46: "h:mm:ss", 47: "mm:ss"}


@dataclass(frozen=True, slots=True)
class SheetCell:
    row: int  # from 1
    column: int  # from 0
    text: str
    is_number: bool = False


def read_workbook(archive: OfficeArchive, main: str, root: XmlNode, content: FlowContent) -> None:
    """Read an xlsx into `content`."""
    relations = archive.read_relations(main)
    folder = main.rpartition("/")[0]
    reader = _SheetReader(_read_strings(archive, f"{folder}/sharedStrings.xml"), _read_formats(archive, folder))
    properties = root.find("workbookPr")
    reader.epoch = _EPOCH_1904 if properties and properties.get("date1904") in ("1", "true") else _EPOCH
    sheets = list((root.find("sheets") or root).list("sheet"))
    if len(sheets) > _MAX_SHEETS:
        content.add_note(f"only the first {_MAX_SHEETS} sheets are shown")
    for number, sheet in enumerate(sheets[:_MAX_SHEETS]):
        part = relations.get(sheet.get("id"), "")
        content.blocks += [PageBreak()] if number else []
        hidden = sheet.get("state") in ("hidden", "veryHidden")
        content.blocks += make_sheet_head(sheet.get("name"), number + 1, len(sheets), is_hidden=hidden)
        data = archive.parse(part)
        content.blocks += build_sheet(list(reader.read(data)) if data else [], content)
        content.blocks += _read_pictures(archive, part)


def make_sheet_head(name: str, number: int, total: int, *, is_hidden: bool = False) -> list[Block]:
    """Return the lines above a sheet: its number and its name."""
    hidden = ", hidden" if is_hidden else ""
    heading = make_heading([Span(make_visible(name)[:200], TextStyle())], 3)
    return [make_label(f"Sheet {number} of {total}{hidden}"), heading]


def build_sheet(cells: Sequence[SheetCell], content: FlowContent) -> list[Block]:
    """Return the cells of a sheet as a table. Empty rows and columns are left out; the numbers show where."""
    filled = [each for each in cells if each.text]
    if not filled:
        return [make_label("This sheet is empty.")]
    rows, columns = sorted({each.row for each in filled}), sorted({each.column for each in filled})
    shown = columns[:MAX_SHEET_COLUMNS]
    most = min(MAX_SHEET_ROWS, _MAX_SHEET_CELLS // len(shown))
    if len(rows) > most or len(columns) > len(shown):
        content.add_note(f"of a sheet only {min(most, len(rows)):,} rows and {len(shown)} columns are shown")
    rows, columns = rows[:most], shown
    muted, plain = TextStyle(_SIZE, colour=MUTED), TextStyle(_SIZE)
    by_place = {(each.row, each.column): each for each in filled}
    table = [[TableCell([]), *(TableCell([Span(write_column(at), muted)]) for at in columns)]]
    for row in rows:
        found = (by_place.get((row, column)) for column in columns)
        texts = (TableCell([Span(each.text, plain)], each.is_number) if each else TableCell([]) for each in found)
        table.append([TableCell([Span(str(row), muted)], is_right=True), *texts])
    return [TableBlock(table)]


def write_column(number: int) -> str:
    """Return the letters of a column, from 0: A, B, …, Z, AA."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


class _SheetReader:
    """Reads the cells of sheets: numbers as they are formatted, texts from the list of all texts."""

    def __init__(self, strings: list[str], formats: list[str]) -> None:
        self._strings, self._formats = strings, formats
        self.epoch = _EPOCH

    def read(self, sheet: XmlNode) -> Iterator[SheetCell]:
        """Yield the cells of a sheet."""
        row = 0
        for node in (sheet.find("sheetData") or sheet).list("row"):
            row = int(node.get("r")) if node.get("r").isdecimal() else row + 1
            column = -1
            for cell in node.list("c"):
                place = _REFERENCE.fullmatch(cell.get("r"))
                column = _read_column(place[1]) if place else column + 1
                text, is_number = self._read_cell(cell)
                yield SheetCell(row, column, make_visible(text)[:_MAX_CELL], is_number)

    def _read_cell(self, cell: XmlNode) -> tuple[str, bool]:
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return "".join(each.read_text() for each in cell.walk("t")), False
        found = cell.find("v")
        value = found.read_text() if found else ""
        if kind == "s":
            known = value.isdecimal() and int(value) < len(self._strings)
            return (self._strings[int(value)] if known else "…"), False
        if kind == "b":
            return ("TRUE" if value == "1" else "FALSE"), False
        style = cell.get("s")
        code = self._formats[int(style)] if style.isdecimal() and int(style) < len(self._formats) else ""
        return (format_value(value, code, self.epoch), True) if kind == "n" and value else (value, False)


def format_value(value: str, code: str, epoch: datetime = _EPOCH) -> str:
    """Return a number as a format code shows it: dates, percentages, decimals and thousands; the rest as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    plain = _QUOTED.sub("", code.split(";")[0]).lower()
    if re.search("[ydhs]|mm", plain):
        return _format_date(number, plain, epoch)
    percent = "%" if "%" in plain else ""
    number = number * 100 if percent else number
    decimals = re.search(r"\.(0+)", plain)
    if "0" in plain and "e" not in plain:
        comma = "," if "#,#" in plain or "0,0" in plain else ""
        return f"{number:{comma}.{len(decimals[1]) if decimals else 0}f}{percent}"
    return f"{number:.15g}{percent}" if abs(number) < 1e15 else f"{number:g}"


def _format_date(number: float, code: str, epoch: datetime) -> str:
    try:
        moment = epoch + timedelta(seconds=round(number * 86400))
    except (OverflowError, ValueError):
        return f"{number:g}"
    has_date, has_time = bool(re.search("[yd]", code)), bool(re.search("[hs]", code))
    if has_date or not has_time:
        return f"{moment:%Y-%m-%d %H:%M}" if has_time else f"{moment:%Y-%m-%d}"
    return f"{moment:%H:%M:%S}" if "s" in code else f"{moment:%H:%M}"


def _read_column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _read_strings(archive: OfficeArchive, part: str) -> list[str]:
    root = archive.parse(part)
    entries = root.list("si") if root else ()
    return ["".join(_list_texts(each)) for each in entries]


def _list_texts(entry: XmlNode) -> Iterator[str]:
    """Yield the text of an entry, without hints on how to pronounce it."""
    for node in entry.list():
        if node.name == "t":
            yield node.read_text()
        elif node.name == "r":
            yield from (each.read_text() for each in node.list("t"))


def _read_formats(archive: OfficeArchive, folder: str) -> list[str]:
    """Return the format code of each cell style."""
    root = archive.parse(f"{folder}/styles.xml")
    if root is None:
        return []
    own = {each.get("numFmtId"): each.get("formatCode") for each in (root.find("numFmts") or root).list("numFmt")}
    numbers = [each.get("numFmtId", "0") for each in (root.find("cellXfs") or root).list("xf")]
    return [own.get(each) or (_BUILT_IN.get(int(each), "") if each.isdecimal() else "") for each in numbers]


def _read_pictures(archive: OfficeArchive, part: str) -> Iterator[Block]:
    """Yield the pictures on a sheet, which are drawn below it."""
    for drawing in archive.read_relations(part).values():
        if "/drawings/" not in f"/{drawing}" or not drawing.endswith(".xml"):
            continue
        relations = archive.read_relations(drawing)
        root = archive.parse(drawing)
        for node in root.walk("blip", "chart") if root else ():
            picture = relations.get(node.get("embed"), "")
            data = archive.read_picture(picture) if picture else b""
            yield make_picture(data, basename(picture) or "a chart")


# Presentations


_MAX_SLIDES = 500
_TITLES = frozenset({"title", "ctrTitle"})
_UNSEEN = frozenset({"sldNum", "dt", "ftr"})  # numbers, dates and footers, which only repeat themselves
_BULLETS = ("•", "◦", "▪")


def read_presentation(archive: OfficeArchive, main: str, root: XmlNode, content: FlowContent) -> None:
    """Read a pptx into `content`."""
    relations = archive.read_relations(main)
    order = root.find("sldIdLst")
    ids = [each.attributes.get("id", "") for each in (order.list("sldId") if order else ())]
    parts = [relations[each] for each in ids if each in relations]
    if len(parts) > _MAX_SLIDES:
        content.add_note(f"only the first {_MAX_SLIDES} slides are shown")
    for number, part in enumerate(parts[:_MAX_SLIDES], 1):
        slide = archive.parse(part)
        hidden = ", hidden" if slide is not None and slide.get("show") == "0" else ""
        content.blocks += [PageBreak()] if number > 1 else []
        content.blocks.append(make_label(f"Slide {number} of {len(parts)}{hidden}"))
        tree = slide.find("cSld", "spTree") if slide else None
        if tree is not None:
            content.blocks += _SlideReader(archive, archive.read_relations(part), content).read(tree)


@dataclass(slots=True)
class _SlideReader:
    archive: OfficeArchive
    relations: dict[str, str]
    content: FlowContent

    def read(self, tree: XmlNode) -> list[Block]:
        """Return the blocks of a slide, with its title before everything else."""
        shapes = list(_list_shapes(tree))
        titles = [each for each in shapes if _get_kind(each) in _TITLES]
        others = [each for each in shapes if each not in titles and _get_kind(each) not in _UNSEEN]
        return [block for shape in (*titles, *others) for block in self._read_shape(shape)]

    def _read_shape(self, shape: XmlNode) -> list[Block]:
        parts = (self.relations.get(node.get("embed"), "") for node in shape.walk("blip"))
        pictures = (make_picture(self.archive.read_picture(part), basename(part)) for part in parts if part)
        blocks: list[Block] = list(pictures)
        if shape.name == "graphicFrame":
            tables = list(shape.walk("tbl"))
            for table in tables:
                blocks += self._read_table(table)
            return blocks if tables or blocks else [make_picture(b"", "a chart or diagram")]
        body = shape.find("txBody")
        return blocks + (list(_read_paragraphs(body, _get_kind(shape))) if body else [])

    def _read_table(self, table: XmlNode) -> list[Block]:
        rows = [[_read_cell(cell) for cell in row.list("tc")] for row in table.list("tr")]
        return build_cells(rows, self.content)


def _read_cell(cell: XmlNode) -> list[Block]:
    body = cell.find("txBody")
    is_merged = cell.get("hMerge") == "1" or cell.get("vMerge") == "1"
    return list(_read_paragraphs(body, "cell")) if body and not is_merged else []


def _list_shapes(tree: XmlNode) -> Iterator[XmlNode]:
    for node in tree.list():
        if node.name in ("grpSp", "AlternateContent", "Choice"):
            yield from _list_shapes(node)
        elif node.name in ("sp", "pic", "graphicFrame"):
            yield node


def _get_kind(shape: XmlNode) -> str:
    """Return what a shape is a place for: title, body and so on; empty: it is none."""
    place = shape.find("nvSpPr", "nvPr", "ph") or shape.find("nvPicPr", "nvPr", "ph")
    return place.get("type", "body") if place else ""


def _read_paragraphs(body: XmlNode, kind: str) -> Iterator[Block]:
    for paragraph in body.list("p"):
        spans = merge_spans(_read_runs(paragraph))
        if not any(span.text.strip() for span in spans):
            continue
        if kind in _TITLES:
            yield make_heading(spans, 1)
            continue
        properties = paragraph.find("pPr")
        level = int(properties.get("lvl", "0")) if properties and properties.get("lvl", "0").isdecimal() else 0
        names = {each.name for each in properties.list()} if properties else set()
        has_bullet = "buNone" not in names and (kind == "body" or bool(names & {"buChar", "buAutoNum"}))
        yield make_item(spans, _BULLETS[level % 3], level) if has_bullet else Paragraph(spans)


def _read_runs(paragraph: XmlNode) -> Iterator[Span]:
    style = TextStyle(BODY_SIZE)
    for node in paragraph.list():
        if node.name == "br":
            yield Span("\n", style)
        elif node.name in ("r", "fld"):
            properties, text = node.find("rPr"), node.find("t")
            shown = style
            if properties is not None:
                bold, italic = (properties.get(name) in ("1", "true") for name in ("b", "i"))
                shown = replace(style, bold=bold, italic=italic)
            yield Span(text.read_text() if text else "", shown)
        else:
            yield from (Span(each.read_text(), style) for each in node.walk("t"))
