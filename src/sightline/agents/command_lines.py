"""Find out which agent a command line starts, and start it so that it asks the proxy.

An agent is known by its own name, through a package runner, through node, or after `env`.

Only forms that have one meaning are taken apart. A command that merely names an agent somewhere (`timeout 60 claude`,
`bash -c "claude -p …"`) starts an unknown program that may run that agent: see `_find_mentions`.

An unknown program is redirected by environment variables. Each leads where it led before, so that a key goes to no
other provider: to the address that it had, or to the usual provider of its API if no variable for that API is set. Only
`--upstream` changes that, for the APIs that the upstream has: the key of another API's provider must not be sent there.
The SDKs of OpenAI, Anthropic and Google (google-genai), LangChain and LiteLLM read the first group of each API; goose
reads `…_HOST`; kimi-cli reads `KIMI_BASE_URL`, Kimi Code `KIMI_MODEL_BASE_URL`.

Pure: files are read through the caller, and what is to be written is a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sightline.agents import AGENTS
from sightline.agents.launch import (
    USUAL_PROVIDERS,
    Launch,
    LaunchContext,
    Steering,
    build_warning,
    bypass_web_proxies,
    choose_version,
    find_steering_variables,
    is_dotenv,
    refuse_own_address,
    refuse_project,
    remove_options,
    resolve_upstream,
)
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

_PACKAGES = {package: agent.name for agent in AGENTS.values() for package in agent.packages}
# Programs that start another one which their arguments name, and the subcommands by which they do that.
_RUNNERS: Mapping[str, tuple[str, ...]] = {
    "bun": ("x",),
    "bunx": (),
    "npm": ("exec", "x"),
    "npx": (),
    "pnpm": ("dlx", "exec"),
    "pnpx": (),
    "yarn": ("dlx", "exec"),
}
_INTERPRETERS = ("node", "bun", "deno")
_TAKE_A_VALUE = ("-p", "--package", "-r", "--require", "--import", "--loader")
_TAKE_A_COMMAND = ("-c", "--call", "-e", "--eval", "--print")
_SUFFIX = re.compile(r"\.(?:exe|cmd|bat|ps1|[cm]?js)\Z")
_VERSION = re.compile(r"(?<=.)@[^/@]*\Z")
_is_assignment = re.compile(r"[A-Za-z_]\w*=").match
_IN_PACKAGE = re.compile(r"/node_modules/((?:@[\w.-]+/)?[\w.-]+)/")
_SEPARATORS = re.compile(r"[^\w.@/\\:-]+")


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """A command line that starts a known agent."""

    agent: str
    prefix: tuple[str, ...]  # the words in front of the agent's own
    argv: tuple[str, ...]  # the agent's command and its arguments
    env: Mapping[str, str]  # variables that the command line sets


def launch(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    """Return how a command line is started so that it asks the proxy, or why it isn't."""
    found = _find_agent(argv, context)
    if found is None:
        return _launch_unknown(argv, replace(context, env=bypass_web_proxies(context.env)))
    started = AGENTS[found.agent].launch(found.argv, replace(context, env={**context.env, **found.env}))
    return started if isinstance(started, Refusal) else replace(started, argv=(*found.prefix, *started.argv))


