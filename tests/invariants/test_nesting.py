"""Deeply nested bodies are prepared or forwarded unchanged. They are never an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.api import Failure
from sightline.model.labels import SHOWN_BELOW
from tests.engine.parts import encoded, picture
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline as running
from tests.requirements import requirement
from tests.scripted.replies import whole
from tests.scripted.server import Exchange, Reply, Server
from tests.wire.bodies import body, calling, part, text, tool
from tests.wire.test_json_document import lifted

PATH = "/v1/chat/completions"
DEPTHS = (100, 240, 260, 900, 980, 990, 995, 1000, 1005, 1010, 1020)
Made = Callable[[int], bytes]
HELD = part(encoded(picture(3)))


def beside(depth: int) -> bytes:
    """Return a body with deep data beside the conversation."""
    return nested(body(calling("c1"), tool("c1", text("here"), HELD), metadata="DEEP"), depth)


def inside(depth: int) -> bytes:
    """Return a body with deep data in the part that moves."""
    return nested(body(calling("c1"), tool("c1", text("here"), {**HELD, "note": "DEEP"})), depth)


def nested(given: Any, depth: int) -> bytes:
    return json.dumps(given).replace('"DEEP"', "[" * depth + "]" * depth).encode()


@requirement("law.9", "body.unreadable")
@pytest.mark.parametrize("made", [beside, inside])
def test_the_proxy_forwards_a_body_of_any_depth(made: Made, tmp_path: Path) -> None:
    came: list[bytes] = []

    def answer(asked: Exchange) -> Reply:
        came.append(asked.body)
        return whole({"ok": True})

    with Server(answer, lambda: False) as upstream, running(tmp_path, f"http://127.0.0.1:{upstream.port}") as proxy:
        sent = [made(depth) for depth in DEPTHS]
        assert [exchange(proxy.url, PATH, each).status for each in sent] == [200] * len(sent)
    assert all(got == each or SHOWN_BELOW.encode() in got for got, each in zip(came, sent, strict=True))


@requirement("law.9", "library.prepare")
@pytest.mark.parametrize("made", [beside, inside])
def test_the_library_returns_a_body_of_any_depth(made: Made) -> None:
    for depth in DEPTHS:
        sent = made(depth)
        done = sightline.prepare(sent, wire="openai_chat", model="gpt-6")
        assert not isinstance(done, Failure)
        assert done.changed is (SHOWN_BELOW.encode() in done.body)
        assert done.changed or done.body is sent


@requirement("law.4")
def test_deep_nesting_beside_an_image_does_not_prevent_preparing() -> None:
    for depth in DEPTHS:
        sent = beside(depth)
        assert lifted(sent).tree is not None
        done = sightline.prepare(sent, wire="openai_chat", model="gpt-6")
        assert not isinstance(done, Failure)
        assert done.changed, depth
