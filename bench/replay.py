"""Whole conversations through the proxy: added latency, pauses in streams, memory, growth with messages and images."""

import json
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import bodies
import load
import meter
import peers
import plot
import proxy
import report

HERE = Path(__file__).resolve().parent
TURNS, IMAGES = 40, 12
AT_ONCE = (1, 16)
MESSAGES = (16, 64, 256, 1024)
PICTURES = (1, 4, 16)
EVENTS = 30  # of each stream
BLOCKING_SECONDS = 2.0  # of small requests, while a large body is read
REPEATS = 60  # requests of each length
NAMES = ("nginx", "sightline")
HOSTILE = 7_000_000  # integers in a body that parses slowly
PLOT = HERE.parent / "docs" / "growth.svg"


@dataclass
class Measured:
    """The rounds of every figure, by figure and peer."""

    taken: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def add(self, figure: str, peer: str, value: float) -> None:
        self.taken[figure][peer].append(value)

    def medians(self) -> dict[str, dict[str, float]]:
        return {
            name: {peer: statistics.median(values) for peer, values in by.items()} for name, by in self.taken.items()
        }


def build_conversation(seed: int) -> list[bytes]:
    """Return the bodies of 40 streamed turns, each with everything before it; 12 of them bring a screenshot.

    Every other screenshot is pasted, and the others are read by a tool.
    """
    dice = random.Random(seed)
    with_image = choose_turns_with_images(dice)
    messages: list[dict[str, object]] = [{"role": "system", "content": "You fix web pages. " * 120}]
    made = []
    for turn in range(TURNS):
        said: list[dict[str, object]] = [{"type": "text", "text": f"Step {turn}: " + "what is wrong here? " * 8}]
        is_pasted = turn in with_image[::2]
        if is_pasted:
            said.append(bodies.build_image_part(dice, edge=bodies.SMALL_EDGE))
        messages.append({"role": "user", "content": said})
        if turn in with_image and not is_pasted:
            messages += bodies.build_tool_calls(dice, turn)
        asked = {"model": bodies.MODEL, "stream": True, "tools": bodies.TOOLS, "messages": messages}
        made.append(json.dumps(asked, separators=(",", ":")).encode())
        messages.append({"role": "assistant", "content": "I changed the style sheet. " * dice.randint(5, 60)})
    return made


def choose_turns_with_images(dice: random.Random) -> list[int]:
    """Return the turns that bring a screenshot; with dice of its seed alone, those of a conversation."""
    return sorted(dice.sample(range(TURNS), IMAGES))


def build_long_body(messages: int, images: int) -> bytes:
    """Return one body with that many messages and images."""
    dice = random.Random(messages * 1000 + images)
    said: list[dict[str, object]] = [
        {"role": ("user", "assistant")[number % 2], "content": "Some words of a conversation. " * 10}
        for number in range(messages)
    ]
    parts = [bodies.build_image_part(dice, edge=bodies.SMALL_EDGE) for _ in range(images)]
    said.append({"role": "user", "content": [{"type": "text", "text": "Look."}, *parts]})
    return json.dumps({"model": bodies.MODEL, "messages": said}, separators=(",", ":")).encode()


def _build_requests(peer: peers.Peer, made: Sequence[bytes]) -> list[bytes]:
    return [load.build_request(peer.port, peer.request.path, list(peer.request.headers), body) for body in made]


def _measure_conversations(
    peer: peers.Peer, at_once: int, conversations: dict[int, list[bytes]], into: Measured
) -> None:
    before = meter.read_cpu_seconds(peer.pid)
    seeds = list(conversations)[:at_once]
    tally = load.drive_conversations(peer.port, [_build_requests(peer, conversations[seed]) for seed in seeds])
    cpu = (meter.read_cpu_seconds(peer.pid) - before) / tally.done * 1000
    where = f"{at_once} conversation{'s' if at_once > 1 else ''} of {TURNS} turns"
    into.add(f"first byte, {where}, p50 ms", peer.name, statistics.median(tally.first_ms))
    if at_once == 1:  # so that the answers are in the order of the turns
        with_image = set(choose_turns_with_images(random.Random(seeds[0])))
        new = [first for turn, first in enumerate(tally.first_ms) if turn in with_image]
        known = [first for turn, first in enumerate(tally.first_ms) if turn not in with_image]
        into.add("… of turns with a new screenshot, p50 ms", peer.name, statistics.median(new))
        into.add("… of the others, p50 ms", peer.name, statistics.median(known))
    into.add(f"first byte, {where}, p99 ms", peer.name, _compute_p99(tally.first_ms))
    into.add(f"pause between two chunks, {where}, p99 ms", peer.name, _compute_p99(tally.pauses_ms))
    into.add(f"longest pause of a stream, {where}, p99 ms", peer.name, _compute_p99(tally.longest_ms))
    into.add(f"CPU ms per request, {where}", peer.name, cpu)
    into.add(f"memory after {where}, MB", peer.name, meter.read_resident_mb(peer.pid))


