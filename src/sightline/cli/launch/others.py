"""Agents that are pointed by variables or a folder of their own, and programs that nobody knows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from sightline.cli.launch.projects import NETWORK, Steering, refuse, say_ignored, variables_that_steer
from sightline.cli.launch.started import (
    FILES,
    Launch,
    Place,
    address_of,
    behind,
    merged,
    options,
    part,
    version_for,
    without,
)
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_ANTHROPIC = "ANTHROPIC_BASE_URL"
_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_COMPATIBLE = "openai-compatible"
_COPY = "Cline works on a copy of its data folder; its history of this run is not kept"
_CLINE_STEERING = re.compile(rf"{NETWORK}|CLINE_\w+", re.IGNORECASE)
# It reads all of them that are in the folder where it starts.
_CLINE_FILES = (".env", *(f".env{mode}" for mode in (".development", ".production", ".test")), ".env.local")


def cline(argv: Sequence[str], place: Place) -> Launch | Refusal:
    """It reads its provider from its data folder alone: it gets a copy of its settings, pointed here.

    It also takes variables from the `.env` files of the folder where it starts, and keeps no record of trusted ones.
    """
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
    steering = find_cline_steering(argv, place)
    if steering and not place.flagged:
        return refuse("Cline", steering, f"set {steering[0].setting} yourself in the environment")
    formerly = address_of(own.get("baseUrl"))
    base = place.address + ("/v1" if place.flagged else version_for(formerly, "/v1"))
    pointed = {"providers": {_COMPATIBLE: {"settings": {"baseUrl": base}}}}
    rest = without(argv, "--data-dir")[1:]
    return Launch(
        (argv[0], "--data-dir", FILES, *rest),
        {**place.env, **{each.setting: "" for each in steering}},
        {"openai_chat": formerly} if formerly else {},
        files={"settings/providers.json": json.dumps(merged(settings, pointed))},
        note="; ".join(filter(None, (say_ignored("Cline", steering), _COPY))),
    )


def find_cline_steering(argv: Sequence[str], place: Place) -> list[Steering]:
    """Return the variables of a project that decide where keys and images go."""
    files = () if place.at_home else map(Path, _CLINE_FILES)
    return [each for file in files for each in variables_that_steer(place, file, _CLINE_STEERING)]


def unknown(argv: Sequence[str], place: Place) -> Launch:
    """Point a program by the variables that most programs read, and say so."""
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
