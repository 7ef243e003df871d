"""Claude Code, headless, reads a picture with its own tool and is asked what it shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Play
from tests.e2e.drive import Outcome, Request
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours

MODEL = "claude-opus-5-5"  # blind on the blind provider, whose other models see
COLOURS = some_colours(seed=11)
SHOWN = describe_quadrants(COLOURS)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "shapes.png"
    path.write_bytes(paint_quadrants(COLOURS))
    return path


def upstream(home: Path, **facts: str) -> dict[Path, str]:
    """Settings of Sightline that give the scripted provider a name, and say what is known about it."""
    entry = {"baseUrl": "{url}", **facts}
    return {home / "sightline" / "vision-proxy.json": json.dumps({"upstreams": {"scripted": entry}})}


@pytest.fixture
def settings_of_claude(home: Path) -> dict[Path, str]:
    """Claude Code's own settings, pointed at the scripted provider; they beat the process environment."""
    return {home / ".claude" / "settings.json": json.dumps({"env": {"ANTHROPIC_BASE_URL": "{url}"}})}


def asked_about(picture: Path) -> list[str]:
    question = f"Read the picture {picture} and name its four quadrants"
    return ["claude", "--model", MODEL, "--allowedTools", "Read", "-p", question]


def reads(picture: Path) -> list[list[tuple[str, dict[str, str]]]]:
    return [[("Read", {"file_path": str(picture)})]]


def answer_of(outcome: Outcome) -> str:
    assert outcome.last.code == 0, f"{outcome.last.stdout}\n{outcome.last.stderr}"
    return outcome.last.stdout.strip()


def saw_the_pixels(outcome: Outcome) -> None:
    assert answer_of(outcome) == f"image 1 of 1: {SHOWN}"
    assert outcome.requests == [Request(MODEL, 0, 200), Request(MODEL, 1, 200)]


def was_told(outcome: Outcome) -> None:
    """The model answers out of a description that its seeing sibling gave; no picture is shown to it."""
    said = answer_of(outcome)
    assert said.startswith("I was told: ")
    assert SHOWN in said
    first, look, last = outcome.requests
    assert (first, last) == (Request(MODEL, 0, 200), Request(MODEL, 0, 200))
    assert (look.model != MODEL, look.pictures, look.status) == (True, 1, 200)


def test_a_blind_provider_ends_the_turn_without_sightline(play: Play, picture: Path) -> None:
    pointed = {"ANTHROPIC_BASE_URL": "{url}"}
    outcome = play(asked_about(picture), provider="blind", script=reads(picture), environment=pointed)
    assert outcome.last.code != 0
    assert "API Error: 400" in outcome.last.stdout
    assert not any(colour in outcome.last.stdout for colour in COLOURS)


@requirement("e2e.claude.seeing")
def test_a_seeing_provider_answers_from_the_pixels(play: Play, picture: Path, home: Path) -> None:
    command = ["sightline", "run", "--upstream", "scripted", "--", *asked_about(picture)]
    saw_the_pixels(play(command, provider="seeing", script=reads(picture), files=upstream(home)))


@requirement("e2e.claude.blind")
def test_a_blind_provider_gets_a_description_and_answers(play: Play, picture: Path, home: Path) -> None:
    command = ["sightline", "run", "--upstream", "scripted", "--", *asked_about(picture)]
    was_told(play(command, provider="blind", script=reads(picture), files=upstream(home, preset="deepseek")))


@requirement("e2e.claude.settings")
def test_the_seeing_upstream_in_the_agents_settings_is_used(
    play: Play, picture: Path, settings_of_claude: dict[Path, str]
) -> None:
    command = ["sightline", "run", "--", *asked_about(picture)]
    saw_the_pixels(play(command, provider="seeing", script=reads(picture), files=settings_of_claude))


@requirement("e2e.claude.settings")
def test_the_blind_upstream_in_the_agents_settings_is_used(
    play: Play, picture: Path, home: Path, settings_of_claude: dict[Path, str]
) -> None:
    command = ["sightline", "run", "--", *asked_about(picture)]
    files = settings_of_claude | upstream(home, preset="deepseek")
    was_told(play(command, provider="blind", script=reads(picture), files=files))


@requirement("wheel")
def test_a_wheel_in_an_empty_environment_does_the_same(play: Play, picture: Path, home: Path, wheel: Path) -> None:
    command = [str(wheel), "run", "--upstream", "scripted", "--", *asked_about(picture)]
    was_told(play(command, provider="blind", script=reads(picture), files=upstream(home, preset="deepseek")))
