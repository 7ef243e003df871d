"""`sightline config`."""

from __future__ import annotations

import json
from pathlib import Path

from sightline.model.profile import Lesson, Limits
from sightline.settings import FILE_NAME, KEYS
from sightline.store import open_record
from tests.cli.command import assert_refused, sightline
from tests.requirements import requirement

KEY = "sk-that-nobody-may-see"


@requirement("config")
def test_show_lists_each_setting_with_what_decided_it(home: Path) -> None:
    (home / FILE_NAME).write_text('{"mode": "always", "colour": "blue"}')
    variables = {"PI_VISION_PROXY_SEER": "off"}
    shown = sightline("config", "show", "--json", env=variables).json
    assert shown["file"] == str(home / FILE_NAME)
    assert list(shown["settings"]) == [key.name for key in KEYS]
    assert shown["settings"]["mode"] == {"value": "always", "source": "file"}
    assert shown["settings"]["seer"] == {"value": "off", "source": "environment PI_VISION_PROXY_SEER"}
    assert shown["settings"]["record"] == {"value": "disk", "source": "default"}
    assert (shown["learnt"], shown["warnings"]) == ([], [])
    lines = sightline("config", "show", env=variables).out.splitlines()
    assert "  mode               always       (file)" in lines
    assert "  seer               off          (environment PI_VISION_PROXY_SEER)" in lines


@requirement("config", "cli.json")
def test_set_and_get_agree(home: Path) -> None:
    ended = sightline("config", "set", "mode", "always")
    assert (ended.code, ended.out) == (0, f"mode is always in {home / FILE_NAME}\n")
    assert sightline("config", "get", "mode").out == "always\n"
    assert sightline("config", "set", "maxImagesPerTurn", "3", "--json").json["value"] == 3
    assert sightline("config", "get", "maxImagesPerTurn", "--json").json == {
        "key": "maxImagesPerTurn",
        "value": 3,
        "source": "file",
    }
    models = '{"zai/glm-5*": {"vision": false}}'
    assert sightline("config", "set", "models", models).code == 0
    assert sightline("config", "get", "models").out == models + "\n"


@requirement("settings.hidden")
def test_a_key_is_taken_from_standard_input_and_never_shown(home: Path) -> None:
    ended = sightline("config", "set", "apiKey", "-", given=f"{KEY}\n")
    assert ended.code == 0
    held = home / FILE_NAME
    assert json.loads(held.read_text("utf-8")) == {"apiKey": KEY}
    assert held.stat().st_mode & 0o777 == 0o600
    shown = [ended, sightline("config", "show"), sightline("config", "show", "--json")]
    shown.append(sightline("config", "get", "apiKey"))
    assert KEY not in repr(shown)
    assert shown[-1].out == "set\n"


@requirement("cli.one_line", "cli.exit", "settings.locked")
def test_what_cannot_be_set_is_refused_in_one_line(home: Path) -> None:
    assert_refused(sightline("config", "set", "mode", "sometimes"), "sometimes", "fallback, always, off")
    assert_refused(sightline("config", "set", "maxImagesPerTurn", "-1"), "0–1000")
    assert_refused(sightline("config", "set", "mood", "off"), "mood", "did you mean mode?")
    assert_refused(sightline("config", "get", "mood"), "mood")
    fixed = {"SIGHTLINE_MODE": "off"}
    assert_refused(sightline("config", "set", "mode", "always", env=fixed), "unset SIGHTLINE_MODE")
    (home / FILE_NAME).write_text("{")
    ended = sightline("config", "set", "mode", "off")
    assert ended.code == 1
    assert "is not JSON" in ended.err.splitlines()[-1]
    assert (home / FILE_NAME).read_text("utf-8") == "{"


@requirement("cli.json")
def test_a_warning_does_not_spoil_the_answer() -> None:
    ended = sightline("config", "show", "--json", env={"SIGHTLINE_MODE": "sometimes"})
    assert ended.json["settings"]["mode"] == {"value": "fallback", "source": "default"}
    assert len(ended.json["warnings"]) == 1
    assert ended.err.startswith("sightline: warning: mode (environment SIGHTLINE_MODE)")


@requirement("recover.listed")
def test_what_was_learnt_is_shown_and_forgotten(home: Path) -> None:
    record = open_record(home / "record")
    record.learn("deepseek", "deepseek-v4-pro", Lesson(blind=True, why="it takes text only"), days=7)
    record.learn("openrouter", "z-ai/glm", Lesson(limits=Limits(edge=2000), why="2000 px"), days=7)
    record.close()
    lines = sightline("config", "show").out.splitlines()
    assert "  deepseek/deepseek-v4-pro: blind (it takes text only)" in lines
    assert "  openrouter/z-ai/glm: edge 2000 (2000 px)" in lines
    assert sightline("config", "forget", "openrouter/z-ai/glm").out == "forgotten: openrouter/z-ai/glm\n"
    forgotten = sightline("config", "forget", "deepseek/deepseek-v4-pro", "--json")
    assert forgotten.json == {"forgotten": "deepseek/deepseek-v4-pro"}
    assert sightline("config", "show", "--json").json["learnt"] == []
    assert_refused(sightline("config", "forget", "deepseek/deepseek-v4-pro"), "nothing was learnt")
    assert_refused(sightline("config", "forget", "deepseek"), "UPSTREAM/MODEL")


@requirement("config.rule", "profile.models.vision", "profile.user_first")
def test_model_says_what_is_known_and_which_rule_decided_it(home: Path) -> None:
    told = sightline("config", "model", "deepseek/deepseek-v4-pro").out
    assert "anthropic    is blind: deepseek-v4-pro* at deepseek is blind\n" in told
    unknown = sightline("config", "model", "zai/claude-x", "--json").json["wires"]["anthropic"]
    assert unknown == {
        "vision": None,
        "why": "claude* at zai may or may not see images",
        "sibling": "glm-5.3-flash",
    }
    record = open_record(home / "record")
    record.learn("zai", "claude-x", Lesson(blind=True, why="the upstream answered so"), 7)
    record.close()
    learnt = sightline("config", "model", "zai/claude-x", "--json").json["wires"]["anthropic"]
    assert (learnt["vision"], learnt["why"]) == (False, "the upstream answered so")
    (home / FILE_NAME).write_text('{"models": {"zai/claude-*": {"vision": true}}}')
    said = sightline("config", "model", "zai/claude-x", "--json").json["wires"]["anthropic"]
    assert (said["vision"], said["why"]) == (True, "your setting says that zai/claude-* sees images")
    assert_refused(sightline("config", "model", "nowhere/m"), "nowhere", "deepseek")
    assert_refused(sightline("config", "model", "m"), "UPSTREAM/MODEL")
