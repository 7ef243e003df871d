"""The architecture page lists the steps of one request: a traced request calls these functions in that order."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.requirements import requirement

ROOT = Path(__file__).parent.parent
_STEP = re.compile(r"^(\d+)\. `([\w/]+\.py:[\w.]+)`", re.MULTILINE)


def read_steps() -> list[tuple[int, str]]:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    walk = page.partition("## How one request is handled")[2].partition("\n## ")[0]
    return [(int(number), name) for number, name in _STEP.findall(walk)]


@requirement("docs.walk")
def test_the_walk_has_at_most_twenty_numbered_steps() -> None:
    steps = read_steps()
    assert [number for number, _ in steps] == list(range(1, len(steps) + 1))
    assert 10 <= len(steps) <= 20


@requirement("docs.walk")
def test_a_request_calls_the_functions_of_the_walk_in_order() -> None:
    command = [sys.executable, "scripts/trace", "--json", "request"]
    traced = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    called: list[str] = json.loads(traced.stdout)["request"]
    walk = [name for _, name in read_steps()]
    assert [name for name in walk if name not in called] == []
    assert [name for name in called if name in walk] == walk
