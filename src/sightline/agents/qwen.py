"""Qwen Code: a model in modelProviders is sealed there; system settings win, and replace whole lists.

It believes the settings and variables of every project, unless folder trust is switched on. Its record of trusted
folders is in trustedFolders.json, whether or not that is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sightline.agents.agent import Agent, SetupRequest, Target
from sightline.agents.launch import (
    FILES,
    Launch,
    Place,
    choose_version,
    find_address,
    find_options,
    remove_options,
    resolve_upstream,
    say_project_decides,
)
from sightline.agents.projects import (
    CODE,
    NETWORK,
    Steering,
    refuse,
    say_ignored,
    settings_that_steer,
    variables_that_steer,
)
from sightline.agents.settings_files import expand_variables, get_object, merge
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_SYSTEM = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
_FLAG = "--openai-base-url"
_FILE = "qwen-settings.json"
_OF_PROJECT = Path(".qwen/settings.json")
_STEERS = (*CODE, "modelProviders", "security.auth", "selectedAuthType", "proxy", "fastModel", "telemetry")
_CHOOSES = ("model.name", "model.generationConfig")  # of the models that the user has listed, each with its address
_STEERING = rf"{NETWORK}|(?:OPENAI|ANTHROPIC|GEMINI|GOOGLE|DASHSCOPE|BAILIAN|QWEN)_(?!MODEL\Z)\w+"
_SEEING = {"generationConfig": {"modalities": {"image": True}}}
# How each kind of provider is told its address, where a version belongs to it, and which API it is asked on.
_KINDS: Mapping[str, tuple[str, str, WireName]] = {
    "openai": ("OPENAI_BASE_URL", "/v1", "openai_chat"),
    "anthropic": ("ANTHROPIC_BASE_URL", "", "anthropic"),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "", "gemini"),
}
_Variables = tuple[Mapping[str, Any], str]  # and the project's file that sets them


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    user, system = _read_own_settings(place)
    home, trusted = _get_home(place), _trusts(place)
    steering = find_steering(argv, place)
    if steering and not place.flagged:
        return refuse("Qwen Code", steering, "trust the folder in Qwen Code (/trust), and repeat")
    settings = [user, place.json(_OF_PROJECT) if trusted else {}, system]
    providers: dict[str, Any] = {}
    for each in settings:
        providers |= get_object(each, "modelProviders")
    named: dict[str, tuple[WireName, str]] = {}
    sealed = {
        kind: [_point_entry(one, kind, place, named) for one in _as_list(found)] for kind, found in providers.items()
    }
    file = merge(system, {"model": _SEEING, **({"modelProviders": sealed} if sealed else {})})
    if steering:  # without a record of trust it then reads nothing of the project
        file = merge(file, {"security": {"folderTrust": {"enabled": True}}})
    flags: Mapping[str, Any] = {"OPENAI_BASE_URL": next(find_options(argv, _FLAG), "")}
    layers = [(flags, ""), (place.env, ""), *_list_dotenvs(place, home, trusted=trusted), *_list_variables(settings)]
    formerly, pointed, notes = _choose_addresses(place, layers)
    env = {**place.env, **pointed, _SYSTEM: f"{FILES}/{_FILE}"}
    files = {_FILE: json.dumps(file, ensure_ascii=False)}
    note = say_ignored("Qwen Code", steering) or notes
    return Launch(tuple(remove_options(argv, _FLAG)), env, formerly, named, files, note)


def find_steering(argv: Sequence[str], place: Place) -> list[Steering]:
    """Return what a project that is not trusted says about where keys and images go."""
    own = _read_own_settings(place)
    return [] if _trusts(place) or _is_careful(*own) else [*_list_steering(place, *own)]


def _read_own_settings(place: Place) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the user and of the system."""
    given = place.env.get(_SYSTEM, "")
    return place.json(_get_home(place) / "settings.json"), place.json(given) if given else {}


def _trusts(place: Place) -> bool:
    own = place.env.get("QWEN_CODE_TRUSTED_FOLDERS_PATH")
    return place.trusts(Path(own or _get_home(place) / "trustedFolders.json"))


def _is_careful(*settings: Mapping[str, Any]) -> bool:
    """Return whether it reads nothing of a project that its record does not trust."""
    return any(get_object(each, "security", "folderTrust").get("enabled") is True for each in settings)


def _list_steering(place: Place, *settings: Mapping[str, Any]) -> Iterator[Steering]:
    """Yield what a project that is not trusted says about where keys and images go."""
    entries = [
        one for each in settings for found in get_object(each, "modelProviders").values() for one in _as_list(found)
    ]
    keys = {re.escape(str(one["envKey"])) for one in entries if isinstance(one, dict) and one.get("envKey")}
    names = re.compile("|".join((_STEERING, *sorted(keys))), re.IGNORECASE)
    if not place.at_home:
        text = place.read(place.folder / _OF_PROJECT) or ""
        yield from settings_that_steer(_OF_PROJECT, text, _STEERS + (_CHOOSES if entries else ()), names)
    if (nearest := _find_nearest_dotenv(place)) is not None:
        yield from variables_that_steer(place, nearest, names)


