"""How to start Claude Code behind the proxy, and how to set it up.

Its settings files override the environment, and --settings overrides those; of two such flags the last counts.

In `-p` it believes the settings of a project without asking, and they can lead it past --settings: by a web proxy,
another cloud, another key, or programs that get the keys in their environment (hooks, MCP servers). Its native builds
are made with Bun, which loads the `.env` files of the folder. Its record of trusted folders is in .claude.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.agents.agent import CodingAgent, ProviderTarget, SetupRequest
from sightline.agents.launch import (
    FILES,
    NETWORK,
    Launch,
    LaunchContext,
    Steering,
    describe_ignored_settings,
    describe_project_upstream,
    find_bun_steering,
    find_options,
    find_steering_settings,
    is_dotenv,
    refuse_project,
    remove_options,
    resolve_upstream,
    select_code,
    unset_variables,
)
from sightline.agents.settings_files import get_object, parse_json
from sightline.model.refusal import Refusal

_FLAG = "--settings"
_TOKENS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY")
_URL_VARIABLE = "ANTHROPIC_BASE_URL"
_FILE = "claude-settings.json"
_TRUST_REMEDY = "start claude in this folder, trust it when asked, then run this again"
_SOURCES = "--setting-sources"
_SERVERS = ".mcp.json"  # in the folder where it works and in each around it; in `-p` it starts them without asking
_PROJECT_SETTINGS = {"local": Path(".claude/settings.local.json"), "project": Path(".claude/settings.json")}
_STEERING_SETTINGS = (
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
_STEERING_VARIABLES = (
    rf"(?i){NETWORK}|ANTHROPIC_(?!(?:\w+_)?MODEL(?:_NAME|_DESCRIPTION)?\Z)\w+|_?CLAUDE_\w*(?:URL|AUTH|TOKEN|KEY|USE|SKIP|HOST|SOCKET|CREDS|CERT)\w*"
    r"|CLAUDE_CONFIG_DIR|BETA_TRACING_\w+|(?:AWS|GOOGLE|GCLOUD|CLOUD_ML|VERTEX|AZURE|OTEL)_\w+"
)
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": "Bedrock",
    "CLAUDE_CODE_USE_VERTEX": "Vertex",
    "CLAUDE_CODE_USE_FOUNDRY": "Foundry",
}


def start(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    own = _parse_settings([*find_options(argv, _FLAG)], context)
    if own is None:
        return Refusal(
            "invalid_input", "the value of --settings is neither JSON nor the path of a JSON file", "correct them"
        )
    steering = find_steering(argv, context)
    code = select_code(steering)
    if code or (steering and not context.has_upstream):
        return refuse_project("Claude Code", code or steering, _TRUST_REMEDY, ignorable=not code)
    if cloud := _find_cloud(own, context):
        return Refusal(
            "unsupported_type",
            f"Claude Code uses {_CLOUDS[cloud]} because of {cloud}, and Sightline can't be put in front of that",
            f"unset {cloud} to use a provider of the Anthropic API",
        )
    former_upstream, where = next(_find_addresses(own, context), ("", ""))
    settings_json = json.dumps(
        {**own, "env": {**get_object(own, "env"), _URL_VARIABLE: context.address}}, ensure_ascii=False
    )
    rest = remove_options(argv, _FLAG)
    if not all(map(is_dotenv, steering)):
        rest = [rest[0], _SOURCES, "user", *remove_options(rest, _SOURCES)[1:]]
    # The user's settings may contain keys, and every user of the machine can read arguments.
    argument = f"{FILES}/{_FILE}" if own else settings_json
    return Launch(
        (rest[0], _FLAG, argument, *rest[1:]),
        unset_variables(context.env, steering),
        {"anthropic": former_upstream} if former_upstream else {},
        files={_FILE: settings_json} if own else {},
        note=describe_ignored_settings("Claude Code", steering) or describe_project_upstream(former_upstream, where),
    )


def _find_addresses(own: Mapping[str, Any], context: LaunchContext) -> Iterator[tuple[str, str]]:
    """Yield every address in its settings, the one that counts first, and the project's file that sets it."""
    for settings, where in _list_layers(own, context):
        url = settings.get(_URL_VARIABLE)
        if (
            isinstance(url, str) and url
        ):  # an invalid address is not skipped, so that it is refused with a clear message
            yield resolve_upstream(url), where


def _find_cloud(own: Mapping[str, Any], context: LaunchContext) -> str:
    """Return the variable that selects another cloud, or an empty text; the first file that sets it counts."""
    layers = [settings for settings, _ in _list_layers(own, context)]
    values = {name: next((each[name] for each in layers if name in each), "") for name in _CLOUDS}
    return next((name for name, text in values.items() if str(text).lower() in ("1", "true", "yes", "on")), "")


