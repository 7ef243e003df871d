"""Bedrock, for programs that call it themselves, and Gemini requests without a model."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from sightline.api.body_preparation import PreparedBody, prepare
from sightline.model.image import PaddedSizing
from sightline.model.refusal import Refusal
from sightline.profiles.profile_lookup import find_preset_name, look_up_profile
from sightline.settings import load_settings
from sightline.settings.upstreams import build_directory
from tests.engine.parts import encoded, picture
from tests.requirements import requirement
from tests.scripted.pictures import some_colours, too_heavy

CLAUDE = "us.anthropic.claude-opus-5-5-v1:0"


@requirement("lower.bedrock")
@pytest.mark.parametrize(
    ("model", "sees"),
    [
        (CLAUDE, True),
        ("anthropic.claude-3-haiku-20240307-v1:0", True),
        ("eu.amazon.nova-pro-v1:0", True),
        ("amazon.nova-micro-v1:0", False),
        ("qwen.qwen3-vl-235b-a22b-instruct", True),
        ("qwen.qwen3-coder-480b-a35b-v1:0", False),
        ("openai.gpt-oss-120b-1:0", False),
        ("us.deepseek.r1-v1:0", False),
        ("somebody.new-model", None),
    ],
)
def test_known_bedrock_models_have_profiles(model: str, sees: bool | None) -> None:
    known = look_up_profile("bedrock", "anthropic", model)
    assert (known.vision, known.tool_images) == (sees, "native")
    assert (known.limits.encoded_bytes, known.limits.edge, known.limits.get_max_edge(21)) == (
        5 * 1024 * 1024,
        8000,
        2000,
    )
    assert find_preset_name("https://bedrock-runtime.eu-west-1.amazonaws.com/model/x/converse") == "bedrock"


@requirement("lower.bedrock")
def test_claude_on_bedrock_is_sized_as_on_anthropic() -> None:
    assert (
        look_up_profile("bedrock", "anthropic", CLAUDE).sizing
        == look_up_profile("anthropic", "anthropic", "claude-opus-5-5").sizing
    )
    assert look_up_profile("bedrock", "anthropic", "anthropic.claude-3-haiku-20240307-v1:0").sizing == PaddedSizing()


@requirement("lower.bedrock")
def test_an_image_that_anthropic_accepts_is_refitted_for_bedrock() -> None:
    data = b64encode(too_heavy(some_colours(1), 6_000_000)).decode()
    assert 5 * 1024 * 1024 < len(data) < 10 * 1024 * 1024
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    body: Any = {"model": CLAUDE, "messages": [{"role": "user", "content": [block]}]}
    there = prepare(body, wire="anthropic", upstream="bedrock")
    home = prepare({**body, "model": "claude-opus-5-5"}, wire="anthropic")
    assert isinstance(there, PreparedBody)
    assert isinstance(home, PreparedBody)
    assert [line.fate for line in (*there.receipt.sights, *home.receipt.sights)] == ["refitted", "shown"]
    assert len(there.body["messages"][0]["content"][0]["source"]["data"]) <= 5 * 1024 * 1024
    part = {"type": "image", "image": data, "mediaType": "image/png"}
    said: Any = [{"role": "user", "content": [part]}]
    named = prepare(said, wire="model_message", model=f"bedrock/{CLAUDE}")
    assert isinstance(named, PreparedBody)
    assert (named.receipt.upstream, [line.fate for line in named.receipt.sights]) == ("bedrock", ["refitted"])


@requirement("lower.bedrock")
def test_the_proxy_does_not_forward_to_bedrock() -> None:
    found = build_directory(load_settings())
    assert not isinstance(found, Refusal)
    assert "bedrock" not in found.by_name
    assert all(upstream.bases for upstream in found.by_name.values())


PNG = encoded(picture())


def gemini(**fields: Any) -> dict[str, Any]:
    held = [{"inlineData": {"mimeType": "image/png", "data": PNG}}]
    answer = {"functionResponse": {"name": "shot", "id": "c1", "response": {"output": "here"}, "parts": held}}
    return {"contents": [{"role": "user", "parts": [answer]}], **fields}


@requirement("lower.gemini.unnamed")
def test_an_unnamed_gemini_model_gets_images_where_every_gemini_does() -> None:
    done = prepare(gemini(), wire="gemini")
    assert isinstance(done, PreparedBody)
    response, _, image = done.body["contents"][0]["parts"]
    assert "parts" not in response["functionResponse"]
    assert image == {"inlineData": {"mimeType": "image/png", "data": PNG}}
    assert len(done.receipt.notes) == 1
    again = prepare(done.body, wire="gemini", model="gemini-3-pro")
    assert isinstance(again, PreparedBody)
    assert again.body is done.body, "it is right for the newest ones too"


@requirement("lower.gemini.unnamed")
@pytest.mark.parametrize(
    ("body", "model", "stays"),
    [
        (gemini(), "gemini-3-pro", True),
        (gemini(), "gemini-flash-latest", True),
        (gemini(model="models/gemini-3.8-flash"), None, True),
        (gemini(), "gemini-2.5-pro", False),
        (gemini(), "learnlm-9", False),
    ],
)
def test_a_named_gemini_model_gets_images_where_it_accepts_them(
    body: dict[str, Any], model: str | None, stays: bool
) -> None:
    done = prepare(body, wire="gemini", model=model)
    assert isinstance(done, PreparedBody)
    assert (done.body is body) is stays
    assert not done.receipt.notes


@requirement("lower.gemini.unnamed")
def test_a_body_without_a_tool_image_has_no_note_about_models() -> None:
    pasted = {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}]}
    done = prepare(pasted, wire="gemini")
    assert isinstance(done, PreparedBody)
    assert (done.body is pasted, done.receipt.notes) == (True, ())
