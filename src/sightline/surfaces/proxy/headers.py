"""Headers on their route: which travel on, which end here, which a seer may borrow, and where addresses in them lead.

A client resolves a `Location` against the address that it asked, which is the proxy's. `/u/other/v1/messages` would
lead it, with its key and its body, to another upstream. So every address is first resolved where it was written, at
the upstream, and then told to the client in one of three ways:

- inside the base address of the upstream: as the path here that leads to exactly that address (`/u/NAME/…`), which
  the router itself confirms;
- anywhere else: as an absolute address;
- where this proxy, or another one on this machine, may listen: not at all.

A client that keeps cookies sends them to the host that set them, which is the proxy. So a cookie gets the path
`/u/NAME/`: it goes back to the same upstream and to no other. Where one upstream gets all requests without `/u/NAME`,
its cookies get no path instead, and count in the folder of the path that was asked for.

Characters that clients read in different ways (backslashes, control characters, letters that are not ASCII) are
encoded, so that all clients read the same address. Pure: no name is looked up.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from operator import itemgetter
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory, is_loopback
from sightline.surfaces.proxy.routes import Headers, Route, find_route

_HOP_BY_HOP = frozenset(  # what concerns one connection, not the request or the response
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    b" upgrade".split()
)
TOKEN = b"x-sightline-token"
"""Where a client of another machine says that it may come: never the header that carries the provider's key."""
_REMADE = frozenset({b"host", b"content-length", b"expect", TOKEN})
_BODILESS = (204, 304)
CREDENTIALS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
ANYBODY = "\0"
"""The credential of a client that has none. No header can hold it, and the user's own commands look under another."""
_REQUEST_IDS = frozenset({b"idempotency-key", b"x-idempotency-key", b"x-client-request-id", b"x-stainless-retry-count"})
_LENT = frozenset(  # what a seer of the same upstream may use of the client's headers
    {*CREDENTIALS, b"user-agent", b"anthropic-version", b"openai-organization", b"openai-project"}
)


class Request:
    def __init__(self, method: str, headers: Headers) -> None:
        self.method = method
        self.headers = headers  # as they came: order and repetitions kept
        self._first = dict(reversed(headers))

    def header(self, name: bytes) -> str:
        """Return the first header of this name, or an empty text."""
        return self._first.get(name, b"").decode("latin-1")


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different from the client's request, and its headers must no longer say."""

    unpacked: bool = False  # the body goes out without its content-encoding
    read: bool = False  # we may have to read the answer, so it must not be packed
    repeated: bool = False  # a second try of ours: not the request that the client gave an id to


UNCHANGED = Changes()


def _find_hop_by_hop(headers: Headers) -> frozenset[bytes]:
    named = [value for name, value in headers if name == b"connection"]
    return (
        _HOP_BY_HOP.union(each.strip().lower() for value in named for each in value.split(b","))
        if named
        else _HOP_BY_HOP
    )


def filter_response_headers(status: int, headers: Headers, *, grows: bool = False) -> Headers:
    """Return the headers of a response for the client; `grows`: its body may become longer than the upstream says."""
    dropped = (
        _find_hop_by_hop(headers) | {b"content-length"} if grows or status in _BODILESS else _find_hop_by_hop(headers)
    )
    return [header for header in headers if header[0] not in dropped]


def drop_body_headers(headers: Headers) -> Headers:
    """Return the headers of a response whose body is replaced: none that describes that body."""
    dropped = _find_hop_by_hop(headers) | {
        b"content-length",
        b"content-encoding",
        b"content-type",
        b"cache-control",
        b"etag",
    }
    return [header for header in headers if header[0] not in dropped]


def build_upstream_headers(request: Request, route: Route, changes: Changes, framed: bool) -> Headers:
    """Return the headers for the upstream; `framed`: the body is streamed, framed as the client framed it."""
    dropped = _find_hop_by_hop(request.headers) | _REMADE
    if changes.unpacked:
        dropped |= {b"content-encoding"}
    if changes.read:
        dropped |= {b"accept-encoding"}
    if changes.repeated:
        dropped |= _REQUEST_IDS
    headers = [(k, v) for k, v in _replace_credential(request.headers, route) if k not in dropped]
    if changes.read:
        headers.append((b"accept-encoding", b"identity"))
    if framed:
        length = request.header(b"content-length")
        headers.append((b"content-length", length.encode()) if length else (b"transfer-encoding", b"chunked"))
    return headers


