"""What the relay between an editor and its agent costs: a line that it does not edit, a long line, and its start."""

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

RELAY = (str(Path(sys.executable).with_name("sightline")), "acp", "--", "cat")
CATS = ("sh", "-c", "cat | cat | cat")  # the relay's two ways and the agent between them
LINES, LONG = 400, 10 * 1024 * 1024
UPDATE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"x":"%s"}}}\n'
SHORT_LINE = UPDATE % (b"a" * 900)
LONG_LINE = b'{"jsonrpc":"2.0","id":1,"method":"_long","params":{"text":"' + b"a" * LONG + b'"}}\n'
TARGETS = {"added_ms": 1.0, "times_cat": 1.2, "start_ms": 100.0}
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
AGENT = """
import sys
for line in sys.stdin:
    print('{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}', flush=True)
"""


def run(rounds: int, file: Path) -> None:
    latency: dict[str, list[float]] = {"relay": [], "cat": []}
    long: dict[str, list[float]] = {"relay": [], "cat": []}
    for _ in range(rounds):
        for name, command in (("relay", RELAY), ("cat", CATS)):
            with Echo(command) as echo:
                latency[name].append(statistics.median(echo.measure_round_trip(SHORT_LINE) for _ in range(LINES)))
                long[name].append(min(echo.measure_round_trip(LONG_LINE) for _ in range(5)))
    figures = {
        "added_ms": (statistics.median(latency["relay"]) - statistics.median(latency["cat"])) * 1000,
        "times_cat": statistics.median(long["relay"]) / statistics.median(long["cat"]),
        "long_ms": statistics.median(long["relay"]) * 1000,
        "long_cat_ms": statistics.median(long["cat"]) * 1000,
        "start_ms": statistics.median(_start(RELAY, SHORT_LINE) for _ in range(rounds)) * 1000,
        "introduced_ms": statistics.median(
            _start((*RELAY[:-1], sys.executable, "-c", AGENT), HELLO) for _ in range(rounds)
        )
        * 1000,
    }
    file.write_text(json.dumps(figures, indent=2) + "\n")
    text = write_table(figures)
    file.with_suffix(".md").write_text(text)
    print(text)


class Echo:
    """A command that gives back every line."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.measure_round_trip(SHORT_LINE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def measure_round_trip(self, line: bytes) -> float:
        assert self._process.stdin
        assert self._process.stdout
        start = time.perf_counter()
        write: Callable[[], object] = lambda: _write_all(self._process.stdin, line)  # noqa: E731
        writing = threading.Thread(target=write) if len(line) > 4096 else None
        if writing:
            writing.start()
        else:
            write()
        left = len(line)
        while left:
            left -= len(self._process.stdout.read(1 << 20))
        taken = time.perf_counter() - start
        if writing:
            writing.join()
        return taken


def _write_all(pipe: object, line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[pipe.write(left) :]  # type: ignore[attr-defined]


def _start(command: tuple[str, ...], line: bytes) -> float:
    """CPU seconds of the relay alone until its first line has come back."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    process.stdin.write(line)
    process.stdin.flush()
    process.stdout.readline()
    used = time.clock_gettime((~process.pid << 3) | 2)
    process.stdin.close()
    process.wait()
    return used


def write_table(figures: dict[str, float]) -> str:
    def judge(name: str, unit: str) -> str:
        met = "met" if figures[name] <= TARGETS[name] else "MISSED"
        return f"{figures[name]:.2f}{unit} | ≤ {TARGETS[name]:g}{unit}: {met}"

    took = f"{figures['long_ms']:.0f} and {figures['long_cat_ms']:.0f} ms"
    answered = f"{figures['introduced_ms']:.0f} ms | –"
    rows = [
        f"| a line that is not edited, there and back, beside `cat` in each way | {judge('added_ms', ' ms')} |",
        f"| a line of 10 MB, beside `cat` in each way ({took}) | {judge('times_cat', '×')} |",
        f"| CPU until the first line has come through | {judge('start_ms', ' ms')} |",
        f"| CPU until `initialize` is answered, with what this machine can do for images | {answered} |",
    ]
    return "\n".join(["| | Sightline | target |", "|---|---|---|", *rows]) + "\n"
