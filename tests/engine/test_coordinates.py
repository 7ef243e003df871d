"""Coordinates in automatic descriptions: asked for in the format of the seer's family, and kept."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sightline.grounding import FORMATS, choose_format
from sightline.model.geometry import Size
from sightline.model.seer import SeerAnswer
from sightline.pixels.probe import probe
from sightline.store import open_record
from tests.engine.parts import ScriptedSeer, Stage, Talk, all_words, picture, sent
from tests.requirements import requirement

LARGE = picture(3, (3840, 2160))
QWEN, QWEN3 = "up/qwen2.5-vl-7b", "up/qwen3-vl-8b"
WORDS = "The dialog [658, 364, 987, 546] is open."
POINTED = '{"label": "The dialog", "box": [1920, 1080, 2880, 1620]}'


class Eye(ScriptedSeer):
    """A seer that mentions the first image if there are several."""

    async def ask(self, question: Any) -> Any:
        answer = await super().ask(question)
        assert isinstance(answer, SeerAnswer)
        return replace(answer, text=f"Image-1: {answer.text}") if len(question.images) > 1 else answer


def stage(*seers: Any, **options: Any) -> Stage:
    return Stage(*seers, **{"grounds": choose_format, "max_batch": 4, **options})


def attributes(words: str) -> dict[str, str]:
    return dict(re.findall(r'\n    (\w+)="([^"]*)"', words))


def boxes(words: str) -> list[str]:
    return re.findall(r"<vision_proxy_boxes[^>]*>\n\[(.*?)\]\n</vision_proxy_boxes>", words, re.DOTALL)


@requirement("FR-4.2.automatic", "grounding.presized", "grounding.boxes", "fence.sent")
@pytest.mark.parametrize("context", [True, False])
async def test_a_seer_is_asked_for_coordinates_in_its_own_format(context: bool) -> None:
    seer = Eye([WORDS], QWEN)
    at = stage(seer, include_context=context)
    (words,) = all_words(await at.prepare(Talk().say("where is it?", LARGE).body))
    (asked,) = seer.questions
    assert asked.instructions == f"look\n\n{FORMATS['qwen_pixels'].instruction}"
    (image,) = asked.images
    seen = probe(image.data, len(image.data))
    assert getattr(seen, "size", None) == image.size == Size(1316, 728)
    assert {"width": "3840", "height": "2160", "grounding_format": "qwen_pixels", "sent": "1316x728"}.items() <= (
        attributes(words).items()
    )
    assert words.partition(">\n")[2].startswith(WORDS), "the words stay the model's own"
    assert words.index("</vision_proxy_description>") < words.index("<vision_proxy_boxes")
    assert f'image="sha256:{sha256(LARGE).hexdigest()}" width="3840" height="2160"' in words
    assert boxes(words) == [POINTED]
    (entry,) = at.record.ledger.list_entries("vision_proxy.description")
    assert entry.about["grounding_format"] == "qwen_pixels"


@requirement("FR-4.2.automatic", "grounding.sizes")
async def test_a_joint_question_asks_for_coordinates_and_states_the_sizes() -> None:
    seer = Eye([WORDS], QWEN)
    at = stage(seer)
    *_, last = all_words(await at.prepare(Talk().say("compare them", LARGE, picture(1)).body))
    asked = next(question for question in seer.questions if len(question.images) == 2)
    assert asked.instructions.endswith(f"\n\n{FORMATS['qwen_pixels'].instruction}")
    assert asked.text.startswith("Image 1: 1316x728 pixels\nImage 2: 308x252 pixels\n")
    assert [image.size for image in asked.images] == [Size(1316, 728), Size(308, 252)]
    joint = last[last.index("<vision_proxy_joint_description") :]
    assert {"grounding_format": "qwen_pixels", "sent": "1316x728,308x252"}.items() <= attributes(joint).items()
    assert '"width":3840,"height":2160' in joint
    assert boxes(joint) == [POINTED]
    (entry,) = at.record.ledger.list_entries("vision_proxy.joint_description")
    assert entry.about["grounding_format"] == "qwen_pixels"


@requirement("FR-4.2.automatic", "tell.holds")
@pytest.mark.parametrize("context", [True, False])
async def test_a_later_request_has_the_same_fence_byte_for_byte(tmp_path: Path, context: bool) -> None:
    talk = Talk().say("compare them", LARGE, picture(1))
    record = open_record(tmp_path)
    first = await stage(Eye([WORDS], QWEN), record=record, include_context=context).prepare(talk.body)
    record.close()
    silent = Eye(name=QWEN)
    record = open_record(tmp_path)
    at = stage(
        silent, record=record, include_context=context, show_boxes=False
    )  # a setting is for what is said from now on
    talk.answer("they differ").say("and now?")
    later = await at.prepare(talk.body)
    assert sent(later)["messages"][0] == sent(first)["messages"][0]
    assert silent.questions == []
    record.close()


@requirement("FR-4.2.automatic", "tell.canonical")
async def test_a_shared_description_has_the_same_fence() -> None:
    seer = Eye([WORDS], QWEN)
    at = stage(seer)
    (first,) = all_words(await at.prepare(Talk().say("one", LARGE).body))
    (other,) = all_words(await stage(seer, record=at.record).prepare(Talk().say("two", LARGE).body))
    assert other == first
    assert len(seer.questions) == 1


@requirement("grounding.switch", "FR-4.3")
async def test_a_description_without_coordinates_is_kept_separately() -> None:
    seer = Eye([WORDS, "plain"], QWEN3)
    at = stage(seer)
    await at.prepare(Talk().say("one", picture()).body)
    off = stage(seer, record=at.record, grounds=lambda name: "none")
    (words,) = all_words(await off.prepare(Talk().say("two", picture()).body))
    assert seer.asked[1] == ("look", "what?")
    assert attributes(words)["grounding_format"] == "none"
    assert (boxes(words), "plain" in words) == ([], True)


@requirement("grounding.presized")
async def test_the_fence_of_an_unresized_image_has_one_size() -> None:
    seer = Eye(['{"bbox_2d": [0, 0, 500, 1000], "label": "left"}'], QWEN3)
    (words,) = all_words(await stage(seer).prepare(Talk().say("one", picture()).body))
    assert "sent" not in attributes(words)
    assert boxes(words) == ['{"label": "left", "box": [0, 0, 160, 240]}']


async def test_the_boxes_after_a_description_are_bounded() -> None:
    many = json.dumps([{"bbox_2d": [n, n, n + 9, n + 9], "label": f"button {n}"} for n in range(500)])
    (words,) = all_words(await stage(Eye([many], QWEN3)).prepare(Talk().say("one", picture()).body))
    (found,) = boxes(words)
    assert 100 < found.count('"button ') < 500
    assert len(found) < 12_000
    assert json.loads(f"[{found}]")
