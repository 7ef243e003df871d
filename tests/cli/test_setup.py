"""`sightline setup`, and the table of agents that it, the banner and the doctor share."""

from __future__ import annotations

import json
import tomllib

import pytest

from sightline.cli.agents import AGENTS, Agent
from tests.cli.command import sightline
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
