"""How to start pi behind the proxy, and how to set it up.

No variable changes its address, so an extension of Sightline, loaded for this run only, does.

It reads the settings of a project only if its record in trust.json trusts the folder, or if an option or a setting
trusts every folder. Its native builds are made with Bun, which loads the `.env` files of every folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.agents.agent import CodingAgent, ProviderTarget, SetupRequest, choose_from_table
from sightline.agents.launch import (
    BUN_SETTINGS,
    FILES,
    NETWORK,
    PROVIDERS,
    Launch,
    LaunchContext,
    Steering,
    choose_version,
    describe_ignored_settings,
    find_address,
    find_bun_steering,
    find_project_code,
    find_steering_settings,
    is_dotenv,
    refuse_project,
    unset_variables,
)
from sightline.agents.settings_files import get_object
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_FILE = "sightline.ts"
_PROVIDERS_VARIABLE = "SIGHTLINE_PI_PROVIDERS"
_APPROVES = ("-a", "--approve")
_PROJECT_SETTINGS = Path(".pi/settings.json")
_TRUST_REMEDY = "save that you trust it with /trust in pi, then run this again"
_CODE = ".pi/extensions"
_STEERING_SETTINGS = ("defaultProvider", "enabledModels", "packages", "extensions")
_STEERING_VARIABLES = rf"(?i){NETWORK}|{PROVIDERS}|PI_\w+"
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


def _read_providers(context: LaunchContext) -> dict[str, Any]:
    """Return the providers that the user has configured."""
    return get_object(context.read_json(_get_home(context) / "models.json"), "providers")


def _get_home(context: LaunchContext) -> Path:
    return Path(context.env.get("PI_CODING_AGENT_DIR") or context.home / ".pi" / "agent")


def find_steering(argv: Sequence[str], context: LaunchContext) -> list[Steering]:
    """Return what a project says about where keys and images go, if pi reads it without a record of trust."""
    record = context.read_json(_get_home(context) / "trust.json")
    saved = next(
        (record[str(folder)] for folder in context.folder_chain if isinstance(record.get(str(folder)), bool)), None
    )
    always = (
        context.read_json(_get_home(context) / "settings.json").get("defaultProjectTrust") == "always" and saved is None
    )
    words = argv[: argv.index("--")] if "--" in argv else argv
    if saved is True or context.at_home:
        return []
    found = find_bun_steering(context, "pi", _STEERING_VARIABLES)
    if always or any(word in words for word in _APPROVES):
        found += find_steering_settings(
            _PROJECT_SETTINGS, context.read(context.folder / _PROJECT_SETTINGS) or "", _STEERING_SETTINGS
        )
        found += find_project_code(context, context.folder / _CODE, "pi")
    return found


def _get_api(provider: str, settings: Mapping[str, Any]) -> tuple[WireName, str]:
    """Return the API of a provider, and what follows the address that it gets."""
    if provider not in _BUILT_IN or "api" in settings:
        return _APIS.get(str(settings.get("api")), ("openai_chat", "/v1"))
    version = _BUILT_IN[provider][1]
    return next(each for each in _APIS.values() if each[1] == version)


def start(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    steering = find_steering(argv, context)
    loaded_code = [each for each in steering if each.is_code and each.file == BUN_SETTINGS]
    if loaded_code or (steering and not context.has_upstream):
        return refuse_project("pi", loaded_code or steering, _TRUST_REMEDY, ignorable=not loaded_code)
    own = _read_providers(context)
    bases = {
        name: _build_address(context, f"/u/{known}", *_get_api(name, {})) for name, (known, _) in _BUILT_IN.items()
    }
    named: dict[str, tuple[WireName, str]] = {}
    for provider in own:
        settings = get_object(own, provider)
        url = find_address(settings.get("baseUrl"))
        api, version = _get_api(provider, settings)
        is_ours = context.uses_upstream(api)
        if not url and settings.get("baseUrl") and not is_ours:  # unknown address: it stays as it is
            bases.pop(provider, None)
        if not url:
            continue
        name = f"pi-{provider}" if provider.isascii() and provider.replace("-", "").isalnum() else f"pi-{len(named)}"
        if not is_ours:
            named[name] = (api, url)
            version = version if api == "gemini" else choose_version(url, version)
        bases[provider] = _build_address(context, f"/u/{name}", api, version)
    env = {**unset_variables(context.env, steering), _PROVIDERS_VARIABLE: json.dumps(bases)}
    is_approved = not all(map(is_dotenv, steering))
    words = [word for word in argv[1:] if word not in _APPROVES] if is_approved else argv[1:]
    flags = ("--no-approve", "-e") if is_approved else ("-e",)
    note = describe_ignored_settings("pi", steering)
    return Launch((argv[0], *flags, f"{FILES}/{_FILE}", *words), env, {}, named, {_FILE: _EXTENSION}, note)


def _build_address(context: LaunchContext, upstream: str, api: WireName, version: str) -> str:
    return context.address + ("" if context.uses_upstream(api) else upstream) + version


def choose_target(request: SetupRequest) -> ProviderTarget | Refusal:
    own = _read_providers(request.context)
    settings = {name: get_object(own, name) for name in own}
    bases = {name: find_address(each.get("baseUrl")) for name, each in settings.items()}
    built_in = {agent_name: upstream for agent_name, (upstream, _) in _BUILT_IN.items()}
    return choose_from_table(request, built_in, bases, lambda name: _get_api(name, settings.get(name, {}))[1])


AGENT = CodingAgent(
    "pi",
    "pi",
    start=start,
    packages=(
        "@earendil-works/pi-coding-agent",
        "@mariozechner/pi-coding-agent",
    ),
    find_steering=find_steering,
    choose_target=choose_target,
    short_hint='"baseUrl": "$P/u/NAME/v1" of the provider in ~/.pi/agent/models.json',
    file="~/.pi/agent/models.json",
    moved_by=("PI_CODING_AGENT_DIR", "models.json"),
    file_lines='{"providers": {"$N": {"baseUrl": "$B",\n  "modelOverrides": {"$M": {"input": ["text", "image"]}}}}}',
    default_target=ProviderTarget("zai-coding", "zai", "/v1"),
    default_model="glm-5.3",
    vision_hint='"input" in modelOverrides of each model; `pi --list-models` shows it under images',
    key_hint="pi needs the key of $U, in the provider's usual variable or by /login, if it does not have it yet.",
    note="No variable changes its address. baseUrl alone keeps its models and your login.",
)
