"""The agents in examples/ see an image, against a scripted provider that answers from its pixels alone."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import sightline
from sightline.surfaces.adapters import TESTED_VERSIONS
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider
from tests.scripted.talk import Call

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ADAPTERS = ROOT / "src/sightline/surfaces/adapters"
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


@requirement("adapter.pages")
def test_each_adapter_has_a_page_with_the_code_of_its_example() -> None:
    pages = {page.stem: page.read_text("utf-8") for page in (ROOT / "docs" / "frameworks").glob("*.md")}
    texts = {each.name: each.read_text("utf-8") for each in EXAMPLES.iterdir()}
    examples = {
        Path(name).stem.removeprefix("agent_").replace("_", "-"): text
        for name, text in texts.items()
        if "surfaces.adapters" in text or "http_client" in text or "prepareStep" in text
    }
    assert len(examples) == 8
    for name, code in examples.items():
        assert code in pages["sdks" if name == "openai-client" else name]
    modules = {each.stem for each in ADAPTERS.glob("*.py")} - {"__init__", "message_preparation", "tool_calls"}
    assert {module.removesuffix("_plugin").replace("_", "-") for module in modules} <= pages.keys()


@requirement("adapter.pages")
def test_the_adapters_are_short() -> None:
    assert sum(each.read_text("utf-8").count("\n") for each in ADAPTERS.glob("*.py")) < 1300


@requirement("adapter.versions")
def test_the_tested_versions_are_those_of_the_pages_and_locks() -> None:
    index = (ROOT / "docs" / "frameworks" / "README.md").read_text("utf-8")
    for distribution, (lowest, newest) in TESTED_VERSIONS.items():
        assert f"{distribution} {lowest} to {newest} |" in index
        lock = ROOT / "requirements" / f"{distribution.removesuffix('-slim')}.txt"
        assert f"{distribution}=={newest}" in re.sub(r"\[.*?\]", "", lock.read_text("utf-8"))


@requirement("adapter.sdks")
def test_the_client_of_an_sdk_prepares_its_images(provider: Provider) -> None:
    http_client = sightline.http_client()
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k", http_client=http_client) as client:
        run = runpy.run_path(str(EXAMPLES / "agent_openai_client.py"))["run"]
        assert run(client, "gpt-x", "shot.png", "What do you see?").startswith("image 1 of 1: ")
