"""How agents are started: command lines in, launches out, without running anything."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.agents.command_lines import launch
from sightline.agents.launch import FILES, Launch, LaunchContext
from sightline.model.refusal import Refusal
from sightline.settings import load_settings
from sightline.settings.upstreams import find_flag_upstream, has_known_apis
from tests.cli.command import ALONE
from tests.requirements import requirement

HERE = "http://127.0.0.1:4711"
FOLDER = Path("/srv/project")
HOME = {"HOME": "/home/me"}


def started(*argv: str, env: dict[str, str] | None = None, files: dict[str, object] | None = None) -> Launch | Refusal:
    held = {Path(name): text if isinstance(text, str) else json.dumps(text) for name, text in (files or {}).items()}
    return launch(argv, LaunchContext({**HOME, **(env or {})}, HERE, FOLDER, held.get, serve_port=8790))


NO_FILES: dict[Path, str] = {}
PAST_PROXIES = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")


def told(url: str) -> dict[str, object]:
    return {"env": {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "theirs"}}


TRUSTED: dict[str, object] = {"/home/me/.claude.json": {"projects": {"/srv/project": {"hasTrustDialogAccepted": True}}}}


def test_claude_gets_one_settings_flag_before_its_own_arguments() -> None:
    found = started("/usr/bin/claude", "-p", "what is on it?")
    settings = json.dumps({"env": {"ANTHROPIC_BASE_URL": HERE}})
    assert found == Launch(
        ("/usr/bin/claude", "--settings", settings, "-p", "what is on it?"), {**HOME, **PAST_PROXIES}, {}
    )


@pytest.mark.parametrize("name", ["claude", "./claude", "/opt/bin/claude", "claude.exe", "Claude.cmd"])
def test_claude_is_recognized_by_its_command_name(name: str) -> None:
    found = started(name)
    assert isinstance(found, Launch)
    assert found.argv[:2] == (name, "--settings")


OWN = {"model": "opus", "env": {"ANTHROPIC_BASE_URL": "https://theirs.example.com", "FOO": "1"}}
MERGED = {"model": "opus", "env": {"ANTHROPIC_BASE_URL": HERE, "FOO": "1"}}


@requirement("run.merges")
@pytest.mark.parametrize(
    "words",
    [
        ["--settings", json.dumps(OWN), "-p", "hi"],
        [f"--settings={json.dumps(OWN)}", "-p", "hi"],
        ["-p", "hi", "--settings", "own.json"],
        ["-p", "--settings=/srv/project/own.json", "hi"],
        [
            "--settings",
            '{"env":{"ANTHROPIC_BASE_URL":"https://first.example.com"}}',
            "-p",
            "hi",
            "--settings",
            "own.json",
        ],
    ],
)
def test_settings_given_by_the_user_are_merged_into_one_option(words: list[str]) -> None:
    found = started("claude", *words, files={"/srv/project/own.json": OWN})
    assert isinstance(found, Launch)
    assert found.former_upstreams == {"anthropic": "https://theirs.example.com"}
    assert found.argv == ("claude", "--settings", f"{FILES}/claude-settings.json", "-p", "hi")
    assert json.loads(found.files["claude-settings.json"]) == MERGED


def test_a_prompt_is_left_alone() -> None:
    found = started("claude", "-p", "--", "--settings", "x", "--settings=y")
    assert isinstance(found, Launch)
    assert found.argv[3:] == ("-p", "--", "--settings", "x", "--settings=y")


@pytest.mark.parametrize("given", ["missing.json", "{broken", "[1]", "broken.json", "{}}"])
def test_unreadable_settings_are_refused(given: str) -> None:
    refusal = started("claude", "--settings", given, files={"/srv/project/broken.json": "{"})
    assert isinstance(refusal, Refusal)


@requirement("run.takes_over")
def test_the_upstream_of_claude_is_found_in_claudes_own_order() -> None:
    flag = ["--settings", json.dumps(told("https://flag.example.com"))]
    files: dict[str, object] = {
        "/srv/project/.claude/settings.local.json": told("https://local.example.com"),
        "/srv/project/.claude/settings.json": told("https://project.example.com"),
        "/home/me/.claude/settings.json": told("https://user.example.com"),
    }
    env = {"ANTHROPIC_BASE_URL": "https://environment.example.com"}
    order = []
    for _ in range(5):
        found = started("claude", *flag, env=env, files={**files, **TRUSTED})
        assert isinstance(found, Launch)
        order.append(found.former_upstreams["anthropic"].removeprefix("https://").partition(".")[0])
        if flag:
            flag = []
        elif files:
            del files[next(iter(files))]
        else:
            env = {}
    assert order == ["flag", "local", "project", "user", "environment"]
    found = started("claude")
    assert isinstance(found, Launch)
    assert found.former_upstreams == {}


def test_claudes_settings_folder_can_be_elsewhere() -> None:
    files: dict[str, object] = {
        "/home/me/.claude/settings.json": told("https://wrong.example.com"),
        "/elsewhere/settings.json": told("https://right.example.com"),
    }
    found = started("claude", env={"CLAUDE_CONFIG_DIR": "/elsewhere"}, files=files)
    assert isinstance(found, Launch)
    assert found.former_upstreams == {"anthropic": "https://right.example.com"}


@pytest.mark.parametrize("text", ["{", "[]", '{"env": []}', '{"env": {"ANTHROPIC_BASE_URL": 5}}', "null", ""])
def test_an_invalid_settings_file_of_claude_is_ignored(text: str) -> None:
    files: dict[str, object] = {
        "/srv/project/.claude/settings.json": text,
        "/home/me/.claude/settings.json": told("https://user.example.com"),
    }
    found = started("claude", files={**files, **TRUSTED})
    assert isinstance(found, Launch)
    assert found.former_upstreams == {"anthropic": "https://user.example.com"}


@requirement("run.unknown")
def test_an_unknown_agent_is_pointed_by_the_common_variables() -> None:
    env = {"ANTHROPIC_BASE_URL": "https://a.example.com", "OPENAI_API_BASE": "https://o.example.com/v1", "X": "1"}
    found = started("robot", "--yes", env=env)
    assert isinstance(found, Launch)
    assert found.argv == ("robot", "--yes")
    assert found.env == {
        **HOME,
        **PAST_PROXIES,
        "ANTHROPIC_BASE_URL": HERE,
        "OPENAI_API_BASE": f"{HERE}/v1",
        "GOOGLE_GEMINI_BASE_URL": HERE,
        "GEMINI_API_BASE": HERE,
        "X": "1",
    }
    openai = dict.fromkeys(("openai_chat", "openai_responses"), "https://o.example.com/v1")
    assert found.former_upstreams == {"anthropic": "https://a.example.com", **openai}
    assert found.note.startswith("robot ")
    assert "ANTHROPIC_BASE_URL, OPENAI_API_BASE, GOOGLE_GEMINI_BASE_URL;" in found.note
    plain = started("robot")
    assert isinstance(plain, Launch)
    assert plain.former_upstreams == {}


@requirement("run.variables")
@pytest.mark.parametrize(
    ("env", "pointed", "former", "named"),
    [
        pytest.param(
            {"OPENAI_BASE_URL": "https://a.example/v1", "OPENAI_API_BASE": "https://b.example/v1"},
            {"OPENAI_BASE_URL": f"{HERE}/v1", "OPENAI_API_BASE": f"{HERE}/u/openai-api-base/v1"},
            "https://a.example/v1",
            {"openai-api-base": ("openai_chat", "https://b.example/v1")},
            id="two different addresses",
        ),
        pytest.param(
            {"OPENAI_HOST": "https://goose.example"},
            {
                "OPENAI_BASE_URL": f"{HERE}/v1",
                "OPENAI_HOST": f"{HERE}/u/openai-host",
                "OPENAI_BASE_PATH": "v1/chat/completions",
            },
            None,
            {"openai-host": ("openai_chat", "https://goose.example")},
            id="goose",
        ),
        pytest.param(
            {"OPENAI_HOST": "https://goose.example", "OPENAI_BASE_PATH": "openai/v1/chat/completions"},
            {"OPENAI_HOST": f"{HERE}/u/openai-host", "OPENAI_BASE_PATH": "v1/chat/completions"},
            None,
            {"openai-host": ("openai_chat", "https://goose.example/openai/v1")},
            id="goose with a path",
        ),
        pytest.param(
            {"KIMI_BASE_URL": "https://kimi.example/v1"},
            {"KIMI_BASE_URL": f"{HERE}/u/kimi-base-url/v1", "KIMI_MODEL_CAPABILITIES": None},
            None,
            {"kimi-base-url": ("openai_chat", "https://kimi.example/v1")},
            id="kimi-cli",
        ),
        pytest.param(
            {
                "KIMI_MODEL_BASE_URL": "https://kimi.example",
                "KIMI_MODEL_PROVIDER_TYPE": "anthropic",
                "KIMI_MODEL_CAPABILITIES": "thinking",
            },
            {"KIMI_MODEL_BASE_URL": f"{HERE}/u/kimi-model-base-url", "KIMI_MODEL_CAPABILITIES": "thinking,image_in"},
            None,
            {"kimi-model-base-url": ("anthropic", "https://kimi.example")},
            id="Kimi Code",
        ),
    ],
)
def test_each_variable_keeps_its_upstream(
    env: dict[str, str],
    pointed: dict[str, str | None],
    former: str | None,
    named: dict[str, tuple[str, str]],
) -> None:
    found = started("robot", env=env)
    assert isinstance(found, Launch)
    assert {name: found.env.get(name) for name in pointed} == pointed
    assert found.former_upstreams.get("openai_chat") == former
    assert found.named_upstreams == named


def pointed(found: Launch | Refusal) -> dict[str, str]:
    assert isinstance(found, Launch)
    return {name: text for name, text in found.env.items() if text.startswith(HERE)}


def started_with_upstream(
    upstream: str, *argv: str, env: dict[str, str] | None = None, dotenv: str = ""
) -> Launch | Refusal:
    settings = load_settings({**ALONE, "SIGHTLINE_UPSTREAMS": json.dumps(OWN_UPSTREAMS)})
    named = find_flag_upstream(settings, upstream)
    assert not isinstance(named, Refusal)
    context = LaunchContext({**HOME, **(env or {})}, HERE, FOLDER, {FOLDER / ".env": dotenv}.get, upstream="office")
    return launch(argv, replace(context, upstream_apis=tuple(named.bases)))


POINTED_ANTHROPIC = dict.fromkeys(("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE", "ANTHROPIC_HOST"), HERE)
POINTED_OPENAI = {
    "OPENAI_HOST": HERE,
    **dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE", "KIMI_BASE_URL", "KIMI_MODEL_BASE_URL"), f"{HERE}/v1"),
}
POINTED_GEMINI = dict.fromkeys(("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"), HERE)
OWN_UPSTREAMS = {
    "one-address": {"baseUrl": "https://x.example"},
    "only-gemini": {"baseUrl": {"gemini": "https://x.example"}},
}
KEPT_ANTHROPIC = dict.fromkeys(("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"), f"{HERE}/u/anthropic")
KEPT_OPENAI = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), f"{HERE}/u/openai/v1")
KEPT_GEMINI = dict.fromkeys(("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"), f"{HERE}/u/gemini")


@requirement("run.variables")
@pytest.mark.parametrize(
    ("upstream", "expected"),
    [
        ("deepseek", {**POINTED_ANTHROPIC, **POINTED_OPENAI, **KEPT_GEMINI}),
        ("https://api.deepseek.com", {**POINTED_ANTHROPIC, **POINTED_OPENAI, **KEPT_GEMINI}),
        ("deepseek=https://x.example", {**POINTED_ANTHROPIC, **POINTED_OPENAI, **KEPT_GEMINI}),
        ("https://x.example/v1", {**POINTED_ANTHROPIC, **POINTED_OPENAI, **KEPT_GEMINI}),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", {**POINTED_ANTHROPIC, **POINTED_OPENAI, **KEPT_GEMINI}),
        ("mistral", {**KEPT_ANTHROPIC, **POINTED_OPENAI, **KEPT_GEMINI}),
        ("chatgpt", {**KEPT_ANTHROPIC, **POINTED_OPENAI, **KEPT_GEMINI}),
        ("gemini", {**KEPT_ANTHROPIC, **POINTED_OPENAI, **POINTED_GEMINI}),
        ("gemini=https://x.example", {**KEPT_ANTHROPIC, **POINTED_OPENAI, **POINTED_GEMINI}),
        ("one-address", {**POINTED_ANTHROPIC, **POINTED_OPENAI, **KEPT_GEMINI}),
        ("only-gemini", {**KEPT_ANTHROPIC, **KEPT_OPENAI, **POINTED_GEMINI}),
    ],
)
def test_a_named_upstream_is_used_only_for_variables_of_its_apis(upstream: str, expected: dict[str, str]) -> None:
    found = started_with_upstream(upstream, "python", "agent.py")
    assert pointed(found) == expected
    assert isinstance(found, Launch)
    assert (found.former_upstreams, found.named_upstreams) == ({}, {})


@requirement("run.apis")
@pytest.mark.parametrize(
    ("upstream", "is_known"),
    [
        ("deepseek", True),
        ("https://api.deepseek.com/v1", True),
        ("ollama", True),
        ("only-gemini", True),
        ("one-address", False),
        ("https://x.example", False),
        ("deepseek=https://x.example", False),
    ],
)
def test_the_apis_of_a_provider_are_known_and_those_of_an_address_are_not(upstream: str, is_known: bool) -> None:
    settings = load_settings({**ALONE, "SIGHTLINE_UPSTREAMS": json.dumps(OWN_UPSTREAMS)})
    named = find_flag_upstream(settings, upstream)
    assert not isinstance(named, Refusal)
    assert has_known_apis(named) == is_known


@requirement("run.variables")
def test_other_variables_keep_their_upstream() -> None:
    env = {"OPENAI_HOST": "https://x.example", "GEMINI_API_BASE": "https://g.example"}
    for program in ("goose", "python"):  # goose may have another address in its own settings
        found = started_with_upstream("deepseek", program, env=env)
        kept = {"GEMINI_API_BASE": f"{HERE}/u/gemini-api-base"}
        assert pointed(found) == {**POINTED_ANTHROPIC, **POINTED_OPENAI, **kept}
        assert isinstance(found, Launch)
        assert found.former_upstreams == {}
        assert found.named_upstreams == {"gemini-api-base": ("gemini", "https://g.example")}
    assert pointed(started_with_upstream("deepseek", "goose")) == {**POINTED_ANTHROPIC, **POINTED_OPENAI}
    dotenv = "GOOGLE_GEMINI_BASE_URL=https://g.example\n"
    found = started_with_upstream("deepseek", "python", dotenv=dotenv)
    assert pointed(found) == {**POINTED_ANTHROPIC, **POINTED_OPENAI}


@requirement("run.variables")
@pytest.mark.parametrize("name", ["aider", "goose", "kimi", "/opt/bin/kimi-cli"])
def test_a_program_with_a_provider_in_its_own_files_keeps_it(name: str) -> None:
    refused = started(name)
    assert isinstance(refused, Refusal)
    assert refused.code == "invalid_input"
    assert "--upstream NAME" in refused.remedy
    found = started(name, env={"OPENAI_API_BASE": "https://o.example.com/v1"})
    assert isinstance(found, Launch)
    assert {each: text for each, text in found.env.items() if text.startswith(HERE)} == {
        "OPENAI_API_BASE": f"{HERE}/v1"
    }


@requirement("run.variables")
def test_a_dotenv_file_that_names_an_address_is_not_overridden() -> None:
    files: dict[str, object] = {"/srv/project/.env": "# local\nexport OPENAI_BASE_URL=https://o.example.com/v1\n"}
    refused = started("python", "agent.py", files=files)
    assert isinstance(refused, Refusal)
    assert (refused.code, "OPENAI_BASE_URL" in refused.what) == ("not_permitted", True)
    assert isinstance(started("python", "agent.py", files=files, env={"OPENAI_BASE_URL": "https://me.example"}), Launch)
    context = LaunchContext(
        HOME, HERE, FOLDER, {FOLDER / ".env": str(files["/srv/project/.env"])}.get, upstream="office"
    )
    assert isinstance(launch(["python", "agent.py"], context), Launch)


@requirement("run.web_proxy")
@pytest.mark.parametrize("name", ["claude", "robot"])
def test_a_web_proxy_is_not_used_for_loopback(name: str) -> None:
    found = started(name, env={"https_proxy": "http://corp:3128", "no_proxy": "corp.example.com"})
    assert isinstance(found, Launch)
    assert found.env["NO_PROXY"] == found.env["no_proxy"] == "corp.example.com,127.0.0.1,localhost"


@requirement("run.web_proxy")
@pytest.mark.parametrize("name", ["claude", "robot"])
@pytest.mark.parametrize(
    ("env", "excepted"),
    [
        ({}, "127.0.0.1,localhost"),  # the agent may find a web proxy in a file
        ({"NO_PROXY": "a.example, localhost"}, "a.example,localhost,127.0.0.1"),
        ({"NO_PROXY": "a.example", "no_proxy": "b.example"}, "a.example,b.example,127.0.0.1,localhost"),
        ({"NO_PROXY": "*"}, "*"),
    ],
)
def test_loopback_is_always_excluded_from_web_proxies(name: str, env: dict[str, str], excepted: str) -> None:
    found = started(name, env=env)
    assert isinstance(found, Launch)
    assert found.env["NO_PROXY"] == found.env["no_proxy"] == excepted


def test_keys_in_the_environment_are_not_shown() -> None:
    assert "sk-secret" not in repr(started("robot", env={"OPENAI_API_KEY": "sk-secret"}))
