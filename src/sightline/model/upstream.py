"""A provider as the proxy reaches it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from sightline.model.profile import Api, WireName

_versioned = re.compile(r"/v\d+[a-z0-9]*\Z").search


@dataclass(frozen=True, slots=True)
class Upstream:
    name: str
    bases: Mapping[Api, str]  # the address in front of /v1/messages, /chat/completions, …
    preset: str = ""  # the row of `profiles` that tells what its models can do; empty: none
    key_variables: tuple[str, ...] = ()  # environment variables that usually hold its key
    api_key: str = field(default="", repr=False)  # set: replaces the client's own credential
    bearer: bool = False  # takes its key as a bearer token, also where the wire has a header of its own

    def base(self, api: Api) -> str:
        """Where this is served; an upstream that names no address for it is asked at its first one."""
        return self.bases.get(api) or next(iter(self.bases.values()))

    def credential(self, api: Api, key: str) -> tuple[str, str]:
        """The header that carries a key to this upstream."""
        own_header = api == "anthropic" and not self.bearer
        return ("x-api-key", key) if own_header else ("authorization", f"Bearer {key}")

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


def joined(base: str, path: str) -> str:
    """`path`, as clients ask for it, below a base address; a version that both carry stands once."""
    base = base.rstrip("/")
    return base + (path.removeprefix("/v1") if path.startswith("/v1/") and _versioned(base) else path)


@lru_cache(256)
def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
