"""The record on PostgreSQL and S3: the tests of `tests/store` that don't name SQLite's files, on real servers."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.model.seer import Usage
from sightline.store import open_server_record
from sightline.store.migrations import MIGRATIONS
from sightline.store.postgres_database import FIRST_VERSION, list_statements
from tests.e2e.shared_servers import Servers
from tests.requirements import requirement
from tests.store import (
    test_bounds,
    test_leases,
    test_ledger_entries,
    test_loop_answers,
    test_pinned_descriptions,
    test_places,
    test_receipts,
    test_record,
    test_views,
    test_visits,
)
from tests.store.test_bounds import DAY, Clock

KIT = (
    test_bounds,
    test_leases,
    test_ledger_entries,
    test_loop_answers,
    test_pinned_descriptions,
    test_places,
    test_receipts,
    test_record,
    test_views,
    test_visits,
)
# What a test that is about SQLite, its files, or a limit of bytes names.
_OF_FILES = (
    "sqlite",
    "rglob",
    ".glob(",
    '"blobs"',
    "bytes_limit",
    "st_mode",
    "kind=",
    "subprocess",
    "Storage",
    "migrate",
    "blobs_in",
    "write_text",
)
FIXTURE = type(pytest.fixture(lambda: None))


def list_kit() -> Iterator[tuple[str, object]]:
    """Every test and fixture of the kit, by name."""
    for module in KIT:
        for name, found in vars(module).items():
            is_fixture = isinstance(found, FIXTURE) and name not in ("clock", "record", "timed")
            if is_fixture or (name.startswith("test_") and callable(found) and not _is_about_files(found)):
                yield name, found


def _is_about_files(test: object) -> bool:
    source = inspect.getsource(test)  # type: ignore[arg-type]
    return any(word in source for word in _OF_FILES)


globals().update(list_kit())


@pytest.fixture(autouse=True)
def open_on_servers(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Store]]:
    """Open a record on the servers wherever the kit opens one in a folder, and close what it leaves open."""
    opened: list[Store] = []

    def open_record(
        folder: Path, *, days: float = 30.0, now: Callable[[], float] = time.time, check: bool = True
    ) -> Store:
        store = open_server_record(servers.address(folder), days=days, now=now)
        assert not isinstance(store, Refusal), store
        opened.append(store)
        return store

    for name, value in servers.s3.environment().items():
        monkeypatch.setenv(name, value)
    for module in KIT:
        monkeypatch.setattr(module, "open_record", open_record, raising=False)
    yield open_record
    for store in opened:
        store.close()
    servers.recycle_databases()


class KitClock(Clock):
    """The clocks of all modules of the kit."""

    def after(self, seconds: float) -> None:
        self.days += seconds / DAY


@pytest.fixture
def clock() -> KitClock:
    return KitClock()


@pytest.fixture
def timed(open_on_servers: Callable[..., Store], tmp_path: Path, clock: Clock) -> Store:
    return open_on_servers(tmp_path, now=clock)


@pytest.fixture
def record(open_on_servers: Callable[..., Store], tmp_path: Path) -> Store:
    return open_on_servers(tmp_path)


@requirement("record.migrate_server")
@pytest.mark.parametrize("version", range(FIRST_VERSION, len(MIGRATIONS)))
def test_a_record_of_an_earlier_version_is_migrated_on_the_server(
    servers: Servers, open_on_servers: Callable[..., Store], tmp_path: Path, version: int
) -> None:
    """Its receipts stay, and those of the new version are beside them."""
    servers.address(tmp_path)
    statements = list_statements(0)
    with servers.postgres.connect(servers.databases[tmp_path]) as connection:
        for statement in statements[: len(statements) - len(list_statements(version))]:
            connection.execute(statement.encode())
        connection.execute("INSERT INTO sightline (one, version, key) VALUES (1, %s, %s)", (version, "ab" * 32))
        connection.execute(
            "INSERT INTO receipts (scope, wire, upstream, model, labels, sights, notes, bytes, used, at)"
            " VALUES ('', 'anthropic', 'zai', 'old', '[]', %s, '[]', 9, %s, 9)",
            ('[["/messages/0", "told", "by local", 9, 1]]', time.time()),
        )
    record = open_on_servers(tmp_path)
    record.ledger.file_receipt("", replace(test_receipts.taken(1, "new"), usage=Usage(9, 1, 5, 3)))
    newest, oldest = record.ledger.list_receipts(9)
    assert (oldest.receipt.model, oldest.receipt.sights[0].seer, oldest.usage) == ("old", "", Usage())
    assert (newest.usage, newest.trace.turn) == (Usage(9, 1, 5, 3), 1)
    (listed,) = record.ledger.list_conversations(9)
    assert listed.model == newest.receipt.model
