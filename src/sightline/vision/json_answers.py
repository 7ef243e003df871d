"""Extract JSON answers of models from the surrounding text, and validate them against the caller's schema.

Schemas are untrusted. They are compiled and applied in a worker, so that a schema that hangs or crashes the library
only causes an error message. References to other documents are never fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sightline.model.fence import neutralize
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.pixels.workers import WorkerPool

SCHEMA_TASK = {"schema": "sightline.vision.json_answers:schema_task"}

_MAX_ANSWER_LENGTH = 200_000  # characters of an answer that are searched for an object
_MAX_TRIES = 50
_FENCED_BLOCK = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_MAX_ERRORS, _MAX_ERROR_LENGTH = 50, 300
_BACKTRACKING = 100_000  # steps of a pattern that needs a backtracking engine
_NOT_CHECKED = ["$: it could not be validated"]


def find_object(text: str) -> dict[str, Json] | None:
    """Return the JSON object in a text: the whole text, in a code block, or within other text. None: there is none."""
    text = text[:_MAX_ANSWER_LENGTH]
    for piece in (text, *(match[1] for match in _FENCED_BLOCK.finditer(text))):
        if isinstance(found := _parse(piece.strip()), dict):
            return found
    starts = (match.start() for match in re.finditer(r"\{", text))
    for _, start in zip(range(_MAX_TRIES), starts, strict=False):
        if (found := _parse_at(text, start)) is not None:
            return found
    return None


def _parse(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None


def _parse_at(text: str, start: int) -> dict[str, Json] | None:
    try:
        value, _ = json.JSONDecoder(parse_constant=_reject_constant).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Json]", value)


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def neutralize_fences(answer: dict[str, Json]) -> dict[str, Json]:
    """Return a copy in which no string can open or close one of our fences. Not recursive: it may be nested deeply."""
    copy: dict[str, Json] = {}
    pending: list[tuple[Json, Json]] = [(answer, copy)]
    while pending:
        source, target = pending.pop()
        pairs = source.items() if isinstance(source, dict) else enumerate(cast("list[Json]", source))
        for key, value in pairs:
            inner: Json = neutralize(value) if isinstance(value, str) else value
            if isinstance(value, dict | list):
                inner = {} if isinstance(value, dict) else []
                pending.append((value, inner))
            if isinstance(target, dict):
                target[neutralize(str(key))] = inner
            else:
                cast("list[Json]", target).append(inner)
    return copy


def find_missing_fields(answer: Mapping[str, Json], schema: Mapping[str, Json]) -> list[str]:
    """Return the required top-level fields that an answer lacks."""
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    return [name for name in names if isinstance(name, str) and name not in answer]


def find_schema_fault(workers: WorkerPool, schema: Json) -> str:
    """Return why a schema can't be used; empty if it can."""
    result = _run_schema_task(workers, {"schema": schema})
    if isinstance(result, Refusal):
        return "it is too complex"
    return str(result.get("unusable", ""))


def find_schema_errors(workers: WorkerPool, answer: Json, schema: Json) -> list[str]:
    """Return how an answer violates its schema, each error with its path."""
    result = _run_schema_task(workers, {"schema": schema, "value": answer})
    return _NOT_CHECKED if isinstance(result, Refusal) or "errors" not in result else result["errors"]


def _run_schema_task(workers: WorkerPool, task: dict[str, Json]) -> dict[str, Any] | Refusal:
    result = workers.run_sync("schema", json.dumps(task).encode())
    return result if isinstance(result, Refusal) else result.facts


def schema_task(data: bytes, _: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Compile a schema, and validate a value if there is one; runs in a worker."""
    import jsonschema_rs

    task = json.loads(data)
    try:
        validator = jsonschema_rs.validator_for(
            task["schema"],
            mask="it",
            offline=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKING),
        )
        if "value" not in task:
            return {}, b""
        return {"errors": list(_format_errors(validator.iter_errors(task["value"])))}, b""
    except (ValueError, TypeError) as error:
        return {"unusable": str(error).partition("\n")[0][:_MAX_ERROR_LENGTH]}, b""


def _format_errors(errors: Iterator[Any]) -> Iterator[str]:
    for count, error in enumerate(errors):
        if count == _MAX_ERRORS:
            yield "$: there are more errors"
            return
        yield f"{_format_path(error.instance_path)}: {error.message}"[:_MAX_ERROR_LENGTH]


def _format_path(path: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
