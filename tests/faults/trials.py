"""Killed writers on both engines, and mixed traffic through a proxy meanwhile, on servers of their own.

    python -m tests.faults.trials KILLS SECONDS     print the results as one line of JSON

They run in a process of their own, so that other tests need not wait for them, and can stop the servers that they use.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.e2e.shared_servers import Servers, run_servers
from tests.faults.kills import KillReport, kill_writers
from tests.faults.traffic import Holdings, run_soak


@dataclass(frozen=True, slots=True)
class Trials:
    on_disk: KillReport
    on_servers: KillReport
    held: list[Holdings]  # by the proxy, after each round of traffic

    @classmethod
    def parse(cls, text: str) -> Trials:
        found = json.loads(text)
        held = [Holdings(**each) for each in found["held"]]
        return cls(KillReport(**found["on_disk"]), KillReport(**found["on_servers"]), held)


def run_trials(servers: Servers, folder: Path, kills: int, seconds: float) -> Trials:
    def name_on_disk(number: int) -> list[str]:
        return [str(folder / f"disk-{number}")]

    def name_on_servers(number: int) -> list[str]:
        address = servers.address(folder / str(number))
        return [address.store, address.blobs]

    def soak() -> list[Holdings]:
        store, blobs = name_on_servers(-1)
        with run_soak(3, "--store", store, "--blobs", blobs, SIGHTLINE_HOME=str(folder / "home")) as running:
            return running.run_rounds(seconds)

    with ThreadPoolExecutor(3) as threads:
        on_disk = threads.submit(kill_writers, name_on_disk, kills, 1, os.environ)
        on_servers = threads.submit(kill_writers, name_on_servers, kills, 2, os.environ)
        held = threads.submit(soak)
        return Trials(on_disk.result(), on_servers.result(), held.result())


if __name__ == "__main__":
    with run_servers() as running, tempfile.TemporaryDirectory() as name:
        os.environ.update(running.s3.environment())
        print(json.dumps(asdict(run_trials(running, Path(name), int(sys.argv[1]), float(sys.argv[2])))))
