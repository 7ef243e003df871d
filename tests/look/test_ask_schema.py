"""JSON in what a model writes, and how it breaks its schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.look.ask_schema import errors, missing, object_in
from tests.requirements import requirement

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(LEAVES, lambda each: st.lists(each) | st.dictionaries(st.text(), each), max_leaves=8)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)
PLAIN = st.text(st.characters(exclude_characters='{}[]`"', exclude_categories=["Cs"]))


@requirement("ask.schema_padded")
@given(OBJECTS, PLAIN, PLAIN, st.sampled_from(["", "```json\n{}\n```", "```\n{}\n```", "{}"]))
def test_an_object_is_found_whatever_stands_around_it(
    found: dict[str, Any], before: str, after: str, fence: str
) -> None:
    written = json.dumps(found)
    assert object_in(before + (fence.replace("{}", written) or written) + after) == found


@given(st.text(st.sampled_from('{}[]":,`\n abtrue1')))
def test_no_text_is_too_strange(text: str) -> None:
    assert isinstance(object_in(text), dict | None)


@pytest.mark.parametrize(
    "text", ["", "words", "[1]", "{", '{"a": NaN}', '{"a": Infinity}', "[" * 100_000, '{"a":' * 100_000]
)
def test_what_holds_no_object(text: str) -> None:
    assert object_in(text) is None


@given(OBJECTS)
def test_a_schema_of_its_own_value_is_fulfilled(found: dict[str, Any]) -> None:
    assert errors(found, {"type": "object", "const": found, "required": list(found)}) == []
    assert missing(found, {"required": list(found)}) == []


@given(VALUES, VALUES)
def test_no_schema_is_too_strange(value: Any, schema: Any) -> None:
    assert isinstance(errors(value, schema), list)


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
]


@requirement("ask.schema_errors")
@pytest.mark.parametrize(("value", "schema"), BROKEN)
def test_each_breach_is_told_once(value: Any, schema: dict[str, Any]) -> None:
    assert len(errors(value, schema)) == 1, errors(value, schema)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1.0, {"type": "integer"}),
        (None, {"type": ["string", "null"]}),
        (1, {"enum": [1.0]}),
        ({"x-a": 1}, {"patternProperties": {"^x-": {}}, "additionalProperties": False}),
        (1, {"oneOf": [{"type": "string"}, {"minimum": 1}]}),
        ("a", {"pattern": "b", "format": "date"}),
        (1, {"type": "a word of tomorrow"}),
        (1, True),
    ],
)
def test_what_is_right_or_not_checked_is_no_breach(value: Any, schema: Any) -> None:
    assert errors(value, schema) == []


def test_the_place_of_a_breach_is_told() -> None:
    schema: Any = {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}}
    assert errors({"a": [{}, {"b": 1}]}, schema) == ["$.a[1].b: it is not of type string"]
