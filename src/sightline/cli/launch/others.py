"""Agents that are pointed by variables or a folder of their own, and programs that nobody knows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sightline.cli.launch.started import FILES, Launch, Place, address_of, merged, options, part
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_ANTHROPIC = "ANTHROPIC_BASE_URL"
_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")


def gemini(argv: Sequence[str], place: Place) -> Launch:
    """Its variable changes how it logs in, unless a login of the user's is saved: then it gets one for this run."""
    variable, saved = "GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_HOME"
    home = Path(place.env.get(saved) or place.home)
    files = [home / ".gemini" / ".env", place.folder / ".env", place.folder / ".gemini" / ".env"]
    dotenv = {name: text for file in files for name, text in place.dotenv(file).items()}
    formerly = address_of(place.env.get(variable) or dotenv.get(variable))
    env = {**place.env, variable: place.address}
    settings = place.json(home / ".gemini" / "settings.json")
    taken: Mapping[WireName, str] = {"gemini": formerly} if formerly else {}
    if part(settings, "security", "auth").get("selectedType"):
        return Launch(tuple(argv), env, taken)
    own = merged(settings, {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    note = "no login of Gemini CLI is saved: it runs by GEMINI_API_KEY, with a history of this run alone"
    return Launch(
        tuple(argv), {**env, saved: FILES}, taken, files={".gemini/settings.json": json.dumps(own)}, note=note
    )


def copilot(argv: Sequence[str], place: Place) -> Launch | Refusal:
    variable = "COPILOT_PROVIDER_BASE_URL"
    formerly = address_of(place.env.get(variable))
    if not formerly and not place.flagged:
        return Refusal(
            "unsupported_type",
            "Copilot CLI asks GitHub itself, which nothing can point elsewhere",
            f"set {variable}, COPILOT_PROVIDER_API_KEY and COPILOT_MODEL to a provider of your own",
        )
    messages = place.env.get("COPILOT_PROVIDER_TYPE") == "anthropic"
    apis: tuple[WireName, ...] = ("anthropic",) if messages else ("openai_chat", "openai_responses")
    env = {**place.env, variable: place.address + ("" if messages else "/v1")}
    note = "pictures that Copilot's own view tool opens never leave it; attached ones do"
    return Launch(tuple(argv), env, dict.fromkeys(apis, formerly) if formerly else {}, note=note)


def cline(argv: Sequence[str], place: Place) -> Launch | Refusal:
    """It reads its provider from its data folder alone: it gets a copy of its settings, pointed here."""
    given = next(options(argv, "--data-dir"), "")
    home = place.folder / given if given else place.home / ".cline" / "data"
    settings = place.json(home / "settings" / "providers.json")
    own = part(settings, "providers", "openai-compatible", "settings")
    if not own:
        return Refusal(
            "unsupported_type",
            "Cline has no OpenAI-compatible provider, and no other can be pointed elsewhere",
            "cline auth -p openai -k KEY -m MODEL -b ADDRESS gives it one",
        )
    formerly = address_of(own.get("baseUrl"))
    pointed = {"providers": {"openai-compatible": {"settings": {"baseUrl": f"{place.address}/v1"}}}}
    rest = [word for word in argv[1:] if word not in ("--data-dir", given) and not word.startswith("--data-dir=")]
    return Launch(
        (argv[0], "--data-dir", FILES, *rest),
        place.env,
        {"openai_chat": formerly} if formerly else {},
        files={"settings/providers.json": json.dumps(merged(settings, pointed))},
        note="Cline works on a copy of its data folder; its history of this run is not kept",
    )


def unknown(argv: Sequence[str], place: Place) -> Launch:
    """Most programs read one of these; whoever ignores them is not helped, and is told so."""
    openai = next((place.env[variable] for variable in _OPENAI if place.env.get(variable)), "")
    found: dict[WireName, str] = {
        "anthropic": place.env.get(_ANTHROPIC, ""),
        **dict.fromkeys(("openai_chat", "openai_responses"), openai),
    }
    pointed = {_ANTHROPIC: place.address, **dict.fromkeys(_OPENAI, f"{place.address}/v1")}
    return Launch(
        tuple(argv),
        {**place.env, **pointed},
        {api: url for api, url in found.items() if url},
        note=f"{Path(argv[0]).name} is pointed here by {', '.join(pointed)};"
        " if it reads none of them, nothing changes for it",
    )
