"""Turns with new images go to a model of their own, on every wire."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sightline.engine import PreparedRequest
from sightline.model.scene import Shown, Told
from sightline.wire import WIRES, Wire
from tests.engine.parts import ScriptedSeer, Stage, encoded, picture, sent, visitor
from tests.proxy.four_wires import answered, asked, path, request, shows
from tests.requirements import requirement

OLD, NEW = picture(91), picture(92)
FOUR = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


async def prepared(stage: Stage, wire: Wire, *said: Any, model: str = "main", **more: Any) -> PreparedRequest:
    reading = stage.read({**request(wire.name, model, said), **more}, wire)
    endpoint = wire.match_path(path(wire.name, model))
    assert endpoint is not None
    named = replace(reading, scene=endpoint.apply_to(reading.scene))
    return await stage.engine.prepare(named, visitor(wire=wire))


def written(done: PreparedRequest) -> bytes:
    return b"".join(done.body)


def stage(image_model: str = "eyes", mode: str = "route", **more: Any) -> Stage:
    return Stage(ScriptedSeer(["a red square"]), mode=mode, image_model=image_model, **more)


@FOUR
@requirement("mode.route", "mode.route.reasoning")
async def test_a_conversation_between_two_models(wire: Wire) -> None:
    name, here = wire.name, stage()
    talk = [asked(name, "Look.", OLD)]
    first = await prepared(here, wire, *talk)
    talk += [*answered(name, "Red.", "SEAL-EYES"), asked(name, "Thanks.")]
    second = await prepared(here, wire, *talk)
    talk += [*answered(name, "Welcome.", "SEAL-MAIN"), asked(name, "And this?", NEW)]
    third = await prepared(here, wire, *talk)

    assert [each.scene.model for each in (first, second, third)] == ["eyes", "main", "eyes"]
    url = f"http://up{path(name, 'main')}"
    assert [each.build_url(url) for each in (first, second, third)] == [
        f"http://up{path(name, model)}" for model in ("eyes", "main", "eyes")
    ]
    if name != "gemini":
        assert [sent(each)["model"] for each in (first, second, third)] == ["eyes", "main", "eyes"]
    bodies = [written(each) for each in (first, second, third)]
    assert [shows(body, OLD) for body in bodies] == [True, False, False], "those of earlier turns are told"
    assert [b"a red square" in body for body in bodies] == [False, True, True]
    assert [shows(body, NEW) for body in bodies] == [False, False, True]
    assert [b"SEAL-EYES" in body for body in bodies] == [False, False, True]
    assert [b"SEAL-MAIN" in body for body in bodies] == [False, False, False]
    assert ["main" in note for note in first.receipt.notes] == [True]
    assert second.receipt.notes == ()


@FOUR
@requirement("mode.route")
async def test_requests_that_cannot_be_routed_are_not(wire: Wire) -> None:
    talk = [asked(wire.name, "Look.", OLD), *answered(wire.name, "Red.", "SEAL"), asked(wire.name, "And?", NEW)]
    for here, model in (
        (stage(""), "main"),  # nobody is named
        (stage("main"), "main"),  # the client has named the same one
        (stage("blind-2"), "main"),  # the one that is named cannot see
        (stage(mode="fallback"), "main"),
    ):
        done = await prepared(here, wire, *talk, model=model)
        assert done.scene.model == model
        assert not done.edits, "the same bytes"


@requirement("mode.route")
async def test_a_conversation_stored_by_the_provider_keeps_its_model() -> None:
    wire = next(each for each in WIRES if each.name == "openai_responses")
    said = [asked(wire.name, "Look.", NEW)]
    assert (await prepared(stage(), wire, *said, previous_response_id="resp_1")).scene.model == "main"
    assert (await prepared(stage(), wire, *said)).scene.model == "eyes"


@requirement("mode.route")
async def test_text_that_only_looks_like_an_image_is_not_routed() -> None:
    wire = WIRES[0]
    use = {"type": "tool_use", "id": "t", "name": "fetch", "input": {}}
    for data, model in (("iVBORw0KGgo" + "A" * 400, "main"), (encoded(NEW), "eyes")):
        held = json.dumps([{"type": "image", "data": data, "mimeType": "image/png"}])
        result = {"type": "tool_result", "tool_use_id": "t", "content": held}
        said = [asked(wire.name, "Go."), {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        assert (await prepared(stage(), wire, *said)).scene.model == model


@requirement("mode.route")
async def test_the_image_model_may_have_its_upstreams_name_in_front() -> None:
    wire = WIRES[0]
    assert sent(await prepared(stage("up/eyes"), wire, asked(wire.name, "Look.", NEW)))["model"] == "eyes"


@requirement("mode.route", "recover.blind")
async def test_an_image_model_that_turns_out_blind_is_not_chosen_again() -> None:
    here, wire = stage(), WIRES[0]
    said = asked(wire.name, "Look.", NEW)
    before = await prepared(here, wire, said)
    after = await here.repair(before, 400, "messages.0.content.0: this model does not support image input")
    assert after is not None
    assert [type(sight.fate) for sight in after.scene.sights] == [Told]
    assert sent(after)["model"] == "eyes"
    await here.engine.confirm_repair(after, visitor(wire=wire))
    again = await prepared(here, wire, said)
    assert again.scene.model == "main"
    assert [type(sight.fate) for sight in again.scene.sights] == [Shown]


@requirement("refer.kept", "recover.named_image")
async def test_an_image_that_a_rejection_names_is_found_despite_references() -> None:
    here, wire = stage(mode="fallback", references=True), WIRES[0]
    before = await prepared(here, wire, asked(wire.name, "Look.", OLD, NEW))
    assert (before.receipt.unchanged_count, before.receipt.changes, before.receipt.notes) == (2, (), ())
    assert [part["type"] for part in sent(before)["messages"][0]["content"]] == [
        "text",
        "image",
        "text",
        "image",
        "text",
    ]
    after = await here.repair(before, 400, "messages.0.content.3.image.source.base64: Could not process image")
    assert after is not None
    assert shows(written(after), OLD)
    assert not shows(written(after), NEW)
    assert json.loads(written(after))
