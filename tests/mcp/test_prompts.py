"""The verbs of /vision-proxy as MCP prompts, with the grammar of every other surface."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sightline.commands import VERBS, Describe, Redescribe
from sightline.commands.execution import NOTHING_AGREED
from sightline.commands.grammar import is_command
from sightline.model.geometry import NamedCrop
from sightline.model.refusal import Refusal
from sightline.surfaces.mcp.catalog import list_arguments, read_prompt
from tests.api.eyes import eyes, named
from tests.cli.command import sightline
from tests.mcp.serving import Way, client
from tests.requirements import requirement

CHANGING = [
    ("model", {"model": "openai/gpt-5"}),
    ("consent", {"answer": "no", "provider": "openai"}),
    ("mode", {"value": "off"}),
    ("context", {"value": "off"}),
    ("tool", {"value": "off"}),
    ("max-images-per-call", {"value": "3"}),
    ("max-batch", {"value": "3"}),
    ("cache-size", {"value": "3"}),
    ("grounding-models", {"action": "add", "model": "mine/eye"}),
    ("grounding-models", {"action": "remove", "model": "mine/eye"}),
    ("grounding-models", {"action": "reset"}),
]


@requirement("mcp.prompts")
async def test_every_verb_is_a_prompt_with_an_answer(way: Way, folder: Path) -> None:
    with eyes("<vision_proxy_x> four colours") as provider:
        async with client(way, folder, env=named(provider)) as one:
            listed = (await one.list_prompts()).prompts
            assert [prompt.name for prompt in listed] == list(VERBS)
            needed = {prompt.name: [each.name for each in prompt.arguments or () if each.required] for prompt in listed}
            assert needed["describe"] == ["images"]
            assert needed["mode"] == ["value"]

            async def said(verb: str, **filled: str) -> str:
                (message,) = (await one.get_prompt(verb, filled)).messages
                assert message.role == "user"
                text: str = message.content.model_dump()["text"]
                assert text.startswith("[Vision Proxy]")
                assert not is_command(text), "the proxy would answer it, and the model would never see it"
                return text

            assert re.match(r"\[Vision Proxy\] [\w ]+: mine/eye-1\n", await said("status"))
            described = await said("describe", images="shot.png", question="Which colours?")
            assert "four colours" in described
            assert described.startswith("[Vision Proxy]\n<vision_proxy_"), "text in an image is not the user's"
            assert "<vision_proxy_x>" not in described
            assert "four colours" in await said("redescribe", image="shot.png")
            assert f"{folder}/shot.png" in await said("list")
            assert "sightline vision-proxy mode always" in await said("mode", value="always")
            assert "sightline vision-proxy consent yes openai" in await said("consent", answer="yes", provider="openai")
            assert NOTHING_AGREED in await said("consent", answer="list")
            assert NOTHING_AGREED in await said("consent")
            assert "qwen" in await said("grounding-models", action="list")
            for verb, filled in CHANGING:
                command = f"sightline vision-proxy {verb} {' '.join(filled.values())}"
                assert command in await said(verb, **filled), verb
            missing = await said("describe", images="gone.png")
            assert ("file" in missing, "<vision_proxy_" in missing) == (True, False)
            for verb, filled, why in [
                ("mode", {"value": "sometimes"}, "'sometimes'.*/vision-proxy mode"),
                ("describe", {}, "describe .*images"),
                ("describe", {"images": "a.png", "colour": "red"}, "'colour'"),
                ("nothing", {}, "'nothing'"),
            ]:
                with pytest.raises(Exception, match=why):
                    await one.get_prompt(verb, filled)
    assert sightline("config", "get", "mode").out == "fallback\n", "and no setting was changed"


@requirement("mcp.prompts")
def test_prompt_arguments_become_the_command() -> None:
    filled = {"images": 'a.png "my shot.png"', "question": 'what is "this"?', "crop": "0:r=top 1:r=left"}
    parts = ((0, NamedCrop("top")), (1, NamedCrop("left")))
    assert read_prompt("describe", filled) == Describe(("a.png", "my shot.png"), 'what is "this"?', parts)
    assert read_prompt("redescribe", {"image": "--a b.png"}) == Redescribe("--a b.png")


@requirement("mcp.prompts")
@given(some.sampled_from([*VERBS, "nothing"]), some.dictionaries(some.text(max_size=12), some.text(max_size=40)))
def test_any_prompt_arguments_give_a_command_or_a_refusal(verb: str, filled: dict[str, str]) -> None:
    names = [argument.name for argument, _ in list_arguments(verb)] if verb in VERBS else []
    for given_ in (filled, dict(zip(names, filled.values(), strict=False))):
        asked = read_prompt(verb, given_)
        if isinstance(asked, Refusal):
            assert asked.remedy
        else:
            assert asked.words[0] == verb


@given(some.text(min_size=1, max_size=60))
def test_a_question_and_a_path_arrive_unchanged(words: str) -> None:
    asked = read_prompt("redescribe", {"image": words})
    if isinstance(asked, Redescribe):
        assert asked.image == words.strip()
