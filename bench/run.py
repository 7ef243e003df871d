"""Run the benchmarks.

python bench/run.py [BENCHMARK] [--rounds N] [--quick] [--json FILE]

BENCHMARK is one of proxy, mcp, acp, pixels, wires, retention, seers, legibility, ocr, charts,
loop, render, replay, profile, bytecodes, soak, scale, real, pages, inspector, and all.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import acp
import bytecodes
import charts
import cpu_profile
import inspector
import legibility
import mcp_server
import ocr
import peers
import pixels
import proxy
import real
import real_pages
import render
import replay
import retention
import scale
import seers
import soak
import svg_corpus
import tool_loop
import wires

RESULTS = Path(__file__).resolve().parent / "results"
BENCHMARKS = (
    "proxy",
    "mcp",
    "acp",
    "pixels",
    "wires",
    "retention",
    "seers",
    "legibility",
    "ocr",
    "charts",
    "loop",
    "render",
    "replay",
    "profile",
    "bytecodes",
    "soak",
    "scale",
    "real",
    "pages",
    "inspector",
)


def main() -> None:
    benchmarks = (
        proxy, mcp_server, acp, pixels, wires, retention, seers, legibility, ocr, charts, tool_loop,
        render, replay, cpu_profile, bytecodes, soak, scale, real, real_pages, inspector,
    )  # fmt: skip
    about = " ".join(f"{each.__name__}: {each.__doc__}" for each in benchmarks)
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("benchmark", nargs="?", choices=[*BENCHMARKS, "all"], default="all")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds; the median is reported (5)")
    parser.add_argument("--json", type=Path, help="the figures (results/…); the table goes beside it as .md")
    parser.add_argument("--without", action="append", default=[], choices=list(peers.PEERS), help="leave a peer out")
    parser.add_argument("--quick", action="store_true", help="one seed, or round, instead of several")
    parser.add_argument("--corpus", type=Path, help="render: only compare SVGs of a folder with name.png beside each")
    parser.add_argument(
        "--only", default="", help="legibility, ocr: pages whose name holds this; soak, real: this part"
    )
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be 1 or more")
    if args.corpus:
        if args.benchmark != "render":
            parser.error("--corpus is for the benchmark render")
        svg_corpus.run(args.corpus, args.json)
        return
    if args.json and args.benchmark == "all":
        parser.error("--json needs one benchmark")
    for name in BENCHMARKS if args.benchmark == "all" else [args.benchmark]:
        run_benchmark(name, args)


def run_benchmark(name: str, args: argparse.Namespace) -> None:
    file = args.json or RESULTS / f"{name}.json"
    rounds, seeds = 1 if args.quick else args.rounds, 1 if args.quick else 5
    runs: dict[str, Callable[[], None]] = {
        "proxy": lambda: proxy.run(rounds, [p for p in peers.PEERS if p not in args.without], file, quick=args.quick),
        "mcp": lambda: mcp_server.run(rounds, file),
        "acp": lambda: acp.run(rounds, file),
        "pixels": lambda: pixels.run(args.rounds, file),
        "wires": lambda: wires.run(rounds, file),
        "retention": lambda: retention.run(1 if args.quick else retention.SEEDS, file),
        "seers": lambda: seers.run(args.rounds, file),
        "legibility": lambda: legibility.run(seeds, file, args.only),
        "ocr": lambda: ocr.run(seeds, file, args.only),
        "charts": lambda: charts.run(seeds, file),
        "loop": lambda: tool_loop.run(rounds, file),
        "render": lambda: render.run(rounds, file),
        "replay": lambda: replay.run(rounds, file),
        "profile": lambda: cpu_profile.run(file),
        "bytecodes": lambda: bytecodes.run(file),
        "soak": lambda: soak.run(file, quick=args.quick, only=args.only),
        "scale": lambda: scale.run(file, quick=args.quick),
        "real": lambda: real.run(file, args.only, rivals=not args.quick),
        "pages": lambda: real_pages.run(file),
        "inspector": lambda: inspector.run(rounds, file),
    }
    runs[name]()


if __name__ == "__main__":
    main()
