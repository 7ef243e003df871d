"""pi: no variable points it elsewhere; an extension of ours, loaded for this run alone, does.

It reads the settings of a project only where its record in trust.json trusts the folder, or where it is told to trust
every folder. Its native builds are made with Bun, which loads the `.env` files of every folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.agents.agent import Agent, SetupRequest, Target, choose_from_table
from sightline.agents.launch import FILES, Launch, Place, choose_version, find_address
from sightline.agents.projects import (
    BUN_SETTINGS,
    NETWORK,
    PROVIDERS,
    Steering,
    code_that_runs,
    find_bun_steering,
    is_dotenv,
    refuse,
    say_ignored,
    settings_that_steer,
    unset_variables,
)
from sightline.agents.settings_files import get_object
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_FILE = "sightline.ts"
_VARIABLE = "SIGHTLINE_PI_PROVIDERS"
_APPROVES = ("-a", "--approve")
_OF_PROJECT = Path(".pi/settings.json")
_TRUST = "save that you trust it with /trust in pi, and repeat"
_CODE = ".pi/extensions"
_STEERS = ("defaultProvider", "enabledModels", "packages", "extensions")
_STEERING = re.compile(rf"{NETWORK}|{PROVIDERS}|PI_\w+", re.IGNORECASE)
_EXTENSION = """export default function (pi) {
  const bases = JSON.parse(process.env.SIGHTLINE_PI_PROVIDERS || "{}");
  for (const [name, baseUrl] of Object.entries(bases)) pi.registerProvider(name, { baseUrl });
  const see = (_event, ctx) => {
    const model = ctx.model;
    if (model && !model.input.includes("image")) model.input = [...model.input, "image"];
  };
  for (const event of ["session_start", "model_select", "before_agent_start"]) pi.on(event, see);
}
"""
# Its own providers, by our names for them, and what follows the address that it is given.
_BUILT_IN: Mapping[str, tuple[str, str]] = {
    "anthropic": ("anthropic", ""),
    "deepseek": ("deepseek", "/v1"),
    "google": ("gemini", "/v1beta"),
    "groq": ("groq", "/v1"),
    "kimi-coding": ("kimi-coding", ""),
    "minimax": ("minimax", ""),
    "moonshotai": ("moonshot", "/v1"),
    "openai": ("openai", "/v1"),
    "openrouter": ("openrouter", "/v1"),
    "xai": ("xai", "/v1"),
    "zai": ("zai-coding", "/v1"),
}
_APIS: Mapping[str, tuple[WireName, str]] = {
    "anthropic-messages": ("anthropic", ""),
    "google-generative-ai": ("gemini", "/v1beta"),
    "openai-completions": ("openai_chat", "/v1"),
    "openai-responses": ("openai_responses", "/v1"),
}


def _read_providers(place: Place) -> dict[str, Any]:
    """Return the providers that the user has configured."""
    return get_object(place.json(_get_home(place) / "models.json"), "providers")


def _get_home(place: Place) -> Path:
    return Path(place.env.get("PI_CODING_AGENT_DIR") or place.home / ".pi" / "agent")


def find_steering(argv: Sequence[str], place: Place) -> list[Steering]:
    """Return what a project says about where keys and images go, if pi reads it without a record of trust."""
    record = place.json(_get_home(place) / "trust.json")
    saved = next((record[str(folder)] for folder in place.above if isinstance(record.get(str(folder)), bool)), None)
    always = place.json(_get_home(place) / "settings.json").get("defaultProjectTrust") == "always" and saved is None
    words = argv[: argv.index("--")] if "--" in argv else argv
    if saved is True or place.at_home:
        return []
    found = find_bun_steering(place, "pi", _STEERING)
    if always or any(word in words for word in _APPROVES):
        found += settings_that_steer(_OF_PROJECT, place.read(place.folder / _OF_PROJECT) or "", _STEERS)
        found += code_that_runs(place, place.folder / _CODE, "pi")
    return found


def _get_api(provider: str, said: Mapping[str, Any]) -> tuple[WireName, str]:
    """Return the API of a provider, and what follows the address that it gets."""
    if provider not in _BUILT_IN or "api" in said:
        return _APIS.get(str(said.get("api")), ("openai_chat", "/v1"))
    version = _BUILT_IN[provider][1]
    return next(each for each in _APIS.values() if each[1] == version)


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    steering = find_steering(argv, place)
    loaded_code = [each for each in steering if each.is_code and each.file == BUN_SETTINGS]
    if loaded_code or (steering and not place.flagged):
        return refuse("pi", loaded_code or steering, _TRUST, ignorable=not loaded_code)
    own = _read_providers(place)
    bases = {name: _build_address(place, f"/u/{known}", version) for name, (known, version) in _BUILT_IN.items()}
    named: dict[str, tuple[WireName, str]] = {}
    for provider in own:
        said = get_object(own, provider)
        url = find_address(said.get("baseUrl"))
        if not url and said.get("baseUrl") and not place.flagged:  # nobody can know what it means: it stays as it is
            bases.pop(provider, None)
        if not url:
            continue
        api, version = _get_api(provider, said)
        name = f"pi-{provider}" if provider.isascii() and provider.replace("-", "").isalnum() else f"pi-{len(named)}"
        named[name] = (api, url)
        if api != "gemini" and not place.flagged:
            version = choose_version(url, version)
        bases[provider] = _build_address(place, f"/u/{name}", version)
    env = {**unset_variables(place.env, steering), _VARIABLE: json.dumps(bases)}
    is_approved = not all(map(is_dotenv, steering))
    words = [word for word in argv[1:] if word not in _APPROVES] if is_approved else argv[1:]
    flags = ("--no-approve", "-e") if is_approved else ("-e",)
    note = say_ignored("pi", steering)
    return Launch((argv[0], *flags, f"{FILES}/{_FILE}", *words), env, {}, named, {_FILE: _EXTENSION}, note)


def _build_address(place: Place, upstream: str, version: str) -> str:
    return place.address + ("" if place.flagged else upstream) + version


def choose_target(request: SetupRequest) -> Target | Refusal:
    own = _read_providers(request.place)
    said = {name: get_object(own, name) for name in own}
    bases = {name: find_address(each.get("baseUrl")) for name, each in said.items()}
    built_in = {theirs: ours for theirs, (ours, _) in _BUILT_IN.items()}
    return choose_from_table(request, built_in, bases, lambda name: _get_api(name, said.get(name, {}))[1])


AGENT = Agent(
    "pi",
    "pi",
    start=start,
    packages=(
        "@earendil-works/pi-coding-agent",
        "@mariozechner/pi-coding-agent",
    ),
    find_steering=find_steering,
    choose_target=choose_target,
    point='"baseUrl": "$P/u/NAME/v1" of the provider in ~/.pi/agent/models.json',
    file="~/.pi/agent/models.json",
    moved=("PI_CODING_AGENT_DIR", "models.json"),
    lines='{"providers": {"$N": {"baseUrl": "$B",\n  "modelOverrides": {"$M": {"input": ["text", "image"]}}}}}',
    usual=Target("zai-coding", "zai", "/v1"),
    model="glm-5.3",
    sees='"input" in modelOverrides of each model; `pi --list-models` shows it under images',
    note="No variable points it elsewhere. baseUrl alone keeps its models and your login.",
)
