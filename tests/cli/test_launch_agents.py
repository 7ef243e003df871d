"""Each agent is started in the least intrusive way: the user's login, model, provider and files stay."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sightline.agents.command_lines import launch
from sightline.agents.launch import FILES, Launch, LaunchContext, find_address, resolve_upstream
from sightline.agents.settings_files import merge, parse_json
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from tests.cli.test_launch import FOLDER, HERE, HOME, started
from tests.requirements import requirement

KEYED: dict[str, object] = {"/home/me/.codex/auth.json": {"OPENAI_API_KEY": "sk-theirs"}}
CHATGPT: dict[str, object] = {"/home/me/.codex/auth.json": {"OPENAI_API_KEY": None, "tokens": {"access_token": "jwt"}}}


def launched(*argv: str, env: dict[str, str] | None = None, files: dict[str, object] | None = None) -> Launch:
    found = started(*argv, env=env, files=files)
    assert isinstance(found, Launch), found
    return found


def table(base: str) -> str:
    said = f'{{name="Sightline",base_url="{base}",wire_api="responses",requires_openai_auth=true}}'
    return f"model_providers.sightline={said}"


@requirement("run.codex")
def test_codex_keeps_its_key_with_our_provider() -> None:
    found = launched("codex", "exec", "hi", files=KEYED)
    assert found.argv == ("codex", "-c", "model_provider=sightline", "-c", table(f"{HERE}/v1"), "exec", "hi")
    assert found.former_upstreams == {}


@requirement("run.codex")
def test_codex_with_a_chatgpt_login_is_forwarded_to_chatgpt() -> None:
    found = launched("codex", files=CHATGPT)
    assert found.argv[-1] == table(HERE)
    assert set(found.former_upstreams.values()) == {"https://chatgpt.com/backend-api/codex"}


@requirement("run.codex")
@pytest.mark.parametrize(
    ("words", "config", "before", "after"),
    [
        ([], 'model_provider = "deep"', [], []),
        (["exec", "-c", "model_provider=deep"], "", ["-c", "model_provider=deep"], ["exec"]),
        (["--config=model_provider='deep'"], 'model_provider = "openai"', ["-c", "model_provider='deep'"], []),
        (["exec", "-cmodel_provider=deep", "hi"], "", ["-c", "model_provider=deep"], ["exec", "hi"]),
        (["-p", "work"], 'model_provider = "openai"\n[profiles.work]\nmodel_provider = "deep"', [], ["-p", "work"]),
        (["-c", "model=m", "--", "-c"], 'model_provider = "deep"', [], ["-c", "model=m", "--", "-c"]),
    ],
)
def test_a_custom_provider_keeps_everything_but_its_address(
    words: list[str], config: str, before: list[str], after: list[str]
) -> None:
    theirs = f'{config}\n[model_providers.deep]\nbase_url = "https://deep.example.com/v1"\nenv_key = "DEEP_KEY"\n'
    found = launched("codex", *words, files={"/home/me/.codex/config.toml": theirs})
    ours = ["-c", f'model_providers.deep.base_url="{HERE}/v1"']
    assert found.argv == ("codex", *before, *ours, *after), "of two settings the later one counts"
    assert set(found.former_upstreams.values()) == {"https://deep.example.com/v1"}


CONFIG = "/home/me/.codex/config.toml"


@requirement("run.codex", "run.takes_over")
@pytest.mark.parametrize("config", ['openai_base_url = "https://corp.example.com/v1"', ""])
def test_codex_keeps_the_address_of_its_built_in_provider(config: str) -> None:
    words = [] if config else ["-c", 'openai_base_url="https://corp.example.com/v1"']
    found = launched("codex", *words, files={**CHATGPT, CONFIG: config})
    assert found.argv[-1] == table(f"{HERE}/v1")
    assert set(found.former_upstreams.values()) == {"https://corp.example.com/v1"}


@requirement("run.codex", "run.takes_over")
def test_a_codex_profile_has_its_own_file() -> None:
    theirs = 'model_provider = "deep"\n[model_providers.deep]\nbase_url = "https://deep.example.com/llm"'
    found = launched("codex", "--profile", "work", files={"/home/me/.codex/work.config.toml": theirs})
    assert found.argv[:3] == ("codex", "-c", f'model_providers.deep.base_url="{HERE}"')
    assert set(found.former_upstreams.values()) == {"https://deep.example.com/llm"}


@requirement("run.refused")
@pytest.mark.parametrize(
    ("words", "config"),
    [
        (["-c", "model_provider=ollama"], ""),
        (["--oss"], ""),
        ([], 'model_provider = "ollama"'),
        ([], 'model_provider = "deep"\n[model_providers.deep]\nenv_key = "K"'),
    ],
)
def test_a_codex_provider_that_cannot_be_redirected_is_refused(words: list[str], config: str) -> None:
    refusal = started("codex", *words, files={CONFIG: config})
    assert isinstance(refusal, Refusal)
    assert "base_url" in refusal.remedy


def of_qwen(found: Launch) -> dict[str, Any]:
    assert found.env["QWEN_CODE_SYSTEM_SETTINGS_PATH"] == f"{FILES}/qwen-settings.json"
    loaded: dict[str, Any] = json.loads(found.files["qwen-settings.json"])
    return loaded


@requirement("run.qwen")
def test_qwen_is_pointed_by_variables_and_its_model_declared_as_seeing() -> None:
    found = launched("qwen", "-p", "hi", env={"OPENAI_BASE_URL": "https://q.example.com/v1"})
    assert (found.argv, found.env["OPENAI_BASE_URL"]) == (("qwen", "-p", "hi"), f"{HERE}/v1")
    assert found.former_upstreams == {"openai_chat": "https://q.example.com/v1"}
    assert of_qwen(found) == {"model": {"generationConfig": {"modalities": {"image": True}}}}


@requirement("run.qwen")
def test_qwen_keeps_every_model_of_its_list_each_with_its_own_upstream() -> None:
    one = {"id": "a", "baseUrl": "https://one.example.com/v1", "envKey": "A", "generationConfig": {"temperature": 0}}
    two = {"id": "b", "baseUrl": "https://two.example.com/v1", "envKey": "B"}
    mine = '{"modelProviders": {"openai": ' + json.dumps([one, two, one]) + ",}, // theirs\n}"
    found = launched("qwen", files={"/home/me/.qwen/settings.json": mine})
    seeing = {"modalities": {"image": True}}
    assert of_qwen(found)["modelProviders"]["openai"] == [
        {**one, "baseUrl": f"{HERE}/u/qwen-1/v1", "generationConfig": {"temperature": 0, **seeing}},
        {**two, "baseUrl": f"{HERE}/u/qwen-2/v1", "generationConfig": seeing},
        {**one, "baseUrl": f"{HERE}/u/qwen-1/v1", "generationConfig": {"temperature": 0, **seeing}},
    ]
    assert found.named_upstreams == {
        "qwen-1": ("openai_chat", "https://one.example.com/v1"),
        "qwen-2": ("openai_chat", "https://two.example.com/v1"),
    }


@requirement("run.qwen", "run.takes_over")
@pytest.mark.parametrize(
    ("file", "text", "note"),
    [
        ("/home/me/.qwen/.env", 'export OPENAI_BASE_URL="https://q.example.com/v1" # mine', ""),
        ("/home/me/.env", "A=1\nOPENAI_BASE_URL=https://q.example.com/v1", ""),
        ("/srv/.qwen/.env", "OPENAI_BASE_URL='https://q.example.com/v1'", "/srv/.qwen/.env"),
        ("/home/me/.qwen/settings.json", '{"env": {"OPENAI_BASE_URL": "https://q.example.com/v1"}}', ""),
        ("/home/me/.qwen/settings.json", '{"security": {"auth": {"baseUrl": "https://q.example.com/v1"}}}', ""),
    ],
)
def test_qwens_upstream_is_found_in_every_place_qwen_reads(file: str, text: str, note: str) -> None:
    files: dict[str, object] = {file: text, "/home/me/.qwen/trustedFolders.json": {"/srv/project": "TRUST_FOLDER"}}
    found = launched("qwen", files=files)
    assert found.former_upstreams == {"openai_chat": "https://q.example.com/v1"}
    assert note in found.note
    assert bool(note) == bool(found.note)
    flag = launched("qwen", "--openai-base-url", "https://f.example.com", "-p", "hi", files=files)
    assert (flag.argv, flag.former_upstreams) == (("qwen", "-p", "hi"), {"openai_chat": "https://f.example.com"})
    assert flag.env["OPENAI_BASE_URL"] == HERE, "an address without a version is asked without one"


@requirement("run.qwen")
@pytest.mark.parametrize(("rule", "taken"), [("TRUST_FOLDER", True), ("DO_NOT_TRUST", False), ("", False)])
def test_a_project_that_qwen_does_not_trust_is_ignored(rule: str, taken: bool) -> None:
    files: dict[str, object] = {
        "/home/me/.qwen/settings.json": {"security": {"folderTrust": {"enabled": True}}},
        "/home/me/.qwen/trustedFolders.json": {"/srv": rule} if rule else {},
        "/srv/project/.env": "OPENAI_BASE_URL=https://project.example.com/v1",
        "/srv/project/.qwen/settings.json": {"modelProviders": {"openai": [{"id": "a", "baseUrl": "https://p/v1"}]}},
    }
    found = launched("qwen", files=files)
    assert bool(found.former_upstreams) is bool(found.named_upstreams) is taken


@requirement("run.qwen")
def test_an_address_of_qwen_may_contain_a_variable() -> None:
    entries = [{"id": "a", "baseUrl": "${LAB}/v1"}, {"id": "b", "baseUrl": "$NOBODY/v1"}, {"id": "c"}]
    files: dict[str, object] = {"/home/me/.qwen/settings.json": {"modelProviders": {"openai": entries}}}
    found = launched("qwen", env={"LAB": "https://lab.example.com"}, files=files)
    assert found.named_upstreams == {"qwen-1": ("openai_chat", "https://lab.example.com/v1")}
    known, unknown, bare = of_qwen(found)["modelProviders"]["openai"]
    assert (known["baseUrl"], bare["baseUrl"]) == (f"{HERE}/u/qwen-1/v1", f"{HERE}/v1")
    assert unknown == entries[1], "what nobody can know is left alone"


@requirement("run.qwen")
def test_existing_system_settings_are_kept() -> None:
    env = {"QWEN_CODE_SYSTEM_SETTINGS_PATH": "/etc/qwen.json"}
    found = launched("qwen", env=env, files={"/etc/qwen.json": {"telemetry": {"enabled": False}}})
    assert of_qwen(found)["telemetry"] == {"enabled": False}


@requirement("run.pi")
def test_pi_gets_an_extension_that_redirects_every_provider() -> None:
    own = {
        "providers": {
            "zai": {"baseUrl": "https://z.example.com/v4"},
            "lab": {"api": "anthropic-messages", "baseUrl": "http://127.0.0.1:9"},
        }
    }
    found = launched("pi", "-p", "hi", files={"/home/me/.pi/agent/models.json": own})
    assert found.argv == ("pi", "-e", f"{FILES}/sightline.ts", "-p", "hi")
    assert "registerProvider" in found.files["sightline.ts"]
    bases = json.loads(found.env["SIGHTLINE_PI_PROVIDERS"])
    assert (bases["anthropic"], bases["openai"]) == (f"{HERE}/u/anthropic", f"{HERE}/u/openai/v1")
    assert (bases["zai"], bases["lab"]) == (f"{HERE}/u/pi-zai/v1", f"{HERE}/u/pi-lab")
    assert found.named_upstreams == {
        "pi-zai": ("openai_chat", "https://z.example.com/v4"),
        "pi-lab": ("anthropic", "http://127.0.0.1:9"),
    }


@requirement("run.opencode")
def test_opencode_keeps_its_files_and_its_model_is_declared_as_seeing() -> None:
    lab = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "https://lab.example.com/v1"}}
    own = '{"model": "lab/m1", /* mine */ "provider": {"lab": ' + json.dumps(lab) + "}}"
    found = launched("opencode", "run", files={"/home/me/.config/opencode/opencode.json": own})
    content = json.loads(found.env["OPENCODE_CONFIG_CONTENT"])["provider"]
    assert content["lab"]["options"] == {"baseURL": f"{HERE}/u/opencode-1/v1"}
    assert content["lab"]["models"]["m1"]["modalities"]["input"] == ["text", "image"]
    assert content["deepseek"] == {"options": {"baseURL": f"{HERE}/u/deepseek/v1"}}
    assert found.named_upstreams == {"opencode-1": ("openai_chat", "https://lab.example.com/v1")}


@requirement("run.opencode", "run.takes_over")
def test_a_named_opencode_file_counts_with_the_files_it_includes() -> None:
    def lab(url: str) -> dict[str, object]:
        return {"provider": {"lab": {"options": {"baseURL": url}}, "deepseek": {"options": {"baseURL": url}}}}

    files: dict[str, object] = {
        "/home/me/.config/opencode/opencode.json": lab("https://user.example.com/v1"),
        "/srv/.git/HEAD": "ref: refs/heads/main",
        "/srv/opencode.json": lab("{env:LAB}/{file:./version}"),
        "/srv/version": "llm\n",
        "/opencode.json": lab("https://beyond.example.com/v1"),
    }
    named = {"OPENCODE_CONFIG": "/srv/opencode.json"}
    found = launched("opencode", env={"LAB": "https://lab.example.com", **named}, files=files)
    assert {url for _, url in found.named_upstreams.values()} == {"https://lab.example.com/llm"}
    content = json.loads(found.env["OPENCODE_CONFIG_CONTENT"])["provider"]
    assert content["lab"]["options"]["baseURL"] == f"{HERE}/u/opencode-2", "no version where theirs has none"
    unset = launched("opencode", env=named, files=files)
    assert unset.named_upstreams == {}
    assert "deepseek" not in json.loads(unset.env["OPENCODE_CONFIG_CONTENT"])["provider"], "no preset in its place"


@requirement("run.refused")
def test_an_opencode_model_of_an_unknown_provider_is_refused() -> None:
    refusal = started("opencode", "-m", "somebody/m")
    assert isinstance(refusal, Refusal)
    assert "--upstream" in refusal.remedy
    sent = launch(
        ["opencode", "-m", "somebody/m"], LaunchContext(HOME, HERE, FOLDER, lambda path: None, upstream="office")
    )
    assert isinstance(sent, Launch)
    assert json.loads(sent.env["OPENCODE_CONFIG_CONTENT"])["provider"]["somebody"]["options"]["baseURL"] == f"{HERE}/v1"


@requirement("run.opencode")
def test_opencode_content_in_the_same_variable_is_kept() -> None:
    found = launched("opencode", env={"OPENCODE_CONFIG_CONTENT": '{"theme": "dark"}'})
    assert json.loads(found.env["OPENCODE_CONFIG_CONTENT"])["theme"] == "dark"
    assert isinstance(started("opencode", env={"OPENCODE_CONFIG_CONTENT": "{"}), Refusal)


@requirement("run.gemini")
def test_gemini_keeps_its_login_or_gets_one_for_the_run() -> None:
    saved = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    files: dict[str, object] = {
        "/home/me/.gemini/settings.json": saved,
        "/home/me/.gemini/.env": "GOOGLE_GEMINI_BASE_URL='https://g.example.com'\n",
    }
    found = launched("gemini", "-p", "hi", files=files)
    assert (found.env["GOOGLE_GEMINI_BASE_URL"], found.files) == (HERE, {})
    assert found.former_upstreams == {"gemini": "https://g.example.com"}
    without = launched("gemini", env={"GEMINI_API_KEY": "k"})
    assert without.env["GEMINI_CLI_HOME"] == FILES
    assert json.loads(without.files[".gemini/settings.json"]) == saved


PROJECT = "GOOGLE_GEMINI_BASE_URL=https://project.example.com\n"


@requirement("run.gemini")
@pytest.mark.parametrize(("rule", "taken"), [("TRUST_FOLDER", True), ("DO_NOT_TRUST", False), ("", False)])
def test_a_project_that_gemini_does_not_trust_is_ignored(rule: str, taken: bool) -> None:
    files: dict[str, object] = {
        "/home/me/.gemini/trustedFolders.json": {"/srv/project": rule} if rule else {},
        "/home/me/.gemini/.env": "GOOGLE_GEMINI_BASE_URL=https://mine.example.com",
        "/srv/project/.env": PROJECT,
    }
    found = launched("gemini", files=files)
    assert found.former_upstreams["gemini"] == f"https://{'project' if taken else 'mine'}.example.com"
    assert ("/srv/project/.env" in found.note) is taken


@requirement("run.refused")
@pytest.mark.parametrize("how", ["oauth-personal", "vertex-ai", "GOOGLE_GENAI_USE_GCA"])
def test_a_gemini_login_that_cannot_be_redirected_is_refused(how: str) -> None:
    env = {how: "true"} if how.isupper() else {}
    saved = {} if env else {"security": {"auth": {"selectedType": how}}}
    refusal = started("gemini", env=env, files={"/home/me/.gemini/settings.json": saved})
    assert isinstance(refusal, Refusal)
    assert how in refusal.what


@requirement("run.refused")
def test_another_cline_provider_is_not_replaced() -> None:
    own = {"lastUsedProvider": "anthropic", "providers": {"openai-compatible": {"settings": {"apiKey": "k"}}}}
    refusal = started("cline", "do it", files={"/home/me/.cline/data/settings/providers.json": own})
    assert isinstance(refusal, Refusal)
    assert "anthropic" in refusal.what


@requirement("run.refused")
@pytest.mark.parametrize("in_file", [True, False])
def test_claude_at_another_api_is_refused(in_file: bool) -> None:
    said = {"CLAUDE_CODE_USE_BEDROCK": "1"}
    files: dict[str, object] = {"/home/me/.claude/settings.json": {"env": said}}
    refusal = started("claude", env={} if in_file else said, files=files if in_file else {})
    assert isinstance(refusal, Refusal)
    assert "Bedrock" in refusal.what


OURS = "http://127.0.0.1:8790/u/deepseek/v1"


@requirement("run.takes_over")
@pytest.mark.parametrize("ours", [OURS, OURS.replace("8790", "9001")])
def test_our_own_address_means_the_upstream_in_its_path(ours: str) -> None:
    """An agent that `setup` has pointed here works with `run` as before, with or without a running `serve`."""
    claude = launched("claude", env={"ANTHROPIC_BASE_URL": ours.removesuffix("/v1")})
    assert claude.former_upstreams == {"anthropic": "deepseek"}
    config = f'model_provider = "sightline"\n[model_providers.sightline]\nbase_url = "{ours}"'
    assert set(launched("codex", files={CONFIG: config}).former_upstreams.values()) == {"deepseek"}
    assert launched("qwen", env={"OPENAI_BASE_URL": ours}).former_upstreams == {"openai_chat": "deepseek"}
    own = {"providers": {"deepseek": {"baseUrl": ours}}}
    pi = launched("pi", files={"/home/me/.pi/agent/models.json": own})
    assert pi.named_upstreams == {"pi-deepseek": ("openai_chat", "deepseek")}


@requirement("run.refused")
def test_our_own_address_without_a_name_is_refused() -> None:
    refusal = started("claude", env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:8790"})
    assert isinstance(refusal, Refusal)
    assert "--upstream" in refusal.remedy
    assert isinstance(started("claude", env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:8791"}), Launch)


@given(st.text())
def test_any_address_can_be_parsed(url: str) -> None:
    assert find_address(url) in ("", url)
    assert resolve_upstream(f"https://example.com/u/{url}") == f"https://example.com/u/{url}", (
        "only on this machine it is ours"
    )


@requirement("run.copilot")
def test_copilot_is_pointed_only_with_a_custom_provider() -> None:
    env = {"COPILOT_PROVIDER_BASE_URL": "https://c.example.com", "COPILOT_PROVIDER_TYPE": "anthropic"}
    found = launched("copilot", env=env)
    assert (found.env["COPILOT_PROVIDER_BASE_URL"], found.former_upstreams) == (
        HERE,
        {"anthropic": "https://c.example.com"},
    )
    refusal = started("copilot")
    assert isinstance(refusal, Refusal)
    assert "COPILOT_PROVIDER_BASE_URL" in refusal.remedy


COPILOT = {"COPILOT_PROVIDER_BASE_URL": "https://c.example.com/v1", "COPILOT_PROVIDER_API_KEY": "sk-own"}
SEES = {"capabilities": {"supports": {"vision": True}}}
LAB = {"name": "lab", "baseUrl": "https://lab.example.com/v1", "apiKey": "sk-lab"}
CLAUDES = {"name": "claudes", "baseUrl": "https://claudes.example.com", "type": "anthropic"}
HELD: dict[str, Any] = {
    "providers": [LAB, CLAUDES, {"name": "odd", "baseUrl": 5}],
    "models": [{"id": "m", "provider": "lab", "capabilities": {"supports": {"tool_calls": True}}}],
    "more": 1,
}
OWN_FILE: dict[str, object] = {"/home/me/.copilot/providers.json": HELD}


def provided(found: Launch) -> dict[str, Any]:
    assert found.env["COPILOT_PROVIDERS_CONFIG"] == f"{FILES}/providers.json"
    written: dict[str, Any] = json.loads(found.files["providers.json"])
    return written


@requirement("run.copilot.sees")
@pytest.mark.parametrize(
    ("words", "env", "after", "model"),
    [
        (["--model", "m1", "-p", "hi"], {}, ["-p", "hi"], {"id": "m1"}),
        (
            ["-p", "hi", "--model=m1", "--", "--model"],
            {"COPILOT_MODEL": "m2"},
            ["-p", "hi", "--", "--model"],
            {"id": "m1"},
        ),
        (["-i"], {"COPILOT_MODEL": "a/b"}, ["-i"], {"id": "a/b"}),
        (
            [],
            {"COPILOT_PROVIDER_MODEL_ID": "gpt-5", "COPILOT_PROVIDER_WIRE_MODEL": "w"},
            [],
            {"id": "gpt-5", "modelId": "gpt-5", "wireModel": "w"},
        ),
        (
            [],
            {
                "COPILOT_MODEL": "m",
                "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "9",
                "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "x",
            },
            [],
            {"id": "m", "maxPromptTokens": 9},
        ),
    ],
)
def test_the_model_of_copilots_variables_is_declared_as_seeing(
    words: list[str], env: dict[str, str], after: list[str], model: dict[str, Any]
) -> None:
    found = launched("copilot", *words, env={**COPILOT, **env})
    assert provided(found) == {
        "providers": [{"name": "sightline", "baseUrl": f"{HERE}/v1", "apiKey": "sk-own"}],
        "models": [{**model, "provider": "sightline", **SEES}],
    }
    assert found.argv == ("copilot", "--model", f"sightline/{model['id']}", *after)
    assert found.env.get("COPILOT_MODEL") == env.get("COPILOT_MODEL")
    assert set(found.former_upstreams.values()) == {COPILOT["COPILOT_PROVIDER_BASE_URL"]}
    assert found.env["COPILOT_PROVIDER_BASE_URL"] == f"{HERE}/v1", "for commands that read no file"


@requirement("run.copilot.sees")
def test_copilots_variables_are_written_into_its_providers_file() -> None:
    env = {
        "COPILOT_PROVIDER_BASE_URL": "https://c.example.com",
        "COPILOT_PROVIDER_TYPE": "azure",
        "COPILOT_PROVIDER_WIRE_API": "responses",
        "COPILOT_PROVIDER_TRANSPORT": "http",
        "COPILOT_PROVIDER_BEARER_TOKEN": "t",
        "COPILOT_PROVIDER_AZURE_API_VERSION": "2026-01-01",
        "COPILOT_PROVIDER_HEADERS": "X-One: 1: a\\nX-Two:2\nnothing",
        "COPILOT_MODEL": "m",
    }
    assert provided(launched("copilot", env=env))["providers"] == [
        {
            "name": "sightline",
            "baseUrl": HERE,
            "type": "azure",
            "wireApi": "responses",
            "transport": "http",
            "bearerToken": "t",
            "azure": {"apiVersion": "2026-01-01"},
            "headers": {"X-One": "1: a", "X-Two": "2"},
        }
    ]


@requirement("run.copilot.sees")
def test_the_users_own_providers_file_is_kept() -> None:
    found = launched("copilot", "--model", "lab/m", files=OWN_FILE)
    pointed = [{**LAB, "baseUrl": f"{HERE}/u/copilot-1/v1"}, {**CLAUDES, "baseUrl": f"{HERE}/u/copilot-2"}]
    sees = {"id": "m", "provider": "lab", "capabilities": {"supports": {"tool_calls": True, "vision": True}}}
    assert provided(found) == {"providers": [*pointed, HELD["providers"][2]], "models": [sees], "more": 1}
    assert found.argv == ("copilot", "--model", "lab/m")
    assert found.named_upstreams == {
        "copilot-1": ("openai_chat", "https://lab.example.com/v1"),
        "copilot-2": ("anthropic", "https://claudes.example.com"),
    }
    both = launched("copilot", "--model", "m9", env=COPILOT, files=OWN_FILE)
    assert [each["name"] for each in provided(both)["providers"]] == ["lab", "claudes", "odd", "sightline"]
    assert both.argv[2] == "sightline/m9", "variables win over the file"
    taken = launched(
        "copilot",
        "--model",
        "m",
        env=COPILOT,
        files={"/home/me/.copilot/providers.json": {"providers": [{"name": "sightline"}]}},
    )
    assert taken.argv[2] == "sightline-2/m"


@requirement("run.copilot.sees")
@pytest.mark.parametrize(
    ("words", "env", "where"),
    [
        ([], {"COPILOT_HOME": "/etc/copilot"}, "/etc/copilot/providers.json"),
        (["--config-dir", "/etc/c"], {}, "/etc/c/providers.json"),
        ([], {**COPILOT, "COPILOT_PROVIDERS_CONFIG": "/etc/named.json"}, "/etc/named.json"),
        ([], {"COPILOT_PROVIDERS_CONFIG": "named.json"}, "/srv/project/named.json"),
    ],
)
def test_copilots_providers_file_is_found_as_copilot_finds_it(
    words: list[str], env: dict[str, str], where: str
) -> None:
    found = launched("copilot", *words, "--model", "lab/m", env=env, files={where: HELD})
    assert found.argv == ("copilot", *words, "--model", "lab/m")
    assert [each["name"] for each in provided(found)["providers"]] == ["lab", "claudes", "odd"]


@requirement("run.copilot.sees")
def test_copilot_is_pointed_by_variables_if_no_file_can_replace_them() -> None:
    command = {"COPILOT_PROVIDER_API_KEY_COMMAND": "pass show key"}
    keyed = launched("copilot", "--model", "m", env={**COPILOT, **command})
    assert (keyed.argv, keyed.files) == (("copilot", "--model", "m"), {})
    assert "API_KEY_COMMAND" in keyed.note
    unnamed = launched("copilot", "mcp", "list", env=COPILOT)
    assert (unnamed.argv, unnamed.files) == (("copilot", "mcp", "list"), {})
    loopback = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    assert unnamed.env == {**HOME, **COPILOT, "COPILOT_PROVIDER_BASE_URL": f"{HERE}/v1", **loopback}


@given(
    st.lists(st.one_of(st.text(), st.sampled_from(["--model", "--model=m", "--", "-p", "--config-dir"]))),
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
)
def test_any_copilot_arguments_headers_and_files_can_be_parsed(words: list[str], headers: str, tree: object) -> None:
    env = {**COPILOT, "COPILOT_MODEL": "m", "COPILOT_PROVIDER_HEADERS": headers}
    for held in (tree, {"providers": tree, "models": tree}, {"providers": [tree], "models": [tree]}):
        found = launched("copilot", *words, env=env, files={"/home/me/.copilot/providers.json": json.dumps(held)})
        if found.argv == ("copilot", *words):  # a flag without a model, about which Copilot has to say something
            assert not found.files
            continue
        *_, ours = provided(found)["providers"]
        assert ours["baseUrl"] == f"{HERE}/v1"
        assert found.argv[1] == "--model"


@requirement("run.cline")
def test_cline_works_on_a_copy_of_its_settings() -> None:
    own = {
        "lastUsedProvider": "openai-compatible",
        "providers": {"openai-compatible": {"settings": {"apiKey": "k", "baseUrl": "https://l.example.com/v1"}}},
    }
    found = launched("cline", "do it", files={"/home/me/.cline/data/settings/providers.json": own})
    assert found.argv == ("cline", "--data-dir", FILES, "do it")
    copied = json.loads(found.files["settings/providers.json"])
    assert copied["providers"]["openai-compatible"]["settings"] == {"apiKey": "k", "baseUrl": f"{HERE}/v1"}
    assert found.former_upstreams == {"openai_chat": "https://l.example.com/v1"}
    assert isinstance(started("cline", "do it"), Refusal)


@requirement("run.flagged")
@pytest.mark.parametrize("name", ["codex", "qwen", "pi", "opencode", "gemini", "copilot", "claude"])
def test_a_named_upstream_replaces_every_provider_of_the_agent(name: str) -> None:
    entry = {"id": "a", "baseUrl": "https://one.example.com/v1"}
    files = {
        "/home/me/.qwen/settings.json": json.dumps({"modelProviders": {"openai": [entry]}}),
        "/home/me/.copilot/providers.json": json.dumps(HELD),
    }
    held = {FOLDER / path: text for path, text in files.items()}
    apis: tuple[WireName, ...] = ("anthropic", "openai_chat", "openai_responses", "gemini")
    found = launch([name], LaunchContext(HOME, HERE, FOLDER, held.get, upstream="office", upstream_apis=apis))
    assert isinstance(found, Launch)
    assert f"{HERE}/u/" not in json.dumps([found.argv, dict(found.env), dict(found.files)])


def launched_with(upstream: str, name: str, files: dict[str, object] | None = None, **env: str) -> Launch | Refusal:
    """Start an agent with an upstream that has no API of Google's, known by its name or not."""
    held = {FOLDER / path: json.dumps(tree) for path, tree in (files or {}).items()}
    context = LaunchContext({**HOME, **env}, HERE, FOLDER, held.get, upstream=upstream)
    return launch([name], replace(context, is_upstream_known=upstream != "office"))


