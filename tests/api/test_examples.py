"""The agents in examples/ see an image, against a scripted provider that answers from its pixels alone."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider
from tests.scripted.talk import Call

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPT = [[Call("view_image", {"path": "shot.png"})], [Call("view_image", {"path": "absent.png"})]]


def run_agent(name: str, *arguments: object) -> str:
    answer: str = runpy.run_path(str(EXAMPLES / name))["run"](*arguments, "What do you see?")
    return answer


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shot.png").write_bytes(paint_quadrants(some_colours(3), (640, 400)))
    with Provider(script=SCRIPT) as provider:
        yield provider


@requirement("library.examples")
def test_an_agent_on_chat_completions_sees_an_image(provider: Provider) -> None:
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k") as client:
        assert run_agent("agent_openai.py", client, "gpt-x").startswith("image 1 of 1: ")


@requirement("library.examples")
def test_an_agent_on_messages_sees_an_image(provider: Provider) -> None:
    with anthropic.Anthropic(base_url=provider.url, api_key="k") as client:
        assert run_agent("agent_anthropic.py", client, "claude-x").startswith("image 1 of 1: ")


@requirement("library.examples")
@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-pro"])
def test_an_agent_on_gemini_sees_an_image(provider: Provider, model: str) -> None:
    assert run_agent("agent_gemini.py", provider.url, "k", model).startswith("image 1 of 1: ")


@requirement("library.examples")
def test_the_agents_are_short() -> None:
    agents = sorted(EXAMPLES.glob("agent_*.py"))
    assert len(agents) > 8
    assert all(each.read_text().count("\n") < 40 for each in agents)
