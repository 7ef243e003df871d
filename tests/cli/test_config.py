"""`sightline config`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    width = max(len(key.name) for key in KEYS)
    assert f"  {'mode':<{width}} always       (file)" in lines
    assert f"  {'seer':<{width}} off          (environment PI_VISION_PROXY_SEER)" in lines
    values = [line for line in lines if line.startswith("  ")]
    assert len(values) == len(KEYS)
    assert all(line[2 + width] == " " and line[3 + width] != " " for line in values), "one column under the other"


@requirement("config", "cli.json")
def test_set_and_get_agree(home: Path) -> None:
    ended = sightline("config", "set", "mode", "always")
    assert (ended.code, ended.out) == (0, f"mode is always in {home / FILE_NAME}\n")
    assert sightline("config", "get", "mode").out == "always\n"
    assert sightline("config", "set", "maxImagesPerTurn", "3", "--json").json["value"] == 3
    assert sightline("config", "get", "maxImagesPerTurn", "--json").json == {
        "ok": True,
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


@requirement("settings.hidden")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("apiKey", KEY),
        ("auxiliary.vision.apiKey", KEY),
        ("upstreams", json.dumps({"work": {"baseUrl": "https://example.com", "apiKey": KEY}})),
    ],
)
def test_a_key_on_the_command_line_is_taken_with_a_warning(home: Path, name: str, text: str) -> None:
    ended = sightline("config", "set", name, text)
    assert ended.code == 0
    assert KEY in (home / FILE_NAME).read_text("utf-8")
    assert "history" in ended.err
    assert f"sightline config set {name} -" in ended.err
    assert KEY not in ended.err + ended.out
    assert sightline("config", "set", name, "-", given=text).err == ""
    assert sightline("config", "set", "apiKey", "").err == ""


@requirement("cli.json.refused")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["get", "mood"], "not_found"),
        (["set", "mode", "sometimes"], "invalid_input"),
        (["model", "m"], "invalid_input"),
        (["model", "nowhere/m"], "not_found"),
        (["forget", "m"], "invalid_input"),
        (["forget", "deepseek/m"], "not_found"),
    ],
)
def test_a_refusal_is_an_object_where_one_is_asked_for(words: list[str], reason: str) -> None:
    ended = sightline("config", *words, "--json")
    assert (ended.code, ended.json["ok"], ended.json["reason"]) == (1, False, reason)
    assert ended.err == f"sightline: {ended.json['message']}\n"


@requirement("recover.listed")
def test_a_lesson_in_a_record_that_cannot_be_opened_is_not_said_to_be_unknown(home: Path) -> None:
    (home / "record").mkdir()
    (home / "record" / "record.sqlite").write_bytes(b"no database" * 1000)
    assert_refused(sightline("config", "forget", "deepseek/m"), "cannot be used")


@requirement("cli.plain")
def test_a_value_is_shown_in_its_lines_and_without_orders_for_the_terminal(home: Path) -> None:
    (home / FILE_NAME).write_text(json.dumps({"systemPrompt": "one\ntwo \x1b[2J\x9b", "provider": "\ud800"}))
    assert sightline("config", "get", "systemPrompt").out == "one\ntwo ?[2J?\n"
    shown = sightline("config", "show")
    assert "\x1b" not in shown.out
    ended = sightline("config", "show", "--json")
    assert ended.json["settings"]["systemPrompt"]["value"] == "one\ntwo \x1b[2J\x9b"
    assert ended.json["settings"]["provider"]["value"] == "\ud800"
    assert ended.out.rstrip("\n").isprintable()


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
    assert forgotten.json == {"ok": True, "forgotten": "deepseek/deepseek-v4-pro"}
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
