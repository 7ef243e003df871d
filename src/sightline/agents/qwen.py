"""How to start Qwen Code behind the proxy, and how to set it up.

Neither variables nor flags change the address of a model in modelProviders. System settings do: they override the
others, and replace whole lists.

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

from sightline.agents.agent import CodingAgent, ProviderTarget, SetupRequest
from sightline.agents.launch import (
    CODE_SETTINGS,
    FILES,
    NETWORK,
    USUAL_PROVIDERS,
    Launch,
    LaunchContext,
    Steering,
    choose_version,
    describe_ignored_settings,
    describe_project_upstream,
    find_address,
    find_options,
    find_steering_settings,
    find_steering_variables,
    refuse_project,
    remove_options,
    resolve_upstream,
)
from sightline.agents.settings_files import expand_variables, get_object, merge
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_SYSTEM = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
_FLAG = "--openai-base-url"
_FILE = "qwen-settings.json"
_PROJECT_SETTINGS = Path(".qwen/settings.json")
_STEERING_SETTINGS = (
    *CODE_SETTINGS,
    "modelProviders",
    "security.auth",
    "selectedAuthType",
    "proxy",
    "fastModel",
    "telemetry",
)
_CHOOSES = ("model.name", "model.generationConfig")  # of the models that the user has listed, each with its address
_STEERING_VARIABLES = rf"(?i){NETWORK}|(?:OPENAI|ANTHROPIC|GEMINI|GOOGLE|DASHSCOPE|BAILIAN|QWEN)_(?!MODEL\Z)\w+"
_VISION_SETTINGS = {"generationConfig": {"modalities": {"image": True}}}
# How each kind of provider gets its address, whether a version is part of it, and which API it uses.
_KINDS: Mapping[str, tuple[str, str, WireName]] = {
    "openai": ("OPENAI_BASE_URL", "/v1", "openai_chat"),
    "anthropic": ("ANTHROPIC_BASE_URL", "", "anthropic"),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "", "gemini"),
}
_Variables = tuple[Mapping[str, Any], str]  # and the project's file that sets them


def start(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    user, system = _read_own_settings(context)
    home, trusted = _get_home(context), _trusts(context)
    steering = find_steering(argv, context)
    if steering and not context.has_upstream:
        return refuse_project("Qwen Code", steering, "trust the folder in Qwen Code (/trust), then run this again")
    settings = [user, context.read_json(_PROJECT_SETTINGS) if trusted else {}, system]
    providers: dict[str, Any] = {}
    for each in settings:
        providers |= get_object(each, "modelProviders")
    named: dict[str, tuple[WireName, str]] = {}
    sealed = {
        kind: [_point_entry(one, kind, context, named) for one in _as_list(found)] for kind, found in providers.items()
    }
    file = merge(system, {"model": _VISION_SETTINGS, **({"modelProviders": sealed} if sealed else {})})
    if steering:  # without a record of trust it then reads nothing of the project
        file = merge(file, {"security": {"folderTrust": {"enabled": True}}})
    flags: Mapping[str, Any] = {"OPENAI_BASE_URL": next(find_options(argv, _FLAG), "")}
    layers = [
        (flags, ""),
        (context.env, ""),
        *_list_dotenvs(context, home, trusted=trusted),
        *_list_variables(settings),
    ]
    former_upstreams, pointed, notes = _choose_addresses(context, layers, named)
    env = {**context.env, **pointed, _SYSTEM: f"{FILES}/{_FILE}"}
    files = {_FILE: json.dumps(file, ensure_ascii=False)}
    note = describe_ignored_settings("Qwen Code", steering) or notes
    return Launch(tuple(remove_options(argv, _FLAG)), env, former_upstreams, named, files, note)


def find_steering(argv: Sequence[str], context: LaunchContext) -> list[Steering]:
    """Return what a project that is not trusted says about where keys and images go."""
    own = _read_own_settings(context)
    return [] if _trusts(context) or _is_careful(*own) else [*_list_steering(context, *own)]


def _read_own_settings(context: LaunchContext) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the user and of the system."""
    given = context.env.get(_SYSTEM, "")
    return context.read_json(_get_home(context) / "settings.json"), context.read_json(given) if given else {}


def _trusts(context: LaunchContext) -> bool:
    own = context.env.get("QWEN_CODE_TRUSTED_FOLDERS_PATH")
    return context.trusts(Path(own or _get_home(context) / "trustedFolders.json"))


def _is_careful(*settings: Mapping[str, Any]) -> bool:
    """Return whether it reads nothing of a project that its record does not trust."""
    return any(get_object(each, "security", "folderTrust").get("enabled") is True for each in settings)


def _list_steering(context: LaunchContext, *settings: Mapping[str, Any]) -> Iterator[Steering]:
    """Yield what a project that is not trusted says about where keys and images go."""
    entries = [
        one for each in settings for found in get_object(each, "modelProviders").values() for one in _as_list(found)
    ]
    keys = {re.escape(str(one["envKey"])) for one in entries if isinstance(one, dict) and one.get("envKey")}
    names = "|".join((_STEERING_VARIABLES, *sorted(keys)))
    if not context.at_home:
        text = context.read(context.folder / _PROJECT_SETTINGS) or ""
        yield from find_steering_settings(
            _PROJECT_SETTINGS, text, _STEERING_SETTINGS + (_CHOOSES if entries else ()), names
        )
    if (nearest := _find_nearest_dotenv(context)) is not None:
        yield from find_steering_variables(context, nearest, names)


def _get_home(context: LaunchContext) -> Path:
    return Path(context.env.get("QWEN_HOME") or context.home / ".qwen")


def _as_list(found: object) -> list[object]:
    return found if isinstance(found, list) else []


