"""The settings: where each value comes from, and which values are secret."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.facts import Retention
from sightline.model.media_capability import ImageCapability
from sightline.model.profile import Upstream
from sightline.settings import FILE_NAME, KEYS, Settings, load_settings
from tests.refusals import assert_refusal
from tests.requirements import requirement

KEY = "sk-that-nobody-may-see"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def env(home: Path, **more: str) -> dict[str, str]:
    return {"SIGHTLINE_HOME": str(home), **more}


def write(home: Path, held: object, mode: int = 0o600) -> Path:
    home.mkdir(exist_ok=True)
    path = home / FILE_NAME
    path.write_text(held if isinstance(held, str) else json.dumps(held), "utf-8")
    path.chmod(mode)
    return path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_key_has_its_default(home: Path) -> None:
    settings = load_settings(env(home))
    assert dict(settings.json_values) == {key.name: key.default for key in KEYS}
    assert set(settings.sources.values()) == {"default"}
    assert settings.warnings == ()
    assert settings.file == home / FILE_NAME
    assert settings.record_folder == home / "record"


def test_settings_have_a_typed_field_for_each_key(home: Path) -> None:
    hints, own = (
        get_type_hints(Settings),
        {"file", "record_folder", "sources", "warnings", "entry_warnings", "json_values", "environment"},
    )
    assert sorted(key.field for key in KEYS) == sorted(hints.keys() - own)
    settings = load_settings(env(home, SIGHTLINE_RETENTION="turns:2", SIGHTLINE_RETENTION_PASTED="retire"))
    for key in KEYS:
        value, hint = getattr(settings, key.field), hints[key.field]
        if get_origin(hint) is Literal:
            assert value in get_args(hint), key.name
        else:
            assert isinstance(value, get_origin(hint) or hint), key.name
    assert settings.retention == Retention(2, includes_pasted=True)


def test_overridden_values_are_typed_and_have_their_source(home: Path) -> None:
    before = load_settings(env(home))
    after = before.override({"network": "on", "fsReach": ["/data"]}, "file")
    assert (after.network, after.fs_reach, after.sources["network"]) == (True, (Path("/data"),), "file")
    assert after.override({"network": "off", "fsReach": []}, "default") == before


def test_every_default_is_valid() -> None:
    assert [key.name for key in KEYS if key.kind.find_fault(key.default)] == []


@requirement("settings.order", "settings.names")
def test_the_environment_overrides_the_file_and_our_prefix_the_older_one(home: Path) -> None:
    write(home, {"mode": "always", "maxImagesPerTurn": 5, "seer": "off"})
    older = {"PI_VISION_PROXY_MODE": "off", "PI_VISION_PROXY_MAX_IMAGES_PER_TURN": "7"}
    settings = load_settings(env(home, SIGHTLINE_MAX_IMAGES_PER_TURN="9", **older))
    assert (settings.mode, settings.sources["mode"]) == ("off", "environment PI_VISION_PROXY_MODE")
    assert settings.max_images_per_turn == 9
    assert settings.sources["maxImagesPerTurn"] == "environment SIGHTLINE_MAX_IMAGES_PER_TURN"
    assert (settings.seer, settings.sources["seer"]) == ("off", "file")


@requirement("settings.old_file")
def test_a_file_of_vision_proxy_loads_unchanged(home: Path) -> None:
    held = {
        "mode": "always",
        "provider": "anthropic",
        "modelId": "claude-haiku-5-5",
        "systemPrompt": "Look.",
        "includeContext": False,
    }
    write(home, held)
    settings = load_settings(env(home))
    assert {name: settings.json_values[name] for name in held} == held
    assert settings.named_seer == ("anthropic", "claude-haiku-5-5")
    assert settings.system_prompt == "Look."
    assert settings.warnings == ()


@requirement("settings.range")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "sometimes"),
        ("mode", 3),
        ("mode", ["off"]),
        ("maxImagesPerTurn", -1),
        ("maxImagesPerTurn", 1001),
        ("maxImagesPerTurn", True),
        ("maxImagesPerTurn", "many"),
        ("includeContext", "perhaps"),
        ("provider", 7),
        ("baseUrl", "ftp://example.com"),
        ("baseUrl", "example.com"),
        ("baseUrl", "https://me:pass@example.com"),
        ("baseUrl", "http://example.com:99999"),
        ("models", ["glm"]),
        ("models", {"glm": True}),
        ("models", {"glm": {"vision": "no"}}),
        ("models", {"glm": {"video": 1}}),
        ("models", {"glm": {"grounding": "furlongs"}}),
        ("models", {"glm": {"grounding": 7}}),
        ("models", "[" * 100_000),
        ("models", '{"glm": {"price": NaN}}'),
        ("tool", "sometimes"),
        ("maxImagesPerCall", 0),
        ("maxImagesPerCall", 21),
        ("maxBatch", 0),
        ("maxBatch", 11),
        ("cacheSize", -1),
        ("cacheSize", 501),
        ("pHashSimilarityThreshold", -0.1),
        ("pHashSimilarityThreshold", 1.1),
        ("pHashSimilarityThreshold", True),
        ("groundingModels", ["qwen"]),
        ("groundingModels", {"qwen": {"format": "furlongs"}}),
        ("groundingModels", {"qwen": {"format": ["qwen_pixels"]}}),
        ("auxiliary.vision.baseUrl", "nowhere"),
        ("seer", "glm-5v"),
        ("seer", "zai/"),
        ("toolset", {"vision": True}),
        ("fsReach", ["relative"]),
        ("fsReach", ["."]),
        ("imageCapability", {"maxBytes": "5 MB"}),
        ("imageCapability", {"autoHandlesOversized": 1}),
        ("trustPeerCapability", "perhaps"),
        ("retention", "turns:"),
        ("retention", "turns:-1"),
        ("retention.pasted", "perhaps"),
        ("lowering", "sideways"),
        ("joint", "never"),
        ("visionFit", "always"),
        ("visionCache", "perhaps"),
        ("maxToolCallsPerTurn", -1),
        ("upstreams", "work"),
        ("upstreams", {"work": "https://example.com"}),
        ("upstreams", {"work": {}}),
        ("upstreams", {"work": {"preset": "nobody"}}),
        ("upstreams", {"work": {"baseUrl": "https://example.com", "preset": ["zai"]}}),
        ("upstreams", {"Wo/rk": {"baseUrl": "https://example.com"}}),
        ("upstreams", {"work": {"baseUrl": "nowhere"}}),
        ("upstreams", {"work": {"baseUrl": {"gopher": "https://example.com"}}}),
        ("upstreams", {"work": {"baseUrl": "https://example.com", "apiKey": 5}}),
    ],
)
def test_invalid_values_are_ignored_with_a_warning_and_refused_when_set(home: Path, name: str, value: object) -> None:
    write(home, {name: value})
    settings = load_settings(env(home))
    default = next(key.default for key in KEYS if key.name == name)
    assert (settings.json_values[name], settings.sources[name]) == (default, "default")
    assert [warning.split(" ")[0] for warning in settings.warnings] == [name]
    if name == "provider":
        return  # every text is a provider's name
    text = value if isinstance(value, str) else json.dumps(value)
    variable = next(key.variables[0] for key in KEYS if key.name == name)
    from_environment = load_settings(env(home / "other", **{variable: text}))
    assert from_environment.json_values[name] == default
    assert [variable in warning for warning in from_environment.warnings] == [True]
    refusal = load_settings(env(home)).save(name, text)
    assert refusal is not None
    assert refusal.code == "invalid_input"
    assert refusal.remedy
    assert json.loads((home / FILE_NAME).read_text("utf-8")) == {name: value}


@requirement("settings.doubt")
@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [("toolset", ["vision", "view_imgae"], "view_imgae"), ("models", {"zai/glm-5*": {"visoin": False}}, "visoin")],
)
def test_likely_mistakes_are_refused_when_set_and_reported_in_a_file(
    home: Path, name: str, value: object, wrong: str
) -> None:
    refusal = load_settings(env(home)).save(name, json.dumps(value))
    assert refusal is not None
    assert (refusal.code, f"'{wrong}'" in refusal.what, "vision, " in refusal.what) == ("invalid_input", True, True)
    assert not (home / FILE_NAME).exists()
    write(home, {name: value})
    settings = load_settings(env(home))
    assert settings.json_values[name] == value, "a tool is not offered because another was misspelt"
    (advice,) = settings.advice
    assert advice.startswith(f"{name} (file): ")
    assert f"'{wrong}'" in advice


@requirement("settings.unset")
@pytest.mark.parametrize(
    ("held", "name", "left"),
    [
        ({"mode": "off", "x": 1}, "mode", {"x": 1}),
        ({"x": 1}, "mode", {"x": 1}),
        ({"auxiliary": {"vision": {"model": "m"}}}, "auxiliary.vision.model", {}),
        ({"auxiliary": {"vision": {"model": "m"}, "x": 1}}, "auxiliary.vision.model", {"auxiliary": {"x": 1}}),
        ({"auxiliary.vision": {"model": "m"}, "auxiliary.vision.model": "n"}, "auxiliary.vision.model", {}),
        ({"retention": {"pasted": "retire"}}, "retention", {"retention": {"pasted": "retire"}}),
        ({"retention": {"pasted": "retire"}}, "retention.pasted", {}),
        ({"retention": "off", "retention.pasted": "retire"}, "retention", {"retention.pasted": "retire"}),
    ],
)
def test_unsetting_removes_only_that_key(home: Path, held: dict[str, object], name: str, left: object) -> None:
    write(home, held)
    assert load_settings(env(home)).unset(name) is None
    assert json.loads((home / FILE_NAME).read_text("utf-8")) == left
    assert load_settings(env(home)).sources[name] == "default"


@requirement("settings.unset")
def test_unsetting_an_absent_key_writes_nothing_and_a_locked_key_is_refused(home: Path) -> None:
    assert load_settings(env(home)).unset("mode") is None
    assert not (home / FILE_NAME).exists()
    for settings, name in (
        (load_settings(env(home, SIGHTLINE_MODE="off")), "mode"),
        (load_settings(env(home)), "mood"),
    ):
        assert settings.unset(name) is not None


@requirement("settings.broken_file")
@pytest.mark.parametrize(
    "text",
    ["{", "[]", '"text"', "\x00", '{"mode": "off"', "null", "\ud800".encode("utf-16", "surrogatepass")],
)
def test_an_unreadable_file_is_ignored_and_never_overwritten(home: Path, text: str | bytes) -> None:
    home.mkdir()
    path = home / FILE_NAME
    raw = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(raw)
    settings = load_settings(env(home))
    assert settings.mode == "fallback"
    assert len(settings.warnings) == 1
    assert str(path) in settings.warnings[0]
    assert settings.save("mode", "off") is not None
    assert path.read_bytes() == raw


def test_a_folder_in_place_of_the_file_is_a_warning(home: Path) -> None:
    (home / FILE_NAME).mkdir(parents=True)
    assert len(load_settings(env(home)).warnings) == 1
    assert load_settings(env(home)).save("mode", "off") is not None


def test_null_means_not_set(home: Path) -> None:
    write(home, {"mode": None, "modelId": None})
    settings = load_settings(env(home))
    assert (settings.mode, settings.warnings) == ("fallback", ())


@requirement("settings.unknown_kept")
def test_saved_values_are_loaded_and_unknown_keys_stay(home: Path) -> None:
    write(home, {"groundingThings": [{"model": "x"}], "mode": "off"})
    assert load_settings(env(home)).save("mode", "always") is None
    assert load_settings(env(home)).save("maxImagesPerTurn", "0") is None
    assert load_settings(env(home)).save("includeContext", "off") is None
    assert load_settings(env(home)).save("models", '{"zai/glm-*": {"vision": false}}') is None
    assert json.loads((home / FILE_NAME).read_text("utf-8")) == {
        "groundingThings": [{"model": "x"}],
        "mode": "always",
        "maxImagesPerTurn": 0,
        "includeContext": False,
        "models": {"zai/glm-*": {"vision": False}},
    }
    settings = load_settings(env(home))
    assert settings.max_images_per_turn == 0
    assert settings.models == {"zai/glm-*": {"vision": False}}
    assert settings.warnings == ()
    assert [path.name for path in home.iterdir()] == [FILE_NAME]


def test_the_first_setting_creates_the_folder_and_the_file(home: Path) -> None:
    assert load_settings(env(home / "deeper")).save("mode", "off") is None
    assert load_settings(env(home / "deeper")).mode == "off"


def test_a_file_that_is_a_link_stays_one(home: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    home.mkdir()
    (home / FILE_NAME).symlink_to(real)
    assert load_settings(env(home)).save("mode", "off") is None
    assert (home / FILE_NAME).is_symlink()
    assert json.loads(real.read_text("utf-8")) == {"mode": "off"}


@requirement("settings.whole")
@pytest.mark.parametrize(
    ("name", "text"),
    [("systemPrompt", "\udcff"), ("models", '{"glm": {"\\ud800": 1}}'), ("models", '{"a": {"x": 1e999}}')],
)
def test_a_failed_write_is_refused_and_leaves_no_files(home: Path, name: str, text: str) -> None:
    path = write(home, {"mode": "off"})
    refusal = load_settings(env(home)).save(name, text)
    assert refusal is not None
    assert (refusal.code, refusal.what.split(":")[0]) == ("invalid_input", name)
    assert json.loads(path.read_text("utf-8")) == {"mode": "off"}
    assert [each.name for each in home.iterdir()] == [FILE_NAME]


@requirement("settings.whole")
def test_a_setting_is_synced_before_the_file_is_renamed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(home, {})
    before, synced, fsync = path.stat().st_ino, list[tuple[int, int]](), os.fsync

    def noted(handle: int) -> None:
        synced.append((os.fstat(handle).st_ino, path.stat().st_ino))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    assert load_settings(env(home)).save("mode", "off") is None
    after = path.stat().st_ino
    assert synced == [(after, before), (home.stat().st_ino, after)]


@requirement("settings.together")
def test_concurrent_changes_lose_nothing(home: Path) -> None:
    home.mkdir()
    code = (
        "import sys; from sightline.settings import load_settings\n"
        "for number in range(1, 21): assert load_settings().save(sys.argv[1], str(number)) is None"
    )
    names = ("maxImagesPerCall", "cacheSize", "maxImagesPerTurn", "maxToolCallsPerTurn")
    run_env = {**os.environ, **env(home)}
    running = [subprocess.Popen([sys.executable, "-c", code, name], env=run_env) for name in names]
    assert [each.wait() for each in running] == [0] * len(names)
    assert json.loads((home / FILE_NAME).read_text("utf-8")) == dict.fromkeys(names, 20)
    assert [each.name for each in home.iterdir()] == [FILE_NAME]


@requirement("settings.auxiliary")
@pytest.mark.parametrize("held", [{"retention": {"pasted": "retire"}}, {"retention.pasted": "retire"}])
def test_a_nested_key_survives_a_change_of_its_parent(home: Path, held: object) -> None:
    write(home, held)
    settings = load_settings(env(home))
    assert (settings.json_values["retention"], settings.json_values["retention.pasted"]) == ("auto", "retire")
    assert settings.warnings == ()
    assert settings.save("retention", "off") is None
    settings = load_settings(env(home))
    assert (settings.json_values["retention"], settings.json_values["retention.pasted"]) == ("off", "retire")
    assert settings.save("retention.pasted", "keep") is None
    assert load_settings(env(home)).json_values["retention.pasted"] == "keep"


@requirement("settings.broken_file")
def test_a_pipe_in_place_of_the_file_does_not_block(home: Path) -> None:
    home.mkdir()
    os.mkfifo(home / FILE_NAME)
    settings = load_settings(env(home))
    assert [str(home / FILE_NAME) in warning for warning in settings.warnings] == [True]
    assert settings.save("mode", "off") is not None
    assert stat.S_ISFIFO((home / FILE_NAME).stat().st_mode)


GOOD_AND_BAD = [
    ("groundingModels", {"a": {"format": "qwen_pixels"}}, {"b": {"format": "furlongs"}}),
    ("models", {"a/*": {"vision": False}}, {"b/*": {"vision": "no"}}),
    ("upstreams", {"a": {"baseUrl": "https://a.example.com"}}, {"b": {"baseUrl": "nowhere"}}),
    ("imageCapability", {"maxDimension": 1000}, {"maxBytes": "big"}),
]


@requirement("settings.entries")
@pytest.mark.parametrize(("name", "good", "bad"), GOOD_AND_BAD)
@pytest.mark.parametrize("by_variable", [False, True])
def test_only_the_bad_entry_is_ignored(
    home: Path, name: str, good: dict[str, object], bad: dict[str, object], by_variable: bool
) -> None:
    (variable,) = (key.variables[0] for key in KEYS if key.name == name)
    write(home, {} if by_variable else {name: {**bad, **good}})
    settings = load_settings(env(home, **({variable: json.dumps({**bad, **good})} if by_variable else {})))
    assert settings.json_values[name] == good
    (warning,) = settings.warnings
    assert (warning.startswith(f"{name} ("), "'b" in warning) == (True, True)
    refusal = load_settings(env(home)).save(name, json.dumps({**good, **bad}))
    assert_refusal(refusal, "invalid_input", name, "'b")


@requirement("settings.locked")
def test_a_key_set_by_the_environment_cannot_be_saved(home: Path) -> None:
    refusal = load_settings(env(home, PI_VISION_PROXY_MODE="off")).save("mode", "always")
    assert_refusal(refusal, "not_permitted", "mode ", "unset PI_VISION_PROXY_MODE")
    for name in ("provider", "modelId", "model", "seer"):
        refusal = load_settings(env(home, SIGHTLINE_MODEL="zai/glm-5.3-flash")).save(name, "x")
        assert refusal is not None
        assert "SIGHTLINE_MODEL" in refusal.remedy
    assert not (home / FILE_NAME).exists()


def test_an_unknown_key_cannot_be_saved(home: Path) -> None:
    refusal = load_settings(env(home)).save("mood", "always")
    assert_refusal(refusal, "not_found", "'mood'", " mode")


@requirement("settings.seer")
@pytest.mark.parametrize(
    ("held", "variables", "expected"),
    [
        ({}, {}, None),
        ({"provider": "zai"}, {}, None),
        ({"provider": "zai", "modelId": "glm-5v"}, {}, ("zai", "glm-5v")),
        ({"modelId": "glm-5v"}, {}, ("", "glm-5v")),
        ({"model": "openrouter/z-ai/glm-5.3"}, {}, ("openrouter", "z-ai/glm-5.3")),
        ({"model": "glm-5v", "provider": "zai"}, {}, ("zai", "glm-5v")),
        ({"model": "openai/gpt-6", "provider": "zai", "modelId": "glm-5v"}, {}, ("zai", "glm-5v")),
        ({"provider": "zai", "modelId": "a"}, {"PI_VISION_PROXY_MODEL": "openai/b"}, ("openai", "b")),
        ({}, {"PI_VISION_PROXY_MODEL": "openai/b", "SIGHTLINE_MODEL": "xai/c"}, ("xai", "c")),
        ({}, {"SIGHTLINE_PROVIDER": "xai", "SIGHTLINE_MODEL": "c"}, ("xai", "c")),
        ({"seer": "zai/glm-5v"}, {}, ("zai", "glm-5v")),
        ({"seer": "openrouter/z-ai/glm-5v", "provider": "xai", "modelId": "a"}, {}, ("openrouter", "z-ai/glm-5v")),
        ({"seer": "local", "provider": "xai", "modelId": "a", "model": "openai/b"}, {}, ("local", "local")),
        ({"seer": "off", "provider": "xai", "modelId": "a"}, {}, None),
        ({"seer": "off", "model": "xai/a"}, {}, None),
        ({"seer": "off"}, {"PI_VISION_PROXY_MODEL": "openai/b"}, ("openai", "b")),
        ({}, {"SIGHTLINE_SEER": "off", "PI_VISION_PROXY_MODEL": "openai/b"}, None),
        ({"seer": "off", "auxiliary.vision.model": "openai/b"}, {}, ("openai", "b")),
        ({"seer": "zai/glm-5v", "auxiliary.vision.model": "openai/b"}, {}, ("openai", "b")),
        ({"seer": "zai/glm-5v"}, {"PI_VISION_PROXY_MODEL": "openai/b"}, ("openai", "b")),
        ({}, {"SIGHTLINE_SEER": "zai/glm-5v", "PI_VISION_PROXY_MODEL": "openai/b"}, ("zai", "glm-5v")),
        ({"provider": "zai", "modelId": "a"}, {"SIGHTLINE_SEER": "openai/b"}, ("openai", "b")),
    ],
)
def test_the_order_of_settings_that_name_the_vision_model(
    home: Path, held: dict[str, str], variables: dict[str, str], expected: tuple[str, str] | None
) -> None:
    write(home, held)
    assert load_settings(env(home, **variables)).named_seer == expected


def test_upstreams_are_converted(home: Path) -> None:
    bases = {"anthropic": "https://a.example.com", "openai_chat": "https://b.example.com/v1"}
    write(
        home,
        {
            "upstreams": {
                "two": {"baseUrl": bases, "apiKey": KEY, "colour": "blue"},
                "known": {"preset": "deepseek"},
                "zai": {"apiKey": KEY},
            }
        },
    )
    settings = load_settings(env(home))
    assert settings.upstreams == {
        "two": Upstream("two", {"anthropic": bases["anthropic"], "openai_chat": bases["openai_chat"]}, api_key=KEY),
        "known": Upstream("known", {}, "deepseek"),
        "zai": Upstream("zai", {}, api_key=KEY),
    }


SECRETS = {"apiKey": KEY, "upstreams": {"work": {"baseUrl": "https://example.com", "apiKey": KEY}}}


@requirement("settings.hidden")
def test_a_key_is_never_shown(home: Path) -> None:
    write(home, SECRETS)
    settings = load_settings(env(home, OPENAI_API_KEY=KEY, SIGHTLINE_MODE="nonsense"))
    assert settings.api_key == KEY
    assert settings.upstreams["work"].api_key == KEY
    assert settings.find_variable(["NOT_SET", "OPENAI_API_KEY"]) == KEY
    assert settings.mask_value("apiKey") == "set"
    assert settings.mask_value("upstreams") == {"work": {"baseUrl": "https://example.com", "apiKey": "set"}}
    shown = [settings.mask_value(key.name) for key in KEYS]
    assert KEY not in repr([settings, str(settings), settings.upstreams, settings.warnings, shown])
    assert load_settings(env(home / "empty")).mask_value("apiKey") == ""


@requirement("settings.private")
@pytest.mark.parametrize("held", [{"apiKey": KEY}, {"upstreams": SECRETS["upstreams"]}])
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_that_others_can_read_is_ignored(home: Path, held: dict[str, object], mode: int) -> None:
    path = write(home, {"mode": "off", **held}, mode)
    settings = load_settings(env(home))
    assert settings.api_key == ""
    assert [upstream.api_key for upstream in settings.upstreams.values()] in ([], [""])
    assert settings.mode == "off"
    assert len(settings.warnings) == 1
    assert f"chmod 600 {path}" in settings.warnings[0]
    path.chmod(0o600)
    assert load_settings(env(home)).warnings == ()


def test_a_file_without_a_key_may_be_read_by_others(home: Path) -> None:
    write(home, {"mode": "off"}, 0o644)
    assert (load_settings(env(home)).mode, load_settings(env(home)).warnings) == ("off", ())


@requirement("settings.private")
def test_a_file_that_gets_a_key_is_only_readable_by_its_owner(home: Path) -> None:
    path = write(home, {"mode": "off"}, 0o644)
    assert load_settings(env(home)).save("apiKey", KEY) is None
    assert mode_of(path) == 0o600
    assert load_settings(env(home)).api_key == KEY


@requirement("settings.places")
def test_a_file_named_by_the_environment_comes_first(home: Path, tmp_path: Path) -> None:
    write(home, {"mode": "off"})
    other = tmp_path / "other.json"
    other.write_text('{"mode": "always"}')
    assert load_settings(env(home, SIGHTLINE_CONFIG=str(other))).mode == "always"
    assert load_settings(env(home), other).mode == "always"
    assert load_settings(env(home, SIGHTLINE_CONFIG=str(home / FILE_NAME)), other).mode == "always"
    assert load_settings(env(home), other).record_folder == home / "record"


@requirement("settings.project")
def test_a_settings_file_in_a_projects_folder_is_never_read(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / ".sightline", tmp_path / ".config" / "sightline"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE_NAME).write_text('{"baseUrl": "https://evil.example.com", "mode": "always", "network": "on"}')
    assert load_settings(env(home)).json_values == load_settings(env(home / "empty")).json_values
    relative = load_settings(env(home, SIGHTLINE_CONFIG=FILE_NAME))
    assert relative.base_url == ""
    assert [warning.split()[0] for warning in relative.warnings] == ["SIGHTLINE_CONFIG"]


@requirement("settings.places")
def test_the_platform_folders_are_the_default(tmp_path: Path) -> None:
    code = "from sightline.settings import load_settings; s = load_settings(); print(s.file); print(s.record_folder)"
    places = {
        "XDG_CONFIG_HOME": str(tmp_path / "c"),
        "XDG_DATA_HOME": str(tmp_path / "d"),
        "HOME": str(tmp_path),
    }
    run_env = {name: value for name, value in os.environ.items() if not name.startswith("SIGHTLINE_")}
    out = subprocess.check_output([sys.executable, "-c", code], env={**run_env, **places}, text=True)
    file, folder = map(Path, out.split("\n")[:2])
    assert (file.name, folder.name) == (FILE_NAME, "record")
    assert file.parent.name == folder.parent.name == "sightline"
    assert tmp_path in file.parents
    assert tmp_path in folder.parents


@given(st.dictionaries(st.sampled_from([v for key in KEYS for v in key.variables]), st.text()))
def test_any_environment_can_be_loaded(variables: dict[str, str]) -> None:
    settings = load_settings({"SIGHTLINE_HOME": "/nowhere", **variables})
    assert isinstance(settings, Settings)
    assert [key.name for key in KEYS if key.kind.find_fault(settings.json_values[key.name])] == []
    assert settings.upstreams is not None


PROXY_1_4 = {
    "mode": "fallback",
    "provider": "dashscope",
    "modelId": "qwen3-vl-plus",
    "systemPrompt": None,
    "includeContext": True,
    "tool": "on",
    "maxImagesPerCall": 10,
    "maxBatch": 4,
    "cacheSize": 50,
    "pHashSimilarityThreshold": 0.80,
    "groundingModels": {
        "Qwen/Qwen2.5-VL-7B-Instruct": {"format": "qwen_pixels"},
        "allenai/Molmo2-8B": {"format": "molmo_points"},
        "deepseek-ai/deepseek-vl2": {"format": "deepseek_bbox"},
        "OpenGVLab/InternVL3-8B": {"format": "internvl_pixels"},
    },
    "consentedProviders": ["dashscope"],
}


@requirement("settings.old_file", "settings.unknown_kept", "settings.groundingModels")
def test_a_file_of_vision_proxy_1_4_loads_unchanged_and_is_kept(home: Path) -> None:
    path = write(home, PROXY_1_4)
    settings = load_settings(env(home))
    assert settings.warnings == ()
    held = {name: value for name, value in PROXY_1_4.items() if name in settings.json_values and value is not None}
    assert {name: settings.json_values[name] for name in held} == held
    assert {settings.sources[name] for name in held} == {"file"}
    assert settings.save("cacheSize", "7") is None
    assert json.loads(path.read_text("utf-8")) == {**PROXY_1_4, "cacheSize": 7}


@requirement(
    "settings.tool",
    "settings.maxImagesPerCall",
    "settings.maxBatch",
    "settings.cacheSize",
    "settings.pHash",
    "settings.limits",
    "settings.rest",
)
@pytest.mark.parametrize(
    ("name", "default", "variable", "text", "value"),
    [
        ("tool", "auto", "PI_VISION_PROXY_TOOL", "on", "on"),
        ("maxImagesPerCall", 10, "PI_VISION_PROXY_MAX_IMAGES_PER_CALL", "20", 20),
        ("maxBatch", 4, "PI_VISION_PROXY_MAX_BATCH", "1", 1),
        ("cacheSize", 50, "PI_VISION_PROXY_CACHE_SIZE", "0", 0),
        ("pHashSimilarityThreshold", 0.8, "PI_VISION_PROXY_PHASH_THRESHOLD", "0.95", 0.95),
        ("maxImagesPerTurn", 20, "SIGHTLINE_MAX_IMAGES_PER_TURN", "0", 0),
        ("maxToolCallsPerTurn", 10, "SIGHTLINE_MAX_TOOL_CALLS_PER_TURN", "0", 0),
        ("toolset", ["vision"], "SIGHTLINE_TOOLSET", "read_file, view_image", ["read_file", "view_image"]),
        ("trustPeerCapability", "trust", "SIGHTLINE_TRUST_PEER_CAPABILITY", "verify", "verify"),
        ("retention", "auto", "SIGHTLINE_RETENTION", "turns:0", "turns:0"),
        ("retention.pasted", "keep", "SIGHTLINE_RETENTION_PASTED", "retire", "retire"),
        ("lowering", "byWire", "SIGHTLINE_LOWERING", "hoist", "hoist"),
        ("grounding", True, "SIGHTLINE_GROUNDING", "off", False),
        ("boxes", True, "SIGHTLINE_BOXES", "off", False),
        ("joint", "auto", "SIGHTLINE_JOINT", "turn", "turn"),
        ("visionFit", "auto", "SIGHTLINE_VISION_FIT", "never", "never"),
        ("visionCache", False, "SIGHTLINE_VISION_CACHE", "on", True),
        ("imageModel", "", "SIGHTLINE_IMAGE_MODEL", "gpt-6", "gpt-6"),
        ("store", "", "SIGHTLINE_STORE", "postgresql://db.example.com/s", "postgresql://db.example.com/s"),
        ("blobs", "", "SIGHTLINE_BLOBS", "s3://bucket", "s3://bucket"),
    ],
)
def test_each_key_has_its_default_and_is_set_by_its_variable_and_by_a_command(
    home: Path, name: str, default: object, variable: str, text: str, value: object
) -> None:
    assert load_settings(env(home)).json_values[name] == default
    fixed = load_settings(env(home, **{variable: text}))
    assert (fixed.json_values[name], fixed.sources[name]) == (value, f"environment {variable}")
    assert load_settings(env(home)).save(name, text) is None
    assert (load_settings(env(home)).json_values[name], load_settings(env(home)).sources[name]) == (value, "file")


DOTTED = {"auxiliary.vision.model": "claude-haiku-5-5", "auxiliary.vision.provider": "anthropic"}
NESTED = {"auxiliary": {"vision": {"model": "claude-haiku-5-5", "provider": "anthropic"}, "compression": {"x": 1}}}
MIXED = {"auxiliary": {"vision.model": "claude-haiku-5-5"}, "auxiliary.vision": {"provider": "anthropic"}}


@requirement("settings.auxiliary")
@pytest.mark.parametrize("held", [DOTTED, NESTED, MIXED])
def test_the_auxiliary_model_may_be_dotted_or_nested_and_comes_first(home: Path, held: dict[str, object]) -> None:
    path = write(home, {**held, "provider": "zai", "modelId": "glm-5v"})
    settings = load_settings(env(home))
    assert settings.named_seer == ("anthropic", "claude-haiku-5-5")
    assert settings.warnings == ()
    assert settings.save("auxiliary.vision.model", "claude-opus-5") is None
    assert load_settings(env(home)).named_seer == ("anthropic", "claude-opus-5")
    written = json.dumps(held).replace("claude-haiku-5-5", "claude-opus-5")
    assert json.loads(path.read_text("utf-8")) == {**json.loads(written), "provider": "zai", "modelId": "glm-5v"}


@requirement("settings.auxiliary")
def test_a_dotted_key_is_added_to_an_existing_object(home: Path) -> None:
    path = write(home, {"auxiliary": {"compression": {"model": "x"}}})
    assert load_settings(env(home)).save("auxiliary.vision.model", "y") is None
    expected = {"auxiliary": {"compression": {"model": "x"}, "vision": {"model": "y"}}}
    assert json.loads(path.read_text("utf-8")) == expected


@requirement("settings.auxiliary")
@pytest.mark.parametrize(
    ("held", "seer", "key", "address"),
    [
        ({"auxiliary.vision.model": "glm-5v"}, ("zai", "glm-5v"), KEY, "https://a.example.com"),
        ({"auxiliary.vision.model": "openai/gpt-6"}, ("openai", "gpt-6"), "", ""),
        ({"auxiliary.vision.provider": "zai", "auxiliary.vision.model": "v"}, ("zai", "v"), KEY, "https://a.example.com"),
        ({"auxiliary.vision.provider": "openai", "auxiliary.vision.model": "v"}, ("openai", "v"), "", ""),
        ({"auxiliary.vision.model": "v", "auxiliary.vision.apiKey": "own"}, ("zai", "v"), "own", "https://a.example.com"),
        ({"auxiliary.vision.model": "v", "auxiliary.vision.baseUrl": "https://b.example.com"},
         ("zai", "v"), "", "https://b.example.com"),
        ({"auxiliary.vision.apiKey": "own"}, ("zai", "main"), KEY, "https://a.example.com"),
    ],
)  # fmt: skip
def test_the_auxiliary_model_inherits_settings_but_no_key_of_another_provider(
    home: Path, held: dict[str, str], seer: tuple[str, str], key: str, address: str
) -> None:
    general = {"provider": "zai", "modelId": "main", "apiKey": KEY, "baseUrl": "https://a.example.com"}
    write(home, {**general, **held})
    settings = load_settings(env(home))
    assert (settings.named_seer, settings.api_key, settings.base_url) == (seer, key, address)


AUXILIARY_KEYS = {
    "auxiliary.vision.model": "v",
    "auxiliary.vision.provider": "openai",
    "auxiliary.vision.apiKey": "own",
}


@requirement("settings.keys")
@pytest.mark.parametrize(
    ("held", "variables", "key_name"),
    [
        (AUXILIARY_KEYS, {"PI_VISION_PROXY_MODEL": "zai/glm-5v"}, "auxiliary.vision.apiKey"),
        (AUXILIARY_KEYS, {"SIGHTLINE_PROVIDER": "zai", "SIGHTLINE_MODEL_ID": "a"}, "auxiliary.vision.apiKey"),
        (AUXILIARY_KEYS, {"SIGHTLINE_AUXILIARY_VISION_PROVIDER": "zai"}, ""),
        (AUXILIARY_KEYS, {"SIGHTLINE_AUXILIARY_VISION_BASE_URL": "https://evil.example.com"}, ""),
        ({"seer": "zai/v", "apiKey": KEY}, {}, "apiKey"),
        ({"seer": "zai/v", "provider": "zai", "apiKey": KEY}, {}, "apiKey"),
        ({"seer": "zai/v", "provider": "openai", "apiKey": KEY}, {}, ""),
        ({"apiKey": KEY}, {"SIGHTLINE_SEER": "zai/v"}, ""),
        ({"provider": "zai", "apiKey": KEY}, {"SIGHTLINE_SEER": "zai/v"}, "apiKey"),
        ({"seer": "zai/v", "apiKey": KEY}, {"SIGHTLINE_BASE_URL": "https://evil.example.com"}, ""),
        ({"provider": "openai", "apiKey": KEY}, {"SIGHTLINE_SEER": "zai/v", "SIGHTLINE_API_KEY": "x"}, "apiKey"),
    ],
)
def test_a_key_goes_only_to_its_own_provider_and_address(
    home: Path, held: dict[str, str], variables: dict[str, str], key_name: str
) -> None:
    write(home, held)
    settings = load_settings(env(home, **variables))
    assert settings.api_key_name == key_name
    assert bool(settings.api_key) == bool(key_name)


@requirement("settings.keys", "settings.seer")
def test_the_general_address_is_not_that_of_another_provider(home: Path) -> None:
    write(home, {"provider": "openai", "baseUrl": "https://a.example.com", "seer": "zai/v"})
    assert load_settings(env(home)).base_url == ""
    write(home, {"baseUrl": "https://a.example.com", "seer": "zai/v"})
    assert load_settings(env(home)).base_url == "https://a.example.com"


@requirement("settings.hidden", "settings.private")
@pytest.mark.parametrize("held", [{"auxiliary.vision.apiKey": KEY}, {"auxiliary": {"vision": {"apiKey": KEY}}}])
def test_the_auxiliary_key_is_as_secret_as_any_other(home: Path, held: dict[str, object]) -> None:
    write(home, {"auxiliary.vision.model": "v", **held})
    settings = load_settings(env(home))
    assert settings.api_key == KEY
    assert settings.mask_value("auxiliary.vision.apiKey") == "set"
    assert KEY not in repr([settings, [settings.mask_value(key.name) for key in KEYS]])
    write(home, {"auxiliary.vision.model": "v", **held}, 0o644)
    exposed = load_settings(env(home))
    assert exposed.api_key == ""
    assert len(exposed.warnings) == 1


@requirement("settings.fsReach")
def test_folders_that_may_be_read_are_absolute_or_below_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    settings = load_settings(env(home, SIGHTLINE_FS_REACH=os.pathsep.join(["/data/shots", "~/Pictures"])))
    assert settings.fs_reach == (Path("/data/shots"), Path("/home/somebody/Pictures"))
    assert load_settings(env(home)).fs_reach == ()


@requirement("settings.rest", "capability.defaults")
def test_the_image_capability_overrides_its_defaults(home: Path) -> None:
    assert load_settings(env(home)).image_capability == ImageCapability(5_242_880, 8000, 524_288)
    write(home, {"imageCapability": {"maxBytes": 1_000_000, "autoHandlesOversized": True, "colour": "blue"}})
    settings = load_settings(env(home))
    assert settings.image_capability == ImageCapability(1_000_000, 8000, 524_288, auto_handles_oversized=True)
    assert settings.warnings == ()
    write(home, '{"imageCapability": {"maxBytes": 1e5, "maxDimension": 600.0}}')
    settings = load_settings(env(home))
    assert settings.image_capability == ImageCapability(100_000, 600, 100_000), "the target is not above the limit"
    assert settings.warnings == ()
