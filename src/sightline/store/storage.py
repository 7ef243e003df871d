"""What a record is stored in at this moment, and what takes its place while that cannot be used.

| state       | where rows and bytes are | reads                | writes                      | consents      |
|-------------|--------------------------|----------------------|-----------------------------|---------------|
| `open`      | the folder               | yes                  | yes                         | as written    |
| `read_only` | the folder               | as far as they go    | fail                        | as written    |
| `stand_in`  | this process's memory    | what it kept itself  | gone with the process       | none          |
| `memory`    | this process's memory    | yes                  | as the user has chosen      | as written    |

A record that cannot be written (a full disk, or damage) is `read_only`; one that cannot be read, or whose consents are
damaged, is replaced by a `stand_in`. Neither is a reason to stop: requests go on. Nothing that has to be kept is
acknowledged in either state, and in a `stand_in` nothing is sent to a provider that needs consent.

Files can be removed or replaced under a running program: a user deletes the folder, `sightline store repair` puts a new
database in its place. SQLite would go on with the old file, which no other program sees, and a consent that was
withdrawn in the new one would be ignored. So before every write, and whenever consents are read, the files at the path
are compared with those that are open (device and inode: two calls of stat). Others than those are opened anew; where
that cannot be done at once, the state is `stand_in`. From a state that is not `open` the record is tried again every
minute, and as soon as its files change.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sightline.disk import explain_os_error
from sightline.model.refusal import Code, Refusal
from sightline.store.database import (
    DamagedError,
    Database,
    Examination,
    examine_file,
    file_state,
    is_busy,
    is_damage,
    is_full,
)
from sightline.store.files import Blobs, Files
from sightline.store.home import BYTES, REPAIRING, ROWS, Home, check_folder, find_record_obstacle
from sightline.store.migrations import ForeignDatabaseError, OtherVersionError
from sightline.store.retention import NAMES, Bounds
from sightline.store.sqlite_files import log_of

_log = logging.getLogger(__name__)
_RETRY_SECONDS = 60.0
_CHECK_SECONDS = 0.05  # for the check of a database that is opened; most take a few milliseconds
_LONG_CHECK_SECONDS = 300.0
TROUBLES = (OSError, sqlite3.Error)
REPAIR = "run: sightline store repair"

State = Literal["open", "read_only", "stand_in", "memory"]
Clock = Callable[[], float]


class ReplacedError(sqlite3.OperationalError):
    """The files of the record were replaced while something was written to those that were open."""


@dataclass(frozen=True, slots=True)
class Where:
    """The folder of a record, and the bounds there and in the memory that stands in for it."""

    folder: Path
    bounds: Bounds
    small: Bounds

    def files(self) -> tuple[object, ...]:
        """Return what changes when anything is written there, or put in its place."""
        rows = self.folder / ROWS
        return file_state(rows), file_state(log_of(rows)), file_state(self.folder / REPAIRING)


@dataclass(frozen=True, slots=True)
class _Found:
    """What the record is stored in, by the table above."""

    home: Home
    state: State
    reason: Refusal | None = None  # why the state is not `open`
    unchecked: bool = False  # the time did not suffice to look for damage everywhere

    def __str__(self) -> str:
        assert self.reason is not None
        what, remedy = self.reason.what, f" ({self.reason.remedy})" if self.reason.remedy else ""
        kept = (
            "nothing new is remembered" if self.state == "read_only" else "it is held in memory, and no consent counts"
        )
        return f"{what[:1].upper()}{what[1:]}; {kept}{remedy}"


class Storage:
    """The home that is used now, with its state."""

    def __init__(self, found: _Found, now: Clock, where: Where | None = None) -> None:
        self._found, self._now, self._where = found, now, where
        self._tried, self._seen = now(), where.files() if where else ()
        self._said: State = "open"  # the state that people know of
        self._lock = threading.Lock()
        self._former: list[Home] = []
        self._closing = threading.Event()
        self._checking: threading.Thread | None = None
        self._check_on(found)

    @classmethod
    def in_memory(cls, bounds: Bounds, now: Clock) -> Storage:
        return cls(_Found(Home.in_memory(bounds), "memory"), now)

    @classmethod
    def in_folder(cls, where: Where, now: Clock, *, check: bool = True) -> Storage:
        """Open the record in a folder, or what takes its place."""
        made = cls(_find(where, check=check), now, where)
        made._say(where)
        return made

    @classmethod
    def open(cls, where: Where, now: Clock) -> Storage | Refusal:
        """Open the record in a folder, and nothing in its place."""
        found = _find(where)
        if found.reason:
            found.home.database.close()
            return found.reason
        return cls(replace(found, unchecked=False), now, where)

    @property
    def folder(self) -> Path | None:
        return self._where.folder if self._where else None

    @property
    def home(self) -> Home:
        return self._found.home

    @property
    def state(self) -> State:
        return self._found.state

    @property
    def trouble(self) -> Refusal | None:
        """Return why what was kept cannot be read."""
        return self._found.reason if self.state == "stand_in" else None

    @property
    def obstacle(self) -> Refusal | None:
        """Return why nothing can be written that has to stay."""
        return self._found.reason

    def check(self, *, wait: bool = True) -> bool:
        """See to it that `home` is what the folder holds now; return false if that could not be found out.

        Without `wait` nothing is created, and no other thread or program is waited for.
        """
        if self._where is None or self._closing.is_set() or self._is_current():
            return True
        if not self._lock.acquire(blocking=wait):
            return False
        try:
            self._refresh(self._where, wait=wait)
        finally:
            self._lock.release()
        return True

    def note_damage(self, trouble: Exception) -> None:
        """Stop writing to a record that turned out to be damaged."""
        with self._lock:
            if self._where is not None and self.state == "open":
                self._use(_fall_back(self._where, trouble))
                self._say(self._where)

    def close(self) -> None:
        self._closing.set()
        if self._checking is not None:
            self._checking.join()
        for home in (*self._former, self.home):
            home.database.close()

    def _is_current(self) -> bool:
        return self.state == "open" and self.home.database.is_current()

    def _refresh(self, where: Where, *, wait: bool) -> None:
        was, is_replaced = self._found, self.state == "open" and not self._is_current()
        is_due = where.files() != self._seen or (wait and abs(self._now() - self._tried) >= _RETRY_SECONDS)
        if not (is_replaced or (self.state != "open" and is_due)):
            return
        self._tried, self._seen = self._now() if wait else -math.inf, where.files()
        self._use(_find(where, was.home if was.state == "stand_in" else None, wait=wait))
        if is_replaced:
            _log.warning("The record in %s was removed or replaced; it is opened again.", where.folder)
        if wait or self.state == "open":  # else the next write tries it again at once
            self._say(where)

    def _say(self, where: Where) -> None:
        """Say what the state is, unless that was said before."""
        if self.state == self._said:
            return
        if self.state == "open":
            _log.warning("The record in %s can be used again.", where.folder)
        else:
            _log.warning("%s", self._found)
        self._said = self.state

    def _use(self, found: _Found) -> None:
        if found.home is not self.home:
            for older in self._former:
                older.database.close()
            self._former = [self.home]  # another thread may still be reading there
        self._found = found
        self._check_on(found)

    def _check_on(self, found: _Found) -> None:
        """Go on looking for damage while the record is used."""
        if found.unchecked and not (self._checking and self._checking.is_alive()):
            self._checking = threading.Thread(target=self._examine, name="record check", daemon=True)
            self._checking.start()

    def _examine(self) -> None:
        assert self._where is not None
        try:
            found = examine_file(self._where.folder / ROWS, _LONG_CHECK_SECONDS, self._closing.is_set)
        except TROUBLES:  # it is gone, or busy: whoever uses it next finds out
            return
        if found.damage:
            self.note_damage(DamagedError(found.damage[0]))


def _find(where: Where, held: Home | None = None, *, wait: bool = True, check: bool = True) -> _Found:
    """Open the record for writing, or what takes its place; `held` is the memory that does so already."""
    try:
        if not wait and not (where.folder / ROWS).exists():
            raise FileNotFoundError(f"there is no {ROWS}")
        home = Home.on_disk(where.folder, where.bounds, None if wait else 0.0)
    except TROUBLES as trouble:
        return _fall_back(where, trouble, held)
    if not check:
        return _Found(home, "open")
    found = home.database.examine(_CHECK_SECONDS) if wait else _check_consents(home)
    if found.damage:
        home.database.close()
        return _fall_back(where, DamagedError(found.damage[0]), held)
    return _Found(home, "open", unchecked=not found.complete)


def _check_consents(home: Home) -> Examination:
    """Look for damage only where it matters at once; all else is checked later."""
    try:
        home.database.check_consents()
    except sqlite3.Error as trouble:
        return Examination((str(trouble),))
    return Examination((), complete=False)


def _fall_back(where: Where, trouble: Exception, held: Home | None = None) -> _Found:
    """Open what can be read of the record; else hold it in memory."""
    why = explain(where.folder, trouble)
    try:
        return _Found(Home.read_only(where.folder, where.bounds), "read_only", why)
    except TROUBLES:
        return _Found(held or Home.in_memory(where.small), "stand_in", why)


def explain(folder: Path, trouble: Exception) -> Refusal:
    """Return why a record cannot be used, and what to do about it."""
    why, remedy = describe_trouble(folder, trouble)
    code: Code = "corrupt" if is_damage(trouble) or isinstance(trouble, OtherVersionError) else "unavailable"
    return Refusal(code, f"the record in {folder} cannot be used: {why}", remedy)


def describe_trouble(folder: Path | None, trouble: Exception) -> tuple[str, str]:
    """Return what is wrong, and what to do about it."""
    if isinstance(trouble, ForeignDatabaseError):
        return str(trouble), f"move {ROWS} away, then {REPAIR}"
    if isinstance(trouble, OtherVersionError):
        return str(trouble), "install that version, or remove the record with: sightline forget --all"
    if is_damage(trouble):
        return str(trouble), f"{REPAIR}; or remove it with: sightline forget --all"
    if isinstance(trouble, sqlite3.Error) and is_busy(trouble):
        return str(trouble), "another program is using it: try again"
    if isinstance(trouble, sqlite3.Error) and is_full(trouble):
        trouble = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    elif isinstance(trouble, sqlite3.Error) and folder is not None:  # which does not say what the system said
        trouble = find_record_obstacle(folder) or trouble
    if isinstance(trouble, OSError):
        return explain_os_error(trouble)
    return str(trouble), "check that its folder can be read and written, and try again"


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
