"""Finds the upstream and the wire for a path. Pure; addresses come from the directory, never from the request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote, unquote_plus, urlsplit

from sightline.model.profile import API_TITLES, Upstream, UpstreamDirectory, WireName, join_url
from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.profiles.profile_lookup import find_preset_name
from sightline.server import Headers
from sightline.wire import WIRES, Wire
from sightline.wire.scene_reader import Endpoint

_WIRE_BY_NAME = {wire.name: wire for wire in WIRES}

_MAX_ROUTES = 256  # that are kept
_MAX_PATH = 256  # characters of the path of one

# A dot segment as the most lenient server would read it: ended by a slash, a backslash, a parameter or a blank.
_dot_segment = re.compile(r"(?:\A|[/\\])\.\.?(?:[/\\;\x00-\x20]|\Z)").search
_NO_PATH = Refusal("invalid_input", "the request target is not a path", "send a path that starts with /")
_DOT_SEGMENTS = Refusal(
    "invalid_input",
    "the path contains . or .. segments, which could lead out of the upstream's address",
    "send the path without them, encoded or not",
)


@value_class
class Route:
    upstream: Upstream
    url: str
    api: WireName
    wire: Wire | None  # None: the request is forwarded unread
    endpoint: Endpoint
    key: str = ""  # the credential in the query, where Gemini accepts one

    @property
    def streams_json_list(self) -> bool:
        """Whether a stream is one JSON list: Gemini's is, unless the client asks for events."""
        return self.api == "gemini" and "alt=sse" not in self.url


def find_error_wire(path: str, headers: Headers, directory: UpstreamDirectory) -> Wire:
    """Return the wire whose error shape a client of this path understands, guessed if no wire has the path."""
    upstream, path = _find_upstream(path, directory)
    wire, _ = _match_wire(path, None if isinstance(upstream, Refusal) else upstream)
    return wire or _WIRE_BY_NAME[_guess_api(path, headers) or directory.fallback_wire]


def find_route(path: str, query: str, headers: Headers, directory: UpstreamDirectory) -> Route | Refusal:
    """Return the route of a request, or a refusal: no path may lead out of its upstream's base address."""
    if not path.startswith("/"):
        return _NO_PATH
    if has_dot_segments(path):
        return _DOT_SEGMENTS
    upstream, path = _find_upstream(path, directory)
    if isinstance(upstream, Refusal):
        return upstream
    wire, endpoint = _match_wire(path, upstream)
    api: WireName = wire.name if wire else _guess_api(path, headers, query) or directory.fallback_wire
    upstream = upstream or directory.defaults.get(api)
    if upstream is None:
        return _refuse_api(api, directory)
    key, rest = _split_key(query) if query else ("", "")
    if api == "gemini" and upstream.api_key:  # an upstream's own key replaces the client's
        query = rest
    url = join_url(upstream.get_base(api), endpoint.path) + (f"?{query}" if query else "")
    return _check_key(Route(upstream, url, api, wire, endpoint, key if api == "gemini" else ""), headers, key)


class Router:
    """Finds routes. Those that their path alone decides are kept for as long as the upstreams stay the same."""

    def __init__(self) -> None:
        self._directory: UpstreamDirectory | None = None
        self._routes: dict[str, Route] = {}  # by path, without a query, which may contain a key

    def find(self, path: str, query: str, headers: Headers, directory: UpstreamDirectory) -> Route | Refusal:
        """Return what `find_route` returns."""
        if directory is not self._directory or len(self._routes) > _MAX_ROUTES:
            self._directory, self._routes = directory, {}
        if not query and (known := self._routes.get(path)) is not None:
            return _check_key(known, headers)
        route = find_route(path, query, headers, directory)
        if isinstance(route, Route) and route.wire is not None and not query and len(path) <= _MAX_PATH:
            self._routes[path] = route
        return route


def _is_provider(upstream: Upstream) -> bool:
    """Return whether an upstream is a known provider at its own address. A gateway may have the keys of several."""
    address = next(iter(upstream.bases.values()), "")
    return bool(upstream.preset) and find_preset_name(address) == upstream.preset


def _check_key(route: Route, headers: Headers, key: str = "") -> Route | Refusal:
    """Return the route, or a refusal if a key of the request, or of its query, belongs to another provider."""
    upstream = route.upstream
    for owners in () if upstream.api_key else _find_key_owners(headers, key):
        if upstream.preset not in owners and _is_provider(upstream):
            return Refusal(
                "not_permitted",
                f"the key of this request belongs to {owners[0]}, and would be sent to {upstream.name}",
                f"give the agent the key of {upstream.name}, or send the request to {owners[0]}",
            )
    return route


def _refuse_api(api: WireName, directory: UpstreamDirectory) -> Refusal:
    """Return the refusal of a request that no upstream gets: its key may belong to another provider."""
    names = ", ".join(sorted({each.name for each in directory.defaults.values()}))
    return Refusal(
        "not_found",
        f"{names} is not known to have {API_TITLES[api]}",
        "name a provider that has it in the path, as /u/NAME, or with --upstream",
    )


