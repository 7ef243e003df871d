"""What depends on a turn: context, failures, and the limit of descriptions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from sightline.model.refusal import Refusal
from sightline.store import open_record
from sightline.vision.prompts import add_context
from sightline.wire import ANTHROPIC, OPENAI_CHAT
from sightline.wire.hash_chain import build_hash_chain
from tests.engine.parts import BLIND, PROMPT, ScriptedSeer, Stage, Talk, all_words, encoded, picture, sent, turns
from tests.requirements import requirement
from tests.wire.bodies import block, body, calling, part, text, tool, user

CONTEXT = add_context("", ["said"]).partition("said")[0].strip() + "\n"
FAILED = Refusal("unavailable", "up/eye did not describe it (status 500)", "send another message in a while")


def digest(seed: int = 0) -> str:
    return sha256(picture(seed)).hexdigest()


@requirement("tell.context")
async def test_the_seer_gets_the_last_messages() -> None:
    seer = ScriptedSeer()
    talk = Talk().say("first of all").answer("yes").say("why is the build red?", picture())
    await Stage(seer, include_context=True).prepare(talk.body)
    ((instructions, question),) = seer.asked
    assert instructions == "look"
    said = ["User: first of all", "Assistant: yes", "User: why is the build red?"]
    assert question == add_context("what?", said)


@requirement("tell.context")
async def test_the_context_is_eight_messages_within_a_length() -> None:
    seer = ScriptedSeer()
    talk = Talk()
    for number in range(6):
        talk.say(f"question {number} " + "and " * 100).answer(f"answer {number} " + "so " * 300)
    await Stage(seer, include_context=True).prepare(talk.say("and this?", picture()).body)
    said = seer.asked[0][1].partition(CONTEXT)[2].split("\n")
    assert len(said) == 8
    assert said[-1] == "User: and this?"
    assert said[0].startswith("Assistant: answer 2 ")
    spoken = [line.removeprefix("Assistant: ") for line in said if line.startswith("Assistant: ")]
    assert {len(line) for line in spoken[1:]} == {500}
    assert all(line.endswith("…") for line in spoken)
    assert sum(map(len, said)) == 3000


@requirement("tell.context")
async def test_the_context_of_many_short_messages_is_the_last_eight() -> None:
    seer = ScriptedSeer()
    talk = Talk()
    for number in range(6):
        talk.say(f"q{number}").answer(f"a{number}")
    await Stage(seer, include_context=True).prepare(talk.say("and this?", picture()).body)
    said = seer.asked[0][1].partition(CONTEXT)[2].split("\n")
    assert said == [
        *("Assistant: a2", "User: q3", "Assistant: a3", "User: q4", "Assistant: a4", "User: q5", "Assistant: a5"),
        "User: and this?",
    ]


@requirement("tell.context")
async def test_one_long_message_fills_the_context() -> None:
    seer = ScriptedSeer()
    await Stage(seer, include_context=True).prepare(Talk().say("before").say("so " * 3000, picture()).body)
    assert seer.asked[0][1].partition(CONTEXT)[2] == f"User: {'so ' * 3000}"[:2999] + "…"


@requirement("tell.context")
async def test_the_context_has_no_tool_output_and_nothing_later() -> None:
    seer = ScriptedSeer()
    talk = Talk().say("look around")
    talk.messages.append(user(text("<system-reminder>secret</system-reminder>")))
    talk.read(("a.png", picture()), words="I open it")
    talk.messages[-1]["content"][0]["content"].insert(0, text("from the tool"))
    talk.read(("b.png", picture()), words="I open it again")
    await Stage(seer, include_context=True).prepare(talk.body)
    assert seer.asked[0][1].partition(CONTEXT)[2] == "User: look around\nAssistant: I open it"


@requirement("tell.context")
async def test_a_lone_surrogate_and_a_payload_in_the_context_do_no_harm() -> None:
    seer = ScriptedSeer()
    await Stage(seer, include_context=True).prepare(
        Talk().say("\ud83d and " + encoded(picture(7)) * 30, picture()).body
    )
    said = seer.asked[0][1].partition(CONTEXT)[2]
    assert said.startswith("User: ? and ")
    said.encode()
    assert len(said) < 40, "a payload is no words"


@requirement("tell.context")
@pytest.mark.parametrize("context", [True, False])
async def test_context_needs_the_setting_and_text(context: bool) -> None:
    seer = ScriptedSeer()
    asked = Talk().say("words", picture()).body
    if context:
        asked["messages"] = [user(block(encoded(picture())))]
    await Stage(seer, include_context=context).prepare(asked)
    assert seer.asked == [("look", "what?")]


@requirement("tell.with_context", "tell.canonical")
async def test_a_description_with_context_is_only_for_its_turn() -> None:
    seer = ScriptedSeer(["for the build", "for the colour", "for nobody"])
    stage = Stage(seer, include_context=True)
    one, other = Talk().say("why is the build red?", picture()), Talk().say("which red is it?", picture())
    (first,) = all_words(await stage.prepare(one.body))
    (second,) = all_words(await stage.prepare(other.body))
    assert "for the build" in first
    assert "for the colour" in second
    assert stage.record.descriptions.read("somebody", digest(), "up/eye", PROMPT) is None, "it is not shared"
    # In its own turn and ever after it stands at its place; brought again by another turn, it is looked at anew.
    one.answer("because").say("and again?", picture())
    assert all_words(await stage.prepare(one.body))[0] == first
    assert len(seer.asked) == 3


@requirement("tell.canonical")
async def test_a_description_without_context_is_shared_by_conversations() -> None:
    seer = ScriptedSeer(["for all", "again"])
    stage = Stage(seer)
    await stage.prepare(Talk().say("one", picture()).body)
    with_context = Stage(seer, record=stage.record, include_context=True)
    (told,) = all_words(await with_context.prepare(Talk().say("two", picture()).body))
    assert "for all" in told
    assert seer.asked == [("look", "what?")]


@requirement("tell.canonical")
async def test_an_image_of_an_earlier_turn_is_described_without_context() -> None:
    seer = ScriptedSeer()
    stage = Stage(seer, include_context=True)
    talk = Talk(model="seeing-1").say("one", picture()).answer("yes").say("two")
    await stage.prepare(talk.body)
    talk.model = "blind-1"  # somebody else goes on with it
    await stage.prepare(talk.body)
    assert seer.asked == [("look", "what?")]
    assert stage.record.descriptions.read("somebody", digest(), "up/eye", PROMPT) is not None


@requirement("tell.holds")
@pytest.mark.parametrize("context", [True, False])
async def test_a_place_keeps_its_description_in_the_next_process(tmp_path: Path, context: bool) -> None:
    seer = ScriptedSeer([f"words {number}" for number in range(9)])
    talk = Talk().say("one", picture()).read(("a.png", picture(1)), ("a.png", picture()))
    asked = []
    for _ in range(2):
        record = open_record(tmp_path)
        stage = Stage(seer, record=record, include_context=context)
        asked += [sent(await stage.prepare(talk.body)) for _ in range(2)]
        record.close()
    assert asked[1:] == asked[:-1]
    assert len(seer.asked) == 2
    talk.read(("b.png", picture(2))).answer("done").say("next")
    later = sent(await Stage(seer, record=open_record(tmp_path), include_context=not context).prepare(talk.body))
    assert later["messages"][: len(asked[0]["messages"])] == asked[0]["messages"]
    assert len(seer.asked) == 3


@requirement("tell.holds", "tell.failure", "fault.remembered")
async def test_a_failure_lasts_until_the_next_turn_in_every_process() -> None:
    seer = ScriptedSeer([FAILED, "well"])
    stage = Stage(seer)
    talk = Talk().say("one", picture())
    (sentence,) = all_words(await stage.prepare(talk.body))
    assert "status 500" in sentence
    talk.read(("b.png", picture(1)))  # a step is no turn
    stage = Stage(seer, record=stage.record)
    failed, well = all_words(await stage.prepare(talk.body))
    assert failed == sentence
    assert "well" in well
    again, _ = all_words(await stage.prepare(talk.answer("oh").say("try again").body))
    assert "well" in again
    assert len(seer.asked) == 3


async def test_an_answer_that_cannot_be_stored_is_not_asked_for_twice() -> None:
    seer = ScriptedSeer([FAILED, "once", "twice"])
    stage = Stage(seer, include_context=True)
    stage.record.close()
    talk = Talk().say("one", picture(), picture(1))
    first = sent(await stage.prepare(talk.body))
    assert sent(await stage.prepare(talk.body)) == first
    assert len(seer.asked) == 2


@requirement("turn.id")
async def test_a_turn_is_named_by_everything_before_it() -> None:
    seer = ScriptedSeer([str(number) for number in range(20)])
    stage = Stage(seer, include_context=True)

    async def looks(talk: Talk) -> int:
        """Return how many descriptions were made since: one for each new turn."""
        before = len(seer.asked)
        await stage.prepare(talk.body)
        return len(seer.asked) - before

    assert await looks(Talk().say("one").answer("yes").say("see", picture())) == 1
    assert await looks(Talk().say("one").answer("yes").say("see", picture()).read(("a.png", picture()))) == 0
    assert await looks(Talk("blind-2").say("one").answer("yes").say("see", picture())) == 0, "who is asked is no word"
    assert await looks(Talk().say("one").answer("no").say("see", picture())) == 1

    def named(talk: Talk) -> str:
        reading = stage.read(talk.say("see", picture()).body)
        return build_hash_chain(
            reading.tree, ANTHROPIC.head_keys, ANTHROPIC.messages_key, reading.texts, reading.scene.sights
        ).names[-1]

    first, other, longer = Talk().say("one"), Talk().say("ONE"), Talk(system="be long").say("one")
    assert len({named(each.answer("yes")) for each in (first, other, longer)}) == 3
    marked = Talk().say("one").answer("yes").say("see", picture())
    marked.messages[0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    assert await looks(marked) == 0


@requirement("seer.per_turn")
async def test_an_image_over_the_turn_limit_becomes_a_sentence_and_an_entry() -> None:
    seer = ScriptedSeer()
    stage = Stage(seer, max_images=2)
    talk = Talk().say("go").read(("0.png", picture(0)))
    for seed in (1, 2, 3):
        talk.read((f"{seed}.png", picture(seed)))
        for _ in range(2):  # and clients repeat themselves
            said = all_words(await stage.prepare(talk.body))
    assert ["a description" in each for each in said] == [True, True, False, False]
    assert ("3.png" in said[3], "sightline config set maxImagesPerTurn " in said[3]) == (True, True)
    assert len(seer.asked) == 2
    noted = stage.record.ledger.list_entries("vision_proxy.skip")
    assert [entry.images for entry in noted] == [(digest(2),), (digest(3),)]
    assert str(noted[0].about["reason"])[:20] in said[3], "the same reason"
    # Another process knows it; another turn has looks of its own, for the newest.
    assert all_words(await Stage(seer, max_images=2, record=stage.record).prepare(talk.body)) == said
    more = replace(talk, messages=[*talk.messages]).read(("4.png", picture(4)))
    other = all_words(await Stage(seer, max_images=2, record=stage.record).prepare(more.body))
    assert other[-1] == said[3].replace("3.png", "4.png")
    after = all_words(await stage.prepare(talk.answer("I am done").say("go on").body))
    assert after[:2] == said[:2]
    assert ["a description" in each for each in after] == [True] * 4
    assert len(seer.asked) == 4


@requirement("seer.per_turn")
async def test_known_descriptions_do_not_count_and_zero_means_no_limit() -> None:
    seer = ScriptedSeer()
    stage = Stage(seer, max_images=1)
    await stage.prepare(Talk().say("one", picture(0)).body)
    said = all_words(await stage.prepare(Talk().say("two", picture(0)).read(("1.png", picture(1))).body))
    assert ["a description" in each for each in said] == [True, True]
    free = Stage(seer, max_images=0)
    assert len(all_words(await free.prepare(Talk().say("all", *(picture(seed) for seed in range(9))).body))) == 9
    assert free.record.ledger.list_entries("vision_proxy.skip") == ()


@requirement("seer.newest", "seer.per_turn")
async def test_the_newest_of_too_many_images_are_described() -> None:
    seer = ScriptedSeer()
    stage = Stage(seer, max_images=2)
    said = all_words(await stage.prepare(Talk().say("all", *(picture(seed) for seed in range(4))).body))
    assert ["a description" in each for each in said] == [False, False, True, True]
    assert {entry.images for entry in stage.record.ledger.list_entries("vision_proxy.skip")} == {
        (digest(0),),
        (digest(1),),
    }
    assert "sightline config set maxImagesPerTurn " in said[0]


@requirement("seer.newest")
async def test_the_newest_image_gets_the_last_description_of_a_turn() -> None:
    stage = Stage(ScriptedSeer(), max_images=4)
    first = [calling("c1"), tool("c1", part(encoded(picture(0))))]
    more = [calling("c2", "c3", "c4", "c5"), *(tool(f"c{n}", part(encoded(picture(n)))) for n in (2, 3, 4, 5))]
    await stage.prepare({**body(user(text("go")), *first), "model": BLIND}, wire=OPENAI_CHAT)
    prepared = await stage.prepare({**body(user(text("go")), *first, *more), "model": BLIND}, wire=OPENAI_CHAT)
    assert ["a description" in each for each in all_words(prepared)] == [True, False, True, True, True]


@requirement("record.flights")
@pytest.mark.parametrize("context", [True, False])
async def test_two_proxies_pay_once_for_the_same_description(tmp_path: Path, context: bool) -> None:
    seer = ScriptedSeer(["once", "twice"])
    seer.gate.clear()
    records = [open_record(tmp_path), open_record(tmp_path)]
    talk = Talk().say("one", picture())
    work = [
        asyncio.ensure_future(Stage(seer, record=record, include_context=context).prepare(talk.body))
        for record in records
    ]
    await turns(lambda: seer.asked)
    await asyncio.sleep(0.2)  # for the other one to come so far
    seer.gate.set()
    one, two = [sent(prepared) for prepared in await asyncio.gather(*work)]
    assert one == two
    assert len(seer.asked) == 1
    for record in records:
        record.close()


@requirement("tell.side")
async def test_side_requests_of_a_turn_share_its_description() -> None:
    """Agents send several requests for a turn, with different system prompts: a title, the turn itself, a memory."""
    seer = ScriptedSeer()
    stage = Stage(seer, include_context=True)
    talk = Talk().say("why is the build red?", picture())
    title = {**talk.body, "system": "Make a title", "messages": [user(text("Make one for this:")), *talk.messages]}
    await asyncio.gather(stage.prepare(title), stage.prepare(talk.body))
    talk.answer("a missing key")
    memory = {**talk.body, "system": "Extract memories", "messages": [*talk.messages, user(text("Begin."))]}
    told = await stage.prepare(memory)
    assert len(seer.looks) == 1
    assert "a description" in str(told.tree)
