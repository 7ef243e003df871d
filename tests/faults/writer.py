"""Forks processes that write to a record until they are killed, each off one that has loaded the code.

    python -m tests.faults.writer

For each line of input, a JSON array, a writer is forked; it prints its pid, and then the number of each image that was
acknowledged. When it has ended, its exit code is printed.

    [NAME, "all" | "migrating", LINE, FOLDER]        a record on disk
    [NAME, "all" | "migrating", LINE, STORE, BLOBS]  a record on servers

A writer kills itself before its main thread runs that line of the store's code, counted from its start. Never, for 0.
With `migrating`, only lines of the functions that apply migrations count.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType

import sightline.store.shared_storage  # now, not when lines are counted
from sightline.model.ports import Store
from sightline.model.records import PinnedDescription
from sightline.model.refusal import Refusal
from sightline.model.shared_address import SharedAddress
from sightline.store import open_record_or_refuse, open_server_record
from sightline.store.migrations import migrate
from sightline.store.postgres_database import migrate_schema
from sightline.store.sql_store import SqlStore
from tests.store.writer import description_of, image_of, perception_of

_STORE_FOLDER = str(Path(sightline.store.__file__).parent)
_MIGRATING = (migrate.__code__, migrate_schema.__code__)


def open_store(words: Sequence[str]) -> SqlStore:
    address = SharedAddress(words[0], words[1], os.environ) if len(words) > 1 else None
    store = open_server_record(address) if address else open_record_or_refuse(Path(words[0]))
    assert not isinstance(store, Refusal), store
    return store


def write_all(store: Store, name: str, number: int) -> None:
    """Write one of everything that must not be lost."""
    sha256 = image_of(name, number).sha256
    assert store.images.keep(name, image_of(name, number))
    store.descriptions.keep(name, description_of(name, number), "v1")
    assert store.images.keep_view(name, perception_of(name, number))
    store.descriptions.pin(name, PinnedDescription(f"turn {number}", (sha256,), {"number": number}))


def compare_parts(store: Store, name: str, number: int) -> list[bool | None]:
    """Return for each part that `write_all` writes whether it is as it was written, None if it is absent."""
    image, words, view = image_of(name, number), description_of(name, number), perception_of(name, number)
    pinned = store.descriptions.read_pin(name, f"turn {number}", (image.sha256,))
    found = (
        (store.images.read(name, image.sha256), image),
        (store.descriptions.read(name, image.sha256, words.seer, "v1"), words),
        (store.images.read_view(name, view.id), view),
        (pinned and pinned.result, {"number": number}),
    )
    return [None if read is None else read == written for read, written in found]


def is_whole(store: Store, name: str, number: int) -> bool:
    return all(compare_parts(store, name, number))


def is_half_written(store: Store, name: str, number: int) -> bool:
    return False in compare_parts(store, name, number)


def kill_at_line(line: int, codes: Sequence[CodeType] = ()) -> None:
    """Kill this process when so many lines of the store's code, or of these functions, have run in this thread."""
    left = line

    def trace(frame: FrameType, event: str, arg: object) -> object:
        nonlocal left
        if not frame.f_code.co_filename.startswith(_STORE_FOLDER):
            return None
        if event == "line" and (not codes or frame.f_code in codes):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]


def write_until_killed(name: str, where: str, line: int, *words: str) -> None:
    print("pid", os.getpid(), flush=True)
    if line:
        kill_at_line(line, _MIGRATING if where == "migrating" else ())
    store = open_store(words)
    for number in itertools.count():
        write_all(store, name, number)
        print("acknowledged", number, flush=True)


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                write_until_killed(*json.loads(line))
            finally:  # it has failed
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        print("ended", os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
