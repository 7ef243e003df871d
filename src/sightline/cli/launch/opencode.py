"""opencode: OPENCODE_CONFIG_CONTENT is merged over the user's and the project's files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.cli.launch.started import Launch, Place, address_of, merged, options, parsed, part, version_for
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_CONTENT = "OPENCODE_CONFIG_CONTENT"
_SEEING = {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
_FILES = ("opencode.json", "opencode.jsonc")
_REFERENCE = re.compile(r"\{(env|file):([^{}]+)\}")
# Its own providers, by our names for them.
BUILT_IN: Mapping[str, str] = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "google": "gemini",
    "groq": "groq",
    "mistral": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "openrouter": "openrouter",
    "xai": "xai",
    "zai": "zai",
    "zai-coding-plan": "zai-coding",
}
_NPMS: Mapping[str, WireName] = {"anthropic": "anthropic", "google": "gemini"}


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    given = parsed(place.env.get(_CONTENT) or "{}")
    if given is None:
        return Refusal("invalid_input", f"{_CONTENT} is not JSON", "mend it or unset it")
    config = merged(configured(place), _resolved(given, place.folder, place))
    model = next(options(argv, "-m", "--model"), config.get("model"))
    chosen, _, model_id = model.partition("/") if isinstance(model, str) else ("", "", "")
    named: dict[str, tuple[WireName, str]] = {}
    providers = {
        name: _provider(name, part(config, "provider", name), place, named, model_id if name == chosen else "")
        for name in sorted({*part(config, "provider"), *BUILT_IN, *([chosen] if chosen and place.flagged else [])})
    }
    content = merged(given, {"provider": {name: said for name, said in providers.items() if said}})
    env = {**place.env, _CONTENT: json.dumps(content, ensure_ascii=False)}
    if chosen and not providers.get(chosen):
        return Refusal(
            "unsupported_type",
            f"where opencode asks its provider {chosen} cannot be known",
            "add --upstream NAME, or give it options.baseURL in opencode.json",
        )
    return Launch(tuple(argv), env, {}, named)


def configured(place: Place) -> dict[str, Any]:
    """What the agent's own files say, the later ones over the earlier."""
    config: dict[str, Any] = {}
    for each in _files(place):
        config = merged(config, each)
    return config


def _files(place: Place) -> Iterator[dict[str, Any]]:
    """Every file that it reads, the one that counts last."""
    home = Path(place.env.get("XDG_CONFIG_HOME") or place.home / ".config") / "opencode"
    for name in ("config.json", *_FILES):
        yield _read(home / name, place)
    if own := place.env.get("OPENCODE_CONFIG"):
        yield _read(Path(own), place)
    around = _project(place)
    beside = [*(folder / ".opencode" for folder in around), place.home / ".opencode"]
    if own := place.env.get("OPENCODE_CONFIG_DIR"):
        beside.append(place.folder / own)
    for folder in (*around, *beside):
        for name in _FILES:
            yield _read(folder / name, place)


def _project(place: Place) -> list[Path]:
    """From the root of the repository down to where it is started; without one, that folder alone."""
    marks = (".git/HEAD", ".git")
    roots = (n for n, folder in enumerate(place.above) if any(place.read(folder / mark) is not None for mark in marks))
    return [*reversed(place.above[: next(roots, 0) + 1])]


def _read(file: Path, place: Place) -> dict[str, Any]:
    return _resolved(place.json(file), (place.folder / file).parent, place)


def _resolved(config: dict[str, Any], folder: Path, place: Place) -> dict[str, Any]:
    """With the variables and files that addresses speak of; a file is named as seen from the one that speaks of it."""

    def referred(found: re.Match[str]) -> str:
        kind, name = found[1], found[2].strip()
        if kind == "env":
            return place.env.get(name, "")
        path = place.home / name[2:] if name.startswith("~/") else folder / name
        return (place.read(path) or "").strip()

    said = {name: part(config, "provider", name, "options").get("baseURL") for name in part(config, "provider")}
    known = {
        name: {"options": {"baseURL": _REFERENCE.sub(referred, url)}}
        for name, url in said.items()
        if isinstance(url, str) and address_of(_REFERENCE.sub(referred, url))
    }
    return merged(config, {"provider": known}) if known else config


def _api(name: str, said: Mapping[str, Any]) -> WireName:
    npm = str(said.get("npm", name))
    return next((api for word, api in _NPMS.items() if word in npm), "openai_chat")


def version_of(name: str, said: Mapping[str, Any]) -> str:
    """What follows the address that a provider is given."""
    return "/v1beta" if _api(name, said) == "gemini" else "/v1"


def _provider(
    name: str, said: Mapping[str, Any], place: Place, named: dict[str, tuple[WireName, str]], model: str
) -> dict[str, Any]:
    """What a provider is told: its address here, and that its models see."""
    known, version = BUILT_IN.get(name, ""), version_of(name, said)
    claimed = part(said, "options").get("baseURL")
    theirs = address_of(claimed)
    api = _api(name, said)
    if place.flagged:
        where = ""
    elif theirs:
        key = f"opencode-{len(named) + 1}"
        named[key] = (api, theirs)
        where = f"/u/{key}"
        version = version_for(theirs, version) if api == "openai_chat" else version
    elif known and not claimed:
        where = f"/u/{known}"
    else:  # nobody can know where it goes: it stays as it is
        return {}
    models = dict.fromkeys({*part(said, "models"), *([model] if model else [])}, _SEEING)
    told: dict[str, Any] = {"options": {"baseURL": place.address + where + version}}
    return {**told, "models": models} if models else told
