"""A proxy that tunnels every host to one port of this machine: so a provider on loopback stands for one elsewhere."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Tunnel:
    """Answers CONNECT while entered; `hosts` are those that were asked for."""

    def __init__(self, port: int) -> None:
        self.hosts: list[str] = []
        self._port = port
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        self.hosts.append(head.split()[1].decode())
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with client, socket.create_connection(("127.0.0.1", self._port)) as there:
            back = threading.Thread(target=_copy, args=(there, client), daemon=True)
            back.start()
            _copy(client, there)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
