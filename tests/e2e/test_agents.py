"""Every agent, headless, in front of a provider that answers only from the pixels it was sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import AGENTS, GEMINI, READING, Agent, at_home, pointed, through
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


@pytest.fixture(params=READING)
def reading(request: pytest.FixtureRequest) -> Agent:
    return READING[request.param]


def answer_of(outcome: Outcome) -> str:
    end = outcome.last
    assert end.code == 0, f"{end.stdout}\n{end.stderr}\n{outcome.requests}"
    return end.stdout


def shown(outcome: Outcome, model: str) -> list[Request]:
    return [one for one in outcome.requests if one.model == model and one.pictures]


@requirement("e2e.read.seeing")
def test_the_agents_own_tool_reads_an_image_for_a_seeing_model(
    reading: Agent, play: Play, picture: Path, home: Path
) -> None:
    outcome = play(
        through(reading.ask(reading.seeing, f"Read {picture} and {WORDS}")),
        provider="seeing",
        script=[[reading.reads(str(picture))]],
        files=at_home(reading, home),
        environment=dict(reading.environment),
    )
    assert SHOWN in answer_of(outcome)
    assert shown(outcome, reading.seeing)


@requirement("e2e.read.blind")
def test_a_blind_model_gets_a_description_of_what_the_agents_tool_read(
    reading: Agent, play: Play, picture: Path, home: Path
) -> None:
    outcome = play(
        through(reading.ask(reading.blind, f"Read {picture} and {WORDS}")),
        provider="blind",
        script=[[reading.reads(str(picture))]],
        files=at_home(reading, home, preset="deepseek"),
        environment=dict(reading.environment),
    )
    said = answer_of(outcome)
    assert "I was told" in said
    assert SHOWN in said
    assert not shown(outcome, reading.blind)


@requirement("run.copilot.sees")
@pytest.mark.parametrize("provider", ["seeing", "blind"])
def test_copilots_variables_are_enough_for_images_its_tool_reads(
    play: Play, picture: Path, home: Path, provider: str
) -> None:
    """By its variables alone it shows its model no picture of a tool, and calls that model by its bare name."""
    model = {"seeing": "some-model", "blind": "deepseek-v4-pro"}[provider]
    own = {"COPILOT_PROVIDER_BASE_URL": "{url}/v1", "COPILOT_PROVIDER_API_KEY": "sk-own"}
    named = {"COPILOT_MODEL": model} if provider == "seeing" else {}
    known = {"upstreams": {"scripted": {"baseUrl": "{url}/v1", "preset": "deepseek"}}}
    words = ["copilot", "--allow-all-tools", *([] if named else ["--model", model]), "-p", f"Read it and {WORDS}"]
    outcome = play(
        words,
        ["sightline", "run", "--", *words],
        provider=provider,
        script=[[AGENTS["copilot"].reads(str(picture))]],
        files={home / "sightline" / "vision-proxy.json": json.dumps(known)} if provider == "blind" else {},
        environment={**AGENTS["copilot"].environment, **own, **named},
    )
    assert SHOWN not in outcome.ends[0].stdout
    assert SHOWN in answer_of(outcome)
    assert bool(shown(outcome, model)) is (provider == "seeing")
    assert {one.key for one in outcome.requests if one.model == model} == {"sk-own"}
    assert not list(picture.parents[1].rglob("providers.json")), "it ends with the run"


@requirement("e2e.attach.seeing", "e2e.attach.blind")
@pytest.mark.parametrize("provider", ["seeing", "blind"])
def test_an_image_that_the_user_attaches_arrives(
    reading: Agent, play: Play, picture: Path, home: Path, provider: str
) -> None:
    model = reading.seeing if provider == "seeing" else reading.blind
    outcome = play(
        through(reading.attach(model, WORDS, str(picture))),
        provider=provider,
        files=at_home(reading, home, **({"preset": "deepseek"} if provider == "blind" else {})),
        environment=dict(reading.environment),
    )
    assert SHOWN in answer_of(outcome)
    assert bool(shown(outcome, model)) is (provider == "seeing")


@requirement("e2e.prefix")
def test_each_request_of_three_turns_extends_the_previous_one(
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
    told = [conversation(one) for one in outcome.requests if r"<vision_proxy_description\n" in one.body]
    assert len(told) >= 3
    assert all(each[: len(told[0])] == told[0] for each in told), "what was said at a place is said there again"
    assert sum(bool(one.pictures) for one in outcome.requests) == 1, "and is paid for once"


@requirement("e2e.gemini")
def test_a_gemini_conversation_keeps_its_description(play: Play, picture: Path, home: Path) -> None:
    outcome = play(
        through(GEMINI.attach(GEMINI.blind, WORDS, str(picture))),
        through(GEMINI.go_on(GEMINI.blind, "And the first one?")),
        through(GEMINI.go_on(GEMINI.blind, "And the last one?")),
        provider="blind",
        files=at_home(GEMINI, home, preset="deepseek"),
        environment=dict(GEMINI.environment),
    )
    assert SHOWN in answer_of(outcome)
    said = [json.loads(one.body)["contents"] for one in outcome.requests if one.model == GEMINI.blind]
    assert [len(each) for each in said] == [1, 3, 5]
    told = [each[0]["parts"] for each in said]
    first = [[part for part in parts if "<vision_proxy_description" in part.get("text", "")] for parts in told]
    assert len(first[0]) == 1
    assert first[0] == first[1] == first[2]
    assert sum(bool(one.pictures) for one in outcome.requests) == 1, "and is paid for once"


@requirement("e2e.command")
def test_a_command_is_answered_locally_and_removes_only_itself(
    agent: Agent, play: Play, picture: Path, home: Path
) -> None:
    project = {picture.parent / name: "The word is PANGOLIN." for name in ("CLAUDE.md", "AGENTS.md", "QWEN.md")}
    outcome = play(
        through(agent.ask(agent.seeing, "/vision-proxy status")),
        through(agent.go_on(agent.seeing, "hello you")),
        provider="seeing",
        files={**at_home(agent, home), **project},
        environment=dict(agent.environment),
    )
    assert "mode: fallback" in outcome.ends[0].stdout
    answer_of(outcome)
    (last,) = [one for one in outcome.requests if one.model == agent.seeing and "hello you" in one.body][-1:]
    assert "PANGOLIN" in last.body
    assert not [one for one in outcome.requests if "/vision-proxy status" in one.body]


def conversation(request: Request) -> list[str]:
    """What was said from the model's first words on: an agent's own preface changes from one start to the next."""
    body = json.loads(request.body)
    said = [_plain(each) for each in body.get("messages") or body.get("input")]
    first = next(n for n, each in enumerate(said) if each.get("role") == "assistant" or each.get("type") in _CALLS)
    return [json.dumps(each) for each in said[first:] if each.get("role") not in ("system", "developer")]


_CALLS = ("function_call", "reasoning")


def _plain(value: Any) -> Any:
    """Without the marks of the prompt cache, which move, and what a client itself writes anew when it is resumed."""
    match value:
        case [{"type": "text", "text": str(text)}]:
            return text
        case dict():
            kept = {name: inner for name, inner in value.items() if inner is not None and not name.startswith("__")}
            kept |= {"arguments": json.loads(kept["arguments"])} if isinstance(kept.get("arguments"), str) else {}
            return {name: _plain(inner) for name, inner in kept.items() if name != "cache_control"}
        case list():
            return [_plain(inner) for inner in value]
        case _:
            return value


@requirement("e2e.heals")
def test_a_history_that_the_provider_rejects_heals(agent: Agent, play: Play, picture: Path, home: Path) -> None:
    """Without Sightline every turn fails from the picture on; with it the same conversation goes on."""
    environment = {**agent.environment, **agent.direct, "CLAUDE_CODE_MAX_RETRIES": "0"}
    outcome = play(
        pointed(agent, agent.ask(agent.blind, f"Read {picture} and {WORDS}")),
        pointed(agent, agent.go_on(agent.blind, "Go on")),
        through(agent.go_on(agent.blind, f"Now {WORDS}")),
        provider="blind",
        script=[[agent.reads(str(picture))]],
        files=at_home(agent, home, preset="deepseek"),
        environment=environment,
    )
    first, second, _ = outcome.ends
    assert not any(SHOWN in each.stdout for each in (first, second))
    assert sum(one.status == 400 for one in outcome.requests) > 1
    assert SHOWN in answer_of(outcome)
