"""Fixtures: a record of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from sightline.model.ports import Store
from sightline.store import open_record


@pytest.fixture(params=["disk", "memory"])
def record(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    kind: Literal["disk", "memory"] = request.param
    opened = open_record(tmp_path / "record", kind=kind)
    yield opened
    opened.close()