def _replace_credential(headers: Headers, route: Route) -> Headers:
    """Return the headers with the upstream's credential from the settings, if there is one, instead of the client's."""
    if not route.upstream.api_key:
        return headers
    name, value = route.upstream.credential(route.api, route.upstream.api_key)
    kept = [(k, v) for k, v in headers if k not in CREDENTIALS]
    return [*kept, (name.encode(), value.encode())]


def find_credential(request: Request, route: Route) -> str:
    """Return the credential of a request: what is remembered under it, no other client reads."""
    return route.upstream.api_key or next(filter(None, map(request.header, CREDENTIALS)), route.key) or ANYBODY


def lend_headers(request: Request, route: Route) -> tuple[tuple[str, str], ...]:
    """Return the client's headers that a seer of the same upstream may use."""
    headers = [(k, v) for k, v in _replace_credential(request.headers, route) if k in _LENT]
    if route.key and not route.upstream.api_key:
        headers.append((b"x-goog-api-key", route.key.encode("latin-1", "replace")))
    beta = ",".join(each for each in request.header(b"anthropic-beta").split(",") if "oauth" in each)
    if beta:  # a subscription's credential is refused without it
        headers.append((b"anthropic-beta", beta.encode("latin-1")))
    return tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in headers)


_LOCATION, _LINK, _REFRESH = b"location", b"link", b"refresh"
_WHOLE = frozenset({b"operation-location", b"azure-asyncoperation", b"x-goog-upload-url"})  # never relative
_COOKIES = (b"set-cookie", b"set-cookie2")
_FOLLOWED = _WHOLE | {_LOCATION, b"content-location", _LINK, _REFRESH, *_COOKIES}
_COOKIE_SCOPE = (b"path", b"domain")
_PORTS = {"http": 80, "https": 443}
_LEGAL = "%:/?#[]@!$&'()*+,;=-._~"
# A scheme without a host, or too many slashes: some clients then take the host that they asked.
_without_host = re.compile(r"\A(?:https?:(?!//[^/?#])|(?=///))/*?(?=/?(?:[^/]|\Z))", re.IGNORECASE)
_is_host = re.compile(r"[a-z0-9._-]+|[0-9a-f.]*:[0-9a-f:.]*").fullmatch
_is_name = re.compile(r"[\w.:~-]+", re.ASCII).fullmatch
_version_at_end = re.compile(r"/v\d+[a-z0-9]*(?=(?:/openai)?\Z)").search
_in_link = re.compile(rb"<([^>]*)>")
_Origin = tuple[str, str, int]


