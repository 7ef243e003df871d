"""Headers on their way: which travel on, which end here, and which a seer may borrow."""

from __future__ import annotations

from dataclasses import dataclass
from hmac import compare_digest

from sightline.model.refusal import Refusal
from sightline.model.upstream import is_loopback
from sightline.surfaces.proxy.passing import Passing
from sightline.surfaces.proxy.routes import Headers, Route

_HOPS = frozenset(  # what concerns one connection, not the request or the answer
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
TOKEN = b"x-sightline-token"
"""Where a client of another machine says that it may come: never the header that carries the provider's key."""
_REMADE = frozenset({b"host", b"content-length", b"expect", TOKEN})
_BODILESS = (204, 304)
CREDENTIALS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
ANYBODY = "\0"
"""The credential of a client that has none. No header can hold it, and the user's own commands look under another."""
_NAMES = frozenset({b"idempotency-key", b"x-idempotency-key", b"x-client-request-id", b"x-stainless-retry-count"})
_LENT = frozenset(  # what a seer of the same upstream may use of the client's headers
    {*CREDENTIALS, b"user-agent", b"anthropic-version", b"openai-organization", b"openai-project"}
)


class Request:
    def __init__(self, method: str, headers: Headers) -> None:
        self.method = method
        self.headers = headers  # as they came: order and repetitions kept
        self._first = dict(reversed(headers))
        self.passing = Passing()

    def header(self, name: bytes) -> str:
        """The first header of this name, or nothing."""
        return self._first.get(name, b"").decode("latin-1")


def unwelcome(request: Request, token: str = "") -> Refusal | None:
    """Who may not use the proxy: without a token, whoever is not of this machine; with one, whoever lacks it."""
    if token:
        given = request.header(TOKEN).removeprefix("Bearer ")
        if compare_digest(given.encode("latin-1"), token.encode()):  # as it came, and as anybody writes it
            return None
        return Refusal("not_permitted", "this proxy asks for a token", f"send it in the header {TOKEN.decode()}")
    # A web page must not reach the user's upstreams through a name that it made point here.
    # A page in a sandbox has the origin "null": nobody knows whose it is.
    # A page's plain GET has no origin, but a browser says where it comes from.
    foreign = request.header(b"sec-fetch-site") in ("cross-site", "same-site")
    hosts = [value for name, value in request.headers if name == b"host" and value]
    origins = [value.partition(b"://")[2] for name, value in request.headers if name == b"origin"]
    if foreign or len(hosts) > 1 or not all(map(_is_here, (*hosts, *origins))):
        return Refusal("not_permitted", "only programs of this machine are served here", "call it by 127.0.0.1")
    return None


def _is_here(authority: bytes) -> bool:
    whole = authority.decode("latin-1").lower()
    name, _, port = whole.rpartition(":")
    return is_loopback(name if port.isdigit() else whole)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a request's headers must no longer say."""

    unpacked: bool = False  # the body goes out without its content-encoding
    read: bool = False  # we may have to read the answer, so it must not be packed
    repeated: bool = False  # a second try of ours: not the request that the client gave a name to


UNCHANGED = Changes()


def _hops(headers: Headers) -> frozenset[bytes]:
    named = [value for name, value in headers if name == b"connection"]
    return _HOPS.union(each.strip().lower() for value in named for each in value.split(b",")) if named else _HOPS


def backward(status: int, headers: Headers, *, grows: bool = False) -> Headers:
    """The headers of an answer for the client; `grows`: its body may become longer than the upstream says."""
    dropped = _hops(headers) | {b"content-length"} if grows or status in _BODILESS else _hops(headers)
    return [header for header in headers if header[0] not in dropped]


def retold(headers: Headers) -> Headers:
    """The headers of an answer whose body is written anew: none that tells of that body."""
    dropped = _hops(headers) | {b"content-length", b"content-encoding", b"content-type", b"cache-control", b"etag"}
    return [header for header in headers if header[0] not in dropped]


def onward(request: Request, way: Route, changes: Changes, framed: bool) -> Headers:
    """The headers for the upstream; `framed`: the body comes in pieces, framed as the client framed it."""
    dropped = _hops(request.headers) | _REMADE
    if changes.unpacked:
        dropped |= {b"content-encoding"}
    if changes.read:
        dropped |= {b"accept-encoding"}
    if changes.repeated:
        dropped |= _NAMES
    headers = [(k, v) for k, v in _credentialed(request.headers, way) if k not in dropped]
    if changes.read:
        headers.append((b"accept-encoding", b"identity"))
    if framed:
        length = request.header(b"content-length")
        headers.append((b"content-length", length.encode()) if length else (b"transfer-encoding", b"chunked"))
    return headers


def _credentialed(headers: Headers, way: Route) -> Headers:
    """The client's own credential travels on, unless the upstream has one in the settings."""
    if not way.upstream.api_key:
        return headers
    name, value = way.upstream.credential(way.api, way.upstream.api_key)
    kept = [(k, v) for k, v in headers if k not in CREDENTIALS]
    return [*kept, (name.encode(), value.encode())]


def credential_of(request: Request, way: Route) -> str:
    """Whose request this is: what its credential remembers, no other reads."""
    return way.upstream.api_key or next(filter(None, map(request.header, CREDENTIALS)), way.key) or ANYBODY


def lent(request: Request, way: Route) -> tuple[tuple[str, str], ...]:
    """The client's headers that a seer of the same upstream may use."""
    headers = [(k, v) for k, v in _credentialed(request.headers, way) if k in _LENT]
    if way.key and not way.upstream.api_key:
        headers.append((b"x-goog-api-key", way.key.encode("latin-1", "replace")))
    beta = ",".join(each for each in request.header(b"anthropic-beta").split(",") if "oauth" in each)
    if beta:  # a subscription's credential is refused without it
        headers.append((b"anthropic-beta", beta.encode("latin-1")))
    return tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in headers)
