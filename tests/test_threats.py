"""The threat model is tested: every threat names tests of its defence, and these tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import requirement

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "THREAT_MODEL.md").read_text("utf-8")
DOORS = (
    "The proxy",
    "The inspector",
    "The relay",
    "Images",
    "Files",
    "The tools",
    "The MCP server",
    "The web reader",
    "Seers",
    "The record",
    "Settings and commands",
)
HEADER = ["threat", "defence", "tests"]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@cache
def named_in(path: str) -> frozenset[str]:
    file = ROOT / path
    tree = ast.parse(file.read_text("utf-8")) if file.is_file() else ast.Module([], [])
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def rows_of(door: str) -> list[list[str]]:
    section = PAGE.split(f"\n## {door}\n", 1)[1].split("\n## ", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]


def test_the_page_lists_every_surface() -> None:
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == [*DOORS, "Known limits"]


@requirement("threats")
@pytest.mark.parametrize("door", DOORS)
def test_every_threat_names_existing_tests(door: str) -> None:
    header, _, *rows = rows_of(door)
    assert header == HEADER
    for threat, _, shown in rows:
        assert TEST.findall(shown), f"no test: {threat}"
        assert not TEST.sub("", shown).strip(", "), f"not a test: {shown}"


@requirement("threats")
def test_the_tests_that_the_page_names_exist() -> None:
    named = TEST.findall(PAGE)
    assert len(named) > 300
    assert [(path, name) for path, name in named if not name.startswith("test_") or name not in named_in(path)] == []


def test_a_missing_test_is_noticed() -> None:
    assert "test_that_nobody_wrote" not in named_in("tests/test_threats.py")
    assert named_in("tests/absent.py") == frozenset()
