"""Everything else stays the same bytes beside an image that moves into a tool's result, out of it, or within it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.facts import Facts, Rules
from sightline.model.profile import Profile, ToolImagePlacement
from sightline.model.scene import Fate, Scene, Shown, Told
from sightline.passes.show import label
from sightline.wire import ANTHROPIC, GEMINI, MCP, OPENAI_CHAT, OPENAI_RESPONSES, Codec
from sightline.wire.json_document import lift
from tests.requirements import requirement
from tests.wire.bodies import SMALL, TOKEN

PNG = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAAT0lEQVR42u3PMQ0AMAwEoffvf1tB" + "A" * 20_000
ODD = r'"n": 1.10, "dup": 1, "dup":2 , "big": 123456789012345678901234567890, "\u00e9": "\/", "e": 1E2'
"""What no writer would write again as it stands."""
TOLD = Told("[told]", "eye")


def splice(wire: Codec, body: str, fate: Fate, tool_images: ToolImagePlacement) -> str:
    """Return the text of a body after all of its sights got a fate."""
    document = lift(body.encode(), TOKEN)
    assert document is not None
    found = wire.read(document.tree, document)
    assert found.sights
    profile = Profile("up", "gemini", "m", tool_images=tool_images)
    scene = label(replace(found, sights=tuple(replace(s, fate=fate) for s in found.sights)), Facts(), Rules(profile))
    assert isinstance(scene, Scene)
    return b"".join(document.splice(wire.lower(scene, document.tree, profile))).decode()


def gemini(answer: str) -> str:
    call = '{"role": "model", "parts": [{"functionCall": {"name": "view", "id": "c1", "args": {"n": 1.10}}}]}'
    return f'{{"contents": [{call}, {{"role": "user", "parts": [{{"functionResponse": {answer}}}]}}]}}'


LEFT = r'{"text":"[image from the tool call c1 (view)]"}'


@requirement("body.splice", "law.1")
@pytest.mark.parametrize(
    ("before", "fate", "tool_images", "after", "beside"),
    [
        pytest.param(
            f'{{ "id":"c1","name":"view", "response": {{{ODD} }}, "parts" : [{{"new": {{{ODD}}}}}, {{"inlineData":'
            f'{{"mimeType":"image/png","data":"{SMALL}"}}}}], {ODD}}}',
            Shown(),
            "hoist",
            f'{{ "id":"c1","name":"view", "response": {{{ODD},"image":"[image shown beside this result]" }}, '
            f'"parts" : [{{"new": {{{ODD}}}}}], {ODD}}}',
            f',{LEFT},{{"inlineData":{{"mimeType":"image/png","data":"{SMALL}"}}}}',
            id="out of it",
        ),
        pytest.param(
            f'{{"id":"c1","name":"view","response": {{{ODD}, "output" : "{PNG}"}}, {ODD}}}',
            Shown("image/png"),
            "native",
            f'{{"id":"c1","name":"view","response": {{{ODD}, "output" : "[image]"}}, {ODD},'
            f'"parts":[{{"inlineData":{{"mimeType":"image/png","data":"{PNG}"}}}}]}}',
            "",
            id="into its parts",
        ),
        pytest.param(
            f'{{"id":"c1","name":"view","response": {{{ODD}, "output" : "{PNG}"}}, "parts": [ {{"x": {{{ODD}}}}} ]}}',
            Shown("image/png"),
            "native",
            f'{{"id":"c1","name":"view","response": {{{ODD}, "output" : "[image]"}}, "parts": '
            f'[{{"x": {{{ODD}}}}},{{"inlineData":{{"mimeType":"image/png","data":"{PNG}"}}}}]}}',
            "",
            id="to the parts that it has",
        ),
        pytest.param(
            f'{{"id":"c1","name":"view","response": {{{ODD}}}, "parts":[{{"inlineData":{{"mimeType":"image/png",'
            f'"data":"{SMALL}"}}}}]}}',
            TOLD,
            "native",
            f'{{"id":"c1","name":"view","response": {{{ODD},"image":"[told]"}}}}',
            "",
            id="told",
        ),
        pytest.param(
            f'{{"id":"c1","name":"view","response": {{ }},"parts":[{{"inlineData":{{"data":"{SMALL}","displayName":"a",'
            f'"mimeType":"image/png"}}}}], {ODD}}}',
            TOLD,
            "native",
            f'{{"id":"c1","name":"view","response": {{"image":"[told]" }}, {ODD}}}',
            "",
            id="told, of a tool that said nothing",
        ),
        pytest.param(
            f'{{"id":"c1","name":"view","response": {{{ODD}, "seen": [{{"$ref":"a"}}, {{{ODD}}}]}},"parts":[{{'
            f'"inlineData":{{"data":"{SMALL}","displayName":"a","mimeType":"image/png"}}}}]}}',
            TOLD,
            "native",
            f'{{"id":"c1","name":"view","response": {{{ODD}, "seen": ["[told]", {{{ODD}}}]}}}}',
            "",
            id="told where it is referred to",
        ),
        pytest.param(
            f'{{ "parts" : [{{"inlineData":{{"data":"{SMALL}","mimeType":"image/png"}}}}] , "id":"c1", {ODD}}}',
            TOLD,
            "native",
            f'{{ "id":"c1", {ODD},"response":{{"image":"[told]"}}}}',
            "",
            id="told, of a tool that said nothing at all, its parts first",
        ),
        pytest.param(
            f'{{"parts" : [{{"inlineData":{{"data":"{SMALL}","mimeType":"image/png"}}}}]}}',
            TOLD,
            "native",
            '{"parts" : [],"response":{"image":"[told]"}}',
            "",
            id="told, with nothing else",
        ),
    ],
)
def test_a_function_response_keeps_its_other_bytes(
    before: str, fate: Fate, tool_images: ToolImagePlacement, after: str, beside: str
) -> None:
    expected = gemini(after).removesuffix("}]}]}") + "}" + beside + "]}]}"
    assert splice(GEMINI, gemini(before), fate, tool_images) == expected


@requirement("body.splice", "hoist.kept")
@pytest.mark.parametrize("fate", [Shown("image/png"), TOLD], ids=["shown", "told"])
@pytest.mark.parametrize("tool_images", ["hoist", "native"])
@pytest.mark.parametrize(
    ("wire", "body"),
    [
        pytest.param(
            OPENAI_CHAT,
            '{"messages": [{"role": "tool", "tool_call_id": "c1", "content": [OTHER, {"type": "image_url", "image_url":'
            f'{{"url": "data:image/png;base64,{SMALL}"}}}}, {{"type": "text", "text": "{PNG}"}}, OTHER]}}]}}',
            id="Chat Completions",
        ),
        pytest.param(
            ANTHROPIC,
            '{"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [OTHER,'
            f' {{"type": "text", "text": "{PNG}"}}, OTHER]}}]}}]}}',
            id="Messages",
        ),
        pytest.param(
            OPENAI_RESPONSES,
            '{"input": [{"type": "function_call_output", "call_id": "c1", "output": [OTHER, {"type": "input_text", '
            f'"text": "{PNG}"}}, OTHER]}}]}}',
            id="Responses",
        ),
        pytest.param(MCP, f'{{"content": [OTHER, {{"type": "text", "text": "{PNG}"}}, OTHER]}}', id="MCP"),
    ],
)
def test_other_parts_of_a_result_keep_their_bytes(
    wire: Codec, body: str, tool_images: ToolImagePlacement, fate: Fate
) -> None:
    other = f'{{ "type": "odd",{ODD} }}'
    after = splice(wire, body.replace("OTHER", other), fate, tool_images)
    assert after.count(other) == 2
    assert (PNG in after) == isinstance(fate, Shown)
