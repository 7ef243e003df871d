"""The head of a request: its checks, and the last one of a connection, which need not be checked again.

llhttp has checked the syntax of a head. `check_head` accepts only what has one meaning for every reader (RFC 9112): one
target, one host, one way to tell where the body ends. Anything that could be read in two ways raises `BadRequest`.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from sightline.server.asgi import HEAD_NOTES, Headers

MAX_HEADERS = 1000
_VERSIONS = ("1.1", "1.0")
_CHECKED_FIELDS = frozenset({b"host", b"transfer-encoding", b"expect"})
_is_target = re.compile(rb'[!"$-~]+').fullmatch  # printable ASCII without "#"
_is_host = re.compile(rb"[\w.\-~!$&'()*+,;=%:\[\]]*", re.ASCII).fullmatch


class BadRequest(Exception):
    """A request that is answered with 400. The message says in one line what is wrong with it."""


class RequestHead(NamedTuple):
    path: bytes
    query: bytes
    expects_continue: bool  # the client waits for `100 Continue` before it sends the body


class CheckedHead:
    """The last head of a connection. Most clients send the same one again, with another content-length at most."""

    __slots__ = ("_headers", "_length_at", "_line", "expects_continue", "keep_alive", "offers_upgrade", "scope")

    def __init__(
        self, method: bytes, version: str, target: bytes, headers: Headers, *, keep_alive: bool, offers_upgrade: bool
    ) -> None:
        """Check a head; raise `BadRequest` if it isn't accepted. The flags are what the parser says of it."""
        self.keep_alive, self.offers_upgrade = keep_alive and version != "1.0", offers_upgrade
        self._line = (method, version, target)
        path, query, self.expects_continue = check_head(method, version, target, headers)
        self._headers = [*headers]
        names = [name for name, _ in headers]
        self._length_at = names.index(b"content-length") if b"content-length" in names else -1
        self.scope: dict[str, Any] = {  # what the scopes of all requests with this head have in common
            "type": "http",
            "method": method.decode("ascii"),
            "raw_path": path,
            "query_string": query,
            HEAD_NOTES: {},
        }

    def is_same(self, method: bytes, version: str, target: bytes, headers: Headers) -> bool:
        """Return whether another head differs in nothing but the value of its content-length."""
        known, at = self._headers, self._length_at
        if 0 <= at < len(headers) and headers[at][0] == b"content-length":
            known[at] = headers[at]
        return headers == known and self._line == (method, version, target)


def check_head(method: bytes, version: str, target: bytes, headers: Headers) -> RequestHead:
    """Return what a request asks for.

    Names in `headers` are in lower case. The host of an absolute target replaces the value of the Host header.
    """
    if version not in _VERSIONS:
        raise BadRequest(f"HTTP/{version} is not supported; send HTTP/1.1")
    if method == b"CONNECT":
        raise BadRequest("CONNECT is not supported: this is not a forward proxy")
    if len(headers) > MAX_HEADERS:
        raise BadRequest(f"the request has more than {MAX_HEADERS} headers")
    if not _is_target(target):
        raise BadRequest("the request target has a character that is not allowed there")
    expects = _check_header_fields(version, headers)
    if target[:1] != b"/":
        target = _split_absolute_target(method, target, headers)
    path, _, query = target.partition(b"?")
    return RequestHead(path, query, expects)


def get_framing_line(headers: Headers) -> bytes:
    """Return the header line that says where the body ends, or nothing if there is no body."""
    for name, value in headers:
        if name in (b"content-length", b"transfer-encoding"):
            return b"%b: %b\r\n" % (name, value)
    return b""


def _check_header_fields(version: str, headers: Headers) -> bool:
    """Check the fields that matter for a connection; return whether the client waits for `100 Continue`."""
    hosts, expects = 0, False
    for name, value in headers:
        if name not in _CHECKED_FIELDS:
            continue
        if name == b"host":
            hosts += 1
            if not _is_host(value.strip(b" \t")):
                raise BadRequest("the Host header is not a host name with an optional port")
        elif name == b"expect":
            expects = version == "1.1" and value.strip(b" \t").lower() == b"100-continue"
        elif version == "1.0":
            raise BadRequest("HTTP/1.0 has no Transfer-Encoding")
        elif value.strip(b" \t").lower() != b"chunked":
            raise BadRequest("the only Transfer-Encoding that is supported is chunked")
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        raise BadRequest(f"the request has {hosts or 'no'} Host headers; it must have one")
    return expects


def _split_absolute_target(method: bytes, target: bytes, headers: Headers) -> bytes:
    """Return the path and query of a target that is an absolute URL or `*`."""
    if target == b"*" and method == b"OPTIONS":
        return target
    scheme, _, rest = target.partition(b"://")
    if scheme.lower() != b"http":
        raise BadRequest("the request target must be a path, such as /v1/messages")
    end = min((at for at in map(rest.find, (b"/", b"?")) if at >= 0), default=len(rest))
    authority, path = rest[:end], rest[end:]
    if not authority or not _is_host(authority):
        raise BadRequest("the request target has no valid host")
    headers[:] = [(name, authority if name == b"host" else value) for name, value in headers]
    return path if path.startswith(b"/") else b"/" + path
