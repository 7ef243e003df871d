"""What a record stores, for which scope, and what it returns for unknown things."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.ports import Store
from sightline.model.profile import ImageLimits, Lesson, ToolImagePlacement, WireName
from sightline.store import open_record
from sightline.store.migrations import MIGRATIONS
from tests.requirements import requirement
from tests.store.test_bounds import Clock, use_daily
from tests.store.writer import description_of, image_of

IMAGE = image_of("cat", 1)
WORDS = description_of("cat", 1)


@requirement("record.images")
def test_an_image_is_read_back_byte_for_byte(record: Store) -> None:
    record.images.keep("scope", IMAGE)
    found = record.images.read("scope", IMAGE.sha256)
    assert found == IMAGE
    assert found is not None
    assert found.data == IMAGE.data


def test_an_image_stored_twice_is_stored_once(record: Store) -> None:
    record.images.keep("scope", IMAGE)
    record.images.keep("scope", IMAGE)
    assert record.images.read("scope", IMAGE.sha256) == IMAGE


@requirement("record.scope.images")
def test_an_image_is_private_to_its_scope(record: Store) -> None:
    record.images.keep("mine", IMAGE)
    assert record.images.read("yours", IMAGE.sha256) is None
    record.images.keep("yours", IMAGE)
    assert record.images.read("yours", IMAGE.sha256) == IMAGE


def test_unknown_things_are_not_found(record: Store) -> None:
    assert record.images.read("scope", "0" * 64) is None
    assert record.images.read("scope", "../../etc/passwd") is None
    assert record.descriptions.read("scope", IMAGE.sha256, "a/b", "v1") is None
    assert record.policy.read_lesson("zai", "glm-5.3") is None
    assert record.policy.list_lessons() == ()
    assert record.policy.read_consents() == {}


@requirement("record.reference_alive")
def test_kept_images_are_found_for_their_scope(record: Store) -> None:
    record.images.keep("scope", IMAGE)
    others = [f"{number:064x}" for number in range(40_000)]
    assert record.images.find_kept_images("scope", [*others, IMAGE.sha256]) == {IMAGE.sha256}
    assert (
        record.images.find_kept_images("other", [IMAGE.sha256]) == record.images.find_kept_images("scope", []) == set()
    )


@pytest.mark.parametrize("sent", [None, Size(1316, 728)])
def test_a_description_is_read_back_unchanged(record: Store, sent: Size | None) -> None:
    for words in (WORDS, replace(WORDS, coordinate_format="qwen_pixels", sent_size=sent)):
        record.descriptions.keep("scope", words, "v1")
        assert record.descriptions.read("scope", words.sha256, words.seer, "v1") == words


@requirement("record.key")
@pytest.mark.parametrize(
    ("scope", "sha256", "seer", "prompt"),
    [
        ("other", WORDS.sha256, WORDS.seer, "v1"),
        ("scope", "0" * 64, WORDS.seer, "v1"),
        ("scope", WORDS.sha256, "other/seer", "v1"),
        ("scope", WORDS.sha256, WORDS.seer, "v2"),
    ],
)
def test_a_description_is_found_only_by_its_scope_image_seer_and_prompt(
    record: Store, scope: str, sha256: str, seer: str, prompt: str
) -> None:
    record.descriptions.keep("scope", WORDS, "v1")
    assert record.descriptions.read(scope, sha256, seer, prompt) is None


def test_a_later_description_replaces_the_earlier_one(record: Store) -> None:
    record.descriptions.keep("scope", WORDS, "v1")
    better = replace(WORDS, text="Zwölf Boxkämpfer 🥊 " * 1000)
    record.descriptions.keep("scope", better, "v1")
    assert record.descriptions.read("scope", WORDS.sha256, WORDS.seer, "v1") == better


def test_lessons_about_the_same_model_are_merged(record: Store) -> None:
    record.policy.keep_lesson(
        "zai", "glm", Lesson(limits=ImageLimits(edge=8000, encoded_bytes=500), why="too wide"), days=7
    )
    record.policy.keep_lesson("zai", "glm", Lesson(limits=ImageLimits(edge=2000), why="too wide again"), days=7)
    assert record.policy.read_lesson("zai", "glm") == Lesson(
        limits=ImageLimits(edge=2000, encoded_bytes=500), why="too wide again"
    )
    record.policy.keep_lesson("zai", "glm", Lesson(blind=True, why="it said so"), days=7)
    record.policy.keep_lesson("zai", "glm", Lesson(limits=ImageLimits(count=5), why="too many"), days=7)
    record.policy.keep_lesson("zai", "glm", Lesson(takes_own_tools=False, why="no tools"), days=7)
    record.policy.keep_lesson("zai", "glm", Lesson(tool_images={"gemini": "as_sent"}, why="as sent"), days=7)
    limits = ImageLimits(edge=2000, encoded_bytes=500, count=5)
    both = Lesson(True, limits, "it said so", tool_images={"gemini": "as_sent"}, takes_own_tools=False)
    assert record.policy.read_lesson("zai", "glm") == both
    assert record.policy.list_lessons() == (("zai", "glm", both),)


def test_lessons_of_trials_and_rejections_are_merged_and_the_last_wins(record: Store) -> None:
    record.policy.keep_lesson("zai", "glm", Lesson(blind=True, limits=ImageLimits(count=5), why="it said so"), days=7)
    record.policy.keep_lesson(
        "zai", "glm", Lesson(blind=False, why="tried", tool_images={"openai_chat": "hoist"}), days=30
    )
    record.policy.keep_lesson("zai", "glm", Lesson(why="tried again", tool_images={"anthropic": "native"}), days=30)
    placed: dict[WireName, ToolImagePlacement] = {"openai_chat": "hoist", "anthropic": "native"}
    assert record.policy.read_lesson("zai", "glm") == Lesson(False, ImageLimits(count=5), "tried", placed)
    record.policy.keep_lesson("zai", "glm", Lesson(blind=True, why="it refused"), days=7)
    assert record.policy.read_lesson("zai", "glm") == Lesson(True, ImageLimits(count=5), "it refused", placed)
    record.policy.keep_lesson("zai", "other", Lesson(why="nothing"), days=7)
    assert record.policy.read_lesson("zai", "other") is None


@requirement("recover.one_model")
def test_a_lesson_applies_only_to_its_model_and_upstream(record: Store) -> None:
    record.policy.keep_lesson("deepseek", "claude-opus-x", Lesson(blind=True, why="it said so"), days=7)
    assert record.policy.read_lesson("anthropic", "claude-opus-x") is None
    assert record.policy.read_lesson("deepseek", "claude-haiku-x") is None


def test_a_lesson_can_be_forgotten_once(record: Store) -> None:
    record.policy.keep_lesson("zai", "glm", Lesson(blind=True, why="it said so"), days=7)
    record.policy.keep_lesson("zai", "glm", Lesson(limits=ImageLimits(count=5)), days=7)
    assert record.policy.forget_lesson("zai", "glm") is True
    assert record.policy.read_lesson("zai", "glm") is None
    assert record.policy.forget_lesson("zai", "glm") is False


@requirement("recover.kept")
def test_each_lesson_expires_on_its_own_day(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path, now=clock)
    record.policy.keep_lesson("zai", "glm", Lesson(blind=True, why="it said so"), days=7)
    record.policy.keep_lesson("zai", "glm", Lesson(limits=ImageLimits(edge=2000), why="too wide"), days=20)
    use_daily(tmp_path, clock, 6.9)
    assert record.policy.read_lesson("zai", "glm") == Lesson(True, ImageLimits(edge=2000), "it said so")
    use_daily(tmp_path, clock, 0.2)
    assert record.policy.read_lesson("zai", "glm") == Lesson(limits=ImageLimits(edge=2000), why="too wide")
    use_daily(tmp_path, clock, 13)
    assert record.policy.read_lesson("zai", "glm") is None
    record.policy.keep_lesson("zai", "glm", Lesson(limits=ImageLimits(edge=4000), why="wider"), days=1)
    assert record.policy.read_lesson("zai", "glm") == Lesson(limits=ImageLimits(edge=4000), why="wider")
    record.close()


def test_a_consent_is_stored_for_exactly_one_provider(record: Store) -> None:
    record.policy.set_consent("openai", given=True)
    record.policy.set_consent("zai", given=False)
    assert record.policy.read_consents() == {"openai": True, "zai": False}
    record.policy.set_consent("openai", given=False)
    assert record.policy.read_consents() == {"openai": False, "zai": False}


@requirement("record.scope.keyed")
def test_a_scope_hides_the_credential_and_survives_a_restart(tmp_path: Path) -> None:
    first = open_record(tmp_path / "a")
    scope = first.compute_scope("sk-secret")
    first.close()
    again = open_record(tmp_path / "a")
    elsewhere = open_record(tmp_path / "b")
    assert again.compute_scope("sk-secret") == scope
    assert again.compute_scope("sk-other") != scope
    assert elsewhere.compute_scope("sk-secret") != scope
    assert len(scope) == 32
    assert "secret" not in scope
    again.close()
    elsewhere.close()


@requirement("record.restart", "recover.kept")
def test_everything_survives_a_restart(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    record.images.keep("scope", IMAGE)
    record.descriptions.keep("scope", WORDS, "v1")
    record.policy.keep_lesson("zai", "glm", Lesson(blind=True, why="it said so"), days=7)
    record.policy.set_consent("openai", given=True)
    record.close()
    again = open_record(tmp_path)
    assert again.images.read("scope", IMAGE.sha256) == IMAGE
    assert again.descriptions.read("scope", WORDS.sha256, WORDS.seer, "v1") == WORDS
    assert again.policy.read_lesson("zai", "glm") == Lesson(blind=True, why="it said so")
    assert again.policy.read_consents() == {"openai": True}
    again.close()


@requirement("record.memory")
def test_a_record_in_memory_leaves_nothing_behind(tmp_path: Path) -> None:
    record = open_record(tmp_path / "record", kind="memory")
    record.images.keep("scope", IMAGE)
    record.close()
    assert not (tmp_path / "record").exists()


@requirement("record.private")
def test_only_the_owner_can_access_the_record(tmp_path: Path) -> None:
    folder = tmp_path / "record"
    folder.mkdir(mode=0o755)
    record = open_record(folder)
    record.images.keep("scope", IMAGE)
    record.descriptions.keep("scope", WORDS, "v1")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {"record.sqlite", "record.sqlite-wal", "scope.key", IMAGE.sha256} <= {path.name for path in modes}
    record.close()


@requirement("record.damaged_file")
def test_a_changed_file_is_not_returned_and_can_be_stored_again(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    record.images.keep("scope", IMAGE)
    next(tmp_path.rglob(IMAGE.sha256)).write_bytes(b"something else")
    assert record.images.read("scope", IMAGE.sha256) is None
    record.images.keep("scope", IMAGE)
    assert record.images.read("scope", IMAGE.sha256) == IMAGE
    record.close()


def test_a_new_file_gets_every_migration(tmp_path: Path) -> None:
    open_record(tmp_path).close()
    database = sqlite3.connect(tmp_path / "record.sqlite")
    assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    for table in ("images", "descriptions"):
        assert "scope" in [column[1] for column in database.execute(f"PRAGMA table_info({table})")]
    database.close()


def assert_in_memory_with_one_warning(record: Store, caplog: pytest.LogCaptureFixture) -> None:
    record.images.keep("scope", IMAGE)
    assert record.images.read("scope", IMAGE.sha256) == IMAGE
    record.close()
    assert [line.levelno for line in caplog.records] == [logging.WARNING]
    assert "memory" in caplog.text


@requirement("record.trouble")
def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    open_record(tmp_path).close()
    database = sqlite3.connect(tmp_path / "record.sqlite")
    database.execute("PRAGMA user_version = 999")
    database.close()
    assert_in_memory_with_one_warning(open_record(tmp_path), caplog)


@requirement("record.trouble")
@pytest.mark.parametrize("name", ["record.sqlite", "scope.key"])
def test_a_damaged_file_does_not_stop_the_program(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / name).write_bytes(b"neither a database nor a key" * 100)
    assert_in_memory_with_one_warning(open_record(tmp_path), caplog)


@requirement("record.trouble")
def test_a_folder_that_cannot_be_created_is_not_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    assert_in_memory_with_one_warning(open_record(tmp_path / "file" / "record"), caplog)


@requirement("record.trouble")
def test_a_disk_that_fails_later_loses_only_new_rows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = open_record(tmp_path)
    record.descriptions.keep("scope", WORDS, "v1")
    database = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
    database.execute("DROP TABLE images")
    database.close()
    record.images.keep("scope", IMAGE)
    assert record.images.read("scope", IMAGE.sha256) is None
    assert record.descriptions.read("scope", WORDS.sha256, WORDS.seer, "v1") == WORDS
    assert [line.levelno for line in caplog.records] == [logging.WARNING]
    record.close()


def test_known_fields_of_limits_of_another_version_are_read(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    record.policy.keep_lesson("zai", "glm", Lesson(limits=ImageLimits(edge=9)), days=7)
    database = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
    text = json.dumps({"formats": ["image/png"], "edge": 9, "colours": 3})
    database.execute("UPDATE lessons SET said = ?", [text])
    database.close()
    assert record.policy.read_lesson("zai", "glm") == Lesson(limits=ImageLimits(formats=("image/png",), edge=9))
    record.close()


@requirement("record.processes")
def test_threads_can_share_one_record(record: Store) -> None:
    start = threading.Barrier(8)

    def work(number: int) -> bool:
        start.wait()
        images = [image_of(f"thread {number}", n) for n in range(10)]
        for image in images:
            record.images.keep("scope", image)
            record.descriptions.keep("scope", Description(image.sha256, image.size, "words", "a/b"), "v1")
        return all(record.images.read("scope", image.sha256) == image for image in images)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_an_image_is_named_by_the_hash_of_its_bytes(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    with pytest.raises(ValueError, match="sha256"):
        record.images.keep("scope", Image("../../escape", "image/png", Size(1, 1), b"x"))
    record.images.keep("scope", IMAGE)
    path = next(tmp_path.rglob(IMAGE.sha256))
    assert path.relative_to(tmp_path).parts == ("blobs", IMAGE.sha256[:2], IMAGE.sha256[2:4], IMAGE.sha256)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == IMAGE.sha256
    record.close()
