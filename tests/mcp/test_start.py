"""The start of the server: a handshake imports nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.command import ALONE, environment
from tests.mcp.test_stdio import HELLO
from tests.requirements import requirement

# The command; what it had loaded when it answered goes to stderr.
_TELLING = """
import sys
import mcp.server.runner as runner
handle = runner.ServerRunner._handle_initialize
def telling(self, params):
    print(*sorted(name for name in sys.modules if name.startswith("sightline")), file=sys.stderr)
    return handle(self, params)
runner.ServerRunner._handle_initialize = telling
from sightline.cli.main import main
sys.exit(main(["mcp"]))
"""
FIGURES = Path(__file__).parents[2] / "bench" / "results" / "mcp.json"


@requirement("mcp.start")
def test_a_handshake_imports_nothing_heavy(folder: Path) -> None:
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
    ended = subprocess.run(
        [sys.executable, "-c", _TELLING],
        input=f"{hello}\n",
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(**ALONE),
        check=True,
        timeout=120,
    )
    assert json.loads(ended.stdout)["result"]["protocolVersion"] == "2025-06-18"
    loaded = set(ended.stderr.split())
    assert "sightline.surfaces.mcp.server" in loaded
    later = ("api", "commands", "engine", "pixels", "runtime", "settings", "sources", "store", "vision", "wire")
    assert [name for name in loaded if name.startswith(tuple(f"sightline.{each}" for each in later))] == []


@requirement("mcp.start")
def test_the_last_bench_was_within_its_bound() -> None:
    assert json.loads(FIGURES.read_text("utf-8"))["initialize"] <= 1.2
