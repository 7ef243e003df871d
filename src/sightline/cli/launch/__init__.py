"""How an agent is started so that it asks the proxy: its arguments, environment and files, and where it went until now.

Pure: files are read through the caller, and what is to be written is a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sightline.cli.launch import claude, codex, copilot, gemini, opencode, others, pi, qwen
from sightline.cli.launch.programs import AgentCommand, find_agent, find_mentions
from sightline.cli.launch.projects import Steering, refuse, warn_of
from sightline.cli.launch.started import FILES, Launch, Place, is_ours
from sightline.cli.listening import DEFAULT_PORT
from sightline.model.refusal import Refusal

__all__ = ["FILES", "Launch", "Place", "launch"]

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_STARTS: Mapping[str, Callable[[Sequence[str], Place], Launch | Refusal]] = {
    "claude": claude.start,
    "codex": codex.start,
    "qwen": qwen.start,
    "pi": pi.start,
    "opencode": opencode.start,
    "gemini": gemini.start,
    "copilot": copilot.start,
    "cline": others.cline,
}
_PROJECT_SETTINGS: Mapping[str, tuple[str, Callable[[Sequence[str], Place], list[Steering]]]] = {
    "claude": ("Claude Code", claude.find_steering),
    "qwen": ("Qwen Code", qwen.find_steering),
    "pi": ("pi", pi.find_steering),
    "opencode": ("opencode", opencode.find_steering),
    "gemini": ("Gemini CLI", gemini.find_steering),
    "cline": ("Cline", others.find_cline_steering),
}


def launch(argv: Sequence[str], place: Place) -> Launch | Refusal:
    """Return how a command line is started so that it asks the proxy, or why it is not."""
    found = find_agent(argv, place)
    env = _past_proxies({**place.env, **(found.env if found else {})})
    started = _start(found, replace(place, env=env)) if found else _start_unknown(argv, replace(place, env=env))
    return started if isinstance(started, Refusal) or place.flagged else _beyond_us(started)


def _start(command: AgentCommand, place: Place) -> Launch | Refusal:
    started = _STARTS[command.agent](command.argv, place)
    return started if isinstance(started, Refusal) else replace(started, argv=(*command.prefix, *started.argv))


def _start_unknown(argv: Sequence[str], place: Place) -> Launch | Refusal:
    """Start a program that may run an agent which would read the settings of the project.

    Where the command names that agent, this is refused: nothing here could keep it from reading them. Elsewhere the
    user is warned about files that only an agent reads; a `.env` file is for any program.
    """
    words = [argv[0], *" ".join(argv[1:]).split()]
    mentions = find_mentions(argv, place)
    warnings = []
    for name, (title, find_steering) in _PROJECT_SETTINGS.items():
        steering = find_steering(words, place)
        if steering and name in mentions:
            remedy = f"start {title} by its own command, sightline run -- {name} …, which says how to trust the folder"
            return refuse(title, steering, remedy, ignorable=False)
        if theirs := [each for each in steering if not each.file.name.startswith(".env")]:
            warnings.append(warn_of(title, theirs))
    started = others.unknown(argv, place)
    return replace(started, note="; ".join([started.note, *warnings]))


def _beyond_us(started: Launch) -> Launch | Refusal:
    """An agent that asks `sightline serve` already goes on to where that goes, which only the user can know."""
    addresses = [*started.formerly.values(), *(url for _, url in started.named.values())]
    for url in addresses:
        if is_ours(url, DEFAULT_PORT):
            return Refusal(
                "invalid_input",
                f"{url} is the address of `sightline serve`, which does not say where requests go on to",
                "add --upstream NAME, or start the agent without `sightline run`",
            )
    return started


def _past_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """A web proxy of the environment cannot reach this machine's own addresses: the agent must not ask it."""
    if not any(env.get(name) or env.get(name.lower()) for name in _PROXIES):
        return dict(env)
    known = env.get("NO_PROXY") or env.get("no_proxy") or ""
    past = ",".join(filter(None, [known, "127.0.0.1"]))
    return {**env, "NO_PROXY": past, "no_proxy": past}
