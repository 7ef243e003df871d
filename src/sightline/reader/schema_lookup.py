"""Fill a JSON Schema with values whose labels are beside them in the image.

A property is filled only if the image has a label with its name or title and a value for it: in a field, on the same
line or row, below the label, or in a column with that heading. Properties that are not found are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from sightline.model.geometry import Box
from sightline.model.scene import Json
from sightline.model.seer import LabelledBox
from sightline.reader.describe import Report
from sightline.reader.field_labels import find_labelled_part, find_named_parts
from sightline.reader.phrases import (
    EXACT,
    LABEL,
    begins_like_value,
    extract_value,
    find_value_in,
    match_phrase,
    normalize,
    parse_number,
    parse_whole_number,
    points_separate_thousands,
    remove_asides,
    split_pairs,
    split_words,
)
from sightline.reader.reading import (
    TOGGLES,
    ImageReading,
    InterfacePart,
    PartKind,
    TextLine,
    find_lines_within,
    join_part_text,
    select_parts,
)
from sightline.reader.rectangles import are_level, contains_centre, measure_distance, overlap_horizontally
from sightline.reader.sections import NOTE
from sightline.reader.tables import TableText, add_table_heads, read_tables

_MAX_DEPTH = 6
_MAX_ENTRIES = 200  # entries of a list
_MAX_NAMED = 30  # properties that are listed as not found
_MAX_VALUE_WORDS = 4  # of a value below its label; more words are a paragraph below its heading
_TOTALS = frozenset({"total", "subtotal", "sum", "balance", "due"})  # rows with such a label end with its value
_NAME_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")
_MONEY = re.compile(r"[$€£¥]|\d[.,]\d\d(?!\d)")
_SENTENCE = re.compile(r"(?<=[.;!?])\s+")


def fill_schema(schema: Json, readings: Sequence[ImageReading]) -> Report:
    """Return the JSON, followed by what was not found and what the images disagree on."""
    lookup = _SchemaFiller(readings)
    value = lookup.fill(schema, "", 0)
    where = "image" if len(readings) == 1 else "images"
    missing, differing = (", ".join(dict.fromkeys(each[:_MAX_NAMED])) for each in (lookup.missing, lookup.differing))
    remarks = f"Not found in the {where}, and left out: {missing}. " if missing else ""
    remarks += f"The images differ, and the first value is given: {differing}. " if differing else ""
    text = orjson.dumps({} if value is None else value).decode()
    return Report(f"{text}\n\n{remarks}{NOTE}", tuple(lookup.spots))


class _SchemaFiller:
    """Fills one schema from the readings of some images. In every method, None means that nothing was found."""

    def __init__(self, readings: Sequence[ImageReading]) -> None:
        self.readings = readings
        self.missing: list[str] = []
        self.differing: list[str] = []
        self.spots: list[LabelledBox] = []

    def fill(self, schema: Any, path: str, depth: int) -> Json:
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return None
        kinds = _list_types(schema)
        if "object" in kinds and isinstance(schema.get("properties"), dict):
            filled = {
                name: self.fill(inner, f"{path}.{name}" if path else name, depth + 1)
                for name, inner in schema["properties"].items()
            }
            found: dict[str, Json] = {name: value for name, value in filled.items() if value is not None}
            return None if path and _list_required(schema) - found.keys() else found or None
        value = self._fill_list(schema) if "array" in kinds else self._fill_value(schema, kinds, path)
        if value is None and path:
            self.missing.append(path)
        return value

    def _fill_value(self, schema: Mapping[str, Any], kinds: frozenset[str], path: str) -> Json:
        """Return the value from the first image that has one."""
        found = [
            value
            for index in range(len(self.readings))
            if (value := self._find_in(index, schema, kinds, path)) is not None
        ]
        if any(value != found[0] for value in found):
            self.differing.append(path)
        return found[0] if found else None

    def _find_in(self, index: int, schema: Mapping[str, Any], kinds: frozenset[str], path: str) -> Json:
        for name in _list_names(schema, path):
            value = (
                _find_toggle_state(self.readings[index], name)
                if kinds == {"boolean"}
                else self._find_labelled_value(index, schema, kinds, name)
            )
            if value is not None:
                return value
        return None

    def _find_labelled_value(self, index: int, schema: Mapping[str, Any], kinds: frozenset[str], name: str) -> Json:
        """Return the value beside a label, if it has the type that the schema asks for."""
        found = find_value(self.readings[index], name)
        if found is None or not found.text:
            return None
        value = _match_enum(found.text, _convert(found.text, kinds), schema)
        if value is not None:
            self.spots.append(LabelledBox(f"{name}: {found.text}", found.box, index))
        return value

    def _fill_list(self, schema: Mapping[str, Any]) -> Json:
        """Return the rows of the tables whose headings are properties of an entry, image by image."""
        entry = schema.get("items")
        if not isinstance(entry, dict) or not isinstance(entry.get("properties"), dict):
            return None
        found = [rows for each in self.readings if (rows := self._find_rows(each, entry)) is not None]
        return [row for rows in found for row in rows][:_MAX_ENTRIES] if found else None

    def _find_rows(self, reading: ImageReading, entry: Mapping[str, Any]) -> Sequence[Json] | None:
        properties: Mapping[str, Any] = entry["properties"]
        for table in read_tables(reading):
            heads = [normalize(head) for head in table.get_heads()]
            columns = {
                name: next((heads.index(normalize(each)) for each in _list_names(inner, name)
                            if normalize(each) in heads), None)
                for name, inner in properties.items()
            }  # fmt: skip
            found = {name for name, column in columns.items() if column is not None}
            if found and not _list_required(entry) - found:
                self.missing += [f"{name} of each row" for name, column in columns.items() if column is None]
                return _convert_rows(table, columns, properties)
        return None


def _match_enum(text: str, value: Json, schema: Mapping[str, Any]) -> Json:
    """Return a value that the schema allows, or the listed one that the text spells; else None."""
    allowed = schema.get("enum")
    if value is not None and (not isinstance(allowed, list) or value in allowed):
        return value
    same = [each for each in allowed or () if isinstance(each, str) and normalize(each) == normalize(text) != ""]
    return str(same[0]) if same else None


def _find_toggle_state(reading: ImageReading, name: str) -> Json:
    """Return whether the toggle with that name is on; None if there is no such toggle, or more than one."""
    toggles = [part for part in find_named_parts(reading, name, *TOGGLES) if part.checked is not None]
    return toggles[0].checked if len(toggles) == 1 else None


def _convert_rows(table: TableText, columns: Mapping[str, int | None], properties: Mapping[str, Any]) -> list[Json]:
    converted = {
        name: _convert_column(
            [row[column] if column < len(row) else "" for row in table.body], _list_types(properties[name])
        )
        for name, column in columns.items()
        if column is not None
    }
    return [
        {name: cells[row] for name, cells in converted.items() if cells[row] is not None}
        for row in range(len(table.body))
    ]


def _convert_column(texts: Sequence[str], kinds: frozenset[str]) -> list[Json]:
    """Convert the cells of a column, which together show whether points separate thousands."""
    has_separators = "string" not in kinds and points_separate_thousands(texts)
    return [_convert(text.replace(".", "") if has_separators else text, kinds) for text in texts]


def _convert(text: str, kinds: frozenset[str]) -> Json:
    """Convert a text to the type that the schema asks for; return None if it can't be."""
    if "string" in kinds:
        return text or None
    if "number" not in kinds:
        return parse_whole_number(text) if "integer" in kinds else None
    value = parse_number(text)
    return int(value) if value is not None and value.is_integer() else value


