"""Who looks: the call's model, the auxiliary one, the settings' one, the main one when it sees; nobody by mistake."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.api import Analysis, Failure, FileAnswer, View
from tests.api.eyes import ABSENT, eyes
from tests.engine.parts import picture
from tests.requirements import requirement
from tests.scripted.provider import Provider

SEES = {name: {"vision": True} for name in ("main", "named", "auxiliary", "called")}


@pytest.fixture(autouse=True)
def _working(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shot.png").write_bytes(picture(1))


@pytest.fixture
def provider() -> Iterator[Provider]:
    with eyes("words") as there:
        yield there


def settle(there: Provider, /, **held: Any) -> None:
    """The user's file, with a provider `mine` and nobody else on the machine."""
    mine = {"baseUrl": {"openai_chat": f"{there.url}/v1"}}
    whole = {"upstreams": {**ABSENT, "mine": mine}, "models": SEES, **held}
    file = Path(os.environ["SIGHTLINE_HOME"]) / "vision-proxy.json"
    file.write_text(json.dumps(whole))
    file.chmod(0o600)  # else no key in it counts


def looked(provider: Provider, **call: Any) -> list[str]:
    """The models that were asked, by both ways of asking."""
    before = len(provider.exchanges)
    found = sightline.analyze("shot.png", f"What is it? {before}", **call)
    assert isinstance(found, Analysis), found
    told = sightline.vision_analyze(prompt=f"What? {before}", file_path=Path("shot.png").absolute(), **call)
    assert isinstance(told, FileAnswer), told
    return [json.loads(each.body)["model"] for each in provider.exchanges[before:]]


@requirement("seer.call_model", "seer.auxiliary", "seer.settings", "seer.main")
def test_the_model_is_chosen_from_call_settings_and_main_model(provider: Provider) -> None:
    chain: dict[str, str] = {"provider": "mine", "model": "main"}
    settle(provider, **chain)
    assert looked(provider) == ["main", "main"]
    chain["modelId"] = "named"
    settle(provider, **chain)
    assert looked(provider) == ["named", "named"]
    chain["auxiliary.vision.model"] = "auxiliary"
    settle(provider, **chain)
    assert looked(provider) == ["auxiliary", "auxiliary"]
    assert looked(provider, model="mine/called") == ["called", "called"]


@requirement("seer.main")
def test_a_blind_main_model_is_not_called(provider: Provider) -> None:
    settle(provider, provider="mine", model="main", models={"main": {"vision": False}})
    read = sightline.analyze("shot.png", "Is the cat sad?")
    assert isinstance(read, Analysis)
    assert read.seer == "local"
    assert provider.exchanges == []


@requirement("seer.auxiliary", "settings.key_variables", "settings.key_never")
def test_the_auxiliary_model_inherits_key_and_address(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    base = f"{provider.url}/v1"
    settle(provider, baseUrl=base, apiKey="sk-of-the-file", **{"auxiliary.vision.model": "auxiliary"})
    assert looked(provider) == ["auxiliary", "auxiliary"]
    own = {"auxiliary.vision.model": "auxiliary", "auxiliary.vision.apiKey": "sk-of-its-own"}
    settle(provider, baseUrl=base, apiKey="sk-of-the-file", **own)
    assert looked(provider) == ["auxiliary", "auxiliary"]
    upstreams = {**ABSENT, "openai": {"baseUrl": {"openai_chat": base}}}
    settle(provider, provider="openai", modelId="named", upstreams=upstreams)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-variable")
    looked(provider)
    sent = [exchange.header("authorization") for exchange in provider.exchanges]
    assert sent[:4] == [["Bearer sk-of-the-file"]] * 2 + [["Bearer sk-of-its-own"]] * 2
    assert sent[4:] == [[]] * 2, "the usual key of a provider goes to no other address"
    held = b"".join(each.read_bytes() for each in Path(os.environ["SIGHTLINE_HOME"]).rglob("record*") if each.is_file())
    assert b"sk-of-" not in held


@requirement("seer.address", "settings.keys")
def test_anthropic_at_another_address_gets_its_own_wire_and_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PI_VISION_PROXY_MODEL", "openai/gpt-6")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-variable")
    with Provider() as there:
        vision = {"model": "auxiliary", "provider": "anthropic", "baseUrl": there.url, "apiKey": "sk-of-its-own"}
        settle(there, apiKey="sk-of-the-file", auxiliary={"vision": vision})
        assert looked(there) == ["auxiliary", "auxiliary"]
        assert {(each.path, *each.header("x-api-key")) for each in there.exchanges} == {
            ("/v1/messages", "sk-of-its-own")
        }
        assert [each.header("authorization") for each in there.exchanges] == [[], []]


