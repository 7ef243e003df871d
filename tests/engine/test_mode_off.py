"""With mode off nothing is described; everything else still works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sightline.model.facts import Retention
from sightline.model.labels import SHOWN_BELOW
from sightline.model.profile import ImageLimits, Lesson
from sightline.model.scene import Refitted, Refused, Retired, Shown
from sightline.wire import OPENAI_CHAT
from tests.engine.parts import SEEING, ScriptedSeer, Stage, Talk, asking, encoded, picture, sent, words
from tests.engine.test_retain import Talk as Viewing
from tests.requirements import requirement
from tests.scripted.pictures import undecodable_png
from tests.wire.bodies import body, calling, part, tool


def off(seer: ScriptedSeer | None = None, **options: Any) -> Stage:
    return Stage(seer or ScriptedSeer(), mode="off", **options)


@requirement("mode.off.rest")
async def test_images_are_still_hoisted_if_the_wire_takes_none_in_tool_results() -> None:
    request = {**body(calling("c1"), tool("c1", part(encoded(picture())))), "model": SEEING}
    after = sent(await off().prepare(request, wire=OPENAI_CHAT))
    assert [message["role"] for message in after["messages"]] == ["assistant", "tool", "user"]
    assert SHOWN_BELOW in str(after["messages"][1])
    assert encoded(picture()) in str(after["messages"][2])


@requirement("mode.off.rest")
async def test_images_are_still_made_to_fit() -> None:
    stage = off()
    stage.record.policy.keep_lesson("up", SEEING, Lesson(limits=ImageLimits(edge=100)), days=1)
    (sight,) = (await stage.prepare(asking(picture(), model=SEEING))).scene.sights
    assert isinstance(sight.fate, Refitted)
    assert sight.fate.image.size.edge == 100


@requirement("mode.off.rest")
async def test_images_still_retire(tmp_path: Path) -> None:
    stage, talk = off(retention=Retention(kept_turns=0)), Viewing(tmp_path)
    talk.ask()
    talk.view()
    talk.answer()
    (sight,) = (await stage.prepare(talk.ask())).scene.sights
    assert isinstance(sight.fate, Retired)


@requirement("mode.off.rest")
async def test_rejected_images_are_still_repaired() -> None:
    seer = ScriptedSeer()
    stage = off(seer)
    before = await stage.prepare(asking(picture(), undecodable_png(), model=SEEING))
    after = await stage.repair(before, 400, "Could not process image")
    assert after is not None
    assert [type(sight.fate) for sight in after.scene.sights] == [Shown, Refused]
    # A model that turns out blind gets a sentence for each, and the conversation lives.
    before = await stage.prepare(asking(picture(), model=SEEING))
    after = await stage.repair(before, 400, "Model do not support image input")
    assert after is not None
    assert "sightline config set mode fallback" in words(after)[0]
    assert seer.asked == []


@requirement("mode.off.rest")
async def test_known_descriptions_are_not_used_while_it_is_off() -> None:
    seer = ScriptedSeer()
    on = Stage(seer)
    talk = Talk().say("one", picture())
    told = sent(await on.prepare(talk.body))
    assert "switched off" in str(sent(await off(seer, record=on.record).prepare(talk.body)))
    assert sent(await on.prepare(talk.body)) == told
    assert len(seer.asked) == 1
