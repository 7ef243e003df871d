"""Extract JSON answers of models from the surrounding text, and validate them against the caller's schema.

Schemas are untrusted. They are compiled and applied in a worker, so that a schema that hangs or crashes the library
only causes an error message. References to other documents are never fetched.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from sightline.model.fence import neutralize
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.pixels.workers import WorkerPool

SCHEMA_TASK = {"schema": "sightline.vision.json_answers:schema_task"}

_MAX_ANSWER_LENGTH = 200_000  # characters of an answer that are searched for an object
_MAX_TRIES = 100
_FENCED_BLOCK = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"\{|(?:\[\s*)+\{?")
_LIST_OF_OBJECTS = re.compile(r"\[.*\{\Z", re.DOTALL)  # also one that is cut off
_MAX_ERRORS, _MAX_ERROR_LENGTH = 50, 300  # that are reported
_MAX_COUNTED_ERRORS = 50_000  # an answer has fewer fields
_BACKTRACKING = 100_000  # steps of a pattern that needs a backtracking engine
_NOT_CHECKED = ["$: it could not be validated"]


def find_object(text: str) -> dict[str, Json] | None:
    """Return the JSON object in a text: the whole text, in a code block, or within other text. None: there is none.

    An object inside an array is not one: the answer is then a list.
    """
    text = text[:_MAX_ANSWER_LENGTH]
    for piece in (text, *(match[1] for match in _FENCED_BLOCK.finditer(text))):
        if isinstance(found := _parse(piece.strip()), dict):
            return found
    start = 0
    for _ in range(_MAX_TRIES):
        match = _OPENING.search(text, start)
        if match is None:
            return None
        value, start = _parse_at(text, match.start())
        if isinstance(value, dict):
            return cast("dict[str, Json]", value)
        if _LIST_OF_OBJECTS.match(match[0]) or _contains_object(value):
            return None
    return None


def _parse(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None


def _parse_at(text: str, start: int) -> tuple[object, int]:
    """Return the JSON value that begins at a place, and where it ends; None: there is none."""
    try:
        return json.JSONDecoder(parse_constant=_reject_constant).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start + 1


def _contains_object(value: object) -> bool:
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            return True
        pending += each if isinstance(each, list) else ()
    return False


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


def check_answer(workers: WorkerPool, answer: dict[str, Json], schema: Json) -> tuple[dict[str, Json], list[str]]:
    """Return an answer without the optional fields that are null, and how it violates its schema, with the paths.

    Many models write null for what they did not find; a field stays if its schema allows null.
    """
    result = _run_schema_task(workers, {"schema": schema, "value": answer})
    if isinstance(result, Refusal) or "errors" not in result:
        return answer, _NOT_CHECKED
    for path in result["absent"]:
        _remove(answer, path)
    return answer, result["errors"]


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
        absent = _leave_out_nulls(validator, task["value"])
        errors = list(_format_errors(validator.iter_errors(task["value"])))
        return {"errors": errors, "absent": absent}, b""
    except (ValueError, TypeError) as error:
        return {"unusable": str(error).partition("\n")[0][:_MAX_ERROR_LENGTH]}, b""


def _leave_out_nulls(validator: Any, value: Any) -> list[Sequence[str | int]]:
    """Remove the fields that are null and may be neither null nor required; return their paths."""
    errors = list(islice(validator.iter_errors(value), _MAX_COUNTED_ERRORS))
    paths = [error.instance_path for error in errors if error.instance is None and _is_field(error.instance_path)]
    errors_at = Counter(map(tuple, paths))
    return _remove_nulls(validator, value, [list(path) for path in errors_at], errors_at, len(errors))


def _remove_nulls(
    validator: Any, value: Any, paths: list[Sequence[str | int]], errors_at: Counter[tuple[str | int, ...]], before: int
) -> list[Sequence[str | int]]:
    """Remove the nulls at these paths that are optional, and return their paths; `before` is the number of errors.

    All are removed at once. If that causes other errors, each half is tried, so few required fields cost little.
    """
    if not paths:
        return []
    for path in paths:
        _remove(value, path)
    after = _count_errors(validator, value)
    if after == before - sum(errors_at[tuple(path)] for path in paths) or (len(paths) == 1 and after < before):
        return paths
    for path in paths:
        _find_parent(value, path)[path[-1]] = None
    if len(paths) == 1:
        return []
    middle = len(paths) // 2
    removed = _remove_nulls(validator, value, paths[:middle], errors_at, before)
    return [*removed, *_remove_nulls(validator, value, paths[middle:], errors_at, _count_errors(validator, value))]


def _count_errors(validator: Any, value: Any) -> int:
    return sum(1 for _ in islice(validator.iter_errors(value), _MAX_COUNTED_ERRORS))


def _is_field(path: Sequence[str | int]) -> bool:
    return bool(path) and isinstance(path[-1], str)


def _find_parent(value: Any, path: Sequence[str | int]) -> Any:
    for step in path[:-1]:
        value = value[step]
    return value


def _remove(value: Any, path: Sequence[str | int]) -> None:
    del _find_parent(value, path)[path[-1]]


def _format_errors(errors: Iterator[Any]) -> Iterator[str]:
    for count, error in enumerate(errors):
        if count == _MAX_ERRORS:
            yield "$: there are more errors"
            return
        yield f"{_format_path(error.instance_path)}: {error.message}"[:_MAX_ERROR_LENGTH]


def _format_path(path: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
