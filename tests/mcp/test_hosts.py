"""The README's lines for MCP hosts: each starts the server, read as its host reads it."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client import Client

from sightline.cli.agents import AGENTS
from tests.cli.command import ALONE, environment, sightline
from tests.mcp.readme import Block, blocks
from tests.requirements import requirement

BLOCKS = blocks()
_FILES: Mapping[str, str] = {
    "Codex": "mcp_servers",
    "Cursor": "mcpServers",
    "VS Code": "servers",
    "Zed": "context_servers",
}
_TYPED: Mapping[str, str] = {  # what stands before the command to start
    "Claude Code": "claude mcp add --scope user sightline --",
    "Qwen Code": "qwen mcp add -s user sightline",
    "opencode": "opencode mcp add sightline --",
    "Gemini CLI": "gemini mcp add -s user sightline",
    "Copilot CLI": "copilot mcp add sightline --",
    "Cline": "cline mcp add --yes sightline --",
}
_READ: Mapping[str, Callable[[str], Any]] = {"toml": tomllib.loads, "json": json.loads}


def started(host: str, block: Block) -> list[str]:
    """The command that a host makes of its block."""
    if not block.file:
        assert block.text.startswith(_TYPED[host] + " ")
        return shlex.split(block.text.removeprefix(_TYPED[host]))
    server = _READ[block.language](block.text)[_FILES[host]]["sightline"]
    return [server["command"], *server["args"]]


@requirement("mcp.hosts")
def test_there_is_a_block_for_each_host() -> None:
    assert BLOCKS.keys() == _FILES.keys() | _TYPED.keys()
    prose = re.sub(r"\s+", " ", (Path(__file__).parents[2] / "README.md").read_text("utf-8"))
    assert "MCP is the usual road to `analyze_image` for agents that take MCP" in prose


@requirement("mcp.hosts")
def test_setup_shows_the_same_lines() -> None:
    shown = {agent.title: agent.mcp for agent in AGENTS.values() if agent.mcp}
    assert shown.pop("Codex") == "codex mcp add sightline -- sightline mcp"
    assert {title.removesuffix(" CLI") for title in shown} == {title.removesuffix(" CLI") for title in _TYPED}
    assert set(shown.values()) == {BLOCKS[title].text for title in _TYPED}
    assert "claude mcp add --scope user sightline -- sightline mcp" in sightline("setup", "claude").out


@requirement("mcp.hosts")
@pytest.mark.parametrize("host", BLOCKS)
async def test_what_a_host_starts_is_the_server(host: str, folder: Path) -> None:
    command, *words = started(host, BLOCKS[host])
    installed = Path(sys.executable).with_name(command)  # as it stands on the user's path
    server = StdioServerParameters(command=str(installed), args=words, env=environment(**ALONE), cwd=folder)
    async with Client(server, mode="legacy") as client:
        assert (await client.list_tools()).tools[0].name == "view_image"
