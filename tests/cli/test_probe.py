"""`sightline probe`, against scripted providers that see, do not, or only seem to."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sightline.pixels.trial_card import COLOURS, LETTERS
from sightline.store import open_record
from tests.cli.command import Ended, assert_refused, sightline
from tests.proxy.clients import ask_chat, read_chat
from tests.proxy.running_proxy import sightline as running
from tests.requirements import requirement
from tests.scripted.eye import Seen, describe_quadrants
from tests.scripted.faults import Fail, Hang
from tests.scripted.models import IGNORES
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, nobody_listens
from tests.scripted.talk import Asked, Said, Script

WIRES = ("anthropic", "openai_chat", "openai_responses", "gemini")
EVERY_WIRE = pytest.mark.parametrize("wire", WIRES)
KEY = "sk-very-secret-0123456789"


def probe(provider: Provider | str, *words: str, model: str = "some-model", env: dict[str, str] | None = None) -> Ended:
    url = provider if isinstance(provider, str) else provider.url
    ended = sightline("probe", "--base-url", url, "--model", model, *words, env=env)
    assert KEY not in ended.out + ended.err
    return ended


def verdicts(ended: Ended) -> dict[str, str]:
    return {place: found["verdict"] for place, found in ended.json["places"].items()}


@requirement("cli.probe", "probe.remembers")
@EVERY_WIRE
def test_a_vision_model_is_detected_on_every_wire(home: Path, wire: str) -> None:
    with Provider() as provider:
        ended = probe(provider, "--wire", wire, "--json")
        name = provider.url.removeprefix("http://")
        asked = len(provider.exchanges)
    native = wire != "openai_chat"
    assert ended.code == 0
    assert verdicts(ended) == {"user": "sees", "tool": "sees" if native else "refused", "hoisted": "sees"}
    assert (ended.json["sees"], ended.json["tool_images"]) == (True, "native" if native else "hoist")
    assert asked == 3
    record = open_record(home / "record")
    learnt = record.policy.read_lesson(name, "some-model")
    record.close()
    assert learnt is not None
    assert (learnt.blind, dict(learnt.tool_images)) == (False, {wire: "native" if native else "hoist"})


@requirement("cli.probe", "recover.listed")
def test_findings_are_printed_listed_and_forgotten(home: Path) -> None:
    with Provider() as provider:
        lines = probe(provider).out.splitlines()
        name = f"{provider.url.removeprefix('http://')}/some-model"
    assert (lines[0].startswith(f"{name} "), "openai_chat" in lines[0]) == (True, True)
    assert "400: Invalid 'messages[2]'. Image URLs are only allowed" in lines[2]
    found = lines[-2].partition(": ")[2]
    assert (found.startswith("sees"), found.endswith("(openai_chat)")) == (True, True)
    assert f"  {name}: {found}" in sightline("config", "show").out
    assert sightline("config", "forget", name).code == 0
    assert_refused(sightline("config", "forget", name), name)


@requirement("cli.probe", "probe.remembers")
@EVERY_WIRE
@pytest.mark.parametrize("what", ["ollama", "deepseek", "zai", "other", IGNORES])
def test_a_blind_model_is_detected_whether_it_says_so_or_not(wire: str, what: str) -> None:
    with Provider((("*", what),)) as provider:
        ended = probe(provider, "--wire", wire, "--json")
        listed = sightline("config", "show").out
    assert ended.code == 0
    assert verdicts(ended) == {"user": "does not see" if what == IGNORES else "refused"}
    assert (ended.json["sees"], ended.json["tool_images"], ended.json["remembered"]) == (False, None, True)
    assert "/some-model: blind (" in listed


@requirement("cli.probe")
@EVERY_WIRE
@pytest.mark.parametrize(("tool_images", "verdict"), [("dropped", "does not see"), ("refused", "refused")])
def test_a_model_that_sees_only_user_images_is_detected(wire: str, tool_images: Any, verdict: str) -> None:
    with Provider(tool_images=tool_images) as provider:
        ended = probe(provider, "--wire", wire, "--json")
    assert verdicts(ended) == {"user": "sees", "tool": verdict, "hoisted": "sees"}
    assert (ended.json["sees"], ended.json["tool_images"]) == (True, "hoist")


def _nonsense(asked: Asked, seen: Sequence[Seen], script: Script) -> Said:
    return Said("The quick fox jumps over the lazy dog.")


def _silence(asked: Asked, seen: Sequence[Seen], script: Script) -> Said:
    return Said(" ")


def _guess(asked: Asked, seen: Sequence[Seen], script: Script) -> Said:
    return Said(f"{' '.join(random.sample(list(COLOURS), 4))} {''.join(random.choices(LETTERS, k=6))}")


def _all_of_them(asked: Asked, seen: Sequence[Seen], script: Script) -> Said:
    plain = seen[0].plain or ()
    return Said(f"{' '.join(COLOURS)} {' '.join(plain)} {seen[0].code}")


@requirement("probe.strict")
@pytest.mark.parametrize("mind", [_nonsense, _silence, _all_of_them])
def test_an_inconclusive_answer_is_not_stored(mind: Any) -> None:
    with Provider(mind=mind) as provider:
        assert_refused(probe(provider), "some-model")
        ended = probe(provider, "--json")
        assert len(provider.exchanges) == 2
    assert (ended.code, ended.json["sees"], ended.json["remembered"]) == (1, None, False)
    assert verdicts(ended) == {"user": "could not tell"}
    assert ended.err.count("\n") == 1
    assert sightline("config", "show", "--json").json["learnt"] == []


@requirement("probe.strict")
def test_a_model_that_guesses_counts_as_blind() -> None:
    with Provider(mind=_guess) as provider:
        assert verdicts(probe(provider, "--json")) == {"user": "does not see"}


@requirement("probe.bounded")
def test_a_hanging_endpoint_is_tried_once_and_briefly() -> None:
    hang = Hang()
    with Provider(faults=[hang]) as provider:
        assert_refused(probe(provider, "--timeout", "1"), provider.url.removeprefix("http://"))
        assert len(provider.exchanges) == 1
        hang.release()
    with nobody_listens() as url:
        assert_refused(probe(url), url.removeprefix("http://"))


@requirement("probe.bounded")
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_temporary_error_is_retried_once(status: int) -> None:
    with Provider(faults=[Fail(status=status, retry_after=0)]) as provider:
        assert verdicts(probe(provider, "--json"))["user"] == "sees"
    with Provider(faults=[Fail(status=status, retry_after=0)] * 2) as provider:
        assert_refused(probe(provider), f" {status}")
        assert len(provider.exchanges) == 2


@requirement("probe.key")
@EVERY_WIRE
def test_the_key_comes_from_the_named_variable(wire: str) -> None:
    with Provider(key=KEY) as provider:
        words = ("--wire", wire, "--api-key-env", "MY_KEY")
        assert probe(provider, *words, env={"MY_KEY": KEY}).code == 0
        assert_refused(probe(provider, *words, env={"MY_KEY": "wrong"}), " 401", "invalid x-api-key")
        assert_refused(probe(provider, "--wire", wire), " 401")
        asked = len(provider.exchanges)
        assert_refused(probe(provider, *words), "MY_KEY")
        assert len(provider.exchanges) == asked


@requirement("probe.key")
def test_the_key_of_a_custom_upstream_is_used_and_its_name_stored() -> None:
    with Provider(key=KEY) as provider:
        own = {"gateway": {"baseUrl": f"{provider.url}/v1", "apiKey": KEY}}
        env = {"SIGHTLINE_UPSTREAMS": json.dumps(own)}
        for address in (f"{provider.url}/v1", f"{provider.url}/v1/", "gateway"):
            ended = probe(address, "--json", env=env)
            assert (ended.code, ended.json["upstream"]) == (0, "gateway"), ended


@requirement("probe.key")
def test_a_key_echoed_by_an_upstream_is_not_shown() -> None:
    def parrot(asked: Asked, seen: Sequence[Seen], script: Script) -> Said:
        raise AssertionError("the key is refused first")

    with Provider(key="another", mind=parrot) as provider:
        provider._refusal = lambda exchange, body, limits: _repeated(exchange)  # type: ignore[method-assign]
        assert_refused(probe(provider, "--api-key-env", "MY_KEY", env={"MY_KEY": KEY}), "Incorrect API key: …")


def _repeated(exchange: Any) -> Any:
    from tests.scripted.talk import No

    return No(401, f"Incorrect API key: {exchange.header('authorization')[0].removeprefix('Bearer ')} is unknown")


@requirement("probe.strict")
def test_a_rejection_without_an_image_is_not_about_images() -> None:
    with Provider(models=(("known", "sees"),)) as provider:
        assert_refused(probe(provider, model="unknown"), " 404", "The model `unknown` does not exist.")
        assert len(provider.exchanges) == 2


@pytest.mark.parametrize(
    ("address", "wire"),
    [
        ("https://api.anthropic.com", "anthropic"),
        ("https://api.openai.com/v1", "openai_chat"),
        ("https://generativelanguage.googleapis.com", "gemini"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "openai_chat"),
        ("https://api.deepseek.com/anthropic", "anthropic"),
        ("https://chatgpt.com/backend-api/codex", "openai_responses"),
        ("http://127.0.0.1:4000", "openai_chat"),
    ],
)
def test_the_wire_follows_from_the_address(address: str, wire: str) -> None:
    from sightline.cli.verbs.probe import _choose_wire
    from sightline.model.refusal import Refusal
    from sightline.settings import load_settings
    from sightline.settings.upstreams import resolve_upstream

    upstream = resolve_upstream(load_settings({}), address)
    assert not isinstance(upstream, Refusal)
    assert _choose_wire(upstream, address) == wire


@requirement("cli.exit")
@pytest.mark.parametrize(
    "words", [[], ["--base-url", "http://127.0.0.1:9"], ["--base-url", "x", "--model", "m", "--wire", "smoke"]]
)
def test_wrong_usage_exits_with_2(words: list[str]) -> None:
    assert sightline("probe", *words).code == 2


@requirement("cli.one_line")
def test_an_invalid_address_is_refused() -> None:
    assert_refused(sightline("probe", "--base-url", "nowhere", "--model", "m"), "'nowhere'")


@requirement("probe.used")
def test_the_proxy_places_images_as_a_probe_found(home: Path) -> None:
    colours = some_colours(3)
    picture = paint_quadrants(colours)
    with Provider(tool_images="taken") as provider:
        for probed in (False, True):
            if probed:
                assert probe(provider, "--json").json["tool_images"] == "native"
            with running(home, provider.url) as proxy:
                assert describe_quadrants(colours) in ask_chat(proxy.url, "some-model", read_chat(picture))
            roles = [message["role"] for message in json.loads(provider.exchanges[-1].body)["messages"]]
            assert roles == ["user", "assistant", "tool"] + ([] if probed else ["user"])


@requirement("probe.used")
def test_the_proxy_describes_images_for_a_model_probed_as_blind(home: Path) -> None:
    picture = paint_quadrants(some_colours(3))
    with Provider((("*", IGNORES),)) as provider:
        assert probe(provider, "--json").json["sees"] is False
        with running(home, provider.url) as proxy:
            ask_chat(proxy.url, "some-model", read_chat(picture))
    assert b"base64" not in provider.exchanges[-1].body


@requirement("probe.key")
def test_a_provider_that_needs_a_key_is_not_called_without_one() -> None:
    ended = sightline("probe", "--base-url", "openai", "--model", "gpt-6", env={"OPENAI_API_KEY": ""})
    assert_refused(ended, "openai", "OPENAI_API_KEY", "--api-key-env")
