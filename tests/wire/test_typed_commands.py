"""Commands in a conversation: which request is one, and which messages the model must not see."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.commands.grammar import find_command, is_answer
from sightline.wire.message_texts import drop_commands, find_newest_command, requires_data
from tests.requirements import requirement

ASK = "/vision-proxy status"


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def text(words: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": words}


SYSTEM: dict[str, Any] = {"role": "system", "content": "a reminder"}
SAID: dict[str, Any] = {"role": "assistant", "content": "[Vision Proxy] mode is fallback"}
EARLIER_SAID: dict[str, Any] = {"role": "assistant", "content": "/vision-proxy mode is fallback"}  # before 0.1
MODEL: dict[str, Any] = {"role": "assistant", "content": "I know no such command."}
CALL: dict[str, Any] = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
REMINDER = text("<system-reminder>x</system-reminder>")
IMAGE: dict[str, Any] = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}


@pytest.mark.parametrize(
    "items",
    [
        [user(ASK)],
        [user(text(ASK))],
        [user("hi"), SAID, user(REMINDER, text(f"  {ASK}"))],
        [user(ASK), SYSTEM],
        [user(ASK), user(REMINDER)],
        [user(ASK), user("<system-reminder>x</system-reminder>\n"), SYSTEM],
        [{"type": "message", **user(text(ASK, "input_text"))}],
        [user(text("<image name=[Image #1]>"), IMAGE, text("</image>"), text(ASK))],
        [user(IMAGE, text("[Image: source: /a/b.png]"), text(ASK), text("of a file"))],
        [{"role": "user", "parts": [{"text": ASK}]}],
        [{"parts": [{"text": ASK}]}],
        [user(f'"{ASK}"')],
        [user(f"<current_datetime>2026-11-16T11:06:52+00:00</current_datetime>\n\n{ASK}")],
    ],
)
@requirement("command.recognised")
def test_the_first_words_of_the_newest_message_are_a_command(items: list[Any]) -> None:
    assert find_newest_command(items, find_command) == ASK


@pytest.mark.parametrize(
    "items",
    [
        None,
        "x",
        [],
        [None],
        [user("say /vision-proxy status")],
        [user(f"<a>x</b>{ASK}")],
        [user(f"<a>x</a> tell me of {ASK}")],
        [user(f'"{ASK}" is what I typed')],
        [user(text("explain @notes.md"), text("Content from @notes.md:"), text(ASK))],
        [user(ASK), SAID],
        [user(ASK), MODEL, user(REMINDER)],
        [{"role": "assistant", "content": ASK}],
        [{"role": "tool", "content": ASK}],
        [user(text("hello"), {"type": "image"}), {"type": "function_call_output", "output": ASK}],
    ],
)
@requirement("command.recognised")
def test_other_texts_are_not_commands(items: Any) -> None:
    assert find_newest_command(items, find_command) is None


GIVEN: dict[str, Any] = {"functionResponse": {"name": "n", "response": {"output": "x"}}}
OUTPUT: dict[str, Any] = {"type": "function_call_output", "call_id": "t", "output": "x"}
TOOL: dict[str, Any] = {"role": "tool", "tool_call_id": "t", "content": "x"}


@pytest.mark.parametrize(
    "item",
    [
        # Anthropic Messages
        user(RESULT, text(ASK)),
        user(text(ASK), RESULT),
        user({"type": "mcp_tool_result", "tool_use_id": "t", "content": []}, text(ASK)),
        user({"type": "web_search_tool_result", "tool_use_id": "t", "content": []}, text(ASK)),
        user({"type": "tool_result", "tool_use_id": "t", "content": [text("x")]}, IMAGE, text(ASK)),
        # Chat Completions: results and images that a client has moved into a user message
        user(text("Attached image(s) from tool result:"), IMAGE, text(ASK)),
        user(text("[image from the tool call t (read)]"), IMAGE, text(ASK)),
        user(text('<tool_result tool_name="n" tool_call_id="t">'), text(ASK), text("</tool_result>")),
        user(text("<tool_response>x</tool_response>"), text(ASK)),
        user(f"<tool_response>x</tool_response>\n{ASK}"),
        user(f"<function_results>x</function_results>\n{ASK}"),
        # Responses: an item that is no message, whatever role it claims
        {**OUTPUT, "role": "user", "content": ASK},
        {**OUTPUT, "role": "user", "content": [text(ASK, "input_text")]},
        {"type": "message", **user(OUTPUT, text(ASK, "input_text"))},
        # a message that says of itself that it answers a call
        {**user(ASK), "tool_call_id": "t"},
        {**user(text(ASK)), "toolUseResult": {}},
        {"parts": [{"text": ASK}], "functionId": "t"},
        # Gemini
        {"role": "user", "parts": [GIVEN, {"text": ASK}]},
        {"role": "user", "parts": [{"text": ASK}, GIVEN]},
        {"parts": [{"function_response": {"name": "n", "response": {}}}, {"text": ASK}]},
        {"role": "user", "parts": [{"text": ASK, "functionResponse": {}}]},
        {"role": "user", "parts": [{"toolResponse": {}}, {"text": ASK}]},
    ],
)
@requirement("command.plain")
def test_text_beside_a_tool_result_is_not_a_command(item: dict[str, Any]) -> None:
    assert find_newest_command([user("hi"), CALL, item], find_command) is None
    assert drop_commands([CALL, item, SAID, user("go on")], find_command, is_answer) is None, "a model has heard it"


@pytest.mark.parametrize(
    "beside",
    [
        {"type": "tool_use_result", "content": "x"},
        {"type": "toolResult", "toolUseId": "t"},
        {"type": "search_result", "source": "x", "title": "x", "content": [text("x")]},
        {"type": "container_upload", "file_id": "f"},
        {"type": "code_execution_result", "stdout": "x"},
        {"type": "newer", "content": "x"},
        {"type": ["text"], "text": "x"},
        {"type": {}, "text": "x"},
        {"content": "x"},
        {**text("x"), "tool_use_id": "t"},
        {**text("x"), "tool_call_id": "t"},
        {**IMAGE, "tool_use_id": "t"},
        "words without a block",
        None,
        text("<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>"),
        text("<bash-input>ls</bash-input>"),
        text("<local-command-stdout>x</local-command-stdout>"),
        text("  <Tool_Response>x"),
        text("<file path='a'>x</file>"),
    ],
)
@requirement("command.plain")
def test_text_beside_an_unknown_block_is_not_a_command(beside: Any) -> None:
    for blocks in ([beside, text(ASK)], [text(ASK), beside], [REMINDER, IMAGE, text(ASK), beside]):
        assert find_newest_command([{"role": "user", "content": blocks}], find_command) is None


@pytest.mark.parametrize(
    "beside",
    [
        {"codeExecutionResult": {"output": "x"}},
        {"executableCode": {"code": "x"}},
        {"toolCall": {}},
        {"newer": {}},
        {"text": "x", "newer": 1},
        {"text": "x", "thought": True},
        {},
        None,
        {"text": "<bash-stdout>x</bash-stdout>"},
    ],
)
@requirement("command.plain")
def test_a_gemini_part_beside_an_unknown_part_is_not_a_command(beside: Any) -> None:
    for parts in ([beside, {"text": ASK}], [{"text": ASK}, beside]):
        assert find_newest_command([{"role": "user", "parts": parts}], find_command) is None


@pytest.mark.parametrize("tag", ["bash-stdout", "system-reminder", "file", "local-command-stdout"])
@requirement("command.plain")
def test_text_after_client_text_in_one_block_is_not_a_command(tag: str) -> None:
    """A file could close the tag around its own text and go on with a command."""
    assert find_newest_command([user(f"<{tag}>x</{tag}>\n{ASK}")], find_command) is None
    assert find_newest_command([user(ASK), user("<bash-stdout>x</bash-stdout>")], find_command) is None


@pytest.mark.parametrize(
    "beside",
    [
        IMAGE,
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "high"}},
        {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto", "file_id": None},
        {"type": "document", "source": {"type": "file", "file_id": "f"}, "title": "a", "citations": {"enabled": True}},
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "input_file", "filename": "a.pdf", "file_data": "x"},
        {**text("more words"), "cache_control": {"type": "ephemeral"}},
        {**IMAGE, "tool_use_id": None},
    ],
)
@requirement("command.plain")
def test_a_command_may_have_images_documents_and_text_beside_it(beside: Any) -> None:
    assert find_newest_command([user(text(ASK), beside)], find_command) == ASK


@pytest.mark.parametrize(
    "beside",
    [
        {"inlineData": {"mimeType": "image/png", "data": ""}, "mediaResolution": {"level": "x"}},
        {"file_data": {"file_uri": "x"}, "thought": False},
        {"text": "more words", "thoughtSignature": "x"},
    ],
)
@requirement("command.plain")
def test_a_gemini_command_may_have_images_and_files_beside_it(beside: Any) -> None:
    assert find_newest_command([{"role": "user", "parts": [{"text": ASK}, beside]}], find_command) == ASK


@pytest.mark.parametrize(
    "part",
    [
        text(ASK, "weird"),
        text(ASK, "output_text"),
        text(ASK, "thinking"),
        text(ASK, "document"),
        text(ASK, "Text"),
        text(ASK, ""),
        {"text": ASK},
        {"type": None, "text": ASK},
        {"type": ["text"], "text": ASK},
        ASK,
        {"type": "resource", "text": ASK, "resource": {"text": ASK}},
        {**text(ASK), "annotations": {"audience": ["assistant"]}},
        {**text(ASK), "annotations": {"audience": []}},
        {**text(ASK), "annotations": "assistant"},
        {**text(ASK), "_meta": {"from": "a file"}},
    ],
)
@requirement("command.plain")
def test_only_a_plain_text_block_is_a_command(part: Any) -> None:
    assert find_newest_command([{"role": "user", "content": [part]}], find_command) is None
    assert find_newest_command([{"role": "user", "content": [part, text(ASK)]}], find_command) is None, (
        "it is not the first thing said"
    )


@pytest.mark.parametrize(
    "part", [{"text": ASK, "thought": True}, {"text": ASK, "type": "weird"}, {"text": ASK, "_meta": {"x": 1}}, ASK]
)
@requirement("command.plain")
def test_only_a_plain_part_of_gemini_is_a_command(part: Any) -> None:
    assert find_newest_command([{"role": "user", "parts": [part]}], find_command) is None


@pytest.mark.parametrize(
    "part",
    [
        {**text(ASK), "cache_control": {"type": "ephemeral"}},
        {**text(ASK), "annotations": None, "_meta": None},
        {**text(ASK), "annotations": {"audience": ["user", "assistant"], "priority": 1}},
        {**text(ASK), "annotations": {"priority": 1}, "_meta": {}},
    ],
)
@requirement("command.plain")
def test_harmless_fields_do_not_matter(part: Any) -> None:
    assert find_newest_command([user(part)], find_command) == ASK
    assert find_newest_command([CALL, TOOL, user(part)], find_command) == ASK, (
        "a message of its own behind the result of a tool"
    )


@pytest.mark.parametrize(
    "demand",
    [
        {"response_format": {"type": "json_object"}},
        {"text": {"format": {"type": "json_schema", "schema": {}}}},
        {"output_format": {"type": "json_schema", "schema": {}}},
        {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
        {"generationConfig": {"responseJsonSchema": {}}},
        {"generationConfig": {"responseMimeType": "application/json"}},
        {"generation_config": {"response_schema": {}}},
        {"tool_choice": "required"},
        {"tool_choice": {"type": "tool", "name": "answer"}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
    ],
)
@requirement("command.data")
def test_a_request_for_data_is_recognized(demand: dict[str, Any]) -> None:
    assert requires_data({"model": "m", **demand})


@pytest.mark.parametrize(
    "free",
    [
        None,
        {"response_format": {"type": "text"}},
        {"text": {"format": {"type": "text"}, "verbosity": "low"}},
        {"generationConfig": {"responseMimeType": "text/plain"}},
        {"generationConfig": None, "output_config": {"effort": "high"}},
        {"tool_choice": "auto"},
        {"tool_choice": {"type": "auto"}},
    ],
)
@requirement("command.data")
def test_a_request_for_text_requires_no_data(free: Any) -> None:
    assert not requires_data(free)


@requirement("command.cut")
def test_earlier_commands_and_their_answers_are_dropped() -> None:
    asked, after = user("what is it?"), user("and now?")
    assert drop_commands([user(ASK), SAID, asked], find_command, is_answer) == (2,)
    assert drop_commands([asked, MODEL, user(ASK), SYSTEM, SAID, after], find_command, is_answer) == (0, 1, 3, 5)
    assert drop_commands([asked, MODEL, user(ASK), SAID, user(ASK), SAID, after], find_command, is_answer) == (0, 1, 6)
    assert drop_commands([user(ASK), after], find_command, is_answer) == (1,), "nobody has answered"
    assert drop_commands([user(ASK), user(REMINDER), SAID, after], find_command, is_answer) == (1, 3)
    assert drop_commands([asked, MODEL, after], find_command, is_answer) is None
    assert drop_commands([user(ASK), EARLIER_SAID, after], find_command, is_answer) == (2,)
    assert drop_commands([user(ASK), SAID, user(ASK)], find_command, is_answer) == (2,), (
        "the newest one is what this request asks"
    )


@requirement("command.cut")
def test_other_content_of_a_command_s_message_stays() -> None:
    after = user("what is in the picture?")
    assert drop_commands([user(IMAGE, REMINDER, text(ASK)), SAID, after], find_command, is_answer) == (
        user(IMAGE, REMINDER),
        2,
    )
    gemini: dict[str, Any] = {"parts": [{"text": "<session_context>x</session_context>"}, {"text": ASK}]}
    kept = {"parts": gemini["parts"][:1]}
    assert drop_commands([gemini, {"role": "model", "parts": [{"text": ASK}]}, after], find_command, is_answer) == (
        kept,
        2,
    )


@pytest.mark.parametrize(
    "items",
    [
        [user(ASK), MODEL, user("go on")],
        [user(ASK), CALL, user(RESULT), SAID, user("go on")],
        [user(ASK), {"role": "assistant", "content": "/vision-proxy", "tool_calls": [{}]}, user("go on")],
        [user(text("say"), text(ASK)), SAID, user("go on")],
        [user(ASK)],
    ],
)
@requirement("command.cut")
def test_a_command_that_a_model_answered_stays(items: list[Any]) -> None:
    assert drop_commands(items, find_command, is_answer) is None


_leaf = st.none() | st.integers() | st.sampled_from([ASK, "hi", "<a>", " "])
_part = st.dictionaries(st.sampled_from(["type", "text", "content", "functionResponse"]), _leaf) | _leaf
_inner = st.sampled_from(["user", "assistant", "system"]) | st.lists(_part)
_item = st.dictionaries(st.sampled_from(["role", "content", "parts", "tool_calls"]), _inner) | _leaf


@given(st.lists(_item) | _leaf)
def test_any_body_can_be_searched_for_commands(items: Any) -> None:
    found = drop_commands(items, find_command, is_answer)
    whole = [each for each in found or () if isinstance(each, int)]
    assert whole == sorted(set(whole))
    assert all(0 <= number < len(items) for number in whole)
    assert found is None or len(found) <= len(items)
    find_newest_command(items, find_command)
    requires_data(items)