@requirement("run.apis")
@pytest.mark.parametrize("upstream", ["deepseek", "office"])
def test_a_provider_with_an_api_that_the_upstream_lacks_keeps_its_own_address(upstream: str) -> None:
    own = {"api": "google-generative-ai", "baseUrl": "https://g.example.com/v1beta"}
    found = launched_with(upstream, "pi", {"/home/me/.pi/agent/models.json": {"providers": {"mine": own}}})
    assert isinstance(found, Launch)
    bases = json.loads(found.env["SIGHTLINE_PI_PROVIDERS"])
    kept = {name: base for name, base in bases.items() if base not in (HERE, f"{HERE}/v1")}
    assert kept == {"google": f"{HERE}/u/gemini/v1beta", "mine": f"{HERE}/u/pi-mine/v1beta"}
    assert found.named_upstreams == {"pi-mine": ("gemini", "https://g.example.com/v1beta")}
    found = launched_with(upstream, "opencode")
    assert isinstance(found, Launch)
    providers = json.loads(found.env["OPENCODE_CONFIG_CONTENT"])["provider"]
    others = {name for name, each in providers.items() if each["options"]["baseURL"] != f"{HERE}/v1"}
    assert others == {"google"}
    assert providers["google"]["options"]["baseURL"] == f"{HERE}/u/gemini/v1beta"


