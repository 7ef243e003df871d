"""Faults of a shared record: killed and frozen replicas, servers that restart, hang or fail. Fixed seeds."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.model.ports import Lease, Store
from sightline.model.refusal import Refusal
from sightline.store import open_server_record
from tests.e2e.shared_servers import Servers, wait_for
from tests.faults.kills import KillReport, kill_writers
from tests.faults.traffic import find_growth, run_soak
from tests.faults.writer import is_whole, write_all
from tests.requirements import requirement
from tests.store.writer import description_of, image_of

KILLS = 20
ROUNDS = 20  # of 60 requests, after 10 that fill caches and pools


@pytest.fixture
def environment(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    for name, value in servers.s3.environment().items():
        monkeypatch.setenv(name, value)
    yield dict(os.environ)
    servers.recycle_databases()


@pytest.fixture
def store(servers: Servers, environment: Mapping[str, str], tmp_path: Path) -> Iterator[Store]:
    opened = open_server_record(servers.address(tmp_path))
    assert not isinstance(opened, Refusal), opened
    yield opened
    opened.close()


def assert_nothing_lost(report: KillReport) -> None:
    assert report.kills == KILLS
    assert report.opening == 7, "a record that was being created could be opened and used after that"
    assert report.acknowledged > KILLS, "the others were killed while they wrote"
    assert (report.lost, report.half_written, report.without_bytes) == (0, 0, 0)


@requirement("record.acknowledged", "record.faults.kills")
def test_twenty_killed_writers_lose_nothing_on_disk(tmp_path: Path) -> None:
    assert_nothing_lost(kill_writers(lambda number: [str(tmp_path / str(number))], KILLS, 1, os.environ))


@requirement("record.acknowledged", "record.faults.kills")
def test_twenty_killed_writers_lose_nothing_on_servers(
    servers: Servers, environment: Mapping[str, str], tmp_path: Path
) -> None:
    def name_record(number: int) -> list[str]:
        address = servers.address(tmp_path / str(number))
        return [address.store, address.blobs]

    assert_nothing_lost(kill_writers(name_record, KILLS, 2, environment))


FROZEN = """
import os, sys
from sightline.model.ports import Lease
from sightline.model.shared_address import SharedAddress
from sightline.store import open_server_record
from tests.store.writer import description_of
from dataclasses import replace
store = open_server_record(SharedAddress(sys.argv[1], sys.argv[2], os.environ))
lease = Lease("scope", "look", "frozen")
assert store.descriptions.claim_lease(lease, 0, 2) is None
print("claimed", flush=True)
sys.stdin.readline()
words = description_of("cat", 1)
store.descriptions.keep("scope", replace(words, text="too late"), "v1", lease)
store.descriptions.finish_lease(lease, "too late")
print("finished", flush=True)
store.close()
"""


@requirement("record.shared.fencing")
def test_a_frozen_replica_that_wakes_after_its_lease_overwrites_nothing(
    servers: Servers, environment: Mapping[str, str], store: Store, tmp_path: Path
) -> None:
    address = servers.address(tmp_path)
    command = [sys.executable, "-c", FROZEN, address.store, address.blobs]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env={**environment}, **pipes) as frozen:  # type: ignore[call-overload]
        assert frozen.stdout.readline() == "claimed\n"
        frozen.send_signal(signal.SIGSTOP)
        try:
            lease = Lease("scope", "look", "other")
            assert store.descriptions.claim_lease(lease, 0, 60) == "frozen"
            wait_for(lambda: store.descriptions.claim_lease(lease, 0, 60) is None)
            store.descriptions.keep("scope", description_of("cat", 1), "v1", lease)
            store.descriptions.finish_lease(lease, "the answer")
        finally:
            frozen.send_signal(signal.SIGCONT)
        frozen.stdin.write("go on\n")
        frozen.stdin.flush()
        assert frozen.stdout.readline() == "finished\n"
    words = description_of("cat", 1)
    assert store.descriptions.read("scope", words.sha256, words.seer, "v1") == words
    assert store.descriptions.read_lease(lease) == (True, "the answer")


def list_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("sightline.store")]


@requirement("record.faults.servers", "law.9")
def test_postgresql_that_restarts_costs_no_request_and_is_used_again(
    servers: Servers, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "sightline.store")
    write_all(store, "before", 1)
    assert store.policy.set_consent("openai", given=True) is None
    wait_for(lambda: store.policy.read_consents() == {"openai": True})
    assert is_whole(store, "before", 1)
    servers.postgres.stop()
    try:
        wait_for(lambda: store.find_trouble() is not None)
        assert store.policy.read_consents() == {}, "what may have been withdrawn does not count"
        assert isinstance(store.policy.set_consent("google", given=True), Refusal)
        assert is_whole(store, "before", 1), "what is known is read from memory"
        assert not store.images.keep("during", image_of("during", 1)), "and nothing new is said to be safe"
        store.descriptions.keep("during", description_of("during", 1), "v1")
        assert store.descriptions.read("during", image_of("during", 1).sha256, "ollama/llava", "v1") is not None
    finally:
        servers.postgres.start()
    wait_for(lambda: store.find_trouble() is None)
    assert store.policy.read_consents() == {"openai": True}
    write_all(store, "after", 1)
    assert is_whole(store, "after", 1)
    assert len(list_warnings(caplog)) == 2, "once that it failed, once that it works again"


@requirement("record.faults.servers", "law.9")
def test_postgresql_that_hangs_is_given_up_after_a_few_seconds(servers: Servers, store: Store) -> None:
    servers.postgres.process.freeze()
    try:
        store.descriptions.keep("scope", description_of("cat", 1), "v1")  # else it would hang for ever
        wait_for(lambda: store.find_trouble() is not None)
    finally:
        servers.postgres.process.thaw()
    wait_for(lambda: store.find_trouble() is None)


@requirement("record.faults.servers", "law.9")
def test_a_pooler_that_drops_its_connections_costs_nothing(
    servers: Servers, environment: Mapping[str, str], tmp_path: Path
) -> None:
    if servers.bouncer is None:
        pytest.fail("pgbouncer is not installed; run scripts/stores-env as root")
    address = servers.address(tmp_path)
    pooled = open_server_record(replace(address, store=servers.bouncer.address(servers.databases[tmp_path])))
    assert not isinstance(pooled, Refusal), pooled
    for number in range(5):
        write_all(pooled, "cat", number)
        servers.bouncer.stop()
        servers.bouncer.start()
    wait_for(lambda: pooled.find_trouble() is None)
    assert all(is_whole(pooled, "cat", number) for number in range(5))
    pooled.close()


@requirement("record.faults.servers", "law.9", "record.before_reference")
def test_object_storage_that_fails_costs_images_and_nothing_else(
    servers: Servers, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "sightline.store")
    write_all(store, "before", 1)
    assert is_whole(store, "before", 1)
    servers.s3.stop()
    try:
        for number in range(3):
            assert not store.images.keep("during", image_of("during", number)), "nothing may refer to it"
        store.descriptions.keep("during", description_of("during", 1), "v1")
        assert store.descriptions.read("during", image_of("during", 1).sha256, "ollama/llava", "v1")
        assert is_whole(store, "before", 1), "what is known is read from memory"
        assert store.find_trouble() is None
    finally:
        servers.s3.start()
    wait_for(lambda: store.images.keep("during", image_of("during", 1)), 30)
    assert len(list_warnings(caplog)) == 1


@requirement("record.faults.soak")
def test_mixed_traffic_leaves_memory_descriptors_threads_and_tasks_flat(
    servers: Servers, environment: Mapping[str, str], tmp_path: Path
) -> None:
    address = servers.address(tmp_path)
    with run_soak(3, "--store", address.store, "--blobs", address.blobs) as soak:
        held = [soak.run_round() for _ in range(10 + ROUNDS)][10:]
    growth = find_growth(held)
    assert growth.megabytes < 8, held
    assert growth.descriptors < 8, held  # a pool keeps a few connections more or fewer
    assert growth.threads < 4, held
    assert growth.tasks < 2, held
    assert min(each.tasks for each in held) > 0
