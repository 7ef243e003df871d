"""Faults of a shared record: killed and frozen replicas, servers that restart, hang or fail. Fixed seeds."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.model.ports import Lease, Store
from sightline.model.refusal import Refusal
from sightline.store import object_blobs, open_server_record
from sightline.store.migrations import MIGRATIONS
from tests.cli.command import POWERLESS, sightline
from tests.cli.test_serve import serving
from tests.e2e.shared_servers import Servers, wait_for
from tests.faults.altered_s3 import (
    AlteredS3,
    change_bytes,
    change_etag,
    hang,
    pass_on,
    refuse_bulk_deletes,
    refuse_for_a_while,
)
from tests.faults.kills import KillReport
from tests.faults.traffic import find_growth
from tests.faults.trials import Trials
from tests.faults.writer import is_whole, write_all
from tests.proxy.clients import ask_chat, pasted_chat
from tests.real_servers import ROOT
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.faults import Hang
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import deepseek
from tests.scripted.server import Reply
from tests.store.damaged_records import fill
from tests.store.writer import description_of, image_of

KILLS, SOAK_SECONDS = 20, 60.0


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


@pytest.fixture(scope="module", autouse=True)
def running_trials(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str] | None]:
    """The process of the trials, which take more than a minute: it starts first, and its tests are the last ones."""
    if not any("trials" in item.fixturenames for item in request.session.items if isinstance(item, pytest.Function)):
        yield None
        return
    words = [sys.executable, "-m", "tests.faults.trials", str(KILLS), str(SOAK_SECONDS)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)  # it ends its servers


@pytest.fixture(scope="module")
def trials(running_trials: subprocess.Popen[str]) -> Trials:
    """Writers killed on both engines, and a minute of mixed traffic through a proxy meanwhile."""
    return Trials.parse(running_trials.communicate()[0])


FROZEN = """
import os, sys
from sightline.model.ports import Lease
from sightline.model.shared_address import SharedAddress
from sightline.store import object_blobs, open_server_record
from tests.store.damaged_records import fill
from tests.store.writer import description_of
from dataclasses import dataclass, replace
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
    assert store.policy.read_consents() == {"openai": True}
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
    assert len(list_warnings(caplog)) == 2, "once that it failed, once that it works again"