@requirement("run.apis")
def test_qwen_code_keeps_the_address_of_google_with_an_upstream_that_lacks_its_api() -> None:
    entry = {"id": "g", "baseUrl": "https://g.example.com"}
    files: dict[str, object] = {"/home/me/.qwen/settings.json": {"modelProviders": {"gemini": [entry]}}}
    for env, address in (({}, "/u/gemini"), ({"GOOGLE_GEMINI_BASE_URL": "https://own.example.com"}, "/u/qwen-gemini")):
        found = launched_with("deepseek", "qwen", files, **env)
        assert isinstance(found, Launch)
        assert found.env["GOOGLE_GEMINI_BASE_URL"] == HERE + address
        assert (found.env["OPENAI_BASE_URL"], found.env["ANTHROPIC_BASE_URL"]) == (f"{HERE}/v1", HERE)
        (written,) = json.loads(found.files["qwen-settings.json"])["modelProviders"]["gemini"]
        assert written["baseUrl"] == f"{HERE}/u/qwen-1"
        assert found.named_upstreams["qwen-1"] == ("gemini", "https://g.example.com")


@requirement("run.apis")
@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_an_agent_of_one_api_is_not_pointed_at_a_provider_that_lacks_it(name: str) -> None:
    context = LaunchContext(HOME, HERE, FOLDER, lambda path: None, upstream="mistral", upstream_apis=("openai_chat",))
    refused = launch([name], replace(context, is_upstream_known=True))
    assert isinstance(refused, Refusal)
    assert (refused.code, "mistral" in refused.what) == ("unsupported_type", True)
    found = launch([name], context)  # the user knows its API
    assert isinstance(found, Launch)
    assert f"{HERE}/u/mistral" in json.dumps([found.argv, dict(found.env)])


