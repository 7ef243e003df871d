"""How to start Codex behind the proxy, and how to set it up.

-c overrides config.toml. OPENAI_BASE_URL is ignored, and the built-in provider cannot be changed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.agents.agent import CodingAgent, ProviderTarget, SetupRequest
from sightline.agents.launch import Launch, LaunchContext, choose_version, find_address, find_options, resolve_upstream
from sightline.agents.settings_files import get_object, merge
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

_CHATGPT = "https://chatgpt.com/backend-api/codex"
_BUILT_IN = "openai"
_APIS: tuple[WireName, ...] = ("openai_responses", "openai_chat")  # it also asks which models there are
_LOGGED_IN = ("openai", "chatgpt")  # whose login is Codex's own
_OTHER_LOGINS = ("experimental_bearer_token", "auth", "http_headers", "env_http_headers", "query_params")
_SETTING = ("-c", "--config")
_CONCERNS_PROVIDER = re.compile(r"\s*(?:model_provider|openai_base_url|model_providers\..*)\s*\Z")


@value_class
class CurrentProvider:
    """The provider that Codex uses, and its address."""

    provider: str
    table: Mapping[str, Any]  # of a provider of the user's own; empty: the built-in one
    address: str  # or the name of an upstream; empty: the one of OpenAI


def start(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    found = find_provider(argv, context)
    if isinstance(found, Refusal):
        return found
    former_upstream = "" if context.has_upstream else found.address
    base = context.address + ("" if former_upstream == "chatgpt" else choose_version(former_upstream, "/v1"))
    if found.table:
        words = [f"model_providers.{found.provider}.base_url={json.dumps(base)}"]
    else:
        # A new provider that uses the user's login. Codex then uses no websocket and no compressed bodies.
        table = f'{{name="Sightline",base_url="{base}",wire_api="responses",requires_openai_auth=true}}'
        words = ["model_provider=sightline", f"model_providers.sightline={table}"]
    user_settings, rest = _split_settings(argv)
    # Of two settings the later one counts, and those of a subcommand after all others.
    flags = [word for each in (*user_settings, *words) for word in ("-c", each)]
    return Launch(
        (argv[0], *flags, *rest), context.env, dict.fromkeys(_APIS, former_upstream) if former_upstream else {}
    )


def find_provider(argv: Sequence[str], context: LaunchContext) -> CurrentProvider | Refusal:
    """Return the provider that Codex asks, by its flags, its profile and its file."""
    home = Path(context.env.get("CODEX_HOME") or context.home / ".codex")
    config = _read_config(argv, context, home)
    provider = str(config.get("model_provider") or _BUILT_IN)
    table = get_object(config, "model_providers", provider)
    if "--oss" in argv or (not table and provider != _BUILT_IN):
        who = "its local provider" if "--oss" in argv else f"its own provider {provider}"
        return Refusal(
            "unsupported_type",
            f"Codex uses {who}, whose address can't be changed",
            "give it a table under model_providers in config.toml, with a base_url, and name that in model_provider",
        )
    if provider == _BUILT_IN:
        base_url = config.get("openai_base_url")
        by_login = _CHATGPT if _uses_chatgpt(context, home) else ""
        return CurrentProvider(
            provider, {}, resolve_upstream(base_url) if isinstance(base_url, str) and base_url else by_login
        )
    address = find_address(table.get("base_url"))
    if not (address or context.has_upstream) or not re.fullmatch(r"[\w-]+", provider):
        return Refusal(
            "invalid_input",
            f"the provider {provider} of Codex has no address",
            f"give model_providers.{provider} a base_url in config.toml",
        )
    return CurrentProvider(provider, table, address)


def _read_config(argv: Sequence[str], context: LaunchContext, home: Path) -> dict[str, Any]:
    """Return the settings of its file, with the profile merged over it, and the flags over both."""
    config = context.read_toml(home / "config.toml")
    flags = [
        pair for each in (*find_options(argv, *_SETTING), *_split_settings(argv)[0]) if (pair := _parse_setting(each))
    ]
    profile = next(find_options(argv, "-p", "--profile"), config.get("profile"))
    if isinstance(profile, str) and profile:
        layer = context.read_toml(home / f"{profile}.config.toml") if re.fullmatch(r"[\w.-]+", profile) else {}
        config = merge(merge(config, get_object(config, "profiles", profile)), layer)
    for each in flags:
        config = merge(config, each)
    return config


def _parse_setting(word: str) -> dict[str, Any]:
    """Parse `a.b=value` into an object; a value that is not TOML is the text itself."""
    key, equals, text = word.partition("=")
    try:
        value: Any = tomllib.loads(f"it = {text}")["it"]
    except (ValueError, RecursionError, KeyError):
        value = text.strip().strip("\"'")
    for name in reversed(key.strip().split(".")):
        value = {name: value}
    return value if equals and isinstance(value, dict) else {}


def _split_settings(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the settings that concern providers, and the arguments without them."""
    settings: list[str] = []
    rest: list[str] = []
    words = iter(argv[1:])
    for word in words:
        if word == "--":
            rest.extend((word, *words))
            break
        option = (word, next(words, "")) if word in _SETTING else (word,)
        setting = option[-1] if len(option) > 1 else _read_attached_setting(word)
        if _CONCERNS_PROVIDER.match(setting.partition("=")[0]):
            settings.append(setting)
        else:
            rest.extend(option)
    return settings, rest


