"""The laws as a client sees them: one retry, one clear error, and never worse than without the proxy."""

from __future__ import annotations

import ast
import functools
import json
import re
from pathlib import Path
from typing import NoReturn

import pytest

import sightline as package
from sightline.engine import driver
from sightline.pixels.workers import WorkerPool
from tests.engine.parts import ScriptedSeer, Stage, asking, picture
from tests.proxy.clients import WIRES, pasted_message
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.faults import Fail
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider

COLOURS = some_colours(23)
PICTURE = paint_quadrants(COLOURS)
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
}
# What makes one agent or another repeat a request for minutes, or show a text of its own instead of ours.
_MOVING = re.compile(
    r"time[d ]*out|rate.?limit|overloaded|capacity|too many|unauthori[sz]ed|api key|context length", re.IGNORECASE
)


@pytest.mark.parametrize(
    "words",
    [
        "At least one of the image dimensions exceed max allowed size: 100 pixels",
        "Could not process image",
        "this model does not support image input",
    ],
)
@requirement("recover.one_retry", "recover.own_body")
def test_a_rejected_request_is_repaired_once_and_then_sent_as_it_came(tmp_path: Path, words: str) -> None:
    no = Fail(status=400, words=words)
    with Provider(faults=[no] * 5) as provider, sightline(tmp_path, provider.url) as proxy:
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": pasted_message(PICTURE)}).encode()
        answer = exchange(proxy.url, "/v1/messages", body)
        assert [one.body == body for one in provider.exchanges] == [False, False, True]
    assert (answer.status, words in answer.body.decode()) == (400, True)


@pytest.mark.parametrize(
    "words", ["Could not process image", "The image data you provided does not represent a valid image"]
)
@requirement("recover.blindness_words")
def test_other_rejections_do_not_teach_blindness(tmp_path: Path, words: str) -> None:
    with Provider(faults=[Fail(status=400, words=words)] * 2) as provider, sightline(tmp_path, provider.url) as proxy:
        for _ in range(2):
            body = json.dumps({"model": "m", "max_tokens": 9, "messages": pasted_message(PICTURE)}).encode()
            last = exchange(proxy.url, "/v1/messages", body)
        assert b"base64" in provider.exchanges[-1].body
    assert describe_quadrants(COLOURS) in last.body.decode()


@pytest.mark.parametrize("wire", PATHS)
@requirement("law.6", "fault.permanent", "fault.neutral_words")
def test_a_permanent_refusal_is_400_in_the_shape_of_the_wire(tmp_path: Path, wire: str) -> None:
    with sightline(tmp_path) as proxy:
        answer = exchange(proxy.url, f"/u/nowhere{PATHS[wire]}", b"{}")
    error = json.loads(answer.body)["error"]
    assert answer.status == 400
    assert (error.get("type"), error.get("status")) == {
        "openai_chat": ("invalid_request_error", None),
        "openai_responses": ("invalid_request_error", None),
        "anthropic": ("invalid_request_error", None),
        "gemini": (None, "INVALID_ARGUMENT"),
    }[wire]
    assert error["message"].startswith("Sightline: ")
    assert "'nowhere'" in error["message"]
    assert "anthropic, " in error["message"]
    assert not _MOVING.search(error["message"])


@functools.cache
def _refusals() -> list[tuple[str, ast.Call]]:
    """Return every place in the source where a refusal is made."""
    source = Path(package.__file__).parent
    files = [(file, file.read_text("utf-8")) for file in sorted(source.rglob("*.py"))]
    return [
        (f"{file.relative_to(source)}:{node.lineno}", node)
        for file, text in files
        if "Refusal(" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Refusal"
    ]


@requirement("law.6")
def test_every_refusal_in_the_source_has_a_remedy() -> None:
    found = _refusals()
    assert len(found) > 100
    without = [
        where for where, call in found if len(call.args) < 3 and "remedy" not in {each.arg for each in call.keywords}
    ]
    assert not without


@requirement("fault.neutral_words")
def test_no_error_wording_makes_a_client_retry() -> None:
    """In what the proxy itself says: its own door, and the way to an upstream."""
    moving = [
        where
        for where, call in _refusals()
        if where.startswith(("surfaces", "dial", "engine")) and _MOVING.search(ast.unparse(call))
    ]
    assert not moving


@pytest.mark.parametrize("wire", ["messages", "chat"])
@requirement("law.9", "engine.spare_whole")
def test_an_internal_error_forwards_the_request_unchanged(
    tmp_path: Path, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise RuntimeError("a fault in the passes")

    monkeypatch.setattr(driver, "decide", broken)
    _, pasted, _ = WIRES[wire]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": pasted(PICTURE)}).encode()
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        path = {"messages": "/v1/messages", "chat": "/v1/chat/completions"}[wire]
        assert exchange(proxy.url, path, body).status == 200
        assert provider.exchanges[0].body == body


@requirement("engine.once", "body.resent")
async def test_a_repeated_image_is_not_decoded_or_described_again() -> None:
    """The workers have ended: whoever wanted to open the image again would be refused."""
    workers = WorkerPool()
    seer = ScriptedSeer(("a red barn",))
    stage = Stage(seer, workers=workers)
    first = await stage.prepare(asking(picture(3)))
    workers.shut_down()
    again = await stage.prepare(asking(picture(3)))
    assert again.tree == first.tree
    assert len(seer.looks) == 1
