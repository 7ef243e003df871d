"""After a rejection: one repaired request, and a lesson that is kept once it was accepted."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from PIL import Image as Pillow

from sightline.engine import PreparedRequest
from sightline.model.profile import Lesson, Profile
from sightline.model.records import LedgerEntry
from sightline.model.scene import Refitted, Refused, Shown, Told
from sightline.profiles.rejections import REJECTION_REASONS
from sightline.store import open_record
from sightline.wire import OPENAI_CHAT
from tests.engine.parts import SEEING, ScriptedSeer, Stage, asking, content, encoded, picture, sent, visitor, words
from tests.requirements import requirement
from tests.scripted.pictures import truncated_jpeg, undecodable_png


def fates(prepared: PreparedRequest | None) -> list[type]:
    assert prepared is not None
    return [type(sight.fate) for sight in prepared.scene.sights]


async def rejected(
    stage: Stage, status: int, said: str, *pictures: bytes, model: str = SEEING
) -> PreparedRequest | None:
    before = await stage.prepare(asking(*pictures, model=model))
    return await stage.repair(before, status, said)


async def again(stage: Stage, *pictures: bytes, model: str = SEEING) -> PreparedRequest:
    """Prepare the next request."""
    return await stage.prepare(asking(*pictures, model=model))


BLINDNESS = [
    (400, "Model do not support image input"),
    (404, "No endpoints found that support image input"),
    (400, "Failed to deserialize the JSON body: unknown variant `image_url`, expected `text`"),
    (500, "image input is not supported by this server"),
    (400, "Image input modality is not enabled for models/gemma-3-1b-it"),  # Google
    (400, "The model is not a VLM (Vision Language Model). Please use text-only prompts."),  # SiliconFlow
    (400, "messages.content.type 参数非法，取值范围 ['text']"),  # GLM
    (500, "this model is missing data required for image input"),  # Ollama
    (400, "<400> InternalError.Algo.InvalidParameter: Unexpected item type in content."),  # DashScope
    (400, "'messages.0' : for 'role:user' [('messages.0.content' : value must be a string)]"),  # Groq
    (400, "This model doesn't support the image field for user messages."),  # Bedrock
    (422, "unknown variant `input_image`, expected `input_text`"),  # gateways that imitate Responses
]


def reading(data: bytes) -> dict[str, Any]:
    """Return a conversation on the Messages wire with an image in a tool result."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/a.png"}}
    body = asking(data, model=SEEING)
    (shown,) = (block for block in body["messages"][0]["content"] if block["type"] == "image")
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [shown]}
    turns = [{"role": "user", "content": "look"}, {"role": "assistant", "content": [use]}]
    return {**body, "messages": [*turns, {"role": "user", "content": [result]}]}


@requirement("recover.tool_images")
async def test_a_rejected_tool_image_is_hoisted_and_the_lesson_is_kept() -> None:
    said = "messages.2.content: Input should be a valid string"
    stage = Stage(ScriptedSeer(["Four colours."]))
    before = await stage.prepare(reading(picture()))
    after = await stage.repair(before, 422, said)
    assert fates(after) == [Shown]
    assert after is not None
    (result, label, image) = sent(after)["messages"][2]["content"]
    assert (result["type"], label["type"], image["type"]) == ("tool_result", "text", "image")
    await stage.engine.confirm_repair(after, visitor())
    assert sent(await stage.prepare(reading(picture()))) == sent(after)


async def test_images_are_described_if_hoisting_did_not_help() -> None:
    said = "messages.2.content: Input should be a valid string"
    stage = Stage(ScriptedSeer(["Four colours."]))
    for fate in (Shown, Told):
        before = await stage.prepare(reading(picture()))
        assert fates(await stage.repair(before, 422, said)) == [fate]


@requirement("recover.blind", "recover.one_model", "recover.receipt", "recover.accepted")
@pytest.mark.parametrize(("status", "said"), BLINDNESS)
async def test_a_model_that_turns_out_blind_gets_descriptions_from_then_on(status: int, said: str) -> None:
    stage = Stage(ScriptedSeer(["Four colours."]))
    after = await rejected(stage, status, said, picture())
    assert fates(after) == [Told]
    assert after is not None
    assert ("up/eye" in after.receipt.changes[0], len(after.receipt.notes)) == (True, 1)
    assert after.receipt.notes[0].endswith(f" {status} ({REJECTION_REASONS['blind']})")
    assert fates(await again(stage, picture())) == [Shown]  # not yet: the repair might have been wrong
    await stage.engine.confirm_repair(after, visitor())
    assert sent(await again(stage, picture())) == sent(after)
    assert fates(await again(Stage(ScriptedSeer(), record=stage.record), picture())) == [Told]
    assert fates(await again(stage, picture(), model="another")) == [Shown]
    lesson = stage.record.policy.read_lesson("up", SEEING)
    assert lesson is not None
    assert lesson.blind


