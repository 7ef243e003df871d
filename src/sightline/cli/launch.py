"""How an agent is started so that it asks the proxy: its arguments and environment, and where it went until now."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from sightline.cli.agents import AGENTS
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

Read = Callable[[Path], str | None]
"""The text of a file, or None when it is not there or is not text."""

_ANTHROPIC = "ANTHROPIC_BASE_URL"
_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass(frozen=True, slots=True)
class Launch:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)  # it holds the user's keys
    formerly: Mapping[WireName, str]  # the address that the agent would have asked, for each API
    note: str = ""
    private: int | None = None  # the argument that others must not read: it goes into a file of the user's alone


def launch(argv: Sequence[str], env: Mapping[str, str], address: str, folder: Path, read: Read) -> Launch | Refusal:
    """`folder` is where the agent works."""
    name = PurePath(argv[0]).stem.lower() if argv[0].lower().endswith((".exe", ".cmd")) else PurePath(argv[0]).name
    if name == "claude":
        return _claude(argv, _past_proxies(env), address, folder, read)
    if name in AGENTS:
        return Refusal(
            "unsupported_type",
            f"{AGENTS[name].title} reads its provider's address from its own settings",
            f"`sightline setup {name}` shows how to point it here, `sightline serve` listens",
        )
    return _by_variables(argv, _past_proxies(env), address, name)


def _by_variables(argv: Sequence[str], env: Mapping[str, str], address: str, name: str) -> Launch:
    """Most programs read one of these; whoever ignores them is not helped, and is told so."""
    openai = next((env[variable] for variable in _OPENAI if env.get(variable)), "")
    found: dict[WireName, str] = {
        "anthropic": env.get(_ANTHROPIC, ""),
        **dict.fromkeys(("openai_chat", "openai_responses"), openai),
    }
    pointed = {_ANTHROPIC: address, **dict.fromkeys(_OPENAI, f"{address}/v1")}
    return Launch(
        tuple(argv),
        {**env, **pointed},
        {api: url for api, url in found.items() if url},
        f"{name} is pointed here by {', '.join(pointed)}; if it reads none of them, nothing changes for it",
    )


def _claude(argv: Sequence[str], env: Mapping[str, str], address: str, folder: Path, read: Read) -> Launch | Refusal:
    """Its settings files win over the environment, and --settings over those; of two such flags the last counts."""
    rest, given = _without_settings(argv)
    own = _settings(given, folder, read)
    if own is None:
        return Refusal(
            "invalid_input", "the --settings of claude are neither JSON nor a file that holds it", "mend them"
        )
    formerly, where = next(_addresses(own, env, folder, read), ("", ""))
    merged = json.dumps({**own, "env": {**_env_of(own), _ANTHROPIC: address}}, ensure_ascii=False)
    pointed = (rest[0], "--settings", merged, *rest[1:])
    return Launch(
        pointed,
        env,
        {"anthropic": formerly} if formerly else {},
        note=f"requests go on to {formerly}, as {where} of this project says" if where else "",
        private=_SETTINGS_AT if own else None,
    )


_SETTINGS_AT = 2


def _addresses(own: object, env: Mapping[str, str], folder: Path, read: Read) -> Iterator[tuple[str, str]]:
    """Every address that Claude Code is told to ask, the one that counts first; and the project's file that says it."""
    home = env.get("CLAUDE_CONFIG_DIR") or Path(env.get("HOME") or env.get("USERPROFILE") or "~", ".claude")
    projects = (".claude/settings.local.json", ".claude/settings.json")
    found: list[tuple[object, str]] = [
        (own, ""),
        *((_parsed(read(folder / name) or ""), name) for name in projects),
        (_parsed(read(Path(home) / "settings.json") or ""), ""),
        ({"env": env}, ""),
    ]
    for settings, where in found:
        url = _env_of(settings).get(_ANTHROPIC)
        if isinstance(url, str) and url:
            yield url, where


def _without_settings(argv: Sequence[str]) -> tuple[list[str], str]:
    """The arguments without any --settings, and what the last one says."""
    rest, given = list(argv[:1]), ""
    words = iter(argv[1:])
    for word in words:
        if word == "--settings":
            given = next(words, "")
        elif word.startswith("--settings="):
            given = word.partition("=")[2]
        else:
            rest.append(word)
        if word == "--":  # from here on it is the prompt
            rest.extend(words)
    return rest, given


def _settings(given: str, folder: Path, read: Read) -> dict[str, Any] | None:
    if not given:
        return {}
    text = given if given.lstrip().startswith("{") else read(folder / given) or ""
    return _parsed(text)


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        settings = json.loads(text)
    except ValueError:
        return None
    return settings if isinstance(settings, dict) else None


def _env_of(settings: object) -> Mapping[str, Any]:
    env = settings.get("env") if isinstance(settings, dict) else None
    return env if isinstance(env, dict) else {}


def _past_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """A web proxy of the environment cannot reach this machine's own addresses: the agent must not ask it."""
    if not any(env.get(name) or env.get(name.lower()) for name in _PROXIES):
        return dict(env)
    known = env.get("NO_PROXY") or env.get("no_proxy") or ""
    past = ",".join(filter(None, [known, "127.0.0.1"]))
    return {**env, "NO_PROXY": past, "no_proxy": past}
