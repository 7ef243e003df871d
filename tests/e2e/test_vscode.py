"""The README's lines for VS Code, in VS Code: its agent has the tools, and the picture of one reaches the model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Play
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


@requirement("mcp.vscode")
def test_the_picture_of_view_image_reaches_the_model_of_vs_code(vscode: str, play: Play, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "shapes.png").write_bytes(paint_quadrants(COLOURS))
    block = blocks()["VS Code"]
    outcome = play(
        [sys.executable, str(WINDOW), vscode, "{url}/v1/messages", WORDS],
        provider="seeing",
        script=[[("mcp_sightline_view_image", {"path": "shapes.png"})]],
        files={project / block.file: block.text},
    )
    assert outcome.last.code == 0, outcome.last.stderr
    assert describe_quadrants(COLOURS) in outcome.last.stdout, outcome.last
    asked, shown = outcome.requests
    offered = [tool["name"] for tool in json.loads(asked.body)["tools"]]
    assert {f"mcp_sightline_{tool}" for tool in TOOLS} <= {*offered}
    assert (asked.pictures, shown.pictures) == (0, 1)
