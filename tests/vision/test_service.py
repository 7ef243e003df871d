"""The steps of the vision service, with a real record and scripted seers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.model.seer import Question, Seer, SeerAnswer, Usage
from sightline.store import open_record
from sightline.vision.chooser import Candidate, Candidates
from sightline.vision.prompts import Prompt
from sightline.vision.service import VisionService
from sightline.vision.vision_request import (
    SEER_ACTIVITY,
    CacheRule,
    Quota,
    SeerActivity,
    VisionImage,
    VisionRequest,
    VisionResult,
)
from tests.engine.parts import ScriptedSeer, turns
from tests.requirements import requirement

IMAGE = Image("1" * 64, "image/png", Size(4, 3), b"the file's bytes")
NOBODY = Refusal("unavailable", "no candidate")
FAILED = Refusal("unavailable", "it failed")
UNAGREED = Refusal("no_consent", "not agreed")


@pytest.fixture
def record() -> Iterator[Store]:
    opened = open_record(Path("unused"), kind="memory")
    yield opened
    opened.close()


def service(record: Store, *seers: Seer | Refusal) -> VisionService:
    async def choose(*_: object) -> Candidates:
        return Candidates([Candidate(each) for each in seers])

    return VisionService(record.descriptions, record.ledger, choose, price=lambda candidate, usage: 0.5, cache_size=8)


def request(**more: Any) -> VisionRequest:
    async def fit(seer: Seer, form: str) -> Sequence[Image]:
        return [IMAGE]

    given: dict[str, Any] = {
        "scope": "scope",
        "prompt": Prompt("look", "what?"),
        "fit": fit,
        "identity": ["test"],
        "make_entries": lambda attempt: [attempt.make_entry("vision_proxy.tool_call", (IMAGE.sha256,), {})],
        "no_candidate": NOBODY,
        "images": (VisionImage(IMAGE),),
        "sha256s": (IMAGE.sha256,),
        "cache": CacheRule(in_memory=True),
    }
    return VisionRequest(**{**given, **more})


async def test_a_known_answer_is_free_and_takes_no_quota(record: Store) -> None:
    seer, taken = ScriptedSeer(["words"], usage=Usage(9, 1)), list[int]()
    vision, quota = service(record, seer), Quota(lambda: taken.append(1))
    first, again = [await vision.look(request(quota=quota)) for _ in range(2)]
    assert isinstance(first, VisionResult)
    assert isinstance(again, VisionResult)
    assert (first.answer.text, first.cached, first.cost_usd) == ("words", False, 0.5)
    assert (again.answer.text, again.cached, again.cost_usd) == ("words", True, None)
    assert (len(seer.asked), len(taken)) == (1, 1)
    assert [(each.cache_hit, each.cost_usd) for each in record.ledger.list_entries()] == [(False, 0.5), (True, None)]


async def test_a_caller_without_quota_is_refused_and_the_ledger_says_why(record: Store) -> None:
    seer, no = ScriptedSeer(), Refusal("unavailable", "too often")
    assert await service(record, seer).look(request(quota=Quota(lambda: no, entry_details={"question": "what?"}))) is no
    assert seer.asked == []
    (entry,) = record.ledger.list_entries()
    assert (entry.kind, entry.about) == ("vision_proxy.skip", {"question": "what?", "reason": str(no)})


async def test_the_same_question_at_the_same_time_is_asked_once_and_counted_once(record: Store) -> None:
    seer, taken = ScriptedSeer(["words"]), list[int]()
    seer.gate.clear()
    given_back = list[int]()
    vision = service(record, seer)
    quota = Quota(lambda: taken.append(1), lambda: given_back.append(1))
    looks = [asyncio.ensure_future(vision.look(request(quota=quota))) for _ in range(3)]
    await turns(lambda: len(taken) == 3)
    seer.gate.set()
    made = await asyncio.gather(*looks)
    assert [isinstance(each, VisionResult) and each.cached for each in made] == [False, True, True]
    assert (len(seer.asked), len(taken), len(given_back)) == (1, 3, 2)


async def test_a_request_that_joins_another_still_saves_the_answer(record: Store) -> None:
    seer, saved = ScriptedSeer(["words"]), list[str]()
    seer.gate.clear()
    vision = service(record, seer)

    def save(result: VisionResult) -> Refusal | None:
        saved.append(result.answer.text)
        return None

    rule = CacheRule(hash_prompt=lambda form: f"v {form}", save=save, refresh=True)
    first = asyncio.ensure_future(vision.look(request()))
    await turns(lambda: seer.asked)
    second = asyncio.ensure_future(vision.look(request(cache=rule)))
    await asyncio.sleep(0)
    seer.gate.set()
    await asyncio.gather(first, second)
    assert (saved, len(seer.asked)) == (["words"], 1)
    failing = replace(rule, save=lambda result: FAILED)
    assert await vision.look(request(cache=failing)) == FAILED, "that it could not be saved is told"


@requirement("command.serialised")
async def test_a_command_waits_only_for_descriptions_of_its_own_images(record: Store) -> None:
    slow, quick = ScriptedSeer(["automatic"]), ScriptedSeer(["command"])
    slow.gate.clear()
    automatic = asyncio.ensure_future(service(record, slow).look(request(identity=["auto"], take_turns=True)))
    await turns(lambda: slow.asked)
    other = service(record, quick)  # of another process, or of another event loop
    for free in ({"sha256s": ("2" * 64,)}, {"scope": "another"}, {"waits_for_looks": False}):
        await other.look(request(**{"waits_for_looks": True, "identity": [*free], **free}))
    assert (len(quick.asked), slow.at_once) == (3, 1)
    command = asyncio.ensure_future(other.look(request(identity=["command"], waits_for_looks=True)))
    asyncio.get_running_loop().call_later(0.2, slow.gate.set)
    await command
    assert (len(quick.asked), slow.at_once) == (4, 0)
    await automatic


@pytest.mark.parametrize(
    ("lines", "expected", "text"),
    [
        ([UNAGREED, "two"], None, "two"),
        ([FAILED, "two"], None, "two"),
        ([UNAGREED, FAILED], UNAGREED, ""),
        ([], NOBODY, ""),
    ],
)
async def test_candidates_are_asked_in_turn(
    record: Store, lines: list[str | Refusal], expected: Refusal | None, text: str
) -> None:
    seers = [each if each is UNAGREED else ScriptedSeer([each], name=f"up/{n}") for n, each in enumerate(lines)]
    made = await service(record, *seers).look(request())
    if isinstance(made, Refusal):
        assert made == expected
    else:
        assert (made.answer.text, made.fallback_reason) == (text, UNAGREED if UNAGREED in lines else None)


async def test_a_request_can_ask_only_the_first_candidate(record: Store) -> None:
    one, two = ScriptedSeer([FAILED], name="up/one"), ScriptedSeer(["two"], name="up/two")
    made = await service(record, one, two).look(request(first_only=True))
    assert isinstance(made, Refusal)
    assert (made.code, made.stage, two.asked) == ("unavailable", "provider", [])
    read = await service(record, UNAGREED, two).look(request(first_only=True))
    assert isinstance(read, VisionResult)
    assert (read.seer, read.fallback_reason) == ("up/two", UNAGREED)


async def test_an_unusable_answer_is_requested_once_more(record: Store) -> None:
    seer = ScriptedSeer(["no", "yes"], usage=Usage(10, 1))
    made = await service(record, seer).look(request(find_fault=lambda text: "" if text == "yes" else "it is not yes"))
    assert isinstance(made, VisionResult)
    assert (made.answer.text, made.answer.usage, len(seer.asked)) == ("yes", Usage(20, 2), 2)
    assert [each.usage for each in record.ledger.list_entries()] == [Usage(20, 2)]
    never = await service(record, ScriptedSeer(["no"])).look(
        request(identity=["other"], find_fault=lambda text: "never")
    )
    assert isinstance(never, Refusal)
    assert never.stage == "answer"


async def test_the_activity_of_a_request_has_its_questions_and_their_costs(record: Store) -> None:
    waiting: list[bool] = []
    activity = SeerActivity(lambda: waiting.append(activity.is_waiting))
    SEER_ACTIVITY.set(activity)
    seer = ScriptedSeer(["words"], usage=Usage(9, 1))
    vision = service(record, FAILED, seer)
    for _ in range(2):
        await asyncio.create_task(vision.look(request()))
    assert (activity.seers, activity.costs) == ([seer.name], [0.5]), "a known answer asks no one"
    assert (waiting, activity.is_waiting) == ([True], False)


async def test_a_question_that_is_cancelled_does_not_stay_in_the_activity(record: Store) -> None:
    asked, activity = asyncio.Event(), SeerActivity()
    SEER_ACTIVITY.set(activity)

    class Slow(ScriptedSeer):
        async def ask(self, question: Question) -> SeerAnswer | Refusal:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    task = asyncio.create_task(service(record, Slow()).look(request(cache=CacheRule(join_others=False))))
    await asked.wait()
    assert activity.is_waiting
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (activity.is_waiting, activity.costs) == (False, [0.0])


async def test_a_known_description_is_found_without_needless_searches(record: Store) -> None:
    searches = list[int]()

    async def search(found: Sequence[Candidate]) -> Sequence[Candidate]:
        searches.append(len(found))
        return [Candidate(ScriptedSeer(name="up/two"))]

    def candidates() -> Candidates:
        return Candidates([Candidate(ScriptedSeer(name="up/one"))], [search])

    vision, rule = service(record), CacheRule(hash_prompt=lambda form: "prompt")
    assert await vision.find_description("scope", IMAGE.sha256, candidates(), rule) is None
    assert searches == [], "nothing is known about the image"
    known = Description(IMAGE.sha256, IMAGE.size, "words", "up/two")
    record.descriptions.keep("scope", known, "prompt")
    assert await vision.find_description("scope", IMAGE.sha256, candidates(), rule) == known
    assert await vision.find_description("other", IMAGE.sha256, candidates(), rule) is None
    record.descriptions.keep("scope", replace(known, seer="up/one"), "prompt")
    found = await vision.find_description("scope", IMAGE.sha256, candidates(), rule)
    assert found is not None
    assert (found.seer, searches) == ("up/one", [1]), "the best candidate has described it"
