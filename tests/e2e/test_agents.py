"""Every agent, headless, in front of a provider that answers only from the pixels it was sent."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.agents import AGENTS, Agent, at_home, pointed, through
from tests.e2e.conftest import Play
from tests.e2e.drive import Outcome, Request
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours

COLOURS = some_colours(seed=11)
SHOWN = describe_quadrants(COLOURS)
WORDS = "name its four quadrants"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "shapes.png"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(paint_quadrants(COLOURS))
    return path


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    return AGENTS[request.param]


def answer_of(outcome: Outcome) -> str:
    end = outcome.last
    assert end.code == 0, f"{end.stdout}\n{end.stderr}\n{outcome.requests}"
    return end.stdout


def shown(outcome: Outcome, model: str) -> list[Request]:
    return [one for one in outcome.requests if one.model == model and one.pictures]


@requirement("e2e.read.seeing")
def test_the_agents_own_tool_reads_a_picture_for_a_seeing_model(
    agent: Agent, play: Play, picture: Path, home: Path
) -> None:
    outcome = play(
        through(agent.ask(agent.seeing, f"Read {picture} and {WORDS}")),
        provider="seeing",
        script=[[agent.reads(str(picture))]],
        files=at_home(agent, home),
        environment=dict(agent.environment),
    )
    assert SHOWN in answer_of(outcome)
    assert shown(outcome, agent.seeing)


@requirement("e2e.read.blind")
def test_a_blind_model_is_told_what_the_agents_own_tool_has_read(
    agent: Agent, play: Play, picture: Path, home: Path
) -> None:
    outcome = play(
        through(agent.ask(agent.blind, f"Read {picture} and {WORDS}")),
        provider="blind",
        script=[[agent.reads(str(picture))]],
        files=at_home(agent, home, preset="deepseek"),
        environment=dict(agent.environment),
    )
    said = answer_of(outcome)
    assert "I was told" in said
    assert SHOWN in said
    assert not shown(outcome, agent.blind)


@requirement("e2e.attach.seeing", "e2e.attach.blind")
@pytest.mark.parametrize("provider", ["seeing", "blind"])
def test_a_picture_that_the_user_attaches(agent: Agent, play: Play, picture: Path, home: Path, provider: str) -> None:
    model = agent.seeing if provider == "seeing" else agent.blind
    outcome = play(
        through(agent.attach(model, WORDS, str(picture))),
        provider=provider,
        files=at_home(agent, home, **({"preset": "deepseek"} if provider == "blind" else {})),
        environment=dict(agent.environment),
    )
    assert SHOWN in answer_of(outcome)
    assert bool(shown(outcome, model)) is (provider == "seeing")


@requirement("e2e.prefix")
def test_over_three_turns_each_request_extends_the_last_one(
    agent: Agent, play: Play, picture: Path, home: Path
) -> None:
    outcome = play(
        through(agent.ask(agent.blind, f"Read {picture} and {WORDS}")),
        through(agent.go_on(agent.blind, "And the first one?")),
        through(agent.go_on(agent.blind, "And the last one?")),
        provider="blind",
        script=[[agent.reads(str(picture))]],
        files=at_home(agent, home, preset="deepseek"),
        environment=dict(agent.environment),
    )
    assert SHOWN in answer_of(outcome)
    told = [messages_of(one) for one in outcome.requests if one.model == agent.blind and "vision_proxy_des" in one.body]
    assert len(told) >= 3
    main = [each for each in told if each[: len(told[0])] == told[0]]
    assert len(main) >= 3, "what was said at a place is said there again"
    assert all(after[: len(before)] == before for before, after in pairwise(main))


def messages_of(request: Request) -> list[str]:
    """The messages of a request, without the marks of the prompt cache, which move."""
    body = json.loads(request.body)
    return [json.dumps(_plain(each)) for each in body.get("messages") or body.get("input")]


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if name != "cache_control"}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


@requirement("e2e.heals")
def test_a_history_that_the_provider_refuses_heals_behind_sightline(
    agent: Agent, play: Play, picture: Path, home: Path
) -> None:
    """Without Sightline every turn fails from the picture on; with it the same conversation goes on."""
    environment = {**agent.environment, **agent.direct, "CLAUDE_CODE_MAX_RETRIES": "0"}
    outcome = play(
        pointed(agent, agent.ask(agent.seeing, f"Read {picture} and {WORDS}")),
        pointed(agent, agent.go_on(agent.seeing, "Go on")),
        through(agent.go_on(agent.seeing, f"Now {WORDS}")),
        provider="narrow",
        script=[[agent.reads(str(picture))]],
        files=at_home(agent, home),
        environment=environment,
    )
    first, second, _ = outcome.ends
    assert not any(SHOWN in each.stdout for each in (first, second)), "the provider was not strict"
    assert any(one.status == 400 for one in outcome.requests)
    assert SHOWN in answer_of(outcome)
