"""The agents as their users start them: one question, an attached picture, a conversation that goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Command = list[str]


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    ask: Callable[[str, str], Command]  # by model and words
    attach: Callable[[str, str, str], Command]  # by model, words and picture
    go_on: Callable[[str, str], Command]  # in the last conversation
    reads: Callable[[str], tuple[str, dict[str, str]]]  # its own tool, as the model calls it
    seeing: str  # a model that sees at the seeing provider
    blind: str  # one that is blind at the blind one, whose siblings see
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # below the home; `{url}` is the provider's address
    direct: Mapping[str, str] = field(default_factory=dict)  # variables that point it at `{url}` without Sightline
    straight: Sequence[str] = ()  # arguments that do


def _claude(*rest: str) -> Callable[..., Command]:
    return lambda model, *words: ["claude", "--model", model, "--allowedTools", "Read", *rest, "-p", " ".join(words)]


def _codex(model: str, *words: str) -> Command:
    safe = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    quiet = ["-c", "features.apps=false", "-c", "features.plugins=false", "-c", "check_for_update_on_startup=false"]
    return ["codex", "exec", *safe, *quiet, "-m", model, *words]


_CODEX_DIRECT = (
    "-c",
    "model_provider=straight",
    "-c",
    'model_providers.straight={name="x",base_url="{url}/v1",wire_api="responses",env_key="CODEX_API_KEY"}',
)
_LAB = {
    "api": "openai-completions",
    "baseUrl": "{url}/v1",
    "apiKey": "sk-test",
    "models": [{"id": name, "input": ["text", "image"]} for name in ("some-model", "deepseek-v4-pro")],
}
_SEES = {"capabilities": {"supports": {"vision": True}}}
_COPILOT = {
    "providers": [{"name": "lab", "baseUrl": "{url}/v1", "apiKey": "sk-test"}],
    "models": [{"id": name, "provider": "lab", **_SEES} for name in ("some-model", "deepseek-v4-pro")],
}


def copilot(model: str, *words: str) -> Command:
    return ["copilot", "--allow-all-tools", "--model", model, *words]


def gemini(model: str, *words: str) -> Command:
    return ["gemini", "--skip-trust", "--yolo", "-m", model, *words]


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent(
            "claude",
            ask=_claude(),
            attach=lambda model, words, picture: _claude()(model, words, f"@{picture}"),
            go_on=_claude("-c"),
            reads=lambda picture: ("Read", {"file_path": picture}),
            seeing="claude-opus-5-5",
            blind="claude-opus-5-5",
            environment={"ANTHROPIC_API_KEY": "sk-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
            | {"DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"},
            direct={"ANTHROPIC_BASE_URL": "{url}"},
        ),
        Agent(
            "codex",
            ask=_codex,
            attach=lambda model, words, picture: _codex(model, "-i", picture, "--", words),
            go_on=lambda model, words: [*_codex(model)[:2], "resume", *_codex(model)[2:], "--last", words],
            reads=lambda picture: ("view_image", {"path": picture}),
            seeing="some-model",
            blind="deepseek-v4-pro",
            environment={"CODEX_API_KEY": "sk-test"},
            straight=_CODEX_DIRECT,
        ),
        Agent(
            "qwen",
            ask=lambda model, words: ["qwen", "--auth-type", "openai", "-m", model, "--yolo", "-p", words],
            attach=lambda model, words, picture: (
                ["qwen", "--auth-type", "openai", "-m", model, "--yolo", "-p", f"{words} @{picture}"]
            ),
            go_on=lambda model, words: ["qwen", "-c", "--auth-type", "openai", "-m", model, "--yolo", "-p", words],
            reads=lambda picture: ("read_file", {"file_path": picture}),
            seeing="some-model",
            blind="deepseek-v4-pro",
            environment={"OPENAI_API_KEY": "sk-test", "QWEN_TELEMETRY_ENABLED": "0"},
            files={".qwen/settings.json": json.dumps({"model": {"generationConfig": {"modalities": {"image": True}}}})},
            direct={"OPENAI_BASE_URL": "{url}/v1"},
        ),
        Agent(
            "pi",
            ask=lambda model, words: ["pi", "--model", f"lab/{model}", "-p", words],
            attach=lambda model, words, picture: ["pi", "--model", f"lab/{model}", "-p", f"@{picture}", words],
            go_on=lambda model, words: ["pi", "-c", "--model", f"lab/{model}", "-p", words],
            reads=lambda picture: ("read", {"path": picture}),
            seeing="some-model",
            blind="deepseek-v4-pro",
            environment={"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"},
            files={".pi/agent/models.json": json.dumps({"providers": {"lab": _LAB}})},
        ),
        Agent(
            "copilot",
            ask=lambda model, words: copilot(f"lab/{model}", "-p", words),
            attach=lambda model, words, picture: copilot(f"lab/{model}", "--attachment", picture, "-p", words),
            go_on=lambda model, words: copilot(f"lab/{model}", "--continue", "-p", words),
            reads=lambda picture: ("view", {"path": picture}),
            seeing="some-model",
            blind="deepseek-v4-pro",
            environment={"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"},
            files={".copilot/providers.json": json.dumps(_COPILOT)},
        ),
    )
}

# A conversation that it resumes holds each result of a tool twice, which no provider takes: it reads, or it goes on.
GEMINI = Agent(
    "gemini",
    ask=lambda model, words: gemini(model, "-p", words),
    attach=lambda model, words, picture: gemini(model, "-p", f"{words} @{picture}"),
    go_on=lambda model, words: gemini(model, "--resume", "latest", "-p", words),
    reads=lambda picture: ("read_file", {"file_path": picture}),
    seeing="gemini-3.8-flash",
    blind="deepseek-v4-pro",
    environment={"GEMINI_API_KEY": "sk-test", "GEMINI_CLI_NO_RELAUNCH": "true", "NO_BROWSER": "1"},
    files={".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})},
)
READING: Mapping[str, Agent] = {**AGENTS, GEMINI.name: GEMINI}


def through(command: Command, upstream: str = "scripted") -> Command:
    """The same command behind a proxy of its own."""
    return ["sightline", "run", "--upstream", upstream, "--", *command]


def pointed(agent: Agent, command: Command) -> Command:
    """The same command at the provider itself."""
    return [command[0], *agent.straight, *command[1:]]


def at_home(agent: Agent, home: Path, **facts: str) -> dict[Path, str]:
    """The agent's own files, and settings of Sightline that name the scripted provider and say what is known of it."""
    ours = {"upstreams": {"scripted": {"baseUrl": "{url}", **facts}}}
    files = {home / name: text for name, text in agent.files.items()}
    return {**files, home / "sightline" / "vision-proxy.json": json.dumps(ours)}
