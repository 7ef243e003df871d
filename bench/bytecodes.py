"""Count the bytecodes that the proxy runs for a request, and those that rewrite a body: bytecodes.py [ROW].

Unlike CPU times, they are nearly the same in each run, however busy the machine is. The proxy is run by this program,
too, with `serve` as its first argument: a signal lets it count from zero, and another one write what it has counted.
"""

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import bodies
import load
import pages_of_results
import peers
import tool_loop
import wires

from sightline.model.facts import Retention, Rules
from sightline.model.profile import Profile

COUNT, STREAMS = 50, 8  # requests that are counted, and streams
WARM_UP, PAUSE = 20, 1.5  # requests before them, twice; seconds until receipts are written
OUT = "BYTECODES_OUT"  # the variable that names the file for the counts
SHOWN = 40  # functions
TOOLS_OFF = {"SIGHTLINE_MODELS": tool_loop.BLIND, "SIGHTLINE_TOOL": "off"}
TOOLS_ON = {"SIGHTLINE_MODELS": tool_loop.BLIND, "SIGHTLINE_TOOL": "auto"}
ROWS = {
    "2k": "2 KB",
    "tools-off": "2 KB, blind model",
    "tools-on": "… with our tools",
    "stream-off": "stream, blind model",
    "stream-on": "… with our tools",
    "200k": "200 KB",
    "400k": "400 KB, 2 images",
    "read": "200 KB, read by a tool",
    "5m": "5 MB",
    "20m": "20 MB",
}
BODY_MB, BODY_IMAGES = 20, 128  # of the bodies that are rewritten, each image in four messages
PACKAGE = re.compile(r"/src/sightline/((?:surfaces/)?\w+)")
MODULE = re.compile(r"/src/sightline/([\w/]+)\.py")
LEAST = 20  # bytecodes of what has a row of its own
Bytecodes = dict[str, dict[str, float]]  # by row, and by package or module


