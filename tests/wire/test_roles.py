"""The role of each message, on every wire, and the names of the codecs."""

from __future__ import annotations

from typing import get_args

import pytest

from sightline.model.profile import ContentName, WireName
from sightline.model.scene import Json, Message
from sightline.wire import ANTHROPIC, CONTENTS, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, WIRES, Wire
from tests.wire.bodies import SMALL, block, body, calling, read, result, text, tool, user

OPENS, USER, SPEAKS, TOOL = Message("user", opens_turn=True), Message("user"), Message("assistant"), Message("tool")
OTHER = Message("other")


def build_message(role: str, words: str = "words") -> Json:
    return {"role": role, "content": words}


def build_content(*parts: Json, role: str = "user") -> Json:
    return {"role": role, "parts": list(parts)}


ANSWER: Json = {"functionResponse": {"name": "view", "response": {}}}


@pytest.mark.parametrize(
    ("wire", "tree", "messages"),
    [
        pytest.param(
            ANTHROPIC,
            body(
                build_message("user"),
                build_message("assistant"),
                user(result("t", text("done"))),
                user(block(), result("t")),
                user(result("t"), text("stop")),
                user(block()),
                build_message("system"),
                None,
            ),
            [OPENS, SPEAKS, TOOL, TOOL, Message("tool", opens_turn=True), USER, OTHER, OTHER],
            id="anthropic",
        ),
        pytest.param(
            OPENAI_CHAT,
            body(
                build_message("system"),
                build_message("user"),
                calling("c"),
                tool("c", text("done")),
                {"role": "function", "content": "done"},
                build_message("developer"),
                "words",
            ),
            [OTHER, OPENS, SPEAKS, TOOL, TOOL, OTHER, OTHER],
            id="chat",
        ),
        pytest.param(
            OPENAI_RESPONSES,
            {
                "input": [
                    build_message("developer"),
                    build_message("user"),
                    {"type": "function_call", "call_id": "c", "name": "view", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "done"},
                    {"type": "message", **user()},
                    build_message("assistant"),
                ]
            },
            [OTHER, OPENS, SPEAKS, TOOL, USER, SPEAKS],
            id="responses",
        ),
        pytest.param(
            GEMINI,
            {
                "contents": [
                    build_content({"text": "look"}),
                    build_content({"functionCall": {"name": "view", "args": {}}}, role="model"),
                    build_content(ANSWER),
                    build_content(ANSWER, {"text": "stop"}),
                    build_content({"inlineData": {"mimeType": "image/png", "data": SMALL}}),
                    build_content({"text": "a word"}, role="function"),
                    "words",
                ]
            },
            [OPENS, SPEAKS, TOOL, Message("tool", opens_turn=True), USER, OPENS, USER],
            id="gemini",
        ),
    ],
)
def test_every_message_has_its_role(wire: Wire, tree: Json, messages: list[Message]) -> None:
    assert list(read(wire, tree).scene.messages) == messages


def test_every_codec_has_its_known_name() -> None:
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
def test_the_provider_s_own_calls_are_the_assistant_s(kind: str) -> None:
    tree: Json = {
        "input": [build_message("user"), {"type": kind, "id": "x_1"}, {"type": "item_reference", "id": "x_2"}]
    }
    assert list(read(OPENAI_RESPONSES, tree).scene.messages) == [OPENS, SPEAKS, OTHER]


@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES], ids=lambda wire: wire.name)
def test_an_answer_streams_only_if_the_body_says_so(wire: Wire) -> None:
    asked: list[Json] = [True, False, None, "true", 1]
    assert [read(wire, {wire.messages_key: [], "stream": each}).scene.stream for each in asked] == [True, *[False] * 4]
    assert not read(wire, {wire.messages_key: []}).scene.stream
