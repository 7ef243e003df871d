"""A blind model behind each agent looks closer by itself, and the agent never knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import AGENTS, Agent, at_home, through
from tests.e2e.conftest import Play
from tests.e2e.drive import Outcome, Request
from tests.e2e.test_agents import WORDS, answer_of, conversation
from tests.reader.pictures import page, saved
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours

COLOURS = some_colours(seed=23)
LEFT = describe_quadrants((COLOURS[0], COLOURS[0], COLOURS[2], COLOURS[2]))
"""What whoever looks at the left half sees: the same colour twice in each row."""
CROP = [{"image_index": 0, "normalized": {"x": 0, "y": 0, "width": 0.5, "height": 1}}]
LOOK: tuple[str, dict[str, Any]] = ("analyze_image", {"images": ["{image}"], "question": WORDS, "crop": CROP})


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "shapes.png"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(paint_quadrants(COLOURS))
    return path


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    return AGENTS[request.param]


def asked(outcome: Outcome) -> list[Request]:
    """The requests that carry a call of ours and its result."""
    return [one for one in outcome.requests if r"<vision_proxy_analysis\n" in one.body]


def offered(request: Request) -> list[str]:
    """The names of the tools in a request."""
    tools = json.loads(request.body).get("tools", [])
    return [(each.get("function") or each).get("name", each.get("type")) for each in tools]


@requirement("e2e.loop.crop", "e2e.loop.resumed")
def test_a_blind_model_asks_about_a_crop_and_keeps_what_it_learnt(
    agent: Agent, play: Play, picture: Path, home: Path
) -> None:
    outcome = play(
        through(agent.attach(agent.blind, WORDS, str(picture))),
        through(agent.go_on(agent.blind, "And now?")),
        provider="blind",
        script=[[LOOK]],
        files=at_home(agent, home, preset="deepseek"),
        environment=dict(agent.environment),
    )
    assert answer_of(outcome)
    first, later = outcome.ends
    assert LEFT in first.stdout
    assert "analyze_image" not in first.stdout + later.stdout
    assert LEFT in later.stdout, "in another process it still knows"
    told = [conversation(one) for one in asked(outcome)]
    assert len(told) >= 2
    assert all(each[: len(told[0])] == told[0] for each in told), "our call stands where it stood"


@requirement("e2e.loop.beside")
def test_our_call_works_beside_the_agents_own(agent: Agent, play: Play, picture: Path, home: Path) -> None:
    outcome = play(
        through(agent.attach(agent.blind, WORDS, str(picture))),
        provider="blind",
        script=[[LOOK, agent.reads(str(picture))]],
        files=at_home(agent, home, preset="deepseek"),
        environment=dict(agent.environment),
    )
    assert LEFT in answer_of(outcome)
    both = [one for one in asked(outcome) if agent.reads("")[0] in one.body]
    assert both, "what the agent's tool brought, and what ours did, are in one request"
    called = [names[0] for one in outcome.requests if (names := offered(one))[-1:] == ["analyze_image"]]
    assert called, "our tool is the last in the list"


@requirement("e2e.loop.third")
def test_the_third_error_code_is_found_with_a_crop(play: Play, home: Path, tmp_path: Path) -> None:
    """With no key and no network: Claude Code, a blind model, and what is read on this machine."""
    agent = AGENTS["claude"]
    shot = tmp_path / "project" / "errors.png"
    shot.write_bytes(saved(page(["E17 disk is full", "E23 no route", "E42 wrong key"])))
    below = [{"image_index": 0, "normalized": {"x": 0, "y": 0.26, "width": 1, "height": 0.2}}]
    look = ("analyze_image", {"images": ["{image}"], "question": "What text is there?", "crop": below})
    outcome = play(
        through(agent.attach(agent.blind, "What is the third error code in this screenshot?", str(shot))),
        provider="blind",
        script=[[look]],
        files=at_home(agent, home),
        environment={
            **agent.environment,
            "SIGHTLINE_SEER": "local",
            "SIGHTLINE_MODELS": json.dumps({agent.blind: {"vision": False}}),
        },
    )
    *_, last = answer_of(outcome).strip().splitlines()
    assert "E42 wrong key" in answer_of(outcome).rpartition("I was told:")[2], last
    assert "E17" not in answer_of(outcome).rpartition("I was told:")[2], "only the crop was looked at"
    assert not any(one.pictures for one in outcome.requests), "no pixel has left this machine"


@requirement("e2e.loop.compaction")
def test_a_conversation_continues_after_a_compaction(play: Play, picture: Path, home: Path) -> None:
    """Claude Code sums up what was said; where our call stood there is only the summary."""
    agent = AGENTS["claude"]
    outcome = play(
        through(agent.attach(agent.blind, WORDS, str(picture))),
        through(agent.go_on(agent.blind, "/compact")),
        through(agent.go_on(agent.blind, "And now?")),
        provider="blind",
        script=[[LOOK]],
        files=at_home(agent, home, preset="deepseek"),
        environment=dict(agent.environment),
    )
    assert answer_of(outcome)
    assert LEFT in outcome.ends[0].stdout
    assert all(one.status == 200 for one in outcome.requests)
    summed_up = [one for one in asked(outcome) if "TEXT ONLY" in one.body]
    assert summed_up, "what was looked up is part of what is summed up"
    assert r"<vision_proxy_analysis\n" not in outcome.requests[-1].body
