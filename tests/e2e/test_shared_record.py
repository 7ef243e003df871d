"""Replicas that share a record on PostgreSQL and S3: what they see of each other, and servers that can't be used."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from sightline.memory_reads import NotInMemoryError, read_in_memory, read_record
from sightline.model.ports import Lease, Store
from sightline.model.profile import Lesson
from sightline.model.records import LoopAnswer, PinnedDescription
from sightline.model.refusal import Refusal
from sightline.store import open_server_record, shared_storage, sql_conversations
from sightline.store.maintenance import GarbageCount, collect_garbage, read_stats
from sightline.store.retention import RecordBounds
from sightline.store.sql_store import SqlStore
from tests.e2e.shared_servers import Servers, wait_for
from tests.real_servers import PASSWORD, USER, free_ports
from tests.requirements import requirement
from tests.store.test_bounds import DAY, Clock
from tests.store.test_copy import copy, describe_content, fill, open_folder
from tests.store.writer import description_of, image_of

Open = Callable[..., Store]


@pytest.fixture
def open_replica(servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Open one more replica of the test's record; all are closed in the end."""
    opened: list[Store] = []

    def open_one(now: Callable[[], float] = time.time, store: str = "", blobs: str = "") -> Store:
        address = servers.address(tmp_path)
        address = replace(address, store=store or address.store, blobs=blobs or address.blobs)
        replica = open_server_record(address, now=now)
        assert not isinstance(replica, Refusal), replica
        opened.append(replica)
        return replica

    for name, value in servers.s3.environment().items():
        monkeypatch.setenv(name, value)
    yield open_one
    for replica in opened:
        replica.close()
    servers.recycle_databases()


@requirement("record.postgres", "record.blobs")
def test_two_replicas_share_images_descriptions_and_scopes(open_replica: Open) -> None:
    one, other = open_replica(), open_replica()
    scope = one.compute_scope("a key")
    assert other.compute_scope("a key") == scope
    assert one.images.keep(scope, image_of("cat", 1))
    one.descriptions.keep(scope, description_of("cat", 1), "v1")
    sha256 = image_of("cat", 1).sha256
    assert other.images.read(scope, sha256) == image_of("cat", 1)
    assert other.images.read("another", sha256) is None
    assert other.descriptions.read(scope, sha256, "ollama/llava", "v1") == description_of("cat", 1)


