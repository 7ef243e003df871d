"""Faults of the record: killed writers, and what a shared record adds to a request, on real servers on loopback."""

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sightline.model.ports import Store  # noqa: E402
from tests.e2e.shared_servers import Servers, run_servers  # noqa: E402
from tests.faults.kills import kill_writers  # noqa: E402
from tests.faults.traffic import WORKERS, find_growth, run_soak  # noqa: E402
from tests.faults.writer import open_store  # noqa: E402
from tests.store.writer import description_of, image_of  # noqa: E402

KILLS, SEED, ROUNDS, SOAK_SECONDS = 200, 15, 300, 480.0
DISK, SERVERS = "SQLite and files", "PostgreSQL and S3"
COLUMNS = ("kills", "opening", "migrating", "acknowledged", "lost", "half-written", "without bytes")
PAGE = """# Reliability

Written by `bench/run.py soak`. Machine: {machine}.

Writers that store images, descriptions, views and pinned descriptions are killed with `kill -9`, at moments that a
fixed seed chooses: a quarter at a line of the store's code while they create a record, a quarter at a statement while
they migrate a record of an earlier version, a quarter at a line while they write, and a quarter from outside, somewhere
in a write. Then the record is opened and read back. `opening` counts records that were being created and could be used
after that, and `migrating` those of an earlier version that then had all their rows and could be used; `lost` counts
acknowledged images of which something is missing or wrong, `half-written` those that were not acknowledged and are
there with wrong parts, and `without bytes` rows whose bytes are missing.

{kills}

What the record adds to a request, in milliseconds: the median of {rounds} calls, with all servers on loopback. Reads
for a known image are answered from a replica's memory; each request with images also notes its visit, which a replica
of a shared record does in memory if the request before it came there, too.

{times}

Mixed traffic through one proxy: chats, streams, known images, answers that are cancelled, and answers that are read
slowly, in rounds of 60 requests, {threads} at a time. Between rounds nothing is under way. The first fifth of the
rounds fills caches and pools. In parentheses is the growth: from the most in the first half of the other rounds to the
most in the second half.

{traffic}

Tests show that the proxy keeps serving, says once what is wrong, and recovers by itself:

| fault | test |
|---|---|
| one of three replicas is killed amid its work; one is frozen beyond its lease | `tests/e2e/test_replicas.py` |
| a newer version has migrated the shared record | `tests/e2e/test_faults.py` |
| PostgreSQL or object storage is down while a proxy gets new images | `tests/e2e/test_replicas.py` |
| PostgreSQL restarts or hangs; a pooler drops its connections | `tests/e2e/test_faults.py` |
| object storage stops, is slow, or answers 503, a wrong ETag or wrong bytes | `tests/e2e/test_faults.py` |
| the disk is full, a folder read-only, the database truncated, overwritten or deleted | `tests/e2e/test_faults.py` |

Bad input is tried in `tests/e2e/test_shared_record.py` (addresses, passwords, schemas, users and buckets without
rights: one line, exit 1, nothing created) and in `tests/fuzz` (any bytes, for every parser).
"""
Part = Callable[["Places", bool], dict[str, Any]]


class Places:
    """Where records can be: on a disk and on servers."""

    def __init__(self, servers: Servers, folder: Path) -> None:
        self._servers, self._folder = servers, folder

    def name_on_disk(self, number: int) -> list[str]:
        return [str(self._folder / f"disk-{number}")]

    def name_on_servers(self, number: int) -> list[str]:
        address = self._servers.address(self._folder / str(number))
        return [address.store, address.blobs]

    @property
    def engines(self) -> dict[str, Callable[[int], list[str]]]:
        return {DISK: self.name_on_disk, SERVERS: self.name_on_servers}


def run(file: Path, *, quick: bool = False, only: str = "") -> None:
    """Measure all parts, or one and leave the other figures as they are; write the figures and their page."""
    result: dict[str, Any] = json.loads(file.read_text()) if only else {}
    result |= {"machine": platform.platform(), "cores": os.cpu_count()}
    with run_servers(durable=True) as servers, tempfile.TemporaryDirectory() as folder:
        os.environ.update(servers.s3.environment())
        places = Places(servers, Path(folder))
        for name in [only] if only else PARTS:
            result[name] = PARTS[name](places, quick)
    file.write_text(json.dumps(result, indent=1) + "\n")
    page = render_page(result)
    file.with_suffix(".md").write_text(page)
    (ROOT / "docs" / "reliability.md").write_text(page)
    print(page)


