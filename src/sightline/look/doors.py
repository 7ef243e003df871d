"""Whose eyes these are: the record, the folders that may be read, the limits, the tools that are offered."""

from __future__ import annotations

import atexit
import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sightline.look.part import TASK
from sightline.model.image import Target
from sightline.model.ports import Record
from sightline.pixels.worker import TASKS, Workers
from sightline.settings import Settings, load
from sightline.sources.file import Policy, policy_for
from sightline.store import open_record

NATIVE = ("image/png", "image/jpeg", "image/webp", "image/gif")  # what every provider takes
AS_IT_IS = 8 * 1024 * 1024  # bytes of a bitmap that is shown untouched
_EDGE = 8000  # the widest that any known provider takes
ANYONE = Target(NATIVE, encoded_bytes=4 * -(-AS_IT_IS // 3), edge=_EDGE)


@dataclass(frozen=True, slots=True)
class Door:
    record: Record
    scope: str  # what one scope has seen, no other finds by its sha256
    policy: Policy
    workers: Workers  # that know the task `part` beside those of their own
    target: Target = ANYONE  # of whoever will look at the pixels
    toolset: frozenset[str] = frozenset({"vision"})
    owner: bool = False  # of the record: who can read its files anyway may see every image in it

    @property
    def reach(self) -> str | None:
        """The scope whose images may be seen by their sha256."""
        return None if self.owner else self.scope


def door(settings: Settings | None = None) -> Door:
    """The user's own: settings, record, and the folder in which this process works now."""
    known = settings or load()
    record = _opened(known.folder, known.record)
    temporary = Path(tempfile.gettempdir())
    policy = policy_for(_working() or temporary, temporary, known.fs_reach, None)
    return Door(record, record.scope_of(""), policy, workers(), toolset=known.toolset, owner=True)


def _working() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # somebody has removed it
        return None


@functools.cache
def _opened(folder: Path, kind: str) -> Record:
    """Open as long as the process is: one record serves every call and every thread."""
    record = open_record(folder, kind="memory" if kind == "memory" else "disk")
    atexit.register(record.close)
    return record


@functools.cache
def workers() -> Workers:
    """The processes in which this one has its pixels decoded."""
    shared = Workers({**TASKS, **TASK})
    atexit.register(shared.end)
    return shared