@requirement("seer.no_silent_local")
@pytest.mark.parametrize("model", ["main", "gpt-5", "/main", "mine/", "nobody/eye", "locals/ocr"])
def test_a_model_without_a_provider_is_refused(provider: Provider, model: str) -> None:
    settle(provider, provider="mine", modelId="named")
    no = sightline.analyze("shot.png", "What is it?", model=model)
    assert isinstance(no, Failure), no
    told = sightline.vision_analyze(prompt="What?", file_path=Path("shot.png").absolute(), model=model)
    assert isinstance(told, Failure)
    assert str(told.as_dict()["error"]).startswith("VISION_NOT_SUPPORTED")
    assert provider.exchanges == []


@requirement("consent.not_carried")
@pytest.mark.parametrize(
    "held",
    [
        {"provider": "openai", "modelId": "named", "baseUrl": "http://eyes.example:9/v1"},
        {"provider": "work", "modelId": "named", "upstreams": {"work": {"baseUrl": "http://eyes.example:9/v1"}}},
        {"provider": "openai", "modelId": "named", "upstreams": {"openai": {"baseUrl": "http://eyes.example:9/v1"}}},
        {"provider": "anthropic", "modelId": "named"},
        {"provider": "bedrock", "modelId": "named"},
    ],
    ids=["an address", "another name", "the same name elsewhere", "another provider", "through a library"],
)
def test_consent_is_for_one_provider_whatever_the_settings(
    provider: Provider, held: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(provider, **{"apiKey": "sk", **held, "upstreams": {**ABSENT, **held.get("upstreams", {})}})
    for name in ("openai", "mine", "work"):
        sightline.Session().tool_context.record.policy.set_consent(name, given=True)
    read = sightline.analyze("shot.png", "Is the cat sad?")
    assert isinstance(read, Analysis)
    assert (read.seer, "sightline consent yes" in read.text) == ("local", True)
    answer = sightline.vision_analyze(prompt="What?", file_path=Path("shot.png").absolute())
    assert isinstance(answer, FileAnswer)
    assert (answer.provider, "sightline consent yes" in answer.text) == ("local", True)


@requirement("profile.models.more")
def test_the_user_declares_capabilities_by_pattern(provider: Provider) -> None:
    said = {"re*": {"pdf": True, "video": True}, "main*": {"vision": True, "grounding": True}}
    settle(provider, provider="mine", modelId="main", models=said)
    assert sightline.supports_pdf("reader")
    assert sightline.supports_video("reader")
    assert not sightline.supports_pdf("main")
    found = sightline.analyze("shot.png", "Where?")
    assert isinstance(found, Analysis)
    assert 'grounding_format="qwen_pixels"' in found.fence, "nobody has said how it writes coordinates"
    settle(provider, provider="mine", modelId="main", models={"mine/main": {"grounding": "gemini_normalized_1000"}})
    there = sightline.analyze("shot.png", "Where?")
    assert isinstance(there, Analysis)
    assert 'grounding_format="gemini_normalized_1000"' in there.fence, "by the name that the user has given"
    settle(provider, provider="mine", modelId="main", models={there.seer: {"grounding": "unit_xyxy"}})
    named = sightline.analyze("shot.png", "Where?")
    assert isinstance(named, Analysis)
    assert 'grounding_format="unit_xyxy"' in named.fence, "and by its address"
    settle(provider, provider="mine", modelId="qwen3-vl", models={"qwen*": {"grounding": False}})
    without = sightline.analyze("shot.png", "Where?")
    assert isinstance(without, Analysis)
    assert 'grounding_format="none"' in without.fence


@requirement("library.tools")
def test_every_tool_is_also_a_function(provider: Provider, tmp_path: Path) -> None:
    settle(provider, provider="mine", modelId="main")
    assert isinstance(sightline.view("shot.png"), View)
    assert isinstance(sightline.analyze("shot.png", "What?"), Analysis)
    assert isinstance(sightline.describe("shot.png"), Analysis)
    shot = tmp_path / "shot.png"
    assert isinstance(sightline.vision_analyze(prompt="What?", file_path=shot), FileAnswer)
    assert isinstance(sightline.video_analyze(file_path=shot), Failure)


@requirement("library.tools")
async def test_every_tool_function_can_be_awaited(provider: Provider, tmp_path: Path) -> None:
    settle(provider, provider="mine", modelId="main")
    assert isinstance(await sightline.view.aio("shot.png"), View)
    assert isinstance(await sightline.analyze.aio("shot.png", "What?"), Analysis)
    assert isinstance(await sightline.describe.aio("shot.png"), Analysis)
    shot = tmp_path / "shot.png"
    assert isinstance(await sightline.vision_analyze.aio(prompt="What?", file_path=shot), FileAnswer)
    assert isinstance(await sightline.video_analyze.aio(file_path=shot), Failure)
