"""A folder that may be read, and eyes that see no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.api.session import Door
from sightline.runtime import shared_workers
from sightline.sources.file import Policy
from sightline.store import open_record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """May be read; the one that it stands in may not."""
    working = tmp_path / "working"
    working.mkdir()
    return working


@pytest.fixture
def door(tmp_path: Path, folder: Path) -> Iterator[Door]:
    record = open_record(tmp_path / "record")
    yield Door(record, record.scope_of("test"), Policy((folder.resolve(),)), shared_workers())
    record.close()
