"""`sightline setup`, and the table of agents that it, the banner and the doctor share."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.cli.agents import AGENTS, Agent
from sightline.cli.writing import written
from tests.cli.command import assert_refused, sightline
from tests.requirements import requirement

HERE = "http://127.0.0.1:8790"


@requirement("setup.lines")
@pytest.mark.parametrize("agent", AGENTS)
def test_setup_shows_how_an_agent_is_pointed_here(agent: str) -> None:
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
def test_the_lines_for_good_are_what_their_file_holds(agent: Agent) -> None:
    lines = agent.at(HERE).lines
    if agent.file.endswith(".json"):
        assert isinstance(json.loads(lines), dict)
    elif agent.file.endswith(".toml"):
        assert tomllib.loads(lines)["model_providers"]["sightline"]["base_url"] == f"{HERE}/u/openai/v1"
    else:
        assert lines.startswith(("GOOGLE_GEMINI_BASE_URL=", "cline auth "))


@pytest.mark.parametrize("agent", AGENTS.values(), ids=lambda each: each.name)
def test_an_agent_is_pointed_in_one_short_line(agent: Agent) -> None:
    assert 0 < len(agent.at(HERE).brief) <= 90
    assert "\n" not in agent.brief + agent.once


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("claude", "claude --settings '", "'"), ("opencode", "OPENCODE_CONFIG_CONTENT='", "' opencode")],
)
def test_json_in_a_command_is_json(name: str, before: str, after: str) -> None:
    once = AGENTS[name].at(HERE).once
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
                    "baseUrl": f"{HERE}/u/zai/v1",
                    "modelOverrides": {"glm-5.3": {"input": ["text", "image"]}},
                }
            }
        },
    ),
}


@requirement("setup.write", "setup.sees")
@pytest.mark.parametrize("agent", WRITTEN)
def test_the_lines_are_merged_into_the_agents_file_and_the_first_one_is_kept(agent: str, tmp_path: Path) -> None:
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

[model_providers.sightline]
base_url = "https://old"

[tui]
theme = "dark"
"""


@requirement("setup.write")
@pytest.mark.parametrize("before", ["", CODEX, 'model = "x"\n', "[tui]\n"])
def test_a_table_of_codex_is_written_beside_the_users_own(before: str, tmp_path: Path) -> None:
    file = tmp_path / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(before)
    for _ in range(2):
        ended = sightline("setup", "codex", "--write", "--port", "9", env={"HOME": str(tmp_path)})
        assert ended.code == 0, ended
        now = tomllib.loads(file.read_text())
        assert now["model_provider"] == "sightline"
        assert now["model_providers"]["sightline"]["base_url"] == "http://127.0.0.1:9/u/openai/v1"
    if before == CODEX:
        assert now["model_providers"]["other"] == {"base_url": "https://theirs/v1"}
        assert (now["tui"], now["model"]) == ({"theme": "dark"}, "gpt-6")
        assert "# mine" in file.read_text()
        assert "# stays" in file.read_text()


@requirement("setup.write")
def test_a_variable_of_gemini_is_written_beside_the_users_own(tmp_path: Path) -> None:
    file = tmp_path / ".gemini" / ".env"
    file.parent.mkdir()
    file.write_text("GEMINI_API_KEY=k\nGOOGLE_GEMINI_BASE_URL=https://old\n")
    assert sightline("setup", "gemini", "--write", env={"HOME": str(tmp_path)}).code == 0
    assert file.read_text() == f"GEMINI_API_KEY=k\nGOOGLE_GEMINI_BASE_URL={HERE}/u/gemini\n"


@requirement("setup.write")
@pytest.mark.parametrize(
    ("words", "held", "why"),
    [
        (["pi"], "{}", "--model"),
        (["copilot"], "", "variables"),
        (["cline", "--model", "m"], "", "command"),
        (["claude"], "{ // mine\n}", "comments"),
        (["claude"], "{", "not JSON"),
        (["claude"], "[]", "not a JSON object"),
        (["claude"], b"\xff\xfe", "cannot be read"),
        (["claude", "--upstream", "nobody"], "", "no upstream named 'nobody'"),
        (["codex"], "model_provider = ", "not TOML"),
        (["codex"], 'model_providers.sightline.name = "x"\n', "not TOML"),
        (["codex"], '[model_providers]\nsightline = {name = "x"}\n', "not TOML"),
    ],
)
def test_what_cannot_be_merged_is_left_as_it_is(words: list[str], held: str | bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / {"claude": ".claude/settings.json", "codex": ".codex/config.toml"}.get(words[0], "x/y")
    file.parent.mkdir()
    file.write_bytes(held if isinstance(held, bytes) else held.encode())
    before = file.read_bytes()
    assert_refused(sightline("setup", *words, "--write", env={"HOME": str(tmp_path)}), why)
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == [file.name]


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_what_is_written_holds_all_that_was_there(tree: object) -> None:
    before = {"theirs": tree}
    made = written("settings.json", json.dumps(before), AGENTS["claude"].at(HERE).lines)
    assert isinstance(made, str)
    assert json.loads(made) == {**before, "env": {"ANTHROPIC_BASE_URL": f"{HERE}/u/anthropic"}}
