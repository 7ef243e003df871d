"""Agents that are pointed by variables or a folder of their own, and programs that nobody knows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sightline.cli.launch.projects import (
    NETWORK,
    Steering,
    refuse,
    say_ignored,
    settings_that_steer,
    variables_that_steer,
)
from sightline.cli.launch.started import (
    FILES,
    Launch,
    Place,
    address_of,
    behind,
    merged,
    of_project,
    options,
    part,
    version_for,
    without,
)
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_ANTHROPIC = "ANTHROPIC_BASE_URL"
_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_KEYED = ("", "gemini-api-key", "gateway")
_LOGINS = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")
_COMPATIBLE = "openai-compatible"
_GEMINI_RECORD = "GEMINI_CLI_TRUSTED_FOLDERS_PATH"
_OF_GEMINI = Path(".gemini/settings.json")
_GEMINI_STEERS = ("security.auth", "selectedAuthType", "telemetry", "proxy")
_GEMINI_STEERING = re.compile(rf"{NETWORK}|(?:GEMINI|GOOGLE|CODE_ASSIST)_(?!MODEL\Z)\w+", re.IGNORECASE)
_GEMINI_ALWAYS = re.compile("GEMINI_API_KEY|GOOGLE_API_KEY|GOOGLE_CLOUD_PROJECT|GOOGLE_CLOUD_LOCATION")
_COPY = "Cline works on a copy of its data folder; its history of this run is not kept"
_CLINE_STEERING = re.compile(rf"{NETWORK}|CLINE_\w+", re.IGNORECASE)
# It reads them all wherever it starts, whichever of them are there.
_CLINE_FILES = (".env", *(f".env{mode}" for mode in (".development", ".production", ".test")), ".env.local")


def gemini(argv: Sequence[str], place: Place) -> Launch | Refusal:
    """Its variable changes how it logs in, unless a login of the user's is saved: then it gets one for this run."""
    variable, saved = "GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_HOME"
    home = Path(place.env.get(saved) or place.home)
    settings = place.json(home / ".gemini" / "settings.json")
    login = gemini_login(place)
    if login not in _KEYED:
        return Refusal(
            "unsupported_type",
            f"Gemini CLI is logged in by {login}, which nothing can point elsewhere",
            "choose an API key with /auth in it, or unset the variable that says otherwise",
        )
    recorded = place.trusts(Path(place.env.get(_GEMINI_RECORD) or home / ".gemini" / "trustedFolders.json"))
    nearest, is_own = _gemini_dotenv(place, home, reads=recorded or _skips_trust(argv, place, settings))
    steering = [] if recorded else [*_gemini_steering(argv, place, settings, None if is_own else nearest)]
    ignorable = all(each.file == nearest for each in steering)  # its settings of the project cannot be switched off
    if steering and not (place.flagged and ignorable):
        trust = "start gemini in this folder, trust it when it asks or with /permissions, and repeat"
        return refuse("Gemini CLI", steering, trust, ignorable=ignorable)
    dotenv = place.dotenv(nearest if recorded or is_own else home / ".gemini" / ".env")
    own = place.env.get(variable)
    said = own if own is not None else dotenv.get(variable, "")
    formerly = behind(said)
    note = say_ignored("Gemini CLI", steering)
    if own is None and recorded and not is_own:
        note = of_project(formerly, str(nearest))
    # What the environment sets, if only to nothing, is not taken from a file.
    theirs = place.dotenv(home / ".gemini" / ".env")
    ignored = {each.setting: theirs.get(each.setting, "") for each in steering}
    env = {**place.env, **ignored, variable: place.address}
    taken: Mapping[WireName, str] = {"gemini": formerly} if formerly else {}
    if login:
        return Launch(tuple(argv), env, taken, note=note)
    copied = merged(settings, {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    files = {".gemini/settings.json": json.dumps(copied)}
    alone = "no login of Gemini CLI is saved: it runs by GEMINI_API_KEY, with a history of this run alone"
    return Launch(tuple(argv), {**env, saved: FILES}, taken, files=files, note="; ".join(filter(None, (note, alone))))


def gemini_login(place: Place) -> str:
    """How Gemini CLI logs in: what it has saved, else what the environment asks for; empty: nothing of the kind."""
    home = Path(place.env.get("GEMINI_CLI_HOME") or place.home)
    saved = part(place.json(home / ".gemini" / "settings.json"), "security", "auth").get("selectedType")
    return str(saved or next((name for name in _LOGINS if place.env.get(name) == "true"), ""))


def _gemini_dotenv(place: Place, home: Path, *, reads: bool) -> tuple[Path, bool]:
    """The one file of variables that it reads, and whether that is the user's own; `reads`: it trusts the project."""
    own = (home / ".gemini" / ".env", home / ".env")
    names = (".gemini/.env", ".env") if reads else (".env",)
    files = [*(folder / name for folder in place.above for name in names), *own]
    nearest = next((file for file in files if place.read(file) is not None), own[0])
    homes = {folder for folder in (home, place.home, place.real_home) if folder is not None}
    return nearest, nearest in own or nearest in {
        folder / name for folder in homes for name in (".gemini/.env", ".env")
    }


def _skips_trust(argv: Sequence[str], place: Place, settings: Mapping[str, object]) -> bool:
    """Whether Gemini CLI believes every project, without a record of trust."""
    told = place.env.get("GEMINI_CLI_TRUST_WORKSPACE") == "true" or "--skip-trust" in argv
    return told or part(settings, "security", "folderTrust").get("enabled") is False


def _gemini_steering(
    argv: Sequence[str], place: Place, settings: Mapping[str, object], dotenv: Path | None
) -> Iterator[Steering]:
    """What a project that is not trusted says about where keys and images go; keys of a `.env` count in any."""
    reads = _skips_trust(argv, place, settings)
    if reads and not place.at_home:
        text = place.read(place.folder / _OF_GEMINI) or ""
        yield from settings_that_steer(_OF_GEMINI, text, _GEMINI_STEERS)
    if dotenv is not None:
        yield from variables_that_steer(place, dotenv, _GEMINI_STEERING if reads else _GEMINI_ALWAYS)


def cline(argv: Sequence[str], place: Place) -> Launch | Refusal:
    """It reads its provider from its data folder alone: it gets a copy of its settings, pointed here.

    It also takes variables from the `.env` files of the folder where it starts, and keeps no record of trusted ones.
    """
    given = next(options(argv, "--data-dir"), "")
    home = place.folder / given if given else place.home / ".cline" / "data"
    settings = place.json(home / "settings" / "providers.json")
    own = part(settings, "providers", _COMPATIBLE, "settings")
    last = settings.get("lastUsedProvider") or _COMPATIBLE
    if own and last != _COMPATIBLE:
        return Refusal(
            "unsupported_type",
            f"Cline asks {last} now, which cannot be pointed elsewhere",
            "cline auth -p openai -k KEY -m MODEL -b ADDRESS makes it ask an OpenAI-compatible one",
        )
    if not own:
        return Refusal(
            "unsupported_type",
            "Cline has no OpenAI-compatible provider, and no other can be pointed elsewhere",
            "cline auth -p openai -k KEY -m MODEL -b ADDRESS gives it one",
        )
    files = () if place.at_home else map(Path, _CLINE_FILES)
    steering = [each for file in files for each in variables_that_steer(place, file, _CLINE_STEERING)]
    if steering and not place.flagged:
        return refuse("Cline", steering, f"set {steering[0].setting} yourself in the environment")
    formerly = address_of(own.get("baseUrl"))
    base = place.address + ("/v1" if place.flagged else version_for(formerly, "/v1"))
    pointed = {"providers": {_COMPATIBLE: {"settings": {"baseUrl": base}}}}
    rest = without(argv, "--data-dir")[1:]
    return Launch(
        (argv[0], "--data-dir", FILES, *rest),
        {**place.env, **{each.setting: "" for each in steering}},
        {"openai_chat": formerly} if formerly else {},
        files={"settings/providers.json": json.dumps(merged(settings, pointed))},
        note="; ".join(filter(None, (say_ignored("Cline", steering), _COPY))),
    )


def unknown(argv: Sequence[str], place: Place) -> Launch:
    """Most programs read one of these; whoever ignores them is not helped, and is told so."""
    openai = behind(next((place.env[variable] for variable in _OPENAI if place.env.get(variable)), ""))
    found: dict[WireName, str] = {
        "anthropic": behind(place.env.get(_ANTHROPIC, "")),
        **dict.fromkeys(("openai_chat", "openai_responses"), openai),
    }
    base = place.address + ("/v1" if place.flagged else version_for(openai, "/v1"))
    pointed = {_ANTHROPIC: place.address, **dict.fromkeys(_OPENAI, base)}
    return Launch(
        tuple(argv),
        {**place.env, **pointed},
        {api: url for api, url in found.items() if url},
        note=f"{Path(argv[0]).name} is pointed here by {', '.join(pointed)};"
        " if it reads none of them, nothing changes for it",
    )
