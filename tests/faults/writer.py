"""A process that writes to a record until it is killed, and says what was acknowledged.

    python -m tests.faults.writer NAME FOLDER        a record on disk
    python -m tests.faults.writer NAME STORE BLOBS   a record on servers

Prints the number of each image after all calls about it have returned.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from sightline.model.ports import Store
from sightline.model.records import PinnedDescription
from sightline.model.refusal import Refusal
from sightline.model.shared_address import SharedAddress
from sightline.store import open_record_or_refuse, open_server_record
from tests.store.writer import description_of, image_of, perception_of


def open_store(words: list[str]) -> Store:
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


def is_whole(store: Store, name: str, number: int) -> bool:
    """Return whether everything that `write_all` has written is there."""
    image, words, view = image_of(name, number), description_of(name, number), perception_of(name, number)
    pinned = store.descriptions.read_pin(name, f"turn {number}", (image.sha256,))
    return (
        store.images.read(name, image.sha256) == image
        and store.descriptions.read(name, image.sha256, words.seer, "v1") == words
        and store.images.read_view(name, view.id) == view
        and pinned is not None
        and pinned.result == {"number": number}
    )


def main() -> None:
    store = open_store(sys.argv[2:])
    print("open", flush=True)
    for number in itertools.count():
        write_all(store, sys.argv[1], number)
        print(number, flush=True)


if __name__ == "__main__":
    main()
