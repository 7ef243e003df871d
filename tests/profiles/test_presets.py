"""The table of upstreams agrees with itself, with what is asked of it, and with its page."""

from __future__ import annotations

from typing import get_args
from urllib.parse import urlsplit

import pytest

from sightline.model.image import compute_base64_length
from sightline.model.profile import WireName
from sightline.profiles import Preset
from sightline.profiles.presets import PRESETS
from sightline.profiles.profile_lookup import find_preset_name, look_up_profile, match_model
from tests.profiles.document import PAGE, page
from tests.requirements import requirement

WIRES: tuple[WireName, ...] = get_args(WireName)
each_preset = pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS.keys())


@requirement("preset.names")
def test_every_required_upstream_has_a_preset() -> None:
    promised = """anthropic openai chatgpt gemini deepseek zai moonshot kimi-coding minimax dashscope
        openrouter xai mistral groq ollama lmstudio llamacpp vllm zai-coding"""
    assert set(promised.split()) <= PRESETS.keys()


@requirement("preset.page")
def test_the_page_of_upstreams_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m tests.profiles.document"


@requirement("preset.in_the_open")
@each_preset
def test_a_key_is_never_sent_in_the_clear(preset: Preset) -> None:
    for base in preset.bases.values():
        parts = urlsplit(base)
        assert parts.scheme == "https" or parts.hostname == "localhost"
        assert not base.endswith("/")


@each_preset
def test_an_address_of_a_preset_leads_back_to_it(preset: Preset) -> None:
    for wire, base in preset.bases.items():
        shared = preset.name == "zai-coding" and wire == "anthropic"
        assert find_preset_name(base) == ("zai" if shared else preset.name)


@requirement("preset.sibling")
@each_preset
@pytest.mark.parametrize("wire", WIRES)
def test_a_sibling_has_vision(preset: Preset, wire: WireName) -> None:
    siblings = {preset.sibling, *(row.sibling for row in preset.rules)} - {None}
    for sibling in siblings:
        assert sibling
        assert look_up_profile(preset.name, wire, sibling).vision is (None if preset.name == "openrouter" else True)


@each_preset
def test_no_rule_is_hidden_by_an_earlier_one(preset: Preset) -> None:
    for index, row in enumerate(preset.rules):
        example = row.pattern.replace("*", "")
        before = [each for each in preset.rules[:index] if not each.wires or each.wires == row.wires]
        assert not [each for each in before if match_model(each.pattern, example)], row


@requirement("preset.sibling")
@each_preset
def test_every_host_with_blind_models_has_a_sibling(preset: Preset) -> None:
    remote = not preset.addresses[0].startswith("localhost")
    assert preset.sibling or not remote or not preset.bases, "whom nobody is sent to, nobody asks"


def test_a_limit_on_decoded_bytes_is_compared_as_base64() -> None:
    assert [compute_base64_length(n) for n in (0, 1, 2, 3, 4, 3_932_160)] == [0, 4, 4, 4, 8, 5_242_880]
