"""How to start Cline behind the proxy, and how to set it up.

It reads its provider only from its data folder, so `run` gives it a copy of that folder with the proxy's address.

It is made with Bun, which loads the `.env` files of the folder where it starts and runs what `bunfig.toml` preloads. It
runs the hooks of the folder where it works (`--cwd`), and keeps no record of trusted folders.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sightline.agents.agent import CodingAgent, ProviderTarget
from sightline.agents.launch import (
    BUN_SETTINGS,
    DOTENVS,
    FILES,
    NETWORK,
    Launch,
    LaunchContext,
    Steering,
    choose_version,
    describe_ignored_settings,
    find_address,
    find_bun_code,
    find_options,
    find_project_code,
    find_steering_variables,
    refuse_project,
    remove_options,
    select_code,
    unset_variables,
)
from sightline.agents.settings_files import get_object, merge
from sightline.model.refusal import Refusal

_COMPATIBLE = "openai-compatible"
_COPY = "Cline works on a copy of its data folder; its history of this run is not kept"
_STEERING_VARIABLES = rf"(?i){NETWORK}|CLINE_\w+"
# Folders of code that it runs, in the folder where it works and in the root of its repository.
_CODE = (".cline/hooks", ".clinerules/hooks", ".cline/plugins")


def start(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    given = next(find_options(argv, "--data-dir"), "")
    home = context.folder / given if given else context.home / ".cline" / "data"
    settings = context.read_json(home / "settings" / "providers.json")
    provider = get_object(settings, "providers", _COMPATIBLE, "settings")
    last = settings.get("lastUsedProvider") or _COMPATIBLE
    if provider and last != _COMPATIBLE:
        return Refusal(
            "unsupported_type",
            f"Cline uses {last} now, whose address can't be changed",
            "configure an OpenAI-compatible provider: cline auth -p openai -k KEY -m MODEL -b ADDRESS",
        )
    if not provider:
        return Refusal(
            "unsupported_type",
            "Cline has no OpenAI-compatible provider, and the addresses of others can't be changed",
            "configure one: cline auth -p openai -k KEY -m MODEL -b ADDRESS",
        )
    steering = find_steering(argv, context)
    if code := select_code(steering):
        return refuse_project("Cline", code, "move these files away, or start Cline in another folder", ignorable=False)
    if steering and not context.has_upstream:
        return refuse_project("Cline", steering, f"set {steering[0].setting} yourself in the environment")
    former_upstream = find_address(provider.get("baseUrl"))
    base = context.address + ("/v1" if context.has_upstream else choose_version(former_upstream, "/v1"))
    pointed = {"providers": {_COMPATIBLE: {"settings": {"baseUrl": base}}}}
    rest = remove_options(argv, "--data-dir")[1:]
    return Launch(
        (argv[0], "--data-dir", FILES, *rest),
        unset_variables(context.env, steering),
        {"openai_chat": former_upstream} if former_upstream else {},
        files={"settings/providers.json": json.dumps(merge(settings, pointed))},
        note="; ".join(filter(None, (describe_ignored_settings("Cline", steering), _COPY))),
    )


def find_steering(argv: Sequence[str], context: LaunchContext) -> list[Steering]:
    """Return the variables and the code of a project that decide where keys and images go."""
    folders = [folder for folder in _list_folders(argv, context) if folder not in (context.home, context.real_home)]
    files = (folder / name for folder in folders for name in DOTENVS)  # where it starts, or that an option names
    variables = [each for file in files for each in find_steering_variables(context, file, _STEERING_VARIABLES)]
    preloaded = [each for folder in folders for each in find_bun_code(context, folder / BUN_SETTINGS, "Cline")]
    hooks = [each for folder in folders for each in _find_code(replace(context, folder=folder))]
    return [*variables, *preloaded, *hooks]


def _list_folders(argv: Sequence[str], context: LaunchContext) -> list[Path]:
    """Return the folder where it starts, and those that its arguments tell it to work in."""
    attached = [word[2:] for word in argv[1:] if word.startswith("-c")]
    named = (context.folder / name for name in (".", *find_options(argv, "--cwd", "-c"), *attached))
    return [*dict.fromkeys(context.real_path(path) if path != context.folder else path for path in named)]


def _find_code(context: LaunchContext) -> Iterator[Steering]:
    """Yield the files of a project that Cline runs without asking: nothing switches them off."""
    for folder in context.repository or (context.folder,):
        for name in _CODE:
            yield from find_project_code(context, folder / name, "Cline")


AGENT = CodingAgent(
    "cline",
    "Cline CLI",
    start=start,
    api="openai_chat",
    find_steering=find_steering,
    mcp="in ~/.cline/data/settings/cline_mcp_settings.json:\n"
    '{"mcpServers": {"sightline": {"command": "sightline", "args": ["mcp"], "timeout": 120}}}',
    short_hint="cline auth -p openai -k KEY -m $M -b $B",
    one_run="cline auth --data-dir DIR -p openai -k KEY -m $M -b $B; cline --data-dir DIR PROMPT",
    file_lines="cline auth -p openai -k KEY -m $M -b $B",
    default_target=ProviderTarget("openai", version="/v1"),
    default_model="MODEL",
    note="It ignores OPENAI_BASE_URL, and only OpenAI-compatible providers can be redirected to Sightline.",
)
