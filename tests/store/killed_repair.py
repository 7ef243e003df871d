"""A repair in a process of its own, which kills itself before it creates, renames or removes its N-th file."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from sightline.store.sqlite_repair import RepairResult, repair_record

CHANGES = ("os.link", "os.remove", "os.rename", "os.mkdir")


def repair_until_killed(folder: Path, left: int) -> None:
    """Repair a record; the process is killed at the change after `left` changes, if there are so many."""

    def watch(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        if event in CHANGES and str(args[0]).startswith(str(folder)):
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(watch)
    assert isinstance(repair_record(folder), RepairResult)
