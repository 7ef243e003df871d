"""What settings and flags make of the upstreams and of the model that looks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.model.refusal import Refusal
from sightline.model.seer import Usage
from sightline.runtime import build_proxy_finder
from sightline.settings import Settings, load_settings
from sightline.settings.upstreams import build_directory
from sightline.vision.chooser import Candidate
from sightline.vision.providers import VisionModel, VisionProviders, find_configured_model, find_loopback_servers
from sightline.vision.service import price_answer
from tests.engine.parts import ScriptedSeer
from tests.requirements import requirement


def settings(home: Path, **held: object) -> Settings:
    home.mkdir(exist_ok=True)
    (home / "vision-proxy.json").write_text(json.dumps(held))
    keys = {"DEEPSEEK_API_KEY": "sk-deep", "OPENAI_API_KEY": "sk-open"}
    return load_settings({"SIGHTLINE_HOME": str(home), **keys})


def named(found: Settings) -> VisionModel | Refusal | None:
    places = build_directory(found)
    assert not isinstance(places, Refusal)
    return find_configured_model(found, places)


@requirement("preset.key_stays")
@pytest.mark.parametrize(
    "held",
    [
        {"upstreams": {"work": {"baseUrl": "https://llm.example.com/v1", "preset": "deepseek"}}, "model": "work/eye"},
        {"upstreams": {"deepseek": {"baseUrl": "https://llm.example.com/v1"}}, "model": "deepseek/eye"},
        {"provider": "openai", "modelId": "eye", "baseUrl": "https://llm.example.com/v1"},
    ],
    ids=["a preset elsewhere", "a known name elsewhere", "a base URL elsewhere"],
)
def test_a_key_and_a_consent_count_only_for_their_own_host(tmp_path: Path, held: dict[str, object]) -> None:
    seer = named(settings(tmp_path / "home", **held))
    assert isinstance(seer, VisionModel)
    assert seer.api_key == ""
    assert seer.provider == "llm.example.com"


def test_a_provider_at_its_own_address_keeps_its_key_and_name(tmp_path: Path) -> None:
    seer = named(settings(tmp_path / "home", provider="openai", modelId="gpt-6-luna"))
    assert isinstance(seer, VisionModel)
    assert (seer.provider, seer.api_key) == ("openai", "sk-open")


@requirement("seer.loopback.here")
def test_a_server_on_another_machine_is_not_local(tmp_path: Path) -> None:
    held = {"ollama": {"baseUrl": "http://gpu-box.lan:11434/v1"}, "lmstudio": {"baseUrl": "http://127.0.0.1:1/v1"}}
    places = build_directory(settings(tmp_path / "home", upstreams=held))
    assert not isinstance(places, Refusal)
    assert find_loopback_servers(places).keys() == {"lmstudio", "llamacpp", "vllm"}


@requirement("preset.key_stays")
def test_a_key_in_the_file_is_not_sent_to_a_provider_from_the_environment(tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings(home, provider="openai", modelId="gpt-6-luna", apiKey="sk-file")
    (home / "vision-proxy.json").chmod(0o600)
    keys = {"SIGHTLINE_HOME": str(home), "ZAI_API_KEY": "sk-zai"}
    for model, key in (("zai/glm-5.3-flash", "sk-zai"), ("groq/qwen3.8-27b", "")):
        seer = named(load_settings({**keys, "SIGHTLINE_MODEL": model}))
        assert isinstance(seer, VisionModel)
        assert seer.api_key == key
    seer = named(load_settings(keys))
    assert isinstance(seer, VisionModel)
    assert seer.api_key == "sk-file"


def test_a_login_in_an_upstream_s_address_is_refused(tmp_path: Path) -> None:
    refused = build_directory(settings(tmp_path / "home"), ["http://alice:hunter2@127.0.0.1:1"])
    assert isinstance(refused, Refusal)
    assert "hunter2" not in str(refused)


def test_the_only_upstream_of_a_run_accepts_every_wire(tmp_path: Path) -> None:
    found = build_directory(settings(tmp_path / "home"), ["deepseek=http://127.0.0.1:9"], single_agent=True)
    assert not isinstance(found, Refusal)
    assert {upstream.name for upstream in found.defaults.values()} == {"deepseek"}


@requirement("seer.sees")
def test_a_blind_model_is_not_asked_to_look(tmp_path: Path) -> None:
    refused = named(settings(tmp_path / "home", provider="deepseek", modelId="deepseek-v4-pro"))
    assert isinstance(refused, Refusal)
    assert "deepseek/deepseek-v4-pro" in refused.what
    assert named(settings(tmp_path / "home", model="deepseek/deepseek-v4-pro")) is None, "the main model may be blind"


def test_an_unknown_provider_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    refused = named(settings(tmp_path / "home", provider="nobody", modelId="eye"))
    assert isinstance(refused, Refusal)
    assert "deepseek" in refused.remedy


@pytest.mark.parametrize("flag", ["ftp://a", "nowhere", "x=", "http://", "http://a:99999"])
def test_an_invalid_upstream_option_is_refused(tmp_path: Path, flag: str) -> None:
    assert isinstance(build_directory(settings(tmp_path / "home"), [flag]), Refusal)


def test_a_bare_address_accepts_every_wire_and_a_named_one_its_own(tmp_path: Path) -> None:
    found = build_directory(settings(tmp_path / "home"), ["https://llm.example.com", "openai=http://127.0.0.1:9/v1"])
    assert not isinstance(found, Refusal)
    assert found.defaults["anthropic"].name == "llm.example.com"
    assert found.by_name["openai"].get_base("openai_chat") == "http://127.0.0.1:9/v1"
    assert found.defaults["openai_chat"].name == "llm.example.com"


@pytest.mark.parametrize(
    ("variables", "host", "proxy"),
    [
        ({"HTTPS_PROXY": "http://p:1"}, "a.example", "http://p:1"),
        ({"https_proxy": "p:1"}, "a.example", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "a.example", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example"}, "a.example", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".a.example,b"}, "a.example", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "a.example", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample"}, "a.example", "http://p:1"),
        ({}, "a.example", None),
    ],
)
def test_web_proxies_in_the_environment_are_used(variables: dict[str, str], host: str, proxy: str | None) -> None:
    assert build_proxy_finder(variables)("https", host) == proxy


@requirement("telemetry.cost")
@pytest.mark.parametrize(
    "held",
    [
        {"upstreams": {"work": {"baseUrl": "https://api.together.xyz/v1"}}, "model": "work/eye"},
        {"provider": "openai", "modelId": "eye", "baseUrl": "https://api.together.xyz/v1"},
    ],
    ids=["an upstream of one's own", "another address"],
)
def test_calls_to_a_custom_upstream_are_priced(tmp_path: Path, held: dict[str, object]) -> None:
    own = settings(tmp_path / "home", **held)
    places = build_directory(own)
    assert not isinstance(places, Refusal)
    model = "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8"
    named = VisionProviders(own, places).find_model(None, "not blind")
    assert isinstance(named, VisionModel)
    asked = Candidate(ScriptedSeer(), replace(named, model=model))
    price = price_answer(asked, Usage(1_000_000, 1_000_000))
    assert price is not None
    assert price > 0
