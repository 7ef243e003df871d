"""HTTP headers between client and upstream: which are forwarded, which a seer may use, and how addresses are rewritten.

A client resolves a `Location` against the address that it requested, which is the proxy's. `/u/other/v1/messages` would
send it, with its key and its body, to another upstream. So every address is first resolved against the upstream's
address, and the client then gets it in one of three ways:

- inside the base address of the upstream: as the proxy's path that leads to exactly that address (`/u/NAME/…`), which
  the router confirms;
- anywhere else: as an absolute address;
- where this proxy, or another one on this machine, may listen: not at all.

A client that keeps cookies sends them to the host that set them, which is the proxy. So a cookie gets the path
`/u/NAME/`: it goes back to the same upstream and to no other. If one upstream gets all requests without `/u/NAME`, its
cookies get no path instead, and apply to the folder of the requested path.

A client also keeps what a response says about its origin: where else to find it, that it needs https, where to report
its errors. That origin is the proxy's, with all other upstreams behind it, so an upstream must not speak for it: such
headers are dropped (`_ABOUT_ORIGIN`). Headers about one response or one address (caching, authentication, limits) are
forwarded.

Characters that clients read in different ways (backslashes, control characters, non-ASCII letters) are encoded, so that
all clients read the same address. Pure: no name is resolved.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Container, Iterator, Sequence
from ipaddress import IPv6Address, ip_address
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from sightline.dial import WrittenHead, write_head
from sightline.model.profile import UpstreamDirectory, is_loopback
from sightline.model.refusal import Refusal
from sightline.server import Headers
from sightline.surfaces.proxy.routes import Route, find_error_wire, find_route

_HOP_BY_HOP = frozenset(  # headers about one connection, not about the request or the response
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    b" upgrade".split()
)
_ABOUT_ORIGIN = frozenset(  # headers that change how a client treats the proxy's origin after the response
    b"alt-svc strict-transport-security public-key-pins public-key-pins-report-only expect-ct"  # how to connect
    b" nel report-to reporting-endpoints"  # where to send reports about requests
    b" clear-site-data set-login secure-session-registration sec-session-registration"  # what is stored and signed in
    b" accept-ch critical-ch use-as-dictionary"  # what later requests contain
    b" service-worker-allowed origin-agent-cluster origin-trial".split()  # which code runs there, and how
)
_NOT_FORWARDED = _HOP_BY_HOP | _ABOUT_ORIGIN  # of a response
TOKEN_HEADER = b"x-sightline-token"
"""The header with the token of a client on another machine: never the one that has the provider's key."""
_REPLACED = frozenset({b"host", b"content-length", b"expect", TOKEN_HEADER})
_BODILESS = (204, 304)
_MAX_KEPT_HEAD = 16 * 1024  # bytes of a head for an upstream: each connection of a client keeps up to eight
CREDENTIAL_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
NO_CREDENTIAL = "\0"
"""The credential of a client that has none. No header can contain this text, and the CLI uses another scope."""
_REQUEST_IDS = frozenset({b"idempotency-key", b"x-idempotency-key", b"x-client-request-id", b"x-stainless-retry-count"})
_SEER_HEADERS = frozenset(  # the client's headers that a seer of the same upstream may use
    {*CREDENTIAL_HEADERS, b"user-agent", b"anthropic-version", b"openai-organization", b"openai-project"}
)


class ClientRequest:
    def __init__(self, method: str, headers: Headers) -> None:
        self.method = method
        self.headers = headers  # as they came, with order and repetitions
        self._first = dict(reversed(headers))

    def get_header(self, name: bytes) -> str:
        """Return the first header of this name, or an empty string."""
        return self._first.get(name, b"").decode("latin-1")

    def list_names(self, names: Sequence[bytes]) -> Sequence[bytes]:
        """Return those of these names that headers have, in this order."""
        return () if self._first.keys().isdisjoint(names) else [name for name in names if name in self._first]


class RequestChanges(NamedTuple):
    """Differences from the client's request that its headers must reflect."""

    decompressed: bool = False  # the body is sent without its content-encoding
    reads_response: bool = False  # the proxy may have to read the response, so it must not be compressed
    is_retry: bool = False  # the proxy sends it again: it is not the request to which the client gave an id


UNCHANGED = RequestChanges()


