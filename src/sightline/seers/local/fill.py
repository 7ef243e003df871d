"""A JSON Schema, filled with what literally stands in an image. What does not stand there is null."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from sightline.model.asking import Spot
from sightline.model.scene import Json
from sightline.seers.local.amounts import number, whole
from sightline.seers.local.finding import cell_text, key, named, of_kind, tables, text_of, titles, value_of
from sightline.seers.local.seen import Seen
from sightline.seers.local.subjects import Said

_DEEPEST = 6
_MOST = 200  # entries of a list
_parts = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")

_LISTS: Mapping[str, Callable[[Seen], list[str]]] = {
    "buttons": lambda seen: [text_of(part, seen) for part in of_kind(seen, "button")],
    "lines": lambda seen: [line.text for line in seen.lines],
    "texts": lambda seen: [line.text for line in seen.lines],
    "codes": lambda seen: [code.text for code in seen.codes],
}
_WHOLE = frozenset({"text", "full text", "all text", "raw text", "ocr text", "transcript", "transcription", "content"})
_TITLES = frozenset({"title", "heading", "dialog title", "window title", "page title", "headline"})


def fill(schema: Json, seen: Seen, note: str) -> Said:
    """The JSON, and behind it what is null in it because nothing of it was read."""
    found = _Filling(seen)
    value = found.of(schema, "", 0)
    empty = ", ".join(found.missing[:30])
    said = f"Not found in the image, and null: {empty}. " if empty else ""
    return Said(f"{orjson.dumps(value).decode()}\n\n{said}{note}", tuple(found.spots))


class _Filling:
    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.missing: list[str] = []
        self.spots: list[Spot] = []

    def of(self, schema: Any, path: str, depth: int) -> Json:
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return None
        kinds = _kinds(schema)
        if "object" in kinds and isinstance(schema.get("properties"), dict):
            return {
                name: self.of(inner, f"{path}.{name}" if path else name, depth + 1)
                for name, inner in schema["properties"].items()
            }
        value = self._list(schema, path) if "array" in kinds else self._one(schema, kinds, path)
        if value is None and path:
            self.missing.append(path)
        return value

    def _one(self, schema: Mapping[str, Any], kinds: frozenset[str], path: str) -> Json:
        for name in _names(schema, path):
            value = self._flag(name) if kinds == {"boolean"} else self._fitting(schema, kinds, name)
            if value is not None:
                return value
        return None

    def _fitting(self, schema: Mapping[str, Any], kinds: frozenset[str], name: str) -> Json:
        """What stands for a name, if it is of the kind that is asked for."""
        for text in self._texts(name):
            value = _typed(text, kinds)
            if value is not None and ("enum" not in schema or value in schema["enum"]):
                return value
            if isinstance(schema.get("enum"), list):
                same = [each for each in schema["enum"] if isinstance(each, str) and key(each) == key(text) != ""]
                if same:
                    return str(same[0])
        return None

    def _texts(self, name: str) -> Iterator[str]:
        seen = self.seen
        if (value := value_of(seen, name)) and value.text:
            self.spots.append(Spot(f"{name}: {value.text}", value.box))
            yield value.text
        if name in _TITLES:
            there = titles(seen)
            chart = [chart.title for chart in seen.charts if chart.title]
            yield from (line.text for line in (there.bar, there.heading) if line and not chart)
            yield from chart
        if name in _WHOLE and seen.lines:
            yield seen.text or "\n".join(line.text for line in seen.lines)

    def _flag(self, name: str) -> Json:
        """Whether a box is checked; what no box says is not known."""
        checks = [part for part in named(self.seen, name, "check") if part.checked is not None]
        return checks[0].checked if len(checks) == 1 else None

    def _list(self, schema: Mapping[str, Any], path: str) -> Json:
        inner = schema.get("items")
        name = " ".join(_words(path.rpartition(".")[2]))
        if isinstance(inner, dict) and isinstance(inner.get("properties"), dict):
            return self._rows(inner["properties"])
        made = _LISTS.get(name)
        if made and (not isinstance(inner, dict) or "string" in _kinds(inner)):
            found: list[Json] = [*made(self.seen)[:_MOST]]
            return found
        return None

    def _rows(self, properties: Mapping[str, Any]) -> Json:
        """The rows of the table whose heads are the names that are asked for."""
        for table in tables(self.seen):
            heads = [key(cell_text(self.seen, cell)) for cell in table.rows[0]] if table.rows else []
            places = {
                name: next((heads.index(key(each)) for each in _names(inner, name) if key(each) in heads), None)
                for name, inner in properties.items()
            }
            if any(at is not None for at in places.values()):
                self.missing += [f"{name} of each row" for name, at in places.items() if at is None]
                return [self._row(row, places, properties) for row in table.rows[1 : _MOST + 1]]
        return self._marks(properties)

    def _row(
        self, row: tuple[tuple[int, ...], ...], places: Mapping[str, int | None], properties: Mapping[str, Any]
    ) -> Json:
        texts = [cell_text(self.seen, cell) for cell in row]
        return {
            name: _typed(texts[at], _kinds(properties[name])) if at is not None and at < len(texts) else None
            for name, at in places.items()
        }

    def _marks(self, properties: Mapping[str, Any]) -> Json:
        """The values of a chart, where a category, a series or a value is asked for by that name."""
        known = {"category", "label", "name", "series", "value"} & set(properties)
        marks = [mark for chart in self.seen.charts for mark in chart.marks]
        if "value" not in known or not marks:
            return None
        held = [
            {"category": mark.category, "label": mark.category, "name": mark.category, "series": mark.series or None,
             "value": mark.value}
            for mark in marks
        ]  # fmt: skip
        return [{name: each.get(name) for name in properties} for each in held[:_MOST]]


def _kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    kind = schema.get("type")
    listed = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    if not listed:
        listed = ["object"] if "properties" in schema else ["array"] if "items" in schema else ["string"]
    return frozenset(each for each in listed if isinstance(each, str) and each != "null")


def _names(schema: Any, path: str) -> list[str]:
    """What the image may call a property: its title, or its name in words."""
    title = schema.get("title") if isinstance(schema, dict) else None
    own = " ".join(_words(path.rpartition(".")[2]))
    return list(dict.fromkeys(filter(None, (title if isinstance(title, str) else "", own))))


def _words(name: str) -> list[str]:
    return [part.lower() for part in _parts.split(name) if part]


def _typed(text: str, kinds: frozenset[str]) -> Json:
    """A text as the kind that is asked for; None where it is none of that kind."""
    if "string" in kinds:
        return text or None
    if "number" not in kinds:
        return whole(text) if "integer" in kinds else None
    value = number(text)
    return int(value) if value is not None and value.is_integer() else value
