"""CPU time per request of the proxy, compared with nginx and other gateways in interleaved rounds."""

import itertools
import json
import math
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import bodies
import certificates
import load
import meter
import pages_of_results
import peers
import report

HERE = Path(__file__).resolve().parent
STREAM_CHUNKS = 202  # what the upstream sends: 200 words, the finish, and [DONE]
STREAMS = 6  # of each round
STARTS = 3  # of each peer
FRESH = 6  # bodies with images never seen before, for each round
BUDGET = 0.7  # seconds of a load: another gateway that is too slow for its count gets fewer requests, at least five
WORKERS = (1, 2)
WORKERS_COUNT = 6000

AT_REST = "memory at rest, MB"
IN_FLIGHT = "memory peak with 16 × 20 MB in flight, MB"
READY = "CPU s until it listens"
CHUNK = "CPU µs per streamed chunk"
NEW = "CPU ms per request, 5 MB of images never seen before"
MANY = 99_000  # messages, of the bodies that are read while others wait: nearly as many as Sightline reads
MEANWHILE = f"first byte, 2 KB, while bodies of {MANY:,} messages are read,"
MEANWHILE_SECONDS = 2.0  # of small requests; other gateways are loaded so in the first round only
PAUSE, PAUSED_COUNT = 0.1, 12  # seconds before each request, and requests of a round
PAUSED = f"CPU ms per request, 2 KB, {PAUSE:g} s after the last one"
FIRST = "first byte added, 2 KB, ms"
FIRST_STREAMED = "first byte of a stream added, ms"
RATE = "requests per second, 2 KB, 64 connections"
CAPACITY = "requests per second of CPU of the busiest process, 2 KB, 64 connections"


# The groups of cases, each with peers of its own.
CHAT, TLS, MESSAGES = "", "TLS", "Messages API"
READ_BY_TOOL = "200 KB read by a tool"

RUST_CORE = (
    "LiteLLM's Rust core takes no Chat Completions, whatever its settings are; it takes requests of the Messages API "
    "to Anthropic. These are in a table of their own. LiteLLM's proxy in Python receives and answers them."
)
TOOL_IMAGES = (
    "Of an image in a tool's result, Sightline and LiteLLM make an image of a user's message, as Chat Completions "
    "wants it; Portkey sends it on as it is, and TensorZero as text."
)
PORTKEY_STREAMS = (
    "Portkey answers streams with 500 because it adds a header to the headers of a response from `fetch`, which can't "
    "be changed: its log has `TypeError: immutable` in `updateHeaders`."
)