class BytecodeCounter:
    """Counts the bytecodes of all functions that are entered while it is on."""

    def __init__(self) -> None:
        self.counts: Counter[CodeType] = Counter()
        self.is_counting = False

    def enter(self, frame: FrameType, _: str, __: Any) -> Any:
        if not self.is_counting:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._count

    def _count(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self.counts[frame.f_code] += 1
        return self._count

    def name_functions(self) -> dict[str, int]:
        """Return the counts by function; generated ones, such as constructors, share their names."""
        by_name: Counter[str] = Counter()
        for code, number in self.counts.copy().items():
            by_name[f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}"] += number
        return by_name


def _build_row(row: str) -> tuple[bytes, dict[str, str]]:
    """Return the body of the requests of a row, and the settings of the proxy."""
    kind, _, tools = row.partition("-")
    if tools:
        return tool_loop.build_body(1, stream=kind == "stream"), TOOLS_ON if tools == "on" else TOOLS_OFF
    if row == "2k":
        return bodies.build_text_body(), {}
    if row == "read":
        return bodies.build_read_image_body(7), {}
    if row.endswith("m"):
        return bodies.build_image_body(int(row[:-1]), 7), {}
    return bodies.build_image_body(int(row[:-1]) // 200, 7, bodies.SMALL_EDGE), {}


def _serve() -> int:
    """Run `sightline` with the arguments of this program, and count what it runs between two signals."""
    from sightline.cli.main import main

    counter = BytecodeCounter()

    def begin(*_: object) -> None:
        counter.counts.clear()
        counter.is_counting = True

    def end(*_: object) -> None:
        counter.is_counting = False
        out = Path(os.environ[OUT])
        part = out.with_suffix(".part")
        part.write_text(json.dumps(counter.name_functions()))
        part.rename(out)

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    threading.settrace(counter.enter)
    sys.settrace(counter.enter)
    return main()


def measure(row: str) -> dict[str, float]:
    """Return the bytecodes for a request, by function."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sightline-bytecodes-")))
        body, settings = _build_row(row)
        warm_up, count = (2, STREAMS) if row.startswith("stream") else (WARM_UP, COUNT)
        out = folder / "counts.json"
        sink = peers.start_scripted_upstream(stack, folder)
        env = {**settings, OUT: str(out)}
        program = (sys.executable, str(Path(__file__).resolve()))
        peer = peers.start_sightline(stack, folder, peers.Upstream(sink.port), env=env, program=program)
        requests = [load.build_request(peer.port, "/v1/chat/completions", [], body)]
        for _ in range(2):
            load.drive(peer.port, requests, 1, warm_up)
            time.sleep(PAUSE)
        os.kill(peer.pid, signal.SIGUSR1)
        load.drive(peer.port, requests, 1, count)
        time.sleep(PAUSE)
        os.kill(peer.pid, signal.SIGUSR2)
        deadline = time.monotonic() + 10
        while not out.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return {name: number / count for name, number in json.loads(out.read_text()).items()}


def measure_rewriting() -> Bytecodes:
    """Return the bytecodes for an image and the four messages around it, by wire and module."""
    counted = {}
    for name, wire, make, placement, sizes in wires.CASES:
        if (BODY_MB * wires.MB, BODY_IMAGES) not in sizes:
            continue
        body = make(BODY_MB * wires.MB, BODY_IMAGES)
        profile = Profile("up", wire.name, "m", vision=True, tool_images=placement)
        rules = Rules(profile, retention=Retention(is_off=True))
        wires.handle_body(body, wire, rules)
        counter = BytecodeCounter()
        counter.is_counting = True
        sys.settrace(counter.enter)
        wires.handle_body(body, wire, rules)
        sys.settrace(None)
        per_image = {function: number / BODY_IMAGES for function, number in counter.name_functions().items()}
        counted[name] = group_functions(per_image, MODULE)
    return counted


def group_functions(functions: dict[str, float], place: re.Pattern[str]) -> dict[str, float]:
    """Return the bytecodes by the package or module of functions."""
    groups: Counter[str] = Counter()
    for name, number in functions.items():
        found = place.search(name)
        group = "constructors of values" if name.startswith("<string>") else "other code"
        groups[found[1] if found else group] += number  # type: ignore[assignment]  # typeshed has only integers
    return {name: round(number, 1) for name, number in groups.most_common()}


def run(out: Path) -> None:
    """Count all rows, and write them into docs/performance.md."""
    counted = {"requests": {row: group_functions(measure(row), PACKAGE) for row in ROWS}}
    counted["rewriting"] = measure_rewriting()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(counted, indent=1) + "\n")
    parts = render_parts(counted)
    out.with_suffix(".md").write_text("<!-- Generated by bench/run.py. -->\n\n" + "\n".join(parts.values()))
    print("\n".join(parts.values()))
    if out.parent == Path(__file__).resolve().parent / "results":
        for name, text in parts.items():
            pages_of_results.write_part(pages_of_results.PERFORMANCE, name, text)


def render_parts(counted: dict[str, Bytecodes]) -> dict[str, str]:
    """Return the generated parts of docs/performance.md by their names."""
    requests = [(ROWS[row], counts) for row, counts in counted["requests"].items()]
    return {
        "bytecodes": _write_table("bytecodes for a request", requests),
        "bytecodes: rewriting": _write_table(
            "bytecodes for an image and four messages", list(counted["rewriting"].items())
        ),
    }


def _write_table(head: str, columns: list[tuple[str, dict[str, float]]]) -> str:
    most: Counter[str] = Counter()
    for _, counts in columns:
        most |= Counter({group: round(number) for group, number in counts.items()})
    groups = [group for group, number in most.most_common() if number >= LEAST]
    lines = [f"| {head} | {' | '.join(name for name, _ in columns)} |", "|---|" + "---|" * len(columns)]
    lines += [
        f"| {group} | {' | '.join(f'{counts.get(group, 0):,.0f}' for _, counts in columns)} |" for group in groups
    ]
    lines.append(f"| all | {' | '.join(f'{sum(counts.values()):,.0f}' for _, counts in columns)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("row", choices=ROWS)
    counts = measure(parser.parse_args().row)
    print(f"{sum(counts.values()):,.0f} bytecodes for a request")
    for name, number in sorted(counts.items(), key=lambda each: -each[1])[:SHOWN]:
        print(f"{number:8.1f}  {name.rpartition('/sightline/')[2]}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        sys.exit(_serve())
    main()
