"""Ledger entries of automatic descriptions, and truncated answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sightline.engine.describer import _RETRY as RETRY
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.seer import MAX_ANSWER_LENGTH, Usage, truncate_answer
from sightline.passes.wording import write_absence
from sightline.store import open_record
from sightline.vision.seers import RETRY_LATER
from tests.engine.parts import ScriptedSeer, Stage, Talk, all_words, picture, sent, turns
from tests.engine.test_conversation_turns import FAILED, digest
from tests.engine.test_joint_descriptions import Eye, joints, stage
from tests.requirements import requirement
from tests.wire.bodies import text, user


def price(seer: str, usage: Usage) -> float | None:
    return 0.25 if seer == "up/eye" and usage.input else None


@requirement("telemetry.looks", "ask.usage")
async def test_the_cost_of_a_description_is_in_the_ledger() -> None:
    at = Stage(ScriptedSeer(usage=Usage(900, 30)), price=price, include_context=True)
    talk = Talk().say("my secret", picture())
    for _ in range(2):
        await at.prepare(talk.body)
    (entry,) = at.record.ledger.list_entries()
    assert (entry.kind, entry.images, entry.seer) == ("vision_proxy.description", (digest(),), "up/eye")
    assert (entry.usage, entry.cost_usd, entry.error, entry.cache_hit) == (Usage(900, 30), 0.25, "", False)
    assert entry.latency_ms is not None
    assert entry.about == {"question": "what?", "grounding_format": "none", "dimensions": ["320x240"]}
    spent = at.record.ledger.sum_spending()
    assert not isinstance(spent, Refusal)
    (one,) = spent
    assert (one.seer, one.calls, one.usage, one.cost_usd, one.failed) == ("up/eye", 1, Usage(900, 30), 0.25, 0)


@requirement("telemetry.looks", "telemetry.failed")
async def test_failed_descriptions_are_in_the_ledger_with_their_errors() -> None:
    first, second = ScriptedSeer([FAILED], name="up/one"), ScriptedSeer(["well"], name="up/two")
    at = Stage(first, second)
    await at.prepare(Talk().say("one", picture()).body)
    assert [(each.kind, each.seer, each.error) for each in at.record.ledger.list_entries()] == [
        ("vision_proxy.description", "up/one", "unavailable"),
        ("vision_proxy.description", "up/two", ""),
    ]
    assert "status 500" not in str(at.record.ledger.list_entries())


@requirement("telemetry.looks", "telemetry.failed")
async def test_a_failed_joint_description_is_an_entry_or_a_skip() -> None:
    at = stage(ScriptedSeer(["one", "two", FAILED]))
    await at.prepare(Talk().say("both", picture(), picture(1)).body)
    (entry,) = at.record.ledger.list_entries("vision_proxy.joint_description")
    assert (entry.images, entry.seer, entry.error) == ((digest(), digest(1)), "up/eye", "unavailable")
    assert entry.latency_ms is not None
    assert at.record.ledger.list_entries("vision_proxy.skip") == ()
    unfit = ScriptedSeer(limits=ImageLimits(formats=("image/x-nobody-writes-this",)))
    at = stage(unfit)
    await at.prepare(Talk().say("both", picture(), picture(1)).body)
    assert unfit.asked == []
    assert {each.kind for each in at.record.ledger.list_entries()} == {"vision_proxy.skip"}
    spent = at.record.ledger.sum_spending()
    assert spent == ()


@requirement("record.flights")
@pytest.mark.parametrize("context", [True, False])
async def test_two_proxies_pay_once_for_the_same_joint_description(tmp_path: Path, context: bool) -> None:
    seer = Eye()
    seer.gate.clear()
    records = [open_record(tmp_path), open_record(tmp_path)]
    talk = Talk().say("both", picture(), picture(1))
    work = [
        asyncio.ensure_future(stage(seer, record=record, include_context=context).prepare(talk.body))
        for record in records
    ]
    await turns(lambda: len(seer.asked) >= 2)
    await asyncio.sleep(0.2)  # for the other one to come so far
    seer.gate.set()
    one, two = [sent(prepared) for prepared in await asyncio.gather(*work)]
    assert one == two
    assert "2 of them" in str(one)
    assert len(seer.together) == 1
    assert len(records[0].ledger.list_entries("vision_proxy.joint_description")) == 1
    for record in records:
        record.close()


@requirement("tell.side")
@pytest.mark.parametrize("context", [True, False])
async def test_side_requests_of_a_turn_share_its_joint_description(context: bool) -> None:
    seer = Eye()
    at = stage(seer, include_context=context)
    talk = Talk().say("what differs?", picture(), picture(1))
    title = {**talk.body, "system": "Make a title", "messages": [user(text("Make one for this:")), *talk.messages]}
    both = await asyncio.gather(at.prepare(title), at.prepare(talk.body))
    assert [joints(all_words(each)) for each in both] == [["", "2 of them"]] * 2
    talk.answer("a key")
    await at.prepare({**talk.body, "system": "Extract", "messages": [*talk.messages, user(text("Begin."))]})
    assert len(seer.together) == 1
    turned = Talk(system="another").say("what differs?", picture(1), picture())
    await at.prepare(turned.body)
    assert len(seer.together) == 2, "in another order Image 1 is another one"


@requirement("tell.cut")
async def test_a_long_description_is_truncated_and_says_so() -> None:
    class Wordy(Eye):
        async def ask(self, question: Any) -> Any:
            answer: Any = await super().ask(question)
            return replace(answer, text="word " * 10_000)

    single, both = all_words(await stage(Wordy()).prepare(Talk().say("both", picture(), picture(1)).body))
    mark = "\n[truncated — 49999 chars total]\n"
    assert single.count(mark) == 1
    assert both.count(mark) == 2
    assert len(single) < MAX_ANSWER_LENGTH + 1000


@requirement("tell.how_to_retry")
async def test_a_failure_is_retried_with_the_next_message() -> None:
    no = replace(FAILED, remedy=RETRY_LATER)
    (sentence,) = all_words(await Stage(ScriptedSeer([no])).prepare(Talk().say("one", picture()).body))
    assert sentence == write_absence(replace(FAILED, remedy=RETRY))


def test_a_complete_answer_has_no_truncation_mark() -> None:
    assert truncate_answer(" words ") == "words"
    assert truncate_answer("w" * MAX_ANSWER_LENGTH) == "w" * MAX_ANSWER_LENGTH
    assert truncate_answer("w" * 11, 10) == f"{'w' * 10}\n[truncated — 11 chars total]"