def _kill(places: Places, quick: bool) -> dict[str, Any]:
    return {engine: _kill_on(name, 20 if quick else KILLS) for engine, name in places.engines.items()}


def _kill_on(name_record: Callable[[int], list[str]], count: int) -> dict[str, float]:
    began = time.monotonic()
    report = kill_writers(name_record, count, SEED, os.environ)
    found = {name.replace("_", " "): count for name, count in asdict(report).items()}
    found["half-written"] = found.pop("half written")
    return {**found, "seconds": round(time.monotonic() - began)}


def _send_traffic(places: Places, quick: bool) -> dict[str, Any]:
    address = places.name_on_servers(0)
    flags = {DISK: (), SERVERS: ("--store", address[0], "--blobs", address[1])}
    return {engine: _soak(words, 20.0 if quick else SOAK_SECONDS) for engine, words in flags.items()}


def _soak(words: Sequence[str], seconds: float) -> dict[str, Any]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home, run_soak(SEED, *words, SIGHTLINE_HOME=home) as soak:
        held = soak.run_rounds(seconds)
        growth = find_growth(held)
        found = {name: f"{most:g} ({getattr(growth, name):+g})" for name, most in asdict(held[-1]).items()}
        return {"requests": soak.requests, "seconds": round(time.monotonic() - began), **found}


def _time_engines(places: Places, quick: bool) -> dict[str, Any]:
    return {engine: _time_engine(name(0)) for engine, name in places.engines.items()}


def _time_engine(words: list[str]) -> dict[str, float]:
    """Return the median milliseconds of what a request does with a known image, and with a new one."""
    store = open_store(words)
    image, told = image_of("known", 1), description_of("known", 1)
    store.images.keep("scope", image)
    store.descriptions.keep("scope", told, "v1")

    def read_known(number: int) -> None:
        store.images.find_kept_images("scope", [image.sha256])
        store.descriptions.read("scope", image.sha256, told.seer, "v1")
        store.policy.read_consents()
        store.policy.read_lesson("upstream", "model")

    def write_new(number: int) -> None:
        store.images.keep("scope", image_of("new", number))
        store.descriptions.keep("scope", description_of("new", number), "v1")

    try:
        return {
            "reads for a known image": _time(read_known),
            "the visit of a conversation": _time(lambda number: _visit(store, number)),
            "storing a new image and its description": _time(write_new),
        }
    finally:
        store.close()


def _visit(store: Store, number: int) -> None:
    """Visit a conversation that has grown by one request."""
    names = [f"message {each}" for each in range(number + 1)][-50:]
    store.conversations.visit("scope", "head", names, range(len(names)), 300.0)


def _time(work: Callable[[int], None]) -> float:
    taken = []
    for number in range(ROUNDS):
        began = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - began)
    return round(statistics.median(taken) * 1000, 3)


def render_page(result: Mapping[str, Any]) -> str:
    """Return the page from the figures."""
    kills, times, traffic = result["kills"], result["milliseconds"], result["traffic"]
    calls = next(iter(times.values()))
    return PAGE.format(
        machine=f"{result['machine']}, {result['cores']} cores, shared with other work",
        kills=render_table("engine", COLUMNS, {name: [one[key] for key in COLUMNS] for name, one in kills.items()}),
        times=render_table("call", [*times], {call: [one[call] for one in times.values()] for call in calls}),
        traffic=render_table(
            "engine", [*next(iter(traffic.values()))], {name: [*one.values()] for name, one in traffic.items()}
        ),
        rounds=ROUNDS,
        threads=WORKERS,
    )


def render_table(corner: str, columns: Sequence[str], rows: Mapping[str, Sequence[object]]) -> str:
    lines = [f"| {corner} | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(map(str, row))} |" for name, row in rows.items())])


PARTS: dict[str, Part] = {"kills": _kill, "milliseconds": _time_engines, "traffic": _send_traffic}
