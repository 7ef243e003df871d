"""Models by name: the API and key of each provider, and the obstacles to asking it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.ports import HttpReply, HttpSender, Store
from sightline.model.refusal import Refusal
from sightline.model.seer import Question, Seer, SeerAnswer
from sightline.settings import Settings, load_settings
from sightline.settings.upstreams import build_directory
from sightline.store import open_record
from sightline.vision.chooser import Chooser
from sightline.vision.providers import (
    VisionModel,
    VisionProviders,
    find_configured_model,
    find_named_model,
    make_consent_reader,
)
from sightline.vision.seers import RETRY_LATER, WireSeer
from sightline.vision.seers.gemini import GeminiSeer
from sightline.vision.seers.loopback import OllamaSeer
from sightline.vision.seers.messages import MessagesSeer
from sightline.vision.seers.openai import ChatSeer, ResponsesSeer
from tests.refusals import assert_refusal
from tests.requirements import requirement
from tests.vision.http import ScriptedHttp, reply

NOBODY = ScriptedHttp()
KEYS = {
    "ANTHROPIC_API_KEY": "sk-a", "OPENAI_API_KEY": "sk-o", "GEMINI_API_KEY": "sk-g", "DEEPSEEK_API_KEY": "sk-d",
    "OLLAMA_API_KEY": "sk-l",
}  # fmt: skip


IMAGE = Image("1" * 64, "image/png", Size(4, 3), b"the file's bytes")
LOOK = Question("what is there?", (IMAGE,))


@dataclass
class Known:
    """A chooser, and the providers whose models can be named."""

    chooser: Chooser
    providers: Mapping[str, VisionModel]
    record: Store | None = None  # closed once nothing refers to it


def write_settings(home: Path, held: Mapping[str, object], env: Mapping[str, str] = KEYS) -> Settings:
    home.mkdir(exist_ok=True)
    file = home / "vision-proxy.json"
    file.write_text(json.dumps(held))
    file.chmod(0o600)
    settings = load_settings({"SIGHTLINE_HOME": str(home), **env})
    assert settings.warnings == ()
    return settings


def known(
    home: Path,
    *consents: str,
    held: Mapping[str, object] | None = None,
    env: Mapping[str, str] = KEYS,
    http: HttpSender = NOBODY,
) -> Known:
    """Build a chooser from real settings and a real record."""
    settings = write_settings(home, held or {}, env)
    found = build_directory(settings)
    assert not isinstance(found, Refusal)
    providers = VisionProviders(settings, found)
    assert not isinstance(providers.configured, Refusal)
    record = open_record(home / "record", kind="memory")
    for provider in consents:
        record.policy.set_consent(provider, given=True)
    return Known(Chooser(http, make_consent_reader(record.policy)), providers.by_name, record)


def asked(registry: Known, provider: str, model: str) -> Seer | Refusal:
    """Return the seer for a model that a call names."""
    one = find_named_model(registry.providers, f"{provider}/{model}")
    return one if isinstance(one, Refusal) else registry.chooser.make_seer(one)


def found(seer: Seer | Refusal) -> tuple[str, str, dict[str, str]]:
    assert isinstance(seer, WireSeer), seer
    return seer.name, seer.url, dict(seer.headers)


@requirement("seer.registry", "settings.key_variables")
@pytest.mark.parametrize(
    ("provider", "kind", "url", "headers"),
    [
        ("anthropic", MessagesSeer, "https://api.anthropic.com/v1/messages", {"x-api-key": "sk-a"}),
        ("openai", ResponsesSeer, "https://api.openai.com/v1/responses", {"authorization": "Bearer sk-o"}),
        ("gemini", GeminiSeer, "https://generativelanguage.googleapis.com/v1beta/models/eye:streamGenerateContent?alt=sse",
         {"x-goog-api-key": "sk-g"}),
        ("deepseek", ChatSeer, "https://api.deepseek.com/v1/chat/completions", {"authorization": "Bearer sk-d"}),
        ("ollama-cloud", OllamaSeer, "https://ollama.com/api/chat", {"authorization": "Bearer sk-l"}),
        ("ollama", OllamaSeer, "http://localhost:11434/api/chat", {}),
        ("lmstudio", ChatSeer, "http://localhost:1234/v1/chat/completions", {}),
    ],
)  # fmt: skip
def test_each_provider_is_asked_on_its_own_api_with_its_own_key(
    tmp_path: Path, provider: str, kind: type[WireSeer], url: str, headers: dict[str, str]
) -> None:
    seer = asked(known(tmp_path, provider), provider, "eye")
    assert isinstance(seer, kind)
    assert found(seer) == (f"{provider}/eye", url, headers)


@requirement("seer.registry")
def test_a_provider_without_schemas_is_sent_none(tmp_path: Path) -> None:
    providers = known(tmp_path, "deepseek")
    one, other = asked(providers, "deepseek", "eye"), asked(providers, "lmstudio", "eye")
    assert isinstance(one, ChatSeer)
    assert isinstance(other, ChatSeer)
    assert (one.takes_schema, other.takes_schema) == (False, True)


@requirement("seer.consent", "seer.registry")
def test_a_missing_consent_or_key_is_refused_with_a_remedy(tmp_path: Path) -> None:
    no = asked(known(tmp_path, "openai"), "anthropic", "eye")
    assert_refusal(no, "no_consent", "anthropic/eye", " sightline consent yes anthropic)")
    no = asked(known(tmp_path, "anthropic", env={}), "anthropic", "eye")
    assert_refusal(no, "unavailable", "anthropic/eye", "ANTHROPIC_API_KEY")


@requirement("seer.registry")
@pytest.mark.parametrize(("provider", "model"), [("", "gpt-5"), ("openai", ""), ("", ""), ("nobody", "gpt-5")])
def test_a_model_without_a_known_provider_is_refused(tmp_path: Path, provider: str, model: str) -> None:
    no = asked(known(tmp_path, "openai"), provider, model)
    assert isinstance(no, Refusal)
    assert "openai" in no.remedy


def test_a_missing_local_reader_is_a_refusal(tmp_path: Path) -> None:
    no = asked(known(tmp_path), "local", "anything")
    assert isinstance(no, Refusal)
    assert no.code == "unavailable"


@requirement("preset.key_stays", "seer.registry")
@pytest.mark.parametrize(
    ("held", "provider"),
    [
        ({"upstreams": {"work": {"baseUrl": "https://llm.example/v1", "preset": "openai"}}}, "work"),
        ({"upstreams": {"openai": {"baseUrl": "https://llm.example/v1"}}}, "openai"),
        ({"provider": "openai", "modelId": "eye", "baseUrl": "https://llm.example/v1"}, "openai"),
    ],
    ids=["a preset elsewhere", "a known name elsewhere", "a base URL elsewhere"],
)
def test_a_key_and_a_consent_count_only_for_their_host(tmp_path: Path, held: dict[str, object], provider: str) -> None:
    no = asked(known(tmp_path, "openai", held=held), provider, "eye")
    assert isinstance(no, Refusal)
    assert no.remedy.endswith(" sightline consent yes llm.example")
    no = asked(known(tmp_path, "llm.example", held=held), provider, "eye")
    assert isinstance(no, Refusal)
    called = f"{provider}/eye (llm.example)" if "upstreams" in held else "llm.example/eye"
    assert_refusal(no, "unavailable", called, "key")


@requirement("seer.registry")
def test_the_configured_model_uses_the_settings_address_and_key(tmp_path: Path) -> None:
    held: dict[str, object] = {
        "provider": "openai",
        "modelId": "eye",
        "baseUrl": "https://llm.example/v1",
        "apiKey": "sk-own",
    }
    seer = asked(known(tmp_path, "llm.example", held=held), "openai", "other")
    assert found(seer) == (
        "llm.example/other", "https://llm.example/v1/chat/completions", {"authorization": "Bearer sk-own"}
    )  # fmt: skip
    assert isinstance(asked(known(tmp_path, "anthropic", env={}, held=held), "anthropic", "eye"), Refusal), (
        "its key alone"
    )


@requirement("settings.keys")
@pytest.mark.parametrize(
    ("held", "key", "name"),
    [
        ({"seer": "anthropic/eye", "apiKey": "sk-file"}, "sk-a", "ANTHROPIC_API_KEY"),
        (
            {"auxiliary.vision.model": "anthropic/eye", "auxiliary.vision.apiKey": "own"},
            "own",
            "auxiliary.vision.apiKey",
        ),
        ({"seer": "zai/eye", "apiKey": "sk-file"}, "sk-file", "apiKey"),
        ({"seer": "zai/eye"}, "", ""),
        (
            {
                "seer": "mine/eye",
                "upstreams": {"mine": {"baseUrl": "https://llm.example", "apiKey": "m"}},
                "apiKey": "x",
            },
            "m",
            "upstreams.mine.apiKey",
        ),
    ],
)
def test_the_key_of_the_named_model_has_a_known_origin(
    tmp_path: Path, held: dict[str, object], key: str, name: str
) -> None:
    settings = write_settings(tmp_path, held)
    directory = build_directory(settings)
    assert not isinstance(directory, Refusal)
    model = find_configured_model(settings, directory)
    assert isinstance(model, VisionModel)
    assert (model.api_key, model.key_name) == (key, name)


@requirement("models.upstream")
@pytest.mark.parametrize(
    "held",
    [
        {"upstreams": {"mine": {"baseUrl": "https://llm.example"}}, "seer": "mine/eye"},
        {"upstreams": {"mine": {"baseUrl": "https://llm.example"}}, "provider": "mine", "modelId": "eye"},
        {"provider": "mine", "modelId": "eye", "baseUrl": "https://llm.example"},
        {
            "auxiliary.vision.model": "eye",
            "auxiliary.vision.provider": "mine",
            "auxiliary.vision.baseUrl": "https://llm.example",
        },
    ],
)
@pytest.mark.parametrize("pattern", ["mine/eye", "mine/*"])
def test_the_setting_models_counts_for_an_upstream_without_a_preset(
    tmp_path: Path, held: dict[str, object], pattern: str
) -> None:
    settings = write_settings(tmp_path, {**held, "models": {pattern: {"vision": False}}})
    directory = build_directory(settings)
    assert not isinstance(directory, Refusal)
    assert_refusal(find_configured_model(settings, directory), "invalid_input", "/eye")
    if "upstreams" in held:
        named = VisionProviders(settings, directory).find_model("mine/eye", "not blind")
        assert_refusal(named, "invalid_input", "mine/eye")


@requirement("seer.address")
@pytest.mark.parametrize(
    ("provider", "upstreams", "path", "header"),
    [
        ("anthropic", {}, "/v1/messages", "x-api-key"),
        ("gemini", {}, "/v1beta/models/eye:streamGenerateContent?alt=sse", "x-goog-api-key"),
        ("google", {}, "/v1beta/models/eye:streamGenerateContent?alt=sse", "x-goog-api-key"),
        ("openai", {}, "/v1/chat/completions", "authorization"),
        ("zai", {}, "/v1/chat/completions", "authorization"),
        ("nobody", {}, "/v1/chat/completions", "authorization"),
        ("ollama", {}, "/api/chat", "authorization"),
        ("work", {"work": {"baseUrl": "https://other.example", "preset": "anthropic"}}, "/v1/messages", "x-api-key"),
        ("team", {"team": {"baseUrl": {"anthropic": "https://t.example"}}}, "/v1/messages", "x-api-key"),
    ],
)
@pytest.mark.parametrize("where", ["auxiliary.vision.", ""])
def test_a_provider_at_another_address_gets_its_own_wire_and_header(
    tmp_path: Path, provider: str, upstreams: dict[str, object], path: str, header: str, where: str
) -> None:
    model = {"auxiliary.vision.model": "eye"} if where else {"modelId": "eye"}
    address = {f"{where}baseUrl": "https://llm.example", f"{where}apiKey": "sk-own"}
    held = {"provider": provider, "upstreams": upstreams, **model, **address}
    chosen = known(tmp_path, "llm.example", held=held)
    name, url, headers = found(asked(chosen, "llm.example", "eye"))
    assert (name, url) == ("llm.example/eye", f"https://llm.example{path}")
    assert headers == {header: "Bearer sk-own" if header == "authorization" else "sk-own"}


@requirement("seer.loopback.cloud")
@pytest.mark.parametrize("model", ["glm-5.3-flash:cloud", "qwen3-vl:235b-CLOUD"])
def test_a_cloud_model_of_ollama_needs_consent_for_the_cloud(tmp_path: Path, model: str) -> None:
    no = asked(known(tmp_path, "ollama"), "ollama", model)
    assert_refusal(no, "no_consent", " sightline consent yes ollama-cloud)")
    assert isinstance(asked(known(tmp_path, "ollama-cloud"), "ollama", model), OllamaSeer)


@requirement("seer.registry")
def test_consent_is_for_the_host_that_really_gets_the_image(tmp_path: Path) -> None:
    bases = {"openai_chat": "https://api.openai.com/v1", "openai_responses": "https://elsewhere.example/v1"}
    held = {"upstreams": {"two": {"baseUrl": bases, "preset": "openai", "apiKey": "sk-own"}}}
    no = asked(known(tmp_path, "openai", held=held), "two", "eye")
    assert isinstance(no, Refusal)
    assert no.remedy.endswith(" sightline consent yes elsewhere.example")


@requirement("seer.registry")
def test_a_provider_is_not_asked_on_an_api_that_its_address_lacks(tmp_path: Path) -> None:
    bases = {"openai_chat": "https://api.openai.com/v1"}
    held = {"upstreams": {"mine": {"baseUrl": bases, "preset": "openai"}}}
    assert isinstance(asked(known(tmp_path, "openai", held=held), "mine", "eye"), ChatSeer)


@requirement("seer.loopback.cloud")
@pytest.mark.parametrize(
    "shown", [{"remote_host": "https://ollama.com:443"}, {"remote_model": "qwen3-vl:235b"}], ids=["a host", "a model"]
)
async def test_an_alias_of_a_remote_model_needs_consent_too(tmp_path: Path, shown: dict[str, str]) -> None:
    http = ScriptedHttp(by_url=lambda asked: reply(body={"capabilities": ["vision"], **shown}))
    seer = asked(known(tmp_path, http=http), "ollama", "mine")
    assert isinstance(seer, OllamaSeer)
    assert_refusal(await seer.ask(LOOK), "no_consent", "ollama/mine", " sightline consent yes ollama-cloud)")
    assert [asked.url for asked in http.asked] == ["http://localhost:11434/api/show"]
    assert IMAGE.base64 not in str(http.asked)


@requirement("seer.loopback.cloud")
async def test_ollama_is_asked_once_whether_a_model_runs_locally(
    tmp_path: Path,
) -> None:
    words = reply(body={"message": {"content": "a dog"}})
    answers: dict[str, HttpReply | Refusal] = {"show": reply(body={"capabilities": ["vision"]}), "chat": words}
    http = ScriptedHttp(by_url=lambda asked: answers[asked.url.rpartition("/")[2]])
    providers = known(tmp_path, http=http)
    for _ in range(2):
        seer = asked(providers, "ollama", "mine")
        assert isinstance(seer, OllamaSeer)
        assert isinstance(await seer.ask(LOOK), SeerAnswer)
    assert [asked.url.rpartition("/")[2] for asked in http.asked] == ["show", "chat", "chat"]
    answers["show"] = reply(404, {"error": "model not found"})
    other = asked(providers, "ollama", "other")
    assert isinstance(other, OllamaSeer)
    assert_refusal(await other.ask(LOOK), "unavailable", "ollama/other", RETRY_LATER)
    answers["show"] = Refusal("unavailable", "refused")
    assert_refusal(await other.ask(LOOK), "unavailable", "ollama/other", "http://localhost:11434", "ollama serve")
    agreed = asked(known(tmp_path, "ollama-cloud", http=http), "ollama", "other")
    assert isinstance(agreed, OllamaSeer)
    assert isinstance(await agreed.ask(LOOK), SeerAnswer), "wherever it runs, the user has agreed"
    assert [asked.url.rpartition("/")[2] for asked in http.asked][4:] == ["show", "chat"]
