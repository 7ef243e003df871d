"""Who speaks in each message, on every wire, and by which names the codecs are known."""

from __future__ import annotations

from typing import get_args

import pytest

from sightline.model.profile import ContentName, WireName
from sightline.model.scene import Json, Message
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, WIRES, Wire
from sightline.wire.contents import CONTENTS
from tests.wire.bodies import SMALL, block, body, calling, read, result, text, tool, user

OPENS, USER, SPEAKS, TOOL = Message("user", opens=True), Message("user"), Message("assistant"), Message("tool")
OTHER = Message("other")


def said(role: str, words: str = "words") -> Json:
    return {"role": role, "content": words}


def spoken(*parts: Json, role: str = "user") -> Json:
    return {"role": role, "parts": list(parts)}


ANSWER: Json = {"functionResponse": {"name": "view", "response": {}}}


@pytest.mark.parametrize(
    ("wire", "tree", "messages"),
    [
        pytest.param(
            ANTHROPIC,
            body(
                said("user"),
                said("assistant"),
                user(result("t", text("done"))),
                user(block(), result("t")),
                user(result("t"), text("stop")),
                user(block()),
                said("system"),
                None,
            ),
            [OPENS, SPEAKS, TOOL, TOOL, Message("tool", opens=True), USER, OTHER, OTHER],
            id="anthropic",
        ),
        pytest.param(
            OPENAI_CHAT,
            body(
                said("system"),
                said("user"),
                calling("c"),
                tool("c", text("done")),
                {"role": "function", "content": "done"},
                said("developer"),
                "words",
            ),
            [OTHER, OPENS, SPEAKS, TOOL, TOOL, OTHER, OTHER],
            id="chat",
        ),
        pytest.param(
            OPENAI_RESPONSES,
            {
                "input": [
                    said("developer"),
                    said("user"),
                    {"type": "function_call", "call_id": "c", "name": "view", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "done"},
                    {"type": "message", **user()},
                    said("assistant"),
                ]
            },
            [OTHER, OPENS, SPEAKS, TOOL, USER, SPEAKS],
            id="responses",
        ),
        pytest.param(
            GEMINI,
            {
                "contents": [
                    spoken({"text": "look"}),
                    spoken({"functionCall": {"name": "view", "args": {}}}, role="model"),
                    spoken(ANSWER),
                    spoken(ANSWER, {"text": "stop"}),
                    spoken({"inlineData": {"mimeType": "image/png", "data": SMALL}}),
                    spoken({"text": "a word"}, role="function"),
                    "words",
                ]
            },
            [OPENS, SPEAKS, TOOL, Message("tool", opens=True), USER, OPENS, USER],
            id="gemini",
        ),
    ],
)
def test_every_message_has_its_speaker(wire: Wire, tree: Json, messages: list[Message]) -> None:
    assert list(read(wire, tree).scene.messages) == messages


def test_every_codec_has_the_name_by_which_profiles_and_callers_know_it() -> None:
    assert [wire.name for wire in WIRES] == list(get_args(WireName))
    assert [content.name for content in CONTENTS] == list(get_args(ContentName))


@pytest.mark.parametrize(
    "kind",
    [
        "reasoning",
        "image_generation_call",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "mcp_call",
    ],
)
def test_what_the_provider_did_for_the_model_is_the_model_s(kind: str) -> None:
    tree: Json = {"input": [said("user"), {"type": kind, "id": "x_1"}, {"type": "item_reference", "id": "x_2"}]}
    assert list(read(OPENAI_RESPONSES, tree).scene.messages) == [OPENS, SPEAKS, OTHER]


@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES], ids=lambda wire: wire.name)
def test_an_answer_is_a_stream_only_where_the_body_says_so(wire: Wire) -> None:
    asked: list[Json] = [True, False, None, "true", 1]
    assert [read(wire, {wire.items: [], "stream": each}).scene.stream for each in asked] == [True, *[False] * 4]
    assert not read(wire, {wire.items: []}).scene.stream