class LocationRewriter:
    """Rewrites addresses and cookies in the headers of the answers to one request."""

    __slots__ = ("_directory", "_path", "_request", "_route")

    def __init__(self, request: Request, route: Route, directory: Directory, path: str = "") -> None:
        """`path` is the one that the client asked for; empty: it is not known."""
        self._path = path
        self._request = request
        self._route = route
        self._directory = directory

    def rewrite(self, headers: Headers) -> Headers:
        """Return the headers as the client may follow them; one that it must not follow is left out."""
        if _FOLLOWED.isdisjoint([name for name, _ in headers]):
            return headers
        kept: Headers = []
        located = False
        for name, value in headers:
            if name == _LOCATION and located:  # clients differ in which of several they take
                continue
            located = located or name == _LOCATION
            told = self._rewrite_one(name, value) if name in _FOLLOWED else value
            if told is not None:
                kept.append((name, told))
        return kept

    def _rewrite_one(self, name: bytes, value: bytes) -> bytes | None:
        if name == _REFRESH:  # for browsers, which are not served
            return None
        if name in _COOKIES:
            return self._rewrite_cookie(value) if name == _COOKIES[0] else None
        if name == _LINK:
            return self._rewrite_link(value)
        return self._rewrite_address(value, whole=name in _WHOLE)

    def _rewrite_cookie(self, value: bytes) -> bytes | None:
        """Return a cookie that goes back to this upstream alone, or None if no path here says that."""
        first, *attributes = value.split(b";")
        kept = [each for each in attributes if each.partition(b"=")[0].strip().lower() not in _COOKIE_SCOPE]
        bare = b";".join([first, *kept])
        if self._has_own_folder():
            return bare
        name = self._find_name()
        return b"%b; Path=/u/%b/" % (bare.rstrip(b"; "), name.encode()) if name else None

    def _has_own_folder(self) -> bool:
        """Return whether a cookie without a path, which counts in the folder of the requested path, stays here.

        It does where this upstream gets all requests without `/u/NAME`, unless that folder is the root.
        """
        owners = self._directory.owners.values()
        return self._path.count("/") > 1 and all(owner == self._route.upstream for owner in owners)

    def _find_name(self) -> str:
        """Return a name by which paths here lead to this upstream; empty: it has none."""
        upstream, named = self._route.upstream, self._directory.named
        names = (name for name in (upstream.name, *named) if named.get(name) == upstream and _is_name(name))
        return next(names, "")

    def _rewrite_link(self, value: bytes) -> bytes | None:
        told = [self._rewrite_address(found[1]) for found in _in_link.finditer(value)]
        if None in told:
            return None
        addresses = iter(told)
        return _in_link.sub(lambda _: b"<%b>" % (next(addresses) or b""), value)

    def _rewrite_address(self, value: bytes, *, whole: bool = False) -> bytes | None:
        """Return an address as the client may follow it, absolute if `whole`, or None if it must not."""
        text = quote(value.strip(), safe=_LEGAL)
        try:
            target = urlsplit(urljoin(self._route.url, _without_host.sub("", text, count=1)))
            if target.scheme not in _PORTS:
                return text.encode("ascii")
            origin = _origin_of(target)
        except ValueError:  # no two clients need agree on what it means
            return None
        if not _is_host(origin[1]):
            return None
        if origin not in map(_origin_of, map(urlsplit, self._route.upstream.bases.values())):
            return None if self._may_be_proxy(origin) else target.geturl().encode("ascii")
        path = None if whole else self._path_to(target)
        return (path or target.geturl()).encode("ascii")

    def _path_to(self, target: SplitResult) -> str | None:
        """Return the path here that leads to exactly this address of the upstream, if there is one."""
        query = f"?{target.query}" if target.query else ""
        found: list[tuple[bool, str]] = []
        for path, url in self._candidates(target):
            route = find_route(path, target.query, self._request.headers, self._directory)
            if isinstance(route, Refusal) or path.startswith("//"):
                continue
            if route.upstream == self._route.upstream and route.url == url + query:
                found.append((route.wire is None, path))
        if not found:
            return None
        return min(found, key=itemgetter(0))[1] + query + (f"#{target.fragment}" if target.fragment else "")

    def _candidates(self, target: SplitResult) -> Iterator[tuple[str, str]]:
        """Paths here that may lead to an address, each with that address as the router writes it."""
        upstream, name = self._route.upstream, self._find_name()
        prefix = f"/u/{name}" if name else ""
        for base in dict.fromkeys(upstream.bases.values()):
            root = urlsplit(base)
            end = root.path.rstrip("/")
            if _origin_of(root) != _origin_of(target) or not target.path.startswith(f"{end}/"):
                continue
            url, rest = f"{root.scheme}://{root.netloc}{target.path}", target.path[len(end) :]
            if version := _version_at_end(end):
                yield f"{prefix}{version[0]}{rest}", url
            yield prefix + rest, url

    def _may_be_proxy(self, origin: _Origin) -> bool:
        """Tell whether a proxy of ours may listen at an address that is not the upstream's own."""
        _, host, port = origin
        if _is_local(host):
            return True
        called, _, number = self._request.header(b"host").lower().rpartition(":")
        if not number.isdigit():
            called, number = self._request.header(b"host").lower(), ""
        if port not in ((int(number),) if number else _PORTS.values()):
            return False
        # A port of its own tells the proxy by any name; a usual one only by the name that the client calls it.
        return port not in _PORTS.values() or host == called.strip("[]").rstrip(".")


def has_lost_location(before: Headers, after: Headers) -> bool:
    """Tell whether a `Location` was left out."""
    return any(name == _LOCATION for name, _ in before) and not any(name == _LOCATION for name, _ in after)


def _origin_of(where: SplitResult) -> _Origin:
    """Return scheme, host and port; raise ValueError where there is no valid port."""
    host = (where.hostname or "").rstrip(".")
    return where.scheme, host, where.port or _PORTS[where.scheme]


def _is_local(host: str) -> bool:
    """Tell whether a host is this machine, also in the short and numeric forms that `connect` takes."""
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
