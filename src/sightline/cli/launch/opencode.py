"""opencode: OPENCODE_CONFIG_CONTENT is merged over the user's and the project's files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.cli.launch.started import Launch, Place, address_of, merged, options, parsed, part
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_CONTENT = "OPENCODE_CONFIG_CONTENT"
_SEEING = {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
_BUILT_IN: Mapping[str, str] = {
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
_VERSIONS = {"google": "/v1beta"}


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    given = parsed(place.env.get(_CONTENT) or "{}")
    if given is None:
        return Refusal("invalid_input", f"{_CONTENT} is not JSON", "mend it or unset it")
    config: dict[str, Any] = {}
    for each in (*_files(place), given):
        config = merged(config, each)
    model = next(options(argv, "-m", "--model"), config.get("model"))
    chosen, _, model_id = model.partition("/") if isinstance(model, str) else ("", "", "")
    named: dict[str, tuple[WireName, str]] = {}
    providers = {
        name: _provider(name, part(config, "provider", name), place, named, model_id if name == chosen else "")
        for name in {*part(config, "provider"), *_BUILT_IN}
    }
    content = merged(given, {"provider": {name: said for name, said in providers.items() if said}})
    env = {**place.env, _CONTENT: json.dumps(content, ensure_ascii=False)}
    return Launch(tuple(argv), env, {}, named)


def _files(place: Place) -> Iterator[dict[str, Any]]:
    home = Path(place.env.get("XDG_CONFIG_HOME") or place.home / ".config") / "opencode"
    if own := place.env.get("OPENCODE_CONFIG"):
        yield place.json(own)
    for folder in (home, place.folder):
        for name in ("opencode.json", "opencode.jsonc"):
            yield place.json(folder / name)


def _provider(
    name: str, said: Mapping[str, Any], place: Place, named: dict[str, tuple[WireName, str]], model: str
) -> dict[str, Any]:
    """What a provider is told: its address here, and that its models see."""
    theirs = address_of(part(said, "options").get("baseURL"))
    if theirs and not place.flagged:
        key = f"opencode-{len(named) + 1}"
        named[key] = ("anthropic" if "anthropic" in str(said.get("npm", name)) else "openai_chat", theirs)
        where = f"/u/{key}"
    elif place.flagged:
        where = ""
    elif name in _BUILT_IN:
        where = f"/u/{_BUILT_IN[name]}"
    else:
        return {}
    models = dict.fromkeys({*part(said, "models"), *([model] if model else [])}, _SEEING)
    told: dict[str, Any] = {"options": {"baseURL": place.address + where + _VERSIONS.get(name, "/v1")}}
    return {**told, "models": models} if models else told