@requirement("recover.limits")
@pytest.mark.parametrize(
    ("said", "edges"),
    [
        ("messages.0.content.0: image dimensions exceed max allowed size: 200 pixels", [200, 64]),
        ("messages.0.content.0: image exceeds 5 MB maximum: 9999 bytes > 900 bytes", None),
        ("Your request was too large: image limit is 1 KB per image, at most 1 KB", None),
    ],
)
async def test_an_image_over_a_limit_is_refitted_and_the_limit_is_kept(said: str, edges: list[int] | None) -> None:
    stage = Stage()
    after = await rejected(stage, 400, said, picture(), picture(1, (64, 64)))
    assert fates(after) == [Refitted, Shown]
    assert after is not None
    await stage.engine.confirm_repair(after, visitor())
    following = await again(stage, picture(), picture(1, (64, 64)))
    assert content(following) == content(after)
    if edges:
        fate = following.scene.sights[0].fate
        assert isinstance(fate, Refitted)
        assert fate.image.size.edge == edges[0]
        assert all(fact in after.receipt.sights[0].why for fact in ("320x240", "200 px"))


def noise(size: tuple[int, int] = (200, 160)) -> bytes:
    """Return a PNG that can't be compressed, of about as many bytes as it has pixels."""
    file = io.BytesIO()
    Pillow.frombytes("L", size, Random(0).randbytes(size[0] * size[1])).save(file, "png")
    return file.getvalue()


def with_target(profile: Profile) -> Profile:
    return replace(profile, limits=replace(profile.limits, refit_bytes=8_000))


@requirement("recover.unnamed_limit")
@pytest.mark.parametrize("said", ["Image too large", "image file is too large", "Payload too large"])
async def test_images_are_reduced_to_the_target_if_no_limit_is_named(said: str) -> None:
    stage = Stage()
    pictures = [noise(), noise((160, 120)), picture(1, (64, 64))]
    before = await stage.engine.prepare(
        stage.read(asking(*pictures, model=SEEING)), visitor(), adjust_profile=with_target
    )
    after = await stage.repair(before, 400, said)
    assert fates(after) == [Refitted, Refitted, Shown]
    assert after is not None
    assert all(len(each["source"]["data"]) <= 8_000 for each in content(after) if each["type"] == "image")


@requirement("recover.unnamed_limit")
async def test_the_lesson_of_an_unnamed_limit_is_the_size_that_was_rejected() -> None:
    stage = Stage()
    before = await stage.engine.prepare(
        stage.read(asking(noise(), model=SEEING)), visitor(), adjust_profile=with_target
    )
    after = await stage.repair(before, 400, "Image too large")
    assert after is not None
    await stage.engine.confirm_repair(after, visitor())
    lesson = stage.record.policy.read_lesson("up", SEEING)
    assert lesson is not None
    assert (lesson.limits.encoded_bytes, lesson.limits.refit_bytes) == (len(encoded(noise())) - 1, 8_000)
    following = await again(stage, noise(), noise((160, 120)))
    assert fates(following) == [Refitted, Shown], "a smaller image was never rejected"
    assert content(following)[0] == content(after)[0]


@requirement("recover.unnamed_limit")
async def test_an_image_of_the_target_size_that_is_still_too_large_is_described() -> None:
    stage = Stage(ScriptedSeer(["Four colours."]))
    after = await rejected(stage, 400, "Image too large", picture())
    assert fates(after) == [Told]
    assert after is not None
    await stage.engine.confirm_repair(after, visitor())
    assert stage.record.policy.list_lessons() == ()
    wide = await rejected(stage, 400, "Image too large", picture(2, (2400, 16)))
    assert fates(wide) == [Refitted], "its sides are reduced first"
    assert await rejected(stage, 413, "Payload too large", picture()) is None, "small images are not the cause"


@requirement("recover.limits")
async def test_the_oldest_of_too_many_images_are_left_out() -> None:
    stage = Stage()
    said = "request contains 3 images, exceeding the maximum of 2 allowed per request"
    after = await rejected(stage, 400, said, *(picture(seed) for seed in range(3)))
    assert fates(after) == [Refused, Shown, Shown]


@requirement("recover.limits")
async def test_two_lessons_are_combined() -> None:
    stage = Stage()
    pictures = [picture(seed) for seed in range(3)]
    for said in (
        "image dimensions exceed max allowed size: 200 pixels",
        "request contains 3 images, exceeding the maximum of 2 allowed per request",
    ):
        after = await rejected(stage, 400, said, *pictures)
        assert after is not None
        await stage.engine.confirm_repair(after, visitor())
    assert fates(await again(stage, *pictures)) == [Refused, Refitted, Refitted]


async def test_an_unsupported_format_is_converted() -> None:
    stage = Stage()
    webp = picture(kind="webp")
    said = "Input should be 'image/jpeg', 'image/png' or 'image/gif'"
    before = await stage.prepare(asking(webp, model=SEEING, mime="image/webp"))
    after = await stage.repair(before, 400, said)
    assert fates(after) == [Refitted]
    assert after is not None
    assert content(after)[0]["source"]["media_type"] in ("image/png", "image/jpeg")


