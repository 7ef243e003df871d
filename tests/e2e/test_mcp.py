"""Sightline's MCP server in real hosts: they load it, and the picture that it shows reaches the model's request."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import AGENTS, Command, pointed
from tests.e2e.conftest import Play
from tests.e2e.drive import Outcome
from tests.e2e.test_acp import AGENTS as EDITED
from tests.e2e.test_acp import SIGN
from tests.mcp.readme import blocks
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_lines, paint_quadrants, some_colours

COLOURS = some_colours(seed=21)
SHOWN = {"path": "shapes.png"}
WORDS = "Show me shapes.png with view_image and name its four quadrants"
_QUIET = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
_LAB = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "{url}/v1", "apiKey": "sk-test"},
    "models": {"some-model": {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}},
}


@dataclass(frozen=True, slots=True)
class Host:
    """A host as its user sets it up and starts it."""

    title: str  # of its lines in the README
    ask: Callable[[str], Command]
    calls: Sequence[tuple[str, dict[str, Any]]]  # of view_image, as its model makes them, one after the other
    environment: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    first: Sequence[Command] = ()  # what it has to be told before it answers anything


def _known(name: str) -> Mapping[str, str]:
    agent = AGENTS[name]
    return {**agent.environment, **agent.direct}


HOSTS: Mapping[str, Host] = {
    "claude": Host(
        "Claude Code",
        lambda words: ["claude", "--model", "some-model", "--allowedTools", "mcp__sightline", "-p", words],
        [("mcp__sightline__view_image", SHOWN)],
        {**_known("claude"), "ENABLE_TOOL_SEARCH": "false", "MCP_CONNECTION_NONBLOCKING": "false"},
    ),
    "codex": Host(
        "Codex",
        lambda words: pointed(AGENTS["codex"], AGENTS["codex"].ask("some-model", words)),
        [("mcp__sightline.view_image", SHOWN)],
        _known("codex"),
    ),
    "qwen": Host(
        "Qwen Code",
        lambda words: AGENTS["qwen"].ask("some-model", words),
        [
            ("tool_search", {"query": "select:mcp__sightline__view_image"}),
            ("tool_call", {"name": "mcp__sightline__view_image", "arguments": SHOWN}),
        ],
        _known("qwen"),
        AGENTS["qwen"].files,
    ),
    "opencode": Host(
        "opencode",
        lambda words: ["opencode", "run", "-m", "lab/some-model", words],
        [("sightline_view_image", SHOWN)],
        {f"OPENCODE_DISABLE_{what}": "1" for what in _QUIET},
        {".config/opencode/opencode.json": json.dumps({"provider": {"lab": _LAB}, "small_model": "lab/some-model"})},
    ),
    "gemini": Host(
        "Gemini CLI",
        lambda words: ["gemini", "--skip-trust", "--yolo", "-m", "gemini-3.8-flash", "-p", words],
        [("mcp_sightline_view_image", SHOWN)],
        EDITED["gemini"].environment,
        EDITED["gemini"].files,
    ),
    "copilot": Host(
        "Copilot CLI",
        lambda words: AGENTS["copilot"].ask("some-model", words),
        [("sightline-view_image", SHOWN)],
        _known("copilot"),
        AGENTS["copilot"].files,
    ),
}
# Its model gets a tool's result as the text of its JSON, which is no way for a picture.
CLINE = Host(
    "Cline",
    lambda words: ["cline", words],
    [
        ("sightline__view_image", {"path": "sign.png"}),
        ("sightline__analyze_image", {"images": ["sign.png"], "question": "What does the sign say?"}),
    ],
    {"CLINE_SESSION_BACKEND_MODE": "local"},  # or a daemon stays when it has answered
    first=[shlex.split("cline auth -p openai -k sk-test -m some-model -b {url}/v1")],
)


def told(host: Host, play: Play, home: Path) -> Outcome:
    """What comes of it when a user does as the README says and asks."""
    block = blocks()[host.title]
    written = {home / block.file.removeprefix("~/"): block.text} if block.file else {}
    outcome = play(
        *([] if block.file else [shlex.split(block.text)]),
        *host.first,
        host.ask(WORDS),
        provider="seeing",
        script=[[call] for call in host.calls],
        files={**{home / file: text for file, text in host.files.items()}, **written},
        environment=dict(host.environment),
    )
    assert all(end.code == 0 for end in outcome.ends), outcome.ends
    return outcome


@requirement("mcp.e2e")
@pytest.mark.parametrize("name", HOSTS)
def test_the_image_of_view_image_reaches_the_model(name: str, play: Play, home: Path, tmp_path: Path) -> None:
    (tmp_path / "project" / "shapes.png").write_bytes(paint_quadrants(COLOURS))
    outcome = told(HOSTS[name], play, home)
    assert describe_quadrants(COLOURS) in outcome.last.stdout, (outcome.last, outcome.requests)
    assert any(request.pictures for request in outcome.requests)


@requirement("mcp.e2e")
def test_cline_gives_its_model_text_instead_of_an_image(play: Play, home: Path, tmp_path: Path) -> None:
    picture = paint_lines([SIGN], scale=4)
    (tmp_path / "project" / "sign.png").write_bytes(picture)
    outcome = told(CLINE, play, home)
    looked, answered = outcome.requests[-2:]
    assert "ask analyze_image about it" in looked.body, looked.body[-2000:]
    assert SIGN not in looked.body
    assert SIGN in answered.body, answered.body[-2000:]
    start = base64.b64encode(picture)[:40].decode()
    assert not any(request.pictures or start in request.body for request in outcome.requests)
