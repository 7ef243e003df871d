"""A disk that is full, read-only or locked: reads continue, and no failed write is reported as durable."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.model.ports import Store
from sightline.model.profile import Lesson
from sightline.model.refusal import Refusal
from sightline.store import delete_record, open_record, open_record_or_refuse
from sightline.store.record_folder import build_refusal
from sightline.store.retention import RecordTime, update_record_time
from sightline.store.sqlite_database import Database
from tests.requirements import requirement
from tests.store.test_bounds import Clock
from tests.store.writer import description_of, image_of, perception_of

IMAGE, OTHER = image_of("cat", 1), image_of("dog", 2)


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.store.sqlite_database._BUSY_SECONDS", 0.05)


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """No file can grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def filled(folder: Path) -> Path:
    record = open_record(folder)
    assert record.images.keep("scope", IMAGE) is True
    assert record.images.keep_view("scope", perception_of("cat", 1)) is True
    record.descriptions.keep("scope", description_of("cat", 1), "v1")
    record.close()
    return folder


def assert_reads(record: Store) -> None:
    assert record.images.read("scope", IMAGE.sha256) == IMAGE
    assert record.descriptions.read("scope", IMAGE.sha256, "ollama/llava", "v1") == description_of("cat", 1)


@requirement("record.before_reference")
def test_keeping_an_image_reports_whether_it_is_durable(record: Store) -> None:
    assert record.images.keep("scope", IMAGE) is True
    assert record.images.keep("scope", IMAGE) is True
    assert record.images.keep_view("scope", perception_of("cat", 1)) is True


@requirement("record.before_reference", "record.trouble")
def test_a_failed_write_is_reported(tmp_path: Path) -> None:
    record = open_record(filled(tmp_path))
    shutil.rmtree(tmp_path / "blobs")
    (tmp_path / "blobs").write_text("in the way")
    assert record.images.keep("scope", OTHER) is False
    assert record.images.keep_view("scope", perception_of("dog", 2)) is False
    record.close()


@requirement("record.trouble")
@pytest.mark.parametrize("most", [1, 4096, 40_000])
def test_a_full_disk_is_still_read_without_waiting(tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_seconds: float) -> None:
        raise AssertionError("nothing gets better by waiting")

    filled(tmp_path)
    monkeypatch.setattr(time, "sleep", never)
    with full_disk(most):
        record = open_record(tmp_path)
        assert_reads(record)
        assert record.find_trouble() is None
        assert record.images.keep("scope", image_of("a large one " * 1000, 3)) is False
    record.close()


@requirement("record.trouble")
def test_a_full_disk_without_a_record_is_reported(tmp_path: Path) -> None:
    with full_disk(1):
        record = open_record(tmp_path)
    trouble = record.find_trouble()
    assert trouble is not None
    assert str(tmp_path) in trouble.what
    assert record.images.keep("scope", IMAGE) is False, "it goes with the process, and nobody asked for that"
    assert record.images.read("scope", IMAGE.sha256) == IMAGE
    record.close()


