"""What the tests of the command share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Path:
    """Where settings and record of this test stand."""
    return Path(os.environ["SIGHTLINE_HOME"])
