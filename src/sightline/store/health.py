"""What `sightline doctor` finds out about a record, without changing it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from sightline.model.refusal import Refusal
from sightline.store.bounds import NAMES
from sightline.store.damage import DamagedError
from sightline.store.database import Database, examine_file
from sightline.store.files import Blobs, Files
from sightline.store.home import BYTES, ROWS, check_folder, find_record_obstacle
from sightline.store.storage import TROUBLES, explain


@dataclass(frozen=True, slots=True)
class Health:
    trouble: Refusal | None = None  # why the record cannot be used, or not be written
    missing: int = 0  # images whose bytes are not there
    complete: bool = True  # false: the time was up before everything was looked at


def check_health(folder: Path, seconds: float) -> Health:
    """Look for damage, for images without bytes, and for what keeps the record from being written.

    It takes at most so many seconds.
    """
    until, rows = time.monotonic() + seconds, folder / ROWS
    try:
        check_folder(folder)
        if not rows.exists():
            return Health(_explain_obstacle(folder))
        found = examine_file(rows, seconds)
        if found.damage:
            raise DamagedError(found.damage[0])
        missing, complete = _count_missing(rows, Files(folder / BYTES, create=False), until)
    except TROUBLES as trouble:
        return Health(explain(folder, trouble))
    return Health(_explain_obstacle(folder), missing, found.complete and complete)


def _explain_obstacle(folder: Path) -> Refusal | None:
    obstacle = find_record_obstacle(folder)
    return explain(folder, obstacle) if obstacle else None


def _count_missing(rows: Path, blobs: Blobs, until: float) -> tuple[int, bool]:
    """Return how many images have no bytes, and whether all were looked at."""
    database = Database.read_only(rows)
    missing = 0
    try:
        for (name,) in database.rows(NAMES):
            if time.monotonic() > until:
                return missing, False
            missing += not blobs.holds(name)
    except ValueError as wrong:  # which is no sha256
        raise DamagedError(str(wrong)) from None
    finally:
        database.close()
    return missing, True
