"""A process of its own that repairs a record, and kills itself before it creates, renames or removes its N-th file.

    python -m tests.store.killed_repair FOLDER N

Prints "done" if there were fewer.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from sightline.store.sqlite_repair import RepairResult, repair_record

CHANGES = ("os.link", "os.remove", "os.rename", "os.mkdir")


def main() -> None:
    folder, left = Path(sys.argv[1]), int(sys.argv[2])

    def watch(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        if event in CHANGES and str(args[0]).startswith(str(folder)):
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(watch)
    assert isinstance(repair_record(folder), RepairResult)
    print("done")


if __name__ == "__main__":
    main()
