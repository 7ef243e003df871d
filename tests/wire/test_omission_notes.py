"""A client that leaves images out is recognized by the note that it writes instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agents import explain_omission
from sightline.wire.json_document import lift
from sightline.wire.message_texts import find_omission_note
from tests.golden.captures import Capture, captures
from tests.requirements import requirement

WORDS = {
    "Cannot read image (this model does not support image input)": "opencode",
    "does not support image input. The read_file tool cannot process": "qwen",
    "tool image omitted: model does not support images": "pi",
    "view_image is not allowed because you do not support image inputs": "codex",
    "image content omitted because you do not support image input": "codex",
    "This tool result included an image that was omitted as the model does not support vision": "goose",
}
WHOLE = {
    "[tool output omitted]": "openai-agents",
    "[vision content was removed - gpt-oss does not support this content type]": "fast-agent",
    "[document, vision content was removed - current model does not support this content type]": "fast-agent",
}
CAPTURES = captures()
LEFT_OUT = {"codex/read.textonly-2": "codex", "codex/attach.textonly-1": "codex", "pi/read.textonly-2": "pi"}


def found(body: Any, key: str = "messages") -> str | None:
    document = lift(json.dumps(body).encode(), "token-")
    assert document is not None
    return find_omission_note(document, key)


@requirement("omitted.recognised")
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.name)
def test_captured_requests_with_an_omitted_image_are_found(capture: Capture) -> None:
    assert found(capture.body, capture.wire.messages_key) == LEFT_OUT.get(capture.name)


def test_the_captures_exist() -> None:
    assert LEFT_OUT.keys() <= {capture.name for capture in CAPTURES}


def list_places(words: str) -> list[tuple[str, Any]]:
    """Return a conversation for every place where a client puts its note."""
    return [
        ("messages", {"role": "tool", "tool_call_id": "1", "content": words}),
        ("messages", {"role": "tool", "content": [{"type": "text", "text": words}]}),
        ("messages", {"role": "user", "content": words}),
        ("messages", {"role": "user", "content": [{"type": "tool_result", "content": [{"text": words}]}]}),
        ("input", {"role": "user", "content": [{"type": "input_text", "text": words}]}),
        ("input", {"type": "function_call_output", "output": words}),
        ("input", {"type": "custom_tool_call_output", "output": [{"text": words}]}),
        ("contents", {"role": "user", "parts": [{"functionResponse": {"response": {"output": words}}}]}),
        ("contents", {"role": "function", "parts": [{"text": words}]}),
        ("contents", {"parts": [{"text": words}]}),
    ]


@requirement("omitted.recognised")
@pytest.mark.parametrize(("words", "client"), WORDS.items())
def test_each_client_is_recognized_by_its_note(words: str, client: str) -> None:
    for key, item in list_places(f"ERROR: {words}. Inform the user."):
        assert found({key: [{"role": "user", "content": "hi"}, item, None, 7]}, key) == client, item
        assert found({"other": [item]}, key) is None


@requirement("omitted.recognised")
@pytest.mark.parametrize(("words", "client"), WHOLE.items())
def test_a_short_note_counts_only_as_the_whole_text(words: str, client: str) -> None:
    for key, item in list_places(words):
        assert found({key: [item]}, key) == client, item
    for text in (f"grep: {words}", f"{words} by the summary", words[:-1], words.replace("vision", "document")):
        if text != words:
            assert found({"messages": [{"role": "tool", "content": text}]}) is None


@requirement("omitted.recognised")
@pytest.mark.parametrize("client", WHOLE.values())
def test_a_library_gets_no_advice_to_run_setup(client: str) -> None:
    said = explain_omission(client, "m")
    assert client in said
    assert "setup" not in said


@requirement("omitted.recognised")
@pytest.mark.parametrize("words", WORDS)
def test_quoted_notes_are_ignored(words: str) -> None:
    for item in (
        {"role": "assistant", "content": words},
        {"role": "model", "parts": [{"text": words}]},
        {"role": "system", "content": words},
        {"role": "developer", "content": [{"text": words}]},
        {"type": "function_call", "arguments": words},
        {"type": "reasoning", "summary": [words]},
        {"type": 7, "text": words},
        {"role": "user", "content": words[:-3]},
        {"role": "tool", "content": f"{words} {'in the middle of a file ' * 100}"},
        words,
    ):
        assert found({"messages": [item]}) is None, item
    assert found({"system": words, "tools": [{"description": words}], "messages": [{"role": "user"}]}) is None


def test_a_body_without_the_common_words_is_not_searched() -> None:
    document = lift(json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode(), "token-")
    assert document is not None
    document.tree["messages"][0]["content"] = next(iter(WORDS))  # type: ignore[index, call-overload]
    assert find_omission_note(document, "messages") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(sorted(WORDS | WHOLE)),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["role", "type", "content", "text"]), inner),
)


@requirement("omitted.recognised")
@given(st.lists(JSON))
def test_any_conversation_can_be_searched(messages: list[Any]) -> None:
    assert found({"messages": messages}) in {None, *WORDS.values(), *WHOLE.values()}


@given(st.lists(JSON), st.sampled_from(sorted(WORDS)))
def test_a_note_is_found_after_any_messages(messages: list[Any], words: str) -> None:
    assert found({"messages": [*messages, {"role": "tool", "content": words}]}) is not None
