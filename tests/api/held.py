"""A provider on loopback that counts its calls and holds its answers until it is told to give them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Held:
    def __init__(self) -> None:
        self.url = ""
        self.calls: list[dict[str, Any]] = []
        self.came = threading.Semaphore(0)  # once for each call
        self.free = threading.Event()
        self.most = 0  # calls that were held at the same time
        self._lock, self._now = threading.Lock(), 0

    def called(self, body: dict[str, Any]) -> bytes:
        with self._lock:
            self.calls.append(body)
            number = len(self.calls)
            self._now += 1
            self.most = max(self.most, self._now)
        self.came.release()
        self.free.wait(60)
        with self._lock:
            self._now -= 1
        message = {"role": "assistant", "content": f"answer {number}"}
        usage = {"prompt_tokens": 100, "completion_tokens": 7}
        return json.dumps({"choices": [{"index": 0, "message": message}], "usage": usage}).encode()


@contextmanager
def holding() -> Iterator[Held]:
    held = Held()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answer = held.called(body)
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the library's word
            """Nobody reads it."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that was killed hears no answer."""

    with Quiet(("127.0.0.1", 0), Handler) as server:
        held.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield held
        finally:
            held.free.set()
            server.shutdown()
            serving.join()