class ClientNames(NamedTuple):
    """How a client calls itself, and its session or parts of one."""

    client: str
    labels: tuple[tuple[str, str], ...]


class HeadRoute:
    """The route of a request, and what follows from its head alone. Requests with the same head share it."""

    __slots__ = (
        "_upstream_heads",
        "client_names",
        "content_encoding",
        "count_labels",
        "credential",
        "directory",
        "error_wire",
        "is_signed",
        "rewriter",
        "route",
        "seer_headers",
    )

    def __init__(self, request: ClientRequest, route: Route, directory: UpstreamDirectory, path: str) -> None:
        self.route = route
        self.directory = directory
        self.rewriter = LocationRewriter(request, route, directory, path)
        self.error_wire = route.wire or find_error_wire(path, request.headers, directory)
        self.content_encoding = request.get_header(b"content-encoding")
        self.is_signed = request.get_header(b"authorization").startswith("AWS4-HMAC-SHA256")  # with its body
        self.credential = find_credential(request, route)
        self.seer_headers = select_seer_headers(request, route)
        self._upstream_heads: dict[RequestChanges, WrittenHead | Refusal] = {}
        self.count_labels = (route.wire.name if route.wire else "other", route.upstream.name)
        self.client_names: ClientNames | None = None  # for receipts; None until the first receipt

    def get_upstream_head(self, request: ClientRequest, changes: RequestChanges) -> WrittenHead | Refusal:
        """Return the head for the upstream, or why it can't be written."""
        head = self._upstream_heads.get(changes)
        if head is None:
            headers = build_upstream_headers(request, self.route, changes)
            head = write_head(request.method, self.route.url, headers)
            if isinstance(head, Refusal) or len(head.lines) <= _MAX_KEPT_HEAD:
                self._upstream_heads[changes] = head
        return head


def _add_hop_by_hop(dropped: frozenset[bytes], headers: Headers) -> frozenset[bytes]:
    """Return these names with those that `Connection` headers add."""
    named = [value for name, value in headers if name == b"connection"]
    return dropped.union(each.strip().lower() for value in named for each in value.split(b",")) if named else dropped


def filter_response_headers(status: int, headers: Headers, names: Container[bytes], *, grows: bool = False) -> Headers:
    """Return the headers of a response for the client; `grows`: its body may become longer than its content-length.

    `names` are those of the headers.
    """
    dropped = _add_hop_by_hop(_NOT_FORWARDED, headers) if b"connection" in names else _NOT_FORWARDED
    if grows or status in _BODILESS:
        dropped |= {b"content-length"}
    return [header for header in headers if header[0] not in dropped]


def drop_body_headers(headers: Headers) -> Headers:
    """Return the headers of a response whose body is replaced, without those that describe the body."""
    dropped = _add_hop_by_hop(_NOT_FORWARDED, headers) | {
        b"content-length",
        b"content-encoding",
        b"content-type",
        b"cache-control",
        b"etag",
    }
    return [header for header in headers if header[0] not in dropped]


def build_upstream_headers(request: ClientRequest, route: Route, changes: RequestChanges) -> Headers:
    """Return the headers for the upstream, without the framing of the body."""
    dropped = _add_hop_by_hop(_list_dropped_names(changes), request.headers)
    headers = [(k, v) for k, v in _replace_credential(request.headers, route) if k not in dropped]
    if changes.reads_response:
        headers.append((b"accept-encoding", b"identity"))
    return headers


def _list_dropped_names(changes: RequestChanges) -> frozenset[bytes]:
    """Return the headers of a client that an upstream doesn't get."""
    return (
        _HOP_BY_HOP
        | _REPLACED
        | ({b"content-encoding"} if changes.decompressed else set())
        | ({b"accept-encoding"} if changes.reads_response else set())
        | (_REQUEST_IDS if changes.is_retry else set())
    )


def _replace_credential(headers: Headers, route: Route) -> Headers:
    """Return the headers with the credential from the settings, if there is one, instead of the client's."""
    if not route.upstream.api_key:
        return headers
    name, value = route.upstream.build_credential(route.api, route.upstream.api_key)
    kept = [(k, v) for k, v in headers if k not in CREDENTIAL_HEADERS]
    return [*kept, (name.encode(), value.encode())]


def find_credential(request: ClientRequest, route: Route) -> str:
    """Return the credential of a request. Clients with another credential can't read what is kept for this one."""
    return (
        route.upstream.api_key
        or next(filter(None, map(request.get_header, CREDENTIAL_HEADERS)), route.key)
        or NO_CREDENTIAL
    )


