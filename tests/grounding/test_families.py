"""Which coordinate format a model uses, by its family or by the user's entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.grounding import (
    FAMILIES,
    FORMATS,
    SHIPPED_ENTRIES,
    add_entry,
    check_new_entry,
    choose_format,
    find_grounding_family,
    list_grounding_models,
    remove_entry,
)
from tests.requirements import requirement

MODELS = {
    "Qwen/Qwen2.5-VL-3B-Instruct": "qwen_pixels",
    "Qwen/Qwen2.5-VL-7B-Instruct": "qwen_pixels",
    "Qwen/Qwen2.5-VL-32B-Instruct": "qwen_pixels",
    "Qwen/Qwen2.5-VL-72B-Instruct": "qwen_pixels",
    "ollama/qwen2.5vl:7b": "qwen_pixels",
    "fireworks/accounts/fireworks/models/qwen2p5-vl-32b-instruct": "qwen_pixels",
    "lmstudio/qwen2_5-vl-7b": "qwen_pixels",
    "Qwen/Qwen3-VL-7B": "qwen_normalized_1000",
    "openrouter/qwen/qwen3-vl-235b-a22b-instruct:free": "qwen_normalized_1000",
    "dashscope/qwen3.5-plus": "qwen_normalized_1000",
    "dashscope/qwen3.8-flash": "qwen_normalized_1000",
    "Qwen/Qwen2-VL-7B-Instruct": "qwen_normalized_1000",
    "Qwen/Qwen-VL-Chat": "qwen_normalized_1000",
    "allenai/Molmo2-8B": "molmo2_points",
    "allenai/Molmo2-72B": "molmo2_points",
    "allenai/Molmo-7B-O-0924": "molmo_points",
    "allenai/MolmoE-1B-0924": "molmo_points",
    "allenai/Molmo-72B-0924": "molmo_points",
    "deepseek-ai/deepseek-vl2": "deepseek_bbox",
    "deepseek-ai/deepseek-vl2-tiny": "deepseek_bbox",
    "deepseek-ai/deepseek-vl2-small": "deepseek_bbox",
    "deepseek-ai/DeepSeek-OCR": "deepseek_bbox",
    "OpenGVLab/InternVL3-8B": "internvl_normalized_1000",
    "OpenGVLab/InternVL2_5-8B": "internvl_normalized_1000",
    "zai/glm-4.5v": "glm_normalized_1000",
    "zai/glm-4.6v-flash": "glm_normalized_1000",
    "THUDM/cogvlm2-llama3-chat-19B": "glm_normalized_1000",
    "ByteDance-Seed/UI-TARS-1.5-7B": "uitars_pixels",
    "ByteDance-Seed/UI-TARS-7B-DPO": "qwen_normalized_1000",
    "ByteDance-Seed/UI-TARS-2B-SFT": "qwen_normalized_1000",
    "microsoft/Florence-2-large": "florence_loc",
    "google/paligemma2-3b-mix-448": "paligemma_loc",
    "microsoft/kosmos-2-patch14-224": "kosmos_patches",
    "microsoft/kosmos-2.5": "none",
    "vikhyatk/moondream2": "unit_xyxy",
    "moonshotai/Kimi-VL-A3B-Instruct": "unit_xyxy",
    "showlab/ShowUI-2B": "unit_xyxy",
    "google/gemini-2.5-pro": "gemini_normalized_1000",
    "google/gemini-3-pro": "gemini_normalized_1000",
    "google/gemini-1.5-pro": "none",
    "anthropic/claude-opus-4-5": "none",
    "openai/gpt-4o": "none",
    "openai/gpt-5": "none",
    "meta/llama-3.2-90b-vision": "none",
    "qwen/qwen3-32b": "none",
    "qwen/qwen3-coder": "none",
    "dashscope/qwen-vl-max": "none",
    "mistral/pixtral-12b": "none",
    "": "none",
}


@requirement("grounding.patterns", "FR-4.1.1")
@pytest.mark.parametrize(("model", "expected"), MODELS.items())
def test_a_model_writes_as_its_family_does(model: str, expected: str) -> None:
    assert choose_format(model) == expected


@requirement("grounding.patterns")
@given(st.text())
def test_any_name_has_a_format(model: str) -> None:
    assert choose_format(model, {model: "molmo_points"}) in FORMATS
    assert choose_format(model) in FORMATS


@requirement("FR-4.1.1")
def test_unreliable_families_are_not_listed() -> None:
    tiers = {each.name: each.tier for each in FAMILIES}
    assert {name for name, tier in tiers.items() if tier == 2} == {"Gemini 2 and 3"}
    assert {name for name, tier in tiers.items() if tier == 0} == {"Claude", "GPT", "Llama Vision"}
    listed = {name: note for name, _, note in list_grounding_models({})}
    assert listed.keys() == {name for name, tier in tiers.items() if tier}
    assert listed["Gemini 2 and 3"]


def test_every_family_has_an_existing_format() -> None:
    assert {each.format for each in FAMILIES} - {""} <= FORMATS.keys()
    assert set(SHIPPED_ENTRIES.values()) <= FORMATS.keys()


@requirement("grounding.patterns")
def test_the_users_entry_wins_by_its_whole_name_or_the_end_of_it() -> None:
    entries = {"Qwen/Qwen3-VL-8B": "qwen_pixels", "my-model": "unit_xyxy", "lab/my-model": "gpt_pixels"}
    assert choose_format("qwen/qwen3-vl-8b", entries) == "qwen_pixels"
    assert choose_format("openrouter/qwen/qwen3-vl-8b", entries) == "qwen_pixels"
    assert choose_format("qwen/qwen3-vl-80b", entries) == "qwen_normalized_1000"
    assert choose_format("host/my-model", entries) == "unit_xyxy"
    assert choose_format("host/lab/my-model", entries) == "gpt_pixels"
    assert choose_format("host/not-my-model", entries) == "none"
    assert choose_format("allenai/Molmo2-8B", {"allenai/Molmo2-8B": "none"}) == "none"


@requirement("grounding.patterns")
def test_a_shipped_entry_is_not_the_users_choice() -> None:
    for model, was in SHIPPED_ENTRIES.items():
        assert choose_format(model, SHIPPED_ENTRIES) == MODELS[model]
        assert choose_format(model, {model: "unit_xyxy"}) == "unit_xyxy" != was


def test_an_entry_with_an_unknown_format_is_ignored() -> None:
    assert choose_format("allenai/Molmo2-8B", {"allenai/Molmo2-8B": "runes"}) == "molmo2_points"


def test_adding_a_model_uses_its_format_or_warns_or_asks() -> None:
    assert check_new_entry("zai/glm-4.6v") == check_new_entry("zai/glm-4.6v", "glm_normalized_1000")
    assert check_new_entry("who/knows").format == "qwen_pixels"
    assert "qwen_pixels" in check_new_entry("who/knows").warning
    assert check_new_entry("who/knows", "unit_xyxy").warning == ""
    for model, form in {"anthropic/claude-x": "claude_pixels", "openai/gpt-5": "gpt_pixels"}.items():
        assert (check_new_entry(model).format, check_new_entry(model).warning) == (form, "")
        assert "unreliable" in check_new_entry(model).question
    assert check_new_entry("meta/llama-3.2-11b-vision").warning
    assert check_new_entry("meta/llama-3.2-11b-vision", "qwen_pixels").question


def test_models_can_be_added_and_removed() -> None:
    entries = add_entry({"a/b": "unit_xyxy"}, "A/B", "gpt_pixels")
    assert entries == {"A/B": "gpt_pixels"}
    assert remove_entry(entries, "a/b") == {}
    without = remove_entry({}, "zai/glm-4.6v")
    assert choose_format("zai/glm-4.6v", without) == "none"
    assert choose_format("zai/glm-4.6v", add_entry(without, "zai/glm-4.6v", "unit_xyxy")) == "unit_xyxy"


@requirement("grounding.native")
@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_its_own_instruction(name: str) -> None:
    others = {form.instruction for key, form in FORMATS.items() if key != name and "pixels" not in key}
    assert (FORMATS[name].instruction == "") == (name == "none")
    assert FORMATS[name].instruction not in others


@requirement("grounding.native")
def test_the_required_instructions_are_word_for_word() -> None:
    assert FORMATS["qwen_pixels"].instruction == (
        "When you describe a spatial element, follow the description with bounding-box coordinates as "
        "`[x1, y1, x2, y2]` in absolute pixels relative to the image. Use `Image-N:` prefix for multi-image inputs."
    )
    assert FORMATS["molmo_points"].instruction == (
        "When you describe a spatial element, follow the description with point coordinates as "
        '`<point x="..." y="..." alt="..."/>` using your standard percentage-based convention.'
    )


def test_a_family_is_found_by_the_first_pattern() -> None:
    known = find_grounding_family("ByteDance-Seed/UI-TARS-1.5-7B")
    assert known is not None
    assert known.name == "UI-TARS 1.5"
