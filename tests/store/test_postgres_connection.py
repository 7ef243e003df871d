"""A database server that accepts connections and replies to nothing else."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import psycopg
import pytest

from sightline.store.postgres_connection import BoundedConnection, ChangeListener, NoReplyError
from tests.requirements import requirement


def frame(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


WELCOME = b"".join(
    (
        frame(b"R", struct.pack("!I", 0)),
        frame(b"S", b"server_version\x0016.0\x00"),
        frame(b"S", b"client_encoding\x00UTF8\x00"),
        frame(b"K", struct.pack("!II", 1, 2)),
        frame(b"Z", b"I"),
    )
)


@contextmanager
def run_silent_server() -> Iterator[str]:
    """Run a server that never replies to a statement, and yield its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    accepted: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):  # it was closed
            while True:
                accepted.append(listening.accept()[0])
                accepted[-1].recv(10_000)
                accepted[-1].sendall(WELCOME)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"postgresql://user@127.0.0.1:{listening.getsockname()[1]}/name?sslmode=disable&gssencmode=disable"
    finally:
        for each in (listening, *accepted):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        thread.join()


@requirement("record.shared.slow")
def test_a_listener_gives_up_a_server_that_does_not_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedConnection, "reply_seconds", 0.5)
    with ThreadPoolExecutor(1) as threads, run_silent_server() as address:
        listener = ChangeListener(address)
        waiting = threads.submit(listener.wait, 3600.0)
        with pytest.raises(psycopg.Error):
            waiting.result(20.0)


@requirement("record.shared.slow")
def test_a_server_that_ignores_the_cancellation_too_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedConnection, "reply_seconds", 0.5)
    with run_silent_server() as address:
        connection = BoundedConnection.connect(address, autocommit=True)
        with pytest.raises(NoReplyError):
            connection.execute("SELECT 1")
        assert connection.closed