def _list_required(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the fields without which an object would break its schema, so that it is left out."""
    required = schema.get("required")
    return frozenset(each for each in required if isinstance(each, str)) if isinstance(required, list) else frozenset()


def _list_types(schema: Mapping[str, Any]) -> frozenset[str]:
    kind = schema.get("type")
    types = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    if not types:
        types = ["object"] if "properties" in schema else ["array"] if "items" in schema else ["string"]
    return frozenset(each for each in types if isinstance(each, str) and each != "null")


def _list_names(schema: Any, path: str) -> list[str]:
    """Return the labels that a property may have in the image: its title, and its name split into words."""
    title = schema.get("title") if isinstance(schema, dict) else None
    name = " ".join(part.lower() for part in _NAME_PARTS.split(path.rpartition(".")[2]) if part)
    return list(dict.fromkeys(filter(None, (title if isinstance(title, str) else "", name))))


@dataclass(frozen=True, slots=True)
class LabelledValue:
    """A value and its place."""

    text: str
    box: Box


def find_value(reading: ImageReading, label: str) -> LabelledValue | None:
    """Return the value beside a label: in its field, after it in its line or row, or below it."""
    single = [line for line in reading.lines if not split_pairs(line.text)]
    lines = [line for line in single if match_phrase(line.text, label) in (EXACT, LABEL)]
    beside = next((value for line in lines if (value := _find_beside(line, reading))), None)
    return beside or _find_in_pairs(reading, label) or _find_in_sentences(reading, label)


def _find_in_pairs(reading: ImageReading, label: str) -> LabelledValue | None:
    """Return the value of one of several labels on a line; None if two lines disagree."""
    named = [
        LabelledValue(value, line.box)
        for line in reading.lines
        for name, value in split_pairs(line.text)
        if normalize(name) == normalize(label)
    ]
    return named[0] if len({normalize(each.text) for each in named}) == 1 else None


def _find_in_sentences(reading: ImageReading, label: str) -> LabelledValue | None:
    """Return the value after a label and a colon in the middle of a text."""
    for line in reading.lines:
        for sentence in _SENTENCE.split(line.text):
            head, colon, rest = sentence.partition(":")
            value = extract_value(head, rest) if colon else ""
            if value and normalize(remove_asides(head)) == normalize(label) != "":
                return LabelledValue(value.removesuffix("."), line.box)
    return None


def _find_beside(line: TextLine, reading: ImageReading) -> LabelledValue | None:
    inline = find_value_in(line.text)
    if inline:
        return LabelledValue(inline, line.box)
    if part := find_labelled_part(line, reading):
        return LabelledValue(join_part_text(part, reading), part.box)
    if _find_containing_part(line, reading, "button"):
        return None  # the text on a button is not a label
    if _is_table_cell(line, reading):
        return _find_in_row(line, reading)
    right, below = _find_line_right(line, reading), _find_line_below(line, reading)
    is_column_head = right and below and not begins_like_value(right.text) and begins_like_value(below.text)
    other = below if is_column_head else right or below
    return LabelledValue(other.text, other.box) if other else None


def _find_containing_part(line: TextLine, reading: ImageReading, kind: PartKind) -> InterfacePart | None:
    index = reading.lines.index(line)
    return next((part for part in select_parts(reading, kind) if index in part.lines), None)


def _is_table_cell(line: TextLine, reading: ImageReading) -> bool:
    """Return whether a line is in a table with more columns than a name and a value."""
    index = reading.lines.index(line)
    wide = (table for table in add_table_heads(reading) if max(map(len, table.rows), default=0) > 2)
    return any(index in cell for table in wide for row in table.rows for cell in row)


def _find_in_row(line: TextLine, reading: ImageReading) -> LabelledValue | None:
    """Return the only other cell of a row if it has a number; in a row of totals, the last one if only it has money."""
    for grid in (grid for grid in read_tables(reading) if grid.width > 2):
        for row_index in range(1, len(grid.cells)):  # a heading does not label another heading
            texts, boxes = grid.cells[row_index], grid.boxes[row_index]
            filled = [place for place, text in enumerate(texts) if text]
            if not filled or boxes[filled[0]] != line.box or any(row == row_index for row, _ in grid.unread):
                continue
            money = [place for place in filled[1:] if _MONEY.search(texts[place])]
            if len(filled) > 2 and not (_TOTALS & set(split_words(line.text)) and money == filled[-1:]):
                return None
            box = boxes[filled[-1]]
            if len(filled) > 1 and box and re.search(r"\d", texts[filled[-1]]):
                return LabelledValue(texts[filled[-1]], box)
    return None


def _find_line_right(line: TextLine, reading: ImageReading) -> TextLine | None:
    """Return the only other text of a line's row, if the row is one of several with labels and values."""
    row = [each for each in _find_panel_lines(line, reading) if each is not line and are_level(line.box, each.box)]
    if len(row) != 1 or row[0].box.x <= line.box.right or _find_containing_part(row[0], reading, "button"):
        return None
    return row[0] if line.text.endswith(":") or _are_in_columns(line, row[0], reading) else None


def _are_in_columns(label: TextLine, value: TextLine, reading: ImageReading) -> bool:
    """Return whether another row has a label below this one, and a value below that one."""
    slack = label.box.height
    for other in reading.lines:
        is_aligned = abs(other.box.x - label.box.x) <= slack or abs(other.box.right - label.box.right) <= slack
        if other is not label and is_aligned:
            beside = (each for each in reading.lines if each.box.x > other.box.right and are_level(other.box, each.box))
            if any(
                abs(each.box.x - value.box.x) <= slack or abs(each.box.right - value.box.right) <= slack
                for each in beside
            ):
                return True
    return False


def _find_panel_lines(line: TextLine, reading: ImageReading) -> list[TextLine]:
    """Return the lines in the smallest panel around a line."""
    panels = [part.box for part in select_parts(reading, "panel") if contains_centre(part.box, line.box)]
    full_image = Box(0, 0, reading.size.width, reading.size.height)
    return list(find_lines_within(reading, min(panels, key=lambda box: box.size.pixels, default=full_image)))


def _find_line_below(line: TextLine, reading: ImageReading) -> TextLine | None:
    """Return the value below a label; words below words are more likely a text below its heading."""
    height = line.box.height
    candidates = [
        each
        for each in reading.lines
        if 0 <= each.box.y - line.box.bottom <= 1.5 * max(height, each.box.height)
        and abs(each.box.x - line.box.x) <= height
        and (
            line.text.rstrip().endswith(":")
            or (begins_like_value(each.text) and len(each.text.split()) <= _MAX_VALUE_WORDS)
        )
        and _has_no_other_label(each, line, reading)
    ]
    return min(candidates, key=lambda each: each.box.y, default=None)


def _has_no_other_label(value: TextLine, label: TextLine, reading: ImageReading) -> bool:
    """Return whether a line has only the label above it: none within it, and none beside it."""
    if re.match(r"[^:]*[^\W\d_][^:]*:(?:\s|$)", value.text):
        return False
    near, level = 12 * label.box.height, [each.box for each in reading.lines if are_level(each.box, label.box)]
    beside = [
        each.box for each in _find_panel_lines(value, reading)
        if each is not value and are_level(each.box, value.box) and measure_distance(each.box, value.box) <= near
    ]  # fmt: skip
    return all(any(overlap_horizontally(head, box) for head in level) for box in beside)
