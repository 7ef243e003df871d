"""How to start Copilot CLI behind the proxy, and how to set it up.

If variables name its provider, it sends no images from tools. A providers file can declare that a model takes images,
so `run` names one in a variable, with the provider of the variables and everything in the user's own file. The models
of such a file are called PROVIDER/MODEL.

It runs hooks, MCP servers and extensions of a project only where config.json in its home folder trusts the folder, or
where a variable makes it trust every folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

from sightline.agents.agent import CodingAgent, ProviderTarget, SetupRequest
from sightline.agents.launch import (
    FILES,
    Launch,
    LaunchContext,
    Steering,
    choose_version,
    describe_ignored_settings,
    find_address,
    find_options,
    find_project_code,
    find_steering_settings,
    refuse_project,
    refuse_upstream,
    remove_options,
)
from sightline.agents.settings_files import merge
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_BASE_URL = "COPILOT_PROVIDER_BASE_URL"
_CONFIG = "COPILOT_PROVIDERS_CONFIG"
_COMMAND = "COPILOT_PROVIDER_API_KEY_COMMAND"
_ALLOW_ALL = "COPILOT_ALLOW_ALL"  # makes it trust every folder; the flag of the same name does not
_SKIP_TRUST_VARIABLES = (
    _ALLOW_ALL,
    *(f"GITHUB_COPILOT_PROMPT_MODE_{what}" for what in ("EXTENSIONS", "REPO_HOOKS", "WORKSPACE_MCP")),
)
_PROJECT_FILES = (
    *(".mcp.json", ".github/mcp.json", ".github/copilot/settings.json", ".github/copilot/settings.local.json"),
    *(".claude/settings.json", ".claude/settings.local.json"),
)
_STEERING_SETTINGS = ("hooks", "mcpServers", "enabledPlugins", "extraKnownMarketplaces")
_CODE = (".github/hooks", ".github/extensions")  # folders of code that it runs
_FILE = "providers.json"
_VISION_SETTINGS = {"capabilities": {"supports": {"vision": True}}}
_OWN_PROVIDER = "sightline"
_APIS: Mapping[str, WireName] = {"anthropic": "anthropic", "responses": "openai_responses"}
_LINES = re.compile(r"\n|\\n")  # as it is typed in a shell, too
_NUMBER = re.compile(r"[0-9]{1,9}")
_Named = dict[str, tuple[WireName, str]]
# How the file calls what a variable says of the provider, and of its model.
_PROVIDER_KEYS = {
    "COPILOT_PROVIDER_TYPE": "type",
    "COPILOT_PROVIDER_WIRE_API": "wireApi",
    "COPILOT_PROVIDER_TRANSPORT": "transport",
    "COPILOT_PROVIDER_API_KEY": "apiKey",
    "COPILOT_PROVIDER_BEARER_TOKEN": "bearerToken",
}
_MODEL_KEYS = {"COPILOT_PROVIDER_MODEL_ID": "modelId", "COPILOT_PROVIDER_WIRE_MODEL": "wireModel"}
_LIMITS = {
    "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "maxPromptTokens",
    "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "maxOutputTokens",
}


def start(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    steering = find_steering(argv, context)
    if not steering:
        return _start(argv, context)
    if not context.has_upstream:
        return refuse_project(
            "Copilot CLI", steering, "start copilot in this folder, trust it when asked, then run this again"
        )
    flags = ["--allow-all-tools"] if context.env.get(_ALLOW_ALL) == "true" else []
    env = {name: text for name, text in context.env.items() if name not in _SKIP_TRUST_VARIABLES}
    started = _start([argv[0], *flags, *argv[1:]], replace(context, env=env))
    if isinstance(started, Refusal):
        return started
    return replace(
        started, note="; ".join(filter(None, (describe_ignored_settings("Copilot CLI", steering), started.note)))
    )


def find_steering(argv: Sequence[str], context: LaunchContext) -> list[Steering]:
    """Return the code of a project that Copilot runs because a variable makes it trust every folder."""
    skips_trust = any(context.env.get(name) == "true" for name in _SKIP_TRUST_VARIABLES)
    record = _read_home(argv, context, "config.json").get("trustedFolders")
    if not skips_trust or context.at_home or (isinstance(record, list) and str(context.folder) in record):
        return []
    return [*_list_steering(context)]


def _list_steering(context: LaunchContext) -> Iterator[Steering]:
    for folder in context.repository or (context.folder,):
        for file in (folder / name for name in _PROJECT_FILES):
            yield from find_steering_settings(file, context.read(file) or "", _STEERING_SETTINGS)
        for name in _CODE:
            yield from find_project_code(context, folder / name, "Copilot CLI")


def _start(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    config = _read_config(argv, context)
    own = _list_objects(config, "providers")
    if not own and not context.has_upstream and not find_address(context.env.get(_BASE_URL)):
        return Refusal(
            "unsupported_type",
            "Copilot CLI uses GitHub's own models, which can't go through a proxy",
            f"set {_BASE_URL}, COPILOT_PROVIDER_API_KEY and COPILOT_MODEL to a provider of your own",
        )
    named: _Named = {}
    providers = [_point(each, context, named) for each in own]
    models = [merge(each, _VISION_SETTINGS) for each in _list_objects(config, "models")]
    file = {**config, "providers": providers, "models": models}
    if own and not _is_overruled(context):
        return _add_file(Launch(tuple(argv), context.env, {}, named), file)
    return _start_by_variables(argv, context, file, named)


def _read_config(argv: Sequence[str], context: LaunchContext) -> dict[str, Any]:
    """Return what the user's own providers file says."""
    given = context.env.get(_CONFIG, "").strip()
    return context.read_json(given) if given else _read_home(argv, context, _FILE)


