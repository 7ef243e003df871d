"""A folder that may be read, and a context and a session that may read no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.api.session import Session, ToolContext
from sightline.runtime import get_shared_workers
from sightline.sources.files import PathPolicy
from sightline.store import open_record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that may be read; its parent may not."""
    working = tmp_path / "working"
    working.mkdir()
    return working


@pytest.fixture
def context(tmp_path: Path, folder: Path) -> Iterator[ToolContext]:
    record = open_record(tmp_path / "record")
    policy = PathPolicy((folder.resolve(),))
    yield ToolContext(record, record.compute_scope("test"), policy, get_shared_workers(), can_edit=True)
    record.close()


@pytest.fixture
def session(context: ToolContext) -> Session:
    return Session.from_context(context)
