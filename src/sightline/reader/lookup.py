"""Fill a JSON Schema with values whose labels are beside them in the image.

A property is filled only where a label of its name, or of its title, is in the picture with a value: in a field, in the
same line or row, below it, or in a column with that head. Whatever is not found is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from sightline.model.asking import Spot
from sightline.model.geometry import Box
from sightline.model.scene import Json
from sightline.reader.describe import NOTE, Report
from sightline.reader.interface.field_labels import find_named_parts, labelled_part
from sightline.reader.layout.tables import TableText, table_texts, tables_with_heads
from sightline.reader.phrases import (
    EXACT,
    LABEL,
    begins_like_value,
    label_value_pairs,
    match_phrase,
    normalize,
    parse_number,
    parse_whole_number,
    points_separate_thousands,
    remove_asides,
    split_words,
    value_after_colon,
    value_in,
)
from sightline.reader.reading import (
    ImageReading,
    InterfacePart,
    PartKind,
    TextLine,
    lines_within,
    parts_of_kind,
    text_in_part,
)
from sightline.reader.rectangles import are_level, contains_centre, distance_between, overlap_horizontally

_DEEPEST = 6
_MOST = 200  # entries of a list
_NAMED = 30  # properties that are listed as not found
_BRIEF = 4  # words that a value below its label has at most; more are a text below its heading
_TOTALS = frozenset({"total", "subtotal", "sum", "balance", "due"})  # a row of these has a value at its end
_NAME_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")
_MONEY = re.compile(r"[$€£¥]|\d[.,]\d\d(?!\d)")
_SENTENCE = re.compile(r"(?<=[.;!?])\s+")


def fill_schema(schema: Json, readings: Sequence[ImageReading]) -> Report:
    """Return the JSON, followed by what was not found and what the images disagree on."""
    lookup = _Lookup(readings)
    value = lookup.fill(schema, "", 0)
    where = "image" if len(readings) == 1 else "images"
    missing, differing = (", ".join(dict.fromkeys(each[:_NAMED])) for each in (lookup.missing, lookup.differing))
    remarks = f"Not found in the {where}, and left out: {missing}. " if missing else ""
    remarks += f"The images differ, and the first value is given: {differing}. " if differing else ""
    text = orjson.dumps({} if value is None else value).decode()
    return Report(f"{text}\n\n{remarks}{NOTE}", tuple(lookup.spots))


class _Lookup:
    """One schema and the images it is filled from. None means everywhere: not found."""

    def __init__(self, readings: Sequence[ImageReading]) -> None:
        self.readings = readings
        self.missing: list[str] = []
        self.differing: list[str] = []
        self.spots: list[Spot] = []

    def fill(self, schema: Any, path: str, depth: int) -> Json:
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return None
        kinds = _types(schema)
        if "object" in kinds and isinstance(schema.get("properties"), dict):
            filled = {
                name: self.fill(inner, f"{path}.{name}" if path else name, depth + 1)
                for name, inner in schema["properties"].items()
            }
            return {name: value for name, value in filled.items() if value is not None} or None
        value = self._fill_list(schema) if "array" in kinds else self._fill_value(schema, kinds, path)
        if value is None and path:
            self.missing.append(path)
        return value

    def _fill_value(self, schema: Mapping[str, Any], kinds: frozenset[str], path: str) -> Json:
        """Return the value in the first image that has one."""
        found = [
            value for at in range(len(self.readings)) if (value := self._find_in(at, schema, kinds, path)) is not None
        ]
        if any(value != found[0] for value in found):
            self.differing.append(path)
        return found[0] if found else None

    def _find_in(self, at: int, schema: Mapping[str, Any], kinds: frozenset[str], path: str) -> Json:
        for name in _possible_names(schema, path):
            value = (
                _toggle_state(self.readings[at], name)
                if kinds == {"boolean"}
                else self._labelled_value(at, schema, kinds, name)
            )
            if value is not None:
                return value
        return None

    def _labelled_value(self, at: int, schema: Mapping[str, Any], kinds: frozenset[str], name: str) -> Json:
        """Return the value beside a label, if it has the type that the schema asks for."""
        found = find_value(self.readings[at], name)
        if found is None or not found.text:
            return None
        value = _match_enum(found.text, _convert(found.text, kinds), schema)
        if value is not None:
            self.spots.append(Spot(f"{name}: {found.text}", found.box, at))
        return value

    def _fill_list(self, schema: Mapping[str, Any]) -> Json:
        """Return the rows of tables whose heads are the properties of an entry, image by image."""
        entry = schema.get("items")
        if not isinstance(entry, dict) or not isinstance(entry.get("properties"), dict):
            return None
        found = [rows for each in self.readings if (rows := self._find_rows(each, entry["properties"])) is not None]
        return [row for rows in found for row in rows][:_MOST] if found else None

    def _find_rows(self, reading: ImageReading, properties: Mapping[str, Any]) -> Sequence[Json] | None:
        for table in table_texts(reading):
            heads = [normalize(head) for head in table.heads()]
            columns = {
                name: next((heads.index(normalize(each)) for each in _possible_names(inner, name)
                            if normalize(each) in heads), None)
                for name, inner in properties.items()
            }  # fmt: skip
            if any(at is not None for at in columns.values()):
                self.missing += [f"{name} of each row" for name, at in columns.items() if at is None]
                return _convert_rows(table, columns, properties)
        return None


def _match_enum(text: str, value: Json, schema: Mapping[str, Any]) -> Json:
    """Return a value that the schema allows, or the listed one that the text spells; else None."""
    listed = schema.get("enum")
    if value is not None and (not isinstance(listed, list) or value in listed):
        return value
    same = [each for each in listed or () if isinstance(each, str) and normalize(each) == normalize(text) != ""]
    return str(same[0]) if same else None


def _toggle_state(reading: ImageReading, name: str) -> Json:
    """Return whether the toggle of that name is on; None where there is none, or several."""
    toggles = [part for part in find_named_parts(reading, name, "check", "radio") if part.checked is not None]
    return toggles[0].checked if len(toggles) == 1 else None


def _convert_rows(table: TableText, columns: Mapping[str, int | None], properties: Mapping[str, Any]) -> list[Json]:
    converted = {
        name: _convert_column([row[at] if at < len(row) else "" for row in table.body], _types(properties[name]))
        for name, at in columns.items() if at is not None
    }  # fmt: skip
    return [
        {name: cells[row] for name, cells in converted.items() if cells[row] is not None}
        for row in range(len(table.body))
    ]


def _convert_column(texts: Sequence[str], kinds: frozenset[str]) -> list[Json]:
    """Convert the cells of a column, which together show whether points separate thousands."""
    together = "string" not in kinds and points_separate_thousands(texts)
    return [_convert(text.replace(".", "") if together else text, kinds) for text in texts]


def _convert(text: str, kinds: frozenset[str]) -> Json:
    """Return a text as the type that is asked for, or None if it isn't one."""
    if "string" in kinds:
        return text or None
    if "number" not in kinds:
        return parse_whole_number(text) if "integer" in kinds else None
    value = parse_number(text)
    return int(value) if value is not None and value.is_integer() else value


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    kind = schema.get("type")
    listed = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    if not listed:
        listed = ["object"] if "properties" in schema else ["array"] if "items" in schema else ["string"]
    return frozenset(each for each in listed if isinstance(each, str) and each != "null")


