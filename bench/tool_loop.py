"""What the tools that the proxy offers cost in conversations that never call them: CPU per request."""

import json
import statistics
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import load
import meter
import peers
import report

BLIND = json.dumps({"gpt-6-sol": {"vision": False}})
COUNT, STREAMS = 400, 60  # requests of one measurement, and streams
WARM_UP = 16
TARGETS = {"2 KB": 0.015}  # milliseconds that our tools may add
SIZES = {"2 KB": 1, "20 KB": 20, "200 KB": 250}  # by turns


def build_body(turns: int, *, stream: bool) -> bytes:
    """Return a conversation with tools, as an agent sends it."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": f"tool{n}", "parameters": schema}} for n in range(5)]
    said = [{"role": ("user", "assistant")[n % 2], "content": "What somebody said. " * 20} for n in range(2 * turns)]
    whole = {
        "model": "gpt-6-sol",
        "stream": stream,
        "tools": tools,
        "messages": [*said, {"role": "user", "content": "?"}],
    }
    return json.dumps(whole, separators=(",", ":")).encode()


def run(rounds: int, file: Path) -> None:
    taken: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack, TemporaryDirectory() as folder:
        sink = peers.start_scripted_upstream(stack, Path(folder))
        upstream = peers.Upstream(sink.port)
        proxies = {}
        for tool in ("off", "auto"):
            here = Path(folder) / tool
            here.mkdir()
            proxies[tool] = peers.start_sightline(
                stack, here, upstream, env={"SIGHTLINE_MODELS": BLIND, "SIGHTLINE_TOOL": tool}
            )
        for name, turns in SIZES.items():
            for stream in (False, True) if turns < 100 else (False,):
                asked = build_body(turns, stream=stream)
                row = taken.setdefault(f"{name}{', streamed' if stream else ''}", {tool: [] for tool in proxies})
                for proxy in proxies.values():
                    measure_cpu(proxy, asked, WARM_UP)
                for _ in range(rounds):
                    for tool, proxy in proxies.items():
                        row[tool].append(measure_cpu(proxy, asked, STREAMS if stream else COUNT))
    figures = {name: {tool: statistics.median(values) for tool, values in row.items()} for name, row in taken.items()}
    file.parent.mkdir(parents=True, exist_ok=True)
    facts = {"rounds": rounds, "machine": report.describe_machine(), "figures": figures}
    file.write_text(json.dumps(facts, indent=2) + "\n")
    table = "\n".join(
        ["| conversation | without our tools | with them | ratio | added | target |", "|---|---|---|---|---|---|"]
        + [_write_row(name, row["off"], row["auto"]) for name, row in figures.items()]
    )
    file.with_suffix(".md").write_text(report.write_introduction(rounds) + table + "\n")
    print(table)


def _write_row(name: str, without: float, with_tools: float) -> str:
    added, target = with_tools - without, TARGETS.get(name)
    judged = "–" if target is None else f"≤ {target:g} ms: {'met' if added <= target else 'MISSED'}"
    figures = f"{without:.3f} ms | {with_tools:.3f} ms | {with_tools / without:.2f}× | {added:+.3f} ms"
    return f"| {name} | {figures} | {judged} |"


def measure_cpu(proxy: peers.Peer, asked: bytes, count: int) -> float:
    """Milliseconds of CPU for a request."""
    before = meter.read_cpu_seconds(proxy.pid)
    load.drive(proxy.port, [load.build_request(proxy.port, "/v1/chat/completions", [], asked)], 8, count)
    return (meter.read_cpu_seconds(proxy.pid) - before) / count * 1000
