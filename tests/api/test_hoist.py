"""`sightline.hoist`: images out of tool results, on the messages of every shape, as objects."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sightline
from sightline.api.body_preparation import CODECS, recognize_wire
from sightline.model.labels import SHOWN_BELOW
from tests.engine.parts import encoded, picture
from tests.requirements import requirement
from tests.wire import test_model_message as sdk
from tests.wire.bodies import block, calling, part, result, text, tool, user

ONE, TWO = (encoded(picture(seed)) for seed in range(2))
LED = "[image from the tool call c1 (read)]"


def chat(*held: Any) -> list[Any]:
    return [{"role": "user", "content": "look"}, calling("c1"), tool("c1", *held)]


def anthropic(*held: Any) -> list[Any]:
    use = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "/a.png"}}
    return [user(text("look")), {"role": "assistant", "content": [use]}, user(result("c1", *held))]


def responses(*held: Any) -> list[Any]:
    call = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path": "/a.png"}'}
    return [user(text("look")), call, {"type": "function_call_output", "call_id": "c1", "output": list(held)}]


def gemini(*held: Any) -> list[Any]:
    call = {"functionCall": {"id": "c1", "name": "read", "args": {"path": "/a.png"}}}
    answer = {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "a page"}, "parts": list(held)}}
    return [
        {"role": "user", "parts": [{"text": "look"}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [answer]},
    ]


def model_messages(*held: Any) -> list[Any]:
    return [user(text("look")), sdk.calling("c1"), sdk.tool(sdk.answered("c1", sdk.content(*held)))]


def input_image(data: str) -> dict[str, Any]:
    return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}


def inline_data(data: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": "image/png", "data": data}}


SHAPES = {
    "openai_chat": chat(text("a page"), part(ONE)),
    "anthropic": anthropic(text("a page"), block(ONE)),
    "openai_responses": responses({"type": "input_text", "text": "a page"}, input_image(ONE)),
    "gemini": gemini(inline_data(ONE)),
    "model_message": model_messages(text("a page"), sdk.media(ONE)),
}
shaped = pytest.mark.parametrize("shape", SHAPES)


def result_of(shape: str, messages: list[Any]) -> str:
    """What the model reads in the result of the call."""
    held = messages[2]
    inner = {"anthropic": ("content", 0), "gemini": ("parts", 0), "model_message": ("content", 0)}.get(shape, ())
    for step in inner:
        held = held[step]
    return json.dumps(held)


@requirement("library.hoist", "hoist.shape_keyed", "hoist.one_marker", "hoist.named", "hoist.kept")
@shaped
def test_an_image_moves_from_its_result_into_a_user_message(shape: str) -> None:
    before = copy.deepcopy(SHAPES[shape])
    after = sightline.hoist(before)
    assert before == SHAPES[shape], "what is given stays as it is"
    assert after[:2] == before[:2]
    held = result_of(shape, after)
    assert "a page" in held
    assert ONE not in held
    assert held.count("[image shown") == 1
    written = json.dumps(after)
    assert written.count(ONE) == 1
    assert written.index("[image shown") < written.index(LED) < written.index(ONE)


@requirement("hoist.idempotent", "hoist.same_object")
@shaped
def test_hoisted_messages_are_returned_as_the_same_object(shape: str) -> None:
    after = sightline.hoist(SHAPES[shape])
    assert after is not SHAPES[shape]
    assert sightline.hoist(after) is after
    assert sightline.hoist(after, wire=shape) is after


@requirement("hoist.model_message")
def test_sdk_messages_get_images_in_the_sdk_form() -> None:
    assert sightline.hoist(SHAPES["model_message"]) == [
        user(text("look")),
        sdk.calling("c1"),
        sdk.tool(sdk.answered("c1", sdk.content(text("a page"), text(SHOWN_BELOW)))),
        user(text(LED), {"type": "image", "image": ONE, "mediaType": "image/png"}),
    ]


@requirement("hoist.same_object", "hoist.untouched")
@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([], id="nothing"),
        pytest.param([{"role": "user", "content": "hello"}], id="words"),
        pytest.param([user(text("look"), part(ONE))], id="an image that a user pasted"),
        pytest.param([user(text("look"), block(ONE))], id="the same on the Messages wire"),
        pytest.param(chat(text("no image")), id="a result of words"),
        pytest.param(chat(text(ONE[:400] + "!")), id="what only begins like an image"),
        pytest.param(chat(text("iVBORw0KGgo" + "A" * 200)), id="a broken image in a text"),
        pytest.param([{"type": "computer_call_output", "call_id": "c1", "output": input_image(ONE)}], id="a screen"),
        pytest.param(model_messages(sdk.media("cGRm", "application/pdf")), id="a document"),
        pytest.param([None, 7, object(), {"role": "tool", "content": b"bytes"}], id="objects of a program"),
    ],
)
def test_the_same_object_is_returned_if_nothing_moves(messages: list[Any]) -> None:
    assert sightline.hoist(messages) is messages


@requirement("hoist.same_object")
@pytest.mark.parametrize("odd", [None, "text", 7, (), {"a": 1}])
def test_other_values_are_returned_unchanged(odd: Any) -> None:
    assert sightline.hoist(odd) is odd


@requirement("read.stringified", "hoist.json")
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        pytest.param(ONE, [SHOWN_BELOW], id="base64 alone"),
        pytest.param(
            json.dumps([text("a page"), sdk.media(ONE)]), [f"a page\n{SHOWN_BELOW}"], id="content written out"
        ),
        pytest.param(json.dumps({"b64": ONE}), ['{"b64": "[image]"}', SHOWN_BELOW], id="JSON of its own"),
    ],
)
def test_an_image_written_as_text_is_hoisted_with_its_true_type(said: str, kept: list[str]) -> None:
    messages: list[Any] = [calling("c1"), {"role": "tool", "tool_call_id": "c1", "content": said}]
    _, answered, shown = sightline.hoist(messages)
    content = answered["content"]
    assert ([content] if isinstance(content, str) else [each["text"] for each in content]) == kept
    assert shown == user(text(LED), part(ONE))


@requirement("lower.hoist", "hoist.parallel")
def test_a_whole_body_is_accepted_too() -> None:
    held: list[Any] = [calling("c1", "c2"), tool("c2", part(TWO)), tool("c1", part(ONE))]
    body = {"model": "m", "messages": held}
    after = sightline.hoist(body)
    assert after == {"model": "m", "messages": sightline.hoist(held)}
    shown = after["messages"][3]["content"]
    assert [each["image_url"]["url"][-len(ONE) :] for each in shown[1::2]] == [ONE, TWO[-len(ONE) :]]


@requirement("hoist.alias")
def test_hoist_has_an_alias() -> None:
    assert sightline.hoist_tool_result_images is sightline.hoist


def test_an_unknown_wire_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="'telegraph'"):
        sightline.hoist([], wire="telegraph")


@shaped
def test_messages_are_recognised_by_their_shape_inside_a_body(shape: str) -> None:
    assert recognize_wire(SHAPES[shape]) == shape
    assert recognize_wire({CODECS[shape].messages_key: SHAPES[shape]}) == shape


@pytest.mark.parametrize(
    ("message", "shape"),
    [
        (user(text("hello")), "openai_chat"),
        (user(part(ONE)), "openai_chat"),
        (user(block(ONE)), "anthropic"),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}]}, "anthropic"),
        (user(sdk.shown(ONE)), "model_message"),
        (user(sdk.media(ONE, kind="file")), "model_message"),
        (user({"type": "input_text", "text": "hello"}), "openai_responses"),
        ({"type": "message", "role": "user", "content": "hello"}, "openai_responses"),
        ({"parts": [{"text": "hello"}]}, "gemini"),
        (calling("c1"), "openai_chat"),
        ({"role": "tool", "tool_call_id": "c1", "content": ""}, "openai_chat"),
    ],
)
def test_one_message_with_a_distinct_shape_is_enough(message: Any, shape: str) -> None:
    assert recognize_wire([{"role": "user", "content": "words"}, message]) == shape


@requirement("hoist.shape_keyed")
def test_declared_images_move_and_undeclared_ones_get_their_true_type() -> None:
    held = [sdk.media("bm8gaW1hZ2U="), {"type": "file-data", "data": ONE}]
    shown: Any = sightline.hoist(model_messages(*held))[3]["content"]
    assert [shown[1], shown[3]] == [sdk.shown("bm8gaW1hZ2U="), sdk.shown(ONE)]


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.sampled_from([ONE, "tool", "user", "tool-result", "content", "c1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "output", "value", "parts", "data", "tool_call_id"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(st.lists(json_values, max_size=4), st.sampled_from([None, *SHAPES]))
def test_hoisting_any_list_twice_changes_nothing(messages: list[Any], wire: str | None) -> None:
    before = copy.deepcopy(messages)
    after = sightline.hoist(messages, wire=wire)
    assert messages == before
    assert sightline.hoist(after, wire=wire) is after
