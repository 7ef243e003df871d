"""Codex: -c wins over config.toml; OPENAI_BASE_URL is ignored, and its built-in provider cannot be changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sightline.cli.launch.started import Launch, Place, address_of, options, part
from sightline.model.profile import WireName

_CHATGPT = "https://chatgpt.com/backend-api/codex"
_BUILT_IN = "openai"
_APIS: tuple[WireName, ...] = ("openai_responses", "openai_chat")  # it also asks which models there are


def start(argv: Sequence[str], place: Place) -> Launch:
    home = Path(place.env.get("CODEX_HOME") or place.home / ".codex")
    config = place.toml(home / "config.toml")
    provider = _provider(argv, config)
    own = part(config, "model_providers", provider)
    if provider != _BUILT_IN and own:
        formerly = address_of(own.get("base_url"))
        words = [f"model_providers.{provider}.base_url={json.dumps(f'{place.address}/v1')}"]
    else:
        # A provider of our own that takes the user's login: no websocket, no packed bodies.
        formerly = _CHATGPT if _by_chatgpt(place, home) else ""
        base = place.address if formerly else f"{place.address}/v1"
        table = f'{{name="Sightline",base_url="{base}",wire_api="responses",requires_openai_auth=true}}'
        words = ["model_provider=sightline", f"model_providers.sightline={table}"]
    flags = [word for each in words for word in ("-c", each)]
    return Launch((argv[0], *flags, *argv[1:]), place.env, dict.fromkeys(_APIS, formerly) if formerly else {})


def _provider(argv: Sequence[str], config: Mapping[str, object]) -> str:
    """The provider that is asked: of the flags, the profile, or the file."""
    said = [each.partition("=")[2].strip("\"'") for each in options(argv, "-c", "--config") if _names_provider(each)]
    profile = next(options(argv, "-p", "--profile"), config.get("profile"))
    there = part(config, "profiles", str(profile)).get("model_provider")
    return said[-1] if said else str(there or config.get("model_provider") or _BUILT_IN)


def _names_provider(setting: str) -> bool:
    return setting.partition("=")[0].strip() == "model_provider"


def _by_chatgpt(place: Place, home: Path) -> bool:
    """Whether the user is logged in with ChatGPT, and not with a key."""
    login = place.json(home / "auth.json")
    key = place.env.get("CODEX_API_KEY") or login.get("OPENAI_API_KEY")
    return bool(part(login, "tokens")) and not key
