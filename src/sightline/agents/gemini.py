"""Gemini CLI: pointed by a variable, which wins over every file, but changes how it logs in unless a login is saved.

Of all files of variables it reads only the nearest. In a project that it does not trust, it takes keys from a `.env`
and nothing else; a flag, a variable or a setting of the user's makes it believe every project. Its record of trusted
folders is in trustedFolders.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.agents.agent import Agent, SetupRequest, Target
from sightline.agents.launch import FILES, Launch, Place, resolve_upstream, say_project_decides
from sightline.agents.projects import (
    CODE,
    NETWORK,
    Steering,
    refuse,
    say_ignored,
    settings_that_steer,
    variables_that_steer,
)
from sightline.agents.settings_files import get_object, merge
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_VARIABLE, _HOME = "GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_HOME"
_KEYED = ("", "gemini-api-key", "gateway")
_LOGINS = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")
_TRUST = "start gemini in this folder, trust it when it asks or with /permissions, and repeat"
_ALONE = "no login of Gemini CLI is saved: it runs by GEMINI_API_KEY, with a history of this run alone"
_OF_PROJECT = Path(".gemini/settings.json")
_DOTENVS = (".gemini/.env", ".env")
_STEERS = (*CODE, "security.auth", "selectedAuthType", "telemetry", "proxy")
_STEERING = re.compile(rf"{NETWORK}|(?:GEMINI|GOOGLE|CODE_ASSIST)_(?!MODEL\Z)\w+", re.IGNORECASE)
_ALWAYS_READ = re.compile("GEMINI_API_KEY|GOOGLE_API_KEY|GOOGLE_CLOUD_PROJECT|GOOGLE_CLOUD_LOCATION")


@dataclass(frozen=True, slots=True)
class _Files:
    """What it reads where it is started."""

    dotenv: Path  # the one file of variables that it reads
    is_own: bool  # which is the user's, and no project's
    recorded: bool  # its record trusts the folder
    steering: tuple[Steering, ...]  # what a project without such a record decides

    @property
    def ignorable(self) -> bool:
        """Whether all of it is in the file of variables: nothing switches off the settings of a project."""
        return all(each.file == self.dotenv for each in self.steering)


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    if (login := _find_login(place)) not in _KEYED:
        return Refusal(
            "unsupported_type",
            f"Gemini CLI is logged in by {login}, which nothing can point elsewhere",
            "choose an API key with /auth in it, or unset the variable that says otherwise",
        )
    files = _find_files(argv, place)
    if files.steering and not (place.flagged and files.ignorable):
        return refuse("Gemini CLI", files.steering, _TRUST, ignorable=files.ignorable)
    formerly, note = _find_upstream(place, files)
    # What the environment sets, if only to nothing, is not taken from a file.
    theirs = place.dotenv(_get_home(place) / _DOTENVS[0])
    ignored = {each.setting: theirs.get(each.setting, "") for each in files.steering}
    env = {**place.env, **ignored, _VARIABLE: place.address}
    taken: Mapping[WireName, str] = {"gemini": formerly} if formerly else {}
    if login:
        return Launch(tuple(argv), env, taken, note=note)
    copied = merge(_read_settings(place), {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    written = {".gemini/settings.json": json.dumps(copied)}
    notes = "; ".join(filter(None, (note, _ALONE)))
    return Launch(tuple(argv), {**env, _HOME: FILES}, taken, files=written, note=notes)


def _find_login(place: Place) -> str:
    """Return how Gemini CLI logs in: as saved, else as the environment says; empty: neither."""
    saved = get_object(_read_settings(place), "security", "auth").get("selectedType")
    return str(saved or next((name for name in _LOGINS if place.env.get(name) == "true"), ""))


def find_steering(argv: Sequence[str], place: Place) -> list[Steering]:
    """Return what a project without a record of trust says about where keys and images go."""
    return [*_find_files(argv, place).steering]


def _get_home(place: Place) -> Path:
    return Path(place.env.get(_HOME) or place.home)


def _read_settings(place: Place) -> dict[str, Any]:
    return place.json(_get_home(place) / ".gemini" / "settings.json")


def _find_upstream(place: Place, files: _Files) -> tuple[str, str]:
    """Return where it goes now, and the note about the project."""
    counts = files.recorded or files.is_own
    dotenv = place.dotenv(files.dotenv if counts else _get_home(place) / _DOTENVS[0])
    own = place.env.get(_VARIABLE)
    formerly = resolve_upstream(own if own is not None else dotenv.get(_VARIABLE, ""))
    if own is None and files.recorded and not files.is_own:
        return formerly, say_project_decides(formerly, str(files.dotenv))
    return formerly, say_ignored("Gemini CLI", files.steering)


def _find_files(argv: Sequence[str], place: Place) -> _Files:
    home = _get_home(place)
    record = place.env.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or home / ".gemini" / "trustedFolders.json"
    recorded, careless = place.trusts(Path(record)), _skips_trust(argv, place)
    names = _DOTENVS if recorded or careless else _DOTENVS[1:]
    files = [*(folder / name for folder in place.above for name in names), *(home / name for name in _DOTENVS)]
    dotenv = next((file for file in files if place.read(file) is not None), home / _DOTENVS[0])
    homes = [folder for folder in (home, place.home, place.real_home) if folder is not None]
    is_own = dotenv in {folder / name for folder in homes for name in _DOTENVS}
    found = () if recorded else _list_steering(place, None if is_own else dotenv, careless=careless)
    return _Files(dotenv, is_own, recorded, tuple(found))


def _skips_trust(argv: Sequence[str], place: Place) -> bool:
    """Return whether it believes every project, without a record of trust."""
    flagged = any(word.partition("=")[0] in ("--skip-trust", "--skipTrust") for word in argv)
    trusting = flagged or place.env.get("GEMINI_CLI_TRUST_WORKSPACE") == "true"
    return trusting or get_object(_read_settings(place), "security", "folderTrust").get("enabled") is False


def _list_steering(place: Place, dotenv: Path | None, *, careless: bool) -> Iterator[Steering]:
    """Yield what a project without a record of trust says about where keys and images go."""
    if careless and not place.at_home:
        yield from settings_that_steer(_OF_PROJECT, place.read(place.folder / _OF_PROJECT) or "", _STEERS)
    if dotenv is not None:
        yield from variables_that_steer(place, dotenv, _STEERING if careless else _ALWAYS_READ)


def choose_target(request: SetupRequest) -> Target | Refusal:
    started = request.agent.launch(["gemini"], request.place)
    if isinstance(started, Refusal):
        return started
    if not _find_login(request.place):
        return Refusal(
            "unsupported_type",
            "Gemini CLI has no saved login, and would stop with exit 41",
            "choose an API key with /auth in it first",
        )
    now = request.find_upstream(started.formerly.get("gemini", request.agent.usual.upstream))
    if request.upstream and request.upstream != now:
        return request.refuse_key("the key of Gemini CLI", now)
    return now if isinstance(now, Refusal) else Target(now)


AGENT = Agent(
    "gemini",
    "Gemini CLI",
    start=start,
    packages=("@google/gemini-cli",),
    find_steering=find_steering,
    choose_target=choose_target,
    mcp="gemini mcp add -s user sightline sightline mcp",
    point="GOOGLE_GEMINI_BASE_URL=$P/u/gemini gemini",
    once="GOOGLE_GEMINI_BASE_URL=$B gemini",
    file="~/.gemini/.env",
    moved=("GEMINI_CLI_HOME", ".gemini/.env"),
    lines="GOOGLE_GEMINI_BASE_URL=$B",
    usual=Target("gemini"),
    note="Needs a saved security.auth.selectedType; without one it stops with exit 41."
    " It reads the file only in folders that it trusts.",
)
