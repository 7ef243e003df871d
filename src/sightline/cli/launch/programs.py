"""Which agent a command line starts: by its own name, through a package runner, through node, or after `env`.

Only forms that have one meaning are taken apart. A command that merely names an agent somewhere (`timeout 60 claude`,
`bash -c "claude -p …"`) starts an unknown program that may run that agent: see `find_mentions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.cli.launch.started import Place, without

_PACKAGES = {
    "@anthropic-ai/claude-code": "claude",
    "@earendil-works/pi-coding-agent": "pi",
    "@github/copilot": "copilot",
    "@google/gemini-cli": "gemini",
    "@mariozechner/pi-coding-agent": "pi",
    "@openai/codex": "codex",
    "@qwen-code/qwen-code": "qwen",
    "opencode-ai": "opencode",
}
_NAMES = frozenset({*_PACKAGES.values(), "cline"})
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
_suffix = re.compile(r"\.(?:exe|cmd|bat|ps1|[cm]?js)\Z")
_version = re.compile(r"(?<=.)@[^/@]*\Z")
_assignment = re.compile(r"[A-Za-z_]\w*=").match
_in_package = re.compile(r"/node_modules/((?:@[\w.-]+/)?[\w.-]+)/")
_separators = re.compile(r"[^\w.@/\\:-]+")


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """A command line that starts a known agent."""

    agent: str
    prefix: tuple[str, ...]  # the words in front of the agent's own
    argv: tuple[str, ...]  # the agent's command and its arguments
    env: Mapping[str, str]  # variables that the command line sets


def find_agent(argv: Sequence[str], place: Place) -> AgentCommand | None:
    """Return the agent that a command line starts, or None when it is not certain that it starts one."""
    if agent := _identify(argv[0], place):
        return AgentCommand(agent, (), tuple(argv), {})
    program = _base_name(argv[0])
    if program == "env":
        return _after_env(argv, place)
    if program in _RUNNERS and (not _RUNNERS[program] or (argv[1:2] and argv[1] in _RUNNERS[program])):
        start = 2 if _RUNNERS[program] else 1
    elif program in _INTERPRETERS:
        start = 2 if argv[1:2] == ["run"] else 1
    else:
        return None
    index = _first_operand(argv, start)
    agent = _identify(argv[index], place) if index is not None else ""
    if index is None or not agent:
        return None
    # npm reads options behind the package as its own unless `--` stands in front of it.
    ends_options = ("--",) if program == "npm" and "--" not in argv[:index] else ()
    return AgentCommand(agent, (*argv[:index], *ends_options), tuple(argv[index:]), {})


def find_mentions(argv: Sequence[str], place: Place) -> list[str]:
    """Return the agents that a command line names anywhere, also inside of a command for a shell."""
    named = without(argv, "-m", "--model")  # a model may be called like an agent
    words = [each for word in (*named, str(place.real_path(Path(argv[0])))) for each in _separators.split(word)]
    found = {_agent_named(word) for word in words}
    return sorted(found - {""})


def _after_env(argv: Sequence[str], place: Place) -> AgentCommand | None:
    """Take assignments after `env` as variables; with options of `env` nothing is certain."""
    index = next((number for number, word in enumerate(argv) if number and not _assignment(word)), len(argv))
    if index == len(argv):
        return None
    found = find_agent(argv[index:], place)
    if found is None:
        return None
    env = dict(word.split("=", 1) for word in argv[1:index])
    return AgentCommand(found.agent, found.prefix, found.argv, {**env, **found.env})


def _first_operand(argv: Sequence[str], start: int) -> int | None:
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


def _identify(word: str, place: Place) -> str:
    """Return the agent that a word names by itself, or as the path of a file or a link to it; empty: none."""
    is_path = "/" in word or "\\" in word
    return _agent_named(word) or (_agent_named(str(place.real_path(place.folder / word))) if is_path else "")


def _agent_named(word: str) -> str:
    bare = _version.sub("", word.replace("\\", "/"))
    name = _base_name(bare)
    if bare in _PACKAGES or name in _NAMES:
        return _PACKAGES.get(bare, name)
    packages = _in_package.findall(bare)
    return _PACKAGES.get(packages[-1], "") if packages else ""


def _base_name(word: str) -> str:
    return _suffix.sub("", word.replace("\\", "/").rpartition("/")[2].lower())
