"""What the MCP server costs: CPU until it answers `initialize`, until its tools are listed, and for each view."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import report
from meter import read_cpu_seconds, read_resident_mb

SHOT = Path(__file__).resolve().parent.parent / "demo" / "screenshot.png"
VIEWS = 50
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}
TARGETS = {"initialize": 0.3}
ROWS = {
    "initialize": ("CPU until `initialize` is answered", "s"),
    "sdk": ("… by a server of the SDK without any tools", "s"),
    "listed": ("CPU until the tools are listed", "s"),
    "view": ("CPU for a `view_image` of 32 KB", "ms"),
    "memory": ("memory after that, workers included", "MB"),
}
SDK_SERVER = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def serve():
    server = Server("bare")
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(serve)
"""


def run(rounds: int, file: Path) -> None:
    each = [_measure_round() for _ in range(rounds)]
    figures = {name: statistics.median(one[name] for one in each) for name in ROWS}
    file.parent.mkdir(parents=True, exist_ok=True)
    facts = {"rounds": rounds, "machine": report.describe_machine(), **figures}
    file.write_text(json.dumps(facts, indent=1) + "\n")
    table = "\n".join(
        ["| | Sightline | target |", "|---|---|---|", *(_write_row(name, figures[name]) for name in ROWS)]
    )
    file.with_suffix(".md").write_text(report.write_introduction(rounds) + table + "\n")
    print(table)


def _write_row(name: str, value: float) -> str:
    words, unit = ROWS[name]
    target = TARGETS.get(name)
    judged = "–" if target is None else f"≤ {target:g} {unit}: {'met' if value <= target else 'MISSED'}"
    return f"| {words} | {value:.3g} {unit} | {judged} |"


def _measure_round() -> dict[str, float]:
    """Measure one server from its start to its end."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "SIGHTLINE_HOME": home}
        with subprocess.Popen(
            [sys.executable, "-m", "sightline", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=SHOT.parent,
        ) as server:
            _ask(server, "initialize", HELLO)
            figures = {"initialize": read_cpu_seconds(server.pid)}
            _ask(server, "tools/list", {})
            figures["listed"] = read_cpu_seconds(server.pid)
            call = {"name": "view_image", "arguments": {"path": SHOT.name}}
            _ask(server, "tools/call", call)
            before = read_cpu_seconds(server.pid)
            for _ in range(VIEWS):
                _ask(server, "tools/call", call)
            figures["view"] = (read_cpu_seconds(server.pid) - before) / VIEWS * 1000
            figures["memory"] = read_resident_mb(server.pid)
            assert server.stdin is not None
            server.stdin.close()
    return {**figures, "sdk": _measure_sdk()}


def measure_start(options: list[str], environment: dict[str, str], errors: IO[str]) -> float:
    """Return the seconds that pass until `initialize` is answered, by an interpreter with these options."""
    command, start = [sys.executable, *options, "-m", "sightline", "mcp"], time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
    ) as server:
        _ask(server, "initialize", HELLO)
        seconds = time.perf_counter() - start
        assert server.stdin is not None
        server.stdin.close()
    return seconds


def _measure_sdk() -> float:
    """Return what the SDK alone takes until `initialize` is answered."""
    with subprocess.Popen([sys.executable, "-c", SDK_SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        _ask(server, "initialize", HELLO)
        seconds = read_cpu_seconds(server.pid)
        assert server.stdin is not None
        server.stdin.close()
    return seconds


def _ask(server: subprocess.Popen[bytes], method: str, params: dict[str, Any]) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
    server.stdin.flush()
    assert "result" in json.loads(server.stdout.readline())
