"""What upstreams publish about their models: the shapes of their answers, and where they are asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.profile import Lesson, Profile, Upstream
from sightline.profiles.presets import PRESETS
from sightline.vision.capabilities import list_requests, parse_listing
from tests.requirements import requirement

ANSWERS: list[tuple[str, Any, dict[str, dict[str, bool]]]] = [
    (
        "OpenRouter",
        {
            "data": [
                {"id": "a/eye", "architecture": {"input_modalities": ["text", "image", "file"]}},
                {"id": "a/stone", "architecture": {"input_modalities": ["text"]}},
                {"id": "a/unknown"},
            ]
        },
        {
            "a/eye": {"vision": True, "pdf": True, "video": False},
            "a/stone": {"vision": False, "pdf": False, "video": False},
        },
    ),
    (
        "llama.cpp",
        {
            "data": [{"id": "qwen", "architecture": {"input_modalities": ["text", "image"]}}],
            "models": [{"name": "qwen"}],
        },
        {"qwen": {"vision": True, "pdf": False, "video": False}},
    ),
    (
        "Mistral",
        {
            "data": [
                {"id": "pixtral", "capabilities": {"vision": True}},
                {"id": "code", "capabilities": {"vision": False}},
            ]
        },
        {"pixtral": {"vision": True}, "code": {"vision": False}},
    ),
    (
        "Kimi",
        {"data": [{"id": "k3", "supports_image_in": False, "supports_video_in": True}]},
        {"k3": {"vision": False, "video": True}},
    ),
    (
        "LM Studio, v0",
        {"data": [{"id": "a", "type": "vlm"}, {"id": "b", "type": "llm"}, {"id": "c", "type": "embeddings"}]},
        {"a": {"vision": True}, "b": {"vision": False}},
    ),
    (
        "LM Studio, v1",
        {"models": [{"key": "a", "type": "llm", "capabilities": {"vision": True, "trained_for_tool_use": True}}]},
        {"a": {"vision": True}},
    ),
    (
        "Anthropic",
        {
            "data": [
                {"id": "c", "capabilities": {"image_input": {"supported": True}, "pdf_input": {"supported": False}}}
            ]
        },
        {"c": {"vision": True, "pdf": False}},
    ),
    ("Copilot", {"data": [{"id": "g", "capabilities": {"supports": {"vision": False}}}]}, {"g": {"vision": False}}),
    (
        "Codex",
        {"models": [{"slug": "g", "input_modalities": ["text"]}]},
        {"g": dict.fromkeys(("vision", "pdf", "video"), False)},
    ),
    ("Fireworks", {"data": [{"id": "f", "supports_image_input": True}]}, {"f": {"vision": True}}),
    ("vLLM, which says nothing", {"data": [{"id": "v", "owned_by": "vllm", "max_model_len": 1}]}, {}),
    ("speech, which is something else", {"data": [{"id": "s", "input_modalities": ["audio"]}]}, {}),
]


@requirement("profile.discovered")
@pytest.mark.parametrize(("answer", "found"), [each[1:] for each in ANSWERS], ids=[each[0] for each in ANSWERS])
def test_a_listing_is_read_by_its_shape(answer: Any, found: Any) -> None:
    assert parse_listing(answer) == found


@requirement("profile.discovered")
def test_an_answer_about_one_model_is_read() -> None:
    assert parse_listing({"capabilities": ["completion", "vision"]}, "m") == {"m": {"vision": True}}
    assert parse_listing({"capabilities": ["completion"]}, "m") == {"m": {"vision": False}}
    assert parse_listing({"modalities": {"vision": True, "audio": False}}, "m") == {"m": {"vision": True}}
    assert parse_listing({"license": "MIT"}, "m") == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["id", "text", "image", "vision", "vlm"]),
    lambda each: (
        st.lists(each) | st.dictionaries(st.sampled_from(["data", "models", "id", "capabilities", "type"]), each)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_answer_can_be_parsed(answer: Any) -> None:
    for name in ("", "m"):
        assert all(isinstance(flag, bool) for kinds in parse_listing(answer, name).values() for flag in kinds.values())


@requirement("profile.discovered")
@pytest.mark.parametrize(
    ("preset", "urls"),
    [
        ("openrouter", ["https://openrouter.ai/api/v1/models"]),
        ("mistral", ["https://api.mistral.ai/v1/models"]),
        ("ollama", ["http://localhost:11434/api/show"]),
        ("lmstudio", ["http://localhost:1234/api/v1/models", "http://localhost:1234/api/v0/models"]),
        ("llamacpp", ["http://localhost:8080/v1/models", "http://localhost:8080/props"]),
        ("openai", []),
        ("vllm", []),
        ("bedrock", []),
    ],
)
def test_each_upstream_is_queried_at_its_own_address(preset: str, urls: list[str]) -> None:
    known = PRESETS[preset]
    upstream = Upstream(preset, known.bases, preset=preset)
    assert [each.url for each in list_requests(upstream, "openai_chat", "m")] == urls


@requirement("profile.discovered")
def test_an_unknown_upstream_is_asked_unless_it_is_on_this_machine() -> None:
    away, here = (
        Upstream("own", {"openai_chat": base}) for base in ("https://llm.example.com/v1", "http://[::1]:9/v1")
    )
    assert [each.url for each in list_requests(away, "openai_chat", "m")] == ["https://llm.example.com/v1/models"]
    assert list_requests(here, "openai_chat", "m") == ()


@requirement("profile.discovered")
def test_user_settings_and_lessons_override_a_listing() -> None:
    known = Profile("up", "openai_chat", "m", vision=True, why="a table")
    said = Lesson(published={"vision": False})
    assert known.apply_lesson(said).vision is False
    assert known.apply_lesson(said).why != "a table"
    learnt = Lesson(blind=False, why="a trial", published={"vision": False})
    assert (known.apply_lesson(learnt).vision, known.apply_lesson(learnt).why) == (True, "a trial")
    own = Profile("up", "openai_chat", "m", vision=True, vision_by_user=True)
    assert own.apply_lesson(said) == own
    assert known.apply_lesson(Lesson(published={"pdf": True})) == known
