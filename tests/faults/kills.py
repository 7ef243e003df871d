"""Kills writers with -9 at moments that a seed chooses, and checks that nothing acknowledged is lost or half-written.

A moment is an event, not a time. Of each four writers, one is killed at a line of the store's code while it opens an
empty record, one at a line while it writes, one from outside when it has acknowledged an image, which is somewhere in
the next write, mostly while it waits for the disk or a server, and one at a statement while it migrates a record of an
earlier version.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Literal

from sightline.store.maintenance import TABLES
from sightline.store.sql_store import SqlStore
from tests.faults.old_records import count_statements, create_old_record, has_old_rows, list_old_versions
from tests.faults.writer import is_half_written, is_whole, open_store, write_all

# Lines of the store's code that run while an empty record is opened, and while one image is written; measured.
_OPENING_LINES, _IMAGE_LINES = 750, 620
_WRITTEN_TABLES = ("images", "descriptions", "perceptions", "tellings")  # by `write_all`, a row for each image
_MAX_IMAGES = 8  # that a writer acknowledges before it is killed

Places = Callable[[int], Sequence[str]]
"""Returns the words that name a record: 0 is the one that writers share, each other number is an empty one."""


@dataclass(slots=True)
class KillReport:
    kills: int = 0
    opening: int = 0  # kills while an empty record was opened, which then could be opened and used
    migrating: int = 0  # kills while an earlier version was migrated, which then had all its rows and could be used
    acknowledged: int = 0
    lost: int = 0
    half_written: int = 0
    without_bytes: int = 0  # rows that name bytes which are missing


@dataclass(frozen=True, slots=True)
class KillMoment:
    kind: Literal["opening", "line", "image", "migrating"]
    number: float  # of the line, or of acknowledged images; of a migration: the part of it that was done

    @property
    def has_own_record(self) -> bool:
        return self.kind in ("opening", "migrating")


def choose_moments(kills: int, seed: int) -> list[KillMoment]:
    chance = random.Random(seed)
    kinds = (
        lambda: KillMoment("opening", chance.randrange(1, _OPENING_LINES)),
        lambda: KillMoment("line", chance.randrange(_OPENING_LINES, _OPENING_LINES + _MAX_IMAGES * _IMAGE_LINES)),
        lambda: KillMoment("image", chance.randrange(1, _MAX_IMAGES)),
        lambda: KillMoment("migrating", chance.random()),
    )
    return [kinds[number % len(kinds)]() for number in range(kills)]


def kill_writers(places: Places, kills: int, seed: int, environment: Mapping[str, str]) -> KillReport:
    """Start a writer and kill it, so many times."""
    report, shared = KillReport(), 0
    with _run_writers(environment) as writers:
        for number, moment in enumerate(choose_moments(kills, seed)):
            words = [*places(number + 1 if moment.has_own_record else 0)]
            acknowledged = _kill_one(_Attempt(f"{seed}-{number}", moment, words), writers, report)
            shared += 0 if moment.has_own_record else acknowledged
    report.without_bytes = _count_rows_without_bytes([*places(0)], shared)
    return report


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One writer: its name, when it is killed, and the words that name its record."""

    name: str
    moment: KillMoment
    words: Sequence[str]

    @property
    def version(self) -> int:
        """The version of the record when the writer opens it; 0: it is empty, or the current one."""
        is_old = self.moment.kind == "migrating"
        return random.Random(self.name).choice(list_old_versions(self.words)) if is_old else 0

    @property
    def line(self) -> list[object]:
        """Where the writer kills itself, as `tests.faults.writer` reads it."""
        if self.version:  # a statement is two lines
            return ["migrating", 1 + int(2 * count_statements(self.version) * self.moment.number)]
        return ["all", 0 if self.moment.kind == "image" else self.moment.number]


def _kill_one(attempt: _Attempt, writers: subprocess.Popen[str], report: KillReport) -> int:
    """Let a writer write until it is killed, then open the record, and count what is in it.

    Return how many images were acknowledged.
    """
    name = attempt.name
    if attempt.version:
        create_old_record(attempt.words, attempt.version)
    acknowledged = _write_until_killed(attempt, writers)
    with closing(open_store(attempt.words)) as store:
        report.kills += 1
        report.acknowledged += acknowledged
        report.lost += sum(not is_whole(store, name, each) for each in range(acknowledged))
        report.half_written += is_half_written(store, name, acknowledged)
        if attempt.moment.has_own_record:
            _count_use(report, store, attempt)
    return acknowledged


def _count_use(report: KillReport, store: SqlStore, attempt: _Attempt) -> None:
    """Count a record that can be used after its writer was killed, with all rows that it had in an earlier version."""
    is_kept = not attempt.version or has_old_rows(store, attempt.version)
    write_all(store, "next", 1)
    is_used = is_kept and is_whole(store, "next", 1)
    report.opening += is_used and attempt.moment.kind == "opening"
    report.migrating += is_used and attempt.moment.kind == "migrating"


@contextmanager
def _run_writers(environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run the process that writers are forked off."""
    command, pipe = [sys.executable, "-m", "tests.faults.writer"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**environment}) as process:
        yield process


def _write_until_killed(attempt: _Attempt, writers: subprocess.Popen[str]) -> int:
    """Return how many images were acknowledged before the writer was killed."""
    assert writers.stdin
    assert writers.stdout
    print(json.dumps([attempt.name, *attempt.line, *attempt.words]), file=writers.stdin, flush=True)
    pid = acknowledged = 0
    for text in writers.stdout:
        match text.split():
            case ["pid", number]:
                pid = int(number)
            case ["acknowledged", _]:
                acknowledged += 1
                if attempt.moment.kind == "image" and acknowledged == attempt.moment.number:
                    os.kill(pid, signal.SIGKILL)
            case ["ended", code]:
                assert code == "-9", "it was killed, and did not fail"
                return acknowledged
    raise AssertionError("the process that writers are forked off has ended")


def _count_rows_without_bytes(words: list[str], acknowledged: int) -> int:
    """Return how many rows of a record name bytes that are missing, after so many images were acknowledged there."""
    with closing(open_store(words)) as store:
        counts = {table: len(store.transactions.fetch_all(f"SELECT * FROM {table}")) for table in TABLES}
        assert all(counts[table] >= acknowledged for table in _WRITTEN_TABLES), (acknowledged, counts)
        named = store.transactions.fetch_all("SELECT sha256 FROM images UNION SELECT pixels FROM perceptions")
        return sum(store.transactions.backend.blobs.read(sha256) is None for (sha256,) in named)
