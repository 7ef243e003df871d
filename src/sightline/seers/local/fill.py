"""A JSON Schema, filled with what literally stands in images. What does not stand there is null."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from sightline.model.asking import Spot
from sightline.model.geometry import Box
from sightline.model.scene import Json
from sightline.seers.local.amounts import number, pointed, whole
from sightline.seers.local.cells import Grid, grids
from sightline.seers.local.figures import told
from sightline.seers.local.finding import of_kind, text_of
from sightline.seers.local.labelled import named
from sightline.seers.local.phrases import key
from sightline.seers.local.seen import Seen
from sightline.seers.local.subjects import Said
from sightline.seers.local.titles import titles
from sightline.seers.local.values import value_of

_DEEPEST = 6
_MOST = 200  # entries of a list
_NAMED = 30  # properties that are said to be null
_parts = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")

_LISTS: Mapping[str, Callable[[Seen], list[str]]] = {
    "buttons": lambda seen: [text_of(part, seen) for part in of_kind(seen, "button")],
    "lines": lambda seen: [line.text for line in seen.lines],
    "texts": lambda seen: [line.text for line in seen.lines],
    "codes": lambda seen: [code.text for code in seen.codes],
}
_WHOLE = frozenset({"text", "full text", "all text", "raw text", "ocr text", "transcript", "transcription", "content"})
_TITLES = frozenset({"title", "heading", "dialog title", "window title", "page title", "headline"})


def fill(schema: Json, pages: Sequence[Seen], note: str) -> Said:
    """The JSON, and behind it what is null in it because nothing of it was read, and what the images differ in."""
    found = _Filling(pages)
    value = found.of(schema, "", 0)
    where = "image" if len(pages) == 1 else "images"
    empty, differing = (", ".join(dict.fromkeys(each[:_NAMED])) for each in (found.missing, found.differing))
    said = f"Not found in the {where}, and null: {empty}. " if empty else ""
    said += f"The images differ, and the first is given: {differing}. " if differing else ""
    return Said(f"{orjson.dumps(value).decode()}\n\n{said}{note}", tuple(found.spots))


class _Filling:
    def __init__(self, pages: Sequence[Seen]) -> None:
        self.pages = pages
        self.missing: list[str] = []
        self.differing: list[str] = []
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
        """What the first image says that has it."""
        found = [
            value for at in range(len(self.pages)) if (value := self._in_page(at, schema, kinds, path)) is not None
        ]
        if any(value != found[0] for value in found):
            self.differing.append(path)
        return found[0] if found else None

    def _in_page(self, at: int, schema: Mapping[str, Any], kinds: frozenset[str], path: str) -> Json:
        for name in _names(schema, path):
            flag = kinds == {"boolean"}
            value = _flag(self.pages[at], name) if flag else self._fitting(at, schema, kinds, name)
            if value is not None:
                return value
        return None

    def _fitting(self, at: int, schema: Mapping[str, Any], kinds: frozenset[str], name: str) -> Json:
        """What stands for a name, if it is of the kind that is asked for."""
        for text, box in _texts(self.pages[at], name):
            value = _enumerated(text, _typed(text, kinds), schema)
            if value is not None:
                self.spots += [Spot(f"{name}: {text}", box, at)] if box else []
                return value
        return None

    def _list(self, schema: Mapping[str, Any], path: str) -> Json:
        """The entries of all images, one after another."""
        inner = schema.get("items")
        name = " ".join(_words(path.rpartition(".")[2]))
        if isinstance(inner, dict) and isinstance(inner.get("properties"), dict):
            found = [rows for seen in self.pages if (rows := self._rows(seen, inner["properties"])) is not None]
        elif name in _LISTS and (not isinstance(inner, dict) or "string" in _kinds(inner)):
            found = [_LISTS[name](seen) for seen in self.pages]
        else:
            return None
        return [entry for entries in found for entry in entries][:_MOST] if found else None

    def _rows(self, seen: Seen, properties: Mapping[str, Any]) -> Sequence[Json] | None:
        """The rows of the table whose heads are the names that are asked for."""
        for grid in grids(seen):
            heads = [key(head) for head in grid.heads()]
            places = {
                name: next((heads.index(key(each)) for each in _names(inner, name) if key(each) in heads), None)
                for name, inner in properties.items()
            }
            if any(at is not None for at in places.values()):
                self.missing += [f"{name} of each row" for name, at in places.items() if at is None]
                return _table(grid, places, properties)
        return _marks(seen, properties)


def _texts(seen: Seen, name: str) -> Iterator[tuple[str, Box | None]]:
    if (value := value_of(seen, name)) and value.text:
        yield value.text, value.box
    if name in _TITLES:
        there = titles(seen)
        chart = [chart.title for chart in seen.charts if chart.title]
        yield from ((line.text, None) for line in (there.bar, there.heading) if line and not chart)
        yield from ((title, None) for title in chart)
    if name in _WHOLE and seen.lines:
        yield seen.text or "\n".join(line.text for line in seen.lines), None


def _enumerated(text: str, value: Json, schema: Mapping[str, Any]) -> Json:
    """A value that may be so, or the one of those that are listed which it spells."""
    listed = schema.get("enum")
    if value is not None and (not isinstance(listed, list) or value in listed):
        return value
    same = [each for each in listed or () if isinstance(each, str) and key(each) == key(text) != ""]
    return str(same[0]) if same else None


def _flag(seen: Seen, name: str) -> Json:
    """Whether a box is checked; what no box says is not known."""
    checks = [part for part in named(seen, name, "check", "radio") if part.checked is not None]
    return checks[0].checked if len(checks) == 1 else None


def _table(grid: Grid, places: Mapping[str, int | None], properties: Mapping[str, Any]) -> list[Json]:
    columns = {
        name: _column([row[at] if at < len(row) else "" for row in grid.body], _kinds(properties[name]))
        for name, at in places.items() if at is not None
    }  # fmt: skip
    return [
        {name: columns[name][row] if name in columns else None for name in properties} for row in range(len(grid.body))
    ]


def _column(texts: Sequence[str], kinds: frozenset[str]) -> list[Json]:
    """The cells of a column: whether points in them part thousands is told by all of them."""
    together = "string" not in kinds and pointed(texts)
    return [_typed(text.replace(".", "") if together else text, kinds) for text in texts]


def _marks(seen: Seen, properties: Mapping[str, Any]) -> list[Json] | None:
    """The values of a chart, where a category, a series or a value is asked for by that name."""
    known = {"category", "label", "name", "series", "value"} & set(properties)
    marks = [mark for chart in seen.charts for mark in chart.marks]
    if "value" not in known or not marks:
        return None
    held = [
        {"category": mark.category, "label": mark.category, "name": mark.category, "series": mark.series or None,
         "value": told(mark)}
        for mark in marks
    ]  # fmt: skip
    return [{name: each.get(name) for name in properties} for each in held]


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
