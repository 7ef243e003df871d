"""If a client's request extends its last one, ours does too, so the provider's prompt cache stays warm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sightline.model.facts import Retention
from sightline.model.refusal import Refusal
from sightline.model.seer import Question, SeerAnswer
from sightline.wire import WIRES, Wire
from tests.engine.parts import ScriptedSeer, picture
from tests.golden.captures import payloads
from tests.golden.preparing import Desk
from tests.invariants.growing import SEEDS, Growing, broken, forty_views, normal, said, seeds, with_pasted
from tests.requirements import requirement

STEPS = 60
BLIND = ["claude-code/read-2", "qwen-code/read-2", "aisdk7/read.chat-json-2", "codex/read-2", "gemini-cli/read-3"]


def life(name: str) -> Iterator[Any]:
    """Yield the requests of a long session: turns, side requests, a fork, an edit, a compaction, moving cache marks."""
    talk = Growing(seeds()[name])
    branch: Growing | None = None
    for number in range(1, STEPS + 1):
        talk.step()
        yield talk.body(marked=True)
        if number % 12 == 0:
            talk.say(f"go on with {number}")
            with_pasted({talk.wire.messages_key: talk.messages}, talk.wire)
            yield talk.body(marked=True)
        if number % 9 == 0:  # a side request: other tools, another head, the same pictures
            side = talk.body()
            yield {**{key: value for key, value in side.items() if key not in talk.wire.head_keys}, "temperature": 0}
        if number == 20:  # somebody goes another way from here
            branch = replace(talk, messages=list(talk.messages))
            branch.messages = list(talk.messages)
            branch.say("another way")
        if branch and number % 4 == 0:
            branch.count += 1000
            branch.step()
            yield branch.body()
        if number == 30:  # the user changes an earlier word
            edited = talk.body()
            edited[talk.wire.messages_key][0] = said("user", "other words", talk.wire)
            yield edited
        if number == 45:  # the client sums up what it no longer sends
            talk.messages = [said("user", "what has happened so far: much", talk.wire)]
            yield talk.body()


def beside_user(body: Any, wire: Wire) -> list[str]:
    """Return what the model itself wrote, thought and called."""
    theirs = [
        m
        for m in body[wire.messages_key]
        if m.get("role") in ("assistant", "model") or "call_id" in m or "summary" in m
    ]
    return [json.dumps(m, sort_keys=True) for m in theirs if not m.get("type", "").endswith("_output")]


@requirement("law.2")
@pytest.mark.parametrize(("name", "sees"), [*((name, True) for name in SEEDS), *((name, False) for name in BLIND)])
async def test_an_extended_request_stays_an_extension(name: str, sees: bool) -> None:
    wire = seeds()[name].wire
    desk = Desk(sees=sees, references=True)
    asked, sent = [], []
    for body in life(name):
        after = await desk.sent(body, wire, seeds()[name].path)
        asked.append(normal(body, wire))
        sent.append(normal(after, wire))
        assert beside_user(after, wire) == beside_user(body, wire), "a thought or a call was touched"
        assert [p for p in payloads(after) if not p.is_pixels] == []
    assert len(asked) > STEPS
    assert sum(whole[: len(part)] == part for part, whole in pairwise(asked)) > STEPS // 2
    assert list(broken(asked, sent)) == []


@requirement("law.2", "tell.holds", "FR-2.1.beside")
@pytest.mark.parametrize("name", BLIND)
async def test_descriptions_and_joint_descriptions_keep_their_places(name: str) -> None:
    """No two descriptions are the same and two processes take turns, so that a second description would show."""
    wire, path = seeds()[name].wire, seeds()[name].path
    seer = ScriptedSeer([f"look {number} " * 40 for number in range(2000)])
    first = Desk(sees=False, seer=seer, include_context=True, max_batch=4)
    desks = (first, Desk(sees=False, seer=seer, include_context=True, max_batch=4, record=first.record))
    asked, sent = [], []
    for number, body in enumerate(life(name)):
        after = await desks[number % 2].sent(body, wire, path)
        asked.append(normal(body, wire))
        sent.append(normal(after, wire))
    assert sum("<vision_proxy_joint_description" in words for words in sent[-1]) > 1
    assert list(broken(asked, sent)) == []


@requirement("law.2", "FR-2.1.beside")
async def test_joint_descriptions_leave_seldom_and_for_good() -> None:
    name = "claude-code/read-2"
    wire, path = seeds()[name].wire, seeds()[name].path

    class Wordy(ScriptedSeer):
        """Describes one image briefly and several at length."""

        async def ask(self, question: Question) -> SeerAnswer | Refusal:
            self.questions.append(question)
            times = 500 if len(question.images) > 1 else 1
            return SeerAnswer(f"look {len(self.questions)} " * times, seer=self.name)

    seer = Wordy()
    desk = Desk(sees=False, seer=seer, include_context=True, max_batch=4, retention=Retention())
    talk = Growing(seeds()[name])
    standing: list[set[str]] = []
    sent = []
    for number in range(1, 61):
        talk.step()
        if number % 3 == 0:
            talk.say(f"go on with {number}")
        after = await desk.sent(talk.body(), wire, path)
        sent.append(normal(after, wire))
        standing.append(set(re.findall(r"joint_description.*?look (\d+) ", "".join(sent[-1]))))
    moves = [n for n, (one, two) in enumerate(pairwise(sent)) if two[: len(one)] != one]
    assert [n for n, (one, two) in enumerate(pairwise(standing)) if one - two] == moves, "nothing else changes"
    assert 1 <= len(moves) <= 10, moves
    ever = set[str]()
    for one, two in pairwise(standing):
        ever |= one
        assert two & ever <= one, "what has left does not come back"


def test_a_broken_prefix_is_detected() -> None:
    asked = [["h", "a"], ["h", "a", "b"], ["h", "x"], ["h", "a", "b", "c"]]
    assert list(broken(asked, asked)) == []
    assert list(broken(asked, [["h", "a"], ["h", "A", "b"], ["h", "x"], ["h", "a", "b", "c"]])) == [(0, 1), (1, 3)]


@requirement("law.2", "retain.batches", "retain.stays")
@pytest.mark.parametrize("name", ["pi/read.anthropic-2", "qwen-code/read-2", "codex/read-2", "gemini-cli/read-3"])
async def test_forty_views_change_the_prefix_five_times_at_most(name: str, tmp_path: Path) -> None:
    talk = Growing(seeds()[name], folder=str(tmp_path), size=(1200, 900))
    views = await forty_views(talk, Desk(sees=True, retention=Retention()), tmp_path)
    assert 1 <= len(views.moves) <= 5, views.moves
    assert views.pasted_stayed
    assert [n for n, (one, two) in enumerate(pairwise(views.told)) if two > one] == views.moves, "untold"
    assert len(views.live[-1]) < 40
    ever: set[str] = set()
    for one, two in pairwise(views.live):
        ever |= set(one)
        assert set(two) & ever <= set(one), "what was retired stays retired"


@requirement("retain.fold")
async def test_a_replica_without_memory_sends_the_same(tmp_path: Path) -> None:
    seed = seeds()["claude-code/read-2"]
    talk = Growing(seed, folder=str(tmp_path), size=(1200, 900))
    known = Desk(sees=True, retention=Retention())
    for number in range(1, 31):
        (tmp_path / f"{number}.png").write_bytes(picture(number * 7, (1200, 900)))
        talk.step()
        sent = await known.sent(talk.body(), seed.wire, seed.path)
    assert len(list(payloads(sent))) < 30
    assert await Desk(sees=True, retention=Retention()).sent(talk.body(), seed.wire, seed.path) == sent


def test_every_wire_has_growing_conversations() -> None:
    assert {capture.wire for capture in seeds().values()} == set(WIRES)
    assert set(seeds()) == set(SEEDS)
