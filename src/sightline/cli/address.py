"""Where the proxy listens: on this machine alone, unless a token guards it."""

from __future__ import annotations

import errno
import os
import socket
from argparse import ArgumentParser
from pathlib import Path

from sightline.model.refusal import Refusal

DEFAULT_PORT = 8790


def port(text: str) -> int:
    """For argparse, which names this function when the number makes no sense."""
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError(text)
    return number


def add_address(parser: ArgumentParser) -> None:
    """Where to listen, and who may come."""
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="default: 127.0.0.1")
    parser.add_argument(
        "--port", type=port, default=DEFAULT_PORT, metavar="P", help=f"default: {DEFAULT_PORT}; 0: any free one"
    )
    parser.add_argument(
        "--token", metavar="T", default="",
        help="serve only who sends it in the header x-sightline-token; needed for a --host beyond this machine;"
        " SIGHTLINE_TOKEN keeps it out of the list of processes",
    )  # fmt: skip


def no_folder(root: Path | None) -> Refusal | None:
    if root is None or root.is_dir():
        return None
    return Refusal("not_found", f"there is no folder {root}", "--root names one")


def url_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind(host: str, number: int, *, guarded: bool = False) -> socket.socket | Refusal:
    """A listening socket; port 0 is any free one. Bound before anything is started, so that a no costs nothing."""
    from sightline.model.upstream import is_loopback  # a host that starts us on stdio waits for less

    if not is_loopback(host) and not guarded:
        return Refusal(
            "not_permitted",
            f"{host} is not an address of this machine alone, and whoever reaches the proxy can use it",
            "use --host 127.0.0.1, or ask for a token with --token",
        )
    host = "127.0.0.1" if host.endswith("localhost") else host
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":  # where it lets a port be taken at once after a restart, and not stolen
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, number))
        listening.listen(128)
    except OSError as trouble:
        listening.close()
        if trouble.errno == errno.EADDRINUSE:
            return Refusal("unavailable", f"port {number} is in use", "choose another one with --port")
        return Refusal(
            "unavailable", f"{url_of(host, number)} cannot be listened on: {trouble.strerror}", "choose another --host"
        )
    return listening


def shared(family: int, where: object) -> socket.socket:
    """One of several sockets on one port: the system deals out who connects to those that listen."""
    other = socket.socket(family)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    other.bind(where)  # type: ignore[arg-type] # as the system has told it
    return other


def url_on(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return url_of(host, port)
