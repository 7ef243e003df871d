"""A real upstream socket that records every request it gets, byte for byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived."""

    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key == name]


@dataclass
class Recorder:
    url: str
    requests: list[Recorded] = field(default_factory=list)

    @property
    def summaries(self) -> list[tuple[bytes, bytes]]:
        return [(one.line, one.body) for one in self.requests]


@contextmanager
def recording_upstream() -> Iterator[Recorder]:
    """Answer every request with an empty JSON object, until the context ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        recorder = Recorder(f"http://127.0.0.1:{listener.getsockname()[1]}")
        connections: list[socket.socket] = []
        threads = [threading.Thread(target=_accept, args=(listener, recorder, connections))]
        threads[0].start()
        try:
            yield recorder
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            threads[0].join()
            for connection in connections:
                connection.close()


def _accept(listener: socket.socket, recorder: Recorder, connections: list[socket.socket]) -> None:
    threads = []
    with suppress(OSError):  # the listener was shut down
        while True:
            connection, _ = listener.accept()
            connections.append(connection)
            threads.append(threading.Thread(target=_answer, args=(connection, recorder)))
            threads[-1].start()
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()


def _answer(connection: socket.socket, recorder: Recorder) -> None:
    seen = b""
    with suppress(OSError):
        while True:
            while b"\r\n\r\n" not in seen:
                if not (piece := connection.recv(65536)):
                    return
                seen += piece
            head, _, seen = seen.partition(b"\r\n\r\n")
            line, *rest = head.split(b"\r\n")
            headers = [(name.lower(), value.strip()) for name, _, value in (each.partition(b":") for each in rest)]
            length = int(dict(headers).get(b"content-length", b"0"))
            while len(seen) < length and (piece := connection.recv(65536)):
                seen += piece
            recorder.requests.append(Recorded(line, headers, seen[:length]))
            seen = seen[length:]
            connection.sendall(OK)
