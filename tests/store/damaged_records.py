"""A record with rows in every table, and ways to damage it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from sightline.model.ports import Lease
from sightline.model.profile import Lesson
from sightline.model.records import FiledReceipt, LoopAnswer, Omission, PinnedDescription, Receipt
from sightline.store import open_record
from sightline.store.retention import BOUNDED_TABLES
from tests.store.test_ledger_entries import CALL
from tests.store.writer import description_of, image_of, perception_of

PAGE = 4096
IMAGES = 60
EVERY = (*BOUNDED_TABLES, "lessons", "consents", "places", "clock")


def fill(folder: Path, count: int = IMAGES) -> None:
    """Write so many rows that the larger tables take several pages."""
    record = open_record(folder)
    for number in range(count):
        image = image_of("cat", number)
        assert record.images.keep("scope", image)
        record.images.note_place("scope", image.sha256, f"/pictures/{number}.png")
        record.descriptions.keep("scope", replace(description_of("cat", number), text=f"cat sees {number} " * 20), "v1")
        record.descriptions.pin("scope", PinnedDescription(f"turn {number}", (image.sha256,), {"text": "a cat " * 20}))
        record.ledger.add_entry("scope", replace(CALL, latency_ms=number))
        record.conversations.visit("scope", f"head {number}", [f"message {number}"], [0], 300.0)
        record.conversations.keep_answer(
            "scope", LoopAnswer(f"key {number}", "seen", "before", [{"text": "a leg " * 20}], None, 0.0)
        )
        record.ledger.file_receipt(
            "scope", FiledReceipt(Receipt("up", f"model-{number}", notes=("a note " * 20,)), "openai_chat")
        )
    record.images.keep_view("scope", perception_of("dog", 1))
    record.conversations.note_omission(Omission("codex", "gpt"))
    record.descriptions.claim_lease(Lease("scope", "look", "me"), 0.0, 6.0)
    assert record.policy.keep_lesson("zai", "glm", Lesson(blind=True, why="it said so"), days=7) is None
    assert record.policy.set_consent("openai", given=True) is None
    assert record.policy.set_consent("zai", given=False) is None
    record.close()


def dump(database: Path) -> dict[str, set[tuple[object, ...]]]:
    """Every row of every table, by SQLite itself."""
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return {table: set(connection.execute(f"SELECT * FROM {table}")) for table in EVERY}
    finally:
        connection.close()


def overwrite(database: Path, at: int, data: bytes) -> None:
    with database.open("r+b") as file:
        file.seek(at)
        file.write(data)


def root_of(database: Path, name: str) -> int:
    connection = sqlite3.connect(database)
    found: int = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
    connection.close()
    return found


def zero_header(folder: Path) -> None:
    overwrite(folder / "record.sqlite", 0, bytes(100))


def truncate(folder: Path) -> None:
    path = folder / "record.sqlite"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // PAGE * PAGE + 100)


def damage_root(table: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        database = folder / "record.sqlite"
        overwrite(database, (root_of(database, table) - 1) * PAGE, b"\xa5" * PAGE)

    return damage


def begin_read(database: Path) -> sqlite3.Connection:
    """Begin to read as another program does, so that what is written from now on stays in the log."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT COUNT(*) FROM consents").fetchone()
    return connection


def withdraw_in_log(folder: Path) -> None:
    """Withdraw a consent, and leave the log as a crash does: with commits in it that the database does not have."""
    record = open_record(folder)
    reader = begin_read(folder / "record.sqlite")  # else the log is emptied with each of them
    assert record.policy.set_consent("openai", given=False) is None
    assert record.policy.set_consent("another", given=False) is None
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    reader.close()
    record.close()
    shutil.rmtree(folder)
    copy.rename(folder)
    (folder / "record.sqlite-shm").unlink()


def damage_log(folder: Path) -> None:
    withdraw_in_log(folder)
    log = folder / "record.sqlite-wal"
    log.write_bytes(b"\x5a" * log.stat().st_size)


def damage_frame(at: int) -> Callable[[Path], None]:
    """Change a byte of the first frame of the log: of its header of 24 bytes, or of its page."""

    def damage(folder: Path) -> None:
        withdraw_in_log(folder)
        log = folder / "record.sqlite-wal"
        overwrite(log, 32 + at, bytes([log.read_bytes()[32 + at] ^ 1]))

    return damage


def zero_log_header(folder: Path) -> None:
    withdraw_in_log(folder)
    overwrite(folder / "record.sqlite-wal", 0, bytes(32))


def damage_schema(folder: Path) -> None:
    database = folder / "record.sqlite"
    overwrite(database, database.read_bytes().index(b"CREATE TABLE descriptions"), b"CREATE TABLF")


def drop_table(folder: Path) -> None:
    connection = sqlite3.connect(folder / "record.sqlite")
    connection.execute("DROP TABLE lessons")
    connection.commit()
    connection.close()


def damage_index(folder: Path) -> None:
    """Empty an index whose table has rows."""
    database = folder / "record.sqlite"
    root = (root_of(database, "images_sha256") - 1) * PAGE
    overwrite(database, root, b"\x0a\x00\x00\x00\x00\x10\x00\x00")


def make_folder(folder: Path) -> None:
    (folder / "record.sqlite").unlink()
    (folder / "record.sqlite").mkdir()


def make_text(folder: Path) -> None:
    (folder / "record.sqlite").write_text("these are words\n" * 1000)


def empty_file(folder: Path) -> None:
    (folder / "record.sqlite").write_bytes(b"")


def damage_key(folder: Path) -> None:
    (folder / "scope.key").write_bytes(b"short")


def delete_key(folder: Path) -> None:
    (folder / "scope.key").unlink()


def delete_database(folder: Path) -> None:
    for path in folder.glob("record.sqlite*"):
        path.unlink()


def leave_only_images(folder: Path) -> None:
    delete_database(folder)
    delete_key(folder)


DAMAGES: Mapping[str, Callable[[Path], None]] = {
    "header zeroed": zero_header,
    "truncated": truncate,
    **{f"root page of {table}": damage_root(table) for table in EVERY},
    "garbage in the log": damage_log,
    "header of the log zeroed": zero_log_header,
    "salt of a frame of the log": damage_frame(8),
    "checksum of a frame of the log": damage_frame(16),
    "page of a frame of the log": damage_frame(2000),
    "schema damaged": damage_schema,
    "a table is missing": drop_table,
    "an index does not match": damage_index,
    "a folder": make_folder,
    "a text file": make_text,
    "zero bytes": empty_file,
    "key damaged": damage_key,
    "key deleted": delete_key,
    "database deleted": delete_database,
    "only images left": leave_only_images,
}
