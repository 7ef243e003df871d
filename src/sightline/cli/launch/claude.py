"""Claude Code: its settings files win over the environment, and --settings over those; of two flags the last counts.

In `-p` it believes the settings of a project without asking, and they can lead it past --settings: by a web proxy,
another cloud, or another key. Its record of trusted folders is in .claude.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.cli.launch.projects import NETWORK, Steering, refuse, say_ignored, settings_that_steer
from sightline.cli.launch.started import FILES, Launch, Place, behind, of_project, options, parsed, part, without
from sightline.model.refusal import Refusal

_FLAG = "--settings"
_VARIABLE = "ANTHROPIC_BASE_URL"
_FILE = "claude-settings.json"
_SOURCES = "--setting-sources"
_OF_PROJECT = {"local": Path(".claude/settings.local.json"), "project": Path(".claude/settings.json")}
_STEERS = (
    "apiKeyHelper",
    "proxyAuthHelper",
    "otelHeadersHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "gcpAuthRefresh",
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
    own = _settings([*options(argv, _FLAG)], place)
    if own is None:
        return Refusal(
            "invalid_input", "the --settings of claude are neither JSON nor a file that holds it", "mend them"
        )
    steering = find_steering(argv, place)
    if steering and not place.flagged:
        return refuse("Claude Code", steering, "start claude in this folder, trust it when it asks, and repeat")
    if cloud := _cloud(own, place):
        return Refusal(
            "unsupported_type",
            f"Claude Code asks {_CLOUDS[cloud]} by {cloud}, which nothing here can stand before",
            f"unset {cloud} for a provider of the Anthropic API",
        )
    formerly, where = next(_addresses(own, place), ("", ""))
    merged = json.dumps({**own, "env": {**part(own, "env"), _VARIABLE: place.address}}, ensure_ascii=False)
    rest = without(argv, _FLAG)
    if steering:
        rest = [rest[0], _SOURCES, "user", *without(rest, _SOURCES)[1:]]
    # What the user has put into it may hold keys, and arguments can be read by everybody on the machine.
    said = f"{FILES}/{_FILE}" if own else merged
    return Launch(
        (rest[0], _FLAG, said, *rest[1:]),
        place.env,
        {"anthropic": formerly} if formerly else {},
        files={_FILE: merged} if own else {},
        note=say_ignored("Claude Code", steering) or of_project(formerly, where),
    )


def _addresses(own: Mapping[str, Any], place: Place) -> Iterator[tuple[str, str]]:
    """Every address that Claude Code is told to ask, the one that counts first; and the project's file that says it."""
    for settings, where in _layers(own, place):
        url = settings.get(_VARIABLE)
        if isinstance(url, str) and url:  # one that is no address is refused in clear words, not passed over
            yield behind(url), where


def _cloud(own: Mapping[str, Any], place: Place) -> str:
    """The variable by which another API than Anthropic's own is asked; the first file that speaks of it counts."""
    layers = [settings for settings, _ in _layers(own, place)]
    said = {name: next((each[name] for each in layers if name in each), "") for name in _CLOUDS}
    return next((name for name, text in said.items() if str(text).lower() in ("1", "true", "yes", "on")), "")


def _layers(own: Mapping[str, Any], place: Place) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The variables of every place that may set them, the one that counts first; and the project's file."""
    home = place.env.get("CLAUDE_CONFIG_DIR") or place.home / ".claude"
    yield part(own, "env"), ""
    for name in _OF_PROJECT.values() if _trusts(place) else ():
        yield part(place.json(name), "env"), "" if place.at_home else str(name)
    yield part(place.json(Path(home) / "settings.json"), "env"), ""
    yield place.env, ""


def find_steering(argv: Sequence[str], place: Place) -> list[Steering]:
    """Return the settings of a project that is not trusted which decide where keys and images go."""
    sources = [",".join(_OF_PROJECT), *options(argv, _SOURCES)][-1].split(",")
    read = [file for source, file in _OF_PROJECT.items() if source in map(str.strip, sources)]
    texts = [(file, place.read(place.folder / file) or "") for file in (() if _trusts(place) else read)]
    return [each for file, text in texts for each in settings_that_steer(file, text, _STEERS, _STEERING)]


def _trusts(place: Place) -> bool:
    """Whether the record of Claude Code trusts this folder, or one around it in the same repository."""
    if place.at_home:
        return True
    home = Path(place.env.get("CLAUDE_CONFIG_DIR") or place.home)
    legacy = Path(place.env.get("CLAUDE_CONFIG_DIR") or place.home / ".claude") / ".config.json"
    records = [part(place.json(file), "projects") for file in (home / ".claude.json", legacy)]
    folders = [str(folder) for folder in place.repository or place.above]
    return any(part(record, folder).get("hasTrustDialogAccepted") is True for record in records for folder in folders)


def _settings(flags: Sequence[str], place: Place) -> dict[str, Any] | None:
    given = flags[-1] if flags else ""
    if not given:
        return {}
    return parsed(given if given.lstrip().startswith("{") else place.read(place.folder / given) or "")