@requirement("record.blobs.folder")
def test_two_replicas_share_images_in_a_folder(open_replica: Open, tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    one, other = open_replica(blobs=f"file://{folder}"), open_replica(blobs=f"file://{folder}")
    image = image_of("cat", 1)
    assert one.images.keep("scope", image)
    assert other.images.read("scope", image.sha256) == image
    assert other.images.find_kept_images("scope", [image.sha256]) == {image.sha256}
    assert other.forget(image.sha256) == 1
    assert list(folder.rglob(image.sha256)) == []
    wait_for(lambda: one.images.read("scope", image.sha256) is None)
    assert one.images.keep("scope", image), "it can be stored again"
    assert other.images.read("scope", image.sha256) == image
    assert one.forget(None) == 1
    assert [path for path in folder.rglob("*") if path.is_file()] == []


@requirement("record.postgres")
def test_a_record_behind_a_pooler_in_transaction_mode_is_the_same(
    servers: Servers, open_replica: Open, tmp_path: Path
) -> None:
    if servers.bouncer is None:
        pytest.fail("pgbouncer is not installed; run scripts/stores-env as root")
    direct = open_replica()
    pooled = open_replica(store=servers.bouncer.address(servers.databases[tmp_path]))
    for number in range(20):
        assert pooled.images.keep("scope", image_of("cat", number))
    assert pooled.policy.set_consent("openai", given=True) is None
    assert pooled.descriptions.claim_lease(Lease("scope", "look", "me"), 0, 6) is None
    assert direct.descriptions.claim_lease(Lease("scope", "look", "you"), 0, 6) == "me"
    found = direct.images.find_kept_images("scope", [image_of("cat", number).sha256 for number in range(20)])
    assert len(found) == 20


@requirement("record.shared.fencing")
def test_an_owner_that_has_lost_its_lease_replaces_nothing(open_replica: Open) -> None:
    clock = Clock()
    frozen, other = open_replica(clock), open_replica(clock)
    lease = Lease("scope", "look", "frozen")
    assert frozen.descriptions.claim_lease(lease, 0, 6) is None
    clock.days += 7 / DAY
    taken = replace(lease, owner="other")
    assert other.descriptions.claim_lease(taken, 0, 6) is None
    kept = description_of("cat", 1)
    other.descriptions.keep("scope", kept, "v1", taken)
    frozen.descriptions.keep("scope", replace(kept, text="too late"), "v1", lease)
    frozen.descriptions.finish_lease(lease, "too late")
    for store in (frozen, other):
        assert store.descriptions.read("scope", kept.sha256, kept.seer, "v1") == kept
        assert store.descriptions.read_lease(taken) == (True, None)


@requirement("record.shared.change")
def test_a_change_in_one_replica_reaches_the_caches_of_another(open_replica: Open) -> None:
    one, other = open_replica(), open_replica()
    image = image_of("cat", 1)
    one.images.keep("scope", image)
    assert one.policy.set_consent("openai", given=True) is None
    wait_for(lambda: other.policy.read_consents() == {"openai": True})
    assert other.images.find_kept_images("scope", [image.sha256]) == {image.sha256}
    assert one.policy.set_consent("openai", given=False) is None
    assert one.forget(image.sha256) == 1
    wait_for(lambda: other.policy.read_consents() == {"openai": False})
    wait_for(lambda: not other.images.find_kept_images("scope", [image.sha256]))
    assert other.images.read("scope", image.sha256) is None


@requirement("record.shared.change")
def test_a_notification_is_quicker_than_the_next_poll(open_replica: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_storage, "_POLL_SECONDS", 3600.0)
    one, other = open_replica(), open_replica()
    for given in (True, False):
        assert one.policy.set_consent("openai", given=given) is None
        wait_for(lambda given=given: other.policy.read_consents() == {"openai": given})  # type: ignore[misc]


@requirement("record.shared.answers")
def test_every_replica_finds_the_first_answer_of_a_scope_when_its_client_has_it(
    servers: Servers, open_replica: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither polls nor notifications help the other replica."""
    if servers.bouncer is None:
        pytest.fail("pgbouncer is not installed; run scripts/stores-env as root")
    monkeypatch.setattr(shared_storage, "_POLL_SECONDS", 3600.0)
    monkeypatch.setattr(sql_conversations, "ABSENT_SECONDS", 0.5)
    one = open_replica()
    other = open_replica(store=servers.bouncer.address(servers.databases[tmp_path]))
    for number, (writer, reader) in enumerate([(one, other), (other, one)]):
        scope = f"scope {number}"
        assert not reader.conversations.has_answers(scope)
        if number:
            writer.conversations.expect_answer(scope)
        seconds = writer.conversations.keep_answer(scope, LoopAnswer("key", "v", "", [], ()))
        assert 0 < seconds <= 0.5
        assert writer.conversations.has_answers(scope), "it knows at once what it has written itself"
        time.sleep(seconds)
        assert reader.conversations.has_answers(scope)
        assert writer.conversations.keep_answer(scope, LoopAnswer("next", "v", "", [], ())) == 0


@requirement("record.shared.answers")
def test_the_first_answer_of_a_scope_is_announced(open_replica: Open) -> None:
    one, other = open_replica(), open_replica()
    assert not other.conversations.has_answers("scope")
    for number in range(3):
        one.conversations.keep_answer("scope", LoopAnswer(f"key {number}", "v", "", [], ()))
    wait_for(lambda: count_seen_changes(other) == 1)
    assert other.conversations.has_answers("scope")


@requirement("record.shared.loop")
def test_what_is_not_in_memory_is_not_read_in_the_event_loop(open_replica: Open) -> None:
    one, other = open_replica(), open_replica()
    image = image_of("cat", 1)
    one.images.keep("scope", image)
    find = partial(other.images.find_kept_images, "scope", [image.sha256])
    reads: list[Callable[[], object]] = [
        find,
        partial(other.images.read, "scope", image.sha256),
        partial(other.descriptions.read_pin, "scope", "turn", (image.sha256,)),
        partial(other.policy.read_lesson, "upstream", "model"),
        partial(other.conversations.has_answers, "scope"),
    ]
    for read in reads:
        with pytest.raises(NotInMemoryError):
            read_in_memory(read)
    assert asyncio.run(read_record(find)) == {image.sha256}
    assert read_in_memory(find) == {image.sha256}


@requirement("record.shared.loop", "record.shared.change")
def test_consents_and_lessons_are_in_memory_after_a_change_too(open_replica: Open) -> None:
    one, other = open_replica(), open_replica()
    assert read_in_memory(other.policy.read_consents) == {}, "they were read at the start"
    assert other.policy.keep_lesson("up", "other", Lesson(blind=False), days=7) is None
    assert other.policy.read_lesson("up", "model") is None
    assert other.policy.read_lesson("up", "other"), "and so was the time"
    blind = Lesson(blind=True, why="it said so")
    for number, (writer, given) in enumerate([(one, True), (other, False)], 1):
        assert writer.policy.keep_lesson("up", "model", blind, days=7) is None
        assert writer.policy.set_consent("openai", given=given) is None
        for replica in (one, other):
            wait_for(lambda replica=replica, number=number: count_seen_changes(replica) == 2 * number + 1)  # type: ignore[misc]
            assert read_in_memory(replica.policy.read_consents) == {"openai": given}
        assert read_in_memory(other.policy.read_lesson, "up", "model") == blind


@requirement("record.shared.own_change")
def test_a_replica_keeps_its_images_in_memory_after_its_own_change(servers: Servers, open_replica: Open) -> None:
    one, other = open_replica(), open_replica()
    image = image_of("cat", 1)
    one.images.keep("scope", image)
    assert other.images.read("scope", image.sha256) == image
    assert one.policy.set_consent("openai", given=True) is None
    for replica in (one, other):
        wait_for(lambda replica=replica: count_seen_changes(replica) == 1)  # type: ignore[misc]
    servers.s3.process.freeze()
    try:
        assert one.images.read("scope", image.sha256) == image, "its change concerned no other process's images"
    finally:
        servers.s3.process.thaw()
    assert one.policy.read_consents() == other.policy.read_consents() == {"openai": True}
    assert other.policy.set_consent("google", given=True) is None
    wait_for(lambda: one.policy.read_consents() == {"openai": True, "google": True})


def count_seen_changes(store: Store) -> int:
    assert isinstance(store, SqlStore)
    assert isinstance(store.transactions.storage, shared_storage.SharedStorage)
    return store.transactions.storage._changes


@requirement("record.shared.change")
def test_a_change_is_noticed_behind_a_pooler_that_passes_no_notifications(
    servers: Servers, open_replica: Open, tmp_path: Path
) -> None:
    if servers.bouncer is None:
        pytest.fail("pgbouncer is not installed; run scripts/stores-env as root")
    one = open_replica()
    other = open_replica(store=servers.bouncer.address(servers.databases[tmp_path]))
    for given in (True, False):
        assert one.policy.set_consent("openai", given=given) is None
        wait_for(lambda given=given: other.policy.read_consents() == {"openai": given})  # type: ignore[misc]


@requirement("record.shared.hot_path")
def test_known_images_and_descriptions_need_no_server(servers: Servers, open_replica: Open) -> None:
    store = open_replica()
    image, words = image_of("cat", 1), description_of("cat", 1)
    store.images.keep("scope", image)
    store.descriptions.keep("scope", words, "v1")
    store.descriptions.pin("scope", PinnedDescription("turn", (image.sha256,), {"text": "a cat"}))

    def look() -> object:
        return (
            store.images.find_kept_images("scope", [image.sha256]),
            store.images.read("scope", image.sha256),
            store.descriptions.read("scope", image.sha256, words.seer, "v1"),
            store.descriptions.read_pin("scope", "turn", (image.sha256,)),
            store.descriptions.read_saved("scope", image.sha256),
            store.policy.read_lesson("upstream", "model"),
            store.policy.read_consents(),
            store.conversations.has_answers("scope"),
        )

    first = look()
    assert store.conversations.visit("scope", "head", ["a", "b"], [1], 300.0) == set()
    for server in (servers.postgres, servers.s3):
        server.process.freeze()
    try:
        assert look() == first, "nothing has waited for a server, else it would have been given up"
        for names in (["a", "b", "c"], ["a", "b", "c", "d"]):
            assert store.conversations.visit("scope", "head", names, [*range(1, len(names))], 300.0) == set()
        assert store.find_trouble() is None
    finally:
        for server in (servers.postgres, servers.s3):
            server.process.thaw()


def flush_all(*stores: Store) -> None:
    """Write what is deferred for half a second."""
    for store in stores:
        assert isinstance(store, SqlStore)
        store.flush()


@requirement("record.shared.visits")
@pytest.mark.parametrize("order", ["ab", "aab", "abba", "aabb", "abab"])
def test_replicas_agree_on_cold_caches_whichever_of_them_is_visited(open_replica: Open, order: str) -> None:
    """Requests of one conversation go to replicas in turn; a long pause comes before the second to last one."""
    clock = Clock()
    replicas = {name: open_replica(clock) for name in "ab"}
    names, colds = ["message 0"], []
    for number, name in enumerate(order):
        pause = 400.0 if number == len(order) - 2 else 10.0
        clock.days += pause / DAY
        flush_all(*replicas.values())
        colds.append(replicas[name].conversations.visit("scope", "head", names, [*range(len(names))], 300.0))
        colds.append(replicas[name].conversations.visit("scope", "head", names, [*range(len(names))], 300.0))
        names = [*names, f"message {len(names)}"]
    is_cold = len(order) > 2
    expected = {f"message {len(order) - 2}"} if is_cold else set()
    assert all(cold == set() for cold in colds[:-4])
    assert colds[-4:] == [expected] * 4
    flush_all(*replicas.values())
    for store in (*replicas.values(), open_replica(clock)):
        assert store.conversations.visit("scope", "head", names, [*range(len(names))], 300.0) == expected


@requirement("store.copy")
def test_a_record_on_a_disk_moves_to_servers_and_back_with_everything(open_replica: Open, tmp_path: Path) -> None:
    disk, back = open_folder(tmp_path / "disk"), open_folder(tmp_path / "back")
    fill(disk)
    shared = open_replica()
    assert isinstance(shared, SqlStore)
    copy(disk, shared)
    content = describe_content(disk)
    assert describe_content(shared) == content
    assert sum(copy(disk, shared).copied.values()) == 0
    copy(shared, back)
    assert describe_content(back) == content
    disk.close()
    back.close()


@requirement("store.gc")
def test_garbage_of_a_shared_record_is_deleted(open_replica: Open) -> None:
    clock = Clock()
    clock.days = time.time() / DAY
    store = open_replica(clock)
    assert isinstance(store, SqlStore)
    fill(store)
    orphan = image_of("nobody's", 1)
    store.transactions.backend.blobs.write(orphan.sha256, orphan.data)
    bounds = RecordBounds(1 << 40, 1.5)
    assert collect_garbage(store, bounds, lambda *progress: None) == GarbageCount(0, 0), "it may be another record's"
    before = read_stats(store)
    clock.days += 1
    assert store.images.keep("scope", image_of("dog", 1))
    clock.days += 0.9
    gone = collect_garbage(store, bounds, lambda *progress: None)
    assert (gone.rows > before.images, gone.blobs) == (True, 1)
    assert read_stats(store).images == 1
    assert store.images.read("scope", image_of("dog", 1).sha256) == image_of("dog", 1)
    assert not store.transactions.backend.blobs.confirm(orphan.sha256)
    assert collect_garbage(store, RecordBounds(0, 1.5), lambda *progress: None).rows == 0, "it was used in the last day"
    clock.days += 1.5
    assert collect_garbage(store, RecordBounds(0, 30.0), lambda *progress: None).rows == 1


@requirement("record.forget.shared")
def test_forgetting_everything_spares_new_objects_without_a_row(open_replica: Open) -> None:
    clock = Clock()
    clock.days = time.time() / DAY
    store = open_replica(clock)
    assert isinstance(store, SqlStore)
    fill(store)
    blobs, orphan = store.transactions.backend.blobs, image_of("another record's", 1)
    blobs.write(orphan.sha256, orphan.data)
    assert store.forget(None)
    assert list(blobs.list_names()) == [orphan.sha256]
    clock.days += 2
    assert store.forget(None) == 0
    assert list(blobs.list_names()) == []


# Addresses, passwords, rights and schemas that can't be used: one line, exit 1, nothing created, no password shown.


def serve(servers: Servers, store: str, blobs: str, key: str = "writer") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sightline", "serve", "--port", "0", "--store", store, "--blobs", blobs]
    environment = {**os.environ, **servers.s3.environment(key)}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def assert_refused(ended: subprocess.CompletedProcess[str], *words: str) -> None:
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert all(word in ended.stderr for word in words), ended.stderr
    for secret in (PASSWORD, "wrong-word", "reader-secret"):
        assert secret not in ended.stderr


def list_tables(servers: Servers, database: str) -> set[object]:
    with servers.postgres.connect(database) as connection:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        return {name for (name,) in connection.execute(query)}


@requirement("record.shared.refused", "record.shared.secret")
def test_servers_that_cannot_be_used_are_refused_and_nothing_is_created(servers: Servers, tmp_path: Path) -> None:
    address = servers.address(tmp_path)
    name, postgres = servers.databases[tmp_path], servers.postgres
    assert_refused(serve(servers, postgres.address(name, password="wrong-word"), address.blobs), "password")
    assert_refused(serve(servers, postgres.address("missing"), address.blobs), "missing")
    (port,) = free_ports(1)
    nowhere = f"postgresql://{USER}:wrong-word@127.0.0.1:{port}/{name}"
    assert_refused(serve(servers, nowhere, address.blobs), "127.0.0.1")
    assert_refused(serve(servers, f"{address.store}?nonsense=wrong-word", address.blobs), "address")
    assert_refused(serve(servers, address.store, "file:///proc/nowhere"), "/proc/nowhere")
    for key in ("reader", "stranger"):
        assert_refused(serve(servers, address.store, "s3://records/denied", key), "s3://records/denied")
    assert list_tables(servers, name) == set()
    servers.recycle_databases()


@requirement("record.shared.refused")
@pytest.mark.parametrize("version", [3, 10_000])
def test_another_schema_is_refused_and_left_alone(
    servers: Servers, open_replica: Open, tmp_path: Path, version: int
) -> None:
    open_replica().close()
    address = servers.address(tmp_path)
    with servers.postgres.connect(servers.databases[tmp_path]) as connection:
        connection.execute("UPDATE sightline SET version = %s", (version,))
        for blobs in (address.blobs, f"file://{tmp_path}/blobs"):
            assert_refused(serve(servers, address.store, blobs), "version")
        assert connection.execute("SELECT version FROM sightline").fetchone() == (version,)
    assert not (tmp_path / "blobs").exists()


@requirement("record.shared.refused")
def test_a_user_who_may_create_no_tables_is_refused_and_nothing_is_created(servers: Servers, tmp_path: Path) -> None:
    servers.address(tmp_path)
    name = servers.databases[tmp_path]
    with servers.postgres.connect(name) as connection:
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'wrong-word'")
    guest = servers.postgres.address(name, password="wrong-word", user="guest")
    assert_refused(serve(servers, guest, f"file://{tmp_path}/blobs"), "create tables")
    assert list_tables(servers, name) == set()
    assert not (tmp_path / "blobs").exists()
    with servers.postgres.connect(name) as connection:
        connection.execute("DROP ROLE guest")
    servers.recycle_databases()


@requirement("record.shared.refused")
def test_tables_of_another_program_are_refused_and_left_alone(servers: Servers, tmp_path: Path) -> None:
    address = servers.address(tmp_path)
    name = servers.databases[tmp_path]
    with servers.postgres.connect(name) as connection:
        connection.execute("CREATE TABLE images (name TEXT)")
    assert_refused(serve(servers, address.store, address.blobs), "another program")
    assert list_tables(servers, name) == {"images"}
    servers.recycle_databases()
