"""Files that were overwritten: an image that its path no longer leads to stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sightline.model.facts import KeptImage, Retention
from sightline.model.scene import Message, Retired, Scene, Sight, ToolCall
from sightline.passes.retain import retain
from sightline.wire import ANTHROPIC, GEMINI, MODEL_MESSAGE, OPENAI_CHAT, OPENAI_RESPONSES, Codec
from sightline.wire.json_tree import PlainTexts
from tests.passes.scenes import PNG, Table, inline, rules
from tests.requirements import requirement

PATH = "/home/me/chart.png"
USER, SPEAKS, TOOL = Message("user", opens_turn=True), Message("assistant"), Message("tool")
TALK = (USER, SPEAKS, TOOL, SPEAKS, TOOL, SPEAKS, USER)
TURNS = rules(retention=Retention(kept_turns=0))


def scene(*calls: tuple[int, ToolCall], ours: bool = False) -> Scene:
    """Build a scene in which the third message reads an image, with other calls beside it."""
    read = ToolCall("c1", "Read", PATH)
    sight = Sight(("messages", 2, "content", 0), inline(), "tool", read, 2)
    tools = {"Read", "Write", "Edit", *(["mcp__sightline__view_image"] if ours else [])}
    return Scene("m", (sight,), messages=TALK, tools=frozenset(tools), file_calls=((1, read), *calls))


def leaves(what: Scene) -> bool:
    (fate,) = Table(kept=KeptImage("5" * 64, PNG)).fates(what, TURNS, by=retain)
    return isinstance(fate, Retired)


@requirement("retain.overwritten")
@pytest.mark.parametrize("name", ["Write", "Edit", "write_file", "str_replace_editor", "mcp__fs__move", "save_chart"])
def test_an_image_stays_if_another_tool_got_its_file(name: str) -> None:
    assert not leaves(scene((3, ToolCall("c2", name, PATH))))
    assert leaves(scene((3, ToolCall("c2", name, PATH)), ours=True)), "the record has it as it was"
    assert leaves(scene((3, ToolCall("c2", name, "/home/me/other.png"))))
    before = scene()
    assert leaves(replace(before, file_calls=((1, ToolCall("c2", name, PATH)), *before.file_calls))), (
        "that was before it was read"
    )
    assert not leaves(scene((1, ToolCall("c2", name, PATH)))), "that was beside it, and after it"
    assert leaves(scene((3, ToolCall("c2", "read_file", PATH)))), "that brought it once more"


@requirement("retain.overwritten", "retain.stays")
def test_an_image_retired_before_that_stays_retired() -> None:
    gone = scene((7, ToolCall("c2", "Write", PATH)))
    assert leaves(replace(gone, messages=(*TALK, SPEAKS, TOOL, SPEAKS, USER)))


WRITING = {"file_path": PATH, "content": "x"}


@requirement("retain.overwritten")
def test_every_wire_reports_calls_with_files() -> None:
    named = '{"file_path": "/home/me/chart.png"}'
    bodies: dict[Codec, Any] = {
        ANTHROPIC: {"messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "Write", "input": WRITING}]}]},
        OPENAI_CHAT: {"messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "Write", "arguments": named}}]}]},
        OPENAI_RESPONSES: {"input": [
            {"role": "user", "content": "go"},
            {"type": "function_call", "call_id": "c1", "name": "Write", "arguments": named}]},
        GEMINI: {"contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "Write", "args": WRITING}}]}]},
        MODEL_MESSAGE: {"messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [
                {"type": "tool-call", "toolCallId": "c1", "toolName": "Write", "input": WRITING}]}]},
    }  # fmt: skip
    for wire, body in bodies.items():
        assert wire.read(body, PlainTexts()).file_calls == ((1, ToolCall("c1", "Write", PATH)),), wire.name
