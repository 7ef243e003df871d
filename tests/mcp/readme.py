"""The lines for MCP hosts as docs/mcp.md has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")
_BLOCK = re.compile(r"^\*\*(.+?)\*\*(?:, in `(.+?)`)?\n\n```(\w+)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    file: str  # empty for a shell command
    language: str
    text: str


def blocks() -> Mapping[str, Block]:
    section = _PAGE.partition("## Hosts\n")[2].partition("\n## ")[0]
    return {host: Block(file, language, text) for host, file, language, text in _BLOCK.findall(section)}