def select_seer_headers(request: ClientRequest, route: Route) -> tuple[tuple[str, str], ...]:
    """Return the client's headers that a seer of the same upstream may use."""
    headers = [(k, v) for k, v in _replace_credential(request.headers, route) if k in _SEER_HEADERS]
    if route.key and not route.upstream.api_key:
        headers.append((b"x-goog-api-key", route.key.encode("latin-1", "replace")))
    beta = request.get_header(b"anthropic-beta")
    if "oauth" in beta:  # a subscription's credential is rejected without it
        kept = ",".join(each for each in beta.split(",") if "oauth" in each)
        headers.append((b"anthropic-beta", kept.encode("latin-1")))
    return tuple([(k.decode("latin-1"), v.decode("latin-1")) for k, v in headers])


_LOCATION, _LINK, _REFRESH = b"location", b"link", b"refresh"
_ABSOLUTE = frozenset({b"operation-location", b"azure-asyncoperation", b"x-goog-upload-url"})  # never relative
_COOKIES = (b"set-cookie", b"set-cookie2")
HEADERS_WITH_ADDRESS = _ABSOLUTE | {_LOCATION, b"content-location", _LINK, _REFRESH, *_COOKIES}
_COOKIE_SCOPE = (b"path", b"domain")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL_CHARACTERS = "%:/?#[]@!$&'()*+,;=-._~"
# A scheme without a host, or too many slashes: some clients then use the host that they requested.
_without_host = re.compile(r"\A(?:https?:(?!//[^/?#])|(?=///))/*?(?=/?(?:[^/]|\Z))", re.IGNORECASE)
_is_host = re.compile(r"[a-z0-9._-]+|[0-9a-f.]*:[0-9a-f:.]*").fullmatch
_is_name = re.compile(r"[\w.:~-]+", re.ASCII).fullmatch
_version_at_end = re.compile(r"/v\d+[a-z0-9]*(?=(?:/openai)?\Z)").search
_in_link = re.compile(rb"<([^>]*)>")
_Origin = tuple[str, str, int]


