"""Runs the benchmarks.

python bench/run.py [BENCHMARK] [--rounds N] [--quick] [--json FILE]

BENCHMARK is one of proxy, pixels, wires, retention, seers, legibility, ocr, charts, questions, everyday, loop, all.
"""

import argparse
from pathlib import Path

import charts
import everyday
import legibility
import loop
import ocr
import peers
import pixels
import proxy
import questions
import retention
import seers
import wires

RESULTS = Path(__file__).resolve().parent / "results"
BENCHMARKS = (
    "proxy",
    "pixels",
    "wires",
    "retention",
    "seers",
    "legibility",
    "ocr",
    "charts",
    "questions",
    "everyday",
    "loop",
)


def main() -> None:
    benchmarks = (proxy, pixels, wires, retention, seers, legibility, ocr, charts, questions, everyday, loop)
    about = " ".join(f"{each.__name__}: {each.__doc__}" for each in benchmarks)
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("benchmark", nargs="?", choices=[*BENCHMARKS, "all"], default="all")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds; the median is reported (5)")
    parser.add_argument("--json", type=Path, help="the figures (results/…); the table goes beside it as .md")
    parser.add_argument("--without", action="append", default=[], choices=list(peers.PEERS), help="leave a peer out")
    parser.add_argument("--quick", action="store_true", help="one seed, or round, instead of several")
    parser.add_argument("--only", default="", help="legibility, ocr: pages whose name holds this")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be 1 or more")
    if args.json and args.benchmark == "all":
        parser.error("--json needs one benchmark")
    for name in BENCHMARKS if args.benchmark == "all" else [args.benchmark]:
        one(name, args)


def one(name: str, args: argparse.Namespace) -> None:
    file = args.json or RESULTS / f"{name}.json"
    match name:
        case "legibility":
            legibility.run(1 if args.quick else 5, file, args.only)
        case "ocr":
            ocr.run(1 if args.quick else 5, file, args.only)
        case "charts":
            charts.run(1 if args.quick else 5, file)
        case "questions":
            questions.run(file)
        case "everyday":
            everyday.run(file)
        case "pixels":
            pixels.run(args.rounds, file)
        case "wires":
            wires.run(args.rounds, file)
        case "seers":
            seers.run(args.rounds, file)
        case "loop":
            loop.run(args.rounds, file)
        case "retention":
            retention.run(1 if args.quick else retention.SEEDS, file)
        case _:
            named = [peer for peer in peers.PEERS if peer not in args.without]
            proxy.run(1 if args.quick else args.rounds, named, file, quick=args.quick)


if __name__ == "__main__":
    main()
