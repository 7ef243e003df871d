"""Excel workbooks (xlsx) to blocks: each sheet begins a page, as a table with its column letters and row numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from posixpath import basename

from sightline.pixels.file_types import make_visible
from sightline.pixels.renderers.document_layout import Block, TableBlock, TableCell
from sightline.pixels.renderers.flow_content import FlowContent, make_heading, make_label, make_picture
from sightline.pixels.renderers.office_archive import OfficeArchive, XmlNode
from sightline.pixels.renderers.page_layout import MUTED, PageBreak, Span
from sightline.pixels.renderers.text_fonts import TextStyle

MAX_SHEET_ROWS, MAX_SHEET_COLUMNS = 2000, 40
_MAX_SHEET_CELLS = 20_000
_MAX_SHEETS, _MAX_CELL = 100, 32_767  # characters of a cell, of which Excel takes no more
_PICTURE_BYTES = 24 * 1024 * 1024
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
            data = archive.read(picture, _PICTURE_BYTES) if picture else b""
            yield make_picture(data, basename(picture) or "a chart")
