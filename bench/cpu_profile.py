"""Where CPU time goes: samples of the stacks of the proxy and of the local reader, and the imports of `mcp`."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import bodies
import certificates
import mcp_server
import pages_of_results
import peer_environments
import peers
import proxy
import report
import tool_loop

HERE = Path(__file__).resolve().parent
SECONDS, RATE = 8, 200  # of each kind of request, and samples per second
STREAMS = 16  # at once: a single one waits most of the time, so there would be few samples
PAUSE, PAUSED_SECONDS = 0.03, 16  # between requests whose first byte is sampled
NEW, NEW_PAUSE = 40, 0.2  # bodies with images that were never seen, sent once each while samples are taken
MORE = 1000  # samples per second where there are pauses
READER_SECONDS = 30  # about as many pages as there are
STARTS = 3  # of `mcp`
LEAST_SHARE = 0.02  # of what has a row of its own

# A sample counts for the first row whose pattern is found in its innermost frames; waiting is no CPU time.
WAITING = re.compile(r"cond_(?:timed)?wait|epoll_|acquire_lock|select\.poll|futex")
KINDS = (
    (
        "system calls",
        re.compile(
            r"\b(?:writev?|readv?|recv\w*|send\w*|close|[fl]?stat\w*|p(?:read|write)\w*|open\w*|fd?(?:data)?sync"
            r"|mkdir\w*|rename\w*|unlink\w*|sem_post) \(libc"
        ),
    ),
    ("SQLite", re.compile(r"sqlite")),
    ("hashing", re.compile(r"blake3|sha256|_hash")),
    ("JSON", re.compile(r"orjson|_json")),
    # The C library's own names for copying and searching bytes are stripped, so its frames have addresses only.
    ("copies and searches of bytes", re.compile(r"^0x\w+ \(libc|mem(?:cpy|move|set|chr)|bytes_join|bytearray")),
    ("event loop", re.compile(r"uv_|uv__|loop\.c|_asynciomodule")),
)
OPENSSL = re.compile(r"libcrypto|libssl|\(_ssl\.|\(ssl\.py")  # which hashes, too
PACKAGES = re.compile(r"\(sightline/(\w+)/(\w+)")
READER_MODULES = re.compile(r"\(sightline/(reader|pixels|vision)/((?:\w+/)*\w+)\.py")
IMPORT = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \| +([\w.]+)$", re.MULTILINE)
Classify = Callable[[str], str | None]


def classify(stack: str) -> str | None:
    """Return what a sampled stack was busy with; None if it waited."""
    frames = stack.split(";")
    inner = ";".join(frames[-3:])
    if WAITING.search(inner):
        return None
    native = frames[-1] + ";" + (frames[-2] if "(sightline/" not in frames[-1] and len(frames) > 1 else "")
    if OPENSSL.search(native):
        return "TLS" if "ssl." in stack else "hashing"
    for kind, pattern in KINDS:
        if pattern.search(native):
            return kind
    for frame in reversed(frames):
        if found := PACKAGES.search(frame):
            return f"Python in {found[1]}/{found[2]}" if found[1] == "surfaces" else f"Python in {found[1]}"
    return "other"


def classify_reader(stack: str) -> str | None:
    """Return the step of the local reader: its module, and whether a network ran for it; None if it waited."""
    frames = stack.split(";")
    if WAITING.search(";".join(frames[-3:])):
        return None
    for frame in reversed(frames):
        if found := READER_MODULES.search(frame):
            network = ", network" if "onnxruntime" in stack else ""
            return f"{found[1]}/{found[2]}{network}"
    return "other"


@dataclass(frozen=True)
class SampledLoad:
    """Requests that a proxy answers while it is sampled."""

    name: str
    peer: peers.Peer
    files: list[Path]
    count: int = 10**6
    options: list[str] = field(default_factory=list)  # of load.py
    seconds: int = SECONDS
    rate: int = RATE

    def sample(self, folder: Path) -> Counter[str]:
        command = [sys.executable, str(HERE / "load.py"), str(self.peer.port), *map(str, self.files)]
        command += ["--count", str(self.count), *self.options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
            seen = sample_process(self.peer.pid, folder, self.seconds, self.rate, classify)
            load.terminate()
        return seen


def sample_process(pid: int, folder: Path, seconds: int, rate: int, name_stack: Classify) -> Counter[str]:
    """Return how often each kind of work was seen in a process."""
    raw = folder / "stacks.txt"
    spy = peer_environments.install_profiler() / "bin" / "py-spy"
    options = ["--native", "--format", "raw", "--duration", str(seconds), "--rate", str(rate)]
    done = subprocess.run(
        [spy, "record", *options, "--output", raw, "--pid", str(pid)], capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"bench: py-spy: {done.stderr.decode().strip().splitlines()[-1]}")
    seen: Counter[str] = Counter()
    for line in raw.read_text().splitlines():
        stack, _, number = line.rpartition(" ")
        if kind := name_stack(stack):
            seen[kind] += int(number)
    return seen


def _sample_proxy() -> dict[str, dict[str, float]]:
    profiles: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sightline-profile-")))
        files = proxy.write_bodies(folder)
        for load in _list_loads(stack, folder, files):
            peer_environments.print_status(f"sampling {load.name}")
            profiles[load.name] = _share(load.sample(folder))
    return profiles


def _list_loads(stack: ExitStack, folder: Path, files: dict[str, Path]) -> list[SampledLoad]:
    """Start the proxies, and return what to sample."""

    def start(name: str, events: int = 200, authority: certificates.Authority | None = None, **env: str) -> peers.Peer:
        own = folder / name
        own.mkdir()
        sink = peers.start_scripted_upstream(stack, own, authority, events)
        return peers.start_sightline(stack, own, peers.Upstream(sink.port, authority), env=env)

    plain, secured = start("plain"), start("TLS", authority=certificates.create_authority(folder))
    paused = start("paused", events=1)
    blind = start("blind", SIGHTLINE_MODELS=tool_loop.BLIND, SIGHTLINE_TOOL="auto")
    for size in ("2 KB", "200 KB", proxy.READ_BY_TOOL, "5 MB", "20 MB"):
        proxy.load_peer(plain, [files[size]], 1, 3)
    agent, new = folder / "agent", [folder / f"new {number}" for number in range(NEW)]
    agent.write_bytes(tool_loop.build_body(1, stream=False))
    for number, file in enumerate(new):
        file.write_bytes(bodies.build_image_body(5, seed=9000 + number))
    return [
        SampledLoad("2 KB", plain, [files["2 KB"]]),
        SampledLoad("2 KB, TLS", secured, [files["2 KB"]]),
        SampledLoad("2 KB, our tools", blind, [agent]),
        SampledLoad("200 KB", plain, [files["200 KB"]]),
        SampledLoad("200 KB, 64 connections", plain, [files["200 KB"]], options=["--connections", "64"]),
        SampledLoad("200 KB, read by a tool", plain, [files[proxy.READ_BY_TOOL]]),
        SampledLoad("5 MB", plain, [files["5 MB"]]),
        SampledLoad("20 MB", plain, [files["20 MB"]]),
        SampledLoad("5 MB, never seen", plain, new, NEW, ["--pause", str(NEW_PAUSE)], rate=MORE),
        SampledLoad("streams", plain, [files["stream"]], options=["--connections", str(STREAMS)]),
        SampledLoad(
            "a stream's first byte",
            paused,
            [files["stream"]],
            options=["--pause", str(PAUSE)],
            seconds=PAUSED_SECONDS,
            rate=MORE,
        ),
    ]


def _sample_work(work: str, seconds: int, name_stack: Classify) -> dict[str, float]:
    """Sample a process of its own that does some work over and over."""
    peer_environments.print_status(f"sampling {work}")
    with (
        tempfile.TemporaryDirectory(prefix="sightline-profile-") as folder,
        subprocess.Popen([sys.executable, HERE / "sampled_work.py", work], stdout=subprocess.PIPE) as worker,
    ):
        assert worker.stdout
        try:
            if not worker.stdout.readline():
                raise SystemExit(f"bench: {work} did not start")
            return _share(sample_process(worker.pid, Path(folder), seconds, RATE, name_stack))
        finally:
            worker.terminate()


def _measure_imports() -> dict[str, float]:
    """Return the shares of the time until `mcp` answers `initialize`, by the package whose modules are executed."""
    rounds: list[Counter[str]] = []
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile("w+") as errors:
        for _ in range(STARTS):
            errors.seek(0)
            errors.truncate()
            seconds = mcp_server.measure_start(["-X", "importtime"], {**os.environ, "SIGHTLINE_HOME": home}, errors)
            errors.seek(0)
            spent: Counter[str] = Counter()
            for microseconds, module in IMPORT.findall(errors.read()):
                package = module.partition(".")[0]
                name = "the standard library" if package in sys.stdlib_module_names else f"`{package}`"
                spent[name] += int(microseconds)
            spent["anything but imports"] = round(seconds * 1e6) - spent.total()
            rounds.append(spent)
    return _share(min(rounds, key=Counter.total))  # the one that was disturbed least


def run(out: Path) -> None:
    """Sample each kind of work, and write the shares into docs/performance.md."""
    profile: dict[str, object] = {
        "machine": report.describe_machine(),
        "proxy": _sample_proxy(),
        "rewriting": _sample_work("rewrite", SECONDS, classify),
        "mcp": _measure_imports(),
        "reader": _sample_work("read", READER_SECONDS, classify_reader),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(profile, indent=2) + "\n")
    parts = render_parts(json.loads(out.read_text()))
    print("\n" + "\n".join(parts.values()))
    if out.parent == HERE / "results":
        for name, text in parts.items():
            pages_of_results.write_part(pages_of_results.PERFORMANCE, name, text)


def _share(seen: Counter[str]) -> dict[str, float]:
    total = seen.total() or 1
    return {kind: number / total for kind, number in seen.most_common()}


def render_parts(profile: dict[str, dict[str, dict[str, float]]]) -> dict[str, str]:
    """Return the generated parts of docs/performance.md by their names."""
    columns = {
        "profile: rewriting": ("20 MB in 512 messages", "rewriting"),
        "profile: mcp": ("`mcp` until `initialize` is answered", "mcp"),
        "profile: reader": ("a page of 1920x1080", "reader"),
    }
    single = {name: _write_table({head: profile[key]}) for name, (head, key) in columns.items()}
    return {"profile": _write_table(profile["proxy"]), **single}


def _write_table(profiles: dict[str, dict[str, float]]) -> str:
    """Return a row for each kind of work that takes 2 % somewhere, and the rest as one."""
    kinds = Counter[str]()
    for shares in profiles.values():
        kinds.update({kind: round(share * 1000) for kind, share in shares.items()})
    named = [kind for kind, _ in kinds.most_common() if any(p.get(kind, 0) >= LEAST_SHARE for p in profiles.values())]
    lines = [f"| | {' | '.join(profiles)} |", f"|---|{'---|' * len(profiles)}"]
    lines += [f"| {kind} | {' | '.join(f'{by.get(kind, 0):.0%}' for by in profiles.values())} |" for kind in named]
    rest = (1 - sum(shares.get(kind, 0) for kind in named) for shares in profiles.values())
    return "\n".join([*lines, f"| everything else | {' | '.join(f'{max(share, 0):.0%}' for share in rest)} |"]) + "\n"