def has_dot_segments(path: str) -> bool:
    """Return whether a path has `.` or `..` segments, also percent-encoded (once or twice) or after a backslash."""
    if "." not in path and "%" not in path:
        return False
    for _ in range(3):
        if _dot_segment(path):
            return True
        if "%" not in path:
            return False
        path = unquote(path, "latin-1")
    return False


def _find_upstream(path: str, directory: UpstreamDirectory) -> tuple[Upstream | Refusal | None, str]:
    """Return the upstream that a path names, if it names one, and the path below it."""
    if not path.startswith("/u/"):
        return None, path
    name, _, below = path[3:].partition("/")
    if (upstream := directory.by_name.get(name)) is not None:
        return upstream, f"/{below}"
    known = ", ".join(sorted(directory.by_name))
    return Refusal("not_found", f"there is no upstream named {name!r}", f"known: {known}"), f"/{below}"


def _split_key(query: str) -> tuple[str, str]:
    """Return the key in a query, if it could be sent in a header, and the query without it."""
    pairs = query.split("&")
    keys = [unquote_plus(pair[len("key=") :]) for pair in pairs if pair.startswith("key=")]
    key = next((key for key in keys if key and key.isascii() and key.isprintable()), "")
    return key, "&".join(pair for pair in pairs if not pair.startswith("key="))


def _match_wire(path: str, upstream: Upstream | None = None) -> tuple[Wire | None, Endpoint]:
    """Return the wire of a path, with or without a slash at its end and the path of its upstream's own address."""
    bare = path.rstrip("/")
    for wire in WIRES:
        if endpoint := wire.match_path(bare):
            return wire, endpoint
    for wire in WIRES if upstream is not None else ():
        assert upstream is not None
        end = urlsplit(upstream.get_base(wire.name)).path.rstrip("/")
        if end and bare.startswith(f"{end}/") and (endpoint := wire.match_path(bare[len(end) :])):
            return wire, endpoint
    return None, Endpoint(path)


_PATH_HINTS: tuple[tuple[str, WireName], ...] = (
    ("/v1/messages", "anthropic"),
    ("/api/oauth/", "anthropic"),
    ("/v1/responses", "openai_responses"),
    ("/responses", "openai_responses"),
    ("/v1beta", "gemini"),
    ("/v1internal", "gemini"),
    ("/upload/", "gemini"),
    ("/models/", "gemini"),
)
# A header, how its value starts, and the only API whose clients send it.
_HEADER_HINTS: tuple[tuple[bytes, bytes, WireName], ...] = (
    (b"anthropic-version", b"", "anthropic"),
    (b"anthropic-beta", b"", "anthropic"),
    (b"x-api-key", b"", "anthropic"),
    (b"authorization", b"bearer sk-ant-", "anthropic"),
    (b"x-goog-api-key", b"", "gemini"),
    (b"authorization", b"bearer ya29.", "gemini"),
)


# How a key starts, and the providers whose credential that is.
_KeyForms = tuple[tuple[tuple[bytes, ...], tuple[str, ...]], ...]
_KEY_FORMS: _KeyForms = (
    ((b"sk-ant-",), ("anthropic",)),
    ((b"sk-proj-", b"sk-svcacct-"), ("openai", "chatgpt")),
    ((b"ya29.", b"aiza"), ("gemini",)),
    ((b"sk-or-",), ("openrouter",)),
    ((b"xai-",), ("xai",)),
    ((b"gsk_",), ("groq",)),
)
_FORMS_BY_HEADER: Mapping[bytes, _KeyForms] = {
    **dict.fromkeys((b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key"), _KEY_FORMS),
    b"chatgpt-account-id": (((b"",), ("chatgpt", "openai")),),
}


def _find_key_owners(headers: Headers, key: str) -> list[tuple[str, ...]]:
    """Return the providers that each credential belongs to, by its form, if that tells."""
    found: list[tuple[str, ...]] = []
    for name, value in (*headers, (b"api-key", key.encode())) if key else headers:
        if (forms := _FORMS_BY_HEADER.get(name)) is not None:
            bare = value[:40].lower().removeprefix(b"bearer").lstrip()
            found += [owners for starts, owners in forms if bare.startswith(starts)]
    return found


def _guess_api(path: str, headers: Headers, query: str = "") -> WireName | None:
    """Return the API of a path that no wire has, by the credential first: it must not go to another provider."""
    for header, start, api in _HEADER_HINTS:
        if any(name == header and value.lower().startswith(start) for name, value in headers):
            return api
    if any(pair.startswith("key=AIza") for pair in query.split("&")):
        return "gemini"
    return next((api for start, api in _PATH_HINTS if path.startswith(start)), None)