def _read_home(argv: Sequence[str], context: LaunchContext, name: str) -> dict[str, Any]:
    folder = (
        next(find_options(argv, "--config-dir"), "") or context.env.get("COPILOT_HOME") or context.home / ".copilot"
    )
    return context.read_json(folder, name)


def _is_overruled(context: LaunchContext) -> bool:
    """Return whether variables win over the providers file, as they do unless a variable names the file as well."""
    return bool(context.env.get(_BASE_URL)) and not context.env.get(_CONFIG, "").strip()


def _list_objects(config: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = config.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _get_version(provider: Mapping[str, Any]) -> str:
    """Return what follows our address; for the other types Copilot itself adds the version."""
    return "/v1" if provider.get("type", "openai") == "openai" else ""


def _get_api(provider: Mapping[str, Any]) -> WireName:
    kinds = (provider.get("type"), provider.get("wireApi"))
    return next((api for kind, api in _APIS.items() if kind in kinds), "openai_chat")


def _point(provider: dict[str, Any], context: LaunchContext, named: _Named) -> dict[str, Any]:
    """Return a provider of the user's with its address here."""
    upstream, version = find_address(provider.get("baseUrl")), _get_version(provider)
    api = _get_api(provider)
    if context.uses_upstream(api):
        return {**provider, "baseUrl": context.address + version}
    if not upstream:  # unknown address: it stays as it is
        return provider
    name = f"copilot-{len(named) + 1}"
    named[name] = (api, upstream)
    return {**provider, "baseUrl": f"{context.address}/u/{name}{choose_version(upstream, version)}"}


def _add_file(started: Launch, file: Mapping[str, Any]) -> Launch:
    env = {**started.env, _CONFIG: f"{FILES}/{_FILE}"}
    return replace(started, env=env, files={_FILE: json.dumps(file, ensure_ascii=False)})


def _start_by_variables(
    argv: Sequence[str], context: LaunchContext, file: Mapping[str, Any], named: _Named
) -> Launch | Refusal:
    """Start it with the provider of the variables in the file; they stay for its commands that read no file."""
    provider, model = _read_provider(context.env), _read_model(argv, context.env)
    if context.has_upstream and not context.uses_upstream(_get_api(provider)):
        return refuse_upstream(context, "Copilot CLI")
    former_upstream, version = find_address(context.env.get(_BASE_URL)), _get_version(provider)
    base = context.address + (version if context.has_upstream else choose_version(former_upstream, version))
    messages = provider.get("type") == "anthropic"
    apis: tuple[WireName, ...] = ("anthropic",) if messages else ("openai_chat", "openai_responses")
    started = Launch(
        tuple(argv), {**context.env, _BASE_URL: base}, dict.fromkeys(apis, former_upstream) if former_upstream else {}
    )
    if not model:  # Copilot says itself that it needs one
        return started
    if context.env.get(_COMMAND):
        note = f"a providers file can't contain {_COMMAND}, so Copilot does not send images from its tools"
        return replace(started, note=note)
    names = [each.get("name") for each in file["providers"]]
    name = next(
        name for name in chain([_OWN_PROVIDER], map(f"{_OWN_PROVIDER}-{{}}".format, count(2))) if name not in names
    )
    added = {
        "providers": [*file["providers"], {"name": name, "baseUrl": base, **provider}],
        "models": [*file["models"], {**model, "provider": name, **_VISION_SETTINGS}],
    }
    words = (argv[0], "--model", f"{name}/{model['id']}", *remove_options(argv, "--model")[1:])
    note = f"to continue conversations of this run without Sightline, use --model {model.get('wireModel', model['id'])}"
    return _add_file(replace(started, argv=words, named_upstreams=named, note=note), {**file, **added})


def _read_provider(env: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {key: env[name] for name, key in _PROVIDER_KEYS.items() if env.get(name)}
    if version := env.get("COPILOT_PROVIDER_AZURE_API_VERSION"):
        values["azure"] = {"apiVersion": version}
    lines = _LINES.split(env.get("COPILOT_PROVIDER_HEADERS", ""))
    headers = {name.strip(): text.strip() for name, colon, text in (line.partition(":") for line in lines) if colon}
    return {**values, "headers": headers} if headers else values


def _read_model(argv: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the model to ask, or an empty object if none is named. A flag wins over the variables."""
    flag = [*find_options(argv, "--model")][-1:]
    limits = {key: int(env[name]) for name, key in _LIMITS.items() if _NUMBER.fullmatch(env.get(name, ""))}
    values = {} if flag else {key: env[name] for name, key in _MODEL_KEYS.items() if env.get(name)}
    model = flag[0] if flag else env.get("COPILOT_MODEL") or values.get("modelId")
    return {"id": model, **values, **limits} if model else {}


def choose_target(request: SetupRequest) -> ProviderTarget | Refusal:
    """Return a provider of its file, which keeps its key there, or a new one, whose key is not known."""
    if _is_overruled(request.context):
        return Refusal(
            "unsupported_type",
            f"{_BASE_URL} is set, which takes precedence over the providers file of Copilot CLI",
            "unset it first, or write sightline run -- copilot",
        )
    config = request.context.read_json(request.agent.find_file(request.context.env) or "")
    own = {str(each.get("name")): each for each in _list_objects(config, "providers")}
    urls = {name: find_address(each.get("baseUrl")) for name, each in own.items()}
    now = {name: request.find_upstream(url) for name, url in urls.items() if url}
    serves = {each.get("id"): each.get("provider") for each in _list_objects(config, "models")}
    matching = [name for name in now if request.upstream in ("", now[name])]
    if provider := next((name for name in matching if serves.get(request.model) == name), next(iter(matching), "")):
        found = now[provider]
        return found if isinstance(found, Refusal) else ProviderTarget(found, provider, _get_version(own[provider]))
    if not request.upstream:
        return Refusal(
            "unsupported_type",
            "Copilot CLI uses GitHub's own models, which can't go through a proxy",
            "name a provider of your own with --upstream",
        )
    if request.upstream in own:
        return request.refuse_key(f"the key of its provider {request.upstream}", now.get(request.upstream))
    return ProviderTarget(request.upstream, version="/v1", key="KEY" if request.find_key(request.upstream) else "")


AGENT = CodingAgent(
    "copilot",
    "Copilot CLI",
    start=start,
    packages=("@github/copilot",),
    find_steering=find_steering,
    choose_target=choose_target,
    mcp="copilot mcp add sightline -- sightline mcp",
    short_hint="COPILOT_PROVIDER_BASE_URL=$P/u/NAME/v1 copilot",
    one_run="COPILOT_PROVIDER_BASE_URL=$B COPILOT_PROVIDER_TYPE=openai"
    " COPILOT_PROVIDER_WIRE_API=completions COPILOT_PROVIDER_API_KEY=KEY COPILOT_MODEL=$M copilot",
    file="~/.copilot/providers.json",
    moved_by=("COPILOT_HOME", "providers.json"),
    file_variable="COPILOT_PROVIDERS_CONFIG",
    file_lines='{"providers": [{"name": "$N", "baseUrl": "$B", $L}],\n'
    '  "models": [{"id": "$M", "provider": "$N", "capabilities": {"supports": {"vision": true}}}]}',
    after_setup="choose the model with --model $N/$M",
    default_model="MODEL",
    vision_hint='"capabilities": {"supports": {"vision": true}} of the model in that file; with the variables alone'
    " it sends attached images, but none from tools",
    note="This needs a key of your own: requests with the GitHub login can't be redirected."
    " The variables take precedence over the file. With `sightline run -- copilot` it sends every image either way.",
)