def _list_layers(own: Mapping[str, Any], context: LaunchContext) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the variables of each settings file, the one that counts first, and the name of a project's file."""
    home = context.env.get("CLAUDE_CONFIG_DIR") or context.home / ".claude"
    yield get_object(own, "env"), ""
    for name in _PROJECT_SETTINGS.values() if _trusts(context) else ():
        yield get_object(context.read_json(name), "env"), "" if context.at_home else str(name)
    yield get_object(context.read_json(Path(home) / "settings.json"), "env"), ""
    yield context.env, ""


def find_steering(argv: Sequence[str], context: LaunchContext) -> list[Steering]:
    """Return the settings of a project that is not trusted which decide where keys and images go."""
    sources = [",".join(_PROJECT_SETTINGS), *find_options(argv, _SOURCES)][-1].split(",")
    read = [file for source, file in _PROJECT_SETTINGS.items() if source in map(str.strip, sources)]
    if _trusts(context):
        return []
    texts = [(file, context.read(context.folder / file) or "") for file in read]
    found = [
        each
        for file, text in texts
        for each in find_steering_settings(file, text, _STEERING_SETTINGS, _STEERING_VARIABLES)
    ]
    if _PROJECT_SETTINGS["project"] in read:
        files = [
            folder / _SERVERS for folder in context.folder_chain if folder not in (context.home, context.real_home)
        ]
        found += [
            each for file in files for each in find_steering_settings(file, context.read(file) or "", ("mcpServers",))
        ]
    return [*found, *find_bun_steering(context, "Claude Code", _STEERING_VARIABLES)]


def _trusts(context: LaunchContext) -> bool:
    """Return whether Claude Code's record trusts this folder, or one around it in the same repository."""
    if context.at_home:
        return True
    home = Path(context.env.get("CLAUDE_CONFIG_DIR") or context.home)
    legacy = Path(context.env.get("CLAUDE_CONFIG_DIR") or context.home / ".claude") / ".config.json"
    records = [get_object(context.read_json(file), "projects") for file in (home / ".claude.json", legacy)]
    folders = [str(folder) for folder in context.repository or context.folder_chain]
    return any(
        get_object(record, folder).get("hasTrustDialogAccepted") is True for record in records for folder in folders
    )


def _parse_settings(flags: Sequence[str], context: LaunchContext) -> dict[str, Any] | None:
    given = flags[-1] if flags else ""
    if not given:
        return {}
    return parse_json(given if given.lstrip().startswith("{") else context.read(context.folder / given) or "")


def choose_target(request: SetupRequest) -> ProviderTarget | Refusal:
    now = request.find_current("anthropic")
    file = request.agent.find_file(request.context.env)
    variables = get_object(request.context.read_json(file), "env") if file else {}
    tokens = [name for name in _TOKENS if variables.get(name)]
    if not request.upstream or now == request.upstream:
        if isinstance(now, Refusal):
            return now
        has_key = now == request.agent.default_target.upstream or tokens or any(map(request.context.env.get, _TOKENS))
        return ProviderTarget(now, needs_key=not has_key and bool(request.find_key(now)))
    if tokens:
        return request.refuse_key(f"{tokens[0]} in {file}", now)
    return ProviderTarget(request.upstream, needs_key=bool(request.find_key(request.upstream)))


AGENT = CodingAgent(
    "claude",
    "Claude Code",
    start=start,
    api="anthropic",
    packages=("@anthropic-ai/claude-code",),
    find_steering=find_steering,
    choose_target=choose_target,
    mcp="claude mcp add --scope user sightline -- sightline mcp",
    one_run="""claude --settings '{"env":{"ANTHROPIC_BASE_URL":"$B"}}'""",
    file="~/.claude/settings.json",
    moved_by=("CLAUDE_CONFIG_DIR", "settings.json"),
    file_lines='{"env": {"ANTHROPIC_BASE_URL": "$B"}}',
    default_target=ProviderTarget("anthropic"),
    key_hint="Claude Code now needs the key of $U: put it into ANTHROPIC_AUTH_TOKEN, in the environment of claude or"
    ' in "env" of that file.',
    note="--upstream names another provider, whose key you then put into ANTHROPIC_AUTH_TOKEN."
    " `sightline run -- claude` does all of this for one run, and keeps the provider that you already use."
    " A project's own .claude/settings.json that sets ANTHROPIC_BASE_URL takes precedence over yours.",
)
