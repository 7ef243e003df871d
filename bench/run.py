"""Runs the benchmarks: python bench/run.py [proxy | legibility | pixels] [--rounds N] [--quick] [--json FILE]."""

import argparse
from pathlib import Path

import legibility
import peers
import pixels
import proxy

RESULTS = Path(__file__).resolve().parent / "results"


def main() -> None:
    about = f"proxy: {proxy.__doc__} legibility: {legibility.__doc__} pixels: {pixels.__doc__}"
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("benchmark", nargs="?", choices=["proxy", "legibility", "pixels"], default="proxy")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds; the median is reported (5)")
    parser.add_argument("--json", type=Path, help="the figures (results/…); the table goes beside it as .md")
    parser.add_argument("--without", action="append", default=[], choices=list(peers.PEERS), help="leave a peer out")
    parser.add_argument("--quick", action="store_true", help="legibility: one seed instead of five")
    parser.add_argument("--only", default="", help="legibility: pages whose name holds this")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be 1 or more")
    file = args.json or RESULTS / f"{args.benchmark}.json"
    if args.benchmark == "legibility":
        legibility.run(1 if args.quick else 5, file, args.only)
    elif args.benchmark == "pixels":
        pixels.run(args.rounds, file)
    else:
        proxy.run(args.rounds, [name for name in peers.PEERS if name not in args.without], file)


if __name__ == "__main__":
    main()
