"""Requests sent byte for byte, as no SDK would send them."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Got:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


def exchange(
    url: str, path: str, body: bytes = b"", method: str = "POST", headers: Sequence[tuple[str, str]] = ()
) -> Got:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    try:
        named = any(name.lower() == "host" for name, _ in headers)
        connection.putrequest(method, path, skip_host=named, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        if body or method == "POST":
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return Got(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()


@contextmanager
def plug(url: str) -> Iterator[socket.socket]:
    """A bare connection."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=60) as connection:
        yield connection


def head(path: str, length: int, method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {length}\r\n\r\n".encode()


def until(connection: socket.socket, mark: bytes) -> bytes:
    """What comes up to a mark, or to the end."""
    seen = b""
    while mark not in seen and (piece := connection.recv(65536)):
        seen += piece
    return seen