def _launch_unknown(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    """Start a program that may run an agent which would read the settings of the project.

    Where the command names that agent, this is refused: nothing here could keep it from reading them. Elsewhere the
    user is warned about files that only an agent reads; a `.env` file is for any program.
    """
    words = [argv[0], *" ".join(argv[1:]).split()]
    mentions = _find_mentions(argv, context)
    warnings = []
    for name, agent in AGENTS.items():
        steering = agent.find_steering(words, context)
        if steering and name in mentions:
            how = (
                f"start {agent.title} by its own command, sightline run -- {name} …, which says how to trust the folder"
            )
            return refuse_project(agent.title, steering, how, ignorable=False)
        if ignored := [each for each in steering if not is_dotenv(each)]:
            warnings.append(build_warning(agent.title, ignored))
    started = point_by_variables(argv, context)
    if isinstance(started, Refusal):
        return started
    started = replace(started, note="; ".join([started.note, *warnings]))
    return started if context.has_upstream else refuse_own_address(started, context)


def _find_agent(argv: Sequence[str], context: LaunchContext) -> AgentCommand | None:
    """Return the agent that a command line starts, or None when it is not certain that it starts one."""
    if agent := _identify(argv[0], context):
        return AgentCommand(agent, (), tuple(argv), {})
    program = _get_base_name(argv[0])
    if program == "env":
        return _parse_env(argv, context)
    if program in _RUNNERS and (not _RUNNERS[program] or (argv[1:2] and argv[1] in _RUNNERS[program])):
        start = 2 if _RUNNERS[program] else 1
    elif program in _INTERPRETERS:
        start = 2 if argv[1:2] == ["run"] else 1
    else:
        return None
    index = _find_operand(argv, start)
    agent = _identify(argv[index], context) if index is not None else ""
    if index is None or not agent:
        return None
    # npm takes options after the package for its own, unless `--` comes before the package.
    ends_options = ("--",) if program == "npm" and "--" not in argv[:index] else ()
    return AgentCommand(agent, (*argv[:index], *ends_options), tuple(argv[index:]), {})


def _find_mentions(argv: Sequence[str], context: LaunchContext) -> list[str]:
    """Return the agents that a command line names anywhere, also inside of a command for a shell."""
    named = remove_options(argv, "-m", "--model")  # a model may be called like an agent
    words = [each for word in (*named, str(context.real_path(Path(argv[0])))) for each in _SEPARATORS.split(word)]
    found = {_find_name(word) for word in words}
    return sorted(found - {""})


def _parse_env(argv: Sequence[str], context: LaunchContext) -> AgentCommand | None:
    """Take assignments after `env` as variables; with options of `env` nothing is certain."""
    index = next((number for number, word in enumerate(argv) if number and not _is_assignment(word)), len(argv))
    if index == len(argv):
        return None
    found = _find_agent(argv[index:], context)
    if found is None:
        return None
    env = dict(word.split("=", 1) for word in argv[1:index])
    return AgentCommand(found.agent, found.prefix, found.argv, {**env, **found.env})


def _find_operand(argv: Sequence[str], start: int) -> int | None:
    """Return the index of the first word that is no option; None: there is none, or a shell reads the command."""
    index = start
    while index < len(argv):
        word = argv[index]
        if word.partition("=")[0] in _TAKE_A_COMMAND:
            return None
        if word == "--":
            return index + 1 if index + 1 < len(argv) else None
        if not word.startswith("-"):
            return index
        index += 2 if word in _TAKE_A_VALUE else 1
    return None


def _identify(word: str, context: LaunchContext) -> str:
    """Return the agent that a word names, as a name or as the path of a file or link; empty: none."""
    is_path = "/" in word or "\\" in word
    return _find_name(word) or (_find_name(str(context.real_path(context.folder / word))) if is_path else "")


def _find_name(word: str) -> str:
    bare = _VERSION.sub("", word.replace("\\", "/"))
    name = _get_base_name(bare)
    if bare in _PACKAGES or name in AGENTS:
        return _PACKAGES.get(bare, name)
    packages = _IN_PACKAGE.findall(bare)
    return _PACKAGES.get(packages[-1], "") if packages else ""


def _get_base_name(word: str) -> str:
    return _SUFFIX.sub("", word.replace("\\", "/").rpartition("/")[2].lower())


@dataclass(frozen=True, slots=True)
class AddressGroup:
    """Variables with the same meaning, of which a program may read any."""

    variables: tuple[str, ...]
    api: WireName
    version: str = ""  # what the address ends with
    is_default: bool = True  # set even if the environment has none of them: their usual address is known


_OPENAI_APIS: tuple[WireName, ...] = ("openai_chat", "openai_responses")
_GROUPS = (
    AddressGroup(("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"), "anthropic"),
    AddressGroup(("OPENAI_BASE_URL", "OPENAI_API_BASE"), "openai_chat", "/v1"),
    AddressGroup(("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"), "gemini"),
    AddressGroup(("ANTHROPIC_HOST",), "anthropic", is_default=False),
    AddressGroup(("OPENAI_HOST",), "openai_chat", is_default=False),
    AddressGroup(("KIMI_BASE_URL",), "openai_chat", "/v1", is_default=False),
    AddressGroup(("KIMI_MODEL_BASE_URL",), "openai_chat", "/v1", is_default=False),
)
_GOOSE_PATH = "OPENAI_BASE_PATH"
_CHAT_PATH = "v1/chat/completions"
# Programs that keep an address in files of their own, which one of these variables overrides.
_HAVE_SETTINGS = re.compile(r"(?:aider|goose|kimi(?:-cli)?)(?:\.exe)?\Z", re.IGNORECASE)
_NAMES = "|".join(name for group in _GROUPS for name in group.variables)


def point_by_variables(argv: Sequence[str], context: LaunchContext) -> Launch | Refusal:
    """Return the program with every variable that holds an address pointed at the proxy, and a note about it.

    Refuse if that could send a key to another provider: the program, or a `.env` file, has an address of its own.
    """
    program = Path(argv[0]).name
    has_settings = _HAVE_SETTINGS.match(program) is not None
    if not context.has_upstream and (refusal := _refuse_hidden_address(program, context, has_settings=has_settings)):
        return refusal
    hidden = {found.setting for found in _find_hidden_addresses(context)}
    launch, named = Launch(tuple(argv), dict(context.env)), []
    for group in _GROUPS:
        group = replace(group, api=_find_api(group, context.env))
        is_hidden = has_settings or not hidden.isdisjoint(group.variables)
        variables = _choose_variables(group, context, is_hidden=is_hidden)
        for variable in variables:
            launch = _point(launch, variable, group, context)
        if group.is_default or not context.has_upstream:  # a note of one line
            named += variables[:1]
    others = " and similar variables" if context.has_upstream else ""
    note = (
        f"{program} is redirected to Sightline by {', '.join(named)}{others}; if it reads none of them, nothing changes"
    )
    return replace(launch, env=_complete(launch.env), note=note)


def _refuse_hidden_address(program: str, context: LaunchContext, *, has_settings: bool) -> Refusal | None:
    """Return the refusal of a program whose provider may be in a file that isn't read here."""
    if has_settings and not any(context.env.get(name) for group in _GROUPS for name in group.variables):
        return Refusal(
            "invalid_input",
            f"{program} may have the address of its provider in its own settings, which a variable would override",
            f"name the provider: sightline run --upstream NAME -- {program} …",
        )
    for found in _find_hidden_addresses(context):
        return Refusal(
            "not_permitted",
            f"{found.file} sets {found.setting}, and overriding it could send a key to another provider",
            "name the provider with --upstream NAME in front of `--`, or set the variable yourself",
        )
    return None


def _find_hidden_addresses(context: LaunchContext) -> Iterator[Steering]:
    """Yield the variables that a `.env` file sets and the environment doesn't."""
    for folder in context.repository or (context.folder,):
        yield from find_steering_variables(context, folder / ".env", _NAMES)


def _choose_variables(group: AddressGroup, context: LaunchContext, *, is_hidden: bool) -> list[str]:
    """Return the variables of a group to set: all that lead to the upstream, else those that are set, else the usual.

    If the address may be in a file (`is_hidden`), none is set that would override it.
    """
    if _leads_to_upstream(group, context):
        return list(group.variables)
    given = [name for name in group.variables if context.env.get(name)]
    return given or (list(group.variables) if group.is_default and not is_hidden else [])


def _leads_to_upstream(group: AddressGroup, context: LaunchContext) -> bool:
    """Return whether the user named an upstream, and it has the API of a group."""
    apis = _OPENAI_APIS if group.api in _OPENAI_APIS else (group.api,)
    return context.has_upstream and not set(apis).isdisjoint(context.upstream_apis)


def _find_api(group: AddressGroup, env: Mapping[str, str]) -> WireName:
    """Return the API of a group, which for Kimi Code another variable names."""
    is_anthropic = group.variables == ("KIMI_MODEL_BASE_URL",) and env.get("KIMI_MODEL_PROVIDER_TYPE") == "anthropic"
    return "anthropic" if is_anthropic else group.api


def _point(launch: Launch, variable: str, group: AddressGroup, context: LaunchContext) -> Launch:
    """Return the launch with one variable pointed at the proxy, and the upstream that it named before."""
    version = group.version if group.api in _OPENAI_APIS else ""
    is_ours = _leads_to_upstream(group, context)
    theirs = "" if is_ours else _find_theirs(variable, context.env)
    former, named, base = launch.former_upstreams, launch.named_upstreams, context.address
    if theirs and group.is_default and group.api not in former and not context.has_upstream:
        apis = _OPENAI_APIS if group.api in _OPENAI_APIS else (group.api,)
        former = {**former, **dict.fromkeys(apis, theirs)}
    elif theirs and theirs != former.get(group.api):
        name = variable.lower().replace("_", "-")
        named = {**named, name: (group.api, theirs)}
        base = f"{context.address}/u/{name}"
    elif context.has_upstream and not is_ours:
        base = f"{context.address}/u/{USUAL_PROVIDERS[group.api]}"
    address = base + choose_version(theirs, version) if version else base
    return replace(launch, env={**launch.env, variable: address}, former_upstreams=former, named_upstreams=named)


def _find_theirs(variable: str, env: Mapping[str, str]) -> str:
    """Return the upstream that a variable names: an address, or a name if `setup` has written it."""
    address = resolve_upstream(env.get(variable, ""))
    if variable == "OPENAI_HOST" and "://" in address and (path := env.get(_GOOSE_PATH, "").strip("/")) != _CHAT_PATH:
        return f"{address.rstrip('/')}/{path}".removesuffix("/chat/completions").rstrip("/")
    return address


def _complete(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with what belongs to the addresses: goose's path, and that Kimi's model takes images."""
    more: dict[str, str] = {}
    if env.get("OPENAI_HOST"):
        more[_GOOSE_PATH] = _CHAT_PATH
    known = env.get("KIMI_MODEL_CAPABILITIES", "")
    if known and "image_in" not in known:
        more["KIMI_MODEL_CAPABILITIES"] = f"{known},image_in"
    return {**env, **more}
