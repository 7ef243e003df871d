"""Which upstream and which wire a path means. Pure: addresses come from a directory, never from the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sightline.model.profile import Api
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream, joined
from sightline.wire import ANTHROPIC, OPENAI_CHAT, WIRES, Wire

Headers = list[tuple[bytes, bytes]]

_BY_PATH = {path: wire for wire in WIRES for path in wire.paths}
_COUNTS = frozenset(path for wire in WIRES for path in wire.counts)


@dataclass(frozen=True, slots=True)
class Directory:
    """The upstreams that requests can reach."""

    named: Mapping[str, Upstream]
    owners: Mapping[Api, Upstream]  # who gets requests of each kind when no upstream is named


@dataclass(frozen=True, slots=True)
class Route:
    upstream: Upstream
    url: str
    api: Api
    wire: Wire | None  # None: a path that is nobody's business but the upstream's
    counts: bool = False  # only tokens are counted there


def speaks(path: str, headers: Headers) -> Wire:
    """The wire whose words a client of this path understands: of another API, those of the nearest one."""
    if path.startswith("/u/"):
        path = "/" + path[3:].partition("/")[2]
    nearest = ANTHROPIC if _dialect(path, headers) == "anthropic" else OPENAI_CHAT
    return _BY_PATH.get(path, nearest)


def route(path: str, query: str, headers: Headers, directory: Directory) -> Route | Refusal:
    upstream: Upstream | None = None
    if path.startswith("/u/"):
        name, _, rest = path[3:].partition("/")
        upstream, path = directory.named.get(name), f"/{rest}"
        if upstream is None:
            known = ", ".join(sorted(directory.named))
            return Refusal("not_found", f"there is no upstream named {name!r}", f"known: {known}")
    wire = _BY_PATH.get(path)
    spoken: Api = wire.name if wire else _dialect(path, headers)
    if upstream is None:
        upstream = directory.owners[spoken]
    url = joined(upstream.base(spoken), path) + (f"?{query}" if query else "")
    return Route(upstream, url, spoken, wire, path in _COUNTS)


_DIALECTS: tuple[tuple[str, Api], ...] = (
    ("/v1/messages", "anthropic"),
    ("/v1/responses", "openai_responses"),
    ("/responses", "openai_responses"),
    ("/v1beta", "gemini"),
    ("/models/", "gemini"),
)


def _dialect(path: str, headers: Headers) -> Api:
    """Which kind of API a path that is no wire's belongs to."""
    if any(name == b"anthropic-version" for name, _ in headers):
        return "anthropic"
    return next((api for start, api in _DIALECTS if path.startswith(start)), "openai_chat")
