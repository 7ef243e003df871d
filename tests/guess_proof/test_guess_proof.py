"""A picture that a tool has brought is seen: its four quadrants are named and its code is read, on every wire."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.guess_proof.shapes import CHAT, CHAT_MOVED, GEMINI, MESSAGES, RESPONSES, Shape, ask, words
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_card, some_code, some_colours
from tests.scripted.provider import Provider

SHAPES: Mapping[tuple[str, str], Mapping[str, Shape]] = {
    ("openai_chat", "some-model"): {**CHAT, **CHAT_MOVED},
    ("anthropic", "some-model"): MESSAGES,
    ("openai_responses", "some-model"): RESPONSES,
    ("gemini", "gemini-2.5-pro"): GEMINI,
    ("gemini", "gemini-3-pro-preview"): GEMINI,
}
_NAMED = [
    (name, pytest.param(wire, model, shape, id=f"{model if wire == 'gemini' else wire}: {name}"))
    for (wire, model), shapes in SHAPES.items()
    for name, shape in shapes.items()
]
EVERY_SHAPE = pytest.mark.parametrize(("wire", "model", "shape"), [param for _, param in _NAMED])
SOME_SHAPES = pytest.mark.parametrize(
    ("wire", "model", "shape"),
    [param for name, param in _NAMED if name in {"parts", "image alone", "nested", "mcp"}],
)
BY_HAND = pytest.mark.parametrize(
    ("wire", "model", "shape"),
    [pytest.param("openai_chat", "some-model", shape, id=name) for name, shape in CHAT.items()],
)


def picture(seed: int, **more: Any) -> tuple[bytes, str]:
    """A picture, and what only somebody who sees it says."""
    colours, code = some_colours(seed), some_code(seed)
    return paint_card(colours, code, **more), f"{describe_quadrants(colours)}\ncode: {code}"


FIRST, SECOND = picture(11), picture(12)


@requirement("lower.perceived", "lower.by_wire", "lower.guess_proof")
@EVERY_SHAPE
def test_images_from_tools_are_seen(tmp_path: Path, wire: str, model: str, shape: Shape) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        for stream in (False, True):
            got = ask(proxy.url, wire, shape([FIRST[0], SECOND[0]]), model=model, stream=stream)
            said = words(wire, got, stream=stream)
            assert said.count("image ") == 2, said
            assert {FIRST[1], SECOND[1]} == {one.split(": ", 1)[1].strip() for one in said.split("image ")[1:]}
        assert len(provider.exchanges) == 2, "nothing had to be repaired"


@requirement("lower.guess_proof")
@BY_HAND
def test_images_from_tools_are_not_seen_without_sightline(wire: str, model: str, shape: Shape) -> None:
    """The control: were it seen here, the test above would show nothing."""
    with Provider() as provider:
        got = ask(provider.url, wire, shape([FIRST[0], SECOND[0]]), model=model)
    if got.status == 200:
        assert words(wire, got) == "I see no image."
    else:
        assert got.status == 400
        assert b"contains an image URL" in got.body


# Several large images

LARGE = 6  # more than 32 MB of base64 together, which no provider of the Messages wire takes


@pytest.fixture(scope="module")
def large() -> list[tuple[bytes, str]]:
    return [picture(seed, size=(1680, 1260), grain=24) for seed in range(20, 20 + LARGE)]


CONTEXT = 200_000  # tokens


@requirement("lower.no_overflow")
@pytest.mark.parametrize(
    ("wire", "model", "shape", "upstream"),
    [
        ("openai_chat", "some-model", CHAT["media"], "{}"),
        ("anthropic", "claude-sonnet-5-5", MESSAGES["image alone"], "anthropic={}"),
        ("openai_responses", "some-model", RESPONSES["object"], "{}"),
        ("gemini", "gemini-2.5-pro", GEMINI["nested"], "{}"),
    ],
    ids=["openai_chat", "anthropic", "openai_responses", "gemini"],
)
def test_a_turn_with_several_large_images_does_not_overflow(
    tmp_path: Path, large: list[tuple[bytes, str]], wire: str, model: str, shape: Shape, upstream: str
) -> None:
    with Provider(context=CONTEXT) as provider, sightline(tmp_path, upstream.format(provider.url)) as proxy:
        said = words(wire, ask(proxy.url, wire, shape([data for data, _ in large]), model=model))
        assert len(provider.exchanges) == 1
    assert all(expected in said for _, expected in large)


@requirement("lower.no_overflow")
def test_the_context_overflows_without_sightline(large: list[tuple[bytes, str]]) -> None:
    with Provider(context=CONTEXT) as provider:
        got = ask(provider.url, "openai_chat", CHAT["media"]([data for data, _ in large]))
    assert (got.status, b"maximum context length" in got.body) == (400, True)


# From the record

VIEW = "import json, sys, sightline; print(json.dumps(sightline.view(sys.argv[1]).as_dict()))"
RECALL = """
import json, sys
from sightline.api import recall
print(json.dumps(recall(json.loads(sys.argv[1])).content()))
"""


def by_another_process(home: Path, folder: Path, program: str, argument: str) -> Any:
    environment = {**os.environ, "SIGHTLINE_HOME": str(home)}
    ended = subprocess.run(
        [sys.executable, "-c", program, argument],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    return json.loads(ended.stdout)


@requirement("lower.rebuilt", "lower.guess_proof")
@SOME_SHAPES
def test_a_stored_view_is_lowered_the_same_after_a_restart(
    tmp_path: Path, kept_view: tuple[Path, list[bytes]], wire: str, model: str, shape: Shape
) -> None:
    home, recalled = kept_view
    sent, said = [], []
    with Provider() as provider:
        for pixels in recalled:  # each from a process of its own, before a proxy of its own
            with sightline(home, provider.url) as proxy:
                said.append(words(wire, ask(proxy.url, wire, shape([pixels]), model=model)))
            sent.append(provider.exchanges[-1].body)
    assert said[0] == said[1] == f"image 1 of 1: {FIRST[1]}"
    assert sent[0] == sent[1]


@pytest.fixture(scope="module")
def kept_view(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """A home whose record keeps a view, and its pixels as two processes recall them; the source is gone."""
    from base64 import b64decode

    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    (folder / "shot.png").write_bytes(FIRST[0])
    result = by_another_process(home, folder, VIEW, "shot.png")
    (folder / "shot.png").unlink()
    contents = [by_another_process(home, folder, RECALL, json.dumps(result)) for _ in range(2)]
    assert contents[0] == contents[1]
    return home, [b64decode(content[-1]["data"]) for content in contents]