def _compute_p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def _measure_blocking(peer: peers.Peer, name: str, body: Path, small: bytes, into: Measured) -> None:
    """Send small requests while another client sends a large body over and over; it may be refused."""
    with proxy.send_meanwhile(peer, body):
        tally = load.drive(peer.port, _build_requests(peer, [small]), 1, 10**6, BLOCKING_SECONDS)
    into.add(f"first byte, 2 KB, while {name} is read, p50 ms", peer.name, statistics.median(tally.first_ms))
    into.add(f"first byte, 2 KB, while {name} is read, p99 ms", peer.name, _compute_p99(tally.first_ms))


def _measure_growth(peer: peers.Peer, into: Measured) -> None:
    shapes = [(f"{count} messages", build_long_body(count, 0)) for count in MESSAGES]
    shapes += [(_name_images(count), build_long_body(16, count)) for count in PICTURES]
    for name, body in shapes:
        requests = _build_requests(peer, [body])
        load.drive(peer.port, requests, 1, 3)
        before = meter.read_cpu_seconds(peer.pid)
        load.drive(peer.port, requests, 1, REPEATS)
        cpu = (meter.read_cpu_seconds(peer.pid) - before) / REPEATS * 1000
        into.add(f"CPU ms per request, {name}", peer.name, cpu)


def _name_images(count: int) -> str:
    return f"{count} image{'s' if count > 1 else ''} of 200 KB"


def _run_round(number: int, running: list[peers.Peer], files: dict[str, Path], into: Measured) -> None:
    seeds = range(number * 100, number * 100 + max(AT_ONCE))
    conversations = {seed: build_conversation(seed) for seed in seeds}
    small = bodies.build_text_body()
    for at_once in AT_ONCE:
        for peer in running:
            _measure_conversations(peer, at_once, conversations, into)
    for name, file in files.items():
        for peer in running:
            if peer.name != "sink":
                _measure_blocking(peer, name, file, small, into)
    for peer in running:
        _measure_growth(peer, into)


def run(rounds: int, out: Path) -> None:
    """Replay the conversations through each peer in turn, and write the table, the figures and the plot."""
    into = Measured()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sightline-replay-")))
        for name in ("sink", *NAMES):
            (folder / name).mkdir()
        sink = peers.start_scripted_upstream(stack, folder / "sink", events=EVENTS)
        upstream = peers.Upstream(sink.port)
        running = [sink, *(peers.PEERS[name](stack, folder / name, upstream) for name in NAMES)]
        large, hostile = folder / "large", folder / "hostile"
        large.write_bytes(bodies.build_image_body(20, seed=20))
        hostile.write_bytes(b'{"model":"%s","messages":[],"n":[%s0]}' % (bodies.MODEL.encode(), b"1," * HOSTILE))
        files = {"a body of 20 MB": large, f"a body of {HOSTILE:,} integers": hostile}
        for number in range(rounds):
            print(f"bench: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            _run_round(number, running, files, into)
    figures = into.medians()
    text = _write_table(figures)
    print(f"\n{text}")
    out.parent.mkdir(parents=True, exist_ok=True)
    facts = {"machine": report.describe_machine(), "rounds": rounds, "figures": figures}
    out.write_text(json.dumps(facts, indent=2) + "\n")
    out.with_suffix(".md").write_text(report.write_introduction(rounds) + text)
    if out.parent == HERE / "results":
        _draw_growth(figures)


def _write_table(figures: dict[str, dict[str, float]]) -> str:
    lines = ["| | direct | nginx | Sightline | added by nginx | added by Sightline |", "|---|---|---|---|---|---|"]
    for name, by in figures.items():
        direct = by.get("sink")
        is_latency = not name.startswith(("CPU", "memory"))
        shown = direct if is_latency else None
        cells = [f"{value:.3g}" if value is not None else "–" for value in (shown, by["nginx"], by["sightline"])]
        added = [f"{by[peer] - shown:.3g}" if shown is not None else "–" for peer in NAMES]
        lines.append(f"| {name} | {' | '.join([*cells, *added])} |")
    return "\n".join(lines) + "\n"


def _draw_growth(figures: dict[str, dict[str, float]]) -> None:
    """Write the picture of docs/performance.md."""
    panels = [
        ("messages without images", [(count, f"CPU ms per request, {count} messages") for count in MESSAGES]),
        (
            "known images of 200 KB",
            [(count, f"CPU ms per request, {_name_images(count)}") for count in PICTURES],
        ),
    ]
    drawn = [
        plot.Panel(
            title,
            "CPU ms per request",
            {peer: [(count, figures[name][peer]) for count, name in rows] for peer in NAMES},
        )
        for title, rows in panels
    ]
    PLOT.write_text(plot.draw_panels(drawn))
