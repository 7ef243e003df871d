"""Commands in a conversation: which request is one, and what of earlier ones the model must not see."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.commands import is_command
from sightline.wire.typed import earlier, newest
from tests.requirements import requirement

ASK = "/vision-proxy status"


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def text(words: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": words}


SYSTEM: dict[str, Any] = {"role": "system", "content": "a reminder"}
SAID: dict[str, Any] = {"role": "assistant", "content": "mode is fallback"}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t", "content": "x"}


@pytest.mark.parametrize(
    "items",
    [
        [user(ASK)],
        [user(text(ASK))],
        [user("hi"), SAID, user(text("<system-reminder>x</system-reminder>"), text(f"  {ASK}"))],
        [user(ASK), SYSTEM],
        [{"type": "message", **user(text(ASK, "input_text"))}],
        [{"role": "user", "parts": [{"text": ASK}]}],
    ],
)
@requirement("command.recognised")
def test_the_first_words_of_a_block_in_the_newest_message_are_a_command(items: list[Any]) -> None:
    assert (newest(items, is_command) or "").strip() == ASK


@pytest.mark.parametrize(
    "items",
    [
        None,
        "x",
        [],
        [None],
        [user("say /vision-proxy status")],
        [user(ASK), SAID],
        [{"role": "assistant", "content": ASK}],
        [{"role": "tool", "content": ASK}],
        [user(text("hello"), {"type": "image"}), {"type": "function_call_output", "output": ASK}],
    ],
)
@requirement("command.recognised")
def test_other_words_are_none(items: Any) -> None:
    assert newest(items, is_command) is None


@requirement("command.cut")
def test_earlier_commands_and_their_answers_are_found_wherever_they_stand() -> None:
    asked, after = user("what is it?"), user("and now?")
    assert earlier([user(ASK), SAID, asked], is_command) == {0, 1}
    assert earlier([asked, SAID, user(ASK), SYSTEM, SAID, after], is_command) == {2, 4}
    assert earlier([asked, SAID, user(ASK), SAID, user(ASK), SAID, after], is_command) == {2, 3, 4, 5}
    assert earlier([asked, SAID, after], is_command) == frozenset()


@requirement("command.cut")
def test_a_command_beside_the_result_of_a_tool_stays_since_the_result_must() -> None:
    assert earlier([user(RESULT, text(ASK)), SAID, user("go on")], is_command) == frozenset()


_leaf = st.none() | st.integers() | st.sampled_from([ASK, "hi"])
_part = st.dictionaries(st.sampled_from(["type", "text", "content", "functionResponse"]), _leaf) | _leaf
_inner = st.sampled_from(["user", "assistant", "system"]) | st.lists(_part)
_item = st.dictionaries(st.sampled_from(["role", "content", "parts"]), _inner) | _leaf


@given(st.lists(_item) | _leaf)
def test_any_body_is_read_without_a_fault(items: Any) -> None:
    found = earlier(items, is_command)
    assert all(0 <= number < len(items) for number in found)
    newest(items, is_command)
