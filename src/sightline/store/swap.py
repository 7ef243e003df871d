"""Putting a repaired database in the place of the damaged one, so that a crash at any moment does no harm.

The old log must be gone before the new database is in place: SQLite would apply it there. But without its log the old
database says what it said before the last changes, and a consent that was withdrawn in the log would count again. So a
marker is written first, and while it is there no program opens the record (see `check_folder`):

1. Write the marker, which names the new file.
2. Give the damaged database a second name.
3. Move its log to that name, and remove the file of locks.
4. Put the new database in place.
5. Remove the marker.

If a repair was killed meanwhile, the next one looks whether the new file is in place. Then only step 5 is missing; else
the log is moved back, and the repair begins again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from sightline.disk import settle, write_whole
from sightline.store.database import file_identity
from sightline.store.home import REPAIRING, ROWS
from sightline.store.log import log_of


@dataclass(frozen=True, slots=True)
class Swap:
    aside: str  # the second name of the damaged database
    consents_lost: bool
    withdrawn: tuple[str, ...]


def swap(folder: Path, new: Path, done: Swap) -> None:
    """Put the database `new` in place. The damaged one keeps its log beside it under the name `done.aside`."""
    rows, aside = folder / ROWS, folder / done.aside
    write_whole(folder / REPAIRING, json.dumps({**asdict(done), "new": file_identity(new)}).encode())
    with suppress(FileNotFoundError):
        if rows.is_file():
            os.link(rows, aside)  # so that there is never no database at all
        else:
            rows.rename(aside)
    with suppress(FileNotFoundError):
        log_of(rows).rename(log_of(aside))
    rows.with_name(f"{ROWS}-shm").unlink(missing_ok=True)
    settle(folder)
    new.replace(rows)
    _remove_marker(folder)


def resume_swap(folder: Path) -> Swap | None:
    """Finish what a killed repair has begun, and return that; None: there is nothing, or it was undone.

    A marker that cannot be read stays: then nothing is known about the log, and no consent can be relied on.
    """
    try:
        marker = json.loads((folder / REPAIRING).read_bytes())
        rows, new = folder / ROWS, tuple(marker["new"])
        done = Swap(marker["aside"], marker["consents_lost"], tuple(marker["withdrawn"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    is_done = file_identity(rows) == new
    if not is_done:
        _undo(rows, folder / done.aside)
    _remove_marker(folder)
    return done if is_done else None


def _undo(rows: Path, aside: Path) -> None:
    if log_of(aside).exists() and not log_of(rows).exists():
        log_of(aside).rename(log_of(rows))
    if aside.exists() and not rows.exists():
        aside.rename(rows)
    elif aside.is_file():
        aside.unlink()


def _remove_marker(folder: Path) -> None:
    settle(folder)
    (folder / REPAIRING).unlink()
    settle(folder)
