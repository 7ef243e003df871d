"""What a shared record costs a request, and what more workers and replicas serve, on loopback."""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import bodies
from meter import read_cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from soak import DISK, SERVERS, render_table  # noqa: E402

from tests.cli.command import ALONE  # noqa: E402
from tests.e2e.shared_servers import Servers, run_servers  # noqa: E402

BENCH, PAGE = Path(__file__).resolve().parent, ROOT / "docs" / "scale.md"
WORKERS, REPLICAS = (1, 2, 4), (1, 2, 3)
ROUNDS, COUNT, NEW, CONNECTIONS, EDGE = 3, 2000, 200, 16, 128
MAX_RATIO = 1.1  # of what a known image costs on servers and on a disk
# The tables whose rows are measured, with copies of one row that differ in these columns.
_KEYS = {"images": ("sha256",), "tellings": ("turn",), "moments": ("name",), "entries": (), "receipts": ()}
TABLES, ROWS = tuple(_KEYS), 5000
_COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema = 'public'"
_VARY = "md5(number::text) || md5((-number)::text)"  # as long as a sha256
# A text-only model's conversation has no visits, since its images never retire.
_VISIT = """INSERT INTO moments (scope, name, cold, bytes, used, asked)
    SELECT max(scope), repeat('a', 64), 0, 256, 1e9, 1e9 FROM images"""
PARTS = ("replicas", "load and upstream", "PostgreSQL and S3")
# On paper: of each developer and day; the bytes of an image; days; worker processes; and dollars a month.
DEVELOPERS, REQUESTS, IMAGES, IMAGE_BYTES, DAYS, PROCESSES = 10_000, 300, 20, 300_000, 30, 40
ROW_DOLLARS, OBJECT_DOLLARS, PUT_DOLLARS, LOOK_DOLLARS = 0.12, 0.023, 0.005 / 1000, 0.0005
MAX_BYTES, MAX_RECEIPTS, OWN_RECEIPTS, POOLED = 1 << 40, 100_000, 1_000, 50
TEMPLATE = """# Scale

How a shared record grows, and what it costs. [The record](record.md#sharing-it-postgresql-and-object-storage) says how to
set one up, and [reliability](reliability.md) has what was tried to make it lose something. This page is written by
`bench/run.py scale`. Machine: {machine}.

## What grows with what

| what | grows with | how much |
|---|---|---|
| rows of `images`, `tellings` | different images per credential, and their descriptions | {image_bytes} bytes for both, with their indexes, for 30 days after the last use |
| rows of `moments` | requests with images for models that see | {moments} bytes each; a conversation of 50 requests has about 50 |
| rows of `entries` | questions to vision models | {entries} bytes each |
| rows of `receipts` | requests with images | {receipts} bytes each, more with the edited places of new messages; the newest 100,000 are kept, and at least 1,000 of each credential |
| objects in S3 | different images | the images' own bytes, once for all credentials |
| connections to PostgreSQL | worker processes | at most 9 each; behind pgbouncer in transaction mode, as many as its pool |
| memory of a replica | images in use | at most 128 MiB of bytes, and 20,000 rows |

A request whose images and conversation a replica knows waits for neither PostgreSQL nor S3: its visit and its receipt are
written with others, twice a second. If the last request of the conversation went to another replica, its visit is one
transaction. If a credential has answers with calls of our own tools, each of its requests with tools reads them. Replicas
are told of its first such call while that runs, and have heard of it after two seconds; if the answer would end sooner, its
end is held back until then. A new image is one object and two transactions more.
Once a second, each worker asks PostgreSQL for one row, to learn of changes; `NOTIFY` makes that sooner where no pooler is
in between.

## What replicas share, and what is each one's own

| shared, in the record | reaches the other replicas |
|---|---|
| images, descriptions, answers with calls of our own tools, visits | with the next request that needs them |
| consents, withdrawals, lessons about models, saved descriptions, what was forgotten | within about a second: each worker asks for one row, `NOTIFY` is only a hint |

Everything else is a setting of the machine: each replica reads its own settings file and environment. A change of the file
takes effect in a running replica within a second, without a restart, and is the business of whatever deploys the file;
variables are read at the start, and so are port, workers, `store` and `blobs`. So policy that must hold for all at once,
whether an image may leave for a provider, is shared; and what may differ between machines, such as upstreams, keys, limits
and the mode, is not. A replica with other settings than the rest serves its requests by its own, and describes images anew
where another model or prompt would.

Replicas can be updated one by one. A newer version adds to the schema when it starts; older replicas go on and say once
that they are outdated, and an older one that is started after that is refused.

## Measured

Each request has an image of {kilobytes} KB that a text-only model gets as words. A known image was described before; for
a new one, the upstream is also asked for the description, which it gives at once. Each figure is the median of {rounds}.

Milliseconds until the answer begins, one request at a time, median and 99th percentile. The upstream alone needs
{direct}; `added` is what is beyond that on servers, in times of what is on a disk. The target for a known image is at
most {max_ratio} times: {verdict}.

{latency}

The load, the upstream and the servers of the record share the machine's cores with the proxy. So requests per second
tell what this machine serves with all of them on it; requests per CPU second, of the proxy's own processes alone, tell
what one core serves, and that is what grows with more machines.

Requests with known images, {connections} at a time, by workers of one proxy:

{workers}

By replicas of one worker, on PostgreSQL and S3, {connections} at a time for each, in conversations of its own. The rows below
the second tell where the machine's CPU time went:

{replicas}

{bound}

## On paper: {developers} developers

Assumed for each developer and day: {assumed}, each described once. Rows have the
measured sizes. Assumed prices: {prices}. The machines of the
replicas and of PostgreSQL are not included.

{paper}

A shared record holds at most 1 TiB by its own count and then deletes what was least recently used, so a team of that size
keeps the images of {days} days. Rows belong to credentials: developers with different keys share no descriptions. This
section is computed, not measured.
"""  # noqa: E501, the page's own lines


