"""Providers that only a library of many reaches: named like all others, and refused in one sentence without it."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pytest

import sightline
from sightline.api import Refused
from sightline.model.refusal import Refusal
from sightline.vision.providers import Registry
from sightline.vision.seers.litellm import PROVIDERS, Library, upstream
from tests.engine.parts import picture
from tests.refusals import assert_refusal
from tests.requirements import requirement
from tests.vision.http import ScriptedHttp
from tests.vision.test_registry import asked

MISSING = " pip install 'sightline[providers]')"


def registry(*consented: str) -> Registry:
    return Registry(ScriptedHttp(), lambda provider: provider in consented)


@pytest.fixture(autouse=True)
def _without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "litellm" not in sys.modules
    monkeypatch.setattr("sightline.vision.seers.litellm.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "litellm", None)


@requirement("seer.others")
def test_without_the_library_it_is_said_what_to_install() -> None:
    no = asked(registry("bedrock"), "bedrock", "amazon.nova-lite-v1:0")
    assert isinstance(no, Refusal)
    assert_refusal(no, "unavailable", "bedrock", "LiteLLM", MISSING)


@requirement("seer.others", "seer.consent")
@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_nobody_of_them_is_taken_for_this_machine(provider: str) -> None:
    assert not upstream(provider).on_loopback
    no = asked(registry(), provider, "eye")
    assert_refusal(no, "no_consent", f" sightline consent yes {provider})")


@requirement("seer.others")
def test_every_tool_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGHTLINE_MODELS", '{"nova": {"vision": true}}')
    (tmp_path / "shot.png").write_bytes(picture())
    sightline.api.door().record.policy.set_consent("bedrock", given=True)
    no = sightline.analyze("shot.png", "What?", model="bedrock/nova")
    assert isinstance(no, Refused)
    assert no.message.endswith(MISSING)
    other = sightline.vision_analyze(prompt="What?", file_path=tmp_path / "shot.png", model="bedrock/nova")
    assert isinstance(other, Refused)
    assert MISSING in str(other.as_dict()["error"])
    monkeypatch.setenv("SIGHTLINE_PROVIDER", "bedrock")
    monkeypatch.setenv("SIGHTLINE_MODEL_ID", "nova")
    described = sightline.describe("shot.png")
    assert isinstance(described, Refused)
    assert described.message.endswith(MISSING)


@requirement("seer.others")
async def test_a_library_that_fails_is_a_refusal() -> None:
    no = await Library().ask("POST", "litellm://bedrock/v1/chat/completions", {}, orjson.dumps({"model": "eye"}), 5.0)
    assert isinstance(no, Refusal)
