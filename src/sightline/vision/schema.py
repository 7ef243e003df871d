"""JSON answers: taken out of what a model wrote around them, and held against the schema that was asked for.

The schema is a caller's: it is compiled and applied in a worker, where one that would never come to its end, or brings
the library down, costs a sentence. Nothing that it refers to elsewhere is ever fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sightline.model.fence import neutral
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.pixels.worker import Workers

TASK = {"schema": "sightline.vision.schema:schema_task"}

_LONGEST = 200_000  # characters of an answer in which an object is looked for
_TRIES = 50
_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_MOST_ERRORS, _LONGEST_ERROR = 50, 300
_BACKTRACKING = 100_000  # steps of a pattern that no linear engine takes
_UNTOLD = ["$: it could not be held against its schema"]


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


def harmless(found: dict[str, Json]) -> dict[str, Json]:
    """The same, and no word of it opens or closes a fence of ours. However deep it is: nothing here recurses."""
    whole: dict[str, Json] = {}
    left: list[tuple[Json, Json]] = [(found, whole)]
    while left:
        given, made = left.pop()
        pairs = given.items() if isinstance(given, dict) else enumerate(cast("list[Json]", given))
        for key, value in pairs:
            inner: Json = neutral(value) if isinstance(value, str) else value
            if isinstance(value, dict | list):
                inner = {} if isinstance(value, dict) else []
                left.append((value, inner))
            if isinstance(made, dict):
                made[neutral(str(key))] = inner
            else:
                cast("list[Json]", made).append(inner)
    return whole


def missing(found: Mapping[str, Json], schema: Mapping[str, Json]) -> list[str]:
    """The required fields of the whole answer that are not there."""
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    return [name for name in names if isinstance(name, str) and name not in found]


def unusable(workers: Workers, schema: Json) -> str:
    """Why a schema is none that an answer could be held against; empty: it is one."""
    found = _held(workers, {"schema": schema})
    if isinstance(found, Refusal):
        return "it is too involved"
    return str(found.get("unusable", ""))


def errors(workers: Workers, found: Json, schema: Json) -> list[str]:
    """How an answer breaks its schema, each with the place where."""
    told = _held(workers, {"schema": schema, "value": found})
    return _UNTOLD if isinstance(told, Refusal) or "errors" not in told else told["errors"]


def _held(workers: Workers, asked: dict[str, Json]) -> dict[str, Any] | Refusal:
    told = workers.ask("schema", json.dumps(asked).encode())
    return told if isinstance(told, Refusal) else told.facts


def schema_task(data: bytes, _: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """For a worker: compile a schema, and hold a value against it where there is one."""
    import jsonschema_rs

    asked = json.loads(data)
    try:
        validator = jsonschema_rs.validator_for(
            asked["schema"],
            mask="it",
            offline=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKING),
        )
        if "value" not in asked:
            return {}, b""
        return {"errors": list(_told(validator.iter_errors(asked["value"])))}, b""
    except (ValueError, TypeError) as trouble:
        return {"unusable": str(trouble).partition("\n")[0][:_LONGEST_ERROR]}, b""


def _told(found: Iterator[Any]) -> Iterator[str]:
    for count, error in enumerate(found):
        if count == _MOST_ERRORS:
            yield "$: there are more"
            return
        yield f"{_place(error.instance_path)}: {error.message}"[:_LONGEST_ERROR]


def _place(path: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