@requirement("record.processes")
def test_a_record_is_opened_and_read_while_another_program_writes(tmp_path: Path) -> None:
    other = sqlite3.connect(filled(tmp_path) / "record.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    record = open_record(tmp_path, now=lambda: time.time() + 7200)  # when it would be swept
    assert record.find_trouble() is None
    assert_reads(record)
    assert record.images.keep("scope", OTHER) is False
    other.close()
    assert record.images.keep("scope", OTHER) is True
    record.close()


@requirement("record.trouble")
def test_a_disk_that_can_be_used_again_is_used_again(tmp_path: Path) -> None:
    clock = Clock()
    filled(tmp_path)
    other = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("DELETE FROM lessons")
    other.execute("COMMIT")
    record = open_record(tmp_path, bytes_limit=10**9, days=10**6, now=clock)
    assert record.find_trouble() is not None
    scope = record.compute_scope("credential")
    other.close()
    assert record.images.keep("scope", OTHER) is True, "its files have changed"
    assert record.find_trouble() is None
    assert record.compute_scope("credential") != scope
    assert_reads(record)
    record.close()
    again = open_record(tmp_path, days=10**6, now=clock)
    assert again.images.read("scope", OTHER.sha256) == OTHER
    again.close()


@requirement("record.trouble")
def test_a_full_disk_that_has_room_again_is_written_again(tmp_path: Path) -> None:
    clock = Clock()
    filled(tmp_path)
    with full_disk(1):
        record = open_record(tmp_path, days=10**6, now=clock)
        assert record.images.keep("scope", OTHER) is False
    clock.days += 1
    assert record.images.keep("scope", OTHER) is True
    assert_reads(record)
    record.close()


@requirement("consent.kept")
def test_a_durable_write_that_fails_is_refused(tmp_path: Path) -> None:
    record = open_record(filled(tmp_path))
    assert record.policy.set_consent("openai", given=True) is None
    assert record.policy.keep_lesson("zai", "glm", Lesson(blind=True), days=7) is None
    with full_disk(1):
        refusals = [
            record.policy.set_consent("openai", given=False),
            record.policy.set_consent("zai", given=True),
            record.policy.forget_lesson("zai", "glm"),
            record.policy.keep_lesson("zai", "other", Lesson(blind=True), days=7),
            record.descriptions.save(None, description_of("cat", 1)),
            record.forget(IMAGE.sha256),
        ]
        assert [type(each) for each in refusals] == [Refusal] * len(refusals)
        assert record.policy.read_consents() == {"openai": False}, "a no counts in this process all the same"
    again = open_record(tmp_path)
    assert again.policy.read_consents() == {"openai": True}
    assert record.policy.read_consents() == {"openai": False}
    assert again.policy.set_consent("openai", given=True) is None
    assert record.policy.read_consents() == {"openai": True}, "a later word counts"
    assert again.policy.read_lesson("zai", "glm") == Lesson(blind=True)
    assert record.policy.set_consent("openai", given=False) is None
    assert again.policy.read_consents() == record.policy.read_consents() == {"openai": False}
    again.close()
    record.close()


@requirement("consent.kept")
def test_a_withdrawal_that_cannot_be_written_applies_after_any_clock_change(tmp_path: Path) -> None:
    clock = [2_000_000_000.0]
    record = open_record(filled(tmp_path), now=lambda: clock[0])
    assert record.policy.set_consent("openai", given=True) is None
    clock[0] -= 86400.0  # it was ahead
    with full_disk(1):
        assert isinstance(record.policy.set_consent("openai", given=False), Refusal)
        assert record.policy.read_consents() == {"openai": False}
    assert record.policy.read_consents() == {"openai": False}
    again = open_record(tmp_path, now=lambda: clock[0])
    assert again.policy.set_consent("openai", given=True) is None
    assert record.policy.read_consents() == {"openai": True}, "a later word counts"
    again.close()
    record.close()


@requirement("consent.kept")
def test_a_withdrawal_made_while_the_record_is_unreadable_applies_later(tmp_path: Path) -> None:
    filled(tmp_path)
    record = open_record(tmp_path)
    assert record.policy.set_consent("openai", given=True) is None
    record.close()
    whole = (tmp_path / "record.sqlite").read_bytes()
    (tmp_path / "record.sqlite").write_bytes(b"no database" * 1000)
    record = open_record(tmp_path)
    assert isinstance(record.policy.set_consent("openai", given=False), Refusal)
    (tmp_path / "record.sqlite").write_bytes(whole)
    assert record.policy.read_consents() == {"openai": False}
    assert record.policy.set_consent("openai", given=True) is None
    assert record.policy.read_consents() == {"openai": True}
    record.close()


@requirement("consent.kept")
def test_a_stand_in_is_never_durable(tmp_path: Path) -> None:
    (tmp_path / "record.sqlite").write_bytes(b"no database" * 1000)
    record = open_record(tmp_path)
    assert isinstance(record.policy.set_consent("openai", given=True), Refusal)
    assert record.policy.read_consents() == {}
    assert isinstance(record.policy.forget_lesson("zai", "glm"), Refusal)
    assert isinstance(record.forget(None), Refusal)
    record.close()


@requirement("record.replaced")
def test_a_record_that_was_deleted_is_opened_again_with_the_next_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = open_record(filled(tmp_path / "record"))
    assert record.policy.set_consent("openai", given=True) is None
    shutil.rmtree(tmp_path / "record")
    assert record.policy.read_consents() == {}
    assert record.images.keep("scope", OTHER) is True
    other = open_record(tmp_path / "record")
    assert other.images.read("scope", OTHER.sha256) == OTHER
    assert other.images.read("scope", IMAGE.sha256) is record.images.read("scope", IMAGE.sha256) is None
    assert record.compute_scope("credential") == other.compute_scope("credential")
    assert other.policy.set_consent("openai", given=False) is None
    assert record.policy.read_consents() == {"openai": False}
    record.close()
    assert other.policy.read_consents() == {"openai": False}, "who closes the old file leaves the new one's log alone"
    other.close()
    assert sum("deleted or replaced" in line.message for line in caplog.records) == 1


@requirement("record.replaced")
def test_a_durable_write_survives_a_replacement_of_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = open_record(filled(tmp_path / "record"))

    def replace_record(*args: Any) -> RecordTime:
        monkeypatch.setattr("sightline.store.transactions.update_record_time", update_record_time)
        (tmp_path / "record").rename(tmp_path / "gone")
        return update_record_time(*args)

    monkeypatch.setattr(
        "sightline.store.transactions.update_record_time", replace_record
    )  # which is called in the transaction
    assert record.policy.set_consent("openai", given=False) is None
    other = open_record(tmp_path / "record")
    assert other.policy.read_consents() == {"openai": False}
    other.close()
    record.close()


@requirement("record.replaced")
def test_a_read_only_record_notices_writes_of_other_programs(tmp_path: Path) -> None:
    writer = open_record(filled(tmp_path))
    assert writer.policy.set_consent("openai", given=True) is None
    writer.close()
    with full_disk(1):
        record = open_record(tmp_path)
        assert record.policy.read_consents() == {"openai": True}
    writer = open_record(tmp_path)
    assert writer.policy.set_consent("openai", given=False) is None
    assert record.policy.read_consents() == {"openai": False}
    writer.close()
    record.close()


@requirement("record.processes")
def test_a_second_record_in_a_process_does_not_release_locks_of_the_first(tmp_path: Path) -> None:
    """POSIX drops every lock that a process holds on a file when it closes any handle of that file."""
    first = open_record(filled(tmp_path))
    assert first.policy.set_consent("openai", given=True) is None
    open_record(tmp_path).close()
    code = (
        "import sys, sqlite3; other = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "other.execute('PRAGMA locking_mode = EXCLUSIVE'); other.execute('BEGIN EXCLUSIVE')\n"
        "other.execute('PRAGMA journal_mode = DELETE')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "record.sqlite")], capture_output=True, text=True, check=False
    )
    assert "database is locked" in ended.stderr
    assert first.policy.read_consents() == {"openai": True}
    first.close()


@requirement("record.acknowledged")
def test_a_write_returns_when_it_is_on_the_disk(tmp_path: Path) -> None:
    database = Database.open_file(tmp_path / "record.sqlite")
    with database.begin() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)
    database.close()


