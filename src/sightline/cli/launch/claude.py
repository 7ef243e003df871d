"""Claude Code: its settings files win over the environment, and --settings over those; of two flags the last counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.cli.launch.started import FILES, Launch, Place, parsed, part
from sightline.model.refusal import Refusal

_VARIABLE = "ANTHROPIC_BASE_URL"
_FILE = "claude-settings.json"


def start(argv: Sequence[str], place: Place) -> Launch | Refusal:
    rest, given = _without_settings(argv)
    own = _settings(given, place)
    if own is None:
        return Refusal(
            "invalid_input", "the --settings of claude are neither JSON nor a file that holds it", "mend them"
        )
    formerly, where = next(_addresses(own, place), ("", ""))
    merged = json.dumps({**own, "env": {**part(own, "env"), _VARIABLE: place.address}}, ensure_ascii=False)
    # What the user has put into it may hold keys, and arguments can be read by everybody on the machine.
    said = f"{FILES}/{_FILE}" if own else merged
    return Launch(
        (rest[0], "--settings", said, *rest[1:]),
        place.env,
        {"anthropic": formerly} if formerly else {},
        files={_FILE: merged} if own else {},
        note=f"requests go on to {formerly}, as {where} of this project says" if where else "",
    )


def _addresses(own: Mapping[str, Any], place: Place) -> Iterator[tuple[str, str]]:
    """Every address that Claude Code is told to ask, the one that counts first; and the project's file that says it."""
    home = place.env.get("CLAUDE_CONFIG_DIR") or place.home / ".claude"
    projects = (".claude/settings.local.json", ".claude/settings.json")
    found: list[tuple[Mapping[str, Any], str]] = [
        (own, ""),
        *((place.json(name), name) for name in projects),
        (place.json(Path(home) / "settings.json"), ""),
        ({"env": place.env}, ""),
    ]
    for settings, where in found:
        env = settings.get("env")
        url = env.get(_VARIABLE) if isinstance(env, Mapping) else None
        if isinstance(url, str) and url:  # one that is no address is refused in clear words, not passed over
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


def _settings(given: str, place: Place) -> dict[str, Any] | None:
    if not given:
        return {}
    return parsed(given if given.lstrip().startswith("{") else place.read(place.folder / given) or "")
