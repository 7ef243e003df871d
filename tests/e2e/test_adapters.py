"""Agents of real frameworks, in environments of their own, see the images of their tools by their adapters."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_client_lines import find_environment
from tests.requirements import requirement
from tests.scripted.eye import Seen
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider
from tests.scripted.talk import Asked, Call, Said, Script, speak

ROOT = Path(__file__).parents[2]
SEEING = {
    "openai_chat": "deepseek-v4-flash",
    "openai_responses": "gpt-5.4",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-2.5-pro",
}
BLIND = {"openai_chat": "deepseek-v4-pro"}
MODELS = (("deepseek-v4-pro", "deepseek"), ("*", "sees"))
MESSAGES = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages", "gemini": "contents"}

ALL_WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini")
CASES = [
    *(("langchain", wire) for wire in ALL_WIRES),
    *(("pydantic_ai", wire) for wire in ALL_WIRES),
    ("openai_agents", "openai_chat"),
    ("openai_agents", "openai_responses"),
    ("litellm", "openai_chat"),
    ("litellm", "anthropic"),
    ("google_adk", "gemini"),
    ("smolagents", "openai_chat"),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of Sightline, unpacked: frameworks import it as a user's program does."""
    folder = tmp_path_factory.mktemp("package")
    python = ROOT / ".venv/bin/python"
    subprocess.run(
        [python, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder], cwd=ROOT, check=True
    )
    (wheel,) = folder.glob("*.whl")
    subprocess.run([python, "-m", "zipfile", "--extract", wheel, folder / "site"], check=True)
    return folder / "site"


class Stage:
    """A folder with ten pictures, a scripted provider, and a framework that talks to it."""

    def __init__(self, folder: Path, package: Path, framework: str, wire: str, provider: Provider) -> None:
        self.folder, self.framework, self.wire, self.provider = folder, framework, wire, provider
        for number in range(10):
            (folder / f"shot{number}.png").write_bytes(paint_quadrants(some_colours(number), (640, 400)))
        bases = dict.fromkeys(ALL_WIRES, provider.url) | {"openai_chat": f"{provider.url}/v1"}
        own = {"deepseek": {"baseUrl": bases}}
        self.env = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(folder),
            "PYTHONPATH": f"{package}:{ROOT}",
            "SIGHTLINE_HOME": str(folder / "home"),
            "SIGHTLINE_UPSTREAMS": json.dumps(own),
            "DEEPSEEK_API_KEY": "k",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def converse(self, tasks: Sequence[dict[str, Any]], *, asynchronous: bool = False, stream: bool = False) -> Any:
        """Return the answers, and how many images the framework's history holds at the end."""
        python = find_environment(self.framework.replace("_", "-")) / "python"
        given = {"wire": self.wire, "url": self.provider.url, "tasks": tasks}
        done = subprocess.run(
            [python, "-m", f"tests.e2e.adapters.drive_{self.framework}"],
            input=json.dumps({**given, "asynchronous": asynchronous, "stream": stream}),
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(each.body) for each in self.provider.exchanges if each.method == "POST"]


def play(script: Script) -> Any:
    """A mind that plays its script by the number of the request: smolagents keeps tool calls as text."""
    requests = iter(script)

    def answer(asked: Asked, seen: Sequence[Seen], _script: Script) -> Said:
        step = next(requests, None) if "view_image" in asked.tools else None
        return Said("", tuple(step)) if step else speak(asked, seen, ())

    return answer


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path, package: Path) -> Iterator[Stage]:
    framework, wire = request.param
    steps = [[view(0)], [view(1), view(2)]]
    if framework == "smolagents":  # which answers by a tool; each of its turns ends so
        steps += [[Call("final_answer", {"answer": "done"})]]
    with Provider(MODELS, mind=play(steps)) as provider:
        yield Stage(tmp_path, package, framework, wire, provider)


def view(number: int) -> Call:
    return Call("view_image", {"path": f"shot{number}.png"})


def list_cases() -> list[Any]:
    """Each case of a framework shows its requirement."""
    return [
        pytest.param((framework, wire), id=f"{framework}-{wire}", marks=requirement(f"adapter.{framework}"))
        for framework, wire in CASES
    ]


@pytest.mark.parametrize("stage", list_cases(), indirect=True)
def test_thirty_turns_with_ten_images(stage: Stage) -> None:
    """A tool's images reach the model as pixels, in parallel calls too, and the history stays as it was."""
    model = SEEING[stage.wire]
    first, *rest = [{"text": f"What do you see? ({turn})", "model": model} for turn in range(30)]
    pasted = stage.framework not in ("litellm", "smolagents")  # whose conversation has only tools' images here
    for number, task in enumerate(rest[:7] if pasted else ()):
        task["image"] = str(stage.folder / f"shot{number + 3}.png")
    whole = stage.converse([first, *(rest if pasted else ())])
    count = 10 if pasted else 3
    if stage.framework != "smolagents":
        assert "image 3 of 3: quadrants" in whole["answers"][0]
        assert whole["answers"][-1].count("quadrants") == count
    assert whole["kept"] == count
    *_, last = bodies = stage.bodies()
    assert json.dumps(last).count("iVBORw0KGgo") == count, "each image is sent once"
    key = MESSAGES[stage.wire]
    for before, after in pairwise(bodies):
        assert after[key][: len(before[key]) - 1] == before[key][:-1], "a request begins like the one before it"
