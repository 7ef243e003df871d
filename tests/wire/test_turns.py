"""Where a turn begins: at a person's own text, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from sightline.model.scene import Json
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, Wire
from tests.requirements import requirement
from tests.wire.bodies import SMALL, block, body, calling, part, read, result, text, tool, user

REMINDER = "<system-reminder>\nthe date has changed\n</system-reminder>"
LEAD = "Attached media from tool result:"
SAID = "a person"
OPENING = {SAID, f"{SAID} beside a result", f"{SAID} beside a reminder"}
CASES: list[tuple[Wire, dict[str, Any]]] = [
    (
        ANTHROPIC,
        {
            SAID: {"role": "user", "content": "look"},
            "a result": user(result("t", block())),
            f"{SAID} beside a result": user(result("t", block()), text("stop")),
            "a result and a reminder": user(result("t", block()), text(REMINDER)),
            f"{SAID} beside a reminder": user(text(REMINDER), text("look")),
            "a reminder": user(text(REMINDER)),
            "the system": {"role": "system", "content": "be brief"},
            "the assistant": {"role": "assistant", "content": "yes"},
            "an image alone": user(block()),
            "our own move": user(result("t", text("a")), text("[image from the tool call t (read)]"), block()),
            "blanks": user(text(" \n")),
        },
    ),
    (
        OPENAI_CHAT,
        {
            SAID: user(part(), text("look")),
            "a result": tool("c", text("done")),
            f"{SAID} beside a reminder": user(text(REMINDER), text("look")),
            "a reminder": {"role": "user", "content": REMINDER},
            "a peer's move": user(text(LEAD), part()),
            "the system": {"role": "system", "content": "be brief"},
            "the developer": {"role": "developer", "content": "be brief"},
            "the assistant": calling("c"),
            "an image alone": user(part()),
            "nothing": {"role": "user", "content": None},
        },
    ),
    (
        OPENAI_RESPONSES,
        {
            SAID: {"role": "user", "content": "look"},
            f"{SAID} beside a reminder": {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "<environment_context>here</environment_context>"},
                    {"type": "input_text", "text": "look"},
                ],
            },
            "a result": {"type": "function_call_output", "call_id": "c", "output": "done"},
            "a reminder": {
                "role": "user",
                "content": [{"type": "input_text", "text": "<environment_context>here</environment_context>"}],
            },
            "the developer": {"role": "developer", "content": "be brief"},
            "a thought": {"type": "reasoning", "summary": []},
        },
    ),
    (
        GEMINI,
        {
            SAID: {"role": "user", "parts": [{"text": "look"}]},
            "a result": {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {}}}]},
            f"{SAID} beside a result": {
                "role": "user",
                "parts": [{"functionResponse": {"name": "read", "response": {}}}, {"text": "stop"}],
            },
            "a peer's move": {
                "role": "user",
                "parts": [{"text": "Tool result image:"}, {"inlineData": {"mimeType": "image/png", "data": SMALL}}],
            },
            "the model": {"role": "model", "parts": [{"text": "yes"}]},
        },
    ),
]


@requirement("turn.begins")
@pytest.mark.parametrize(
    ("wire", "case", "message"),
    [pytest.param(wire, case, one, id=f"{wire.name}: {case}") for wire, cases in CASES for case, one in cases.items()],
)
def test_a_turn_begins_with_a_person_s_text(wire: Wire, case: str, message: Json) -> None:
    conversation: Json = {**body(), wire.messages_key: [message]}
    (found,) = read(wire, conversation).scene.messages
    assert found.opens_turn == (case in OPENING)
