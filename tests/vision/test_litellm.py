"""Providers that only LiteLLM reaches: named like any other, and refused in one sentence without it."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pytest

import sightline
from sightline.api import Failure
from sightline.model.refusal import Refusal
from sightline.vision.chooser import Chooser
from sightline.vision.seers.litellm_client import LITELLM_PROVIDERS, LitellmClient, make_upstream
from tests.engine.parts import picture
from tests.refusals import assert_refusal
from tests.requirements import requirement
from tests.vision.http import ScriptedHttp
from tests.vision.test_named_models import Known, asked

MISSING = " pip install 'sightline[providers]')"


def registry(*consented: str) -> Known:
    return Known(Chooser(ScriptedHttp(), lambda provider: provider in consented), {})


@pytest.fixture(autouse=True)
def _without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "litellm" not in sys.modules
    monkeypatch.setattr("sightline.vision.seers.litellm_client.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "litellm", None)


@requirement("seer.others")
def test_a_missing_litellm_is_refused_with_the_command_to_install_it() -> None:
    no = asked(registry("bedrock"), "bedrock", "amazon.nova-lite-v1:0")
    assert isinstance(no, Refusal)
    assert_refusal(no, "unavailable", "bedrock", "LiteLLM", MISSING)


@requirement("seer.others", "seer.consent")
@pytest.mark.parametrize("provider", sorted(LITELLM_PROVIDERS))
def test_no_litellm_provider_counts_as_loopback(provider: str) -> None:
    assert not make_upstream(provider).is_on_loopback
    no = asked(registry(), provider, "eye")
    assert_refusal(no, "no_consent", f" sightline consent yes {provider})")


@requirement("seer.others")
def test_every_tool_says_that_litellm_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGHTLINE_MODELS", '{"nova": {"vision": true}}')
    (tmp_path / "shot.png").write_bytes(picture())
    sightline.Session().tool_context.record.policy.set_consent("bedrock", given=True)
    no = sightline.analyze("shot.png", "What?", model="bedrock/nova")
    assert isinstance(no, Failure)
    assert no.message.endswith(MISSING)
    other = sightline.vision_analyze(prompt="What?", file_path=tmp_path / "shot.png", model="bedrock/nova")
    assert isinstance(other, Failure)
    assert MISSING in str(other.as_dict()["error"])
    monkeypatch.setenv("SIGHTLINE_PROVIDER", "bedrock")
    monkeypatch.setenv("SIGHTLINE_MODEL_ID", "nova")
    described = sightline.describe("shot.png")
    assert isinstance(described, Failure)
    assert described.message.endswith(MISSING)


@requirement("seer.others")
async def test_a_failure_of_litellm_is_a_refusal() -> None:
    no = await LitellmClient().ask(
        "POST", "litellm://bedrock/v1/chat/completions", {}, orjson.dumps({"model": "eye"}), 5.0
    )
    assert isinstance(no, Refusal)
