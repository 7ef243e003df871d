"""`sightline setup`, and the table of agents that it, the banner and the doctor share."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agents import AGENTS
from sightline.agents.agent import CodingAgent
from sightline.agents.settings_files import merge_text, revert_text
from sightline.model.refusal import Refusal
from tests.cli.command import Ended, assert_refused, sightline
from tests.requirements import requirement

HERE = "http://127.0.0.1:8790"


@requirement("setup.lines")
@pytest.mark.parametrize("agent", AGENTS)
def test_setup_shows_how_to_point_an_agent_at_the_proxy(agent: str) -> None:
    ended = sightline("setup", agent)
    assert (ended.code, ended.err) == (0, "")
    assert AGENTS[agent].title in ended.out
    assert HERE in ended.out
    assert "$P" not in ended.out
    found = sightline("setup", agent, "--json").json
    assert found["name"] == agent
    assert HERE in found["once"] + found["lines"]


@requirement("setup.lines")
@pytest.mark.parametrize("agent", [each for each in AGENTS.values() if each.file], ids=lambda each: each.name)
def test_permanent_lines_are_valid_in_their_file_format(agent: CodingAgent) -> None:
    lines = agent.render(HERE).file_lines
    if agent.file.endswith(".json"):
        assert isinstance(json.loads(lines), dict)
    elif agent.file.endswith(".toml"):
        assert tomllib.loads(lines)["model_providers"]["sightline"]["base_url"] == f"{HERE}/u/openai/v1"
    else:
        assert lines.startswith("GOOGLE_GEMINI_BASE_URL=")


@pytest.mark.parametrize("agent", AGENTS.values(), ids=lambda each: each.name)
def test_one_short_line_points_an_agent_at_the_proxy(agent: CodingAgent) -> None:
    assert 0 < len(agent.render(HERE).brief) <= 90
    assert "\n" not in agent.brief + agent.one_run


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("claude", "claude --settings '", "'"), ("opencode", "OPENCODE_CONFIG_CONTENT='", "' opencode")],
)
def test_json_in_a_command_is_valid(name: str, before: str, after: str) -> None:
    once = AGENTS[name].render(HERE).one_run
    assert json.loads(once.removeprefix(before).removesuffix(after))


WRITTEN: dict[str, tuple[str, list[str], str, dict[str, Any]]] = {
    "claude": (
        ".claude/settings.json",
        ["--upstream", "deepseek"],
        '{"model": "opus", "env": {"A": "1", "ANTHROPIC_BASE_URL": "https://theirs"}}',
        {"model": "opus", "env": {"A": "1", "ANTHROPIC_BASE_URL": f"{HERE}/u/deepseek"}},
    ),
    "qwen": (
        ".qwen/settings.json",
        ["--model", "q", "--upstream", "dashscope"],
        '{"modelProviders": {"openai": [{"id": "q", "name": "mine", "baseUrl": "x"}, {"id": "other"}]}}',
        {
            "modelProviders": {
                "openai": [
                    {
                        "id": "q",
                        "name": "mine",
                        "baseUrl": f"{HERE}/u/dashscope/v1",
                        "envKey": "DASHSCOPE_API_KEY",
                        "generationConfig": {"modalities": {"image": True}},
                    },
                    {"id": "other"},
                ]
            }
        },
    ),
    "pi": (
        ".pi/agent/models.json",
        ["--model", "glm-5.3"],
        '{"providers": {"zai": {"apiKey": "k"}}}',
        {
            "providers": {
                "zai": {
                    "apiKey": "k",
                    "baseUrl": f"{HERE}/u/zai-coding/v1",
                    "modelOverrides": {"glm-5.3": {"input": ["text", "image"]}},
                }
            }
        },
    ),
    "copilot": (
        ".copilot/providers.json",
        ["--model", "m"],
        (
            '{"providers": ["x", {"name": "mine", "baseUrl": "https://api.deepseek.com", "apiKey": "k"},'
            ' {"name": "o"}], "models": [{"id": "m", "provider": "o"}, {"id": "m", "provider": "mine", "name": "M"}]}'
        ),
        {
            "providers": [
                "x",
                {"name": "mine", "baseUrl": f"{HERE}/u/deepseek/v1", "apiKey": "k"},
                {"name": "o"},
            ],
            "models": [
                {"id": "m", "provider": "o"},
                {"id": "m", "provider": "mine", "name": "M", "capabilities": {"supports": {"vision": True}}},
            ],
        },
    ),
}


@requirement("setup.write", "setup.sees")
@pytest.mark.parametrize("agent", WRITTEN)
def test_lines_are_merged_into_the_agents_file_with_a_backup(agent: str, tmp_path: Path) -> None:
    name, words, before, after = WRITTEN[agent]
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(before)
    file.chmod(0o640)
    for _ in range(2):  # the second time changes nothing
        ended = sightline("setup", agent, *words, "--write", env={"HOME": str(tmp_path)})
        assert (ended.code, ended.err) == (0, ""), ended
        assert json.loads(file.read_text()) == after
    assert file.with_name(f"{file.name}.bak").read_text() == before
    assert file.stat().st_mode & 0o777 == 0o640


CODEX = """# mine
model = "gpt-6"
model_provider = "other"

