"""CPU per request of the proxy beside nginx pass-through and the LiteLLM proxy, in interleaved rounds."""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import bodies
import meter
import peers
import report

HERE = Path(__file__).resolve().parent
STREAM_CHUNKS = 202  # what the sink sends: 200 words, the finish, and [DONE]
FRESH = 6  # bodies with images never seen before, for each round


@dataclass(frozen=True)
class Case:
    """One load. LiteLLM gets fewer small requests, since each takes it a hundred times as long."""

    size: str
    connections: int
    count: int
    count_litellm: int
    at_most: float | None
    at_least: float
    needs_gb: float = 2

    @property
    def name(self) -> str:
        plural = "s" if self.connections > 1 else ""
        return f"CPU ms per request, {self.size}, {self.connections} connection{plural}"

    def count_for(self, peer: peers.Peer) -> int:
        return self.count_litellm if peer.name == "litellm" else self.count


CASES = (
    Case("2 KB", 1, 2000, 60, at_most=6, at_least=20),
    Case("2 KB", 64, 5000, 192, at_most=None, at_least=20),
    Case("5 MB", 1, 40, 8, at_most=6, at_least=5),
    Case("5 MB", 64, 128, 64, at_most=None, at_least=5),
    Case("20 MB", 1, 12, 4, at_most=6, at_least=5),
    Case("20 MB", 64, 64, 64, at_most=None, at_least=5, needs_gb=12),
)
FLOOD = Case("20 MB", 16, 16, 16, at_most=None, at_least=5)


@dataclass
class Samples:
    """What the rounds measured, by figure and peer."""

    taken: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    identical: dict[str, bool] = field(default_factory=dict)

    def add(self, figure: str, peer: str, value: float) -> None:
        self.taken[figure][peer].append(value)

    def medians(self, figure: str) -> dict[str, float]:
        return {peer: statistics.median(values) for peer, values in self.taken[figure].items()}


@dataclass(frozen=True)
class Loaded:
    """What one run of the load generator cost the peer and saw."""

    cpu: float
    seconds: float
    first_ms: float
    sha256: tuple[str, ...]


def _load(peer: peers.Peer, files: Iterable[Path], connections: int, count: int) -> Loaded:
    command = [sys.executable, str(HERE / "load.py"), str(peer.port), *map(str, files)]
    before = meter.cpu_seconds(peer.pid)
    done = subprocess.run(
        [*command, "--connections", str(connections), "--count", str(count)],
        capture_output=True,
        text=True,
        check=False,
    )
    cpu = meter.cpu_seconds(peer.pid) - before
    if done.returncode:
        raise SystemExit(f"bench: {peer.name}: {done.stderr.strip().splitlines()[-1]}")
    seen = json.loads(done.stdout)
    return Loaded(cpu, seen["seconds"], seen["first_ms"], tuple(seen["sha256"]))


def _write_bodies(folder: Path) -> dict[str, Path]:
    made: dict[str, Callable[[], bytes]] = {
        "2 KB": bodies.text_body,
        "5 MB": lambda: bodies.image_body(5, seed=5),
        "20 MB": lambda: bodies.image_body(20, seed=20),
        "stream": lambda: bodies.text_body(stream=True),
    }
    return {name: _write(folder / name, make()) for name, make in made.items()}


def _write(path: Path, body: bytes) -> Path:
    path.write_bytes(body)
    return path


def _settle(rivals: list[peers.Peer], sink: peers.Peer, files: dict[str, Path], samples: Samples) -> None:
    """Memory at rest, a first request of every kind, the bytes of a stream, memory under 16 × 20 MB."""
    direct = _load(sink, [files["stream"]], 1, 1).sha256
    for peer in rivals:
        samples.add("memory at rest, MB", peer.name, meter.resident_mb(peer.pid))
        for size in ("2 KB", "5 MB", "20 MB"):
            _load(peer, [files[size]], 1, 3)
        samples.identical[peer.name] = _load(peer, [files["stream"]], 1, 1).sha256 == direct
        _load(peer, [files[FLOOD.size]], FLOOD.connections, FLOOD.count)
        samples.add("memory peak with 16 × 20 MB in flight, MB", peer.name, meter.peak_mb(peer.pid))


