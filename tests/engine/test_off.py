"""With mode off nothing is described; whatever else is done for a conversation goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sightline.model.fate import Refitted, Refused, Retired, Shown
from sightline.model.marks import MARKER
from sightline.model.profile import Lesson, Limits
from sightline.model.rules import Retention
from sightline.wire import OPENAI_CHAT
from tests.engine.parts import SEEING, ScriptedSeer, Stage, Talk, asking, encoded, picture, sent, words
from tests.engine.test_retain import Talk as Viewing
from tests.requirements import requirement
from tests.scripted.pictures import undecodable_png
from tests.wire.bodies import body, calling, part, tool


def off(seer: ScriptedSeer | None = None, **options: Any) -> Stage:
    return Stage(seer or ScriptedSeer(), mode="off", **options)


@requirement("mode.off.rest")
async def test_images_are_still_moved_out_of_tool_results_where_the_wire_takes_none_there() -> None:
    request = {**body(calling("c1"), tool("c1", part(encoded(picture())))), "model": SEEING}
    after = sent(await off().prepare(request, wire=OPENAI_CHAT))
    assert [message["role"] for message in after["messages"]] == ["assistant", "tool", "user"]
    assert MARKER in str(after["messages"][1])
    assert encoded(picture()) in str(after["messages"][2])


@requirement("mode.off.rest")
async def test_images_are_still_made_to_fit() -> None:
    stage = off()
    stage.record.policy.keep_lesson("up", SEEING, Lesson(limits=Limits(edge=100)), days=1)
    (sight,) = (await stage.prepare(asking(picture(), model=SEEING))).scene.sights
    assert isinstance(sight.fate, Refitted)
    assert sight.fate.image.size.edge == 100


@requirement("mode.off.rest")
async def test_images_still_retire(tmp_path: Path) -> None:
    stage, talk = off(retention=Retention(turns=0)), Viewing(tmp_path)
    talk.ask()
    talk.view()
    talk.answer()
    (sight,) = (await stage.prepare(talk.ask())).scene.sights
    assert isinstance(sight.fate, Retired)


@requirement("mode.off.rest")
async def test_a_conversation_still_heals() -> None:
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
    assert "`sightline config set mode fallback`" in words(after)[0]
    assert seer.asked == []


@requirement("mode.off.rest")
async def test_what_was_told_before_is_not_told_while_it_is_off() -> None:
    seer = ScriptedSeer()
    on = Stage(seer)
    talk = Talk().say("one", picture())
    told = sent(await on.prepare(talk.body))
    assert "switched off" in str(sent(await off(seer, record=on.record).prepare(talk.body)))
    assert sent(await on.prepare(talk.body)) == told
    assert len(seer.asked) == 1
