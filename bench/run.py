"""Runs the benchmarks: python bench/run.py [proxy] [--rounds N] [--json FILE]."""

import argparse
from pathlib import Path

import peers
import proxy

RESULTS = Path(__file__).resolve().parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=proxy.__doc__)
    parser.add_argument("benchmark", nargs="?", choices=["proxy"], default="proxy")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds; the median is reported (5)")
    parser.add_argument(
        "--json",
        type=Path,
        default=RESULTS / "proxy.json",
        help="the figures; the table goes beside it as .md",
    )
    parser.add_argument("--without", action="append", default=[], choices=list(peers.PEERS), help="leave a peer out")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be 1 or more")
    proxy.run(args.rounds, [name for name in peers.PEERS if name not in args.without], args.json)


if __name__ == "__main__":
    main()
