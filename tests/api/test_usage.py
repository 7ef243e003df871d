"""Dollars: by the provider's own prices, or unknown."""

from __future__ import annotations

import pytest

from sightline.model.profile import Upstream
from sightline.model.seer import Usage
from sightline.vision.providers import calculate_cost
from tests.requirements import requirement

ANTHROPIC = Upstream("work", {"anthropic": "https://api.anthropic.com"})
OPENAI = Upstream("openai", {"openai_chat": "https://api.openai.com/v1"})
USAGE = Usage(1_000_000, 100_000)


@requirement("ask.cost")
def test_prices_come_from_the_providers_own_list() -> None:
    dear, cheap = calculate_cost(ANTHROPIC, "claude-opus-4-7", USAGE), calculate_cost(OPENAI, "gpt-5-mini", USAGE)
    assert dear is not None
    assert cheap is not None
    assert dear > 10 * cheap > 0
    kept = calculate_cost(ANTHROPIC, "claude-opus-4-7", Usage(1_000_000, 100_000, 900_000))
    assert kept is not None
    assert kept < dear


@requirement("ask.cost")
@pytest.mark.parametrize(
    ("upstream", "model", "usage"),
    [
        (OPENAI, "a-model-of-nobody", USAGE),
        (Upstream("elsewhere", {"openai_chat": "https://llm.example.com/v1"}), "gpt-5", USAGE),
        (Upstream("here", {"openai_chat": "http://127.0.0.1:8080/v1"}), "gpt-5", USAGE),
        (OPENAI, "gpt-5", Usage()),
        (OPENAI, "gpt-5", Usage(input=7)),
    ],
    ids=["model", "provider", "this machine", "nothing counted", "half counted"],
)
def test_an_unknown_price_is_null_and_not_zero(upstream: Upstream, model: str, usage: Usage) -> None:
    assert calculate_cost(upstream, model, usage) is None


@requirement("ask.cost")
def test_every_price_is_unknown_without_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "genai_prices", None)
    assert calculate_cost(OPENAI, "gpt-5", USAGE) is None
