"""Count the bytecodes that the proxy runs for a request: bytecodes.py ROW.

Unlike CPU times, they are nearly the same in each run, however busy the machine is. The proxy is run by this program,
too, with `serve` as its first argument: a signal lets it count from zero, and another one write what it has counted.
"""

import argparse
import json
import os
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
import peers
import tool_loop

COUNT = 50  # requests that are counted
WARM_UP, PAUSE = 20, 1.5  # requests before them, twice; seconds until receipts are written
OUT = "BYTECODES_OUT"  # the variable that names the file for the counts
SHOWN = 40  # functions
TOOLS_OFF = {"SIGHTLINE_MODELS": tool_loop.BLIND, "SIGHTLINE_TOOL": "off"}
ROWS = ("2k", "200k", "400k", "5m", "20m", "tools-off", "tools-on")


def _build_row(row: str) -> tuple[bytes, dict[str, str]]:
    """Return the body of the requests of a row, and the settings of the proxy."""
    if row.startswith("tools"):
        tool = {"SIGHTLINE_TOOL": "auto"} if row == "tools-on" else {}
        return tool_loop.build_body(1, stream=False), TOOLS_OFF | tool
    if row == "2k":
        return bodies.build_text_body(), {}
    if row.endswith("m"):
        return bodies.build_image_body(int(row[:-1]), 7), {}
    return bodies.build_image_body(int(row[:-1]) // 200, 7, bodies.SMALL_EDGE), {}


def _serve() -> int:
    """Run `sightline` with the arguments of this program, and count what it runs between two signals."""
    from sightline.cli.main import main

    counts: Counter[CodeType] = Counter()
    is_counting = False

    def count(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            counts[frame.f_code] += 1
        return count

    def enter(frame: FrameType, _: str, __: Any) -> Any:
        if not is_counting:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return count

    def begin(*_: object) -> None:
        nonlocal is_counting
        counts.clear()
        is_counting = True

    def end(*_: object) -> None:
        nonlocal is_counting
        is_counting = False
        _write_counts(counts.copy(), Path(os.environ[OUT]))  # not counted any more, as it is called after the end

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    threading.settrace(enter)
    sys.settrace(enter)
    return main()


def _write_counts(counts: Counter[CodeType], out: Path) -> None:
    by_name: Counter[str] = Counter()  # generated functions, such as constructors, share their names
    for code, number in counts.items():
        by_name[f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}"] += number
    part = out.with_suffix(".part")
    part.write_text(json.dumps(by_name))
    part.rename(out)


def measure(row: str) -> dict[str, float]:
    """Return the bytecodes for a request, by function."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sightline-bytecodes-")))
        body, settings = _build_row(row)
        out = folder / "counts.json"
        sink = peers.start_scripted_upstream(stack, folder)
        env = {**settings, OUT: str(out)}
        program = (sys.executable, str(Path(__file__).resolve()))
        peer = peers.start_sightline(stack, folder, peers.Upstream(sink.port), env=env, program=program)
        requests = [load.build_request(peer.port, "/v1/chat/completions", [], body)]
        for _ in range(2):
            load.drive(peer.port, requests, 1, WARM_UP)
            time.sleep(PAUSE)
        os.kill(peer.pid, signal.SIGUSR1)
        load.drive(peer.port, requests, 1, COUNT)
        time.sleep(PAUSE)
        os.kill(peer.pid, signal.SIGUSR2)
        deadline = time.monotonic() + 10
        while not out.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return {name: number / COUNT for name, number in json.loads(out.read_text()).items()}


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
