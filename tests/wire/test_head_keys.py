"""The part of a body before the first message, on every wire, names a conversation: tools and system prompt."""

from __future__ import annotations

import pytest

from sightline.model.scene import Json
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, Wire
from sightline.wire.hash_chain import HashChain, build_hash_chain
from sightline.wire.json_tree import PlainTexts

SAID: Json = {"role": "user", "content": "look", "parts": [{"text": "look"}]}


def named(wire: Wire, **fields: Json) -> HashChain:
    messages: list[Json] = [SAID]
    return build_hash_chain({wire.messages_key: messages, **fields}, wire.head_keys, wire.messages_key, PlainTexts())


@pytest.mark.parametrize(
    ("wire", "messages", "keys"),
    [
        (ANTHROPIC, "messages", ["tools", "system"]),
        (OPENAI_CHAT, "messages", ["tools"]),
        (OPENAI_RESPONSES, "input", ["tools", "instructions"]),
        (GEMINI, "contents", ["tools", "systemInstruction", "system_instruction"]),
    ],
    ids=["anthropic", "chat", "responses", "gemini"],
)
def test_each_head_key_counts_and_no_other(wire: Wire, messages: str, keys: list[str]) -> None:
    plain = named(wire)
    assert len(plain.names) == 1
    assert build_hash_chain({messages: [SAID]}, wire.head_keys, wire.messages_key, PlainTexts()) == plain
    tools: Json = [{"name": "read"}]
    heads = {plain.head_name, *(named(wire, **{key: tools}).head_name for key in keys)}
    assert len(heads) == 1 + len(keys)
    assert named(wire, model="other", stream=True, metadata={"id": "x"}) == plain
