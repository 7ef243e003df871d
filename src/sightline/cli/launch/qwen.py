"""Qwen Code: a model in modelProviders is sealed there; system settings win, and replace whole lists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sightline.cli.launch.started import FILES, Launch, Place, address_of, merged
from sightline.model.profile import WireName

_SYSTEM = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
_FILE = "qwen-settings.json"
_SEEING = {"generationConfig": {"modalities": {"image": True}}}
# How each kind of provider is told its address, where a version belongs to it, and which API it is asked on.
_KINDS: Mapping[str, tuple[str, str, WireName]] = {
    "openai": ("OPENAI_BASE_URL", "/v1", "openai_chat"),
    "anthropic": ("ANTHROPIC_BASE_URL", "", "anthropic"),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "", "gemini"),
}


def start(argv: Sequence[str], place: Place) -> Launch:
    given = place.env.get(_SYSTEM, "")
    system = place.json(given) if given else {}
    settings = [place.json(place.home / ".qwen" / "settings.json"), place.json(".qwen", "settings.json"), system]
    providers: dict[str, Any] = {}
    for each in settings:
        providers |= each.get("modelProviders") or {} if isinstance(each.get("modelProviders"), dict) else {}
    named: dict[str, tuple[WireName, str]] = {}
    sealed = {kind: [_entry(one, kind, place, named) for one in _list(found)] for kind, found in providers.items()}
    file = merged(system, {"model": _SEEING, **({"modelProviders": sealed} if sealed else {})})
    formerly, pointed = _variables(place, settings)
    env = {**place.env, **pointed, _SYSTEM: f"{FILES}/{_FILE}"}
    return Launch(tuple(argv), env, formerly, named, {_FILE: json.dumps(file, ensure_ascii=False)})


def _list(found: object) -> list[object]:
    return found if isinstance(found, list) else []


def _entry(entry: object, kind: str, place: Place, named: dict[str, tuple[WireName, str]]) -> object:
    """A model of the user's with its address here, declared as seeing."""
    if not isinstance(entry, dict) or kind not in _KINDS:
        return entry
    _, version, api = _KINDS[kind]
    theirs = address_of(entry.get("baseUrl"))
    base = place.address
    if theirs and not place.flagged:
        name = next((known for known, each in named.items() if each == (api, theirs)), f"qwen-{len(named) + 1}")
        named[name] = (api, theirs)
        base = f"{place.address}/u/{name}"
    return merged(entry, {"baseUrl": base + version, **_SEEING})


def _variables(place: Place, settings: Sequence[Mapping[str, Any]]) -> tuple[dict[WireName, str], dict[str, str]]:
    """Where each kind of provider was asked until now, and the variables that point it here."""
    formerly: dict[WireName, str] = {}
    for variable, _, api in _KINDS.values():
        files = [address_of(each["env"].get(variable)) for each in settings if isinstance(each.get("env"), dict)]
        url = address_of(place.env.get(variable)) or next(filter(None, reversed(files)), "")
        if url:
            formerly[api] = url
    return formerly, {variable: place.address + version for variable, version, _ in _KINDS.values()}