@requirement("recover.poisoned", "recover.named_image")
@pytest.mark.parametrize("broken", [undecodable_png(), truncated_jpeg()], ids=["a png", "a jpeg"])
async def test_a_broken_image_in_the_history_is_removed_for_good(broken: bytes) -> None:
    stage = Stage()
    after = await rejected(stage, 400, "Could not process image", picture(), broken, picture(1))
    assert fates(after) == [Shown, Refused, Shown]
    assert after is not None
    await stage.engine.confirm_repair(after, visitor())
    assert fates(await again(stage, picture(), broken, picture(1), picture(2))) == [Shown, Refused, Shown, Shown]


@requirement("recover.poisoned", "recover.named_image")
async def test_only_the_image_that_the_upstream_named_is_left_out() -> None:
    stage = Stage()
    said = "messages.0.content.1.image.source.base64.data: Could not process image"
    after = await rejected(stage, 400, said, picture(), picture(1), picture(2))
    assert fates(after) == [Shown, Refused, Shown]
    assert after is not None
    await stage.engine.confirm_repair(after, visitor())
    assert fates(await again(stage, picture(), picture(1), picture(2))) == [Shown, Refused, Shown]
    other = visitor("somebody else")
    stage_other = await stage.engine.prepare(stage.read(asking(picture(1), model=SEEING)), other)
    assert fates(stage_other) == [Refused]  # the upstream is the same, whoever asks


@requirement("recover.poisoned", "recover.named_image")
async def test_images_that_all_decode_are_encoded_again() -> None:
    stage = Stage()
    after = await rejected(stage, 400, "Could not process image", deep_grey(), picture())
    assert fates(after) == [Refitted, Refitted]
    assert after is not None
    assert all(re.search(r"image/png \(.+\)", line.why) for line in after.receipt.sights), "with the reason"


def deep_grey() -> bytes:
    """Return a PNG with 16 bits per channel, which some providers can't read."""
    file = io.BytesIO()
    Pillow.new("I;16", (40, 30), 30000).save(file, "png")
    return file.getvalue()


async def test_places_in_a_rejection_are_ignored_on_chat() -> None:
    stage = Stage()
    request = asking(picture(), picture(1), model=SEEING, wire=OPENAI_CHAT)
    before = await stage.prepare(request, wire=OPENAI_CHAT)
    after = await stage.repair(before, 400, "messages.0.content.1: Could not process image")
    assert Refused not in fates(after)


@requirement("recover.not_images")
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "max_tokens: must be at least 1"),
        (401, "invalid x-api-key"),
        (403, "this model does not support image input"),
        (429, "rate limit: too many images"),
        (404, "No endpoints found matching your data policy (image input)"),
        (500, "internal error"),
        (529, "overloaded"),
    ],
)
async def test_a_rejection_for_another_cause_changes_nothing(status: int, said: str) -> None:
    stage = Stage(ScriptedSeer())
    assert await rejected(stage, status, said, picture()) is None
    assert stage.record.policy.list_lessons() == ()


async def test_a_request_that_cannot_be_repaired_is_not_sent_again() -> None:
    stage = Stage(ScriptedSeer())
    # Already told: there is nothing left to take out.
    assert await rejected(stage, 400, "this model does not support image input", picture(), model="blind-1") is None
    # Already within the limit that it names.
    said = "image dimensions exceed max allowed size: 8000 pixels"
    assert await rejected(stage, 400, said, picture()) is None


@requirement("recover.blind")
async def test_an_error_that_is_not_json_is_understood() -> None:
    stage = Stage(ScriptedSeer())
    before = await stage.prepare(asking(picture(), model=SEEING))
    after = await stage.engine.repair(before, visitor(), 400, "this model does not support image input")
    assert fates(after) == [Told]


async def test_a_repair_with_describing_switched_off_says_so() -> None:
    stage = Stage(ScriptedSeer(), mode="off")
    after = await rejected(stage, 400, "this model does not support image input", picture())
    assert fates(after) == [Refused]
    assert after is not None
    assert "switched off" in words(after)[0]


@requirement("recover.seven_days")
async def test_learnt_blindness_lasts_seven_days() -> None:
    today = [0.0]
    record = open_record(Path("unused"), kind="memory", now=lambda: today[0] * 86400)
    stage = Stage(ScriptedSeer(), record=record)
    after = await rejected(stage, 400, "this model does not support image input", picture())
    assert after is not None
    await stage.engine.confirm_repair(after, visitor())
    seen = []
    for today[0] in (0.1, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.9, 7.1):  # it is used every day, so the days count
        record.ledger.add_entry("", LedgerEntry("vision_proxy.command"))
        seen += fates(await again(stage, picture()))
    assert seen == [Told] * 8 + [Shown]


async def test_a_forgotten_lesson_no_longer_applies() -> None:
    stage = Stage(ScriptedSeer())
    stage.record.policy.keep_lesson("up", SEEING, Lesson(blind=True, why="it said so"), days=7)
    assert fates(await again(stage, picture())) == [Told]
    assert stage.record.policy.forget_lesson("up", SEEING)
    assert fates(await again(stage, picture())) == [Shown]