def _read_attached_setting(word: str) -> str:
    """Return a setting that is in the same word as its flag."""
    if word.startswith("--config="):
        return word.partition("=")[2]
    return word[2:].removeprefix("=") if word.startswith("-c") and not word.startswith("--") else ""


def _uses_chatgpt(context: LaunchContext, home: Path) -> bool:
    """Return whether the user is logged in with ChatGPT, and not with a key."""
    login = context.read_json(home / "auth.json")
    key = context.env.get("CODEX_API_KEY") or login.get("OPENAI_API_KEY")
    return bool(get_object(login, "tokens")) and not key


def choose_target(request: SetupRequest) -> ProviderTarget | Refusal:
    found = find_provider(["codex"], request.context)
    now = found if isinstance(found, Refusal) else request.find_upstream(found.address or _BUILT_IN)
    if refusal := _refuse_profile(request):
        return refusal
    if isinstance(found, CurrentProvider) and (not request.upstream or request.upstream == now):
        return now if isinstance(now, Refusal) else _keep_provider(request, found, now)
    if not request.upstream and isinstance(now, Refusal):
        return now
    login = request.upstream in _LOGGED_IN
    key = "" if login else request.find_key(request.upstream)
    return ProviderTarget(
        request.upstream, version=_choose_version(request.upstream), key=key, login=login, needs_key=bool(key)
    )


def _keep_provider(request: SetupRequest, found: CurrentProvider, upstream: str) -> ProviderTarget | Refusal:
    """Return the provider that Codex asks now, with the key that it uses for it."""
    if other := [name for name in _OTHER_LOGINS if found.table.get(name)]:
        return Refusal(
            "unsupported_type",
            f"the provider {found.provider} of Codex has {other[0]}, which would be lost",
            f"write {request.context.address}/u/{upstream}{_choose_version(upstream)} into its base_url by hand",
        )
    login = not found.table or found.table.get("requires_openai_auth") is True
    key = found.table.get("env_key")
    return ProviderTarget(
        upstream, version=_choose_version(upstream), key=key if isinstance(key, str) else "", login=login
    )


def _choose_version(upstream: str) -> str:
    return "" if upstream == "chatgpt" else "/v1"


def _refuse_profile(request: SetupRequest) -> Refusal | None:
    """Refuse a profile that is always on and names a provider of its own."""
    file = request.agent.find_file(request.context.env) or Path()
    config = request.context.read_toml(file)
    profile = config.get("profile")
    if not isinstance(profile, str) or not get_object(config, "profiles", profile).get("model_provider"):
        return None
    return Refusal(
        "unsupported_type",
        f"the profile {profile} in {file} names a model_provider, which overrides what would be written",
        "remove it from the profile first",
    )


AGENT = CodingAgent(
    "codex",
    "Codex",
    start=start,
    api="openai_responses",
    packages=("@openai/codex",),
    choose_target=choose_target,
    mcp="in ~/.codex/config.toml:\n"
    "[mcp_servers.sightline]\n"
    'command = "sightline"\n'
    'args = ["mcp"]\n'
    "required = true # otherwise the first turn doesn't wait for it",
    short_hint="codex -c openai_base_url=$P/u/openai/v1",
    one_run="codex -c model_provider=sightline -c 'model_providers.sightline="
    '{name="Sightline",base_url="$B",wire_api="responses",$A}\'',
    file="~/.codex/config.toml",
    moved_by=("CODEX_HOME", "config.toml"),
    file_lines='model_provider = "sightline"  # above the first table\n'
    "[model_providers.sightline]\n"
    'name = "Sightline"\n'
    'base_url = "$B"\n'
    'wire_api = "responses"'
    "\n$A",
    default_target=ProviderTarget("openai", version="/v1", login=True),
    key_hint="Codex now needs the key of $U: put it into $K in the environment of codex.",
    note="It ignores OPENAI_BASE_URL. With a ChatGPT login base_url is $P/u/chatgpt, without /v1."
    " A model that Codex knows as text-only needs input_modalities in a model_catalog_json.",
)
