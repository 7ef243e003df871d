"""Copilot CLI: where variables point it, no picture of a tool leaves it. A providers file can say that a model sees.

It gets one for this run, named by a variable, with the provider of the variables and all that the user's own file
holds. Models of such a file go by PROVIDER/MODEL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

from sightline.cli.launch.started import FILES, Launch, Place, address_of, merged, options, version_for, without
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

BASE_URL = "COPILOT_PROVIDER_BASE_URL"
CONFIG = "COPILOT_PROVIDERS_CONFIG"
_COMMAND = "COPILOT_PROVIDER_API_KEY_COMMAND"
_FILE = "providers.json"
_SEES = {"capabilities": {"supports": {"vision": True}}}
_OURS = "sightline"
_APIS: Mapping[str, WireName] = {"anthropic": "anthropic", "responses": "openai_responses"}
_LINES = re.compile(r"\n|\\n")  # as it is typed in a shell, too
_NUMBER = re.compile(r"[0-9]{1,9}")
_Named = dict[str, tuple[WireName, str]]
# How the file calls what a variable says of the provider, and of its model.
_OF_PROVIDER = {
    "COPILOT_PROVIDER_TYPE": "type",
    "COPILOT_PROVIDER_WIRE_API": "wireApi",
    "COPILOT_PROVIDER_TRANSPORT": "transport",
    "COPILOT_PROVIDER_API_KEY": "apiKey",
    "COPILOT_PROVIDER_BEARER_TOKEN": "bearerToken",
}
_OF_MODEL = {"COPILOT_PROVIDER_MODEL_ID": "modelId", "COPILOT_PROVIDER_WIRE_MODEL": "wireModel"}
_LIMITS = {
    "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "maxPromptTokens",
    "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "maxOutputTokens",
}


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    config = configured(place, next(options(argv, "--config-dir"), ""))
    own = listed(config, "providers")
    if not own and not place.flagged and not address_of(place.env.get(BASE_URL)):
        return Refusal(
            "unsupported_type",
            "Copilot CLI asks GitHub itself, which nothing can point elsewhere",
            f"set {BASE_URL}, COPILOT_PROVIDER_API_KEY and COPILOT_MODEL to a provider of your own",
        )
    named: _Named = {}
    providers = [_pointed(each, place, named) for each in own]
    models = [merged(each, _SEES) for each in listed(config, "models")]
    file = {**config, "providers": providers, "models": models}
    if own and not overruled(place):
        return _filed(Launch(tuple(argv), place.env, {}, named), file)
    return _by_variables(argv, place, file, named)


def configured(place: Place, folder: str = "") -> dict[str, Any]:
    """What the user's own providers file says."""
    given = place.env.get(CONFIG, "").strip()
    home = folder or place.env.get("COPILOT_HOME") or place.home / ".copilot"
    return place.json(given) if given else place.json(home, _FILE)


def overruled(place: Place) -> bool:
    """Whether variables win over the providers file, as they do unless a variable names the file as well."""
    return bool(place.env.get(BASE_URL)) and not place.env.get(CONFIG, "").strip()


def listed(config: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = config.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def version_of(provider: Mapping[str, Any]) -> str:
    """What follows an address of ours; for the other types Copilot itself writes the version."""
    return "/v1" if provider.get("type", "openai") == "openai" else ""


def _pointed(provider: dict[str, Any], place: Place, named: _Named) -> dict[str, Any]:
    """A provider of the user's with its address here."""
    theirs, version = address_of(provider.get("baseUrl")), version_of(provider)
    if place.flagged:
        return {**provider, "baseUrl": place.address + version}
    if not theirs:  # nobody can know what it means: it stays as it is
        return provider
    kinds = (provider.get("type"), provider.get("wireApi"))
    name = f"copilot-{len(named) + 1}"
    named[name] = (next((api for kind, api in _APIS.items() if kind in kinds), "openai_chat"), theirs)
    return {**provider, "baseUrl": f"{place.address}/u/{name}{version_for(theirs, version)}"}


def _filed(started: Launch, file: Mapping[str, Any]) -> Launch:
    env = {**started.env, CONFIG: f"{FILES}/{_FILE}"}
    return replace(started, env=env, files={_FILE: json.dumps(file, ensure_ascii=False)})


def _by_variables(argv: Sequence[str], place: Place, file: Mapping[str, Any], named: _Named) -> Launch:
    """The provider of the variables, in the file; they stay, for those of its commands that read no file."""
    provider, model = _provider(place.env), _model(argv, place.env)
    formerly, version = address_of(place.env.get(BASE_URL)), version_of(provider)
    base = place.address + (version if place.flagged else version_for(formerly, version))
    messages = provider.get("type") == "anthropic"
    apis: tuple[WireName, ...] = ("anthropic",) if messages else ("openai_chat", "openai_responses")
    started = Launch(tuple(argv), {**place.env, BASE_URL: base}, dict.fromkeys(apis, formerly) if formerly else {})
    if not model:  # Copilot says itself that it needs one
        return started
    if place.env.get(_COMMAND):
        note = f"a providers file knows no {_COMMAND}: pictures that tools of Copilot open never leave it"
        return replace(started, note=note)
    theirs = [each.get("name") for each in file["providers"]]
    name = next(name for name in chain([_OURS], map(f"{_OURS}-{{}}".format, count(2))) if name not in theirs)
    added = {
        "providers": [*file["providers"], {"name": name, "baseUrl": base, **provider}],
        "models": [*file["models"], {**model, "provider": name, **_SEES}],
    }
    words = (argv[0], "--model", f"{name}/{model['id']}", *without(argv, "--model")[1:])
    note = f"without Sightline, conversations of this run go on by --model {model.get('wireModel', model['id'])}"
    return _filed(replace(started, argv=words, named=named, note=note), {**file, **added})


def _provider(env: Mapping[str, str]) -> dict[str, Any]:
    said: dict[str, Any] = {theirs: env[name] for name, theirs in _OF_PROVIDER.items() if env.get(name)}
    if version := env.get("COPILOT_PROVIDER_AZURE_API_VERSION"):
        said["azure"] = {"apiVersion": version}
    lines = _LINES.split(env.get("COPILOT_PROVIDER_HEADERS", ""))
    headers = {name.strip(): text.strip() for name, colon, text in (line.partition(":") for line in lines) if colon}
    return {**said, "headers": headers} if headers else said


def _model(argv: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """The model that it is told to ask; empty: it is told of none. A flag leaves the variables nothing to say."""
    flag = [*options(argv, "--model")][-1:]
    limits = {theirs: int(env[name]) for name, theirs in _LIMITS.items() if _NUMBER.fullmatch(env.get(name, ""))}
    said = {} if flag else {theirs: env[name] for name, theirs in _OF_MODEL.items() if env.get(name)}
    model = flag[0] if flag else env.get("COPILOT_MODEL") or said.get("modelId")
    return {"id": model, **said, **limits} if model else {}
