"""`sightline config`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sightline.model.profile import ImageLimits, Lesson
from sightline.settings import FILE_NAME, KEYS, load_settings
from sightline.store import open_record
from tests.cli.command import assert_refused, sightline
from tests.requirements import requirement

KEY = "sk-that-nobody-may-see"


@requirement("config")
def test_show_lists_each_setting_with_its_source(home: Path) -> None:
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
    assert ended.code == 0
    assert "mode" in ended.out
    assert "always" in ended.out
    assert str(home / FILE_NAME) in ended.out
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


@requirement("seer.overridden")
@pytest.mark.parametrize("value", ["off", "local", "anthropic/claude-haiku-5-5"])
def test_setting_the_seer_says_if_another_setting_overrides_it(home: Path, value: str) -> None:
    assert "warning" not in sightline("config", "set", "seer", value).err
    (home / FILE_NAME).write_text('{"auxiliary.vision.model": "openai/gpt-6"}')
    ended = sightline("config", "set", "seer", value)
    assert ended.code == 0
    assert "auxiliary.vision.model" in ended.err
    assert "openai/gpt-6" in ended.err
    assert any("auxiliary.vision.model" in line for line in load_settings({"SIGHTLINE_HOME": str(home)}).advice)
    assert "auxiliary.vision.model" not in sightline("config", "set", "seer", "auto").err
    assert not load_settings({"SIGHTLINE_HOME": str(home)}).advice


@requirement("settings.live.restart")
def test_a_setting_that_needs_a_restart_says_so_when_it_is_set() -> None:
    assert "restart" in sightline("config", "set", "record", "memory").out
    assert sightline("config", "unset", "record", "--json").json["needs_restart"] is True
    assert "restart" not in sightline("config", "set", "mode", "off").out
    assert sightline("config", "set", "mode", "off", "--json").json["needs_restart"] is False


@requirement("settings.hidden")
def test_a_key_is_read_from_stdin_and_never_shown(home: Path) -> None:
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
def test_a_key_on_the_command_line_is_accepted_with_a_warning(home: Path, name: str, text: str) -> None:
    ended = sightline("config", "set", name, text)
    assert ended.code == 0
    assert KEY in (home / FILE_NAME).read_text("utf-8")
    assert f"sightline config set {name} -" in ended.err
    assert KEY not in ended.err + ended.out
    assert sightline("config", "set", name, "-", given=text).err == ""
    assert sightline("config", "set", "apiKey", "").err == ""


@requirement("settings.unset")
def test_a_setting_can_be_unset(home: Path) -> None:
    assert sightline("config", "set", "mode", "always").code == 0
    for value in ("", "default"):
        assert_refused(sightline("config", "set", "mode", value), "sightline config unset mode")
    ended = sightline("config", "unset", "mode")
    assert (ended.code, ended.out.count("\n")) == (0, 1)
    assert "mode" in ended.out
    assert "fallback" in ended.out
    assert json.loads((home / FILE_NAME).read_text("utf-8")) == {}
    assert str(home / FILE_NAME) in sightline("config", "set", "apiKey", "").out
    assert json.loads((home / FILE_NAME).read_text("utf-8")) == {"apiKey": ""}
    assert sightline("config", "unset", "apiKey", "--json").json["value"] == ""
    assert json.loads((home / FILE_NAME).read_text("utf-8")) == {}


@requirement("settings.range")
@pytest.mark.parametrize(
    ("words", "once"),
    [
        (("mode", "sometimes"), "fallback, always, off, route"),
        (("maxBatch", "11"), "1–10"),
        (("upstreams", '{"work": {"baseUrl": "example.com"}}'), '{"work": {"baseUrl": "https://llm.example.com/v1"}}'),
    ],
)
def test_allowed_values_are_listed_once(words: tuple[str, str], once: str) -> None:
    ended = sightline("config", "set", *words)
    assert_refused(ended, words[0])
    assert ended.err.count(once) == 1


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
def test_a_refusal_is_json_with_the_json_option(words: list[str], reason: str) -> None:
    ended = sightline("config", *words, "--json")
    assert (ended.code, ended.json["ok"], ended.json["reason"]) == (1, False, reason)
    assert ended.err == f"sightline: {ended.json['message']}\n"


@requirement("recover.listed")
def test_a_lesson_in_an_unreadable_record_is_not_called_unknown(home: Path) -> None:
    (home / "record").mkdir()
    (home / "record" / "record.sqlite").write_bytes(b"no database" * 1000)
    assert_refused(sightline("config", "forget", "deepseek/m"), str(home / "record"))


@requirement("cli.plain")
def test_a_value_keeps_its_lines_and_loses_terminal_escapes(home: Path) -> None:
    (home / FILE_NAME).write_text(json.dumps({"systemPrompt": "one\ntwo \x1b[2J\x9b", "provider": "\ud800"}))
    assert sightline("config", "get", "systemPrompt").out == "one\ntwo ?[2J?\n"
    shown = sightline("config", "show")
    assert "\x1b" not in shown.out
    ended = sightline("config", "show", "--json")
    assert ended.json["settings"]["systemPrompt"]["value"] == "one\ntwo \x1b[2J\x9b"
    assert ended.json["settings"]["provider"]["value"] == "\ud800"
    assert ended.out.rstrip("\n").isprintable()


@requirement("cli.one_line", "cli.exit", "settings.locked")
def test_an_invalid_setting_is_refused_in_one_line(home: Path) -> None:
    assert_refused(sightline("config", "set", "mode", "sometimes"), "sometimes", "fallback, always, off")
    assert_refused(sightline("config", "set", "maxImagesPerTurn", "-1"), "0–1000")
    assert_refused(sightline("config", "set", "mood", "off"), "mood", "mode")
    assert_refused(sightline("config", "get", "mood"), "mood")
    fixed = {"SIGHTLINE_MODE": "off"}
    assert_refused(sightline("config", "set", "mode", "always", env=fixed), "unset SIGHTLINE_MODE")
    (home / FILE_NAME).write_text("{")
    ended = sightline("config", "set", "mode", "off")
    assert ended.code == 1
    assert str(home / FILE_NAME) in ended.err.splitlines()[-1]
    assert (home / FILE_NAME).read_text("utf-8") == "{"


@requirement("cli.json")
def test_a_warning_goes_to_stderr_and_keeps_the_json_valid() -> None:
    ended = sightline("config", "show", "--json", env={"SIGHTLINE_MODE": "sometimes"})
    assert ended.json["settings"]["mode"] == {"value": "fallback", "source": "default"}
    assert len(ended.json["warnings"]) == 1
    assert ended.err.startswith("sightline: warning: mode (environment SIGHTLINE_MODE)")


@requirement("recover.listed")
def test_lessons_are_shown_and_forgotten(home: Path) -> None:
    record = open_record(home / "record")
    record.policy.keep_lesson("deepseek", "deepseek-v4-pro", Lesson(blind=True, why="it takes text only"), days=7)
    record.policy.keep_lesson("openrouter", "z-ai/glm", Lesson(limits=ImageLimits(edge=2000), why="2000 px"), days=7)
    record.close()
    lines = sightline("config", "show").out.splitlines()
    assert "  deepseek/deepseek-v4-pro: blind (it takes text only)" in lines
    assert "  openrouter/z-ai/glm: edge 2000 (2000 px)" in lines
    assert sightline("config", "forget", "openrouter/z-ai/glm").out.endswith("openrouter/z-ai/glm\n")
    forgotten = sightline("config", "forget", "deepseek/deepseek-v4-pro", "--json")
    assert forgotten.json == {"ok": True, "forgotten": "deepseek/deepseek-v4-pro"}
    assert sightline("config", "show", "--json").json["learnt"] == []
    assert_refused(sightline("config", "forget", "deepseek/deepseek-v4-pro"), "deepseek/deepseek-v4-pro")
    assert_refused(sightline("config", "forget", "deepseek"), "UPSTREAM/MODEL")


@requirement("config.rule", "profile.models.vision", "profile.user_first")
def test_model_shows_what_is_known_and_which_rule_decided(home: Path) -> None:
    told = sightline("config", "model", "deepseek/deepseek-v4-pro").out
    assert told.startswith("deepseek/deepseek-v4-pro ")
    assert "deepseek-v4-pro*" in told, "the rule that decided"
    assert told.count("text only") == 2
    assert (told.count("\n"), "anthropic" in told, "gemini" in told) == (1, True, False)
    unknown = sightline("config", "model", "zai/claude-x", "--json").json["wires"]["anthropic"]
    assert {**unknown, "why": ""} == {"vision": None, "why": "", "sibling": "glm-5.3-flash"}
    assert "claude*" in unknown["why"]
    assert "zai" in unknown["why"]
    record = open_record(home / "record")
    record.policy.keep_lesson("zai", "claude-x", Lesson(blind=True, why="its answer showed it"), 7)
    record.close()
    learnt = sightline("config", "model", "zai/claude-x", "--json").json["wires"]["anthropic"]
    assert (learnt["vision"], learnt["why"]) == (False, "its answer showed it")
    (home / FILE_NAME).write_text('{"models": {"zai/claude-*": {"vision": true}}}')
    said = sightline("config", "model", "zai/claude-x", "--json").json["wires"]["anthropic"]
    assert (said["vision"], "zai/claude-*" in said["why"]) == (True, True)
    assert_refused(sightline("config", "model", "nowhere/m"), "nowhere", "deepseek")
    assert_refused(sightline("config", "model", "m"), "UPSTREAM/MODEL")


@requirement("recover.listed")
def test_a_lesson_about_a_custom_upstream_is_forgotten_by_either_name(home: Path) -> None:
    env = {"SIGHTLINE_UPSTREAMS": json.dumps({"mine": {"baseUrl": "http://127.0.0.1:9/v1"}})}
    for name in ("mine", "127.0.0.1:9"):
        record = open_record(home / "record")
        record.policy.keep_lesson("127.0.0.1:9", "eye", Lesson(blind=True, why="it said so"), days=7)
        record.close()
        assert sightline("config", "forget", f"{name}/eye", env=env).code == 0
        assert sightline("config", "show", "--json").json["learnt"] == []


@requirement("settings.live")
def test_a_vision_model_that_cannot_be_used_is_not_saved() -> None:
    """Running surfaces would reject the whole file, and every later change of it."""
    assert sightline("config", "set", "seer", "nobody/nothing", "--json").json["ok"] is False
    assert sightline("config", "get", "seer", "--json").json["value"] == "auto"
    assert sightline("config", "set", "seer", "local").code == 0


@requirement("record.shared.secret")
def test_the_password_of_a_store_is_never_shown() -> None:
    address = "postgresql://me:secret-word@db.example.com/record"
    shown = [sightline("config", "set", "store", address), sightline("config", "get", "store")]
    shown += [sightline("config", "show"), sightline("config", "show", "--json")]
    assert all("secret-word" not in f"{each.out}{each.err}" for each in shown)
    assert_refused(sightline("config", "set", "store", "mysql://db/x"), "store")