@requirement("run.apis")
def test_copilot_is_not_pointed_at_a_provider_that_lacks_its_api() -> None:
    context = LaunchContext({**HOME, **COPILOT}, HERE, FOLDER, lambda path: None, upstream="mistral")
    env = {**HOME, **COPILOT, "COPILOT_PROVIDER_TYPE": "anthropic"}
    refused = launch(["copilot"], replace(context, env=env, upstream_apis=("openai_chat",)))
    assert isinstance(refused, Refusal)
    assert refused.code == "unsupported_type"
    assert isinstance(launch(["copilot"], replace(context, env=env)), Launch)


@given(st.dictionaries(st.text(), st.one_of(st.none(), st.booleans(), st.text(), st.lists(st.integers()))))
def test_json_without_comments_is_parsed_unchanged(tree: dict[str, Any]) -> None:
    assert parse_json(json.dumps(tree)) == tree
    assert merge(tree, {}) == merge({}, tree) == tree


@given(st.text())
def test_any_text_is_parsed_or_none(text: str) -> None:
    found = parse_json(text)
    assert found is None or isinstance(found, dict)


@pytest.mark.parametrize("name", ["codex", "qwen", "pi", "opencode", "gemini"])
def test_invalid_files_of_an_agent_are_ignored(name: str) -> None:
    nonsense = ["{", "[1]", '{"modelProviders": [], "providers": 5, "provider": [], "env": 3, "security": 1}']
    for text in nonsense:

        def read(path: Path, text: str = text) -> str | None:
            return None if path.name == "bunfig.toml" else text  # one that cannot be read is refused

        assert isinstance(launch([name], LaunchContext(HOME, HERE, FOLDER, read)), Launch)


