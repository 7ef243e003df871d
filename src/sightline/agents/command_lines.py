"""Find out which agent a command line starts, and start it so that it asks the proxy.

An agent is known by its own name, through a package runner, through node, or after `env`.

Only forms that have one meaning are taken apart. A command that merely names an agent somewhere (`timeout 60 claude`,
`bash -c "claude -p …"`) starts an unknown program that may run that agent: see `_find_mentions`.

Pure: files are read through the caller, and what is to be written is a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sightline.agents import AGENTS
from sightline.agents.address_variables import point_by_variables
from sightline.agents.launch import (
    Launch,
    LaunchContext,
    bypass_web_proxies,
    refuse_own_address,
    remove_options,
)
from sightline.agents.project_files import build_warning, is_dotenv, refuse_project
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
