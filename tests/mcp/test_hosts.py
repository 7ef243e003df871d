"""The lines for MCP hosts in docs/mcp.md: each starts the server, read as its host reads it."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters
from mcp.client import Client

from sightline.agents import AGENTS
from tests.cli.command import ALONE, environment, sightline
from tests.mcp.readme import Block, blocks
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
BLOCKS = blocks()
_FILES: Mapping[str, str] = {
    "Codex": "mcp_servers",
    "Cline": "mcpServers",
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
}
_RUN: Mapping[str, str] = {  # by the packages that are pinned for it
    "Claude Code": "@anthropic-ai/claude-code",
    "Codex": "@openai/codex",
    "Qwen Code": "@qwen-code/qwen-code",
    "opencode": "opencode-ai",
    "Gemini CLI": "@google/gemini-cli",
    "Copilot CLI": "@github/copilot",
    "Cline": "@cline/cli-linux-x64",
}
_READ: Mapping[str, Callable[[str], Any]] = {"toml": tomllib.loads, "json": json.loads}


def started(host: str, block: Block) -> list[str]:
    """Return the command that a host makes of its block."""
    if not block.file:
        assert block.text.startswith(_TYPED[host] + " ")
        return shlex.split(block.text.removeprefix(_TYPED[host]))
    server = _READ[block.language](block.text)[_FILES[host]]["sightline"]
    return [server["command"], *server["args"]]


def _pinned(folder: str) -> Any:
    return json.loads((ROOT / "tests" / "e2e" / folder / "package.json").read_text("utf-8"))


def _said(block: Block) -> str:
    return f"in {block.file}:\n{block.text}" if block.file else block.text


@requirement("mcp.hosts")
def test_each_host_has_a_block() -> None:
    assert BLOCKS.keys() == _FILES.keys() | _TYPED.keys()
    assert "(docs/mcp.md#hosts)" in (ROOT / "README.md").read_text("utf-8")


@requirement("mcp.e2e")
def test_the_page_has_the_tested_version_of_each_host() -> None:
    pinned = _pinned("env")
    versions = {**pinned["dependencies"], **pinned["optionalDependencies"]}
    code = _pinned("vscode")["dependencies"]["code-server"].replace("4.", "1.", 1)  # numbered after VS Code's
    page = (ROOT / "docs" / "mcp.md").read_text("utf-8").partition("\n## Hosts\n")[2]
    rows = dict(re.findall(r"^\| ([^|]+) \| (–|[\d.]+) \|", page, re.MULTILINE))
    assert rows.keys() == BLOCKS.keys()
    assert {host: version for host, version in rows.items() if version != "–"} == {
        **{host: versions[package] for host, package in _RUN.items()},
        "VS Code": code,
    }


@requirement("mcp.hosts")
def test_setup_shows_the_same_lines() -> None:
    shown = {agent.title.removesuffix(" CLI"): agent.mcp for agent in AGENTS.values() if agent.mcp}
    told = {title.removesuffix(" CLI"): _said(block) for title, block in BLOCKS.items()}
    assert told.keys() - shown.keys() == {"Cursor", "VS Code", "Zed"}, "editors, which nothing points at the proxy"
    assert shown == {title: told[title] for title in shown}
    assert "claude mcp add --scope user sightline -- sightline mcp" in sightline("setup", "claude").out


@requirement("mcp.hosts")
async def test_the_command_of_each_host_starts_the_server(folder: Path) -> None:
    for command, *words in {tuple(started(host, block)) for host, block in BLOCKS.items()}:
        installed = Path(sys.executable).with_name(command)  # as it stands on the user's path
        server = StdioServerParameters(command=str(installed), args=words, env=environment(**ALONE), cwd=folder)
        async with Client(server, mode="legacy") as client:
            assert (await client.list_tools()).tools[0].name == "view_image"