def _possible_names(schema: Any, path: str) -> list[str]:
    """Return what the image may call a property: its title, or its name in words."""
    title = schema.get("title") if isinstance(schema, dict) else None
    own = " ".join(part.lower() for part in _NAME_PARTS.split(path.rpartition(".")[2]) if part)
    return list(dict.fromkeys(filter(None, (title if isinstance(title, str) else "", own))))


@dataclass(frozen=True, slots=True)
class LabelledValue:
    """A value and its place."""

    text: str
    box: Box


def find_value(reading: ImageReading, label: str) -> LabelledValue | None:
    """Return the value beside a label: in its field, after it in its line or row, or below it."""
    single = [line for line in reading.lines if not label_value_pairs(line.text)]
    lines = [line for line in single if match_phrase(line.text, label) in (EXACT, LABEL)]
    beside = next((value for line in lines if (value := _value_beside(line, reading))), None)
    return beside or _value_in_pairs(reading, label) or _value_in_sentences(reading, label)


def _value_in_pairs(reading: ImageReading, label: str) -> LabelledValue | None:
    """Return the value of one of several labels in a line; None where two lines disagree."""
    named = [
        LabelledValue(value, line.box)
        for line in reading.lines
        for name, value in label_value_pairs(line.text)
        if normalize(name) == normalize(label)
    ]
    return named[0] if len({normalize(each.text) for each in named}) == 1 else None


def _value_in_sentences(reading: ImageReading, label: str) -> LabelledValue | None:
    """Return the value after a label and a colon in the middle of a text."""
    for line in reading.lines:
        for sentence in _SENTENCE.split(line.text):
            head, colon, rest = sentence.partition(":")
            value = value_after_colon(head, rest) if colon else ""
            if value and normalize(remove_asides(head)) == normalize(label) != "":
                return LabelledValue(value.removesuffix("."), line.box)
    return None


