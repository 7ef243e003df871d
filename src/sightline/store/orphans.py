"""Blobs that no row names: deleting them, or moving them aside."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from sightline.store.read_caches import Blobs
from sightline.store.record_folder import BLOBS_SUFFIX, FileBlobs, choose_damaged_path
from sightline.store.retention import find_orphans
from sightline.store.sql import SqlConnection

_log = logging.getLogger(__name__)


def delete_orphans(connection: SqlConnection, blobs: Blobs, names: Iterable[str]) -> int:
    """Delete those of these blobs that no row names, and return how many.

    This happens within the transaction: a process that stores the same image meanwhile finds it missing and writes it
    again. A crash in between leaves rows without bytes, which read as absent.
    """
    orphans = find_orphans(connection, names)
    if orphans:
        blobs.delete(orphans)
    return len(orphans)


def move_orphans(connection: SqlConnection, blobs: Blobs, folder: Path, now: float) -> None:
    """Move the blobs that no row names aside. They expire there, and the next `forget` deletes them.

    A crash leaves one for each image that was being written. But the database may also be older than the blobs, such as
    a backup that was restored without them, and then they may be all that is left of these images.
    """
    orphans = find_orphans(connection, blobs.list_names())
    if not orphans or not isinstance(blobs, FileBlobs):  # in memory, no other program can have left any
        return
    aside = choose_damaged_path(folder, int(now))
    aside = aside.with_name(f"{aside.name}{BLOBS_SUFFIX}")
    for name in orphans:
        blobs.move(name, aside)
    _log.warning(
        "%d of the images have no rows in the record: a program was killed, or the database is older than they"
        " are; they were moved to %s",
        *(len(orphans), aside),
    )
