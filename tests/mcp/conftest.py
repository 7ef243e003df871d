"""Fixtures of the tests of the MCP server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mcp.serving import WAYS, Way
from tests.scripted.pictures import paint_quadrants, some_colours


@pytest.fixture(params=WAYS, ids="-".join)
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the server works in, with an image in it."""
    found = tmp_path / "work"
    found.mkdir()
    (found / "shot.png").write_bytes(paint_quadrants(some_colours(seed=5)))
    return found
