"""What it takes to start an agent so that it asks the proxy, and how an agent's own files are read."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sightline.model.profile import WireName

Read = Callable[[Path], str | None]
"""The text of a file, or None when it is not there or is not text."""

FILES = "{sightline-files}"
"""Stands in arguments and variables for a folder that is the user's alone and ends with the agent."""

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Launch:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)  # it holds the user's keys
    formerly: Mapping[WireName, str] = field(default_factory=dict)  # what the agent would have asked, for each API
    named: Mapping[str, tuple[WireName, str]] = field(default_factory=dict)  # providers that it reaches as /u/NAME
    files: Mapping[str, str] = field(default_factory=dict, repr=False)  # written below FILES: they may hold keys
    note: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent is started."""

    env: Mapping[str, str] = field(repr=False)
    address: str  # of the proxy
    folder: Path  # where the agent works
    read: Read
    flagged: bool = False  # the user has said where requests go on to: no provider keeps its own address

    @property
    def home(self) -> Path:
        return Path(self.env.get("HOME") or self.env.get("USERPROFILE") or "~")

    def json(self, *names: str | Path) -> dict[str, Any]:
        """An object from a file of the user's or the project's; one that cannot be read is empty."""
        return parsed(self.read(self.folder / Path(*names)) or "") or {}

    def toml(self, *names: str | Path) -> dict[str, Any]:
        try:
            return tomllib.loads(self.read(self.folder / Path(*names)) or "")
        except (ValueError, RecursionError):
            return {}

    def dotenv(self, *names: str | Path) -> dict[str, str]:
        pairs = (line.partition("=") for line in (self.read(self.folder / Path(*names)) or "").splitlines())
        return {name.strip(): text.strip().strip("\"'") for name, equals, text in pairs if equals}


def parsed(text: str) -> dict[str, Any] | None:
    """JSON, with comments and last commas where an agent allows them."""
    plain = _TRAILING.sub(lambda found: found[1] or "", _COMMENT.sub(lambda found: found[1] or "", text))
    try:
        found = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def part(tree: object, *names: str) -> dict[str, Any]:
    """An object inside another one; empty where there is none."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both objects in one, key by key; `above` wins."""
    return {**below} | {
        name: merged(below[name], value) if isinstance(value, dict) and isinstance(below.get(name), dict) else value
        for name, value in above.items()
    }


def options(argv: Sequence[str], *names: str) -> Iterator[str]:
    """What the words after these options say, in order; `--` ends them."""
    words = iter(argv[1:])
    for word in words:
        name, equals, text = word.partition("=")
        if word == "--":
            return
        if word in names:
            yield next(words, "")
        elif equals and name in names:
            yield text


def address_of(upstream: object) -> str:
    """An address that can be gone on to; an agent's file may say anything."""
    return upstream if isinstance(upstream, str) and upstream.startswith(("http://", "https://")) else ""
