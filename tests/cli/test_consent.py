"""`sightline consent`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sightline.commands.execution import NOT_SENT, NOTHING_AGREED
from sightline.passes.wording import CONSENT_TEXT
from sightline.store import open_record
from tests.api.bad import PNG
from tests.cli.command import ALONE, assert_refused, sightline
from tests.requirements import requirement


def command_in(text: str) -> list[str]:
    """Return the words of the `sightline consent` command that a text names."""
    found = re.search(r"sightline consent [^()]*", text)
    return found[0].split() if found else []


@requirement("consent.none")
def test_consent_says_what_is_sent_without_any_consent() -> None:
    said = sightline("consent").out
    assert re.search(r"\bproxy\b.*\bagent\b.*\bno other provider\b", said)
    assert sightline("consent", "--json").json == {"ok": True, "consents": {}}


@requirement("consent.exact", "consent.text")
def test_consent_is_stored_for_exactly_that_provider(home: Path) -> None:
    assert sightline("consent").out == f"{NOTHING_AGREED}\n"
    ended = sightline("consent", "yes", "openai")
    assert ended.code == 0
    assert ended.out.startswith(f"openai: {CONSENT_TEXT.format('openai')}")
    assert "includeContext" in ended.out
    assert ended.out.count("\n") == 1
    assert sightline("consent", "no", "zai", "--json").json == {"ok": True, "provider": "zai", "consent": False}
    record = open_record(home / "record")
    assert record.policy.read_consents() == {"openai": True, "zai": False}
    record.close()
    assert sightline("consent", "list", "--json").json == {"ok": True, "consents": {"openai": True, "zai": False}}
    assert sightline("consent", "list").out.splitlines()[1] == f"zai: {NOT_SENT.format('zai')}"


@requirement("consent.alone")
def test_consent_without_a_name_means_the_configured_provider() -> None:
    assert_refused(sightline("consent", "yes"), "sightline consent yes PROVIDER")
    named = {"SIGHTLINE_MODEL": "xai/grok-4.3"}
    assert sightline("consent", "yes", "--json", env=named).json == {"ok": True, "provider": "xai", "consent": True}


def test_a_custom_provider_can_be_named() -> None:
    own = {"SIGHTLINE_UPSTREAMS": '{"work": {"baseUrl": "https://llm.example.com/v1"}}'}
    said = sightline("consent", "yes", "work", "--json", env=own).json
    assert said == {"ok": True, "provider": "llm.example.com", "consent": True}, "whoever gets the image, by address"
    assert_refused(sightline("consent", "yes", "work"), "'work'", "openai")


@requirement("consent.command")
@pytest.mark.parametrize(
    "held",
    [
        {"provider": "work", "modelId": "eye", "upstreams": {"work": {"baseUrl": "https://llm.example.com/v1"}}},
        {"provider": "openai", "modelId": "eye", "baseUrl": "https://llm.example.com/v1"},
    ],
    ids=["an upstream of one's own", "another address for a known provider"],
)
def test_the_command_in_the_refusal_gives_consent(home: Path, held: dict[str, object]) -> None:
    (home / "vision-proxy.json").write_text(json.dumps(held))
    asked = sightline("doctor", "--json").json["seers"][0]["refusal"]
    command = command_in(asked)
    assert command == ["sightline", "consent", "yes", "llm.example.com"]
    assert sightline(*command[1:]).code == 0
    next_missing = sightline("doctor", "--json").json["seers"][0]["refusal"]
    assert "key" in next_missing, "consented, next comes the key"
    assert command_in(next_missing) == []
    assert "llm.example.com" in sightline("consent", "no").out.partition(": ")[0]


@requirement("consent.kept")
def test_consent_that_would_not_be_remembered_is_refused(home: Path) -> None:
    assert_refused(
        sightline("consent", "yes", "openai", env={"SIGHTLINE_RECORD": "memory"}), "sightline config set record disk"
    )
    (home / "record").write_text("in the way")
    ended = sightline("consent", "yes", "openai")
    assert (ended.code, ended.out) == (1, "")
    assert str(home / "record") in ended.err.splitlines()[-1]


@requirement("consent.command")
def test_the_command_for_a_litellm_provider_gives_consent(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    env = {**ALONE, "SIGHTLINE_MODELS": '{"bedrock/eye": {"vision": true}}'}
    asked = sightline("describe", "shot.png", "--model", "bedrock/eye", env=env, folder=tmp_path).err
    command = command_in(asked)
    assert command == ["sightline", "consent", "yes", "bedrock"]
    assert sightline(*command[1:], "--json").json == {"ok": True, "provider": "bedrock", "consent": True}
    assert_refused(sightline("consent", "yes", "badrock"), "'badrock'")
