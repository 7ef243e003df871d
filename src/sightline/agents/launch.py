"""What starting an agent needs: the context it is started in, the resulting launch, its options and its addresses."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from os.path import normpath
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sightline.agents.settings_files import parse_dotenv, parse_json
from sightline.model.profile import USUAL_WIRES, WireName, is_loopback, is_versioned
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

ReadText = Callable[[Path], str | None]
"""The text of a file, or None when it cannot be read."""
ListFiles = Callable[[Path], Sequence[Path] | None]
"""All files below a folder, or None when there are too many to look at."""

FILES = "{sightline-files}"
"""In arguments and variables, the placeholder for a private folder that is removed when the agent ends."""
# The names of the usual providers: with `--upstream`, an address without a name leads to that upstream.
USUAL_PROVIDERS: Mapping[WireName, str] = {
    "anthropic": "anthropic",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gemini",
}
_THIS_MACHINE = ("127.0.0.1", "localhost")


@value_class
class Launch:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)  # it holds the user's keys
    # What the agent would have asked, for each API: an address, or the name of an upstream.
    former_upstreams: Mapping[WireName, str] = field(default_factory=dict)
    named_upstreams: Mapping[str, tuple[WireName, str]] = field(
        default_factory=dict
    )  # providers that it reaches as /u/NAME
    files: Mapping[str, str] = field(default_factory=dict, repr=False)  # written below FILES: they may hold keys
    note: str = ""


def _list_no_files(folder: Path) -> Sequence[Path]:
    """Return no files: the caller gives no way to list them."""
    return ()


def _normalize(path: Path) -> Path:
    return Path(normpath(path))


@value_class
class LaunchContext:
    """Where an agent is started."""

    env: Mapping[str, str] = field(repr=False)
    address: str  # of the proxy
    folder: Path  # where the agent works
    read: ReadText
    upstream: str = ""  # the name of the upstream that the user named; no provider of its APIs keeps its own address
    upstream_apis: tuple[WireName, ...] = USUAL_WIRES  # that this upstream gets the requests of
    is_upstream_known: bool = False  # it has no other APIs
    real_home: Path | None = None  # the home folder with links followed
    list_files: ListFiles = _list_no_files
    serve_port: int = 0  # where `sightline serve` listens unless the user says otherwise
    real_path: Callable[[Path], Path] = _normalize  # where a path leads when all links in it are followed

    @property
    def has_upstream(self) -> bool:
        """Whether the user named an upstream."""
        return bool(self.upstream)

    def uses_upstream(self, api: WireName) -> bool:
        """Return whether requests of an API go to the upstream that the user named: otherwise a key of another
        provider could be sent there."""
        return self.has_upstream and api in self.upstream_apis

    @property
    def home(self) -> Path:
        return Path(self.env.get("HOME") or self.env.get("USERPROFILE") or "~")

    def read_json(self, *names: str | Path) -> dict[str, Any]:
        """Read an object from a file; one that cannot be read is empty."""
        return parse_json(self.read(self.folder / Path(*names)) or "") or {}

    def read_toml(self, *names: str | Path) -> dict[str, Any]:
        try:
            return tomllib.loads(self.read(self.folder / Path(*names)) or "")
        except (ValueError, RecursionError):
            return {}

    def read_dotenv(self, *names: str | Path) -> dict[str, str]:
        return parse_dotenv(self.read(self.folder / Path(*names)) or "")

    @property
    def folder_chain(self) -> tuple[Path, ...]:
        """The folder where the agent works, and those around it."""
        return (self.folder, *self.folder.parents)

    @property
    def repository(self) -> tuple[Path, ...]:
        """The folder where the agent works and those around it, up to the repository's root; empty: there is none."""
        marks = (".git/HEAD", ".git")
        for number, folder in enumerate(self.folder_chain):
            if any(self.read(folder / mark) is not None for mark in marks):
                return self.folder_chain[: number + 1]
        return ()

    @property
    def at_home(self) -> bool:
        """Whether the agent works in the home folder itself, whose files are the user's own and not a project's."""
        return self.folder in (self.home, self.real_home)

    def trusts(self, rules: Path) -> bool:
        """Return whether a record of trusted folders, as Gemini CLI and Qwen Code keep it, trusts this folder.

        The nearest rule counts. Of two rules for one folder, the one that does not trust it counts.
        """
        said: dict[Path, bool] = {}
        for path, level in self.read_json(rules).items():
            folder = Path(path).parent if level == "TRUST_PARENT" else Path(path)
            said[folder] = said.get(folder, True) and level in ("TRUST_FOLDER", "TRUST_PARENT")
        return next((said[folder] for folder in self.folder_chain if folder in said), False)


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
    """Return an upstream's address, or its name if the address is one that `setup` has written; empty: no address."""
    return (
        resolve_upstream(upstream) if isinstance(upstream, str) and upstream.startswith(("http://", "https://")) else ""
    )


def resolve_upstream(url: str) -> str:
    """Return the upstream's name if `setup` has written the address, so that the proxy doesn't ask itself."""
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


def describe_project_upstream(url: str, file: str) -> str:
    """Return the note that a file of the project, and not the user, names the upstream."""
    return f"requests go to {url}, as {file} of this project says" if url and file else ""


def refuse_own_address(started: Launch, context: LaunchContext) -> Launch | Refusal:
    """Refuse an agent that already uses `sightline serve`: only the user knows which upstream that forwards to."""
    own = re.compile(rf"https?://[^/]*:{context.serve_port}(?:/|\Z)")
    for url in (*started.former_upstreams.values(), *(url for _, url in started.named_upstreams.values())):
        if own.match(url) and is_loopback(_split_url(url)[0]):
            return Refusal(
                "invalid_input",
                f"{url} is the address of `sightline serve`, so the provider is not known",
                "add --upstream NAME, or start the agent without `sightline run`",
            )
    return started


def refuse_upstream(context: LaunchContext, title: str) -> Refusal:
    """Return the refusal of an upstream without the API that an agent, or a provider of it, uses."""
    return Refusal(
        "unsupported_type",
        f"{context.upstream} is not known to have the API that {title} uses",
        "name another provider with --upstream; or, if it has that API, its address for it in the setting `upstreams`",
    )


def bypass_web_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with NO_PROXY set, so that requests to this machine don't go through a web proxy.

    It is set even if no variable names a web proxy, because the agent may find one in a file.
    """
    known = [name.strip() for both in ("NO_PROXY", "no_proxy") for name in env.get(both, "").split(",")]
    past = ",".join(dict.fromkeys(filter(None, [*known, *([] if "*" in known else _THIS_MACHINE)])))
    return {**env, "NO_PROXY": past, "no_proxy": past}