def _value_beside(line: TextLine, seen: ImageReading) -> LabelledValue | None:
    inline = value_in(line.text)
    if inline:
        return LabelledValue(inline, line.box)
    if part := labelled_part(line, seen):
        return LabelledValue(text_in_part(part, seen), part.box)
    if _containing_part(line, seen, "button"):
        return None  # the name of a button labels nothing
    if _is_table_cell(line, seen):
        return _value_in_row(line, seen)
    right, below = _line_to_the_right(line, seen), _line_below(line, seen)
    heads = right and below and not begins_like_value(right.text) and begins_like_value(below.text)
    other = below if heads else right or below
    return LabelledValue(other.text, other.box) if other else None


def _containing_part(line: TextLine, seen: ImageReading, kind: PartKind) -> InterfacePart | None:
    own = seen.lines.index(line)
    return next((part for part in parts_of_kind(seen, kind) if own in part.lines), None)


def _is_table_cell(line: TextLine, seen: ImageReading) -> bool:
    """Return whether a line is in a table with more columns than a name and a value."""
    at = seen.lines.index(line)
    wide = (table for table in tables_with_heads(seen) if max(map(len, table.rows), default=0) > 2)
    return any(at in cell for table in wide for row in table.rows for cell in row)


def _value_in_row(line: TextLine, seen: ImageReading) -> LabelledValue | None:
    """Return the only other cell of a row if it has a number; in a row of totals the last, if it alone has money."""
    for grid in (grid for grid in table_texts(seen) if grid.width > 2):
        for at in range(1, len(grid.cells)):  # a head labels no other head
            texts, boxes = grid.cells[at], grid.boxes[at]
            filled = [place for place, text in enumerate(texts) if text]
            if not filled or boxes[filled[0]] != line.box or any(row == at for row, _ in grid.unread):
                continue
            money = [place for place in filled[1:] if _MONEY.search(texts[place])]
            if len(filled) > 2 and not (_TOTALS & set(split_words(line.text)) and money == filled[-1:]):
                return None
            box = boxes[filled[-1]]
            if len(filled) > 1 and box and re.search(r"\d", texts[filled[-1]]):
                return LabelledValue(texts[filled[-1]], box)
    return None


def _line_to_the_right(line: TextLine, seen: ImageReading) -> TextLine | None:
    """Return the only other text of a line's row, if the row is one of several with labels and values."""
    row = [each for each in _lines_in_same_panel(line, seen) if each is not line and are_level(line.box, each.box)]
    if len(row) != 1 or row[0].box.x <= line.box.right or _containing_part(row[0], seen, "button"):
        return None
    return row[0] if line.text.endswith(":") or _are_in_columns(line, row[0], seen) else None


def _are_in_columns(label: TextLine, value: TextLine, seen: ImageReading) -> bool:
    """Return whether another row has a label below this one, and a value below that one."""
    slack = label.box.height
    for other in seen.lines:
        level = abs(other.box.x - label.box.x) <= slack or abs(other.box.right - label.box.right) <= slack
        if other is not label and level:
            beside = (each for each in seen.lines if each.box.x > other.box.right and are_level(other.box, each.box))
            if any(
                abs(each.box.x - value.box.x) <= slack or abs(each.box.right - value.box.right) <= slack
                for each in beside
            ):
                return True
    return False


def _lines_in_same_panel(line: TextLine, seen: ImageReading) -> list[TextLine]:
    """Return the lines in the smallest panel around a line."""
    around_it = [part.box for part in parts_of_kind(seen, "panel") if contains_centre(part.box, line.box)]
    whole = Box(0, 0, seen.size.width, seen.size.height)
    return list(lines_within(seen, min(around_it, key=lambda box: box.size.pixels, default=whole)))


def _line_below(line: TextLine, seen: ImageReading) -> TextLine | None:
    """Return the value below a label; words below words are more likely a text below its heading."""
    height = line.box.height
    under = [
        each
        for each in seen.lines
        if 0 <= each.box.y - line.box.bottom <= 1.5 * max(height, each.box.height)
        and abs(each.box.x - line.box.x) <= height
        and (line.text.rstrip().endswith(":") or (begins_like_value(each.text) and len(each.text.split()) <= _BRIEF))
        and _has_no_other_label(each, line, seen)
    ]
    return min(under, key=lambda each: each.box.y, default=None)


def _has_no_other_label(value: TextLine, label: TextLine, seen: ImageReading) -> bool:
    """Return whether a line has no label but the one above it: none within it, and none beside it."""
    if re.match(r"[^:]*[^\W\d_][^:]*:(?:\s|$)", value.text):
        return False
    near, level = 12 * label.box.height, [each.box for each in seen.lines if are_level(each.box, label.box)]
    beside = [
        each.box for each in _lines_in_same_panel(value, seen)
        if each is not value and are_level(each.box, value.box) and distance_between(each.box, value.box) <= near
    ]  # fmt: skip
    return all(any(overlap_horizontally(head, box) for head in level) for box in beside)
