"""A file that was written over between two looks: an image that reading it would not bring back stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sightline.model.facts import Kept
from sightline.model.fate import Retired
from sightline.model.rules import Retention
from sightline.model.scene import Call, Message, Scene, Sight
from sightline.passes.retain import retain
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from sightline.wire.codec import Codec
from sightline.wire.contents import MODEL_MESSAGE
from sightline.wire.shape import Whole
from tests.passes.scenes import PNG, Table, inline, rules
from tests.requirements import requirement

PATH = "/home/me/chart.png"
USER, SPEAKS, TOOL = Message("user", opens=True), Message("assistant"), Message("tool")
TALK = (USER, SPEAKS, TOOL, SPEAKS, TOOL, SPEAKS, USER)
TURNS = rules(retention=Retention(turns=0))


def scene(*calls: tuple[int, Call], ours: bool = False) -> Scene:
    """A picture is read in the third message; the calls are made beside that."""
    read = Call("c1", "Read", PATH)
    sight = Sight(("messages", 2, "content", 0), inline(), "tool", read, 2)
    tools = {"Read", "Write", "Edit", *(["mcp__sightline__view_image"] if ours else [])}
    return Scene("m", (sight,), messages=TALK, tools=frozenset(tools), calls=((1, read), *calls))


def leaves(what: Scene) -> bool:
    (fate,) = Table(kept=Kept("5" * 64, PNG)).fates(what, TURNS, by=retain)
    return isinstance(fate, Retired)


@requirement("retain.overwritten")
@pytest.mark.parametrize("name", ["Write", "Edit", "write_file", "str_replace_editor", "mcp__fs__move", "save_chart"])
def test_an_image_stays_whose_file_was_given_to_another_tool(name: str) -> None:
    assert not leaves(scene((3, Call("c2", name, PATH))))
    assert leaves(scene((3, Call("c2", name, PATH)), ours=True)), "the record has it as it was"
    assert leaves(scene((3, Call("c2", name, "/home/me/other.png"))))
    assert leaves(scene((1, Call("c2", name, PATH)))), "that was before it was read"
    assert leaves(scene((3, Call("c2", "read_file", PATH)))), "that brought it once more"


@requirement("retain.overwritten", "retain.stays")
def test_one_that_had_left_before_that_stays_away() -> None:
    gone = scene((7, Call("c2", "Write", PATH)))
    assert leaves(replace(gone, messages=(*TALK, SPEAKS, TOOL, SPEAKS, USER)))


WRITING = {"file_path": PATH, "content": "x"}


@requirement("retain.overwritten")
def test_every_wire_tells_which_files_were_named() -> None:
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
        assert wire.read(body, Whole()).calls == ((1, Call("c1", "Write", PATH)),), wire.name