@requirement("record.forget.refused")
def test_open_record_or_refuse_has_no_fallback(tmp_path: Path) -> None:
    record = open_record_or_refuse(filled(tmp_path))
    assert not isinstance(record, Refusal)
    record.close()
    other = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
    other.execute("PRAGMA user_version = 999")
    other.close()
    refusal = open_record_or_refuse(tmp_path)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "corrupt"
    (tmp_path / "file").write_text("in the way")
    refusal = open_record_or_refuse(tmp_path / "file" / "record")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "unavailable"


@requirement("record.forget.all")
def test_a_record_that_cannot_be_opened_is_deleted_completely(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "record.sqlite-wal").write_bytes(b"words")
    assert delete_record(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == ["swept"]
    assert delete_record(tmp_path) is None


def refuse_full_disk(folder: Path) -> Exception:
    """Return the error of SQLite when there is no room."""
    connection = sqlite3.connect(folder / "record.sqlite")
    connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(sqlite3.OperationalError) as caught:
        connection.execute("CREATE TABLE more AS SELECT randomblob(9999999)")
    connection.close()
    return caught.value


@requirement("record.trouble.found")
@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "full"), (errno.EDQUOT, "full"), (errno.EROFS, "read-only"), (errno.EACCES, "permission")],
)
def test_an_os_error_is_explained_with_a_remedy(tmp_path: Path, number: int, words: str) -> None:
    for refusal in (
        build_refusal(tmp_path, OSError(number, os.strerror(number), str(tmp_path / "record.sqlite"))),
        open_record(tmp_path, kind="memory").transactions.refuse(OSError(number, os.strerror(number))),  # type: ignore[attr-defined]
    ):
        assert words in refusal.what.lower()
        assert "Errno" not in refusal.what
        assert ("permission" in refusal.remedy) == (number == errno.EACCES)


@requirement("record.trouble.found")
def test_a_full_disk_is_reported_as_full(tmp_path: Path) -> None:
    refusal = build_refusal(filled(tmp_path), refuse_full_disk(tmp_path))
    assert "full" in refusal.what
    assert "space" in refusal.remedy


@requirement("record.trouble.found")
def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "record").write_text("in the way")
    refusal = open_record_or_refuse(tmp_path / "record")
    assert isinstance(refusal, Refusal)
    assert "Errno" not in refusal.what
    assert str(tmp_path / "record") in refusal.what
