"""What every test gets: a home of its own, nobody's keys or settings, and steady examples."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure, and a failure is the same one every time.
settings.register_profile("sightline", deadline=None, derandomize=True, database=None)
settings.load_profile("sightline")

# Settings, keys and proxies of the machine that would change what a test sees.
PERSONAL = ("SIGHTLINE_", "PI_VISION_PROXY_", "ANTHROPIC_", "OPENAI_", "CLAUDE_")
PERSONAL_ENDINGS = ("_API_KEY", "_AUTH_TOKEN", "_PROXY", "_proxy")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: many tests wait, for a process or for a clock."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def _a_home_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in tuple(os.environ):
        if name.startswith(PERSONAL) or name.endswith(PERSONAL_ENDINGS):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("SIGHTLINE_HOME", str(home))
    return home
