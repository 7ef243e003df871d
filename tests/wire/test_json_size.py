"""JSON texts are counted before they are parsed: the count is exact, and it bounds parsing."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.refusal import Refusal
from sightline.wire import json_tree
from sightline.wire.json_document import lift
from sightline.wire.json_tree import (
    MAX_ANSWER_VALUES,
    MAX_BYTES,
    MAX_VALUES,
    SMALL_BYTES,
    PlainTexts,
    count_marks,
    count_values,
    is_oversized,
    measure_json,
    parse_bounded_json,
)
from sightline.wire.text_images import find_text_images
from tests.requirements import requirement

LEAVES = st.none() | st.integers() | st.text('a,[{:]}"\\\n/u')
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


def count_by_hand(value: object) -> int:
    """Return how many commas and opening brackets JSON needs for a value."""
    if not isinstance(value, list | dict):
        return 0
    items = value if isinstance(value, list) else [*value.values()]
    return 1 + max(0, len(items) - 1) + sum(map(count_by_hand, items))


@given(TREES, st.integers(1, 20), st.booleans())
@requirement("load.counted")
def test_values_outside_strings_are_counted_across_any_cut(tree: object, step: int, plain: bool) -> None:
    text = json.dumps(tree, ensure_ascii=plain).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_tree, "_STEP", step)
        assert count_values(text) == count_by_hand(tree)
        assert count_values(bytearray(text)) == count_by_hand(tree)
        assert count_marks(text) == sum(map(text.count, (b",", b"[", b"{")))


@requirement("load.counted")
def test_a_text_is_refused_by_its_values_outside_of_strings() -> None:
    too_many = b"[" + b"1," * MAX_VALUES + b"1]"
    assert isinstance(measure_json(too_many), Refusal)
    assert measure_json(too_many[: SMALL_BYTES // 2]) == 0
    words = json.dumps({"content": "a, b [c] {d}" * 200_000}).encode()
    assert measure_json(words) == 1
    assert isinstance(measure_json(json.dumps({"content": "," * 5_000_000}).encode()), Refusal), "it may hold JSON"
    assert isinstance(measure_json(b'"' + bytes(MAX_BYTES) + b'"'), Refusal)


@requirement("load.counted")
def test_a_refused_text_is_not_parsed() -> None:
    values = b"1," * MAX_VALUES + b"1"
    assert lift(b'{"messages":[%b]}' % values, "token-") is None
    assert is_oversized("[" + values.decode() + "]")
    with pytest.raises(orjson.JSONDecodeError):
        parse_bounded_json(b"[" + b"1," * max(MAX_ANSWER_VALUES, SMALL_BYTES) + b"1]")


@requirement("load.counted")
def test_a_text_that_only_the_slow_parser_reads_has_a_smaller_bound() -> None:
    odd = b'{"a":"\\ud800","b":[%b]}'
    assert lift(odd % (b"1," * 100_000 + b"1"), "token-") is not None
    assert lift(odd % (b"1," * 200_000 + b"1"), "token-") is None


@requirement("load.counted")
def test_json_inside_of_a_text_is_bounded_as_well() -> None:
    image = "iVBORw0KGgo" + "A" * 200
    assert [*find_text_images(json.dumps([*[1] * 1000, image]), PlainTexts())]
    assert not [*find_text_images(json.dumps([*[1] * (MAX_VALUES + 1), image]), PlainTexts())]
