"""How the images of one prompt are prepared, without a relay around it."""

from __future__ import annotations

import io
import json
import threading
from base64 import b64decode
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from sightline.api.body_preparation import find_runtime
from sightline.model.ports import Lease
from sightline.runtime import Runtime
from sightline.surfaces.acp.messages import SessionMessage
from sightline.surfaces.acp.negotiation import AcpAgent
from sightline.surfaces.acp.prompt_images import (
    PreparedPrompt,
    PromptContext,
    prepare_prompt,
    repair_prompt,
    run_command,
)
from sightline.vision.concurrency import name_look
from tests.acp.editing import blob, image, text
from tests.api.answering import Model, saying, settle
from tests.refusals import NOT_SHOWN
from tests.requirements import requirement
from tests.scripted.pictures import encode, paint_quadrants, some_colours

PICTURE, OTHER = paint_quadrants(some_colours(5)), paint_quadrants(some_colours(6))
SEEING = AcpAgent("a", takes_images=True)
BLIND = AcpAgent("b")
WEB = "https://images.invalid/a.png"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """Yield a model on loopback that describes images."""
    with saying("A door.") as eye:
        settle(monkeypatch, eye, SIGHTLINE_REFERENCES="off")
        yield eye


def build_line(*blocks: Mapping[str, Any]) -> bytes:
    params = {"sessionId": "s", "prompt": [*blocks]}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}).encode() + b"\n"


def start(agent: AcpAgent, *blocks: Mapping[str, Any], context: PromptContext) -> PreparedPrompt:
    started = prepare_prompt(build_line(*blocks), agent, context)
    assert isinstance(started, Future)
    prepared = started.result()
    assert prepared is not None
    return prepared


def read(prepared: PreparedPrompt) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = json.loads(prepared.line)["params"]["prompt"]
    return blocks


def prepare(
    agent: AcpAgent, *blocks: Mapping[str, Any], folder: Path | None = None, history: tuple[SessionMessage, ...] = ()
) -> list[dict[str, Any]]:
    folders = () if folder is None else (str(folder),)
    return read(start(agent, *blocks, context=PromptContext(folders, history=history)))


@requirement("acp.large")
@pytest.mark.parametrize("size", [(20_000, 100), (12_000, 11_000)], ids=["over 16,384 px", "over 120 MP"])
def test_an_image_of_any_size_that_can_be_shrunk_reaches_the_agent(model: Model, size: tuple[int, int]) -> None:
    (shown,) = prepare(SEEING, image(encode(Pillow.new("1", size, 1))))
    with Pillow.open(io.BytesIO(b64decode(shown["data"]))) as seen:
        assert max(seen.size) == 8000
    if size[1] == 100:
        (told,) = prepare(BLIND, image(encode(Pillow.new("1", size, 1))))
        assert "A door." in told["text"]