@dataclass(frozen=True)
class Case:
    """One load."""

    size: str
    connections: int
    count: int
    at_most: float | None
    at_least: float
    needs_gb: float = 2
    group: str = CHAT

    @property
    def name(self) -> str:
        plural = "s" if self.connections > 1 else ""
        group = f", {self.group}" if self.group else ""
        return f"CPU ms per request, {self.size}, {self.connections} connection{plural}{group}"

    @property
    def body(self) -> str:
        """The name of its body."""
        return f"{self.size}, {self.group}" if self.group == MESSAGES else self.size

    @property
    def on_one_connection(self) -> str:
        return replace(self, connections=1).name

    def count_requests(self, quick: bool) -> int:
        return max(self.count // 4, self.connections) if quick else self.count


def _list_cases(group: str) -> tuple[Case, ...]:
    return (
        Case("2 KB", 1, 2000, at_most=3, at_least=20, group=group),
        Case("2 KB", 64, 5000, at_most=4, at_least=20, group=group),
        Case("200 KB", 1, 400, at_most=3.5, at_least=5, group=group),
        Case("200 KB", 64, 1280, at_most=3.5, at_least=5, group=group),
        Case("5 MB", 1, 40, at_most=1.6, at_least=5, group=group),
        Case("5 MB", 64, 128, at_most=1.6, at_least=5, group=group),
        Case("20 MB", 1, 12, at_most=1.1, at_least=5, group=group),
        Case("20 MB", 36, 36, at_most=1.1, at_least=5, needs_gb=4, group=group),  # Sightline holds 1 GiB of bodies
    )


PLAIN, SECURED = _list_cases(CHAT), _list_cases(TLS)
AS_AGENTS = (
    Case(READ_BY_TOOL, 1, 400, at_most=3.5, at_least=5),
    Case(READ_BY_TOOL, 64, 1280, at_most=3.5, at_least=5),
)
WITH_MESSAGES_API = (
    Case("2 KB", 1, 2000, at_most=3, at_least=20, group=MESSAGES),
    Case("200 KB", 1, 400, at_most=3.5, at_least=5, group=MESSAGES),
    Case("5 MB", 1, 40, at_most=1.6, at_least=5, group=MESSAGES),
)
CASES = (*PLAIN, *AS_AGENTS, *SECURED, *WITH_MESSAGES_API)
INTERLEAVED = (*itertools.chain(*zip(PLAIN, SECURED, strict=True)), *AS_AGENTS, *WITH_MESSAGES_API)
FLOOD = Case("20 MB", 16, 16, at_most=None, at_least=5)
TARGETS = {
    **{case.name: report.Target(case.at_most, case.at_least) for case in CASES},
    CHUNK: report.Target(times_nginx=1.3),
    NEW: report.Target(times_nginx=5),
    IN_FLIGHT: report.Target(times_nginx=2.5),
    AT_REST: report.Target(ours=100),
    READY: report.Target(ours=0.2),
    FIRST_STREAMED: report.Target(ours=0.35),
}


@dataclass
class Samples:
    """What the rounds measured, by figure and peer."""

    taken: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    identical: dict[str, bool] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # what peers said when they refused something, and of what

    def add(self, figure: str, peer: str, value: float) -> None:
        self.taken[figure][peer].append(value)

    def medians(self, figure: str) -> dict[str, float]:
        return {peer: statistics.median(values) for peer, values in self.taken[figure].items()}


@dataclass(frozen=True)
class Loaded:
    """What one run of the load generator cost the peer and saw."""

    cpu: float
    done: int
    seconds: float
    first_ms: float
    p99_ms: float
    sha256: tuple[str, ...]


@dataclass(frozen=True)
class Field:
    """Everything that is running, and what it is asked."""

    sink: peers.Peer
    groups: dict[str, list[peers.Peer]]
    crowds: dict[int, peers.Peer]  # Sightline by the number of its workers
    files: dict[str, Path]
    quick: bool

    @property
    def plain(self) -> list[peers.Peer]:
        return self.groups[CHAT]


class LoadError(Exception):
    """A peer refused the requests, or closed the connection."""


def load_peer(
    peer: peers.Peer, files: Iterable[Path], connections: int, count: int, seconds: float = math.inf, pause: float = 0
) -> Loaded:
    """Send so many requests, or fewer if they take longer than those seconds; with a pause, one before each."""
    command = [sys.executable, str(HERE / "load.py"), str(peer.port), *map(str, files)]
    before = meter.read_cpu_seconds(peer.pid)
    done = subprocess.run(
        [
            *[*command, "--connections", str(connections), "--count", str(count)],
            *["--seconds", str(seconds), "--pause", str(pause), *peer.request.options],
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    cpu = meter.read_cpu_seconds(peer.pid) - before
    if done.returncode:
        raise LoadError(f"{peer.name}: {done.stderr.strip().splitlines()[-1]}")
    seen = json.loads(done.stdout)
    return Loaded(cpu, seen["done"], seen["seconds"], seen["first_ms"], seen["p99_ms"], tuple(seen["sha256"]))


def _try_load(
    peer: peers.Peer,
    files: Iterable[Path],
    connections: int,
    count: int,
    samples: Samples,
    seconds: float = math.inf,
    pause: float = 0,
) -> Loaded | None:
    """Load a peer; note what another gateway refuses, so that its place in the table stays empty."""
    try:
        return load_peer(peer, files, connections, count, seconds, pause)
    except (LoadError, OSError) as failed:  # or it has ended, so that there is no CPU time to read
        if peer.name not in report.GATEWAYS:
            raise SystemExit(f"bench: {failed}") from failed
        said = str(failed) if isinstance(failed, LoadError) else f"{peer.name}: it ended"
        samples.refused.setdefault(said, ", ".join(file.name for file in files))
        return None


def write_bodies(folder: Path) -> dict[str, Path]:
    made: dict[str, Callable[[], bytes]] = {
        "2 KB": bodies.build_text_body,
        "200 KB": lambda: bodies.build_image_body(1, seed=2, edge=bodies.SMALL_EDGE),
        "5 MB": lambda: bodies.build_image_body(5, seed=5),
        "20 MB": lambda: bodies.build_image_body(20, seed=20),
        READ_BY_TOOL: lambda: bodies.build_read_image_body(seed=3),
        f"2 KB, {MESSAGES}": lambda: bodies.build_messages_api_body(0, seed=2),
        f"200 KB, {MESSAGES}": lambda: bodies.build_messages_api_body(1, seed=2, edge=bodies.SMALL_EDGE),
        f"5 MB, {MESSAGES}": lambda: bodies.build_messages_api_body(5, seed=5),
        "stream": lambda: bodies.build_text_body(stream=True),
        "many": lambda: bodies.build_many_messages_body(MANY),
    }
    return {name: _write(folder / name, make()) for name, make in made.items()}


def _write(path: Path, body: bytes) -> Path:
    path.write_bytes(body)
    return path


def _start_peers(stack: ExitStack, folder: Path, names: list[str], quick: bool) -> Field:
    """Start the peers, each in a folder of its own."""

    def own(name: str) -> Path:
        (folder / name).mkdir()
        return folder / name

    trusted = certificates.create_authority(own("authority"))
    sink, guarded = (
        peers.start_scripted_upstream(stack, own("sink")),
        peers.start_scripted_upstream(stack, own("sink, TLS"), trusted),
    )
    plain, secured = peers.Upstream(sink.port), peers.Upstream(guarded.port, trusted)
    crowded = WORKERS if "sightline" in names else ()
    started = {name: peers.PEERS[name](stack, own(name), plain) for name in names}
    chat = [name for name in names if name in peers.CHAT_PEERS]
    groups = {
        CHAT: [started[name] for name in chat],
        TLS: [peers.PEERS[name](stack, own(f"{name}, TLS"), secured) for name in chat if name in peers.TLS_PEERS],
        MESSAGES: [started[name].with_messages_api() for name in peers.MESSAGES_PEERS if name in started],
    }
    return Field(
        sink,
        groups,
        {number: peers.start_sightline(stack, own(f"{number} workers"), plain, number) for number in crowded},
        write_bodies(folder),
        quick,
    )


def _measure_starts(folder: Path, names: list[str], samples: Samples) -> None:
    """Start each peer a few times, alone: the CPU time until it listens."""
    with ExitStack() as stack:
        upstream = peers.Upstream(peers.start_scripted_upstream(stack, folder).port)
        for number, name in itertools.product(range(STARTS), (each for each in names if each in peers.CHAT_PEERS)):
            own = folder / f"{name}, start {number}"
            own.mkdir()
            with ExitStack() as alone:
                samples.add(READY, name, peers.PEERS[name](alone, own, upstream).ready)


def _settle(field: Field, samples: Samples) -> None:
    """At rest, a first request of every kind, the bytes of a stream, memory under 16 × 20 MB."""
    direct = load_peer(field.sink, [field.files["stream"]], 1, 1).sha256
    for peer in field.plain:
        samples.add(AT_REST, peer.name, meter.read_resident_mb(peer.pid))
        _warm(peer, field.files, samples)
        streamed = _try_load(peer, [field.files["stream"]], 1, 1, samples)
        if streamed is not None:
            samples.identical[peer.name] = streamed.sha256 == direct
        if _try_load(peer, [field.files[FLOOD.size]], FLOOD.connections, FLOOD.count, samples):
            samples.add(IN_FLIGHT, peer.name, meter.read_peak_mb(peer.pid))
    for peer in (*field.groups[TLS], *field.crowds.values()):
        _warm(peer, field.files, samples)
    for peer in list(field.groups[MESSAGES]):
        for case in WITH_MESSAGES_API:
            _try_load(peer, [field.files[case.body]], 1, 3, samples)
        if peer.name == "litellm-rust" and not peers.uses_rust_core(peer):
            field.groups[MESSAGES].remove(peer)
            samples.refused["litellm-rust: its Rust core did not answer"] = MESSAGES


def _warm(peer: peers.Peer, files: dict[str, Path], samples: Samples) -> None:
    for size in ("2 KB", "200 KB", READ_BY_TOOL, "5 MB", "20 MB"):
        _try_load(peer, [files[size]], 1, 3, samples)


def _measure_case(case: Case, field: Field, samples: Samples) -> None:
    if meter.read_available_gb() < case.needs_gb or (field.quick and case.needs_gb > FLOOD.needs_gb):
        print(f"bench: left out, needs {case.needs_gb:g} GB: {case.name}", file=sys.stderr)
        return
    small = case.size == "2 KB" and case.group == CHAT
    direct = load_peer(field.sink, [field.files["2 KB"]], 1, 1000) if small and case.connections == 1 else None
    for peer in field.groups[case.group]:
        count, connections = case.count_requests(field.quick), _limit_connections(case, peer, samples)
        loaded = _try_load(peer, [field.files[case.body]], connections, count, samples, BUDGET)
        if loaded is None:
            continue
        samples.add(case.name, peer.name, loaded.cpu / loaded.done * 1000)
        if direct is not None:
            samples.add(FIRST, peer.name, loaded.first_ms - direct.first_ms)
        if small and case.connections == 64:
            samples.add(RATE, peer.name, loaded.done / loaded.seconds)


def _limit_connections(case: Case, peer: peers.Peer, samples: Samples) -> int:
    """Return the connections of a case, or as many as the peer answers within the budget: all send at once."""
    alone = samples.taken[case.on_one_connection][peer.name]
    within_budget = int(BUDGET * 1000 / alone[-1]) if alone else case.connections
    return min(case.connections, max(load.LEAST, within_budget))


def _measure_streams(field: Field, samples: Samples) -> None:
    count = 2 if field.quick else STREAMS
    direct = load_peer(field.sink, [field.files["stream"]], 1, count)
    for peer in field.plain:
        streamed = _try_load(peer, [field.files["stream"]], 1, count, samples)
        if streamed is None:
            continue
        samples.add(CHUNK, peer.name, streamed.cpu / count / STREAM_CHUNKS * 1e6)
        samples.add(FIRST_STREAMED, peer.name, streamed.first_ms - direct.first_ms)


def _measure_new_images(number: int, field: Field, samples: Samples) -> None:
    folder = field.files["5 MB"].parent
    new = [
        _write(folder / f"new {i}", bodies.build_image_body(5, seed=1000 + number * FRESH + i)) for i in range(FRESH)
    ]
    for peer in field.plain:
        if loaded := _try_load(peer, new, 1, FRESH, samples):
            samples.add(NEW, peer.name, loaded.cpu / FRESH * 1000)


@contextmanager
def send_meanwhile(peer: peers.Peer, body: Path) -> Iterator[None]:
    """Send a body over and over from another process; begin when the first one was answered."""
    command = [sys.executable, str(HERE / "load.py"), str(peer.port), str(body), "--forever", *peer.request.options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as large:
        assert large.stdout
        try:
            large.stdout.readline()
            yield
        finally:
            large.terminate()


def _measure_meanwhile(number: int, field: Field, samples: Samples) -> None:
    """Small requests on one connection, while another client sends large bodies without a pause."""
    for peer in field.plain:
        if number and peer.name in report.GATEWAYS:
            continue  # each request may wait ten seconds
        with send_meanwhile(peer, field.files["many"]):
            loaded = _try_load(peer, [field.files["2 KB"]], 1, 10**6, samples, MEANWHILE_SECONDS)
        if loaded is None:
            continue
        _wait_until_idle(peer)
        samples.add(f"{MEANWHILE} p50 ms", peer.name, loaded.first_ms)
        samples.add(f"{MEANWHILE} p99 ms", peer.name, loaded.p99_ms)


def _measure_after_pauses(field: Field, samples: Samples) -> None:
    """Requests that don't follow at once, so that other programs have used the caches of the processor meanwhile."""
    for peer in field.plain:
        if loaded := _try_load(peer, [field.files["2 KB"]], 1, PAUSED_COUNT, samples, pause=PAUSE):
            samples.add(PAUSED, peer.name, loaded.cpu / loaded.done * 1000)


def _wait_until_idle(peer: peers.Peer) -> None:
    """Wait, for a minute at most: a gateway may go on with the last large body, which is no part of the next row."""
    end = time.monotonic() + 60
    spent = meter.read_cpu_seconds(peer.pid)
    while time.monotonic() < end:
        time.sleep(0.3)
        now = meter.read_cpu_seconds(peer.pid)
        if now - spent < 0.03:
            return
        spent = now


def _measure_crowds(field: Field, samples: Samples) -> None:
    for number, peer in field.crowds.items():
        before = meter.read_cpu_by_process(peer.pid)
        loaded = load_peer(peer, [field.files["2 KB"]], 64, WORKERS_COUNT)
        busiest = max(
            cpu - before[member] for member, cpu in meter.read_cpu_by_process(peer.pid).items() if member in before
        )
        samples.add(_name_with_workers(RATE, number), peer.name, WORKERS_COUNT / loaded.seconds)
        samples.add(_name_with_workers(CAPACITY, number), peer.name, WORKERS_COUNT / busiest)


def _name_with_workers(figure: str, number: int) -> str:
    return f"{figure}, --workers {number}"


def _run_round(number: int, field: Field, samples: Samples) -> None:
    for case in INTERLEAVED:
        _measure_case(case, field, samples)
    _measure_streams(field, samples)
    _measure_after_pauses(field, samples)
    _measure_new_images(number, field, samples)
    _measure_meanwhile(number, field, samples)
    _measure_crowds(field, samples)


def _collect_figures(samples: Samples) -> list[report.ProxyFigure]:
    cases = [case.name for case in CASES]
    rest = sorted((name for name in samples.taken if name not in cases), key=lambda name: not name.startswith("CPU"))
    ordered = [*(name for name in cases if name in samples.taken), *rest]
    made = [report.ProxyFigure(name, samples.medians(name), TARGETS.get(name, report.Target())) for name in ordered]
    grown = {_name_with_workers(kind, WORKERS[-1]): _name_with_workers(kind, WORKERS[0]) for kind in (RATE, CAPACITY)}
    return [_add_growth(each, grown[each.name], samples) if each.name in grown else each for each in made]


def _add_growth(figure: report.ProxyFigure, alone: str, samples: Samples) -> report.ProxyFigure:
    """More workers answer more requests."""
    return report.ProxyFigure(figure.name, figure.values, report.Target(more_than=samples.medians(alone)["sightline"]))


def run(rounds: int, names: list[str], out: Path, quick: bool = False) -> None:
    """Start the peers, measure, print the table and write it beside the figures."""
    samples = Samples()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sightline-bench-")))
        _measure_starts(folder, names, samples)
        field = _start_peers(stack, folder, names, quick)
        _settle(field, samples)
        for number in range(rounds):
            print(f"bench: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            _run_round(number, field, samples)
    versions = {peer.name: peer.version for group in field.groups.values() for peer in group}
    text = _write_report(samples, versions)
    print(f"\n{text}")
    _publish(out, text, samples, versions, rounds)
    if out.parent == HERE / "results" and set(names) == set(peers.PEERS) and not quick:
        pages_of_results.write_proxy_pages(out.with_suffix(".md").read_text())
    for name in report.list_missed(text):
        print(f"MISSED: {name}")


def _write_report(samples: Samples, versions: dict[str, str]) -> str:
    """Return the table, that of the Messages API, and what was refused."""
    figures, names = _collect_figures(samples), {case.name for case in WITH_MESSAGES_API}
    chat, messages = (
        {name: version for name, version in versions.items() if name in group}
        for group in (peers.CHAT_PEERS, peers.MESSAGES_PEERS)
    )
    chat_table = report.write_table(
        [each for each in figures if each.name not in names], chat, report.Identity(samples.identical)
    )
    messages_table = report.write_table([each for each in figures if each.name in names], messages)
    refused = "".join(f"- {said} ({body})\n" for said, body in samples.refused.items())
    notes = f"\nRefused:\n\n{refused}" if refused else ""
    if any(said.startswith("portkey") for said in samples.refused):
        notes += f"\n{PORTKEY_STREAMS}\n"
    return f"{chat_table}\n{TOOL_IMAGES}\n\n{RUST_CORE}\n\n{messages_table}{notes}"


def _publish(out: Path, text: str, samples: Samples, versions: dict[str, str], rounds: int) -> None:
    figures = {name: {"median": samples.medians(name), "rounds": taken} for name, taken in samples.taken.items()}
    facts = {
        "machine": report.describe_machine(),
        "python": platform.python_version(),
        "rounds": rounds,
        "versions": versions,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**facts, "streamIdentical": samples.identical, "figures": figures}, indent=2) + "\n")
    out.with_suffix(".md").write_text(report.write_introduction(rounds) + text)
