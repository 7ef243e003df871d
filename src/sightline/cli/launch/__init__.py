"""How an agent is started so that it asks the proxy: its arguments, environment and files, and where it went until now.

Pure: files are read through the caller, and what is to be written is a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from sightline.cli.launch import claude, codex, copilot, gemini, opencode, others, pi, qwen
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


def launch(argv: Sequence[str], place: Place) -> Launch | Refusal:
    name = PurePath(argv[0]).stem.lower() if argv[0].lower().endswith((".exe", ".cmd")) else PurePath(argv[0]).name
    start = _STARTS.get(name, others.unknown)
    started = start(argv, replace(place, env=_past_proxies(place.env)))
    return started if isinstance(started, Refusal) or place.flagged else _beyond_us(started)


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