@requirement("acp.too_large")
def test_images_are_reduced_to_the_target_after_an_unclear_rejection(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGHTLINE_IMAGE_CAPABILITY", '{"downsampleTargetBytes": 6000}')
    before = start(SEEING, image(encode(Pillow.effect_noise((200, 160), 90))), context=PromptContext())
    assert before.repair_lesson is None
    after = repair_prompt(before, json.dumps({"error": {"message": "Image too large"}})).result()
    assert after is not None
    (shown,) = read(after)
    assert 0 < len(b64decode(shown["data"])) <= 6000


@requirement("acp.every_block")
@pytest.mark.parametrize("agent", [SEEING, BLIND], ids=["image: true", "image: false"])
def test_every_image_block_becomes_one_that_the_agent_takes(model: Model, tmp_path: Path, agent: AcpAgent) -> None:
    (tmp_path / "a.png").write_bytes(PICTURE)
    shown = image(PICTURE) if agent is SEEING else None
    link = {"type": "resource_link", "uri": WEB, "name": "a.png", "mimeType": "image/png"}
    given: list[tuple[dict[str, Any], dict[str, Any] | str | None]] = [
        ({"type": "image", "mimeType": "image/png", "data": ""}, NOT_SHOWN),
        ({"type": "image"}, NOT_SHOWN),
        ({"type": "image", "mimeType": "image/png", "data": None, "uri": ""}, NOT_SHOWN),
        ({"type": "image", "mimeType": "image/png", "data": "", "uri": WEB}, link),
        ({"type": "image", "mimeType": "image/png", "uri": WEB}, link),
        ({"type": "image", "uri": "zed:///x"}, {"type": "resource_link", "uri": "zed:///x", "name": "x"}),
        ({"type": "image", "data": "", "uri": (tmp_path / "a.png").as_uri()}, shown),
        ({"type": "image", "data": f"data:image/png;base64,{image(PICTURE)['data']}"}, shown),
        ({"type": "image", "data": "", "uri": f"data:image/png;base64,{image(PICTURE)['data']}"}, shown),
        ({"type": "resource", "resource": {"uri": "file:///a.png", "mimeType": "image/png", "blob": ""}}, NOT_SHOWN),
        (blob(b"no image"), NOT_SHOWN),
        (blob(PICTURE), blob(PICTURE) if agent is SEEING else None),
        (blob(PICTURE, "application/octet-stream"), blob(PICTURE) if agent is SEEING else None),
    ]
    for block, expected in given:
        first, found, last = prepare(agent, text("a"), block, text("b"), folder=tmp_path)
        assert (first, last) == (text("a"), text("b"))
        if expected is None or isinstance(expected, str):
            assert (found["type"], (expected or "A door.") in found["text"]) == ("text", True), block
        else:
            assert {**found, "uri": ""} == {**expected, "uri": ""} or found == expected, block
            assert found.get("uri") in (None, block.get("uri"), "file:///a.png")


@requirement("acp.every_block")
def test_an_embedded_image_becomes_an_image_for_an_agent_without_embedded_files(model: Model) -> None:
    agent = AcpAgent("a", takes_images=True, takes_embedded_files=False)
    (shown,) = prepare(agent, blob(PICTURE))
    assert shown == {**image(PICTURE), "uri": "file:///a.png"}
    words = {"type": "resource", "resource": {"uri": "file:///a.md", "text": "words"}}
    assert prepare(agent, words, blob(PICTURE))[0] == words


@requirement("command.list_own")
def test_an_image_that_comes_with_the_command_is_listed_and_described(model: Model) -> None:
    """Also if the user doesn't want references in prompts."""
    name = f"sha256:{sha256(PICTURE).hexdigest()}"
    line = build_line(text("/vision-proxy list"), image(PICTURE))
    listed, pasted = run_command("/vision-proxy list", line, PromptContext(), (), owner=True)
    assert (listed, pasted) == (f"[Vision Proxy] {name}", (name,))
    described, _ = run_command("/vision-proxy describe", line, PromptContext(), (), owner=True)
    assert described.endswith("A door.")
    named, _ = run_command("/vision-proxy list", line, PromptContext(), (name, f"{name} a.png"), owner=True)
    assert named.count(name) == 1


@requirement("command.serialised")
def test_a_describe_command_waits_for_a_description_of_its_image(model: Model) -> None:
    runtime = find_runtime()
    assert isinstance(runtime, Runtime)
    descriptions, scope = runtime.record.descriptions, runtime.record.compute_scope("")
    lease = Lease(scope, name_look([sha256(PICTURE).hexdigest()], "a question"), "another process")
    assert descriptions.claim_lease(lease, 0.0, 60) is None
    asked_before: list[int] = []

    def finish() -> None:
        asked_before.append(len(model.asked))
        descriptions.finish_lease(lease, None)

    command = "/vision-proxy describe --question=Which?"
    for picture in (OTHER, PICTURE):
        line = build_line(text(command), image(picture))
        if picture is PICTURE:
            threading.Timer(0.3, finish).start()
        said, _ = run_command(command, line, PromptContext(), (), owner=True)
        assert said.endswith("A door.")
    assert (asked_before, len(model.asked)) == ([1], 2)


def questions(model: Model) -> list[str]:
    """Return the text of each request that the model got."""
    return [json.dumps([each["messages"][0], *model.parts("text", i)]) for i, each in enumerate(model.asked)]


@requirement("acp.words")
def test_images_of_a_prompt_are_described_with_its_words_and_file_names(model: Model) -> None:
    pictures = [
        {**image(PICTURE), "uri": "file:///home/u/before.png"},
        {**image(OTHER), "uri": "file:///home/u/after.png"},
    ]
    before = (SessionMessage("user", "fix the login page"), SessionMessage("assistant", "Which part of it?"))
    told = prepare(BLIND, *pictures, text("What moved between these?"), history=before)
    (joint,) = [
        each for each in questions(model) if "What moved between these?" in each and "the filenames suggest" in each
    ]
    assert all(words in joint for words in ("before.png", "after.png", "Which part of it?"))
    assert 'filename="before.png"' in told[0]["text"]
    assert "vision_proxy_joint" in told[1]["text"]
    single = [each for each in questions(model) if each != joint]
    assert len(single) == 2
    assert all("fix the login page" in each and "What moved between these?" in each for each in single)


@requirement("acp.words")
def test_the_words_of_a_prompt_stay_out_if_the_user_says_so(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_INCLUDE_CONTEXT", "false")
    prepare(BLIND, image(PICTURE), image(OTHER), text("What moved?"))
    assert model.asked
    assert not any("What moved?" in each for each in questions(model))


@requirement("acp.turns")
def test_each_prompt_is_a_turn_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure holds for its turn. The same prompt later in the session is another turn."""
    with saying((500, {}), (500, {}), "A door.") as eye:
        settle(monkeypatch, eye)
        (failed,) = prepare(BLIND, image(PICTURE))
        (again,) = prepare(BLIND, image(PICTURE))
        assert failed == again
        assert NOT_SHOWN in failed["text"]
        (told,) = prepare(BLIND, image(PICTURE), history=(SessionMessage("user", ""),))
        assert "A door." in told["text"]
