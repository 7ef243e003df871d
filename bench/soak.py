"""Faults of the record: killed writers, and what a shared record adds to a request, on real servers on loopback."""

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sightline.model.ports import Store  # noqa: E402
from tests.e2e.shared_servers import run_servers  # noqa: E402
from tests.faults.kills import kill_writers  # noqa: E402
from tests.faults.writer import open_store  # noqa: E402
from tests.store.writer import description_of, image_of  # noqa: E402

KILLS, SEED, ROUNDS = 200, 15, 300
COLUMNS = ("kills", "acknowledged", "lost", "without bytes")
PAGE = """# Reliability

Written by `bench/run.py soak`. Machine: {machine}.

Writers that store images, descriptions, views and pinned descriptions are killed with `kill -9` at random moments,
with a fixed seed, every third one while it opens the record. Then everything that was acknowledged is read back:
`lost` counts images of which something is missing or wrong, `without bytes` counts rows whose bytes are missing.

{columns}
{kills}

What the record adds to a request, in milliseconds: the median of {rounds} calls, with all servers on loopback. Reads
for a known image are answered from a replica's memory; each request with images also notes its visit.

{engines}
{times}

The tests in `tests/e2e/test_faults.py` and `tests/e2e/test_replicas.py` also kill one of three replicas, freeze one
beyond its lease, restart and freeze PostgreSQL, drop the connections of a pooler, and stop the object storage.
"""


def run(file: Path, *, quick: bool = False) -> None:
    """Kill writers on both engines, time the calls of a request, and write the figures and their page."""
    with run_servers() as servers, tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **servers.s3.environment()}
        os.environ.update(servers.s3.environment())
        address = servers.address(Path(folder))
        engines = {"SQLite and files": [f"{folder}/record"], "PostgreSQL and S3": [address.store, address.blobs]}
        kills = {name: _kill(words, 20 if quick else KILLS, environment) for name, words in engines.items()}
        times = {name: _time_engine(words) for name, words in engines.items()}
    result = {"machine": platform.platform(), "cores": os.cpu_count(), "kills": kills, "milliseconds": times}
    file.write_text(json.dumps(result, indent=1) + "\n")
    page = _render(result)
    file.with_suffix(".md").write_text(page)
    (ROOT / "docs" / "reliability.md").write_text(page)
    print(page)


def _kill(words: list[str], count: int, environment: Mapping[str, str]) -> dict[str, float]:
    began = time.monotonic()
    report = kill_writers(words, count, SEED, environment)
    found = {"kills": report.kills, "acknowledged": report.acknowledged, "lost": report.lost}
    return {**found, "without bytes": report.without_bytes, "seconds": round(time.monotonic() - began)}


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
    store.conversations.visit("scope", "head", ["head", f"message {number}"], [1], 300.0)


def _time(work: Callable[[int], None]) -> float:
    taken = []
    for number in range(ROUNDS):
        began = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - began)
    return round(statistics.median(taken) * 1000, 3)


def _render(result: Mapping[str, Any]) -> str:
    kills, times = result["kills"], result["milliseconds"]
    killed = [f"| {name} | {' | '.join(str(one[column]) for column in COLUMNS)} |" for name, one in kills.items()]
    calls = next(iter(times.values()))
    timed = [f"| {call} | {' | '.join(str(one[call]) for one in times.values())} |" for call in calls]
    return PAGE.format(
        machine=f"{result['machine']}, {result['cores']} cores, shared with other work",
        columns=f"| engine | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}",
        kills="\n".join(killed),
        engines=f"| call | {' | '.join(times)} |\n|---|{'---|' * len(times)}",
        times="\n".join(timed),
        rounds=ROUNDS,
    )
