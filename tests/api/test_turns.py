"""How often a model may have somebody asked in a turn, and what it means that it asks itself."""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import sightline
from sightline.api import Analysis, Failure, Session
from sightline.api.body_preparation import PreparedBody
from sightline.settings import load_settings
from sightline.store import open_record
from sightline.vision.concurrency import UNNAMED_TURN, CallerQuotas, TurnQuota
from tests.api.eyes import eyes, named, sent
from tests.engine.parts import ScriptedSeer, Stage, Talk, all_words, encoded, picture
from tests.engine.test_conversation_turns import FAILED, digest
from tests.requirements import requirement
from tests.scripted.provider import Provider
from tests.wire.bodies import part, text, user


@pytest.fixture(autouse=True)
def _working(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shot.png").write_bytes(picture())


def use(monkeypatch: pytest.MonkeyPatch, provider: Provider, **more: str) -> None:
    for name, value in named(provider, **more).items():
        monkeypatch.setenv(name, value)


def call(question: str, session: Session | None = None) -> Any:
    return sightline.call("analyze_image", {"images": ["shot.png"], "question": question}, session=session)


@requirement("seer.calls")
def test_the_calls_of_a_turn_are_limited_and_cached_ones_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("an answer") as provider:
        use(monkeypatch, provider, SIGHTLINE_MAX_TOOL_CALLS_PER_TURN="2")
        asked = [call(question) for question in ("one?", "one?", "two?", "one?", "three?", "two?")]
        assert [type(each) for each in asked] == [Analysis] * 4 + [Failure, Analysis]
        no = asked[4].as_dict()
        assert {**no, "message": ""} == {"ok": False, "reason": "unavailable", "message": ""}
        assert "maxToolCallsPerTurn" in no["message"]
        assert "sightline config set maxToolCallsPerTurn" in no["message"]
        assert len(provider.exchanges) == 2
        (entry,) = Session().tool_context.record.ledger.list_entries("vision_proxy.skip")
        assert entry.images == (digest(),)
        assert entry.about["question"] == "three?"
        # A person is no model, a program is its own master, and another turn has calls of its own.
        assert isinstance(sightline.describe("shot.png", question="four?"), Analysis)
        assert isinstance(sightline.analyze("shot.png", "five?"), Analysis)
        for turn in ("t1", "t2"):
            found = [call(f"{turn} {number}", Session(turn=turn)) for number in range(3)]
            assert [type(each) for each in found] == [Analysis, Analysis, Failure]
        bound = [sightline.analyze("shot.png", f"six {number}", session=Session(turn="t3")) for number in range(3)]
        assert isinstance(bound[2], Failure)


@requirement("seer.calls")
def test_zero_means_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("an answer") as provider:
        use(monkeypatch, provider, SIGHTLINE_MAX_TOOL_CALLS_PER_TURN="0")
        assert all(isinstance(call(f"number {number}?"), Analysis) for number in range(12))


@requirement("seer.calls.unnamed")
def test_an_unnamed_turn_ends_after_a_minute_without_calls() -> None:
    now = 0.0
    turns = TurnQuota(lambda: now)
    assert [turns.try_take(UNNAMED_TURN, 2) for _ in range(3)] == [True, True, False]
    assert [turns.try_take("named", 1) for _ in range(2)] == [True, False]
    now = 59.0
    assert not turns.try_take(UNNAMED_TURN, 2)
    now = 60.5
    assert [turns.try_take(UNNAMED_TURN, 2) for _ in range(3)] == [True, True, False], (
        "those that were refused are none"
    )
    assert not turns.try_take("named", 1), "a turn that has a name lasts"
    now = 3599.0
    assert not turns.try_take("named", 1)
    now = 3601.0
    assert turns.try_take("named", 1), "and not for ever"


@requirement("seer.calls.threads")
def test_two_threads_of_a_new_caller_share_its_quota() -> None:
    together, quotas, callers = Barrier(2), CallerQuotas(1000), [f"caller {number}" for number in range(200)]

    def find_all() -> list[TurnQuota]:
        found = []
        for caller in callers:
            together.wait(60)
            found.append(quotas.find(caller))
        return found

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            one, other = (work.result() for work in [threads.submit(find_all) for _ in range(2)])
    finally:
        sys.setswitchinterval(usual)
    assert [*map(id, one)] == [*map(id, other)]
    assert len({*map(id, one)}) == len(callers)


@requirement("tell.context.tool")
def test_a_tool_call_sends_its_question_and_no_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("an answer") as provider:
        use(monkeypatch, provider)
        stage = Stage(ScriptedSeer(), record=Session().tool_context.record, include_context=True)
        asyncio.run(stage.prepare(Talk().say("my secret", picture()).body))
        call("What colour?", Session(turn="t"))
        told, asked, images = sent(provider)
        assert asked == "What colour?"
        assert "secret" not in told
        assert images == [picture()]
        assert len(provider.exchanges) == 1


@requirement("tell.holds", "FR-3.3")
@pytest.mark.parametrize("line", [FAILED, "wrong words"])
def test_redescribe_changes_descriptions_in_conversations(monkeypatch: pytest.MonkeyPatch, line: Any) -> None:
    with eyes("the right words") as provider:
        use(monkeypatch, provider)
        stage = Stage(ScriptedSeer([line, "others"]), record=Session().tool_context.record, include_context=True)
        talk = Talk().say("one", picture())

        async def told() -> list[str]:
            return all_words(await stage.prepare(talk.body))

        (before,) = asyncio.run(told())
        assert "the right words" not in before
        assert isinstance(sightline.describe("shot.png", save=True), Analysis)
        (after,) = asyncio.run(told())
        assert "the right words" in after
        talk.read(("b.png", picture(1)))
        assert asyncio.run(told())[0] == after


@requirement("tell.saved", "FR-3.2.save")
@pytest.mark.parametrize("context", [True, False])
def test_a_saved_description_is_used_in_every_new_conversation(monkeypatch: pytest.MonkeyPatch, context: bool) -> None:
    """A proxy with another model, for another credential, opened after the command, uses it."""
    seer = ScriptedSeer(["automatic", "automatic again", "automatic once more"])

    def tell(words: str) -> str:
        record = open_record(load_settings().record_folder)
        stage = Stage(seer, record=record, include_context=context)
        (told,) = all_words(asyncio.run(stage.prepare(Talk().say(words, picture()).body)))
        record.close()
        return told

    with eyes("only looked at", "saved once", "saved twice") as provider:
        use(monkeypatch, provider)
        assert "automatic" in tell("one")
        described = sightline.describe("shot.png")
        assert isinstance(described, Analysis)
        assert described.text == "only looked at"
        assert "automatic" in tell("two"), "a look without --save is not for conversations"
        asked = len(seer.asked)
        for words in ("saved once", "saved twice"):
            assert isinstance(sightline.describe("shot.png", save=True), Analysis)
            assert words in tell(f"new {words}")
            assert words in tell("one")
            again = sightline.describe("shot.png")
            assert isinstance(again, Analysis)
            assert (again.text, again.cached) == (words, True)
        assert len(seer.asked) == asked


@requirement("tell.saved")
def test_a_description_for_a_person_is_not_canonical(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("of a person", "automatic", "unasked") as provider:
        blind = json.dumps({"blind-1": {"vision": False}})
        use(monkeypatch, provider, SIGHTLINE_MODELS=blind, SIGHTLINE_INCLUDE_CONTEXT="off", SIGHTLINE_CACHE_SIZE="0")
        for cached in (False, True):
            found = sightline.describe("shot.png")
            assert isinstance(found, Analysis)
            assert (found.text, found.cached) == ("of a person", cached)
        for words in ("one", "two"):
            request = [user(part(encoded(picture())), text(words))]
            done = sightline.prepare(request, wire="openai_chat", model="blind-1")
            assert isinstance(done, PreparedBody), done
            assert "automatic" in json.dumps(done.body)
        found = sightline.describe("shot.png")
        assert isinstance(found, Analysis)
        assert (found.text, found.cached) == ("automatic", True)
