"""Which rule decides what a model can see: the user's, then the upstream's own, never a name by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.profile import ImageLimits, WireName
from sightline.profiles import MIB
from sightline.profiles.presets import PRESETS
from sightline.profiles.profile_lookup import (
    ProfileOverride,
    find_preset_name,
    look_up_profile,
    match_model,
    strip_model_name,
)
from tests.requirements import requirement

A: WireName = "anthropic"
C: WireName = "openai_chat"


@requirement("profile.by_upstream", "profile.owned_names")
@pytest.mark.parametrize(
    ("upstream", "wire", "model", "vision", "sibling"),
    [
        ("anthropic", A, "claude-opus-5-5", True, "claude-haiku-5-5"),
        ("anthropic", A, "claude-sonnet-4-5-20250929", True, "claude-haiku-5-5"),
        ("anthropic", A, "claude-opus-5-5[1m]", True, "claude-haiku-5-5"),
        ("deepseek", A, "claude-opus-5-5", False, "deepseek-flash"),
        ("deepseek", A, "claude-opus-x", False, "deepseek-flash"),
        ("deepseek", A, "claude-sonnet-5-5", True, "deepseek-flash"),
        ("deepseek", C, "claude-opus-5-5", None, "deepseek-flash"),
        ("deepseek", C, "deepseek-v4-pro", False, "deepseek-flash"),
        ("deepseek", C, "DeepSeek-V4-Pro", False, "deepseek-flash"),
        ("deepseek", C, "deepseek-v4-flash", True, "deepseek-flash"),
        ("zai", A, "claude-opus-5-5", None, "glm-5.3-flash"),
        ("zai", C, "glm-4.7", False, "glm-5.3-flash"),
        ("zai", C, "glm-4.7-flash", False, "glm-5.3-flash"),
        ("zai", C, "glm-4.6v", True, "glm-5.3-flash"),
        ("zai", C, "glm-4.6", False, "glm-5.3-flash"),
        ("zai", C, "glm-5.3", False, "glm-5.3-flash"),
        ("zai", A, "GLM-5.3[1m]", False, "glm-5.3-flash"),
        ("zai", C, "glm-5.3-flashx", True, "glm-5.3-flash"),
        ("zai-coding", C, "glm-4.7", True, "glm-5.3-flash"),
        ("zai-coding", C, "glm-5.2", False, "glm-5.3-flash"),
        ("moonshot", C, "kimi-k2-0905-preview", False, "kimi-k2.6"),
        ("moonshot", C, "kimi-k3-highspeed", True, "kimi-k2.6"),
        ("moonshot", C, "moonshot-v1-8k-vision-preview", True, "kimi-k2.6"),
        ("moonshot", C, "moonshot-v1-128k", False, "kimi-k2.6"),
        ("kimi-coding", A, "kimi-for-coding", True, "kimi-for-coding"),
        ("kimi-coding", A, "k3", None, "kimi-for-coding"),
        ("minimax", A, "MiniMax-M2.7-highspeed", False, "MiniMax-M3"),
        ("minimax", C, "MiniMax-M3", True, "MiniMax-M3"),
        ("dashscope", C, "qwen3-coder-plus-2025-09-23", False, "qwen3.8-flash"),
        ("dashscope", C, "qwen3-vl-plus", True, "qwen3.8-flash"),
        ("dashscope", C, "qwen3.8-max-preview", True, "qwen3.8-flash"),
        ("dashscope", C, "deepseek-v4-flash", False, "qwen3.8-flash"),
        ("dashscope", C, "glm-5.3", False, "qwen3.8-flash"),
        ("dashscope-coding", A, "qwen3-coder-next", False, "qwen3.6-plus"),
        ("openai", C, "gpt-5.5", True, "gpt-6-luna"),
        ("openai", C, "gpt-4o-audio-preview-2024-12-17", False, "gpt-6-luna"),
        ("openai", C, "o3-mini-2025-01-31", False, "gpt-6-luna"),
        ("openai", C, "o3-2025-04-16", True, "gpt-6-luna"),
        ("openai", C, "gpt-4-0613", False, "gpt-6-luna"),
        ("openai", C, "gpt-4.1-mini", True, "gpt-6-luna"),
        ("gemini", C, "models/gemini-3.8-flash", True, "gemini-3.8-flash"),
        ("xai", C, "grok-code-fast-1", None, "grok-4.3"),
        ("mistral", C, "devstral-2512", False, "mistral-small-latest"),
        ("mistral", C, "labs-devstral-small-2512", True, "mistral-small-latest"),
        ("groq", C, "openai/gpt-oss-120b", False, "qwen/qwen3.8-27b"),
        ("openrouter", C, "z-ai/glm-5.3:free", None, "z-ai/glm-5.3-flash"),
        ("ollama", C, "gpt-oss:20b", False, None),
        ("ollama", C, "gpt-oss:120b-cloud", False, "glm-5.3-flash:cloud"),
        ("ollama", A, "glm-5.3:cloud", False, "glm-5.3-flash:cloud"),
        ("ollama", A, "glm-5.3-flash:cloud", True, None),
        ("ollama", C, "llava:7b", None, None),
        ("ollama-cloud", A, "glm-5.3", False, "glm-5.3-flash"),
        ("ollama-cloud", A, "glm-5.3-flash", True, "glm-5.3-flash"),
        ("vllm", C, "claude-opus-5-5", None, None),
        ("", C, "gpt-5.5", None, None),
        ("", A, "deepseek-v4-pro", None, None),
        ("no-such-preset", A, "claude-opus-5-5", None, None),
    ],
)
def test_the_upstream_decides_what_a_name_means(
    upstream: str, wire: WireName, model: str, vision: bool | None, sibling: str | None
) -> None:
    found = look_up_profile(upstream, wire, model)
    assert (found.vision, found.sibling) == (vision, sibling)
    assert (found.upstream, found.wire, found.model) == (upstream, wire, model)


@requirement("profile.user_first")
@pytest.mark.parametrize(
    ("overrides", "vision", "why"),
    [
        ([], False, "deepseek-v4-pro* "),
        ([("deepseek-*", True)], True, " deepseek-* "),
        ([("work/*", True)], True, " work/* "),
        ([("DeepSeek/DeepSeek-V4-Pro", True)], True, None),
        ([("deepseek-v4-pro[1m]", True)], True, None),
        ([("glm-*", True), ("deepseek-v4-pro", True), ("*", False)], True, None),
        ([("*", False), ("deepseek-v4-pro", True)], False, " * "),
        ([("elsewhere/deepseek-v4-pro", True)], False, "deepseek-v4-pro* "),
    ],
)
def test_the_users_own_rule_comes_first(overrides: list[tuple[str, bool]], vision: bool, why: str | None) -> None:
    said = [ProfileOverride(pattern, vision=sees) for pattern, sees in overrides]
    found = look_up_profile("deepseek", C, "deepseek-v4-pro[1m]", said, name="work")
    assert found.vision is vision
    assert found.upstream == "work"
    assert why is None or why in found.why


@requirement("profile.why")
@pytest.mark.parametrize(
    ("upstream", "model", "why"),
    [
        ("", "x", "upstream"),
        ("vllm", "x", "vllm "),
        ("zai", "claude-x", "claude* "),
        ("anthropic", "claude-x", "claude-* "),
    ],
)
def test_the_rule_that_decided_is_named(upstream: str, model: str, why: str) -> None:
    found = look_up_profile(upstream, A, model).why
    assert (why in found, upstream in found) == (True, True)


@requirement("lower.by_wire")
@pytest.mark.parametrize(
    ("upstream", "wire", "tool_images"),
    [
        ("anthropic", A, "native"),
        ("openai", C, "hoist"),
        ("deepseek", A, "native"),
        ("", A, "native"),
        ("", C, "hoist"),
    ],
)
def test_the_wire_decides_where_tool_images_go(upstream: str, wire: WireName, tool_images: str) -> None:
    assert look_up_profile(upstream, wire, "any").tool_images == tool_images


@requirement("profile.limits")
@pytest.mark.parametrize(
    ("upstream", "model", "limits"),
    [
        (
            "anthropic",
            "claude-sonnet-5-5",
            ImageLimits(
                encoded_bytes=10_485_760,
                edge=8000,
                crowd=20,
                crowd_edge=2000,
                count=100,
                request_bytes=33_554_432,
            ),
        ),
        (
            "deepseek",
            "deepseek-flash",
            ImageLimits(
                encoded_bytes=44_739_244,
                edge=8192,
                crowd=14,
                crowd_edge=4096,
                count=600,
                request_bytes=48 * MIB,
            ),
        ),
        ("xai", "grok-4.3", ImageLimits(formats=("image/png", "image/jpeg"), encoded_bytes=27_962_028)),
        ("mistral", "mistral-small-latest", ImageLimits(still=True, encoded_bytes=13_981_016)),
        ("mistral", "pixtral-large-latest", ImageLimits(still=True, encoded_bytes=13_981_016, count=8)),
        ("", "anything", ImageLimits()),
    ],
)
def test_limits_are_those_of_the_upstream(upstream: str, model: str, limits: ImageLimits) -> None:
    assert look_up_profile(upstream, C, model).limits == limits


def test_the_crowd_limits_of_deepseek_and_anthropic() -> None:
    deepseek, anthropic = (look_up_profile(name, A, "claude-x").limits for name in ("deepseek", "anthropic"))
    assert [deepseek.get_max_edge(n) for n in (14, 15)] == [8192, 4096]
    assert [anthropic.get_max_edge(n) for n in (20, 21)] == [8000, 2000]


@requirement("preset.addresses")
@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.anthropic.com", "anthropic"),
        ("https://api.anthropic.com/v1/", "anthropic"),
        ("HTTPS://API.OpenAI.com/v1", "openai"),
        ("api.openai.com", "openai"),
        ("https://api.openai.com:443/v1", "openai"),
        ("https://chatgpt.com/backend-api/codex", "chatgpt"),
        ("https://chatgpt.com", ""),
        ("https://api.z.ai/api/paas/v4", "zai"),
        ("https://api.z.ai/api/coding/paas/v4", "zai-coding"),
        ("https://open.bigmodel.cn/api/coding/paas/v4/", "zai-coding"),
        ("https://open.bigmodel.cn/api/anthropic", "zai"),
        ("https://api.z.ai/api/codingx", "zai"),
        ("https://api.z.ai/api/v1", "zai-coding"),
        ("https://api.kimi.com/coding/", "kimi-coding"),
        ("https://api.kimi.ai/coding/v1", "kimi-coding"),
        ("https://api.kimi.com/other", ""),
        ("https://api.moonshot.cn/anthropic", "moonshot"),
        ("https://ws-1.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1", "dashscope"),
        ("https://coding.dashscope.aliyuncs.com/v1", "dashscope-coding"),
        ("https://us.api.x.ai/v1", "xai"),
        ("https://ollama.com/v1", "ollama-cloud"),
        ("http://127.0.0.1:11434/v1", "ollama"),
        ("http://localhost:11434", "ollama"),
        ("http://[::1]:1234/v1", "lmstudio"),
        ("http://127.0.0.1:8080", "llamacpp"),
        ("http://localhost:8000/v1", "vllm"),
        ("http://localhost:9999/v1", ""),
        ("http://192.168.1.7:11434", ""),
        ("https://api.openai.com.evil.example/v1", ""),
        ("https://evil.example/x.maas.aliyuncs.com", ""),
        ("https://evil.example/api.openai.com", ""),
        ("http://localhost:99999999/v1", ""),
        ("https://[broken", ""),
        ("", ""),
    ],
)
def test_an_address_is_recognised_by_its_host_and_its_path(url: str, name: str) -> None:
    assert find_preset_name(url) == name


@requirement("profile.suffixes")
@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("GLM-5.3[1m]", "glm-5.3"),
        ("glm-5.3:cloud", "glm-5.3"),
        ("qwen3-coder:480b-cloud", "qwen3-coder:480b"),
        ("x/y:free", "x/y"),
        ("kimi-k3-highspeed", "kimi-k3"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("models/gemini-3.8-flash", "gemini-3.8-flash"),
        ("mistral-large-2512", "mistral-large-2512"),
    ],
)
def test_suffixes_of_hosts_are_stripped(model: str, name: str) -> None:
    assert strip_model_name(model) == name


def test_brackets_in_a_pattern_are_literal() -> None:
    assert match_model("glm-5.3[1m]", "GLM-5.3[1m]")
    assert not match_model("glm-5.3[1m]", "glm-5.31")


@given(st.sampled_from(["", *PRESETS]), st.sampled_from([A, C]), st.text(), st.tuples(st.text(), st.booleans()))
def test_any_name_has_a_profile(upstream: str, wire: WireName, model: str, override: tuple[str, bool]) -> None:
    found = look_up_profile(upstream, wire, model, [ProfileOverride(override[0], vision=override[1])])
    assert found.model == model
    assert found.why


@given(st.text())
def test_any_address_gives_a_preset_name_or_none(url: str) -> None:
    assert find_preset_name(url) in {"", *PRESETS}
