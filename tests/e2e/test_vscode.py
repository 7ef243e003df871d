"""The README's lines for VS Code, in VS Code: its agent has the tools, and the picture of one reaches the model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Play
from tests.e2e.drive import Outcome
from tests.mcp.readme import blocks
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours

COLOURS = some_colours(seed=22)
WORDS = "Show me shapes.png with view_image and name its four quadrants"
WINDOW = Path(__file__).parent / "vscode" / "window.py"
TOOLS = ("analyze_image", "list_images", "video_analyze", "view_image", "vision_analyze")


@pytest.fixture(scope="session")
def vscode() -> str:
    """The folder of the pinned VS Code."""
    done = subprocess.run([ROOT / "scripts" / "vscode-env"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def asked(vscode: str, play: Play, tmp_path: Path) -> Callable[..., Outcome]:
    """Ask VS Code's agent for the picture of the folder, with the README's lines in it."""
    project = tmp_path / "project"
    (project / "shapes.png").write_bytes(paint_quadrants(COLOURS))
    block = blocks()["VS Code"]

    def ask(api: str, *options: str) -> Outcome:
        outcome = play(
            [sys.executable, str(WINDOW), vscode, api, "{url}", WORDS, *options],
            provider="seeing",
            script=[[("mcp_sightline_view_image", {"path": "shapes.png"})]],
            files={project / block.file: block.text},
        )
        assert outcome.last.code == 0, outcome.last.stderr
        return outcome

    return ask


@requirement("mcp.vscode")
def test_the_image_of_view_image_reaches_the_model_of_vs_code(asked: Callable[..., Outcome]) -> None:
    outcome = asked("messages")
    assert describe_quadrants(COLOURS) in outcome.last.stdout, outcome.last
    first, second = outcome.requests
    offered = [tool["name"] for tool in json.loads(first.body)["tools"]]
    assert {f"mcp_sightline_{tool}" for tool in TOOLS} <= {*offered}
    assert (first.pictures, second.pictures) == (0, 1)


@requirement("mcp.vscode.proxy")
def test_an_image_that_would_be_rejected_passes_through_the_proxy(asked: Callable[..., Outcome]) -> None:
    outcome = asked("chat-completions", "--proxied")
    assert describe_quadrants(COLOURS) in outcome.last.stdout, outcome.last
    first, second = outcome.requests
    assert (first.pictures, second.pictures) == (0, 1)
    *_, result, hoisted = json.loads(second.body)["messages"]
    assert (result["role"], hoisted["role"]) == ("tool", "user")
    assert "image_url" not in {part["type"] for part in result["content"]}
    assert "[image from the tool call " in hoisted["content"][0]["text"]
