"""Servers of a shared record that are busy: slow statements, locks, and many images to delete."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sightline.model.refusal import Refusal
from sightline.store import open_server_record
from sightline.store.maintenance import collect_garbage, read_stats
from sightline.store.postgres_database import _LOCK, PostgresDatabase
from sightline.store.retention import RecordBounds
from sightline.store.server_errors import ServerError
from sightline.store.sql_store import SqlStore
from tests.e2e.shared_servers import Servers, wait_for
from tests.faults.altered_s3 import AlteredS3
from tests.faults.writer import is_whole, write_all
from tests.requirements import requirement
from tests.store.test_bounds import DAY, Clock
from tests.store.writer import image_of

SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$;
CREATE TRIGGER slow AFTER DELETE ON images FOR EACH STATEMENT EXECUTE FUNCTION slow();
"""
Open = Callable[..., SqlStore]


@pytest.fixture
def environment(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    for name, value in servers.s3.environment().items():
        monkeypatch.setenv(name, value)
    yield os.environ
    servers.recycle_databases()


@pytest.fixture
def open_replica(servers: Servers, environment: Mapping[str, str], tmp_path: Path) -> Iterator[Open]:
    opened: list[SqlStore] = []

    def open_one(now: Callable[[], float] = time.time) -> SqlStore:
        replica = open_server_record(servers.address(tmp_path), now=now)
        assert not isinstance(replica, Refusal), replica
        opened.append(replica)
        return replica

    yield open_one
    for replica in opened:
        replica.close()


@requirement("record.shared.slow")
def test_a_slow_statement_is_cancelled_and_the_server_is_not_down(
    servers: Servers, environment: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresDatabase, "reply_seconds", 1.0)
    database = PostgresDatabase(servers.address(tmp_path).store)
    try:
        with pytest.raises(ServerError) as raised:
            database.fetch_all("SELECT 1 FROM pg_sleep(30)")
        assert not raised.value.is_down
        with pytest.raises(ServerError) as raised, database.begin() as connection:
            connection.execute("SELECT 1 FROM pg_sleep(30)")
        assert not raised.value.is_down
        with servers.postgres.connect() as other:
            query = (
                "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'SELECT 1 FROM pg_sleep%' AND state = 'active'"
            )
            assert other.execute(query).fetchone() == (0,), "the server doesn't go on either"
        with database.allow_long_statements():
            assert database.fetch_all("SELECT 1 FROM pg_sleep(2)") == [(1,)]
        assert database.fetch_all("SELECT 1") == [(1,)]
    finally:
        database.close()


@requirement("record.shared.slow")
def test_a_large_record_is_swept_counted_and_forgotten_slowly(
    servers: Servers, open_replica: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresDatabase, "reply_seconds", 1.0)
    clock = Clock()
    store = open_replica(clock)
    for number in range(3):
        assert store.images.keep("scope", image_of("cat", number))
        clock.days += 0.8
    with servers.postgres.connect(servers.databases[tmp_path]) as connection:
        connection.execute(SLOW)
    gone = collect_garbage(store, RecordBounds(1 << 40, 1.0), lambda *progress: None)
    assert (gone.rows, read_stats(store).images) == (2, 1)
    assert store.forget(None) == 1
    assert store.find_trouble() is None


@requirement("record.shared.slow")
def test_waiting_for_the_lock_of_the_record_is_no_outage(servers: Servers, open_replica: Open, tmp_path: Path) -> None:
    store = open_replica()
    with servers.postgres.connect(servers.databases[tmp_path]) as other, other.transaction():
        other.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        assert not store.images.keep("scope", image_of("cat", 1)), "it is not reported as stored"
        refused = store.policy.set_consent("openai", given=True)
        assert isinstance(refused, Refusal)
        assert "busy" in refused.what
        assert store.find_trouble() is None
    write_all(store, "cat", 1)
    assert is_whole(store, "cat", 1)


@requirement("record.shared.slow")
def test_a_replica_that_starts_waits_for_one_that_migrates(
    servers: Servers, open_replica: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresDatabase, "reply_seconds", 1.0)
    servers.address(tmp_path)
    name = servers.databases[tmp_path]
    migrate = f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK}); SELECT pg_sleep(3); COMMIT"
    locks = "SELECT COUNT(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND granted"
    with (
        servers.postgres.connect(name) as other,
        servers.postgres.connect(name) as watching,
        ThreadPoolExecutor(1) as threads,
    ):
        migrating = threads.submit(other.execute, migrate.encode())
        wait_for(lambda: watching.execute(locks).fetchone() == (True,))
        assert open_replica().images.keep("scope", image_of("cat", 1))
        migrating.result(20.0)


@requirement("store.gc", "record.shared.slow")
def test_many_images_are_deleted_with_few_requests(
    servers: Servers, environment: Mapping[str, str], open_replica: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AlteredS3(servers.s3) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.url)
        clock = Clock()
        clock.days = time.time() / DAY
        store = open_replica(clock)
        blobs = store.transactions.backend.blobs
        for number in range(20):
            blobs.write(image_of("cat", number).sha256, image_of("cat", number).data)
        clock.days += 1.1  # younger ones are spared
        before = between.count
        assert collect_garbage(store, RecordBounds(1 << 40, 30.0), lambda *progress: None).blobs == 20
        assert between.count - before <= 4
        assert list(blobs.list_names()) == []
        for number in range(20):
            assert store.images.keep("scope", image_of("cat", number))
        before = between.count
        assert store.forget(None) == 20
        assert between.count - before <= 4
        assert list(blobs.list_names()) == []