@given(
    st.lists(st.one_of(st.text(), st.sampled_from(["-c", "--config", "--", "-c=model_provider=x", "a.b=[", "--oss"])))
)
def test_any_codex_arguments_can_be_parsed(words: list[str]) -> None:
    found = started("codex", *words)
    assert isinstance(found, Launch | Refusal)
    if isinstance(found, Launch):
        kept = [word for word in words if "model_provider" not in word and "openai_base_url" not in word]
        assume(kept[-1:] not in (["-c"], ["--config"]))  # an option without its value: Codex refuses it
        assert [word for word in found.argv if word in kept][-1:] == kept[-1:]


@given(
    st.dictionaries(st.from_regex(r"[A-Z_]{1,9}", fullmatch=True), st.from_regex(r"[a-z:/. #]{0,12}", fullmatch=True))
)
def test_quoted_and_unquoted_variables_in_a_file_are_read(values: dict[str, str]) -> None:
    quotes = ("'", '"')
    text = "".join(
        f"export {name} = {quotes[n % 2]}{said}{quotes[n % 2]} # x\n" for n, (name, said) in enumerate(values.items())
    )
    place = LaunchContext(HOME, HERE, FOLDER, lambda path: text)
    assert place.read_dotenv(".env") == values


@given(st.text())
def test_any_text_of_a_dotenv_file_can_be_parsed(text: str) -> None:
    assert isinstance(LaunchContext(HOME, HERE, FOLDER, lambda path: text).read_dotenv(".env"), dict)
