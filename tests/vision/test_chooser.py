"""Which seer is chosen: the named model, the sibling, loopback models, the reader; never without consent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sightline.model.ports import HttpReply
from sightline.model.profile import ImageLimits, Profile, RequestOrigin, Upstream, WireName
from sightline.model.refusal import Refusal
from sightline.model.seer import Seer
from sightline.vision.chooser import Caller, Chooser
from sightline.vision.providers import VisionModel
from sightline.vision.seers.messages import MessagesSeer
from sightline.vision.seers.openai import ChatSeer
from tests.engine.parts import ScriptedSeer
from tests.refusals import assert_refusal
from tests.requirements import requirement
from tests.vision.http import Asked, ScriptedHttp, reply

UP = Upstream("up", {"anthropic": "https://up.example/anthropic", "openai_chat": "https://up.example/v1"})
HEADERS = (("x-api-key", "client-key"), ("user-agent", "agent/1"))
REMOTE = VisionModel(
    "acme", "eye-1", Upstream("acme", {"openai_chat": "https://acme.example/v1"}, key_variables=("ACME_KEY",)),
    api_key="acme-key",
)  # fmt: skip
LOCAL = VisionModel("here", "eye-2", Upstream("here", {"openai_chat": "http://127.0.0.1:9999/v1"}))
LOOPBACK = {"ollama": "http://localhost:11434/v1"}


def visitor(wire: WireName = "anthropic") -> RequestOrigin:
    return RequestOrigin(UP, wire, "scope", HEADERS)


def profile(sibling: str | None = "eye-0", wire: WireName = "anthropic") -> Profile:
    return Profile("up", wire, "blind-1", False, sibling=sibling)


def nobody_home(asked: Asked) -> HttpReply | Refusal:
    return Refusal("unavailable", "nothing listens there")


def machine(asked: Asked) -> HttpReply | Refusal:
    """Answer like an Ollama with two vision models and one text model."""
    if asked.url == "http://localhost:11434/api/tags":
        return reply(body={"models": [{"name": "qwen3-vl"}, {"name": "gpt-oss"}, {"name": "gemma4"}, {}, None]})
    assert asked.url == "http://localhost:11434/api/show"
    sees = asked.json["model"] != "gpt-oss"
    return reply(body={"capabilities": ["completion", *(["vision"] if sees else [])]})


def seers(named: VisionModel | None = None, local: Seer | Refusal | None = None, **parts: Any) -> Chooser:
    given = {
        "http": ScriptedHttp(by_url=machine),
        "read_consent": lambda provider: False,
        "loopback": LOOPBACK,
        **parts,
    }
    return Chooser(**given, find_model=lambda model, check: named, find_local=lambda: local)


async def seers_of(chooser: Chooser, visitor: RequestOrigin, profile: Profile) -> list[Seer | Refusal]:
    return [each.seer async for each in await chooser.choose(Caller(visitor, profile))]


def names(found: list[Seer | Refusal]) -> list[str]:
    return [each.code if isinstance(each, Refusal) else each.name for each in found]


@requirement("seer.settings")
async def test_a_named_model_comes_before_all_others() -> None:
    chosen = seers(named=REMOTE, read_consent=lambda provider: provider == "acme")
    (seer,) = await seers_of(chosen, visitor(), profile())
    assert isinstance(seer, ChatSeer)
    assert (seer.name, seer.model, seer.url) == ("acme/eye-1", "eye-1", "https://acme.example/v1/chat/completions")
    assert seer.headers == {"authorization": "Bearer acme-key"}  # the client's own credential goes nowhere else


@requirement("tell.sibling", "seer.credential")
async def test_the_sibling_is_asked_with_the_clients_own_credential() -> None:
    seer, *others = await seers_of(seers(), visitor(), profile())
    assert others, "the models of this machine come after it, for when it fails"
    assert isinstance(seer, MessagesSeer)
    assert (seer.name, seer.model, seer.url) == ("up/eye-0", "eye-0", "https://up.example/anthropic/v1/messages")
    assert seer.headers == dict(HEADERS)
    seer, *_ = await seers_of(seers(), visitor("openai_chat"), profile(wire="openai_chat"))
    assert isinstance(seer, ChatSeer)
    assert seer.url == "https://up.example/v1/chat/completions"


GOOGLE = (("x-goog-api-key", "client-key"), ("user-agent", "agent/1"))


@requirement("tell.sibling", "seer.credential")
@pytest.mark.parametrize(
    ("wire", "bases", "headers", "url", "lent"),
    [
        ("openai_responses", UP.bases, (("authorization", "Bearer k"),), "https://up.example/v1/chat/completions",
         {"authorization": "Bearer k"}),
        ("openai_responses", UP.bases, (("api-key", "k"),), "https://up.example/v1/chat/completions", {"api-key": "k"}),
        ("gemini", UP.bases, GOOGLE, "https://up.example/v1/chat/completions",
         {"authorization": "Bearer client-key", "user-agent": "agent/1"}),
        ("gemini", {"gemini": "https://g", "openai_chat": "https://g/v1beta/openai"}, GOOGLE,
         "https://g/v1beta/openai/chat/completions", {"authorization": "Bearer client-key", "user-agent": "agent/1"}),
        ("gemini", {"gemini": "https://g", "anthropic": "https://g/a"}, GOOGLE, "https://g/a/v1/messages",
         {"x-api-key": "client-key", "user-agent": "agent/1"}),
        ("gemini", UP.bases, (("user-agent", "agent/1"),), "https://up.example/v1/chat/completions",
         {"user-agent": "agent/1"}),
    ],
)  # fmt: skip
async def test_the_sibling_is_asked_on_a_wire_that_the_upstream_serves(
    wire: WireName, bases: dict[WireName, str], headers: tuple[tuple[str, str], ...], url: str, lent: dict[str, str]
) -> None:
    asking = RequestOrigin(Upstream("up", bases), wire, "scope", headers)
    seer, *_ = await seers_of(seers(), asking, profile(wire=wire))
    assert isinstance(seer, ChatSeer | MessagesSeer)
    assert (seer.url, dict(seer.headers)) == (url, lent)


async def test_an_upstream_without_a_suitable_wire_has_no_sibling() -> None:
    alone = RequestOrigin(
        Upstream("up", {"openai_responses": "https://up.example"}), "openai_responses", "scope", HEADERS
    )
    assert names(await seers_of(seers(), alone, profile(wire="openai_responses"))) == [
        "ollama/qwen3-vl",
        "ollama/gemma4",
    ]


@requirement("seer.loopback")
@pytest.mark.parametrize("sibling", [None, "blind-1"])
async def test_loopback_models_are_asked_without_credentials(sibling: str | None) -> None:
    http = ScriptedHttp(by_url=machine)
    found = await seers_of(seers(http=http), visitor(), profile(sibling))
    assert names(found) == ["ollama/qwen3-vl", "ollama/gemma4"]
    assert all(isinstance(seer, ChatSeer) and seer.headers == {} for seer in found)
    assert all("client-key" not in str(each) for each in http.asked)


async def test_no_seer_is_searched_for_if_the_user_wants_none() -> None:
    http = ScriptedHttp()
    assert await seers_of(seers(http=http, auto=False), visitor(), profile()) == []
    assert http.asked == []


@requirement("seer.consent")
async def test_a_named_remote_model_needs_the_users_consent() -> None:
    given: set[str] = set()
    http = ScriptedHttp()
    chosen = seers(http=http, named=REMOTE, read_consent=given.__contains__)
    (no,) = await seers_of(chosen, visitor(), profile())
    assert_refusal(no, "no_consent", "acme/eye-1", " sightline consent yes acme)")
    given.add("other")
    assert names(await seers_of(chosen, visitor(), profile())) == ["no_consent"]
    given.add("acme")
    assert names(await seers_of(chosen, visitor(), profile())) == ["acme/eye-1"]
    assert http.asked == []


@requirement("seer.consent")
async def test_a_model_on_this_machine_needs_neither_consent_nor_key() -> None:
    (seer,) = await seers_of(seers(named=LOCAL), visitor(), profile())
    assert isinstance(seer, ChatSeer)
    assert (seer.name, seer.headers) == ("here/eye-2", {})


async def test_a_named_model_without_a_key_says_which_one_is_missing() -> None:
    keyless = VisionModel("acme", "eye-1", REMOTE.upstream)
    (no,) = await seers_of(seers(named=keyless, read_consent=lambda provider: True), visitor(), profile())
    assert_refusal(no, "unavailable", "acme/eye-1", "ACME_KEY")


async def test_a_seer_knows_the_limits_of_its_model() -> None:
    anthropic = Upstream("mine", {"anthropic": "https://api.anthropic.com"}, preset="anthropic")
    seer, *_ = await seers_of(seers(), RequestOrigin(anthropic, "anthropic", "scope"), profile("claude-haiku-5"))
    assert not isinstance(seer, Refusal)
    assert seer.limits.edge == 8000
    unknown, *_ = await seers_of(seers(), visitor(), profile())
    assert not isinstance(unknown, Refusal)
    assert unknown.limits == ImageLimits()


async def test_found_loopback_models_are_cached_and_a_vain_search_is_repeated() -> None:
    http = ScriptedHttp(by_url=nobody_home)
    chosen = seers(http=http)
    for _ in range(2):
        assert await seers_of(chosen, visitor(), profile(None)) == []
    assert len(http.asked) == 2
    http._by_url = machine
    for _ in range(2):
        assert len(await seers_of(chosen, visitor(), profile(None))) == 2
    assert len(http.asked) == 2 + 4


async def test_concurrent_requests_share_one_loopback_search() -> None:
    http = ScriptedHttp(by_url=machine)
    chosen = seers(http=http)
    await asyncio.gather(*(seers_of(chosen, visitor(), profile(None)) for _ in range(5)))
    assert len(http.asked) == 4


SERVERS = {
    "lmstudio": "http://localhost:1234/v1",
    "llamacpp": "http://localhost:8080/v1",
    "ollama": "http://localhost:11434/v1",
    "unheard-of": "http://localhost:1/v1",
}


def everybody(asked: Asked) -> HttpReply | Refusal:
    match asked.url:
        case "http://localhost:1234/api/v1/models":
            sees, blind = {"vision": True}, {"vision": False}
            models = [{"key": "a", "capabilities": sees}, {"key": "b", "capabilities": blind}, {"key": 7}, None]
            return reply(body={"models": models})
        case "http://localhost:8080/props":
            return reply(body={"modalities": {"vision": True}, "model_alias": "gemma"})
        case _:
            return machine(asked)


@requirement("seer.loopback.kinds")
async def test_each_kind_of_server_is_searched_in_the_given_order() -> None:
    chosen = seers(http=ScriptedHttp(by_url=everybody), loopback=SERVERS)
    found = await seers_of(chosen, visitor(), profile(None))
    assert names(found) == ["lmstudio/a", "llamacpp/gemma", "ollama/qwen3-vl", "ollama/gemma4"]
    assert isinstance(found[1], ChatSeer)
    assert found[1].url == "http://localhost:8080/v1/chat/completions"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", None, [], {}, {"models": None}, {"modalities": None}, {"models": [3]}]
)
async def test_a_server_with_an_odd_response_has_no_vision_models(body: Any) -> None:
    chosen = seers(http=ScriptedHttp(by_url=lambda asked: reply(body=body)), loopback=SERVERS)
    assert await seers_of(chosen, visitor(), profile(None)) == []


@requirement("seer.loopback.cloud", "seer.consent.local")
async def test_the_reader_answers_until_the_user_consents_to_ollamas_cloud() -> None:
    given: set[str] = set()
    upstream = Upstream("ollama", {"openai_chat": "http://localhost:11434/v1"}, preset="ollama")
    passed_on = ScriptedHttp(by_url=lambda asked: reply(body={"remote_host": "https://ollama.com"}))
    local = ScriptedSeer(name="local")
    chosen = seers(
        http=passed_on,
        named=VisionModel("ollama", "mine", upstream, "ollama"),
        read_consent=given.__contains__,
        local=local,
    )
    assert names(await seers_of(chosen, visitor(), profile())) == ["no_consent", "local"]
    given.add("ollama-cloud")
    assert names(await seers_of(chosen, visitor(), profile())) == ["ollama/mine"]


@requirement("seer.loopback.cloud")
async def test_a_model_whose_details_say_it_is_remote_is_not_found() -> None:
    def alias(asked: Asked) -> HttpReply | Refusal:
        models = {"models": [{"name": "mine"}]}
        shown = {"capabilities": ["vision"], "remote_host": "https://ollama.com"}
        return reply(body=models if asked.url.endswith("/tags") else shown)

    assert await seers_of(seers(http=ScriptedHttp(by_url=alias)), visitor(), profile(None)) == []


@requirement("tell.sibling")
async def test_loopback_and_reader_are_searched_for_only_after_the_sibling() -> None:
    http, searches = ScriptedHttp(by_url=machine), list[str]()

    def find_local() -> Seer:
        searches.append("local")
        return ScriptedSeer(name="local")

    chooser = Chooser(http, lambda provider: False, loopback=LOOPBACK, find_local=find_local)
    candidates = await chooser.choose(Caller(visitor(), profile()))
    first = await candidates.find_first()
    assert first is not None
    assert (first.name, candidates.has_fallbacks, http.asked, searches) == ("up/eye-0", True, [], [])
    found = [each.name async for each in candidates]
    assert found == ["up/eye-0", "ollama/qwen3-vl", "ollama/gemma4", "local"]
    assert searches == ["local"]
    assert [each.name async for each in candidates] == found, "a second iteration searches for nothing again"
    assert searches == ["local"]
