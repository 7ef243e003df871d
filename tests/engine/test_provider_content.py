"""Conversations that a provider stores, computer-use screenshots, and images that a provider generated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sightline.model.facts import Retention
from sightline.model.profile import RequestOrigin, Upstream
from sightline.model.scene import Refitted, Retired, Shown, Told
from sightline.store import open_record
from sightline.wire import GEMINI, OPENAI_RESPONSES, Wire
from tests.engine.parts import ScriptedSeer, Stage, encoded, picture, sent
from tests.requirements import requirement

PNG = encoded(picture())
LARGE = encoded(picture(size=(2600, 40)))
GROQ = Upstream("groq", {"openai_responses": "http://localhost:1/v1"}, "groq")  # takes five images in a request
XAI = Upstream("xai", {"openai_responses": "http://localhost:1/v1"}, "xai")  # takes no GIF
GIF = encoded(picture(kind="gif"))


def at(upstream: Upstream, wire: Wire = OPENAI_RESPONSES) -> RequestOrigin:
    return RequestOrigin(upstream, wire.name, "somebody")


def image(data: str = PNG) -> dict[str, Any]:
    return {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{data}"}


def read(path: Path, number: int) -> list[dict[str, Any]]:
    """Return a call that read a file, and its result."""
    file = path / f"{number}.png"
    file.write_bytes(picture(number))
    call = {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": f'{{"path": "{file}"}}'}
    return [
        call,
        {"type": "function_call_output", "call_id": f"c{number}", "output": [image(encoded(picture(number)))]},
    ]


SAID = {"role": "user", "content": "go on"}
HELD = [{"previous_response_id": "resp_1"}, {"conversation": {"id": "conv_1"}}]


@requirement("partial.previous")
@pytest.mark.parametrize("held", [{}, *HELD], ids=["whole", "previous_response_id", "conversation"])
async def test_nothing_retires_if_the_provider_stores_a_part(held: dict[str, Any], tmp_path: Path) -> None:
    items = [
        SAID,
        *(item for number in range(6) for item in read(tmp_path, number)),
        {**SAID, "role": "assistant"},
        SAID,
    ]
    stage = Stage(retention=Retention(kept_turns=0))
    prepared = await stage.prepare({"model": "seeing", "input": items, **held}, at(XAI), OPENAI_RESPONSES)
    fates = {type(sight.fate) for sight in prepared.scene.sights[:1]}
    assert fates == ({Shown} if held else {Retired})


@requirement("partial.previous")
@pytest.mark.parametrize("held", HELD, ids=["previous_response_id", "conversation"])
async def test_new_images_of_a_partly_stored_conversation_are_prepared(held: dict[str, Any]) -> None:
    seen: Any = {"model": "sure-1", "input": [{"role": "user", "content": [image(), image(GIF)]}], **held}
    first, second = (await Stage().prepare(seen, at(XAI), OPENAI_RESPONSES)).scene.sights
    assert (type(first.fate), type(second.fate)) == (Shown, Refitted)
    blind = await Stage(ScriptedSeer()).prepare({**seen, "model": "blind-1"}, at(XAI), OPENAI_RESPONSES)
    assert [type(sight.fate) for sight in blind.scene.sights] == [Told, Told]


@requirement("partial.previous")
@pytest.mark.parametrize("held", [{}, *HELD], ids=["whole", "previous_response_id", "conversation"])
async def test_the_number_of_stored_images_is_not_guessed(held: dict[str, Any]) -> None:
    body: Any = {
        "model": "sure-1",
        "input": [{"role": "user", "content": [image(encoded(picture(n))) for n in range(5)]}],
    }
    prepared = await Stage().prepare({**body, **held}, at(GROQ), OPENAI_RESPONSES)
    assert prepared.edits == [], "as many as are taken, and no more are known of"


@requirement("partial.previous")
@pytest.mark.parametrize("held", [{}, {"cachedContent": "cachedContents/1"}, {"cached_content": "cachedContents/1"}])
async def test_a_conversation_stored_by_google_counts_as_partial(held: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    file.write_bytes(picture())
    call = {"functionCall": {"name": "read_file", "id": "c1", "args": {"path": str(file)}}}
    inside = [{"inlineData": {"mimeType": "image/png", "data": PNG}}]
    answer = {"functionResponse": {"name": "read_file", "id": "c1", "response": {}, "parts": inside}}
    said = {"role": "user", "parts": [{"text": "go on"}]}
    contents = [said, {"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]}]
    contents += [{"role": "model", "parts": [{"text": "I see."}]}, said]
    stage = Stage(retention=Retention(kept_turns=0))
    prepared = await stage.prepare(
        {"model": "gemini-3-pro", "contents": contents, **held}, at(Upstream("up", {}), GEMINI), GEMINI
    )
    assert type(prepared.scene.sights[0].fate) is (Shown if held else Retired)


def screen(data: str) -> dict[str, Any]:
    shot = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{data}"}
    return {"model": "sure-1", "input": [
        SAID, {"type": "computer_call", "call_id": "c1", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "c1", "output": shot}, {**SAID, "role": "assistant"}, SAID,
    ]}  # fmt: skip


@requirement("fit.computer")
async def test_a_computer_use_screenshot_is_refitted_if_necessary() -> None:
    prepared = await Stage().prepare(screen(GIF), at(XAI), OPENAI_RESPONSES)
    (sight,) = prepared.scene.sights
    assert isinstance(sight.fate, Refitted)
    output = sent(prepared)["input"][2]["output"]
    assert output["type"] == "computer_screenshot"
    assert output["image_url"].startswith(f"data:{sight.fate.image.mime};base64,")


@requirement("fit.computer")
@pytest.mark.parametrize("model", ["sure-1", "blind-1"])
async def test_a_computer_use_screenshot_is_never_replaced(model: str, tmp_path: Path) -> None:
    broken = encoded(picture()[:40])
    lone = open_record(tmp_path / "record", kind="memory")
    for data in (PNG, broken):
        stage = Stage(ScriptedSeer(), record=lone, retention=Retention(kept_turns=0, includes_pasted=True))
        body = {**screen(data), "model": model, "tools": [{"type": "function", "name": "sightline_view_image"}]}
        assert (await stage.prepare(body, at(XAI), OPENAI_RESPONSES)).edits == []


@requirement("fit.generated")
@pytest.mark.parametrize("model", ["sure-1", "blind-1"])
async def test_an_image_that_the_provider_generated_is_not_touched(model: str) -> None:
    made = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": LARGE}
    items = [SAID, made, {**SAID, "role": "assistant"}, SAID]
    stage = Stage(ScriptedSeer(), retention=Retention(kept_turns=0, includes_pasted=True))
    prepared = await stage.prepare({"model": model, "input": items}, at(XAI), OPENAI_RESPONSES)
    assert (prepared.scene.sights, prepared.edits) == ((), [])
