"""A load of real bodies on several replicas: clients that go to another replica where one fails, as a balancer does.

A body is one that a coding agent has sent, with a picture of the test's in the place of its image. An answer counts as
done when its client has read the stream's last event.
"""

from __future__ import annotations

import itertools
import json
import threading
from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException

from tests.golden.captures import captures, payloads
from tests.proxy.raw_http import exchange
from tests.scripted.pictures import paint_quadrants, some_colours

_CAPTURE = "qwen-code/read-2"
_PATH = "/u/deepseek/v1/chat/completions"
_HEADERS = [("content-type", "application/json"), ("authorization", "Bearer sk-test-0123456789")]


class UnfinishedError(Exception):
    """No replica has given the whole answer."""


@dataclass(frozen=True, slots=True)
class Done:
    """An answer that a client has whole."""

    image: int
    text: str


@cache
def _read_capture() -> tuple[str, str]:
    """Return the text of a real body, and the payload of its image."""
    (capture,) = (each for each in captures() if each.name == _CAPTURE)
    (payload,) = payloads(capture.body)
    return capture.raw.decode(), payload.text


def build_body(model: str, image: int) -> bytes:
    text, payload = _read_capture()
    picture = b64encode(paint_quadrants(some_colours(image))).decode()
    text = text.replace("small.png", f"shot{image}.png")  # a question of its own: a turn may describe a few images
    body = json.loads(text.replace(f"image/jpeg;base64,{payload}", f"image/png;base64,{picture}"))
    return json.dumps({**body, "model": model}).encode()


def ask_replica(url: str, model: str, image: int) -> Done:
    """Send a request to one replica; raise `UnfinishedError` unless the answer is whole."""
    try:
        got = exchange(url, _PATH, build_body(model, image), headers=_HEADERS)
    except (OSError, HTTPException) as error:
        raise UnfinishedError(str(error)) from error
    events = [line.removeprefix("data: ") for line in got.body.decode().splitlines() if line.startswith("data: ")]
    if got.status != 200 or events[-1:] != ["[DONE]"]:
        raise UnfinishedError(f"{got.status} {got.body[-200:]!r}")
    choices = [choice for event in events[:-1] for choice in json.loads(event)["choices"]]
    return Done(image, "".join(choice["delta"].get("content") or "" for choice in choices))


class RealLoad:
    """Clients at several replicas. Each sends one request after the other: known images, and a new one now and then."""

    def __init__(self, model: str, urls: Sequence[str], known: Sequence[int], clients: int, first_new: int) -> None:
        self._model, self._urls, self._known = model, urls, known
        self._new = itertools.count(first_new)
        self._ending = threading.Event()
        self.done: list[Done] = []
        self.moved = 0  # requests that another replica had to answer
        self._threads = ThreadPoolExecutor(clients)
        self._running: list[Future[None]] = [self._threads.submit(self._run, number) for number in range(clients)]

    def _run(self, number: int) -> None:
        home = self._urls[number % len(self._urls)]
        urls = [home, *(url for url in reversed(self._urls) if url != home)]
        for turn in itertools.count(number):
            if self._ending.is_set():
                return
            image = next(self._new) if turn % 4 == 0 else self._known[turn % len(self._known)]
            self.done.append(self._ask(urls, image))

    def _ask(self, urls: Sequence[str], image: int) -> Done:
        """Ask one replica after the other."""
        for url in urls:
            try:
                return ask_replica(url, self._model, image)
            except UnfinishedError:
                self.moved += 1
        raise UnfinishedError(f"image {image}")

    def end(self) -> list[Done]:
        """Let every client finish its request, and return all answers; raise if one got none."""
        self._ending.set()
        for each in self._running:
            each.result(120)
        self._threads.shutdown()
        return self.done
