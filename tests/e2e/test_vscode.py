"""The README's lines for VS Code, in VS Code: it starts the server, and its models can be shown a picture."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Play
from tests.mcp.readme import blocks
from tests.requirements import requirement
from tests.scripted.eye import look
from tests.scripted.pictures import paint_quadrants, some_colours

COLOURS = some_colours(seed=22)
WINDOW = Path(__file__).parent / "vscode" / "window.py"
TOOLS = ("analyze_image", "list_images", "video_analyze", "view_image", "vision_analyze")


@pytest.fixture(scope="session")
def vscode() -> str:
    """The folder of the pinned VS Code."""
    done = subprocess.run([ROOT / "scripts" / "vscode-env"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


@requirement("mcp.vscode")
def test_vs_code_starts_the_server_and_is_shown_a_picture(vscode: str, play: Play, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "shapes.png").write_bytes(paint_quadrants(COLOURS))
    block = blocks()["VS Code"]
    call = ["mcp_sightline_view_image", json.dumps({"path": "shapes.png"})]
    outcome = play(
        [sys.executable, str(WINDOW), vscode, *call],
        provider="seeing",
        files={project / block.file: block.text},
    )
    assert outcome.last.code == 0, outcome.last.stderr
    told = json.loads(outcome.last.stdout)
    assert "error" not in told, (told, outcome.last.stderr)
    assert {f"mcp_sightline_{tool}" for tool in TOOLS} == {tool for tool in told["tools"] if "sightline" in tool}
    words, picture = told["content"]
    assert json.loads(words["text"])["ok"] is True
    assert picture["mime"] == "image/png"
    seen = look(b64decode(picture["data"]))
    assert seen
    assert seen.quadrants == COLOURS
