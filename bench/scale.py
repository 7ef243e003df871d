"""What a shared record costs a request, and what more workers and replicas serve, on loopback."""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import bodies

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from soak import DISK, SERVERS, render_table  # noqa: E402

from tests.cli.command import ALONE  # noqa: E402
from tests.e2e.shared_servers import Servers, run_servers  # noqa: E402

BENCH, PAGE = Path(__file__).resolve().parent, ROOT / "docs" / "scale.md"
WORKERS, REPLICAS = (1, 2, 4), (1, 2, 3)
COUNT, NEW, CONNECTIONS, EDGE = 2000, 200, 16, 128
BEGIN, END = "## Measured\n", "## On paper"
SECTION = """## Measured

Written by `bench/run.py scale`. Machine: {machine}.

The load, the upstream and the servers of the record share its cores, so more workers than cores serve no more. Each
request has an image of {kilobytes} KB that a text-only model gets as words. A known image was described before; for a
new one, the upstream is also asked for the description, which it gives at once.

Milliseconds until the answer begins, one request at a time, median and 99th percentile:

{latency}

Requests with known images per second, {connections} at a time, by workers of one proxy:

{workers}

By replicas of one worker, on PostgreSQL and S3, {connections} at a time for each:

{replicas}

"""


def run(file: Path, *, quick: bool = False) -> None:
    """Measure, and write the figures and their section of the page."""
    result: dict[str, Any] = {"machine": platform.platform(), "cores": os.cpu_count(), "short": quick}
    with run_servers(durable=True) as servers, tempfile.TemporaryDirectory() as name, _run_upstream() as upstream:
        bench = _Bench(servers, Path(name), upstream, 10 if quick else 1)
        result["latency"] = {engine: bench.measure_latency(engine) for engine in (DISK, SERVERS)}
        result["workers"] = {
            engine: {str(count): bench.measure_workers(engine, count) for count in WORKERS}
            for engine in (DISK, SERVERS)
        }
        result["replicas"] = {str(count): bench.measure_replicas(count) for count in REPLICAS}
    file.write_text(json.dumps(result, indent=1) + "\n")
    print(publish(file, result))


def publish(file: Path, result: Mapping[str, Any]) -> str:
    """Write the table beside the figures, and the section of the page."""
    section = _render(result)
    file.with_suffix(".md").write_text(section.rstrip() + "\n")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + section + END + rest.partition(END)[2])
    return section


class _Bench:
    def __init__(self, servers: Servers, folder: Path, upstream: str, fewer: int) -> None:
        self._servers, self._folder, self._upstream, self._fewer = servers, folder, upstream, fewer
        self._records = 0
        self._known = self._write_bodies("known", [0])

    def measure_latency(self, engine: str) -> dict[str, list[float]]:
        new = self._write_bodies("new", range(1, NEW // self._fewer + 1))
        with self._serve(engine) as port:
            self._load(port, self._known, 1, 5)
            known = self._load(port, self._known, 1, COUNT // 4 // self._fewer)
            fresh = self._load(port, new, 1, len(new))
        found = {"known image": known, "new image": fresh}
        return {name: [round(each["first_ms"], 2), round(each["p99_ms"], 2)] for name, each in found.items()}

    def measure_workers(self, engine: str, workers: int) -> int:
        with self._serve(engine, workers) as port:
            return self._measure_rate([port], 5 * workers)

    def measure_replicas(self, count: int) -> int:
        self._records += 1
        with ExitStack() as stack:
            return self._measure_rate([stack.enter_context(self._serve(SERVERS, new=False)) for _ in range(count)], 5)

    def _measure_rate(self, ports: Sequence[int], warm: int) -> int:
        count = COUNT // self._fewer
        for port in ports:
            self._load(port, self._known, CONNECTIONS, warm * CONNECTIONS)
        with ThreadPoolExecutor(len(ports)) as threads:
            found = list(threads.map(lambda port: self._load(port, self._known, CONNECTIONS, count), ports))
        return round(len(ports) * count / max(each["seconds"] for each in found))

    @contextmanager
    def _serve(self, engine: str, workers: int = 1, *, new: bool = True) -> Iterator[int]:
        self._records += new
        models = {bodies.MODEL: {"vision": False}, "sees/eye": {"vision": True}}
        upstreams = {
            **json.loads(ALONE["SIGHTLINE_UPSTREAMS"]),
            "sees": {"baseUrl": f"{self._upstream}/v1", "apiKey": "sk"},
        }
        home = self._folder / f"home-{engine[:1]}{self._records}"
        environment = {
            **os.environ, **self._servers.s3.environment(), "SIGHTLINE_UPSTREAMS": json.dumps(upstreams),
            "SIGHTLINE_HOME": str(home), "SIGHTLINE_MODEL": "sees/eye", "SIGHTLINE_MODELS": json.dumps(models),
        }  # fmt: skip
        words = ["serve", "--port", "0", "--workers", str(workers), "--upstream", f"openai={self._upstream}"]
        if engine == SERVERS:
            address = self._servers.address(self._folder / str(self._records))
            words += ["--store", address.store, "--blobs", address.blobs]
        command = [sys.executable, "-m", "sightline", *words]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        ) as process:
            try:
                assert process.stdout
                yield int(process.stdout.readline().rpartition(":")[2])
            finally:
                process.terminate()

    def _load(self, port: int, files: Sequence[Path], connections: int, count: int) -> dict[str, float]:
        command = [sys.executable, BENCH / "load.py", str(port), *files]
        flags = ["--connections", str(connections), "--count", str(count)]
        done = subprocess.run([*command, *flags], stdout=subprocess.PIPE, check=True)
        found: dict[str, float] = json.loads(done.stdout)
        return found

    def _write_bodies(self, name: str, seeds: Sequence[int]) -> list[Path]:
        paths = [self._folder / f"{name}-{seed}.json" for seed in seeds]
        for path, seed in zip(paths, seeds, strict=True):
            path.write_bytes(bodies.build_image_body(1, seed, EDGE))
        return paths


@contextmanager
def _run_upstream() -> Iterator[str]:
    command = [sys.executable, BENCH / "scripted_upstream.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def _render(result: Mapping[str, Any]) -> str:
    short = ", a short run beside other work" if result["short"] else ""
    latency, workers, replicas = result["latency"], result["workers"], result["replicas"]
    rows = {
        name: [f"{one[name][0]} ({one[name][1]})" for one in latency.values()]
        + [f"{latency[SERVERS][name][0] / latency[DISK][name][0]:.2f}"]
        for name in latency[DISK]
    }
    return SECTION.format(
        machine=f"{result['machine']}, {result['cores']} cores{short}",
        kilobytes=EDGE * EDGE * 3 // 1000,
        latency=render_table("request with", [*latency, "ratio"], rows),
        workers=render_table("workers", [*map(str, WORKERS)], {name: [*one.values()] for name, one in workers.items()}),
        replicas=render_table("replicas", [*map(str, REPLICAS)], {"requests per second": [*replicas.values()]}),
        connections=CONNECTIONS,
    )
