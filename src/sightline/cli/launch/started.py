"""What it takes to start an agent so that it asks the proxy, and how an agent's own files are read."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sightline.model.profile import WireName
from sightline.model.upstream import is_loopback, is_versioned

Read = Callable[[Path], str | None]
"""The text of a file, or None when it cannot be read."""
ListFiles = Callable[[Path], Sequence[Path] | None]
"""All files below a folder, or None when there are too many to look at."""

FILES = "{sightline-files}"
"""Stands in arguments and variables for a folder that is the user's alone and ends with the agent."""

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_VARIABLE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[^\r\n#]*)""", re.MULTILINE
)
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


@dataclass(frozen=True, slots=True)
class Launch:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)  # it holds the user's keys
    # What the agent would have asked, for each API: an address, or an upstream by its name.
    formerly: Mapping[WireName, str] = field(default_factory=dict)
    named: Mapping[str, tuple[WireName, str]] = field(default_factory=dict)  # providers that it reaches as /u/NAME
    files: Mapping[str, str] = field(default_factory=dict, repr=False)  # written below FILES: they may hold keys
    note: str = ""


def _list_nothing(folder: Path) -> Sequence[Path]:
    """Return no files: the caller gives no way to list them."""
    return ()


def _normalize(path: Path) -> Path:
    return Path(normpath(path))


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent is started."""

    env: Mapping[str, str] = field(repr=False)
    address: str  # of the proxy
    folder: Path  # where the agent works
    read: Read
    flagged: bool = False  # the user has said where requests go on to: no provider keeps its own address
    real_home: Path | None = None  # where the home folder is, if a link leads there
    list_files: ListFiles = _list_nothing
    real_path: Callable[[Path], Path] = _normalize  # where a path leads when all links in it are followed

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
        found = _VARIABLE.findall(self.read(self.folder / Path(*names)) or "")
        return {name: text[1:-1] if text[:1] in ("'", '"') else text.strip() for name, text in found}

    @property
    def above(self) -> tuple[Path, ...]:
        """The folder where the agent works, and those around it."""
        return (self.folder, *self.folder.parents)

    @property
    def repository(self) -> tuple[Path, ...]:
        """The folder where the agent works and those around it, up to the repository's root; empty: there is none."""
        marks = (".git/HEAD", ".git")
        for number, folder in enumerate(self.above):
            if any(self.read(folder / mark) is not None for mark in marks):
                return self.above[: number + 1]
        return ()

    @property
    def at_home(self) -> bool:
        """Whether the agent works in the home folder itself: what is there is the user's own, and no project's."""
        return self.folder in (self.home, self.real_home)

    def trusts(self, rules: Path) -> bool:
        """Whether a record of trusted folders, as Gemini CLI and Qwen Code keep it, trusts this folder.

        The nearest rule counts. Of two rules for one folder, the one that does not trust it counts.
        """
        said: dict[Path, bool] = {}
        for path, level in self.json(rules).items():
            folder = Path(path).parent if level == "TRUST_PARENT" else Path(path)
            said[folder] = said.get(folder, True) and level in ("TRUST_FOLDER", "TRUST_PARENT")
        return next((said[folder] for folder in self.above if folder in said), False)


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


def without(argv: Sequence[str], *names: str) -> list[str]:
    """The arguments without these options and what they say."""
    rest, words = list(argv[:1]), iter(argv[1:])
    for word in words:
        if word in names:
            next(words, "")
        elif word.partition("=")[0] not in names:
            rest.append(word)
        if word == "--":  # from here on it is the prompt
            rest.extend(words)
    return rest


def expanded(text: object, env: Mapping[str, str]) -> str:
    """A text of a settings file with the variables in it, as $NAME or ${NAME}; what is not set stays as it stands."""
    return _REFERENCE.sub(lambda found: env.get(found[1] or found[2], found[0]), text) if isinstance(text, str) else ""


def address_of(upstream: object) -> str:
    """An address that can be gone on to, or the name of who is behind one of ours; an agent's file may say anything."""
    return behind(upstream) if isinstance(upstream, str) and upstream.startswith(("http://", "https://")) else ""


def behind(url: str) -> str:
    """Who is behind an address that `setup` has written: asking ourselves again helps nobody, and may find nobody."""
    where = _split(url)
    name = re.match(r"/u/([^/]+)", where[1])
    return name[1] if name and is_loopback(where[0]) else url


def is_ours(url: str, port: int) -> bool:
    """Whether `sightline serve` listens there, which says nothing about where it goes on to."""
    return bool(re.match(rf"https?://[^/]*:{port}(?:/|\Z)", url)) and is_loopback(_split(url)[0])


def _split(url: str) -> tuple[str, str]:
    try:
        where = urlsplit(url)
    except ValueError:
        return "", ""
    return where.hostname or "", where.path


def version_for(theirs: str, version: str) -> str:
    """What follows our address in the place of theirs: a client asks below a version only where theirs has one."""
    return version if not theirs or "://" not in theirs or is_versioned(theirs) else ""


def of_project(url: str, file: str) -> str:
    """The note where a file of the project, and not the user, says where requests go on to."""
    return f"requests go on to {url}, as {file} of this project says" if url and file else ""