class _Process(NamedTuple):
    """A proxy or an upstream."""

    port: int
    pid: int


class _Rate(NamedTuple):
    """What was served in a round, and the CPU seconds that went to it, by part."""

    per_second: float
    per_cpu_second: float
    shares: Mapping[str, float]  # of the machine's CPU time


def run(file: Path, *, quick: bool = False) -> None:
    """Measure, and write the figures and their page."""
    result: dict[str, Any] = {"machine": platform.platform(), "cores": os.cpu_count(), "short": quick}
    with run_servers(durable=True) as servers, tempfile.TemporaryDirectory() as name, _run_upstream() as upstream:
        bench = _Bench(servers, Path(name), upstream, 10 if quick else 1)
        result |= bench.measure_latency(1 if quick else ROUNDS)
        result["workers"] = {
            engine: {str(count): bench.measure_workers(engine, count) for count in WORKERS}
            for engine in (DISK, SERVERS)
        }
        result["replicas"] = {str(count): bench.measure_replicas(count) for count in REPLICAS}
    file.write_text(json.dumps(result, indent=1) + "\n")
    page = render_page(result)
    file.with_suffix(".md").write_text(page)
    PAGE.write_text(page)
    print(page)


class _Bench:
    def __init__(self, servers: Servers, folder: Path, upstream: _Process, fewer: int) -> None:
        self._servers, self._folder, self._upstream, self._fewer = servers, folder, upstream, fewer
        self._records = 0
        self._known = self._write_bodies("known", [0])
        # Each replica has conversations of its own, as many as requests at a time.
        self._many = [
            self._write_bodies("many", range(10_000 + first, 10_000 + first + CONNECTIONS))
            for first in range(0, CONNECTIONS * REPLICAS[-1], CONNECTIONS)
        ]

    def measure_latency(self, rounds: int) -> dict[str, Any]:
        """Return the milliseconds of requests on both engines, in turn, and the bytes of rows on servers."""
        found: dict[str, dict[str, list[list[float]]]] = {
            engine: {"known image": [], "new image": []} for engine in (DISK, SERVERS)
        }
        with self._serve(DISK) as disk, self._serve(SERVERS) as servers:
            ports = {DISK: disk.port, SERVERS: servers.port}
            for port in ports.values():
                self._load(port, self._known, 1, 20)
            for number in range(rounds):
                for engine, port in ports.items():
                    self._time_round(port, number, found[engine])
            direct = self._load(self._upstream.port, self._known, 1, COUNT // 4 // self._fewer)
        sizes = self._measure_rows()
        latency = {
            engine: {name: [*map(statistics.median, zip(*each, strict=True))] for name, each in one.items()}
            for engine, one in found.items()
        }
        return {"direct": round(direct["first_ms"], 2), "latency": latency, "row_bytes": sizes}

    def _time_round(self, port: int, number: int, found: Mapping[str, list[list[float]]]) -> None:
        each = NEW // self._fewer
        new = self._write_bodies("new", range(1 + number * each, 1 + (number + 1) * each))
        for name, files, count in (("known image", self._known, COUNT // 4 // self._fewer), ("new image", new, each)):
            got = self._load(port, files, 1, count)
            found[name].append([round(got["first_ms"], 2), round(got["p99_ms"], 2)])

    def _measure_rows(self) -> dict[str, int]:
        """Return the bytes of a row of each table in PostgreSQL, with its indexes."""
        (name,) = self._servers.databases.values()
        found = {}
        with self._servers.postgres.connect(name) as connection:
            connection.execute(_VISIT)
            for table in TABLES:
                columns = [column for (column,) in connection.execute(_COLUMNS, (table,)) if column != "rowid"]
                values = ", ".join(_VARY if column in _KEYS[table] else column for column in columns)
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values}"
                    f" FROM (SELECT * FROM {table} LIMIT 1) AS one, generate_series(1, {ROWS}) AS number".encode()
                )
                query = f"SELECT pg_total_relation_size('{table}')::bigint / (SELECT COUNT(*) FROM {table})"
                ((size,),) = connection.execute(query.encode())
                found[table] = int(str(size))
        return found

    def measure_workers(self, engine: str, workers: int) -> dict[str, Any]:
        with self._serve(engine, workers) as proxy:
            return self._measure_rate([proxy], 5 * workers)

    def measure_replicas(self, count: int) -> dict[str, Any]:
        self._records += 1
        with ExitStack() as stack:
            proxies = [stack.enter_context(self._serve(SERVERS, new=False)) for _ in range(count)]
            return self._measure_rate(proxies, 5)

    def _measure_rate(self, proxies: Sequence[_Process], warm: int) -> dict[str, Any]:
        loads = [(proxy.port, files) for proxy, files in zip(proxies, self._many, strict=False)]
        for port, files in loads:
            self._load(port, files, CONNECTIONS, warm * CONNECTIONS)
        rounds = [self._run_round(proxies, loads) for _ in range(1 if self._fewer > 1 else ROUNDS)]
        chosen = sorted(rounds, key=lambda each: each.per_second)[len(rounds) // 2]
        return {
            "per_second": round(chosen.per_second),
            "per_cpu_second": round(chosen.per_cpu_second),
            "shares": {name: round(share, 3) for name, share in chosen.shares.items()},
        }

    def _run_round(self, proxies: Sequence[_Process], loads: Sequence[tuple[int, Sequence[Path]]]) -> _Rate:
        count = COUNT // self._fewer
        before, began = self._read_cpu(proxies), time.perf_counter()
        with ThreadPoolExecutor(len(loads)) as threads:
            found = list(threads.map(lambda load: self._load(*load, CONNECTIONS, count), loads))
        machine = (time.perf_counter() - began) * (os.cpu_count() or 1)
        seconds = max(each["seconds"] for each in found)  # without the start of the load
        used = {name: after - before[name] for name, after in self._read_cpu(proxies).items()}
        served = len(loads) * count
        shares = {name: cpu / machine for name, cpu in used.items()}
        return _Rate(served / seconds, served / used[PARTS[0]], shares)

    def _read_cpu(self, proxies: Sequence[_Process]) -> dict[str, float]:
        """Return the CPU seconds of all parts until now; each load has ended, so it is a child that was waited for."""
        load = resource.getrusage(resource.RUSAGE_CHILDREN)
        servers = (self._servers.postgres.process.pid, self._servers.s3.process.pid)
        found = (
            sum(read_cpu_seconds(proxy.pid) for proxy in proxies),
            load.ru_utime + load.ru_stime + read_cpu_seconds(self._upstream.pid),
            sum(map(read_cpu_seconds, servers)),
        )
        return dict(zip(PARTS, found, strict=True))

    @contextmanager
    def _serve(self, engine: str, workers: int = 1, *, new: bool = True) -> Iterator[_Process]:
        self._records += new
        models = {bodies.MODEL: {"vision": False}, "sees/eye": {"vision": True}}
        address = f"http://127.0.0.1:{self._upstream.port}"
        seeing = {"baseUrl": f"{address}/v1", "apiKey": "sk"}
        upstreams = {**json.loads(ALONE["SIGHTLINE_UPSTREAMS"]), "sees": seeing}
        home = self._folder / f"home-{engine[:1]}{self._records}"
        environment = {
            **os.environ, **self._servers.s3.environment(), "SIGHTLINE_UPSTREAMS": json.dumps(upstreams),
            "SIGHTLINE_HOME": str(home), "SIGHTLINE_MODEL": "sees/eye", "SIGHTLINE_MODELS": json.dumps(models),
        }  # fmt: skip
        words = ["serve", "--port", "0", "--workers", str(workers), "--upstream", f"openai={address}"]
        if engine == SERVERS:
            record = self._servers.address(self._folder / str(self._records))
            words += ["--store", record.store, "--blobs", record.blobs]
        command = [sys.executable, "-m", "sightline", *words]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        ) as process:
            try:
                assert process.stdout
                yield _Process(int(process.stdout.readline().rpartition(":")[2]), process.pid)
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
            path.write_bytes(bodies.build_image_body(1, seed, EDGE, tools=True))
        return paths


@contextmanager
def _run_upstream() -> Iterator[_Process]:
    command = [sys.executable, BENCH / "scripted_upstream.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield _Process(int(process.stdout.readline()), process.pid)
        finally:
            process.terminate()


def render_page(result: Mapping[str, Any]) -> str:
    """Return the page from the figures."""
    short, sizes = ", a short run beside other work" if result["short"] else "", result["row_bytes"]
    return TEMPLATE.format(
        machine=f"{result['machine']}, {result['cores']} cores{short}",
        **{name: f"{sizes[name]:,}" for name in ("moments", "entries", "receipts")},
        image_bytes=f"{sum(sizes[name] for name in TABLES[:2]):,}",
        kilobytes=EDGE * EDGE * 3 // 1000,
        rounds=f"{ROUNDS} rounds" if not result["short"] else "one round",
        direct=result["direct"],
        max_ratio=MAX_RATIO,
        verdict="met" if _compare_added(result, "known image") <= MAX_RATIO else "MISSED",
        latency=_render_latency(result),
        workers=_render_workers(result["workers"]),
        replicas=_render_replicas(result["replicas"]),
        bound=_explain_bound(result["replicas"]),
        connections=CONNECTIONS,
        **_render_paper(sizes),
    )


def _compare_added(result: Mapping[str, Any], name: str) -> float:
    """Return how many times as much a record on servers adds to a request as one on a disk."""
    disk, servers = (result["latency"][engine][name][0] - result["direct"] for engine in (DISK, SERVERS))
    return servers / max(disk, 0.001)


def _render_latency(result: Mapping[str, Any]) -> str:
    latency = result["latency"]
    rows = {
        name: [
            *(f"{one[name][0]:.2f} ({one[name][1]:.2f})" for one in latency.values()),
            f"{_compare_added(result, name):.2f}×",
        ]
        for name in latency[DISK]
    }
    return render_table("request with", [*latency, "added"], rows)


def _render_workers(workers: Mapping[str, Any]) -> str:
    rows = {
        f"{engine}, {title}": [f"{one[key]:,}" for one in found.values()]
        for engine, found in workers.items()
        for title, key in (("per second", "per_second"), ("per CPU second", "per_cpu_second"))
    }
    return render_table("workers", [*map(str, WORKERS)], rows)


def _render_replicas(replicas: Mapping[str, Any]) -> str:
    rows = {
        "requests per second": [f"{one['per_second']:,}" for one in replicas.values()],
        "requests per CPU second": [f"{one['per_cpu_second']:,}" for one in replicas.values()],
        **{part: [f"{one['shares'][part]:.0%}" for one in replicas.values()] for part in PARTS},
        "other programs, and idle": [f"{_find_rest(one):.0%}" for one in replicas.values()],
    }
    return render_table("replicas", [*map(str, REPLICAS)], rows)


def _find_rest(one: Mapping[str, Any]) -> float:
    return max(0.0, 1.0 - sum(one["shares"].values()))


def _explain_bound(replicas: Mapping[str, Any]) -> str:
    if _find_rest(replicas[str(REPLICAS[-1])]) < 0.15:
        words = (
            "nearly all CPU time of the machine goes into these programs: its cores bound the figures, not the record."
        )
    else:
        words = "CPU time is left, or other programs have used it: these figures are no upper bound."
    return f"With three replicas, {words}"


def _render_paper(sizes: Mapping[str, int]) -> dict[str, str | float]:
    """Return what the section about many developers says."""
    visits, new = DEVELOPERS * REQUESTS, DEVELOPERS * IMAGES
    kept_visits, kept = visits * DAYS, new * DAYS
    of_images = sum(sizes[name] for name in (*TABLES[:2], "entries")) * kept / 1e9
    of_visits = sizes["moments"] * kept_visits / 1e9
    receipts = MAX_RECEIPTS + DEVELOPERS * OWN_RECEIPTS
    of_receipts = sizes["receipts"] * receipts / 1e9
    gigabytes = of_images + of_visits + of_receipts
    objects, stored = IMAGE_BYTES * kept / 1e9, min(IMAGE_BYTES * kept, MAX_BYTES) / 1e9
    peak = f"{visits // 86_400} a second on average, {visits // 8_640} at a peak of ten times that"
    rows = {
        "visits": (f"{visits:,} ({peak}), many in one transaction", f"{kept_visits:,} rows, {of_visits:.0f} GB", ""),
        "images, descriptions, questions": (f"{3 * new:,} rows", f"{3 * kept:,} rows, {of_images:.0f} GB", ""),
        "receipts": (f"{visits:,} rows", f"{receipts:,} rows, {of_receipts:.0f} GB", ""),
        "all rows": ("", f"{gigabytes:.0f} GB", _price(gigabytes * ROW_DOLLARS)),
        "objects": (
            f"{new:,}, {IMAGE_BYTES * new / 1e9:.0f} GB",
            f"{kept:,}, {objects:,.0f} GB",
            _price(stored * OBJECT_DOLLARS + kept * PUT_DOLLARS),
        ),
        "descriptions": (f"{new:,}", "", _price(kept * LOOK_DOLLARS)),
        "connections": (f"{PROCESSES} workers", f"{PROCESSES * 9}, or {POOLED} through pgbouncer", ""),
    }
    return {
        "developers": f"{DEVELOPERS:,}",
        "assumed": f"{REQUESTS} requests with images, {IMAGES} new images of {IMAGE_BYTES // 1000} KB",
        "prices": f"${ROW_DOLLARS} a month for a gigabyte of rows, ${OBJECT_DOLLARS} for one of objects,"
        f"\n${1000 * PUT_DOLLARS} for storing a thousand objects, and ${LOOK_DOLLARS} for a description",
        "paper": render_table("", ["per day", f"kept for {DAYS} days", "a month"], rows),
        "days": f"{min(MAX_BYTES / (IMAGE_BYTES * new), DAYS):.0f}",
    }


def _price(dollars: float) -> str:
    return f"${dollars:,.0f}"
