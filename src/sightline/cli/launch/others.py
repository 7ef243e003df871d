"""Agents that are pointed by variables or a folder of their own, and programs that nobody knows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sightline.cli.launch.started import (
    FILES,
    Launch,
    Place,
    address_of,
    behind,
    merged,
    of_project,
    options,
    part,
    version_for,
    without,
)
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_ANTHROPIC = "ANTHROPIC_BASE_URL"
_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_KEYED = ("", "gemini-api-key", "gateway")
_LOGINS = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")
_COMPATIBLE = "openai-compatible"


def gemini(argv: Sequence[str], place: Place) -> Launch | Refusal:
    """Its variable changes how it logs in, unless a login of the user's is saved: then it gets one for this run."""
    variable, saved = "GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_HOME"
    home = Path(place.env.get(saved) or place.home)
    settings = place.json(home / ".gemini" / "settings.json")
    login = gemini_login(place)
    if login not in _KEYED:
        return Refusal(
            "unsupported_type",
            f"Gemini CLI is logged in by {login}, which nothing can point elsewhere",
            "choose an API key with /auth in it, or unset the variable that says otherwise",
        )
    dotenv, where = _gemini_dotenv(argv, place, home, settings)
    own = place.env.get(variable)
    said = own if own is not None else dotenv.get(variable, "")
    formerly = behind(said)
    note = "" if own is not None else of_project(formerly, where)
    env = {**place.env, variable: place.address}
    taken: Mapping[WireName, str] = {"gemini": formerly} if formerly else {}
    if login:
        return Launch(tuple(argv), env, taken, note=note)
    copied = merged(settings, {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    files = {".gemini/settings.json": json.dumps(copied)}
    alone = "no login of Gemini CLI is saved: it runs by GEMINI_API_KEY, with a history of this run alone"
    return Launch(tuple(argv), {**env, saved: FILES}, taken, files=files, note="; ".join(filter(None, (note, alone))))


def gemini_login(place: Place) -> str:
    """How Gemini CLI logs in: what it has saved, else what the environment asks for; empty: nothing of the kind."""
    home = Path(place.env.get("GEMINI_CLI_HOME") or place.home)
    saved = part(place.json(home / ".gemini" / "settings.json"), "security", "auth").get("selectedType")
    return str(saved or next((name for name in _LOGINS if place.env.get(name) == "true"), ""))


def _gemini_dotenv(
    argv: Sequence[str], place: Place, home: Path, settings: Mapping[str, object]
) -> tuple[dict[str, str], str]:
    """The one file of variables that it reads, and its name where it is the project's: that one needs its trust."""
    careful = part(settings, "security", "folderTrust").get("enabled") is not False
    told = place.env.get("GEMINI_CLI_TRUST_WORKSPACE") == "true" or "--skip-trust" in argv
    trusted = not careful or told or place.trusts(home / ".gemini" / "trustedFolders.json")
    names = [folder / name for folder in (*place.above, home) for name in (".gemini/.env", ".env")]
    own = (home / ".gemini" / ".env", home / ".env")
    nearest = next((name for name in names if (trusted or name in own) and place.read(name) is not None), own[0])
    return place.dotenv(nearest), "" if nearest in own else str(nearest)


def cline(argv: Sequence[str], place: Place) -> Launch | Refusal:
    """It reads its provider from its data folder alone: it gets a copy of its settings, pointed here."""
    given = next(options(argv, "--data-dir"), "")
    home = place.folder / given if given else place.home / ".cline" / "data"
    settings = place.json(home / "settings" / "providers.json")
    own = part(settings, "providers", _COMPATIBLE, "settings")
    last = settings.get("lastUsedProvider") or _COMPATIBLE
    if own and last != _COMPATIBLE:
        return Refusal(
            "unsupported_type",
            f"Cline asks {last} now, which cannot be pointed elsewhere",
            "cline auth -p openai -k KEY -m MODEL -b ADDRESS makes it ask an OpenAI-compatible one",
        )
    if not own:
        return Refusal(
            "unsupported_type",
            "Cline has no OpenAI-compatible provider, and no other can be pointed elsewhere",
            "cline auth -p openai -k KEY -m MODEL -b ADDRESS gives it one",
        )
    formerly = address_of(own.get("baseUrl"))
    base = place.address + ("/v1" if place.flagged else version_for(formerly, "/v1"))
    pointed = {"providers": {_COMPATIBLE: {"settings": {"baseUrl": base}}}}
    rest = without(argv, "--data-dir")[1:]
    return Launch(
        (argv[0], "--data-dir", FILES, *rest),
        place.env,
        {"openai_chat": formerly} if formerly else {},
        files={"settings/providers.json": json.dumps(merged(settings, pointed))},
        note="Cline works on a copy of its data folder; its history of this run is not kept",
    )


def unknown(argv: Sequence[str], place: Place) -> Launch:
    """Most programs read one of these; whoever ignores them is not helped, and is told so."""
    openai = behind(next((place.env[variable] for variable in _OPENAI if place.env.get(variable)), ""))
    found: dict[WireName, str] = {
        "anthropic": behind(place.env.get(_ANTHROPIC, "")),
        **dict.fromkeys(("openai_chat", "openai_responses"), openai),
    }
    base = place.address + ("/v1" if place.flagged else version_for(openai, "/v1"))
    pointed = {_ANTHROPIC: place.address, **dict.fromkeys(_OPENAI, base)}
    return Launch(
        tuple(argv),
        {**place.env, **pointed},
        {api: url for api, url in found.items() if url},
        note=f"{Path(argv[0]).name} is pointed here by {', '.join(pointed)};"
        " if it reads none of them, nothing changes for it",
    )
