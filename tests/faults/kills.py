"""Kills writers with -9 at moments that a seed chooses, and checks that nothing acknowledged is lost or half-written.

A moment is an event, not a time. Of each three writers, one is killed at a line of the store's code while it opens an
empty record, one at a line while it writes, and one from outside when it has acknowledged an image, which is somewhere
in the next write, mostly while it waits for the disk or a server.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sightline.store.record_copy import TABLES
from sightline.store.sql_store import SqlStore
from tests.faults.writer import is_half_written, is_whole, open_store, write_all

# Lines of the store's code that run while an empty record is opened, and while one image is written; measured.
_OPENING_LINES, _IMAGE_LINES = 750, 620
_MAX_IMAGES = 8  # that a writer acknowledges before it is killed

Places = Callable[[int], Sequence[str]]
"""Returns the words that name a record: 0 is the one that writers share, each other number is an empty one."""


@dataclass(slots=True)
class KillReport:
    kills: int = 0
    opening: int = 0  # kills while an empty record was opened, which then could be opened and used
    acknowledged: int = 0
    lost: int = 0
    half_written: int = 0
    without_bytes: int = 0  # rows that name bytes which are missing


@dataclass(frozen=True, slots=True)
class KillMoment:
    kind: Literal["opening", "line", "image"]
    number: int  # of the line, or of acknowledged images


def choose_moments(kills: int, seed: int) -> list[KillMoment]:
    chance = random.Random(seed)
    kinds = (
        lambda: KillMoment("opening", chance.randrange(1, _OPENING_LINES)),
        lambda: KillMoment("line", chance.randrange(_OPENING_LINES, _OPENING_LINES + _MAX_IMAGES * _IMAGE_LINES)),
        lambda: KillMoment("image", chance.randrange(1, _MAX_IMAGES)),
    )
    return [kinds[number % len(kinds)]() for number in range(kills)]


def kill_writers(places: Places, kills: int, seed: int, environment: Mapping[str, str]) -> KillReport:
    """Start a writer and kill it, so many times."""
    report = KillReport()
    for number, moment in enumerate(choose_moments(kills, seed)):
        name, is_opening = f"{seed}-{number}", moment.kind == "opening"
        words = [*places(number + 1 if is_opening else 0)]
        acknowledged = _kill_one(name, words, moment, environment)
        store = open_store(words)
        report.kills += 1
        report.acknowledged += acknowledged
        report.lost += sum(not is_whole(store, name, each) for each in range(acknowledged))
        report.half_written += is_half_written(store, name, acknowledged)
        if is_opening:
            write_all(store, "next", number)
            report.opening += is_whole(store, "next", number)
        store.close()
    report.without_bytes = _count_rows_without_bytes([*places(0)])
    return report


def _kill_one(name: str, words: Sequence[str], moment: KillMoment, environment: Mapping[str, str]) -> int:
    """Return how many images were acknowledged before the process was killed."""
    line = 0 if moment.kind == "image" else moment.number
    command = [sys.executable, "-m", "tests.faults.writer", name, str(line), *words]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**environment}) as process:
        assert process.stdout
        for text in process.stdout:
            lines.append(text)
            if moment.kind == "image" and len(lines) == moment.number:
                process.kill()
    assert process.returncode == -9, "it was killed, and did not fail"
    return sum(text.endswith("\n") for text in lines)


def _count_rows_without_bytes(words: list[str]) -> int:
    store = open_store(words)
    assert isinstance(store, SqlStore)
    assert all(store.transactions.fetch_all(f"SELECT COUNT(*) FROM {table}") for table in TABLES)
    named = store.transactions.fetch_all("SELECT sha256 FROM images UNION SELECT pixels FROM perceptions")
    missing = sum(store.transactions.backend.blobs.read(sha256) is None for (sha256,) in named)
    store.close()
    return missing
