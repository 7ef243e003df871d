"""A provider as the proxy reaches it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from sightline.model.profile import WireName

_versioned = re.compile(r"/v\d+[a-z0-9]*(?:/openai)?\Z")
_version = re.compile(r"/v\d+[a-z0-9]*(?=/)").match
_OWN_HEADERS: Mapping[WireName, str] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}


@dataclass(frozen=True, slots=True)
class Upstream:
    name: str
    bases: Mapping[WireName, str]  # the address in front of /v1/messages, /chat/completions, …
    preset: str = ""  # the row of `profiles` that tells what its models can do; empty: none
    key_variables: tuple[str, ...] = ()  # environment variables that usually hold its key
    api_key: str = field(default="", repr=False)  # set: replaces the client's own credential
    hoist: bool | None = None  # no image stays in a tool's result; None: as the settings say for all
    bearer: bool = False  # takes its key as a bearer token, also where the wire has a header of its own
    stateless: bool = False  # nothing that it answered can be named later, whatever was asked of it

    def base(self, api: WireName) -> str:
        """Where this is served; an upstream that names no address for it is asked at its first one."""
        return self.bases.get(api) or next(iter(self.bases.values()))

    def credential(self, api: WireName, key: str) -> tuple[str, str]:
        """The header that carries a key to this upstream."""
        own = _OWN_HEADERS.get(api) if not self.bearer else None
        return (own, key) if own else ("authorization", f"Bearer {key}")

    @property
    def on_loopback(self) -> bool:
        return all(is_loopback(urlsplit(base).hostname or "") for base in self.bases.values())


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sent a request and where it is going: all that a seer may use on the client's behalf."""

    upstream: Upstream
    wire: WireName
    scope: str  # a keyed hash of the credential: what one credential remembers, no other reads
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # credential, user agent, version


@dataclass(frozen=True, slots=True)
class Directory:
    """The upstreams that requests can reach."""

    named: Mapping[str, Upstream]
    owners: Mapping[WireName, Upstream]  # who gets requests of each kind when no upstream is named
    stray: WireName = "openai_chat"  # the kind of a request that does not tell: its credential goes to that owner


def joined(base: str, path: str) -> str:
    """`path`, as clients ask for it, below a base address; a version that both carry stands once."""
    base = base.rstrip("/")
    version = _version(path) if _versioned.search(base) else None
    return base + (path[version.end() :] if version else path)


def is_versioned(base: str) -> bool:
    """Whether an address ends with the version of an API."""
    return _versioned.search(base.rstrip("/")) is not None


def unversioned(base: str) -> str:
    """An address without the version that it may end with."""
    return _versioned.sub("", base.rstrip("/"))


@lru_cache(256)
def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
