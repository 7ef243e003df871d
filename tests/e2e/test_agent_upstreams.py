"""An agent's own upstream, as its own files name it: behind `run`, and after `setup`, it is asked and nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.agents import AGENTS, READING
from tests.e2e.conftest import Play
from tests.requirements import requirement

# Where each agent of these finds its provider when nobody names one.
OWN = {
    "qwen": {".qwen/.env": "OPENAI_BASE_URL={url}/v1\n"},
    "codex": {".codex/config.toml": 'openai_base_url = "{url}/v1"\n'},
}


@requirement("e2e.own_upstream")
@pytest.mark.parametrize("name", OWN)
def test_the_upstream_in_an_agents_own_file_is_used(name: str, play: Play, home: Path) -> None:
    agent = AGENTS[name]
    outcome = play(
        ["sightline", "run", "--", *agent.ask(agent.seeing, "say something")],
        provider="seeing",
        files={home / path: text for path, text in {**agent.files, **OWN[name]}.items()},
        environment=dict(agent.environment),
    )
    assert outcome.last.code == 0, outcome.last
    assert any(one.model == agent.seeing for one in outcome.requests)


NOWHERE = "http://127.0.0.1:9"
LED_ASTRAY = {"HTTP_PROXY": NOWHERE, "http_proxy": NOWHERE, "NO_PROXY": "", "no_proxy": ""}
DOTENV = "".join(f"{name}={value}\n" for name, value in LED_ASTRAY.items())
# Files of a project that lead each agent past the proxy, to where nobody answers.
HOSTILE = {
    "claude": {".claude/settings.json": json.dumps({"env": {"ANTHROPIC_BASE_URL": NOWHERE, **LED_ASTRAY}})},
    "qwen": {
        ".env": DOTENV,
        ".qwen/settings.json": json.dumps(
            {"modelProviders": {"openai": [{"id": "some-model", "baseUrl": NOWHERE, "envKey": "OPENAI_API_KEY"}]}}
        ),
    },
    "gemini": {".env": DOTENV},
}


@requirement("e2e.untrusted")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_project_file_makes_an_agent_bypass_the_proxy(name: str, play: Play, home: Path, tmp_path: Path) -> None:
    agent = READING[name]
    ask = agent.ask(agent.seeing, "say something")
    outcome = play(
        ["sightline", "run", "--", *ask],
        ["sightline", "run", "--upstream", "{url}", "--", *ask],
        provider="seeing",
        files={home / path: text for path, text in agent.files.items()}
        | {tmp_path / "project" / path: text for path, text in HOSTILE[name].items()},
        environment=dict(agent.environment),
    )
    refused, named = outcome.ends
    assert refused.code == 1, refused
    assert "--upstream NAME" in refused.stderr
    assert named.code == 0, named
    assert any(one.model == agent.seeing for one in outcome.requests)


# `setup`, then the agent by itself in front of `sightline serve`; both end together.
FOR_GOOD = """
sightline setup {words} --port 8790 --write || exit 3
sightline serve --port 8790 >&2 &
serving=$!
for _ in $(seq 100); do
    sightline doctor --json | grep -q '"listening": "http' && break
done
"$@"
code=$?
kill $serving
exit $code
"""
LAB = """model_provider = "lab"
[model_providers.lab]
name = "Lab"
base_url = "{url}/v1"
env_key = "LAB_KEY"
"""
COPILOT = '{"providers": [{"name": "lab", "baseUrl": "{url}/v1", "apiKey": "sk-lab"}]}'
SET_UP = {
    "pi": ("pi --upstream anthropic --model claude-opus-5-5", {}, "claude-opus-5-5", "sk-anthropic"),
    "codex": ("codex", {".codex/config.toml": LAB}, "some-model", "sk-lab"),
    "copilot": ("copilot --model some-model", {".copilot/providers.json": COPILOT}, "some-model", "sk-lab"),
}
KEYS = {"ANTHROPIC_API_KEY": "sk-anthropic", "LAB_KEY": "sk-lab", "CODEX_API_KEY": "sk-openai"}


@requirement("e2e.set_up")
@pytest.mark.parametrize("name", SET_UP)
def test_an_agent_after_setup_uses_its_providers_key(name: str, play: Play, home: Path) -> None:
    words, files, model, key = SET_UP[name]
    agent = AGENTS[name]
    ours = {"upstreams": {each: {"baseUrl": "{url}"} for each in ("anthropic", "lab")}}
    alone = ["pi", "--provider", "anthropic", "--model", model, "-p", "say something"]
    command = alone if name == "pi" else agent.ask(model, "say something")
    outcome = play(
        ["sh", "-c", FOR_GOOD.replace("{words}", words), "sh", *command],
        provider="seeing",
        files={home / "sightline" / "vision-proxy.json": json.dumps(ours)}
        | {home / path: text for path, text in files.items()},
        environment={**agent.environment, **KEYS},
    )
    assert outcome.last.code == 0, outcome.last
    asked = [one for one in outcome.requests if one.model == model]
    assert [(one.status, one.key) for one in asked] == [(200, key)]
