"""Claude Code: its settings files win over the environment, and --settings over those; of two flags the last counts.

In `-p` it believes the settings of a project without asking, and they can lead it past --settings: by a web proxy,
another cloud, another key, or programs that get the keys in their environment (hooks, MCP servers). Its native builds
are made with Bun, which loads the `.env` files of the folder. Its record of trusted folders is in .claude.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.agents.agent import Agent, SetupRequest, Target
from sightline.agents.launch import (
    FILES,
    Launch,
    Place,
    find_options,
    remove_options,
    resolve_upstream,
    say_project_decides,
)
from sightline.agents.projects import (
    NETWORK,
    Steering,
    find_bun_steering,
    is_dotenv,
    refuse,
    say_ignored,
    select_code,
    settings_that_steer,
    unset_variables,
)
from sightline.agents.settings_files import get_object, parse_json
from sightline.model.refusal import Refusal

_FLAG = "--settings"
_TOKENS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY")
_VARIABLE = "ANTHROPIC_BASE_URL"
_FILE = "claude-settings.json"
_TRUST = "start claude in this folder, trust it when it asks, and repeat"
_SOURCES = "--setting-sources"
_SERVERS = ".mcp.json"  # in the folder where it works and in each around it; in `-p` it starts them without asking
_OF_PROJECT = {"local": Path(".claude/settings.local.json"), "project": Path(".claude/settings.json")}
_STEERS = (
    *(
        "apiKeyHelper",
        "proxyAuthHelper",
        "otelHeadersHelper",
        "awsAuthRefresh",
        "awsCredentialExport",
        "gcpAuthRefresh",
    ),
    *("hooks", "statusLine", "subagentStatusLine", "fileSuggestion", "enabledPlugins", "extraKnownMarketplaces"),
)
_STEERING = re.compile(
    rf"{NETWORK}|ANTHROPIC_(?!(?:\w+_)?MODEL(?:_NAME|_DESCRIPTION)?\Z)\w+|_?CLAUDE_\w*(?:URL|AUTH|TOKEN|KEY|USE|SKIP|HOST|SOCKET|CREDS|CERT)\w*"
    r"|CLAUDE_CONFIG_DIR|BETA_TRACING_\w+|(?:AWS|GOOGLE|GCLOUD|CLOUD_ML|VERTEX|AZURE|OTEL)_\w+",
    re.IGNORECASE,
)
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": "Bedrock",
    "CLAUDE_CODE_USE_VERTEX": "Vertex",
    "CLAUDE_CODE_USE_FOUNDRY": "Foundry",
}


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    own = _parse_settings([*find_options(argv, _FLAG)], place)
    if own is None:
        return Refusal(
            "invalid_input", "the --settings of claude are neither JSON nor a file that holds it", "mend them"
        )
    steering = find_steering(argv, place)
    code = select_code(steering)
    if code or (steering and not place.flagged):
        return refuse("Claude Code", code or steering, _TRUST, ignorable=not code)
    if cloud := _find_cloud(own, place):
        return Refusal(
            "unsupported_type",
            f"Claude Code asks {_CLOUDS[cloud]} by {cloud}, which nothing here can stand before",
            f"unset {cloud} for a provider of the Anthropic API",
        )
    formerly, where = next(_find_addresses(own, place), ("", ""))
    written = json.dumps({**own, "env": {**get_object(own, "env"), _VARIABLE: place.address}}, ensure_ascii=False)
    rest = remove_options(argv, _FLAG)
    if not all(map(is_dotenv, steering)):
        rest = [rest[0], _SOURCES, "user", *remove_options(rest, _SOURCES)[1:]]
    # What the user has put into it may hold keys, and arguments can be read by everybody on the machine.
    said = f"{FILES}/{_FILE}" if own else written
    return Launch(
        (rest[0], _FLAG, said, *rest[1:]),
        unset_variables(place.env, steering),
        {"anthropic": formerly} if formerly else {},
        files={_FILE: written} if own else {},
        note=say_ignored("Claude Code", steering) or say_project_decides(formerly, where),
    )


def _find_addresses(own: Mapping[str, Any], place: Place) -> Iterator[tuple[str, str]]:
    """Yield every address in its settings, the one that counts first, and the project's file that sets it."""
    for settings, where in _list_layers(own, place):
        url = settings.get(_VARIABLE)
        if isinstance(url, str) and url:  # one that is no address is refused in clear words, not passed over
            yield resolve_upstream(url), where