class LocationRewriter:
    """Rewrites addresses and cookies in the response headers of one request, and of others with the same head."""

    __slots__ = ("_directory", "_path", "_request", "_route")

    def __init__(self, request: ClientRequest, route: Route, directory: UpstreamDirectory, path: str = "") -> None:
        """`path` is the one that the client requested; empty if it is unknown."""
        self._path = path
        self._request = request
        self._route = route
        self._directory = directory

    def rewrite(self, headers: Headers) -> Headers:
        """Return the headers with addresses that the client may follow, without those that it must not."""
        kept: Headers = []
        located = False
        for name, value in headers:
            if name == _LOCATION and located:  # clients differ in which of several they use
                continue
            located = located or name == _LOCATION
            rewritten = self._rewrite_one(name, value) if name in HEADERS_WITH_ADDRESS else value
            if rewritten is not None:
                kept.append((name, rewritten))
        return kept

    def _rewrite_one(self, name: bytes, value: bytes) -> bytes | None:
        if name == _REFRESH:  # only browsers use it, and they are not served
            return None
        if name in _COOKIES:
            return self._rewrite_cookie(value) if name == _COOKIES[0] else None
        if name == _LINK:
            return self._rewrite_link(value)
        return self._rewrite_address(value, absolute=name in _ABSOLUTE)

    def _rewrite_cookie(self, value: bytes) -> bytes | None:
        """Return a cookie that goes back to this upstream only, or None if no path ensures that."""
        first, *attributes = value.split(b";")
        kept = [each for each in attributes if each.partition(b"=")[0].strip().lower() not in _COOKIE_SCOPE]
        bare = b";".join([first, *kept])
        if self._has_own_folder():
            return bare
        name = self._find_upstream_name()
        return b"%b; Path=/u/%b/" % (bare.rstrip(b"; "), name.encode()) if name else None

    def _has_own_folder(self) -> bool:
        """Return whether a cookie without a path, which applies to the folder of the requested path, stays here.

        It does if this upstream gets all requests without `/u/NAME`, unless that folder is the root.
        """
        owners = self._directory.defaults.values()
        return self._path.count("/") > 1 and all(owner == self._route.upstream for owner in owners)

    def _find_upstream_name(self) -> str:
        """Return the name that this upstream has in the proxy's paths, or an empty string."""
        upstream, named = self._route.upstream, self._directory.by_name
        names = (name for name in (upstream.name, *named) if named.get(name) == upstream and _is_name(name))
        return next(names, "")

    def _rewrite_link(self, value: bytes) -> bytes | None:
        rewritten = [self._rewrite_address(found[1]) for found in _in_link.finditer(value)]
        if None in rewritten:
            return None
        addresses = iter(rewritten)
        return _in_link.sub(lambda _: b"<%b>" % (next(addresses) or b""), value)

    def _rewrite_address(self, value: bytes, *, absolute: bool = False) -> bytes | None:
        """Return an address that the client may follow, or None if it must not follow this one."""
        text = quote(value.strip(), safe=_URL_CHARACTERS)
        try:
            target = urlsplit(urljoin(self._route.url, _without_host.sub("", text, count=1)))
            if target.scheme not in _DEFAULT_PORTS:
                return text.encode("ascii")
            origin = _get_origin(target)
        except ValueError:  # clients may differ in what it means
            return None
        if not _is_host(origin[1]):
            return None
        if origin not in map(_get_origin, map(urlsplit, self._route.upstream.bases.values())):
            return None if self._may_be_proxy(origin) else target.geturl().encode("ascii")
        path = None if absolute else self._find_path_to(target)
        return (path or target.geturl()).encode("ascii")

    def _find_path_to(self, target: SplitResult) -> str | None:
        """Return the proxy's path that leads to exactly this address of the upstream, if there is one."""
        query = f"?{target.query}" if target.query else ""
        found: list[tuple[bool, str]] = []
        for path, url in self._list_paths_to(target):
            route = find_route(path, target.query, self._request.headers, self._directory)
            if isinstance(route, Refusal) or path.startswith("//"):
                continue
            if route.upstream == self._route.upstream and route.url == url + query:
                found.append((route.wire is None, path))
        if not found:
            return None
        return min(found, key=itemgetter(0))[1] + query + (f"#{target.fragment}" if target.fragment else "")

    def _list_paths_to(self, target: SplitResult) -> Iterator[tuple[str, str]]:
        """Yield paths of the proxy that may lead to an address, each with that address as the router writes it."""
        upstream, name = self._route.upstream, self._find_upstream_name()
        prefix = f"/u/{name}" if name else ""
        for base in dict.fromkeys(upstream.bases.values()):
            root = urlsplit(base)
            end = root.path.rstrip("/")
            if _get_origin(root) != _get_origin(target) or not target.path.startswith(f"{end}/"):
                continue
            url, rest = f"{root.scheme}://{root.netloc}{target.path}", target.path[len(end) :]
            if version := _version_at_end(end):
                yield f"{prefix}{version[0]}{rest}", url
            yield prefix + rest, url

    def _may_be_proxy(self, origin: _Origin) -> bool:
        """Return whether a Sightline proxy may listen at an address that is not the upstream's own."""
        _, host, port = origin
        if _is_local(host):
            return True
        called_name, _, number = self._request.get_header(b"host").lower().rpartition(":")
        if not number.isdigit():
            called_name, number = self._request.get_header(b"host").lower(), ""
        if port not in ((int(number),) if number else _DEFAULT_PORTS.values()):
            return False
        # On an unusual port, any name may be this proxy; on a default port, only the name that the client uses.
        return port not in _DEFAULT_PORTS.values() or host == called_name.strip("[]").rstrip(".")


def has_lost_location(before: Headers, after: Headers) -> bool:
    """Return whether a `Location` was removed."""
    return any(name == _LOCATION for name, _ in before) and not any(name == _LOCATION for name, _ in after)


def _get_origin(address: SplitResult) -> _Origin:
    """Return scheme, host and port; raise ValueError where there is no valid port."""
    host = (address.hostname or "").rstrip(".")
    return address.scheme, host, address.port or _DEFAULT_PORTS[address.scheme]


def _is_local(host: str) -> bool:
    """Return whether a host is this machine, also in the short and numeric forms that `connect` accepts."""
    try:
        address = ip_address(host)
    except ValueError:
        try:
            address = ip_address(socket.inet_aton(host))
        except (OSError, ValueError):
            return is_loopback(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified
