"""What a model takes, for whoever asks it by name: the user's word, exact ids, else no."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sightline
from sightline.profiles.presets import PRESETS
from sightline.profiles.profile_lookup import MEDIA_KINDS, MediaOverride, accepts_media
from sightline.settings import Settings, load_settings
from sightline.vision.capabilities import load_capability_table, write_declaration
from tests.requirements import requirement

SIX = ("claude-opus-4-7", "claude-sonnet-4-6", "gpt-5", "gpt-5-mini", "gemini-2.5-pro", "gemini-2.5-flash")


def settings(home: Path, **held: object) -> Settings:
    (home / "vision-proxy.json").write_text(json.dumps(held))
    return load_settings({"SIGHTLINE_HOME": str(home)})


@requirement("profile.six")
@pytest.mark.parametrize("model", SIX)
@pytest.mark.parametrize("held", [{}, None], ids=["no table", "the table"])
def test_six_models_accept_images_and_pdf_by_definition(model: str, held: dict[str, str] | None) -> None:
    rows = load_capability_table() if held is None else held
    assert accepts_media("vision", model, [], [], rows)
    assert accepts_media("pdf", model, [], [], rows)


@requirement("profile.exports")
@pytest.mark.parametrize(
    ("model", "vision", "pdf", "video"),
    [
        ("gemini-2.5-pro", True, True, True),
        ("models/gemini-2.5-pro", True, True, True),
        ("gpt-5", True, True, False),
        ("claude-sonnet-4-6[1m]", False, False, False),
        ("gpt-5-2025-08-07", True, True, False),
        ("anthropic/claude-haiku-5-5", True, True, False),
        ("anthropic/claude-opus-4-7", True, True, False),
        ("deepseek-flash", True, False, False),
        ("deepseek/deepseek-v4-pro", False, False, False),
        ("deepseek/claude-opus-4-7", False, False, False),
        ("zai/glm-5.3-flash", True, False, True),
        ("ollama/qwen3-vl:8b", True, False, True),
        ("ollama/gpt-oss:20b", False, False, False),
        ("openrouter/z-ai/glm-5.3-flash", True, False, True),
        ("gpt-5-unheard-of", False, False, False),
        ("", False, False, False),
    ],
)
def test_known_models_have_their_capabilities(
    tmp_path: Path, model: str, *, vision: bool, pdf: bool, video: bool
) -> None:
    own = settings(tmp_path)
    assert sightline.supports_vision(model, settings=own) is vision
    assert sightline.supports_pdf(model, settings=own) is pdf
    assert sightline.supports_video(model, settings=own) is video


@requirement("profile.tools_exact")
@pytest.mark.parametrize(
    "model",
    [
        "gpt-5-2099-01-01",
        "openai/gpt-5-2099-01-01",
        "openai/gpt-5-turbo-9000",
        "claude-opus-4-7-20990101",
        "anthropic/claude-opus-4-7-20990101",
        "claude-opus-4-7@20990101",
        "gemini/gemini-2.5-pro-2099-01-01",
        "openrouter/z-ai/glm-5.3-flash:free",
        "xai/grok-4-2099",
        "gpt-5:latest",
    ],
)
def test_an_unlisted_id_has_no_capabilities(tmp_path: Path, model: str) -> None:
    own = settings(tmp_path)
    assert not sightline.supports_vision(model, settings=own)
    assert not sightline.supports_pdf(model, settings=own)
    assert not sightline.supports_video(model, settings=own)


@requirement("profile.tools_exact", "preset.sibling")
def test_every_sibling_model_is_listed(tmp_path: Path) -> None:
    own = settings(tmp_path)
    named = [f"{preset.name}/{preset.sibling}" for preset in PRESETS.values() if preset.sibling]
    assert [each for each in named if not sightline.supports_vision(each, settings=own)] == []


@requirement("profile.tools_exact")
def test_the_users_settings_come_first(tmp_path: Path) -> None:
    own = settings(
        tmp_path,
        models={"gpt-5*": {"vision": False}, "work/*": {"vision": True, "pdf": True}, "eye-?": {"video": True}},
        upstreams={"work": {"baseUrl": "https://llm.example/v1"}, "deep": {"preset": "deepseek"}},
    )
    assert not sightline.supports_vision("gpt-5", settings=own)
    assert sightline.supports_pdf("gpt-5", settings=own), "of which nothing was said"
    assert sightline.supports_vision("work/anything", settings=own)
    assert sightline.supports_pdf("anything", "work", settings=own)
    assert not sightline.supports_vision("anything", settings=own)
    assert sightline.supports_video("eye-1", settings=own)
    assert not sightline.supports_vision("eye-1", settings=own)
    assert not sightline.supports_vision("deep/claude-opus-4-7", settings=own), "a preset under the user's name"


@given(st.text(max_size=40), st.text(max_size=10), st.sampled_from(MEDIA_KINDS))
def test_any_name_has_an_answer_that_the_user_can_override(model: str, host: str, kind: str) -> None:
    hosts = [host] if host else []
    asked = next(each for each in MEDIA_KINDS if each == kind)
    assert accepts_media(asked, model, hosts, [], {}) in (True, False)
    assert accepts_media(asked, model, hosts, [MediaOverride("*", {asked: True})], {}) is True


def test_the_table_is_dated_and_has_only_known_fields() -> None:
    held = json.loads((files("sightline") / "profiles/capabilities.json").read_bytes())
    assert held.keys() == {"date", "source", "models"}
    assert date.fromisoformat(held["date"]) >= date(2026, 11, 1)
    assert len(held["models"]) > 1000
    assert all(model == model.lower() for model in held["models"])
    for said in held["models"].values():
        words = said.split()
        assert words == [kind for kind in MEDIA_KINDS if kind in words] != []


def test_the_table_is_loaded_on_first_use() -> None:
    code = (
        "import sightline, sys; assert 'sightline.vision.capabilities' not in sys.modules; sightline.supports_pdf;"
        "from sightline.vision.capabilities import load_capability_table as table;"
        "assert table.cache_info().currsize == 0;"
        "sightline.supports_pdf('x'); assert table.cache_info().currsize == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@requirement("profile.declared")
def test_the_refusal_of_an_unknown_model_has_the_command_to_declare_it(tmp_path: Path) -> None:
    before: dict[str, Any] = {"mine/*": {"vision": False}, "mine/eye": {"pdf": True}}
    own = settings(tmp_path, models=before, upstreams={"mine": {"baseUrl": "https://llm.example/v1"}})
    words = shlex.split(write_declaration(own, "mine/eye", "vision"))
    assert words[:4] == ["sightline", "config", "set", "models"]
    declared = json.loads(words[4])
    assert list(declared.items()) == [("mine/eye", {"pdf": True, "vision": True}), ("mine/*", {"vision": False})]
    assert not sightline.supports_vision("mine/eye", settings=own)
    assert sightline.supports_vision("mine/eye", settings=replace(own, models=declared))