def _get_home(place: Place) -> Path:
    return Path(place.env.get("QWEN_HOME") or place.home / ".qwen")


def _as_list(found: object) -> list[object]:
    return found if isinstance(found, list) else []


def _point_entry(entry: object, kind: str, place: Place, named: dict[str, tuple[WireName, str]]) -> object:
    """Return a model of the user's with its address here, declared as taking images."""
    if not isinstance(entry, dict) or kind not in _KINDS:
        return entry
    _, version, api = _KINDS[kind]
    base, said = place.address, entry.get("baseUrl")
    theirs = find_address(expand_variables(said, place.env))
    if said and not theirs and not place.flagged:  # nobody can know what it means: it stays as it is
        return entry
    if theirs and not place.flagged:
        name = next((known for known, each in named.items() if each == (api, theirs)), f"qwen-{len(named) + 1}")
        named[name] = (api, theirs)
        base = f"{place.address}/u/{name}"
        version = choose_version(theirs, version)
    return merge(entry, {"baseUrl": base + version, **_SEEING})


def _list_dotenvs(place: Place, home: Path, *, trusted: bool) -> Iterator[_Variables]:
    """Yield the nearest file of a project that is trusted, then the user's own."""
    if trusted and (nearest := _find_nearest_dotenv(place)) is not None:
        yield place.dotenv(nearest), str(nearest)
    for own in dict.fromkeys((home / ".env", place.home / ".qwen" / ".env", place.home / ".env")):
        yield place.dotenv(own), ""


def _find_nearest_dotenv(place: Place) -> Path | None:
    """Return the file of variables that it reads in a project: the first one on the way up to the home folder."""
    homes = [home for home in (place.home, place.real_home) if home is not None]
    within = [folder for folder in place.above if not any(folder in (home, *home.parents) for home in homes)]
    names = (folder / name for folder in within for name in (".qwen/.env", ".env"))
    return next((name for name in names if place.read(name) is not None), None)


def _list_variables(settings: Sequence[Mapping[str, Any]]) -> Iterator[_Variables]:
    user, project, system = settings
    for each, where in ((system, ""), (project, ".qwen/settings.json"), (user, "")):
        yield get_object(each, "env"), where
    for each, where in ((system, ""), (project, ".qwen/settings.json"), (user, "")):
        yield {"OPENAI_BASE_URL": get_object(each, "security", "auth").get("baseUrl")}, where


def _choose_addresses(place: Place, layers: Sequence[_Variables]) -> tuple[dict[WireName, str], dict[str, str], str]:
    """Return the former address of each kind of provider, the variables that point it here, and the notes."""
    formerly: dict[WireName, str] = {}
    pointed: dict[str, str] = {}
    notes: list[str] = []
    for variable, version, api in _KINDS.values():
        said = ((values.get(variable), where) for values, where in layers)
        # One that is no address is refused in clear words, not passed over.
        found = (
            (resolve_upstream(expand_variables(url, place.env)), where)
            for url, where in said
            if url and isinstance(url, str)
        )
        url, where = next(found, ("", ""))
        if url:
            formerly[api] = url
        notes.append(say_project_decides(url, where))
        pointed[variable] = place.address + (version if place.flagged else choose_version(url, version))
    return formerly, pointed, "; ".join(filter(None, notes))


def choose_target(request: SetupRequest) -> Target | Refusal:
    usual = request.agent.usual
    settings = request.place.json(_get_home(request.place) / "settings.json")
    entries = get_object(settings, "modelProviders").get("openai")
    known = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    entry = next((one for one in known if request.model and one.get("id") == request.model), {})
    theirs = find_address(entry.get("baseUrl"))
    now = request.find_upstream(theirs) if theirs else request.find_current("openai_chat")
    if request.upstream and request.upstream != now:
        return replace(usual, upstream=request.upstream, key=request.find_key(request.upstream))
    if isinstance(now, Refusal):
        return now
    key = entry.get("envKey")
    by_variable = (
        not theirs and isinstance(started := request.agent.launch(["qwen"], request.place), Launch) and started.formerly
    )
    usually = "OPENAI_API_KEY" if by_variable else request.find_key(now)
    return replace(usual, upstream=now, key=key if isinstance(key, str) and key else usually)


AGENT = Agent(
    "qwen",
    "Qwen Code",
    start=start,
    packages=("@qwen-code/qwen-code",),
    find_steering=find_steering,
    choose_target=choose_target,
    mcp="qwen mcp add -s user sightline sightline mcp",
    once="OPENAI_BASE_URL=$B qwen --auth-type openai",
    file="~/.qwen/settings.json",
    moved=("QWEN_HOME", "settings.json"),
    lines='{"modelProviders": {"openai": [{"id": "$M", "baseUrl": "$B", "envKey": "$K",\n'
    '  "generationConfig": {"modalities": {"image": true}}}]}}',
    sees="modalities.image in the entry of the model, or"
    ' {"model": {"generationConfig": {"modalities": {"image": true}}}} without entries',
    note="A model that stands in modelProviders ignores the variable and the flag: change its baseUrl"
    " there. $P/u/NAME/v1 reaches the provider NAME.",
    usual=Target("dashscope", version="/v1", key="DASHSCOPE_API_KEY"),
    model="MODEL",
)
