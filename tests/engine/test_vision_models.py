"""Images for vision models: fitted, or left exactly as they are."""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image as Pillow

from sightline.model.profile import ImageLimits, Lesson, RequestOrigin, Upstream
from sightline.model.scene import Json, Refitted, Shown
from sightline.wire import ANTHROPIC, OPENAI_CHAT, Wire
from tests.engine.parts import SEEING, ScriptedSeer, Stage, asking, content, encoded, picture, sent, visitor
from tests.requirements import requirement
from tests.wire.bodies import body, text, user


@requirement("law.1", "body.same_object")
@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI_CHAT])
async def test_a_request_without_images_is_the_same_object(wire: Wire) -> None:
    raw = json.dumps(body(user(text("hello")))).encode()
    stage = Stage()
    reading = stage.engine.read(raw, wire)
    assert reading is not None
    prepared = await stage.engine.prepare(reading, visitor(wire=wire))
    assert prepared.body[0] is raw
    assert not prepared.edits


@requirement("body.unreadable")
@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b"hello"])
def test_an_unreadable_body_is_none(raw: bytes) -> None:
    assert Stage().engine.read(raw, ANTHROPIC) is None


@requirement("fit.mime")
async def test_a_wrong_media_type_is_corrected() -> None:
    prepared = await Stage().prepare(asking(picture(kind="webp"), model=SEEING, mime="image/png"))
    assert content(prepared)[0]["source"] == {
        "type": "base64",
        "media_type": "image/webp",
        "data": encoded(picture(kind="webp")),
    }
    assert [(line.fate, "image/webp" in line.why) for line in prepared.receipt.sights] == [("shown", True)]


@requirement("recover.limits", "fit.deterministic")
async def test_an_image_is_fitted_to_a_learnt_limit_in_the_same_way_each_time() -> None:
    stage = Stage()
    stage.record.policy.keep_lesson("up", SEEING, limited(100), days=1)
    first = await stage.prepare(asking(picture(), model=SEEING))
    (sight,) = first.scene.sights
    assert isinstance(sight.fate, Refitted)
    assert sight.fate.image.size.edge == 100
    other = Stage(record=stage.record)
    assert sent(await other.prepare(asking(picture(), model=SEEING))) == sent(first)


def limited(edge: int) -> Lesson:
    return Lesson(limits=ImageLimits(edge=edge), why="it said so")


async def test_patience_does_not_limit_fitting() -> None:
    stage = Stage(ScriptedSeer(), patience=0.0)
    stage.record.policy.keep_lesson("up", SEEING, limited(100), days=1)
    prepared = await stage.prepare(asking(picture(), picture(1), model=SEEING))
    assert [type(sight.fate) for sight in prepared.scene.sights] == [Refitted, Refitted]


@requirement("fit.only_needed")
async def test_only_an_image_over_the_limit_is_changed() -> None:
    stage = Stage()
    stage.record.policy.keep_lesson("up", SEEING, limited(330), days=1)
    prepared = await stage.prepare(asking(picture(), picture(1, (640, 480)), picture(2), model=SEEING))
    assert [type(sight.fate) for sight in prepared.scene.sights] == [Shown, Refitted, Shown]
    assert [each["source"]["data"] for each in content(prepared)[:3:2]] == [encoded(picture()), encoded(picture(2))]


@requirement("fit.animation")
@pytest.mark.parametrize(("frames", "changed"), [(1, False), (3, True)])
async def test_an_animation_becomes_its_first_frame_for_models_without_animations(frames: int, changed: bool) -> None:
    pictures = [Pillow.new("RGB", (40, 30), (90 * n, 0, 0)) for n in range(frames)]
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:])
    stage = Stage()
    before = stage.read(asking(file.getvalue(), model="gpt-6", wire=OPENAI_CHAT, mime="image/gif"), OPENAI_CHAT)
    who = RequestOrigin(Upstream("openai", {"openai_chat": "http://localhost:1"}, preset="openai"), "openai_chat", "x")
    prepared = await stage.engine.prepare(before, who)
    (sight,) = prepared.scene.sights
    assert isinstance(sight.fate, Refitted if changed else Shown)
    assert ["frame" in line.why for line in prepared.receipt.sights] == [changed]


@requirement("receipts", "lower.foreign")
@pytest.mark.parametrize("is_result", [False, True])
async def test_a_converted_block_is_not_called_unchanged(is_result: bool) -> None:
    foreign: Json = {"type": "image", "data": encoded(picture()), "mimeType": "image/png"}
    own = content(await Stage().prepare(asking(picture(), model=SEEING)))[0]
    for block, is_converted in ((foreign, True), (own, False)):
        parts: list[Json] = [text("look"), block]
        result: Json = {"type": "tool_result", "tool_use_id": "c1", "content": parts}
        request = {**body(user(*([result] if is_result else parts))), "model": SEEING}
        prepared = await Stage().prepare(request)
        assert [bool(line.why) for line in prepared.receipt.sights] == [is_converted]
        assert prepared.receipt.unchanged_count == (0 if is_converted else 1)
