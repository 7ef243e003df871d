"""A model on loopback that says its lines one after the other, on the wire of Chat Completions, and a file to ask."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.proxy.running_proxy import NOTHING_ON_LOOPBACK
from tests.scripted.server import Exchange, Reply, Server

PDF = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n"
MP4 = b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2" + b"\x00" * 64

# What the user says of the models of these tests; of every other one nobody knows anything.
CAN = {
    "eye": {"vision": True},
    "reader": {"vision": False, "pdf": True},
    "watcher": {"vision": True, "video": True},
    "stone": {"vision": False, "pdf": False, "video": False},
}


@dataclass
class Model:
    """Its lines: words, or a status with the body of an error."""

    url: str
    lines: Sequence[str | tuple[int, Any]]
    asked: list[dict[str, Any]] = field(default_factory=list)
    tokens: tuple[int, int] = (1287, 48)

    def answer(self, exchange: Exchange) -> Reply:
        if exchange.path == "/props":  # as llama.cpp says of itself that it sees
            return _reply(200, {"modalities": {"vision": True}, "model_alias": "found"})
        if not exchange.body:  # somebody asks what models there are
            return _reply(404, {})
        self.asked.append(json.loads(exchange.body))
        line = self.lines[min(len(self.asked), len(self.lines)) - 1]
        status, body = (200, self._said(line)) if isinstance(line, str) else line
        return _reply(status, body)

    def _said(self, line: str) -> dict[str, Any]:
        usage = dict(zip(("prompt_tokens", "completion_tokens"), self.tokens, strict=True))
        message = {"role": "assistant", "content": line}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}

    def content(self, number: int = -1) -> list[dict[str, Any]]:
        """The parts of the user's message in one of the requests."""
        found: list[dict[str, Any]] = self.asked[number]["messages"][-1]["content"]
        return found

    def parts(self, kind: str, number: int = -1) -> list[dict[str, Any]]:
        return [part for part in self.content(number) if part["type"] == kind]


def _reply(status: int, body: Any) -> Reply:
    return Reply(status, (("content-type", "application/json"), ("retry-after", "0")), (json.dumps(body).encode(),))


@contextmanager
def saying(*lines: str | tuple[int, Any]) -> Iterator[Model]:
    model = Model("", lines)
    with Server(model.answer, lambda: False) as server:
        model.url = f"http://127.0.0.1:{server.port}/v1"
        yield model


def settle(monkeypatch: pytest.MonkeyPatch, model: Model | None = None, **more: str) -> None:
    """Settings in which `here` is the model's provider, `eye` is the usual one, and nobody else is on the machine."""
    upstreams = json.loads(NOTHING_ON_LOOPBACK)
    if model is not None:
        upstreams["here"] = {"baseUrl": {"openai_chat": model.url}}
    given = {
        "SIGHTLINE_UPSTREAMS": json.dumps(upstreams),
        "SIGHTLINE_MODELS": json.dumps(CAN),
        "SIGHTLINE_AUXILIARY_VISION_MODEL": "here/eye" if model is not None else "",
        **more,
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
