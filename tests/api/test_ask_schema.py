"""JSON in what a model writes, and how it breaks its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.pixels.workers import WorkerLimits, WorkerPool
from sightline.runtime import get_shared_workers
from sightline.vision import json_answers as json_schema
from sightline.vision.json_answers import SCHEMA_TASK, find_missing_fields, find_object, find_schema_fault, schema_task
from tests.requirements import requirement
from tests.scripted.server import Exchange, Reply, Server

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(LEAVES, lambda each: st.lists(each) | st.dictionaries(st.text(), each), max_leaves=8)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)
PLAIN = st.text(st.characters(exclude_characters='{}[]`"', exclude_categories=["Cs"]))


def errors(value: Any, schema: Any) -> list[str]:
    """As a worker finds them."""
    found: list[str] = schema_task(json.dumps({"schema": schema, "value": value}).encode(), {})[0]["errors"]
    return found


@requirement("ask.schema_padded")
@given(OBJECTS, PLAIN, PLAIN, st.sampled_from(["", "```json\n{}\n```", "```\n{}\n```", "{}"]))
def test_an_object_is_found_inside_any_text(found: dict[str, Any], before: str, after: str, fence: str) -> None:
    written = json.dumps(found)
    assert find_object(before + (fence.replace("{}", written) or written) + after) == found


@given(st.text(st.sampled_from('{}[]":,`\n abtrue1')))
def test_any_text_can_be_searched_for_an_object(text: str) -> None:
    assert isinstance(find_object(text), dict | None)


@pytest.mark.parametrize(
    "text",
    [
        *("", "words", "[1]", "{", '{"a": NaN}', '{"a": Infinity}', "[" * 100_000, '{"a":' * 100_000),
        *('[{"a": 1}]', 'Here it is: [ {"a": 1}, {"a": 2} ]', '```json\n[{"a": 1}]\n```', '[[{"a": 1}]]'),
        *('[1, {"a": 1}]', '[{"a": 1}, {"a":', '[]\n[\n  {"a": 1}\n]'),
    ],
)
def test_text_without_an_object_gives_none(text: str) -> None:
    assert find_object(text) is None


@pytest.mark.parametrize("text", ['[1] {"a": 1}', '[see below] {"a": 1}', '[] {"a": 1} [{"b": 2}]', '{not} {"a": 1}'])
def test_an_object_is_found_after_brackets(text: str) -> None:
    assert find_object(text) == {"a": 1}


@given(OBJECTS)
def test_a_value_matches_a_schema_made_from_it(found: dict[str, Any]) -> None:
    assert errors(found, {"type": "object", "const": found, "required": list(found)}) == []
    assert find_missing_fields(found, {"required": list(found)}) == []


@given(VALUES, VALUES)
def test_any_schema_can_be_checked(value: Any, schema: Any) -> None:
    told, _ = schema_task(json.dumps({"schema": schema, "value": value}).encode(), {})
    assert isinstance(told.get("errors", []), list)
    assert isinstance(told.get("unusable", ""), str)


BROKEN: list[tuple[Any, dict[str, Any]]] = [
    (1, {"type": "string"}),
    (True, {"type": "integer"}),
    (1.5, {"type": ["integer", "null"]}),
    ({}, {"required": ["a"]}),
    ({"a": 1}, {"properties": {"a": {"type": "string"}}}),
    ({"a": {"b": 1}}, {"properties": {"a": {"properties": {"b": {"enum": [2]}}}}}),
    ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}),
    ({"b": 1}, {"additionalProperties": {"type": "string"}}),
    ([1, "a"], {"items": {"type": "integer"}}),
    (["a"], {"prefixItems": [{"type": "integer"}]}),
    ([1, 1], {"uniqueItems": True}),
    ([], {"minItems": 1}),
    ([1, 2], {"maxItems": 1}),
    ({}, {"minProperties": 1}),
    ("", {"minLength": 1}),
    ("ab", {"maxLength": 1}),
    (0, {"minimum": 1}),
    (2, {"maximum": 1}),
    (1, {"exclusiveMinimum": 1}),
    (1, {"exclusiveMaximum": 1}),
    (True, {"enum": [1]}),
    (1, {"const": True}),
    (1, {"allOf": [{}, {"type": "string"}]}),
    (1, {"anyOf": [{"type": "string"}, {"minimum": 2}]}),
    (1, {"oneOf": [{}, {"minimum": 1}]}),
    (1, {"not": {"type": "integer"}}),
    ("b", {"pattern": "^a"}),
    ("aaaa", {"pattern": "^(?!a)"}),
    (1, {"$ref": "#/$defs/word", "$defs": {"word": {"type": "string"}}}),
    ({"a": {"a": 1}}, {"type": "object", "properties": {"a": {"$ref": "#"}}}),
    (1, {"if": {"type": "integer"}, "then": {"minimum": 2}}),
    ({"a": 1}, {"unevaluatedProperties": False}),
    ({"x-a": "b"}, {"patternProperties": {"^x-": {"type": "integer"}}}),
    ([1], {"contains": {"type": "string"}}),
    (3, {"multipleOf": 2}),
    ({"a": 1}, {"dependentRequired": {"a": ["b"]}}),
    (1, {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}),
]


@requirement("ask.schema_errors")
@pytest.mark.parametrize(("value", "schema"), BROKEN)
def test_each_violation_is_listed_once(value: Any, schema: dict[str, Any]) -> None:
    assert len(errors(value, schema)) == 1, errors(value, schema)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1.0, {"type": "integer"}),
        (None, {"type": ["string", "null"]}),
        (1, {"enum": [1.0]}),
        ({"x-a": 1}, {"patternProperties": {"^x-": {}}, "additionalProperties": False}),
        (1, {"oneOf": [{"type": "string"}, {"minimum": 1}]}),
        ("a", {"format": "date"}),
        (1, True),
    ],
)
def test_a_valid_value_has_no_violations(value: Any, schema: Any) -> None:
    assert errors(value, schema) == []


def test_a_violation_has_its_place_and_no_text_of_the_answer() -> None:
    schema: Any = {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}}
    (told,) = errors({"a": [{}, {"b": 4711}]}, schema)
    assert (told.startswith("$.a[1].b: "), '"string"' in told, "4711" in told) == (True, True, False)
    many = errors(["x" * 400] * 200, {"items": {"const": "y" * 400}})
    assert len(many) == 51
    assert max(map(len, many)) <= 300


@requirement("ask.schema_errors")
def test_an_answer_is_validated_in_a_worker() -> None:
    _, told = json_schema.check_answer(get_shared_workers(), {"a": "b"}, {"properties": {"a": {"pattern": "^a"}}})
    assert [(each.startswith("$.a: "), each.endswith(' "^a"')) for each in told] == [(True, True)]
    right = json_schema.check_answer(get_shared_workers(), {"a": "a"}, {"properties": {"a": {"pattern": "^a"}}})
    assert right == ({"a": "a"}, [])


@requirement("ask.schema_optional")
@pytest.mark.parametrize(
    ("value", "schema", "left", "faulty"),
    [
        ({"a": None, "b": "x"}, {"properties": {"a": {"type": "string"}}}, {"b": "x"}, []),
        ({"a": None}, {"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"a": None}, ["$.a"]),
        ({"a": None}, {"properties": {"a": {"type": ["string", "null"]}}}, {"a": None}, []),
        ({"a": None}, {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}, {}, []),
        ({"a": None}, {"properties": {"a": {"$ref": "#/$defs/w"}}, "$defs": {"w": {"enum": ["x"]}}}, {}, []),
        (
            {"in": {"a": None, "b": None}, "of": [{"a": None}, None]},
            {
                "properties": {
                    "in": {"properties": {"a": {"type": "string"}, "b": {"type": "number"}}, "required": ["b"]},
                    "of": {"items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                }
            },
            {"in": {"b": None}, "of": [{}, None]},
            ["$.in.b", "$.of[1]"],
        ),
        ({"a": ""}, {"properties": {"a": {"type": "number"}}}, {"a": ""}, ["$.a"]),
    ],
)
def test_an_optional_field_that_is_null_is_left_out(value: Any, schema: Any, left: Any, faulty: list[str]) -> None:
    found, told = json_schema.check_answer(get_shared_workers(), value, schema)
    assert (found, [each.partition(": ")[0] for each in told]) == (left, faulty)


@requirement("ask.schema_optional")
def test_any_number_of_optional_nulls_is_left_out() -> None:
    names = [f"f{index}" for index in range(2_000)]
    row: Any = {"properties": {name: {"type": "string"} for name in names}, "required": ["f7", "f1999"]}
    rows = {"properties": {"rows": {"items": row}}}
    few = dict.fromkeys(["f7", "f8", "f1999"])
    for value, schema, removed in (({**dict.fromkeys(names)}, row, 1_998), ({"rows": [few] * 40}, rows, 40)):
        task = json.dumps({"schema": schema, "value": value}).encode()
        result, _ = schema_task(task, {})
        assert len(result["absent"]) == removed
        assert {path[-1] for path in result["absent"]}.isdisjoint(row["required"])


@requirement("ask.schema_unusable")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://127.0.0.1:9/schema.json"},
        {"$ref": "http://127.0.0.1:9/schema.json#/$defs/a"},
        {"$ref": "file:///etc/hostname"},
        {"$ref": "other.json"},
        {"$ref": "#/$defs/absent"},
        {"$schema": "https://127.0.0.1:9/meta.json"},
        {"type": "quantity"},
        {"pattern": "("},
        {"minimum": "one"},
    ],
)
def test_an_unusable_schema_is_refused_before_any_request(schema: Any) -> None:
    assert find_schema_fault(get_shared_workers(), schema)
    assert find_schema_fault(get_shared_workers(), {"type": "object"}) == ""


@requirement("ask.schema_unusable")
def test_a_schema_reference_fetches_nothing(tmp_path: Path) -> None:
    """A file and a server hold what it refers to, and nobody opens either."""
    (tmp_path / "schema.json").write_text('{"type": "string"}')
    came: list[str] = []

    def answer(exchange: Exchange) -> Reply:
        came.append(exchange.path)
        return Reply(200, (("content-type", "application/json"),), (b'{"type": "string"}',))

    with Server(answer, lambda: False) as server:
        for address in (f"http://127.0.0.1:{server.port}/schema.json", (tmp_path / "schema.json").as_uri()):
            assert find_schema_fault(get_shared_workers(), {"$ref": address})
    assert came == []


@requirement("ask.schema_errors")
def test_a_pathological_pattern_times_out() -> None:
    (told,) = errors("a" * 60 + "b", {"pattern": "^(?:(?=a)a+)+$"})
    assert "backtracking" in told
    assert len(errors("a" * 60 + "b", {"pattern": "^(a+)+$"})) == 1


@requirement("ask.schema_errors")
def test_a_recursive_schema_times_out() -> None:
    again: Any = {"properties": {"a": {"$ref": "#"}}}
    schema: Any = {"type": "object", "anyOf": [again, {**again, "minProperties": 1}]}
    value: Any = 1
    for _ in range(40):
        value = {"a": value}
    with WorkerPool(SCHEMA_TASK, count=1, limits=WorkerLimits(seconds=4)) as few:
        assert [each[:3] for each in json_schema.check_answer(few, value, schema)[1]] == ["$: "]
        assert json_schema.check_answer(few, {}, schema) == ({}, [])
