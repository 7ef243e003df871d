"""A scripted implementation of the port `HttpSender`: each request gets the next reply, and is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sightline.model.ports import HttpReply
from sightline.model.refusal import Refusal


@dataclass(frozen=True)
class Asked:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ScriptedHttp:
    def __init__(
        self, *replies: HttpReply | Refusal, by_url: Callable[[Asked], HttpReply | Refusal] | None = None
    ) -> None:
        self._replies = list(replies)
        self._by_url = by_url
        self.asked: list[Asked] = []

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> HttpReply | Refusal:
        self.asked.append(Asked(method, url, headers, body, seconds))
        return self._by_url(self.asked[-1]) if self._by_url else self._replies.pop(0)


def reply(status: int = 200, body: Any = None, **headers: str) -> HttpReply:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return HttpReply(status, named, body if isinstance(body, bytes) else json.dumps(body).encode())


def completion(words: Any) -> HttpReply:
    """Return a Chat Completions response."""
    return reply(body={"choices": [{"index": 0, "message": {"role": "assistant", "content": words}}]})


def message(*texts: str) -> HttpReply:
    """Return a Messages response."""
    return reply(body={"type": "message", "content": [{"type": "text", "text": text} for text in texts]})