def _find_cloud(own: Mapping[str, Any], place: Place) -> str:
    """Return the variable that selects another cloud, or an empty text; the first file that sets it counts."""
    layers = [settings for settings, _ in _list_layers(own, place)]
    said = {name: next((each[name] for each in layers if name in each), "") for name in _CLOUDS}
    return next((name for name, text in said.items() if str(text).lower() in ("1", "true", "yes", "on")), "")


def _list_layers(own: Mapping[str, Any], place: Place) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the variables of each settings file, the one that counts first, and the name of a project's file."""
    home = place.env.get("CLAUDE_CONFIG_DIR") or place.home / ".claude"
    yield get_object(own, "env"), ""
    for name in _OF_PROJECT.values() if _trusts(place) else ():
        yield get_object(place.json(name), "env"), "" if place.at_home else str(name)
    yield get_object(place.json(Path(home) / "settings.json"), "env"), ""
    yield place.env, ""


def find_steering(argv: Sequence[str], place: Place) -> list[Steering]:
    """Return the settings of a project that is not trusted which decide where keys and images go."""
    sources = [",".join(_OF_PROJECT), *find_options(argv, _SOURCES)][-1].split(",")
    read = [file for source, file in _OF_PROJECT.items() if source in map(str.strip, sources)]
    if _trusts(place):
        return []
    texts = [(file, place.read(place.folder / file) or "") for file in read]
    found = [each for file, text in texts for each in settings_that_steer(file, text, _STEERS, _STEERING)]
    if _OF_PROJECT["project"] in read:
        files = [folder / _SERVERS for folder in place.above if folder not in (place.home, place.real_home)]
        found += [each for file in files for each in settings_that_steer(file, place.read(file) or "", ("mcpServers",))]
    return [*found, *find_bun_steering(place, "Claude Code", _STEERING)]


def _trusts(place: Place) -> bool:
    """Return whether Claude Code's record trusts this folder, or one around it in the same repository."""
    if place.at_home:
        return True
    home = Path(place.env.get("CLAUDE_CONFIG_DIR") or place.home)
    legacy = Path(place.env.get("CLAUDE_CONFIG_DIR") or place.home / ".claude") / ".config.json"
    records = [get_object(place.json(file), "projects") for file in (home / ".claude.json", legacy)]
    folders = [str(folder) for folder in place.repository or place.above]
    return any(
        get_object(record, folder).get("hasTrustDialogAccepted") is True for record in records for folder in folders
    )


def _parse_settings(flags: Sequence[str], place: Place) -> dict[str, Any] | None:
    given = flags[-1] if flags else ""
    if not given:
        return {}
    return parse_json(given if given.lstrip().startswith("{") else place.read(place.folder / given) or "")


def choose_target(request: SetupRequest) -> Target | Refusal:
    now = request.find_current("anthropic")
    if not request.upstream or now == request.upstream:
        return now if isinstance(now, Refusal) else Target(now)
    file = request.agent.find_file(request.place.env)
    held = get_object(request.place.json(file), "env") if file else {}
    if tokens := [name for name in _TOKENS if held.get(name)]:
        return request.refuse_key(f"{tokens[0]} in {file}", now)
    return Target(request.upstream)


AGENT = Agent(
    "claude",
    "Claude Code",
    start=start,
    packages=("@anthropic-ai/claude-code",),
    find_steering=find_steering,
    choose_target=choose_target,
    mcp="claude mcp add --scope user sightline -- sightline mcp",
    point="sightline run -- claude, or ANTHROPIC_BASE_URL=$P/u/NAME",
    once="""claude --settings '{"env":{"ANTHROPIC_BASE_URL":"$B"}}'""",
    file="~/.claude/settings.json",
    moved=("CLAUDE_CONFIG_DIR", "settings.json"),
    lines='{"env": {"ANTHROPIC_BASE_URL": "$B"}}',
    usual=Target("anthropic"),
    note="--upstream names another provider, whose key then stands in ANTHROPIC_AUTH_TOKEN."
    " `sightline run -- claude` does all of it by itself and keeps the provider you already use."
    " A project's own .claude/settings.json that sets ANTHROPIC_BASE_URL wins over yours.",
)
