"""How an agent is started so that it asks the proxy, where that is, and what its arguments and addresses say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sightline.agents.settings_files import parse_dotenv, parse_json
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import is_loopback, is_versioned

Read = Callable[[Path], str | None]
"""The text of a file, or None when it cannot be read."""
ListFiles = Callable[[Path], Sequence[Path] | None]
"""All files below a folder, or None when there are too many to look at."""

FILES = "{sightline-files}"
"""Stands in arguments and variables for a folder that is the user's alone and ends with the agent."""
_THIS_MACHINE = ("127.0.0.1", "localhost")


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
    serve_port: int = 0  # where `sightline serve` listens unless the user says otherwise
    real_path: Callable[[Path], Path] = _normalize  # where a path leads when all links in it are followed

    @property
    def home(self) -> Path:
        return Path(self.env.get("HOME") or self.env.get("USERPROFILE") or "~")

    def json(self, *names: str | Path) -> dict[str, Any]:
        """Read an object from a file; one that cannot be read is empty."""
        return parse_json(self.read(self.folder / Path(*names)) or "") or {}

    def toml(self, *names: str | Path) -> dict[str, Any]:
        try:
            return tomllib.loads(self.read(self.folder / Path(*names)) or "")
        except (ValueError, RecursionError):
            return {}

    def dotenv(self, *names: str | Path) -> dict[str, str]:
        return parse_dotenv(self.read(self.folder / Path(*names)) or "")

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
        """Return whether a record of trusted folders, as Gemini CLI and Qwen Code keep it, trusts this folder.

        The nearest rule counts. Of two rules for one folder, the one that does not trust it counts.
        """
        said: dict[Path, bool] = {}
        for path, level in self.json(rules).items():
            folder = Path(path).parent if level == "TRUST_PARENT" else Path(path)
            said[folder] = said.get(folder, True) and level in ("TRUST_FOLDER", "TRUST_PARENT")
        return next((said[folder] for folder in self.above if folder in said), False)


def find_options(argv: Sequence[str], *names: str) -> Iterator[str]:
    """Yield the values of these options, in order; `--` ends them."""
    words = iter(argv[1:])
    for word in words:
        name, equals, text = word.partition("=")
        if word == "--":
            return
        if word in names:
            yield next(words, "")
        elif equals and name in names:
            yield text


def remove_options(argv: Sequence[str], *names: str) -> list[str]:
    """Return the arguments without these options and their values."""
    rest, words = list(argv[:1]), iter(argv[1:])
    for word in words:
        if word in names:
            next(words, "")
        elif word.partition("=")[0] not in names:
            rest.append(word)
        if word == "--":  # from here on it is the prompt
            rest.extend(words)
    return rest


def find_address(upstream: object) -> str:
    """Return an address of an upstream, or the upstream's name if it is one of ours; empty: it is no address."""
    return (
        resolve_upstream(upstream) if isinstance(upstream, str) and upstream.startswith(("http://", "https://")) else ""
    )


def resolve_upstream(url: str) -> str:
    """Return the upstream's name for an address that `setup` has written, so that we don't ask ourselves again."""
    where = _split_url(url)
    name = re.match(r"/u/([^/]+)", where[1])
    return name[1] if name and is_loopback(where[0]) else url


def _split_url(url: str) -> tuple[str, str]:
    try:
        where = urlsplit(url)
    except ValueError:
        return "", ""
    return where.hostname or "", where.path


def choose_version(theirs: str, version: str) -> str:
    """Return what follows our address: the version, unless the address in its place has none."""
    return version if not theirs or "://" not in theirs or is_versioned(theirs) else ""


def say_project_decides(url: str, file: str) -> str:
    """Return the note that a file of the project, and not the user, names the upstream."""
    return f"requests go on to {url}, as {file} of this project says" if url and file else ""


def refuse_own_address(started: Launch, place: Place) -> Launch | Refusal:
    """Refuse an agent that asks `sightline serve` already: only the user can know where that goes on to."""
    own = re.compile(rf"https?://[^/]*:{place.serve_port}(?:/|\Z)")
    for url in (*started.formerly.values(), *(url for _, url in started.named.values())):
        if own.match(url) and is_loopback(_split_url(url)[0]):
            return Refusal(
                "invalid_input",
                f"{url} is the address of `sightline serve`, which does not say where requests go on to",
                "add --upstream NAME, or start the agent without `sightline run`",
            )
    return started


def bypass_web_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment so that no web proxy is asked for this machine's addresses, which it can't reach.

    Also where no variable names a web proxy: the agent may find one in a file.
    """
    known = [name.strip() for both in ("NO_PROXY", "no_proxy") for name in env.get(both, "").split(",")]
    past = ",".join(dict.fromkeys(filter(None, [*known, *([] if "*" in known else _THIS_MACHINE)])))
    return {**env, "NO_PROXY": past, "no_proxy": past}