def _point_entry(entry: object, kind: str, context: LaunchContext, named: dict[str, tuple[WireName, str]]) -> object:
    """Return a model of the user's with its address here, declared as taking images."""
    if not isinstance(entry, dict) or kind not in _KINDS:
        return entry
    _, version, api = _KINDS[kind]
    base, base_url = context.address, entry.get("baseUrl")
    upstream = find_address(expand_variables(base_url, context.env))
    if base_url and not upstream and not context.uses_upstream(api):  # unknown address: it stays as it is
        return entry
    if upstream and not context.uses_upstream(api):
        name = next((known for known, each in named.items() if each == (api, upstream)), f"qwen-{len(named) + 1}")
        named[name] = (api, upstream)
        base = f"{context.address}/u/{name}"
        version = choose_version(upstream, version)
    return merge(entry, {"baseUrl": base + version, **_VISION_SETTINGS})


def _list_dotenvs(context: LaunchContext, home: Path, *, trusted: bool) -> Iterator[_Variables]:
    """Yield the nearest file of a project that is trusted, then the user's own."""
    if trusted and (nearest := _find_nearest_dotenv(context)) is not None:
        yield context.read_dotenv(nearest), str(nearest)
    for own in dict.fromkeys((home / ".env", context.home / ".qwen" / ".env", context.home / ".env")):
        yield context.read_dotenv(own), ""


def _find_nearest_dotenv(context: LaunchContext) -> Path | None:
    """Return the file of variables that it reads in a project: the first one on the way up to the home folder."""
    homes = [home for home in (context.home, context.real_home) if home is not None]
    within = [folder for folder in context.folder_chain if not any(folder in (home, *home.parents) for home in homes)]
    names = (folder / name for folder in within for name in (".qwen/.env", ".env"))
    return next((name for name in names if context.read(name) is not None), None)


def _list_variables(settings: Sequence[Mapping[str, Any]]) -> Iterator[_Variables]:
    user, project, system = settings
    for each, where in ((system, ""), (project, ".qwen/settings.json"), (user, "")):
        yield get_object(each, "env"), where
    for each, where in ((system, ""), (project, ".qwen/settings.json"), (user, "")):
        yield {"OPENAI_BASE_URL": get_object(each, "security", "auth").get("baseUrl")}, where


def _choose_addresses(
    context: LaunchContext, layers: Sequence[_Variables], named: dict[str, tuple[WireName, str]]
) -> tuple[dict[WireName, str], dict[str, str], str]:
    """Return the former address of each kind of provider, the variables that point it here, and the notes.

    An address that needs a name of its own is added to `named`.
    """
    former_upstreams: dict[WireName, str] = {}
    pointed: dict[str, str] = {}
    notes: list[str] = []
    for variable, version, api in _KINDS.values():
        values_by_layer = ((values.get(variable), where) for values, where in layers)
        # An invalid address is not skipped, so that it is refused with a clear message.
        found = (
            (resolve_upstream(expand_variables(url, context.env)), where)
            for url, where in values_by_layer
            if url and isinstance(url, str)
        )
        url, where = next(found, ("", ""))
        if url:
            former_upstreams[api] = url
        notes.append(describe_project_upstream(url, where))
        is_ours = context.uses_upstream(api)
        base = context.address
        if context.has_upstream and not is_ours:
            named |= {f"qwen-{api}": (api, url)} if url else {}
            base = f"{base}/u/{f'qwen-{api}' if url else USUAL_PROVIDERS[api]}"
        pointed[variable] = base + (version if is_ours else choose_version(url, version))
    return former_upstreams, pointed, "; ".join(filter(None, notes))


def choose_target(request: SetupRequest) -> ProviderTarget | Refusal:
    usual = request.agent.default_target
    settings = request.context.read_json(_get_home(request.context) / "settings.json")
    entries = get_object(settings, "modelProviders").get("openai")
    known = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    entry = next((one for one in known if request.model and one.get("id") == request.model), {})
    upstream = find_address(entry.get("baseUrl"))
    now = request.find_upstream(upstream) if upstream else request.find_current("openai_chat")
    if request.upstream and request.upstream != now:
        variable = request.find_key(request.upstream)
        return replace(usual, upstream=request.upstream, key=variable, needs_key=bool(variable))
    if isinstance(now, Refusal):
        return now
    key = entry.get("envKey")
    by_variable = (
        not upstream
        and isinstance(started := request.agent.launch(["qwen"], request.context), Launch)
        and started.former_upstreams
    )
    usually = "OPENAI_API_KEY" if by_variable else request.find_key(now)
    return replace(usual, upstream=now, key=key if isinstance(key, str) and key else usually)


AGENT = CodingAgent(
    "qwen",
    "Qwen Code",
    start=start,
    packages=("@qwen-code/qwen-code",),
    find_steering=find_steering,
    choose_target=choose_target,
    mcp="qwen mcp add -s user sightline sightline mcp",
    one_run="OPENAI_BASE_URL=$B qwen --auth-type openai",
    file="~/.qwen/settings.json",
    moved_by=("QWEN_HOME", "settings.json"),
    file_lines='{"modelProviders": {"openai": [{"id": "$M", "baseUrl": "$B", "envKey": "$K",\n'
    '  "generationConfig": {"modalities": {"image": true}}}]}}',
    vision_hint="modalities.image in the entry of the model, or"
    ' {"model": {"generationConfig": {"modalities": {"image": true}}}} without entries',
    key_hint="Qwen Code now needs the key of $U: put it into $K in the environment of qwen.",
    note="A model that is listed in modelProviders ignores the variable and the flag: change its baseUrl"
    " there. $P/u/NAME/v1 reaches the provider NAME.",
    default_target=ProviderTarget("dashscope", version="/v1", key="DASHSCOPE_API_KEY"),
    default_model="MODEL",
)
