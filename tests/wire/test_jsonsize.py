"""JSON texts are counted before they are parsed: the count is exact, and it bounds what is parsed."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.refusal import Refusal
from sightline.wire import jsonsize
from sightline.wire.jsonsize import (
    MOST_BYTES,
    MOST_OF_AN_ANSWER,
    MOST_VALUES,
    SURELY_SMALL,
    count_marks,
    count_values,
    is_oversized,
    measure,
    parse_bounded,
)
from sightline.wire.jsontext import lift
from sightline.wire.rescue import pictures
from sightline.wire.shape import Whole
from tests.requirements import requirement

LEAVES = st.none() | st.integers() | st.text('a,[{:]}"\\\n/u')
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


def counted(value: object) -> int:
    """The commas and opening brackets that JSON needs for a value."""
    if not isinstance(value, list | dict):
        return 0
    items = value if isinstance(value, list) else [*value.values()]
    return 1 + max(0, len(items) - 1) + sum(map(counted, items))


@given(TREES, st.integers(1, 20), st.booleans())
@requirement("load.counted")
def test_values_are_counted_outside_of_strings_wherever_the_text_is_cut(tree: object, step: int, plain: bool) -> None:
    text = json.dumps(tree, ensure_ascii=plain).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonsize, "_STEP", step)
        assert count_values(text) == counted(tree)
        assert count_values(bytearray(text)) == counted(tree)
        assert count_marks(text) == sum(map(text.count, (b",", b"[", b"{")))


@requirement("load.counted")
def test_a_text_is_refused_by_its_values_and_not_by_what_stands_in_its_strings() -> None:
    too_many = b"[" + b"1," * MOST_VALUES + b"1]"
    assert isinstance(measure(too_many), Refusal)
    assert measure(too_many[: SURELY_SMALL // 2]) == 0
    words = json.dumps({"content": "a, b [c] {d}" * 200_000}).encode()
    assert measure(words) == 1
    assert isinstance(measure(json.dumps({"content": "," * 5_000_000}).encode()), Refusal), "it may hold JSON"
    assert isinstance(measure(b'"' + bytes(MOST_BYTES) + b'"'), Refusal)


@requirement("load.counted")
def test_what_is_refused_is_not_parsed() -> None:
    values = b"1," * MOST_VALUES + b"1"
    assert lift(b'{"messages":[%b]}' % values, "token-") is None
    assert is_oversized("[" + values.decode() + "]")
    with pytest.raises(orjson.JSONDecodeError):
        parse_bounded(b"[" + b"1," * max(MOST_OF_AN_ANSWER, SURELY_SMALL) + b"1]")


@requirement("load.counted")
def test_a_text_that_only_the_slow_parser_reads_has_a_smaller_bound() -> None:
    odd = b'{"a":"\\ud800","b":[%b]}'
    assert lift(odd % (b"1," * 100_000 + b"1"), "token-") is not None
    assert lift(odd % (b"1," * 200_000 + b"1"), "token-") is None


@requirement("load.counted")
def test_json_inside_of_a_text_is_bounded_as_well() -> None:
    image = "iVBORw0KGgo" + "A" * 200
    assert [*pictures(json.dumps([*[1] * 1000, image]), Whole())]
    assert not [*pictures(json.dumps([*[1] * (MOST_VALUES + 1), image]), Whole())]
