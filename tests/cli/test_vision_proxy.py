"""`sightline vision-proxy`: the commands of a chat, from a shell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.verbs import open_record
from sightline.settings import load_settings
from tests.api.eyes import eyes, named, sent
from tests.cli.command import assert_refused, sightline
from tests.engine.parts import picture
from tests.requirements import requirement


@requirement("FR-1.7")
@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (["mode", "always"], "mode", "always"),
        (["off"], "mode", "off"),
        (["tool", "off"], "tool", "off"),
        (["context", "off"], "includeContext", False),
        (["max-images-per-call", "20"], "maxImagesPerCall", 20),
        (["max-batch", "1"], "maxBatch", 1),
        (["cache-size", "0"], "cacheSize", 0),
        (["model", "openai/gpt-5.4"], "seer", "openai/gpt-5.4"),
        (["model", "local"], "seer", "local"),
    ],
)
def test_setting_a_value_is_confirmed(words: list[str], key: str, value: object) -> None:
    ended = sightline("vision-proxy", *words)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("[Vision Proxy] ")
    assert load_settings().json_values[key] == value


@requirement("FR-1.7", "command.errors")
@pytest.mark.parametrize(
    "words",
    [
        ["max-images-per-call", "0"],
        ["max-images-per-call", "21"],
        ["max-batch", "11"],
        ["cache-size", "501"],
        ["mode", "sometimes"],
        ["model", "nope/x"],
        ["model", "deepseek/deepseek-v4-pro"],
        ["dance"],
        ["describe"],
        ["grounding-models", "add", "my/model", "--format", "none_such"],
    ],
)
def test_an_invalid_setting_is_refused_and_nothing_is_written(words: list[str], home: Path) -> None:
    assert_refused(sightline("vision-proxy", *words))
    assert not (home / "vision-proxy.json").exists()


@requirement("FR-1.7")
def test_a_setting_fixed_by_the_environment_is_not_changed(home: Path) -> None:
    env = {"PI_VISION_PROXY_CACHE_SIZE": "7", "PI_VISION_PROXY_MODEL": "openai/gpt-5.4"}
    ended = sightline("vision-proxy", "cache-size", "9", env=env)
    assert_refused(ended, "unset PI_VISION_PROXY_CACHE_SIZE")
    assert_refused(sightline("vision-proxy", "model", "zai/glm-5v", env=env), "unset PI_VISION_PROXY_MODEL")
    assert not (home / "vision-proxy.json").exists()
    assert "cache-size: 7 (environment PI_VISION_PROXY_CACHE_SIZE)" in sightline("vision-proxy", env=env).out


@requirement("FR-4.1.2", "FR-4.1.1.excluded", "FR-4.7")
def test_grounding_models_are_added_removed_listed_and_reset() -> None:
    def held() -> Any:
        return load_settings().json_values["groundingModels"]

    known = sightline("vision-proxy", "grounding-models", "add", "ollama/qwen3-vl:8b")
    assert (known.code, known.err) == (0, "")
    assert known.out.startswith("[Vision Proxy] ")
    assert known.out.endswith("ollama/qwen3-vl:8b: qwen_normalized_1000\n")
    unknown = sightline("vision-proxy", "grounding-models", "add", "my/own-model")
    assert (unknown.code, "qwen_pixels" in unknown.err) == (0, True)
    chosen = sightline("vision-proxy", "grounding-models", "add", "my/other", "--format", "molmo_points")
    assert (chosen.code, chosen.err) == (0, "")
    assert held() == {
        "ollama/qwen3-vl:8b": {"format": "qwen_normalized_1000"},
        "my/own-model": {"format": "qwen_pixels"},
        "my/other": {"format": "molmo_points"},
    }
    for model in ("anthropic/claude-opus-5", "openai/gpt-5", "meta/llama-4-vision"):
        no = sightline("vision-proxy", "grounding-models", "add", model, "--format", "qwen_pixels")
        assert_refused(no, model, "--yes")
    assert sightline("vision-proxy", "grounding-models", "add", "openai/gpt-5", "--yes").code == 0
    assert "my/other: molmo_points (" in sightline("vision-proxy", "grounding-models", "list").out
    sightline("vision-proxy", "grounding-models", "remove", "my/other")
    assert "my/other" not in held()
    before = held()
    never = sightline("vision-proxy", "grounding-models", "remove", "never/there")
    assert_refused(never, "never/there", "grounding-models list")
    assert held() == before
    by_family = sightline("vision-proxy", "grounding-models", "remove", "mine/qwen3-vl")
    assert (by_family.code, held()["mine/qwen3-vl"]) == (0, {"format": "none"})
    assert sightline("vision-proxy", "grounding-models", "reset").code == 0
    assert held() == {}


@requirement("mode.off.commands", "FR-3.6")
def test_describe_accepts_several_crops_and_quotes(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    with eyes("words") as provider:
        env = named(provider)
        words = ("describe", "1.png", "2.png", "--crop", "0:r=top", "1:r=left", "--question", "What is 'it'?")
        ended = sightline("vision-proxy", *words, env=env, folder=tmp_path)
        assert ended.code == 0
        assert re.fullmatch(r"\[Vision Proxy\] 1\.png, 2\.png by mine/eye-1 .*\n\nwords\n", ended.out)
        first, second, _, *_, asked = sent(provider)[1].rpartition("Image 1:")[2].split("\n")
        assert ("320x120" in first, "1.png" in first) == (True, True)
        assert (second.startswith("Image 2:"), "160x240" in second, "2.png" in second) == (True, True, True)
        assert asked == "What is 'it'?"
        off = {**env, "SIGHTLINE_MODE": "off"}
        assert_refused(sightline("vision-proxy", "describe", "1.png", env=off, folder=tmp_path), "mode")
        assert sightline("vision-proxy", "status", env=off).code == 0
        assert sightline("vision-proxy", "consent", "yes", "openai", env=off).code == 0
    assert json.loads(sightline("consent", "list", "--json").out)["consents"] == {"openai": True}
    with open_record(load_settings()) as record:
        noted = [entry.about.get("command") for entry in record.ledger.list_entries("vision_proxy.command")]
    listed = sightline("vision-proxy", "list").out.splitlines()
    assert all(line.endswith("/eye-1: What is 'it'?") for line in listed), listed
    assert noted == [None, None, "status", "consent yes openai"], (
        "each look has an entry of its own, also a refused one"
    )


@requirement("FR-1.7")
def test_status_shows_a_switch_as_it_is_typed() -> None:
    assert "[Vision Proxy] context: on (" in sightline("vision-proxy").out
    sightline("vision-proxy", "context", "off")
    assert "[Vision Proxy] context: off (" in sightline("vision-proxy").out


def test_status_names_the_seer_and_the_consent() -> None:
    env = {"SIGHTLINE_MODEL": "openai/gpt-5.4"}
    lines = sightline("vision-proxy", env=env).out.splitlines()
    assert (lines[0].startswith("[Vision Proxy] "), lines[0].endswith(" openai/gpt-5.4")) == (True, True)
    assert lines[1] == "[Vision Proxy] consent: openai no"
    (nothing,) = sightline("vision-proxy", "list").out.splitlines()
    assert (nothing.startswith("[Vision Proxy] "), "sha256:" in nothing) == (True, False)
