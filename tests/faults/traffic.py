"""Mixed traffic through a proxy in a process of its own, and what that process holds between its rounds.

    python -m tests.faults.traffic WORDS...     run `sightline WORDS`; for each line of input, print what it holds

A round is chats, streams, known images, answers that are cancelled at their beginning, and answers that are read
slowly. Between rounds nothing is under way, so what is held then must not grow.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from asyncio import Task
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.cli.command import ALONE, environment
from tests.proxy.clients import pasted_chat
from tests.proxy.raw_http import exchange, head, plug, until
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek
from tests.scripted.server import Exchange, Reply, Server
from tests.waiting import try_again

BLIND, SEEING = "deepseek-v4-pro", "deepseek-v4-flash"
_CHAT, _LONG = "/u/deepseek/v1/chat/completions", "/u/long/v1/chat/completions"
WORKERS = 6  # requests at a time
_IMAGES, _ROUND, _MIN_ROUNDS = 6, 60, 20
_EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"word " * 800)
_LONG_ANSWER = (*[_EVENT * 20] * 50, b"data: [DONE]\n\n")  # 4 MB


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a process holds."""

    megabytes: float
    descriptors: int
    threads: int
    tasks: int


def measure_holdings() -> Holdings:
    gc.unfreeze()  # the server freezes what it has loaded, and its main task with it
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what the C library keeps for later is no leak
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    tasks = sum(isinstance(each, Task) and not each.done() for each in gc.get_objects())
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    return Holdings(round(pages * os.sysconf("SC_PAGESIZE") / 2**20, 1), descriptors, threading.active_count(), tasks)


def find_growth(rounds: Sequence[Holdings]) -> Holdings:
    """Return by how much the most of the last half of the rounds exceeds the most of the first half."""
    half = len(rounds) // 2
    most = [
        [max(getattr(each, field) for each in part) for field in Holdings.__slots__]
        for part in (rounds[:half], rounds[half:])
    ]
    return Holdings(*(round(later - before, 1) for before, later in zip(*most, strict=True)))


class Soak:
    """A proxy with two upstreams: one whose models describe images, and one whose answers are long."""

    def __init__(self, process: subprocess.Popen[str], url: str, provider: Provider, seed: int) -> None:
        self._process, self._url, self._provider = process, url, provider
        self._chance, self.requests = random.Random(seed), 0
        self._kinds: Sequence[Callable[[int], None]] = (
            self._chat, self._stream, self._show_image, self._cancel, self._cancel_image, self._read_slowly
        )  # fmt: skip

    def run_rounds(self, seconds: float) -> list[Holdings]:
        """Send rounds for so long, and return what was held after each, without the first fifth, which fills caches."""
        end, held = time.monotonic() + seconds, [self.run_round()]
        while time.monotonic() < end or len(held) < _MIN_ROUNDS:
            held.append(self.run_round())
        return held[len(held) // 5 :]

    def run_round(self) -> Holdings:
        """Send a round of requests, and return what the proxy holds when all have ended."""
        chosen = [(self._chance.choice(self._kinds), self._chance.randrange(_IMAGES)) for _ in range(_ROUND)]
        with ThreadPoolExecutor(WORKERS) as threads:
            list(threads.map(lambda one: one[0](one[1]), chosen))
        self.requests += len(chosen)
        self._provider.exchanges.clear()
        for _ in try_again():
            if b"sightline_requests_under_way 0" in exchange(self._url, "/sightline/metrics", method="GET").body:
                return self._ask_holdings()
        raise AssertionError

    def _ask_holdings(self) -> Holdings:
        assert self._process.stdin
        assert self._process.stdout
        print(file=self._process.stdin, flush=True)
        for line in self._process.stdout:  # the first lines are the banner
            if line.startswith("{"):
                return Holdings(**json.loads(line))
        raise AssertionError("the proxy has ended")

    def _ask(self, model: str, messages: object, *, stream: bool = False) -> bytes:
        body = json.dumps({"model": model, "messages": messages, "stream": stream}).encode()
        got = exchange(self._url, _CHAT, body, headers=[("authorization", "Bearer sk-soak")])
        assert got.status == 200, got
        return got.body

    def _chat(self, number: int) -> None:
        assert self._ask(SEEING, [{"role": "user", "content": f"Say {number}."}])

    def _stream(self, number: int) -> None:
        assert b"[DONE]" in self._ask(SEEING, [{"role": "user", "content": f"Say {number}."}], stream=True)

    def _show_image(self, number: int) -> None:
        assert describe_quadrants(some_colours(number)).encode() in self._ask(BLIND, _show(number))

    def _cancel(self, number: int) -> None:
        with self._start_long_answer() as connection:
            assert until(connection, b"word")

    def _cancel_image(self, number: int) -> None:
        body = json.dumps({"model": BLIND, "messages": _show(number)}).encode()
        with plug(self._url) as connection:
            connection.sendall(head(_CHAT, len(body)) + body)

    def _read_slowly(self, number: int) -> None:
        """Let an answer wait that is larger than the buffers on its way, while another request is answered."""
        with self._start_long_answer() as connection:
            assert until(connection, b"word")
            self._chat(number)
            seen = b""
            while not seen.endswith(b"0\r\n\r\n"):
                piece = connection.recv(1 << 18)
                assert piece, "the answer was cut"
                seen = seen[-8:] + piece

    @contextmanager
    def _start_long_answer(self) -> Iterator[socket.socket]:
        body = json.dumps({"model": SEEING, "messages": [{"role": "user", "content": "a"}], "stream": True}).encode()
        with plug(self._url) as connection:
            connection.sendall(head(_LONG, len(body)) + body)
            yield connection


@functools.cache
def _show(number: int) -> list[dict[str, Any]]:
    return pasted_chat(paint_quadrants(some_colours(number)))


def _answer_at_length(exchange: Exchange) -> Reply:
    return Reply(200, (("content-type", "text/event-stream"),), _LONG_ANSWER, streamed=True)


@contextmanager
def run_soak(seed: int, *words: str, **variables: str) -> Iterator[Soak]:
    """Run a proxy with these words behind `serve` for mixed traffic."""
    with deepseek() as provider, Server(_answer_at_length, lambda: False) as long:
        upstreams = ("--upstream", f"deepseek={provider.url}", "--upstream", f"long=http://127.0.0.1:{long.port}")
        command = [sys.executable, "-m", "tests.faults.traffic", "serve", "--port", "0", *upstreams, *words]
        pipe, given = subprocess.PIPE, environment(**{**ALONE, **variables})
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=given
        ) as process:
            try:
                assert process.stdout
                yield Soak(process, process.stdout.readline().split()[-1], provider, seed)
            finally:
                process.kill()


def _report_holdings() -> None:
    for _ in sys.stdin:
        print(json.dumps(asdict(measure_holdings())), flush=True)


if __name__ == "__main__":
    from sightline.cli.main import main

    threading.Thread(target=_report_holdings, daemon=True).start()
    sys.exit(main(sys.argv[1:]))
