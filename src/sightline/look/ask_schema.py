"""JSON answers: taken out of what a model wrote around them, and held against the schema that was asked for.

The commonest words of JSON Schema are checked. `pattern`, `format`, `$ref` and the conditional ones are not: what they
ask of an answer is left to whoever wrote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from sightline.model.scene import Json

_DEEPEST = 50  # levels of an answer that are looked at
_LONGEST = 200_000  # characters of an answer in which an object is looked for
_TRIES = 50
_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_TYPES: Mapping[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}


def object_in(text: str) -> dict[str, Json] | None:
    """The JSON object that a text is, or that it holds in a fence or between other words; None: there is none."""
    text = text[:_LONGEST]
    for piece in (text, *(match[1] for match in _FENCED.finditer(text))):
        if isinstance(found := _read(piece.strip()), dict):
            return found
    starts = (match.start() for match in re.finditer(r"\{", text))
    for _, start in zip(range(_TRIES), starts, strict=False):
        if (found := _first(text, start)) is not None:
            return found
    return None


def _read(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None


def _first(text: str, start: int) -> dict[str, Json] | None:
    try:
        found, _ = json.JSONDecoder(parse_constant=_no_number).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Json]", found)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def missing(found: Mapping[str, Json], schema: Mapping[str, Json]) -> list[str]:
    """The required fields of the whole answer that are not there."""
    return [name for name in _list(schema.get("required")) if isinstance(name, str) and name not in found]


def errors(found: Json, schema: Json) -> list[str]:
    """How an answer breaks its schema, each with the place where."""
    return list(_errors(found, schema, "$", 0))


def _errors(value: Any, schema: Any, where: str, depth: int) -> Iterator[str]:
    if schema is False:
        yield f"{where}: nothing is allowed here"
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else _list(kinds)
    known = [kind for kind in kinds if isinstance(kind, str) and kind in _TYPES]
    if known and not any(_TYPES[kind](value) for kind in known):
        yield f"{where}: it is not of type {' or '.join(known)}"
        return
    yield from _chosen(value, schema, where)
    yield from _combined(value, schema, where, depth)
    if isinstance(value, dict):
        yield from _of_object(value, schema, where, depth)
    elif isinstance(value, list):
        yield from _of_list(value, schema, where, depth)
    else:
        yield from _sized(value, schema, where)


def _chosen(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    if isinstance(schema.get("enum"), list) and not any(_same(value, each) for each in schema["enum"]):
        yield f"{where}: it is none of the values of enum"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{where}: it is not the value of const"


def _combined(value: Any, schema: dict[str, Any], where: str, depth: int) -> Iterator[str]:
    for name, fits in (("allOf", all), ("anyOf", any), ("oneOf", lambda each: sum(each) == 1)):
        ways = _list(schema.get(name))
        if ways and not fits([not any(_errors(value, way, where, depth + 1)) for way in ways]):
            yield f"{where}: it does not fit {name}"
    if "not" in schema and not any(_errors(value, schema["not"], where, depth + 1)):
        yield f"{where}: it fits what it must not fit"


def _of_object(value: dict[str, Any], schema: dict[str, Any], where: str, depth: int) -> Iterator[str]:
    yield from (f"{where}: {name} is missing" for name in missing(value, schema))
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    others = schema.get("additionalProperties", True) if "patternProperties" not in schema else True
    for name, inner in value.items():
        yield from _errors(inner, properties.get(name, others), f"{where}.{name}", depth + 1)
    yield from _counted(len(value), schema, "Properties", where)


def _of_list(value: list[Any], schema: dict[str, Any], where: str, depth: int) -> Iterator[str]:
    first = _list(schema.get("prefixItems"))
    for place, inner in enumerate(value):
        asked = first[place] if place < len(first) else schema.get("items", True)
        yield from _errors(inner, asked, f"{where}[{place}]", depth + 1)
    yield from _counted(len(value), schema, "Items", where)
    if schema.get("uniqueItems") is True and any(_same(a, b) for at, a in enumerate(value) for b in value[:at]):
        yield f"{where}: something stands in it twice"


def _sized(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    if isinstance(value, str):
        yield from _counted(len(value), schema, "Length", where)
    elif _TYPES["number"](value):
        low, high = _number(schema, "minimum"), _number(schema, "maximum")
        above, below = _number(schema, "exclusiveMinimum"), _number(schema, "exclusiveMaximum")
        if (low is not None and value < low) or (above is not None and value <= above):
            yield f"{where}: it is too small"
        if (high is not None and value > high) or (below is not None and value >= below):
            yield f"{where}: it is too large"


def _counted(size: int, schema: dict[str, Any], of: str, where: str) -> Iterator[str]:
    fewest, most = _number(schema, f"min{of}"), _number(schema, f"max{of}")
    if fewest is not None and size < fewest:
        yield f"{where}: it is shorter than min{of}"
    if most is not None and size > most:
        yield f"{where}: it is longer than max{of}"


def _number(schema: dict[str, Any], name: str) -> float | None:
    value = schema.get(name)
    return value if _TYPES["number"](value) else None


def _same(one: Any, other: Any) -> bool:
    """As JSON compares: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True) or (
        _TYPES["number"](one) and _TYPES["number"](other) and one == other
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