[model_providers.other]
base_url = "https://theirs/v1"  # stays
env_key = "THEIR_KEY"

[model_providers.sightline] # of last week
base_url = "https://old"

[tui]
theme = "dark"
"""


THEIRS = {"SIGHTLINE_UPSTREAMS": '{"theirs": {"baseUrl": "https://theirs/v1"}}'}


@requirement("setup.undo")
def test_write_says_what_must_run_and_how_to_undo_it(tmp_path: Path) -> None:
    words, env = ("setup", "claude", "--upstream", "deepseek", "--write"), {"HOME": str(tmp_path)}
    file = tmp_path / ".claude" / "settings.json"
    new = sightline(*words, env=env).out.splitlines()
    assert len(new) == 4
    assert all(each in new[2] for each in ("`sightline serve`", "Claude Code", "deepseek"))
    assert new[3].endswith(" sightline setup claude --undo")
    assert sightline(*words, env=env).out.splitlines()[3].endswith(" sightline setup claude --undo")
    file.write_text("{}")
    merged = sightline(*words, "--port", "9", env=env).out.splitlines()
    assert "`sightline serve --port 9`" in merged[2]
    assert f"{file}.bak" in merged[0]
    assert (tmp_path / ".claude" / "settings.json.bak").read_text() == "{}"
    elsewhere = sightline(*words, "--port", "9", env={**env, "SIGHTLINE_HOME": str(tmp_path / "other")})
    assert ("`sightline setup claude`" in elsewhere.out, str(file) in elsewhere.out) == (True, True)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file and folder with its mode, and the content of files."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@requirement("setup.undo.exact")
@pytest.mark.parametrize("before", [None, b"", b"{}", b'\xef\xbb\xbf{\r\n\t"model" : "opus"\r\n}'])
@pytest.mark.parametrize("writes", [1, 2])
def test_undo_restores_exactly_what_was_there(before: bytes | None, writes: int, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    file = tmp_path / ".claude" / "settings.json"
    if before is not None:
        file.parent.mkdir(mode=0o750)
        file.write_bytes(before)
        file.chmod(0o640)
    old = snapshot(tmp_path)
    for number in range(writes):
        words = ("--upstream", ("deepseek", "anthropic")[number], "--write")
        assert sightline("setup", "claude", *words, env=env).code == 0
    assert snapshot(tmp_path) != old
    assert sightline("setup", "claude", "--undo", "--json", env=env).json == {
        "ok": True,
        "file": str(file),
        "restored": before is not None,
    }
    assert snapshot(tmp_path) == old
    assert_refused(sightline("setup", "claude", "--undo", env=env), str(file))
    assert sightline("setup", "claude", "--undo", "--json", env=env).json["reason"] == "not_found"


@requirement("setup.undo.exact")
@pytest.mark.parametrize("how", ["the file is no JSON", "its copy", "no file"])
def test_undo_refuses_if_it_cannot_restore_exactly(how: str, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"model": "opus"}')
    assert sightline("setup", "claude", "--upstream", "deepseek", "--write", env=env).code == 0
    if how == "no file":
        file.unlink()
    else:
        changed = file.with_name("settings.json.bak") if how == "its copy" else file
        changed.write_text('{"model": "sonnet"}' if how == "its copy" else "{")
    now = snapshot(tmp_path)
    assert_refused(sightline("setup", "claude", "--undo", env=env), "settings.json", "by hand")
    assert snapshot(tmp_path) == now
    assert sightline("setup", "claude", "--undo", "--write", env=env).code == 2


@requirement("setup.undo.changed")
@pytest.mark.parametrize(
    "before", [None, '{"env": {"A": "1", "ANTHROPIC_BASE_URL": "https://old.example"}, "model": "opus"}']
)
def test_undo_keeps_what_the_agent_has_changed_since(before: str | None, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "SIGHTLINE_UPSTREAMS": '{"old": {"baseUrl": "https://old.example"}}'}
    file = tmp_path / ".claude" / "settings.json"
    if before is not None:
        file.parent.mkdir()
        file.write_text(before)
    for upstream in ("deepseek", "zai", "moonshot"):
        assert sightline("setup", "claude", "--upstream", upstream, "--write", env=env).code == 0
        now = json.loads(file.read_text())
        assert now["env"]["ANTHROPIC_BASE_URL"].endswith(f"/u/{upstream}")
        if upstream != "deepseek":  # also between two writes
            file.write_text(json.dumps({**now, "model": "sonnet", upstream: "dark"}))
    assert sightline("setup", "claude", "--undo", env=env).code == 0
    kept = {"model": "sonnet", "zai": "dark", "moonshot": "dark"}
    assert json.loads(file.read_text()) == {**json.loads(before or "{}"), **kept}
    assert_refused(sightline("setup", "claude", "--undo", env=env), str(file))


TOML = 'model = "gpt-6"\nmodel_provider = "mine"\n[model_providers.mine]\nbase_url = "https://m.example"\n'
DOTENV = "A=1\nGOOGLE_GEMINI_BASE_URL=old\n"
QWEN = '{"modelProviders": {"openai": [{"id": "a", "baseUrl": "https://a.example"}, {"id": "m", "x": 1}]}, "y": 2}'
CHANGED = '{"provider": {"$N": {"options": {"baseURL": "https://theirs.example"}}}}'


@requirement("setup.undo.changed")
@pytest.mark.parametrize(
    ("before", "written", "now", "expected"),
    [
        ([], [{"id": "m"}], [{"id": "m", "used": 1}], []),  # not an entry without an id
        (["p"], ["q", "r"], ["q", "r", "s"], ["q", "r", "s"]),
    ],
)
def test_a_list_never_has_parts_of_entries(
    before: list[Any], written: list[Any], now: list[Any], expected: Any
) -> None:
    texts = (json.dumps({"list": each, "own": 1}) for each in (before, written, now))
    assert json.loads(str(revert_text("a.json", *texts)))["list"] == expected


@requirement("setup.undo.changed")
@pytest.mark.parametrize(
    ("agent", "before", "change", "expected"),
    [
        ("codex", TOML, ("gpt-6", "gpt-7"), TOML.replace("gpt-6", "gpt-7")),
        ("codex", "", ("name =", "\nname ="), ""),
        ("gemini", DOTENV, ("A=1", "A=2"), DOTENV.replace("A=1", "A=2")),
        ("gemini", "", ("GOOGLE", "B=1\nGOOGLE"), "B=1\n"),
        ("qwen", QWEN, ('"y": 2', '"y": 3'), QWEN.replace('"y": 2', '"y": 3')),
        ("qwen", QWEN, ('"id": "a"', '"id": "b"'), QWEN.replace('"id": "a"', '"id": "b"')),
        ("opencode", "{}", ('"$B"', '"https://theirs.example"'), CHANGED),
    ],
)
def test_only_what_was_written_is_taken_out_of_a_file(
    agent: str, before: str, change: tuple[str, str], expected: str
) -> None:
    name, lines = AGENTS[agent].file, AGENTS[agent].file_lines.replace("\n$A", "").replace("$M", "m")
    read: Callable[[str], object] = {".toml": tomllib.loads, ".json": json.loads}.get(Path(name).suffix, str)
    written = merge_text(name, before, lines)
    assert isinstance(written, str)
    now = written.replace(*change)
    assert now != written
    assert read(str(revert_text(name, before, written, now))) == read(expected)
    assert read(str(revert_text(name, before, written, written))) == read(before)


@requirement("setup.undo.exact")
@pytest.mark.parametrize("agent", AGENTS)
def test_undo_without_a_write_is_refused(agent: str, tmp_path: Path) -> None:
    assert_refused(sightline("setup", agent, "--undo", env={"HOME": str(tmp_path)}), "undo")


@requirement("setup.key")
@pytest.mark.parametrize(
    ("agent", "words", "names"),
    [
        ("claude", ["--upstream", "deepseek"], ["deepseek", "ANTHROPIC_AUTH_TOKEN"]),
        ("codex", ["--upstream", "deepseek"], ["deepseek", "DEEPSEEK_API_KEY"]),
        ("qwen", ["--upstream", "deepseek", "--model", "m"], ["deepseek", "DEEPSEEK_API_KEY"]),
        ("opencode", ["--upstream", "deepseek", "--model", "m"], ["deepseek", "opencode auth login"]),
        ("pi", ["--upstream", "moonshot", "--model", "m"], ["moonshot", "/login"]),
        ("claude", [], []),
        ("claude", ["--upstream", "anthropic"], []),
        ("claude", ["--upstream", "ollama"], []),
        ("claude", ["--upstream", "mine"], []),
        ("codex", ["--upstream", "openai"], []),
    ],
)
def test_a_new_provider_says_where_its_key_belongs(
    agent: str, words: list[str], names: list[str], tmp_path: Path
) -> None:
    own = {"SIGHTLINE_UPSTREAMS": '{"mine": {"baseUrl": "https://llm.example.com", "apiKey": "sk-mine"}}'}
    env = {"HOME": str(tmp_path), **own}
    shown = sightline("setup", agent, *words, "--json", env=env).json["key"]
    assert bool(shown) == bool(names)
    written = sightline("setup", agent, *words, "--write", env=env).out
    assert all(name in written for name in names)
    assert shown in written


@requirement("setup.write", "setup.keeps")
@pytest.mark.parametrize("before", ["", CODEX, 'model = "x"\n', "[tui]\n", "\ufeff[tui]\n", 'x = """\n[a]\n"""\n[b]\n'])
def test_a_codex_table_is_added_to_the_users_file(before: str, tmp_path: Path) -> None:
    file = tmp_path / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(before)
    for _ in range(2):
        ended = sightline("setup", "codex", "--write", "--port", "9", env={"HOME": str(tmp_path), **THEIRS})
        assert ended.code == 0, ended
        now = tomllib.loads(file.read_text())
        assert now["model_provider"] == "sightline"
        ours = now["model_providers"]["sightline"]
        name = "theirs" if before == CODEX else "openai"
        assert ours["base_url"] == f"http://127.0.0.1:9/u/{name}/v1"
        if before == CODEX:
            assert (ours["env_key"], ours.get("requires_openai_auth")) == ("THEIR_KEY", None)
        else:
            assert (ours.get("env_key"), ours["requires_openai_auth"]) == (None, True)
    if before == CODEX:
        assert now["model_providers"]["other"]["base_url"] == "https://theirs/v1"
        assert (now["tui"], now["model"]) == ({"theme": "dark"}, "gpt-6")
        assert "# mine" in file.read_text()
        assert "# stays" in file.read_text()


def set_up(
    home: Path,
    agent: str,
    *words: str,
    held: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
) -> Ended:
    for name, text in (held or {}).items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text))
    return sightline("setup", agent, *words, "--write", env={"HOME": str(home), **(env or {})})


LOGIN = {".gemini/settings.json": {"security": {"auth": {"selectedType": "gemini-api-key"}}}}


@requirement("setup.write")
def test_a_gemini_variable_is_added_to_the_users_file(tmp_path: Path) -> None:
    old = "https://generativelanguage.googleapis.com/"
    held = {**LOGIN, ".gemini/.env": f"GEMINI_API_KEY=k\nGOOGLE_GEMINI_BASE_URL={old}\n"}
    assert set_up(tmp_path, "gemini", held=held).code == 0
    now = (tmp_path / ".gemini" / ".env").read_text()
    assert now == f"GEMINI_API_KEY=k\nGOOGLE_GEMINI_BASE_URL={HERE}/u/gemini\n"


def tables(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((home / ".codex" / "config.toml").read_text())["model_providers"]["sightline"]
    return found


@requirement("setup.keeps")
@pytest.mark.parametrize(
    ("upstream", "base", "login", "key"),
    [
        ("deepseek", "/u/deepseek/v1", None, "DEEPSEEK_API_KEY"),
        ("openai", "/u/openai/v1", True, None),
        ("chatgpt", "/u/chatgpt", True, None),
        ("ollama", "/u/ollama/v1", None, None),
    ],
)
def test_codex_sends_its_login_only_to_openai(
    upstream: str, base: str, login: bool | None, key: str | None, tmp_path: Path
) -> None:
    assert set_up(tmp_path, "codex", "--upstream", upstream).code == 0
    made = tables(tmp_path)
    assert (made["base_url"], made.get("requires_openai_auth"), made.get("env_key")) == (HERE + base, login, key)
    inline = sightline("setup", "codex", "--upstream", upstream, "--json", env={"HOME": str(tmp_path)}).json["once"]
    assert tomllib.loads(inline.partition("'")[2].rstrip("'"))["model_providers"]["sightline"] == made


@requirement("setup.keeps")
def test_codex_with_a_chatgpt_login_is_pointed_at_chatgpt(tmp_path: Path) -> None:
    held = {".codex/auth.json": {"OPENAI_API_KEY": None, "tokens": {"access_token": "jwt"}}}
    assert set_up(tmp_path, "codex", held=held).code == 0
    assert tables(tmp_path)["base_url"] == f"{HERE}/u/chatgpt"


@requirement("setup.keeps")
def test_claude_keeps_the_provider_of_its_token(tmp_path: Path) -> None:
    env = {"ANTHROPIC_BASE_URL": "https://api.deepseek.com/anthropic", "ANTHROPIC_AUTH_TOKEN": "sk-deep"}
    ended = set_up(tmp_path, "claude", held={".claude/settings.json": {"env": env}})
    assert "deepseek" in ended.out
    now = json.loads((tmp_path / ".claude" / "settings.json").read_text())
    assert now["env"] == {**env, "ANTHROPIC_BASE_URL": f"{HERE}/u/deepseek"}
    assert_refused(set_up(tmp_path, "claude", "--upstream", "anthropic"), "ANTHROPIC_AUTH_TOKEN", "deepseek")


@requirement("setup.keeps")
@pytest.mark.parametrize(
    ("agent", "words", "held", "why"),
    [
        ("claude", [], {".claude/settings.json": {"env": {"ANTHROPIC_BASE_URL": "https://gw"}}}, "https://gw"),
        ("codex", [], {".codex/config.toml": 'openai_base_url = "https://gw/v1"'}, "https://gw/v1"),
        (
            "codex",
            [],
            {".codex/config.toml": 'profile = "w"\n[profiles.w]\nmodel_provider = "openai"\n'},
            "profile w",
        ),
        (
            "codex",
            [],
            {
                ".codex/config.toml": 'model_provider = "d"\n[model_providers.d]\nbase_url = "https://api.deepseek.com"\n'
                'http_headers = {x = "1"}\n'
            },
            "http_headers",
        ),
        (
            "qwen",
            ["--model", "q"],
            {".qwen/settings.json": {"modelProviders": {"openai": [{"id": "q", "baseUrl": "https://gw/v1"}]}}},
            "https://gw/v1",
        ),
        ("qwen", ["--model", "q"], {".qwen/.env": "OPENAI_BASE_URL=https://gw/v1"}, "https://gw/v1"),
        (
            "pi",
            ["--model", "m", "--upstream", "zai-coding"],
            {".pi/agent/models.json": {"providers": {"zai": {"baseUrl": "https://gw/v1"}}}},
            "provider zai",
        ),
        ("pi", ["--model", "m", "--upstream", "zai"], {}, " zai ("),
        (
            "opencode",
            ["--model", "m", "--upstream", "deepseek"],
            {".config/opencode/opencode.json": {"provider": {"deepseek": {"options": {"baseURL": "https://gw/v1"}}}}},
            "provider deepseek",
        ),
        ("gemini", [], {}, "code 41"),
        ("gemini", [], {".gemini/settings.json": {"security": {"auth": {"selectedType": "oauth-personal"}}}}, "oauth"),
        ("gemini", ["--upstream", "openrouter"], LOGIN, "Gemini CLI"),
        ("codex", ["--upstream", "theirs"], {}, " KEY"),
        ("copilot", ["--model", "m"], {}, "--upstream"),
        ("copilot", ["--model", "m", "--upstream", "deepseek"], {}, '"apiKey": "KEY"'),
        (
            "copilot",
            ["--model", "m"],
            {".copilot/providers.json": {"providers": [{"name": "a", "baseUrl": "https://gw/v1"}]}},
            "https://gw/v1",
        ),
        (
            "copilot",
            ["--model", "m", "--upstream", "deepseek"],
            {".copilot/providers.json": {"providers": [{"name": "deepseek", "baseUrl": "https://gw/v1"}]}},
            "provider deepseek",
        ),
    ],
)
def test_no_key_is_sent_to_another_provider(
    agent: str, words: list[str], held: Mapping[str, object], why: str, tmp_path: Path
) -> None:
    upstreams = THEIRS if "theirs" in words else {}
    before = held and {name: text if isinstance(text, str) else json.dumps(text) for name, text in held.items()}
    assert_refused(set_up(tmp_path, agent, *words, held=before, env=upstreams), why)
    assert {name: (tmp_path / name).read_text() for name in held} == before
    shown = sightline("setup", agent, env={"HOME": str(tmp_path)})
    assert (shown.code, HERE in shown.out) == (0, True), "shown all the same"


POINTED = {
    ("pi", "anthropic"): ("anthropic", "/u/anthropic"),
    ("pi", "moonshot"): ("moonshotai", "/u/moonshot/v1"),
    ("pi", "gemini"): ("google", "/u/gemini/v1beta"),
    ("pi", "zai-coding"): ("zai", "/u/zai-coding/v1"),
    ("opencode", "anthropic"): ("anthropic", "/u/anthropic/v1"),
    ("opencode", "moonshot"): ("moonshotai", "/u/moonshot/v1"),
    ("opencode", "gemini"): ("google", "/u/gemini/v1beta"),
    ("opencode", "zai-coding"): ("zai-coding-plan", "/u/zai-coding/v1"),
}


@requirement("setup.write", "setup.keeps")
@pytest.mark.parametrize("case", POINTED, ids=" ".join)
def test_a_provider_keeps_the_agents_name_for_it(case: tuple[str, str], tmp_path: Path) -> None:
    (agent, upstream), (provider, base) = case, POINTED[case]
    assert set_up(tmp_path, agent, "--upstream", upstream, "--model", 'a "model"').code == 0
    if agent == "pi":
        made = json.loads((tmp_path / ".pi" / "agent" / "models.json").read_text())["providers"]
        assert made[provider]["baseUrl"] == HERE + base
        assert list(made[provider]["modelOverrides"]) == ['a "model"']
    else:
        made = json.loads((tmp_path / ".config" / "opencode" / "opencode.json").read_text())["provider"]
        assert made[provider]["options"]["baseURL"] == HERE + base
    assert list(made) == [provider]


@requirement("setup.write", "setup.keeps")
def test_a_new_copilot_provider_is_written_if_it_needs_no_key(tmp_path: Path) -> None:
    ended = set_up(tmp_path, "copilot", "--upstream", "ollama", "--model", "m")
    (line,) = [line for line in ended.out.splitlines() if "--model" in line]
    assert line.endswith(" --model ollama/m")
    made = json.loads((tmp_path / ".copilot" / "providers.json").read_text())
    assert made["providers"] == [{"name": "ollama", "baseUrl": f"{HERE}/u/ollama/v1"}]
    odd = {"providers": [{"name": 'a"b', "baseUrl": "https://api.deepseek.com/v1"}]}
    named = {"COPILOT_PROVIDERS_CONFIG": str(tmp_path / "named.json")}
    assert set_up(tmp_path, "copilot", "--model", "m", held={"named.json": odd}, env=named).code == 0
    made = json.loads((tmp_path / "named.json").read_text())
    assert made["providers"] == [{"name": 'a"b', "baseUrl": f"{HERE}/u/deepseek/v1"}]
    assert made["models"][0]["provider"] == 'a"b'
    pointed = {"COPILOT_PROVIDER_BASE_URL": "https://api.deepseek.com"}
    assert_refused(set_up(tmp_path, "copilot", "--model", "m", env=pointed), "COPILOT_PROVIDER_BASE_URL")


@requirement("setup.keeps")
def test_qwen_keeps_the_variable_that_holds_the_key(tmp_path: Path) -> None:
    entry = {"id": "q", "baseUrl": "https://api.deepseek.com/v1", "envKey": "MY_KEY"}
    odd = [{"id": ["q"]}, {"id": 5}, "x"]
    held = {".qwen/settings.json": {"modelProviders": {"openai": [entry, *odd]}}}
    assert set_up(tmp_path, "qwen", "--model", "q", held=held).code == 0
    made, *rest = json.loads((tmp_path / ".qwen/settings.json").read_text())["modelProviders"]["openai"]
    assert (made["baseUrl"], made["envKey"], rest) == (f"{HERE}/u/deepseek/v1", "MY_KEY", odd)


@requirement("setup.write")
@pytest.mark.parametrize(
    ("agent", "variable", "file", "words"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json", []),
        ("codex", "CODEX_HOME", "config.toml", []),
        ("qwen", "QWEN_HOME", "settings.json", ["--model", "m"]),
        ("pi", "PI_CODING_AGENT_DIR", "models.json", ["--model", "m"]),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json", ["--model", "m"]),
        ("copilot", "COPILOT_HOME", "providers.json", ["--model", "m", "--upstream", "ollama"]),
    ],
)
def test_an_agents_settings_folder_can_be_elsewhere(
    agent: str, variable: str, file: str, words: list[str], tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    ended = set_up(tmp_path, agent, *words, env={variable: str(elsewhere)})
    assert str(elsewhere / file) in ended.out
    assert HERE in (elsewhere / file).read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["elsewhere"]


@requirement("setup.write")
def test_each_write_keeps_a_backup(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.json"
    assert set_up(tmp_path, "claude", held={".claude/settings.json": '{"model": "one"}'}).code == 0
    changed = json.dumps({"model": "two", "env": {"ANTHROPIC_BASE_URL": f"{HERE}/u/zai"}})
    ended = set_up(tmp_path, "claude", "--port", "9", held={".claude/settings.json": changed})
    assert f"{file}.bak1" in ended.out
    assert file.with_name("settings.json.bak").read_text() == '{"model": "one"}'
    assert file.with_name("settings.json.bak1").read_text() == changed
    again = set_up(tmp_path, "claude", "--port", "9")
    assert (again.code, ".bak" in again.out) == (0, False), "it was the same already"


@requirement("setup.write")
def test_a_file_with_higher_precedence_is_left_to_the_user(tmp_path: Path) -> None:
    held = {".config/opencode/opencode.jsonc": "{} // mine"}
    ended = set_up(tmp_path, "opencode", "--model", "m", held=held)
    assert_refused(ended, "opencode.jsonc", '{"provider": {"deepseek": {"options": {"baseURL":')
    assert not (tmp_path / ".config/opencode/opencode.json").exists()


def test_the_lines_use_the_named_provider_and_model() -> None:
    once = sightline("setup", "copilot", "--upstream", "deepseek", "--model", "m1", "--json").json["once"]
    assert f"{HERE}/u/deepseek/v1 " in once
    assert "COPILOT_MODEL=m1 " in once


@requirement("setup.write")
@pytest.mark.parametrize(
    ("words", "held", "why"),
    [
        (["pi"], "{}", "--model"),
        (["copilot", "--upstream", "ollama"], "", "--model"),
        (["cline", "--model", "m"], "", "Cline CLI"),
        (["claude"], "{ // mine\n}", '{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8790/u/anthropic"}}'),
        (["claude"], '{"a": 1,}', "comma"),
        (["claude"], "{", "JSON"),
        (["claude"], "[]", "JSON object"),
        (["claude"], b"\xff\xfe", "settings.json"),
        (["claude", "--upstream", "nobody"], "", "'nobody'"),
        (["codex"], "model_provider = ", "TOML"),
        (["codex"], 'model_providers.sightline.name = "x"\n', "config.toml"),
        (["codex"], '[model_providers]\nsightline = {name = "x"}\n', "config.toml"),
    ],
)
def test_a_file_that_cannot_be_merged_is_left_unchanged(
    words: list[str], held: str | bytes, why: str, tmp_path: Path
) -> None:
    file = tmp_path / {"claude": ".claude/settings.json", "codex": ".codex/config.toml"}.get(words[0], "x/y")
    file.parent.mkdir()
    file.write_bytes(held if isinstance(held, bytes) else held.encode())
    before = file.read_bytes()
    assert_refused(sightline("setup", *words, "--write", env={"HOME": str(tmp_path)}), why)
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == [file.name]


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_merging_json_keeps_existing_content(tree: object) -> None:
    before = {"theirs": tree}
    made = merge_text("settings.json", json.dumps(before), AGENTS["claude"].render(HERE).file_lines)
    assert isinstance(made, str)
    assert json.loads(made) == {**before, "env": {"ANTHROPIC_BASE_URL": f"{HERE}/u/anthropic"}}


NAMES = st.sampled_from(["model_provider", "model_providers", "sightline", "other", "tui", '"a.b"'])
LINE = st.one_of(
    st.builds("{} = {}".format, NAMES, st.sampled_from(['"x"', "1", "[1]", '{name = "y"}', '"""', "[", "]"])),
    st.builds("[{}]".format, st.one_of(NAMES, st.builds("{}.{}".format, NAMES, NAMES))),
    st.text(max_size=9),
)


@given(st.lists(LINE, max_size=6).map("\n".join))
def test_merging_toml_keeps_existing_content(text: str) -> None:
    lines = AGENTS["codex"].render(HERE).file_lines
    made = merge_text("config.toml", text, lines)
    if isinstance(made, Refusal):
        return
    before, after, ours = tomllib.loads(text), tomllib.loads(made), tomllib.loads(lines)
    assert after["model_provider"] == ours["model_provider"]
    assert after["model_providers"].pop("sightline") == ours["model_providers"]["sightline"]
    before.get("model_providers", {}).pop("sightline", None)
    expected = {"model_providers": {}, **before, "model_provider": "sightline"}
    assert after == expected
    assert merge_text("config.toml", made, lines) == made, "a second time changes nothing"
