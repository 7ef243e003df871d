"""Codex: -c wins over config.toml; OPENAI_BASE_URL is ignored, and its built-in provider cannot be changed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.cli.launch.started import Launch, Place, address_of, behind, merged, options, part, version_for
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

CHATGPT = "https://chatgpt.com/backend-api/codex"
BUILT_IN = "openai"
_APIS: tuple[WireName, ...] = ("openai_responses", "openai_chat")  # it also asks which models there are
_SETTING = ("-c", "--config")
_ADDRESSED = re.compile(r"\s*(?:model_provider|openai_base_url|model_providers\..*)\s*\Z")


@dataclass(frozen=True, slots=True)
class Asked:
    """The provider that is asked, and where it is."""

    provider: str
    table: Mapping[str, Any]  # of a provider of the user's own; empty: the built-in one
    address: str  # or the name of an upstream; empty: the one of OpenAI


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    found = asked(argv, place)
    if isinstance(found, Refusal):
        return found
    formerly = "" if place.flagged else found.address
    base = place.address + ("" if formerly == "chatgpt" else version_for(formerly, "/v1"))
    if found.table:
        words = [f"model_providers.{found.provider}.base_url={json.dumps(base)}"]
    else:
        # A provider of our own that takes the user's login: no websocket, no packed bodies.
        table = f'{{name="Sightline",base_url="{base}",wire_api="responses",requires_openai_auth=true}}'
        words = ["model_provider=sightline", f"model_providers.sightline={table}"]
    theirs, rest = _parted(argv)
    # Of two settings the later one counts, and those of a subcommand after all others.
    flags = [word for each in (*theirs, *words) for word in ("-c", each)]
    return Launch((argv[0], *flags, *rest), place.env, dict.fromkeys(_APIS, formerly) if formerly else {})


def asked(argv: Sequence[str], place: Place) -> Asked | Refusal:
    """Whom Codex asks by its flags, its profile and its file."""
    home = Path(place.env.get("CODEX_HOME") or place.home / ".codex")
    config = _config(argv, place, home)
    provider = str(config.get("model_provider") or BUILT_IN)
    table = part(config, "model_providers", provider)
    if "--oss" in argv or (not table and provider != BUILT_IN):
        who = "its local provider" if "--oss" in argv else f"its own provider {provider}"
        return Refusal(
            "unsupported_type",
            f"Codex asks {who}, which cannot be pointed elsewhere",
            "give it a table under model_providers in config.toml, with a base_url, and name that in model_provider",
        )
    if provider == BUILT_IN:
        own = config.get("openai_base_url")
        by_login = CHATGPT if by_chatgpt(place, home) else ""
        return Asked(provider, {}, behind(own) if isinstance(own, str) and own else by_login)
    address = address_of(table.get("base_url"))
    if not (address or place.flagged) or not re.fullmatch(r"[\w-]+", provider):
        return Refusal(
            "invalid_input",
            f"the provider {provider} of Codex has no address that could be taken over",
            f"give model_providers.{provider} a base_url in config.toml",
        )
    return Asked(provider, table, address)


def _config(argv: Sequence[str], place: Place, home: Path) -> dict[str, Any]:
    """What its file says, the profile over it, and the flags over both."""
    config = place.toml(home / "config.toml")
    flags = [pair for each in (*options(argv, *_SETTING), *_parted(argv)[0]) if (pair := _setting(each))]
    profile = next(options(argv, "-p", "--profile"), config.get("profile"))
    if isinstance(profile, str) and profile:
        layer = place.toml(home / f"{profile}.config.toml") if re.fullmatch(r"[\w.-]+", profile) else {}
        config = merged(merged(config, part(config, "profiles", profile)), layer)
    for each in flags:
        config = merged(config, each)
    return config


def _setting(word: str) -> dict[str, Any]:
    """`a.b=value` as an object; a value that is no TOML is the text itself."""
    key, equals, text = word.partition("=")
    try:
        value: Any = tomllib.loads(f"it = {text}")["it"]
    except (ValueError, RecursionError, KeyError):
        value = text.strip().strip("\"'")
    for name in reversed(key.strip().split(".")):
        value = {name: value}
    return value if equals and isinstance(value, dict) else {}


def _parted(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings that speak of providers, and the arguments without them."""
    theirs: list[str] = []
    rest: list[str] = []
    words = iter(argv[1:])
    for word in words:
        if word == "--":
            rest.extend((word, *words))
            break
        took = (word, next(words, "")) if word in _SETTING else (word,)
        said = took[-1] if len(took) > 1 else _attached(word)
        if _ADDRESSED.match(said.partition("=")[0]):
            theirs.append(said)
        else:
            rest.extend(took)
    return theirs, rest


def _attached(word: str) -> str:
    """A setting that stands in the same word as its flag."""
    if word.startswith("--config="):
        return word.partition("=")[2]
    return word[2:].removeprefix("=") if word.startswith("-c") and not word.startswith("--") else ""


def by_chatgpt(place: Place, home: Path) -> bool:
    """Whether the user is logged in with ChatGPT, and not with a key."""
    login = place.json(home / "auth.json")
    key = place.env.get("CODEX_API_KEY") or login.get("OPENAI_API_KEY")
    return bool(part(login, "tokens")) and not key
