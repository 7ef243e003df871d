"""Whose eyes these are: the record, the folders that may be read, the limits, the tools that are offered."""

from __future__ import annotations

import atexit
import functools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.engine.local import readers
from sightline.look.analyze_pixels import TASK as EXACT
from sightline.look.part import TASK
from sightline.model.image import Target
from sightline.model.ports import Record
from sightline.pixels.worker import TASKS, Workers
from sightline.settings import Settings, load
from sightline.sources.file import Policy, policy_for
from sightline.store import open_record

if TYPE_CHECKING:
    from sightline.sources.web import Grant

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
    network: Grant | None = None  # the host's grant to view what is at a web address
    settings: Settings | None = None  # of its user; None: no tool that asks somebody is offered

    @property
    def reach(self) -> str | None:
        """The scope whose images may be seen by their sha256."""
        return None if self.owner else self.scope


def door(settings: Settings | None = None, *, network: bool = False) -> Door:
    """The user's own: settings, record, and the folder in which this process works now.

    With `network` the host grants a view what is at a public https address. No setting and no caller of a tool can.
    """
    known = settings or load()
    record = opened(known.folder, known.record)
    working, temporary = _working(), _temporary()
    home = Path(os.path.expanduser("~"))  # noqa: PTH111, which raises nothing where there is none
    asked, own = home if home in known.fs_reach else None, (known.file, known.folder)
    policy = policy_for(working, temporary, known.fs_reach, asked, closed=own)
    scope, grant = record.scope_of(""), _granted() if network else None
    return Door(record, scope, policy, workers(), toolset=known.toolset, owner=True, network=grant, settings=known)


def _granted() -> Grant:
    from sightline.sources.web import Grant

    return Grant()


def _working() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # somebody has removed it
        return None


def _temporary() -> Path | None:
    try:
        return Path(tempfile.gettempdir())
    except OSError:  # there is none that can be written
        return None


@functools.cache
def opened(folder: Path, kind: str) -> Record:
    """Open as long as the process is: one record serves every call and every thread."""
    record = open_record(folder, kind="memory" if kind == "memory" else "disk")
    atexit.register(record.close)
    return record


@functools.cache
def workers() -> Workers:
    """The processes in which this one has its pixels decoded."""
    shared = Workers({**TASKS, **TASK, **EXACT})
    atexit.register(shared.end)
    return shared


@functools.cache
def reading() -> Workers:
    """The processes in which the local seer reads for this one."""
    shared = readers()
    atexit.register(shared.end)
    return shared


def _forked() -> None:
    """A fork has none of the threads that wait for them."""
    workers.cache_clear()
    reading.cache_clear()


os.register_at_fork(after_in_child=_forked)