@requirement("record.shared.rolling", "law.9")
def test_an_older_replica_goes_on_after_a_newer_one_has_migrated_the_record(
    servers: Servers, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """When it has to connect again, it says what to do, goes on in memory, and uses the record as soon as it can."""
    caplog.set_level(logging.WARNING, "sightline.store")
    write_all(store, "before", 1)

    def set_version(version: int) -> None:
        with servers.postgres.connect(servers.databases[tmp_path]) as connection:
            connection.execute("UPDATE sightline SET version = %s", (version,))

    with servers.postgres.connect(servers.databases[tmp_path]) as connection:
        connection.execute("ALTER TABLE images ADD COLUMN later TEXT NOT NULL DEFAULT ''")
    set_version(len(MIGRATIONS) + 1)
    wait_for(lambda: len(list_warnings(caplog)) == 1)
    assert store.images.keep("after", image_of("after", 1)), "it is stored, on the servers"
    assert store.images.read("after", image_of("after", 1).sha256)
    assert store.find_trouble() is None
    servers.postgres.stop()
    assert store.images.keep("during", image_of("during", 1)) is False
    servers.postgres.start()
    wait_for(lambda: len(list_warnings(caplog)) == 3)
    trouble = store.find_trouble()
    assert trouble is not None
    assert "newer version" in trouble.what
    assert store.images.read("after", image_of("after", 1).sha256), "what it knows is served"
    set_version(len(MIGRATIONS))
    wait_for(lambda: store.find_trouble() is None)
    assert store.images.keep("during", image_of("during", 1))
    assert len(list_warnings(caplog)) == 4, "each state once"


@pytest.fixture
def altered(servers: Servers, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[AlteredS3]:
    """Object storage whose answers are altered on their way; use it before `store`."""
    with AlteredS3(servers.s3) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.url)
        yield between


@requirement("record.faults.servers", "record.before_reference", "law.9")
def test_object_storage_that_answers_503_costs_images_until_it_answers_again(
    altered: AlteredS3, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "sightline.store")
    write_all(store, "before", 1)
    altered.alter = refuse_for_a_while
    for number in range(3):
        assert not store.images.keep("during", image_of("during", number)), "nothing may refer to it"
    assert is_whole(store, "before", 1), "what is known is read from memory"
    asked = altered.count
    assert not store.images.keep("during", image_of("during", 4))
    assert altered.count == asked, "it is not asked with every request"
    altered.alter = pass_on
    wait_for(lambda: store.images.keep("during", image_of("during", 1)), 30)
    assert len(list_warnings(caplog)) == 2, "once that it failed, once that it works again"


@requirement("record.shared.outages", "law.9")
def test_each_outage_of_object_storage_is_reported_and_its_end_too(
    altered: AlteredS3, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "sightline.store")
    for outage in range(2):
        altered.alter = refuse_for_a_while
        for number in range(2):
            assert not store.images.keep("during", image_of("during", 10 * outage + number))
        altered.alter = pass_on
        wait_for(lambda outage=outage: store.images.keep("after", image_of("after", outage)), 30)  # type: ignore[misc]
    ends = ["used again" in warning for warning in list_warnings(caplog)]
    assert ends == [False, True, False, True]


@requirement("record.shared.outages")
def test_an_outage_of_storing_is_not_over_because_reading_works(
    altered: AlteredS3, store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_blobs, "_PAUSE_SECONDS", 0.0)
    caplog.set_level(logging.WARNING, "sightline.store")
    altered.alter = lambda exchange, reply: Reply(507, (), ()) if exchange.method == "PUT" else reply
    for number in range(3):
        assert not store.images.keep("during", image_of("during", number))
    assert len(list_warnings(caplog)) == 1
    altered.alter = pass_on
    assert store.images.keep("during", image_of("during", 3))
    assert len(list_warnings(caplog)) == 2


@requirement("record.blobs", "record.faults.servers")
def test_objects_are_deleted_one_by_one_where_many_at_once_is_not_known(
    servers: Servers, altered: AlteredS3, tmp_path: Path
) -> None:
    altered.refuse = refuse_bulk_deletes
    store = open_server_record(servers.address(tmp_path))
    assert not isinstance(store, Refusal), "the check at the start deletes an object, too"
    images = [image_of("cat", number) for number in range(3)]
    for image in images:
        assert store.images.keep("scope", image)
    assert store.forget(images[0].sha256) == 1
    blobs = store.transactions.backend.blobs
    assert [blobs.confirm(image.sha256) for image in images] == [False, True, True]
    assert store.forget(None) == 2
    assert [blobs.confirm(image.sha256) for image in images] == [False, False, False]
    store.close()


@requirement("record.faults.servers", "law.9")
def test_slow_object_storage_delays_only_who_waits_for_it(altered: AlteredS3, store: Store) -> None:
    write_all(store, "before", 1)
    slow = Hang()
    altered.alter = hang(slow)
    with ThreadPoolExecutor(1) as threads:
        kept = threads.submit(store.images.keep, "during", image_of("during", 1))
        slow.reached.result(30)
        store.descriptions.keep("during", description_of("during", 1), "v1")
        assert store.descriptions.read("during", image_of("during", 1).sha256, "ollama/llava", "v1")
        assert is_whole(store, "before", 1)
        assert not kept.done(), "it is not reported as stored before it is"
        slow.release()
        assert kept.result(30)


@requirement("record.faults.servers")
def test_wrong_etags_are_ignored_and_wrong_bytes_are_never_returned(
    servers: Servers, altered: AlteredS3, store: Store, tmp_path: Path
) -> None:
    altered.alter = change_etag
    write_all(store, "cat", 1)
    other = open_server_record(servers.address(tmp_path))  # whose caches are empty
    assert not isinstance(other, Refusal), other
    assert is_whole(other, "cat", 1)
    other.close()
    other = open_server_record(servers.address(tmp_path))
    assert not isinstance(other, Refusal), other
    altered.alter = change_bytes
    sha256 = image_of("cat", 1).sha256
    assert other.images.read("cat", sha256) is None
    altered.alter = pass_on
    assert other.images.read("cat", sha256) == image_of("cat", 1), "a wrong answer costs no object"
    other.close()


@pytest.fixture
def record() -> Path:
    """The folder of the record of this test's proxy."""
    return Path(os.environ["SIGHTLINE_HOME"]) / "record"


def truncate(record: Path) -> None:
    os.truncate(record / "record.sqlite", 5000)


def garble(record: Path) -> None:
    size = (record / "record.sqlite").stat().st_size
    (record / "record.sqlite").write_bytes(b"garbage " * (size // 8))


def delete(record: Path) -> None:
    shutil.rmtree(record.rename(record.with_name("gone")))


@requirement("record.faults.disk", "law.9")
@pytest.mark.parametrize("harm", [truncate, garble, delete])
def test_a_record_that_is_damaged_under_a_running_server_costs_no_request(
    harm: Callable[[Path], None], record: Path
) -> None:
    fill(record)  # and close it: pages that are only in the log can't be damaged in the database
    with deepseek() as provider, serving("--upstream", f"deepseek={provider.url}") as (process, url):
        describe(url, 1)
        harm(record)
        for number in range(2, 5):
            describe(url, number)
        assert harm is delete or sightline("store", "repair").code == 0
        before = count_descriptions(record)
        describe(url, 5)
        assert count_descriptions(record) == before + 1, "the record is used again"
        process.send_signal(signal.SIGTERM)
        told = [line for line in process.communicate(timeout=60)[1].splitlines() if "ecord" in line]
    assert sum("can be used again" not in line and "opened again" not in line for line in told) <= 1, told
    assert told


@requirement("record.faults.disk", "law.9")
def test_a_disk_that_is_full_for_a_while_costs_no_request(record: Path) -> None:
    with deepseek() as provider, serving("--upstream", f"deepseek={provider.url}") as (process, url):
        describe(url, 1)
        before = count_descriptions(record)
        _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, most))
        for number in range(2, 5):
            describe(url, number)
        assert count_descriptions(record) == before
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
        describe(url, 5)
        assert count_descriptions(record) == before + 1
        process.send_signal(signal.SIGTERM)
        told = [line for line in process.communicate(timeout=60)[1].splitlines() if "ecord" in line]
    assert len(told) == 1, told


@requirement("record.faults.disk", "law.9")
def test_a_folder_that_is_read_only_for_a_while_costs_no_request(record: Path) -> None:
    """The server gives up the administrator's right to write everywhere."""
    words = ("--upstream",)
    with deepseek() as provider, serving(*words, f"deepseek={provider.url}", command=POWERLESS) as (process, url):
        describe(url, 1)
        blobs = record / "blobs"
        folders = [blobs, *(path for path in blobs.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o500)
        for number in range(2, 5):
            describe(url, number)
        for folder in folders:
            folder.chmod(0o700)
        describe(url, 5)
        process.send_signal(signal.SIGTERM)
        told = [line for line in process.communicate(timeout=60)[1].splitlines() if "ecord" in line]
    assert len(told) == 1, told


def describe(url: str, number: int) -> None:
    """Ask for an image, which the model gets as words whatever happens to the record."""
    colours = some_colours(number)
    answer = ask_chat(f"{url}/u/deepseek", "deepseek-v4-pro", pasted_chat(paint_quadrants(colours)))
    assert describe_quadrants(colours) in answer


def count_descriptions(record: Path) -> int:
    with closing(sqlite3.connect(record / "record.sqlite")) as connection:
        (count,) = connection.execute("SELECT COUNT(*) FROM tellings").fetchone()
        return int(count)


@requirement("record.acknowledged", "record.faults.kills")
@pytest.mark.parametrize("engine", ["on_disk", "on_servers"])
def test_twenty_killed_writers_lose_nothing(trials: Trials, engine: str) -> None:
    report: KillReport = getattr(trials, engine)
    assert report.kills == KILLS
    assert report.opening == KILLS // 4, "a record that was being created could be opened and used after that"
    assert report.migrating == KILLS // 4, "one of an earlier version had all its rows, and could be used"
    assert report.acknowledged > KILLS, "the others were killed while they wrote"
    assert (report.lost, report.half_written, report.without_bytes) == (0, 0, 0)


@requirement("record.faults.soak")
def test_a_minute_of_mixed_traffic_leaves_memory_descriptors_threads_and_tasks_flat(trials: Trials) -> None:
    growth = find_growth(trials.held)
    assert growth.megabytes < 8, trials.held
    assert growth.descriptors < 8, trials.held  # a pool keeps a few connections more or fewer
    assert growth.threads < 4, trials.held
    assert growth.tasks < 2, trials.held
    assert min(each.tasks for each in trials.held) > 0
