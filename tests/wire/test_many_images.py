"""Many images in one place: the work grows linearly, counted in steps of the interpreter."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from sightline.model.profile import Profile
from sightline.model.scene import Json, Shown
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, Codec
from tests.wire.bodies import Read, block, body, calling, part, read, result, user
from tests.wire.test_text_images import encoded

HOISTING = Profile("up", "openai_chat", "m", tool_images="hoist")
FEW, TIMES = 40, 4


def images(count: int) -> list[str]:
    return [encoded(length=60, seed=seed) for seed in range(count)]


def referred(count: int) -> Json:
    parts: list[Json] = [
        {"inlineData": {"mimeType": "image/png", "data": data, "displayName": f"d{n}"}}
        for n, data in enumerate(images(count))
    ]
    said: Json = {"a": [{"$ref": f"d{n}"} for n in range(count)]}
    answer: Json = {"functionResponse": {"name": "v", "response": said, "parts": parts}}
    return {"contents": [{"role": "user", "parts": [answer]}]}


def in_blocks(count: int) -> Json:
    return body(user(result("c1", *map(block, images(count)))))


def failed(count: int) -> Json:
    return body(user({**result("c1", *map(block, images(count))), "is_error": True}))


def chat(content: Json) -> Json:
    return body(calling("c1"), {"role": "tool", "tool_call_id": "c1", "content": content})


def in_parts(count: int) -> Json:
    return chat([*map(part, images(count))])


def in_lines(count: int) -> Json:
    return chat("\n".join(json.dumps({"png": each}) for each in images(count)))


def in_one_value(count: int) -> Json:
    return chat(json.dumps({"png": images(count)}))


def remote(count: int) -> Json:
    output = json.dumps(images(count))
    return {"input": [{"type": "mcp_call", "id": "m", "name": "v", "arguments": "{}", "output": output}]}


def steps(work: Callable[[], object]) -> int:
    """Return how many steps the interpreter takes."""
    taken = 0

    def each(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal taken
        taken += event == "opcode"
        frame.f_trace_opcodes = True
        return each

    before = sys.gettrace()
    sys.settrace(each)
    try:
        work()
    finally:
        sys.settrace(before)
    return taken


def prepare_lowering(wire: Codec, found: Read) -> Callable[[], object]:
    scene = replace(found.scene, sights=tuple(sight.with_fate(Shown("image/png")) for sight in found.scene.sights))
    return lambda: found.document.splice(wire.lower(scene, found.document.tree, HOISTING))


@pytest.mark.parametrize(
    ("wire", "made"),
    [
        pytest.param(GEMINI, referred, id="parts with references"),
        pytest.param(ANTHROPIC, in_blocks, id="blocks of a result"),
        pytest.param(ANTHROPIC, failed, id="blocks of an error"),
        pytest.param(OPENAI_CHAT, in_parts, id="parts of a tool message"),
        pytest.param(OPENAI_CHAT, in_lines, id="lines of JSON"),
        pytest.param(OPENAI_CHAT, in_one_value, id="a list in a text"),
        pytest.param(OPENAI_RESPONSES, remote, id="a remote call"),
    ],
)
def test_the_work_grows_linearly_with_the_images(wire: Codec, made: Callable[[int], Json]) -> None:
    few, many = read(wire, made(FEW)), read(wire, made(TIMES * FEW))
    assert (len(few.scene.sights), len(many.scene.sights)) == (FEW, TIMES * FEW)
    assert steps(prepare_lowering(wire, many)) < 1.2 * TIMES * steps(prepare_lowering(wire, few))
