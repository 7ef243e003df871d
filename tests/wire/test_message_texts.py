"""The texts of a message, on every wire, and nothing else of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.scene import Json
from sightline.wire.json_document import lift
from sightline.wire.json_tree import PlainTexts
from sightline.wire.message_texts import list_message_texts
from tests.wire.bodies import TOKEN, block, result, text
from tests.wire.json_texts import base64_like


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "user", "content": "plain"}, ["plain"]),
        ({"role": "user", "content": [text("one"), block(), text("two")]}, ["one", "two"]),
        ({"role": "user", "content": [result("t", text("from a tool")), text("mine")]}, ["mine"]),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, text("said")]}, ["said"]),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}, []),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "in"}]}, ["in"]),
        ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "out"}]}, ["out"]),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, []),
        ({"type": "function_call_output", "call_id": "c", "output": "from a tool"}, []),
        ({"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "said"}]}, ["said"]),
        ({"role": "user", "parts": [{"inlineData": {"data": "x"}}, {"text": "what?"}]}, ["what?"]),
        ({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"text": "x"}}}]}, []),
        ({"role": "user", "content": "half \ud83d a letter"}, ["half ? a letter"]),
        (None, []),
        ([], []),
    ],
)
def test_texts_are_found_on_every_wire(message: Json, said: list[str]) -> None:
    assert list_message_texts(message, PlainTexts()) == said


def test_payloads_are_left_out_of_texts() -> None:
    for length in (300, 20_000, 200_000):  # the longest are lifted out of the body
        body = {"content": f"see {base64_like(length)} there"}
        document = lift(json.dumps(body).encode(), TOKEN)
        assert document is not None
        assert list_message_texts(document.tree, document) == ["see … there"]


trees: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["content", "parts", "text", "type", "thought", "role"]), inner, max_size=4)
    ),
)


@given(trees)
def test_texts_of_any_message_can_be_encoded(message: Json) -> None:
    for each in list_message_texts(message, PlainTexts()):
        each.encode()
