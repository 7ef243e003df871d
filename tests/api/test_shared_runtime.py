"""What there is one of in a process: many threads that ask for it at once get the same."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.api.session import ToolContext
from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.runtime import get_shared_runtime
from sightline.runtime import open_shared_record as open_named_record
from sightline.settings import load_settings
from sightline.vision.background_loop import once
from tests.requirements import requirement
from tests.store.writer import description_of

_LOOPS = """
import asyncio, threading
from sightline.vision.background_loop import run_blocking
barrier, met = threading.Barrier(12), set()
async def here(): return id(asyncio.get_running_loop())
def ask():
    barrier.wait()
    met.add(run_blocking(here()))
threads = [threading.Thread(target=ask) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(met))
"""


def at_once(ask: Callable[[], object], threads: int = 12) -> list[object]:
    barrier, found, often = threading.Barrier(threads), [], sys.getswitchinterval()

    def asks() -> None:
        barrier.wait()
        found.append(ask())

    running = [threading.Thread(target=asks) for _ in range(threads)]
    sys.setswitchinterval(1e-6)
    try:
        for each in running:
            each.start()
        for each in running:
            each.join()
    finally:
        sys.setswitchinterval(often)
    return found


def test_shared_objects_are_built_once_for_all_threads() -> None:
    met = threading.Event()

    @once
    def made(name: str) -> object:
        met.wait(0.05)  # long enough for the others to come
        return object()

    assert len(set(map(id, at_once(lambda: made("x"))))) == 1
    assert made("y") is not made("x")


def open_shared_record(folder: Path, kind: str) -> Store:
    return open_named_record(replace(load_settings({"SIGHTLINE_RECORD": kind}), record_folder=folder))


def test_all_calls_of_a_process_share_one_event_loop() -> None:
    for _ in range(3):
        told = subprocess.run([sys.executable, "-c", _LOOPS], capture_output=True, text=True, check=True, timeout=60)
        assert told.stdout == "1\n"


def test_concurrent_calls_share_the_discovered_providers(tmp_path: Path) -> None:
    settings = load_settings({"SIGHTLINE_HOME": str(tmp_path), "SIGHTLINE_SEER": "local"})
    record = open_shared_record(tmp_path, "memory")

    assert len(set(map(id, at_once(lambda: get_shared_runtime(settings, record))))) == 1


def test_records_of_many_homes_do_not_stay_open(tmp_path: Path) -> None:
    used = open_shared_record(tmp_path / "used", "disk")
    before = len(list(Path("/proc/self/fd").iterdir()))

    for number in range(30):
        open_shared_record(tmp_path / str(number), "disk")
    gc.collect()

    assert len(list(Path("/proc/self/fd").iterdir())) - before < 8 * 10
    assert open_shared_record(tmp_path / "used", "disk") is used, "it is still in use"
    assert used.policy.set_consent("openai", True) is None
    assert used.policy.read_consents() == {"openai": True}


def test_a_record_in_memory_is_never_closed(tmp_path: Path) -> None:
    open_shared_record(tmp_path / "first", "memory").policy.set_consent("openai", True)
    for number in range(30):
        open_shared_record(tmp_path / str(number), "memory")

    assert open_shared_record(tmp_path / "first", "memory").policy.read_consents() == {"openai": True}


@requirement("record.shared.absent", "law.9")
def test_a_record_on_servers_that_are_down_is_replaced_by_memory_without_consents(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    down = {"SIGHTLINE_STORE": "postgresql://me:secret-word@127.0.0.1:1/record", "SIGHTLINE_BLOBS": "s3://bucket"}
    record = open_named_record(load_settings({"SIGHTLINE_HOME": str(tmp_path), **down}))
    assert record.find_trouble() is not None
    assert isinstance(record.policy.set_consent("openai", given=True), Refusal)
    assert record.policy.read_consents() == {}
    (line,) = [each.getMessage() for each in caplog.records]
    assert "127.0.0.1" in line
    assert "secret-word" not in line
    assert not (tmp_path / "record").exists()


@requirement("record.shared.saved")
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_save_of_the_owner_reaches_other_credentials_only_in_a_record_of_its_own(
    context: ToolContext, is_shared: bool
) -> None:
    on_servers = {"SIGHTLINE_STORE": "postgresql://127.0.0.1:1/record", "SIGHTLINE_BLOBS": "s3://bucket"}
    settings = load_settings(on_servers if is_shared else {})
    owner, descriptions = replace(context, settings=settings, is_owner=True), context.record.descriptions
    words = description_of("cat", 1)
    assert descriptions.save(owner.saved_scope, words) is None
    assert descriptions.read_saved(owner.scope, words.sha256) == words
    assert (descriptions.read_saved("another developer", words.sha256) is None) == is_shared
