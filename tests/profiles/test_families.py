"""What follows from a model's name: sizes and prices of images, and where tool images go."""

from __future__ import annotations

import pytest

from sightline.model.geometry import Size
from sightline.model.image import FlatSizing, PaddedSizing, PatchSizing, Sizing, TileSizing, count_image_tokens
from sightline.model.profile import UNKNOWN_SIZING, CachePrice, ToolImagePlacement, WireName
from sightline.profiles.profile_lookup import ProfileOverride, look_up_profile
from tests.requirements import requirement

HIGH = PaddedSizing(2576, 4784)


@requirement("tokens.published")
@pytest.mark.parametrize(
    ("upstream", "model", "size", "cost"),
    [
        ("anthropic", "claude-sonnet-4-6", (1920, 1080), 1560),
        ("anthropic", "claude-opus-4-7", (1920, 1080), 2691),
        ("anthropic", "claude-opus-5-5[1m]", (3840, 2160), 4784),
        ("anthropic", "claude-3-5-sonnet-20241022", (1000, 1000), 1296),
        ("openrouter", "anthropic/claude-sonnet-4.5", (1075, 1520), 1551),
        ("openai", "gpt-4o", (1024, 1024), 765),
        ("openai", "gpt-4o", (2048, 4096), 1105),
        ("openai", "gpt-5", (1024, 1024), 70 + 140 * 4),
        ("openai", "gpt-5.4", (1920, 1080), 2040),
        ("openai", "gpt-5.2", (1920, 1080), 1508),
        ("openai", "o4-mini", (1024, 1024), 1762),
        ("gemini", "gemini-2.5-flash", (960, 540), 1548),
        ("gemini", "models/gemini-3.8-flash", (960, 540), 1120),
        ("deepseek", "claude-sonnet-5-5", (3840, 2160), 1024),
    ],
)
def test_an_image_costs_what_the_provider_publishes(
    upstream: str, model: str, size: tuple[int, int], cost: int
) -> None:
    assert count_image_tokens(Size(*size), look_up_profile(upstream, "openai_chat", model).sizing) == cost


@pytest.mark.parametrize(
    ("model", "sizing"),
    [
        ("claude-haiku-4-5-20251001", PaddedSizing()),
        ("claude-sonnet-4-20250514", PaddedSizing()),
        ("claude-mythos-5-1", HIGH),
        ("gpt-6-luna", PatchSizing(30_000, 65_535)),
        ("gpt-4.1-nano", PatchSizing(multiplier=2.46)),
        ("o3-pro", TileSizing(75, 150)),
        ("gemma-4-31b", FlatSizing(256, edge=896)),
        ("nobody-knows", UNKNOWN_SIZING),
    ],
)
def test_a_family_is_found_by_name(model: str, sizing: Sizing) -> None:
    assert look_up_profile("", "openai_chat", model).sizing == sizing


@requirement("lower.by_wire", "lower.upstream_departs")
@pytest.mark.parametrize(
    ("upstream", "wire", "model", "where"),
    [
        ("anthropic", "anthropic", "claude-opus-5-5", "native"),
        ("openai", "openai_responses", "gpt-6", "native"),
        ("openai", "openai_chat", "gpt-6", "hoist"),
        ("", "openai_chat", "whatever", "hoist"),
        ("gemini", "gemini", "gemini-2.5-pro", "hoist"),
        ("gemini", "gemini", "gemini-3.8-flash", "native"),
        ("", "gemini", "gemini-2.0-flash", "hoist"),
        ("mistral", "openai_chat", "anything", "bridge"),
        ("vllm", "openai_chat", "mistralai/Mistral-Small-4", "bridge"),
        ("zai-coding", "openai_responses", "glm-5.3-flash", "hoist"),
    ],
)
def test_tool_image_placement_follows_wire_model_and_host(
    upstream: str, wire: WireName, model: str, where: ToolImagePlacement
) -> None:
    assert look_up_profile(upstream, wire, model).tool_images == where


@requirement("lower.override")
def test_the_user_can_hoist_for_all_or_for_single_models() -> None:
    said = [ProfileOverride("claude-*", tool_images=False), ProfileOverride("gpt-*", tool_images=True)]
    assert look_up_profile("anthropic", "anthropic", "claude-opus-5-5", hoist=True).tool_images == "hoist"
    assert look_up_profile("mistral", "openai_chat", "mistral-small", hoist=True).tool_images == "bridge"
    assert look_up_profile("anthropic", "anthropic", "claude-opus-5-5", said).tool_images == "hoist"
    assert look_up_profile("openai", "openai_chat", "gpt-6", said, hoist=True).tool_images == "native"


@pytest.mark.parametrize(
    ("upstream", "model", "price"),
    [
        ("anthropic", "claude-opus-5-5", CachePrice(1.25, 0.05, 300)),
        ("openai", "gpt-5.6-sol", CachePrice(1.25, 0.1, 1800)),
        ("deepseek", "deepseek-flash", CachePrice(1, 0.02, 4 * 3600)),
        ("", "x", CachePrice()),
    ],
)
def test_cache_prices_come_from_the_preset(upstream: str, model: str, price: CachePrice) -> None:
    assert look_up_profile(upstream, "openai_chat", model).cache == price