def _cases(rivals: list[peers.Peer], sink: peers.Peer, files: dict[str, Path], samples: Samples) -> None:
    direct = _load(sink, [files["2 KB"]], 1, 1000)
    for case in CASES:
        if meter.available_gb() < case.needs_gb:
            print(f"bench: left out, needs {case.needs_gb:g} GB: {case.name}", file=sys.stderr)
            continue
        for peer in rivals:
            count = case.count_for(peer)
            loaded = _load(peer, [files[case.size]], case.connections, count)
            samples.add(case.name, peer.name, loaded.cpu / count * 1000)
            if case.size == "2 KB" and case.connections == 1:
                samples.add("first byte added, 2 KB, ms", peer.name, loaded.first_ms - direct.first_ms)
            if case.size == "2 KB" and case.connections == 64:
                samples.add("requests per second, 2 KB, 64 connections", peer.name, count / loaded.seconds)


def _round(number: int, rivals: list[peers.Peer], sink: peers.Peer, files: dict[str, Path], samples: Samples) -> None:
    _cases(rivals, sink, files, samples)
    for peer in rivals:
        streamed = _load(peer, [files["stream"]], 1, 2)
        samples.add("CPU µs per streamed chunk", peer.name, streamed.cpu / 2 / STREAM_CHUNKS * 1e6)
    folder = files["5 MB"].parent
    new = [_write(folder / f"new {i}", bodies.image_body(5, seed=1000 + number * FRESH + i)) for i in range(FRESH)]
    for peer in rivals:
        loaded = _load(peer, new, 1, FRESH)
        samples.add("CPU ms per request, 5 MB of images never seen before", peer.name, loaded.cpu / FRESH * 1000)


def _figures(samples: Samples) -> list[report.Figure]:
    targets = {case.name: (case.at_most, case.at_least) for case in CASES}
    measured = [name for name in samples.taken if name not in targets]
    ordered = [
        *(name for name in targets if name in samples.taken),
        *sorted(measured, key=lambda name: not name.startswith("CPU")),
    ]
    return [report.Figure(name, samples.medians(name), *targets.get(name, (None, None))) for name in ordered]


def _machine() -> str:
    model = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    return f"{os.cpu_count()} cores, {model.partition(': ')[2] or platform.machine()}"


def run(rounds: int, names: list[str], out: Path) -> None:
    """Start the peers, measure, print the table and write it beside the figures."""
    samples = Samples()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sightline-bench-")))
        files = _write_bodies(folder)
        sink = peers.sink(stack, folder)
        rivals = [peers.PEERS[name](stack, folder, sink.port) for name in names]
        _settle(rivals, sink, files, samples)
        for number in range(rounds):
            print(f"bench: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            _round(number, rivals, sink, files, samples)
    versions = {peer.name: peer.version for peer in rivals}
    text = report.table(_figures(samples), report.Identity(samples.identical), versions)
    print(f"\n{text}")
    _publish(out, text, samples, versions, rounds)
    for name in report.missed(text):
        print(f"MISSED: {name}")


def _publish(out: Path, text: str, samples: Samples, versions: dict[str, str], rounds: int) -> None:
    figures = {name: {"median": samples.medians(name), "rounds": taken} for name, taken in samples.taken.items()}
    facts = {
        "machine": _machine(),
        "python": platform.python_version(),
        "rounds": rounds,
        "versions": versions,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**facts, "streamIdentical": samples.identical, "figures": figures}, indent=2) + "\n")
    intro = f"Median of {rounds} interleaved rounds, Python {platform.python_version()}, {_machine()}.\n"
    out.with_suffix(".md").write_text(f"<!-- Generated by bench/run.py. -->\n{intro}\n{text}")
