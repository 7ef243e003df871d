"""Cline: it reads its provider from its data folder alone, so it gets a copy of its settings, pointed here.

It also takes variables from the `.env` files of the folder where it starts, runs the hooks of the folder where it
works (`--cwd`), and keeps no record of trusted folders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sightline.agents.agent import Agent, Target
from sightline.agents.launch import FILES, Launch, Place, choose_version, find_address, find_options, remove_options
from sightline.agents.projects import (
    DOTENVS,
    NETWORK,
    Steering,
    code_that_runs,
    refuse,
    say_ignored,
    select_code,
    unset_variables,
    variables_that_steer,
)
from sightline.agents.settings_files import get_object, merge
from sightline.model.refusal import Refusal

_COMPATIBLE = "openai-compatible"
_COPY = "Cline works on a copy of its data folder; its history of this run is not kept"
_STEERING = re.compile(rf"{NETWORK}|CLINE_\w+", re.IGNORECASE)
# Folders of code that it runs, in the folder where it works and in the root of its repository.
_CODE = (".cline/hooks", ".clinerules/hooks", ".cline/plugins")


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    given = next(find_options(argv, "--data-dir"), "")
    home = place.folder / given if given else place.home / ".cline" / "data"
    settings = place.json(home / "settings" / "providers.json")
    own = get_object(settings, "providers", _COMPATIBLE, "settings")
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
    steering = find_steering(argv, place)
    if code := select_code(steering):
        return refuse("Cline", code, "move these files away, or start Cline in another folder", ignorable=False)
    if steering and not place.flagged:
        return refuse("Cline", steering, f"set {steering[0].setting} yourself in the environment")
    formerly = find_address(own.get("baseUrl"))
    base = place.address + ("/v1" if place.flagged else choose_version(formerly, "/v1"))
    pointed = {"providers": {_COMPATIBLE: {"settings": {"baseUrl": base}}}}
    rest = remove_options(argv, "--data-dir")[1:]
    return Launch(
        (argv[0], "--data-dir", FILES, *rest),
        unset_variables(place.env, steering),
        {"openai_chat": formerly} if formerly else {},
        files={"settings/providers.json": json.dumps(merge(settings, pointed))},
        note="; ".join(filter(None, (say_ignored("Cline", steering), _COPY))),
    )


def find_steering(argv: Sequence[str], place: Place) -> list[Steering]:
    """Return the variables and the code of a project that decide where keys and images go."""
    folders = [folder for folder in _list_folders(argv, place) if folder not in (place.home, place.real_home)]
    files = (folder / name for folder in folders for name in DOTENVS)  # where it starts or is told to work
    variables = [each for file in files for each in variables_that_steer(place, file, _STEERING)]
    return [*variables, *(each for folder in folders for each in _find_code(replace(place, folder=folder)))]


def _list_folders(argv: Sequence[str], place: Place) -> list[Path]:
    """Return the folder where it starts, and those that its arguments tell it to work in."""
    attached = [word[2:] for word in argv[1:] if word.startswith("-c")]
    named = (place.folder / name for name in (".", *find_options(argv, "--cwd", "-c"), *attached))
    return [*dict.fromkeys(place.real_path(path) if path != place.folder else path for path in named)]


def _find_code(place: Place) -> Iterator[Steering]:
    """Yield the files of a project that Cline runs without asking: nothing switches them off."""
    for folder in place.repository or (place.folder,):
        for name in _CODE:
            yield from code_that_runs(place, folder / name, "Cline")


AGENT = Agent(
    "cline",
    "Cline CLI",
    start=start,
    find_steering=find_steering,
    mcp="in ~/.cline/data/settings/cline_mcp_settings.json:\n"
    '{"mcpServers": {"sightline": {"command": "sightline", "args": ["mcp"], "timeout": 120}}}',
    point="cline auth -p openai -k KEY -m $M -b $B",
    once="cline auth --data-dir DIR -p openai -k KEY -m $M -b $B; cline --data-dir DIR PROMPT",
    lines="cline auth -p openai -k KEY -m $M -b $B",
    usual=Target("openai", version="/v1"),
    model="MODEL",
    note="OPENAI_BASE_URL is ignored by it, and only OpenAI-compatible providers can be pointed.",
)
