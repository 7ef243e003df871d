"""Real agents behind the relay: what an editor pastes reaches a model that does not see, in words."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.acp.test_sdk import any_editor, zed
from tests.e2e.conftest import ROOT, Play
from tests.e2e.drive import Outcome
from tests.requirements import requirement
from tests.scripted.pictures import paint_lines

EDITOR = Path(__file__).with_name("editor.py")
WORDS = "What does the sign say?"
SIGN = "ZEBRA MARKET 4711"
BLIND = "deepseek-v4-pro"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as an editor starts it, pointed at the scripted provider."""

    command: Callable[[str], list[str]]  # by model
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # below the home
    auth: str = ""  # how it has to be told that it has a key


_LAB = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "{url}/v1", "apiKey": "sk-test"},
    "models": {BLIND: {"name": BLIND}},
}
_CODEX = f"""
model = "{BLIND}"
model_provider = "lab"
check_for_update_on_startup = false
[features]
apps = false
plugins = false
[model_providers.lab]
name = "lab"
base_url = "{{url}}/v1"
wire_api = "responses"
env_key = "LAB_KEY"
"""

AGENTS = {
    "qwen": Agent(
        lambda model: ["qwen", "--acp", "--auth-type", "openai", "-m", model],
        {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": "{url}/v1", "QWEN_TELEMETRY_ENABLED": "0"},
    ),
    "opencode": Agent(
        lambda model: ["opencode", "acp"],
        {
            "OPENCODE_CONFIG_CONTENT": json.dumps({"model": f"lab/{BLIND}", "provider": {"lab": _LAB}}),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
    ),
    "gemini": Agent(
        lambda model: ["gemini", "--acp", "--skip-trust", "-m", model],
        {
            "GEMINI_API_KEY": "sk-test",
            "GOOGLE_GEMINI_BASE_URL": "{url}",
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "NO_BROWSER": "1",
        },
        {".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})},
    ),
    "codex-acp": Agent(
        lambda model: ["codex-acp"],
        {"LAB_KEY": "sk-test", "CODEX_API_KEY": "sk-test", "NO_BROWSER": "1"},
        {".codex/config.toml": _CODEX},
    ),
}


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    return AGENTS[request.param]


@pytest.fixture
def prompted(play: Play, home: Path, tmp_path: Path) -> Callable[..., Outcome]:
    picture = tmp_path / "sign.png"
    picture.write_bytes(paint_lines([SIGN], scale=4))

    def prompt(agent: Agent, *before: str) -> Outcome:
        auth = ["--auth", agent.auth] if agent.auth else []
        files = {home / name: text for name, text in agent.files.items()}
        return play(
            [sys.executable, str(EDITOR), str(picture), WORDS, *auth, "--", *before, *agent.command(BLIND)],
            provider="seeing",
            files=files,
            environment=dict(agent.environment),
        )

    return prompt


def asked(outcome: Outcome) -> list[str]:
    """The requests in which the model is asked what was typed."""
    return [one.body for one in outcome.requests if one.model.endswith(BLIND) and WORDS in one.body]


@requirement("acp.e2e")
def test_a_description_reaches_a_blind_model(agent: Agent, prompted: Callable[..., Outcome]) -> None:
    outcome = prompted(agent, "sightline", "acp", "--")
    assert outcome.last.code == 0, outcome.last
    bodies = asked(outcome)
    assert bodies, outcome.last
    assert all("vision_proxy_description" in body and SIGN in body for body in bodies), bodies[0][-2000:]
    assert not any(one.pictures for one in outcome.requests)
    assert "end_turn" in outcome.last.stdout


@requirement("acp.e2e")
def test_a_blind_model_gets_no_description_without_the_relay(agent: Agent, prompted: Callable[..., Outcome]) -> None:
    outcome = prompted(agent)
    assert outcome.last.code == 0, outcome.last
    bodies = asked(outcome)
    assert bodies, outcome.last
    assert not any("vision_proxy_description" in body or SIGN in body for body in bodies)


@requirement("acp.readme")
def test_the_documented_editor_command_starts_a_real_agent(
    prompted: Callable[..., Outcome],
) -> None:
    told = zed(ROOT / "README.md")
    assert told == any_editor(ROOT / "README.md"), "both are run at once"
    own = {"security": {"auth": {"selectedType": "openai"}}, "model": {"name": BLIND}}
    files = {".qwen/settings.json": json.dumps(own)}
    outcome = prompted(Agent(lambda model: [], AGENTS["qwen"].environment, files), *told)
    assert outcome.last.code == 0, outcome.last
    bodies = asked(outcome)
    assert bodies, outcome.last
    assert all(SIGN in body for body in bodies), bodies[0][-2000:]
