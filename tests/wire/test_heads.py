"""What stands before the first message, on every wire, names a conversation: tools, and what the system says."""

from __future__ import annotations

import pytest

from sightline.model.scene import Json
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, Wire
from sightline.wire.chain import Chain, chain
from sightline.wire.shape import Whole

SAID: Json = {"role": "user", "content": "look", "parts": [{"text": "look"}]}


def named(wire: Wire, **fields: Json) -> Chain:
    messages: list[Json] = [SAID]
    return chain({wire.items: messages, **fields}, wire.head, wire.items, Whole())


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
def test_each_of_them_counts_and_nothing_else_does(wire: Wire, messages: str, keys: list[str]) -> None:
    plain = named(wire)
    assert len(plain.names) == 1
    assert chain({messages: [SAID]}, wire.head, wire.items, Whole()) == plain
    tools: Json = [{"name": "read"}]
    heads = {plain.head, *(named(wire, **{key: tools}).head for key in keys)}
    assert len(heads) == 1 + len(keys)
    assert named(wire, model="other", stream=True, metadata={"id": "x"}) == plain
