"""Which upstream and which wire a path means. Pure: addresses come from a directory, never from the request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, unquote_plus, urlsplit

from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory, Upstream, joined
from sightline.wire import WIRES, Wire
from sightline.wire.codec import Endpoint

Headers = list[tuple[bytes, bytes]]

_BY_NAME = {wire.name: wire for wire in WIRES}

# A dot segment as the most lenient server would read it: ended by a slash, a backslash, a parameter or a blank.
_dot_segment = re.compile(r"(?:\A|[/\\])\.\.?(?:[/\\;\x00-\x20]|\Z)").search
_NO_PATH = Refusal("invalid_input", "the request target is not a path", "send a path that starts with /")
_DOT_SEGMENTS = Refusal(
    "invalid_input",
    "the path contains . or .. segments, which could lead out of the upstream's address",
    "send the path without them, encoded or not",
)


@dataclass(frozen=True, slots=True)
class Route:
    upstream: Upstream
    url: str
    api: WireName
    wire: Wire | None  # None: a path that is nobody's business but the upstream's
    endpoint: Endpoint
    key: str = ""  # a credential that stands in the query: Gemini takes one there


def speaks(path: str, headers: Headers, directory: Directory) -> Wire:
    """The wire whose words a client of this path understands: of another API, those of the nearest one."""
    upstream, path = _named(path, directory)
    wire, _ = _asked(path, None if isinstance(upstream, Refusal) else upstream)
    return wire or _BY_NAME[_dialect(path, headers) or directory.stray]


def route(path: str, query: str, headers: Headers, directory: Directory) -> Route | Refusal:
    """Return where a request goes, or a refusal: no path leads out of the base address of its upstream."""
    if not path.startswith("/"):
        return _NO_PATH
    if has_dot_segments(path):
        return _DOT_SEGMENTS
    upstream, path = _named(path, directory)
    if isinstance(upstream, Refusal):
        return upstream
    wire, endpoint = _asked(path, upstream)
    spoken: WireName = wire.name if wire else _dialect(path, headers, query) or directory.stray
    if upstream is None:
        upstream = directory.owners[spoken]
    key, rest = _key_in(query) if spoken == "gemini" else ("", query)
    query = rest if upstream.api_key else query  # an upstream's own key replaces the client's
    url = joined(upstream.base(spoken), endpoint.path) + (f"?{query}" if query else "")
    return Route(upstream, url, spoken, wire, endpoint, key)


def has_dot_segments(path: str) -> bool:
    """Tell whether a path has `.` or `..` segments, also percent-encoded (once or twice) or behind a backslash."""
    if "." not in path and "%" not in path:
        return False
    for _ in range(3):
        if _dot_segment(path):
            return True
        if "%" not in path:
            return False
        path = unquote(path, "latin-1")
    return False


def _named(path: str, directory: Directory) -> tuple[Upstream | Refusal | None, str]:
    """The upstream that a path names, if it names one, and the path below it."""
    if not path.startswith("/u/"):
        return None, path
    name, _, below = path[3:].partition("/")
    if (upstream := directory.named.get(name)) is not None:
        return upstream, f"/{below}"
    known = ", ".join(sorted(directory.named))
    return Refusal("not_found", f"there is no upstream named {name!r}", f"known: {known}"), f"/{below}"


def _key_in(query: str) -> tuple[str, str]:
    """The key in a query, and the query without it. What could stand in no header is no key."""
    pairs = query.split("&")
    keys = [unquote_plus(pair[len("key=") :]) for pair in pairs if pair.startswith("key=")]
    key = next((key for key in keys if key.isascii() and key.isprintable()), "")
    return key, "&".join(pair for pair in pairs if not pair.startswith("key="))


def _asked(path: str, upstream: Upstream | None = None) -> tuple[Wire | None, Endpoint]:
    """The wire of a path. A slash behind it means nothing, nor does what its upstream's own address ends with."""
    bare = path.rstrip("/")
    for wire in WIRES:
        if endpoint := wire.match(bare):
            return wire, endpoint
    for wire in WIRES if upstream is not None else ():
        assert upstream is not None
        end = urlsplit(upstream.base(wire.name)).path.rstrip("/")
        if end and bare.startswith(f"{end}/") and (endpoint := wire.match(bare[len(end) :])):
            return wire, endpoint
    return None, Endpoint(path)


_DIALECTS: tuple[tuple[str, WireName], ...] = (
    ("/v1/messages", "anthropic"),
    ("/api/oauth/", "anthropic"),
    ("/v1/responses", "openai_responses"),
    ("/responses", "openai_responses"),
    ("/v1beta", "gemini"),
    ("/v1internal", "gemini"),
    ("/upload/", "gemini"),
    ("/models/", "gemini"),
)
_SIGNS: tuple[tuple[bytes, bytes, WireName], ...] = (  # a header, how it begins, and whose clients alone send it so
    (b"anthropic-version", b"", "anthropic"),
    (b"anthropic-beta", b"", "anthropic"),
    (b"x-api-key", b"", "anthropic"),
    (b"authorization", b"bearer sk-ant-", "anthropic"),
    (b"x-goog-api-key", b"", "gemini"),
    (b"authorization", b"bearer ya29.", "gemini"),
)


def _dialect(path: str, headers: Headers, query: str = "") -> WireName | None:
    """Which kind of API a path that is no wire's belongs to. A credential tells it best: it goes to no other's host."""
    for sign, start, api in _SIGNS:
        if any(name == sign and value.lower().startswith(start) for name, value in headers):
            return api
    if any(pair.startswith("key=AIza") for pair in query.split("&")):
        return "gemini"
    return next((api for start, api in _DIALECTS if path.startswith(start)), None)
