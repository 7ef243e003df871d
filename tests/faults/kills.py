"""Kills writers with -9 at random moments, and checks that nothing that was acknowledged is lost or half-written."""

from __future__ import annotations

import random
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sightline.store.record_copy import TABLES
from sightline.store.sql_store import SqlStore
from tests.faults.writer import is_whole, open_store

_MAX_SECONDS = 0.6  # that a writer lives after its record is open
_START_SECONDS = 60.0


@dataclass(slots=True)
class KillReport:
    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    without_bytes: int = 0  # rows that name bytes which are missing


def kill_writers(words: Sequence[str], kills: int, seed: int, environment: Mapping[str, str]) -> KillReport:
    """Start a writer and kill it, so many times; every third one is killed while it opens the record."""
    chance, report = random.Random(seed), KillReport()
    for number in range(kills):
        name = f"{seed}-{number}"
        acknowledged = _kill_one(name, words, chance, environment, early=number % 3 == 2)
        store = open_store([*words])
        assert isinstance(store, SqlStore)
        report.kills += 1
        report.acknowledged += acknowledged
        report.lost += sum(not is_whole(store, name, each) for each in range(acknowledged))
        store.close()
    report.without_bytes = _count_rows_without_bytes(words)
    return report


def _kill_one(
    name: str, words: Sequence[str], chance: random.Random, environment: Mapping[str, str], *, early: bool
) -> int:
    """Return how many images were acknowledged before the process was killed."""
    command = [sys.executable, "-m", "tests.faults.writer", name, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**environment}) as process:
        assert process.stdout
        if early:
            time.sleep(chance.uniform(0.2, 1.0))  # the moment is the test
        else:
            ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
            assert ready, "the writer has not opened its record"
            time.sleep(chance.uniform(0.0, _MAX_SECONDS))
        process.kill()
        lines = process.stdout.read().split("\n")
    return sum(line.isdecimal() for line in lines[:-1])


def _count_rows_without_bytes(words: Sequence[str]) -> int:
    store = open_store([*words])
    assert isinstance(store, SqlStore)
    assert all(store.transactions.fetch_all(f"SELECT COUNT(*) FROM {table}") for table in TABLES)
    named = store.transactions.fetch_all("SELECT sha256 FROM images UNION SELECT pixels FROM perceptions")
    missing = sum(store.transactions.backend.blobs.read(sha256) is None for (sha256,) in named)
    store.close()
    return missing
