"""What a record has read is not read again, until a process announces a change of it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.model.ports import Store
from sightline.model.profile import Lesson
from sightline.store import open_record
from sightline.store.change_file import ChangeFile
from sightline.store.storage import RowCache
from tests.requirements import requirement
from tests.store.test_bounds import Clock
from tests.store.writer import image_of

BLIND = Lesson(blind=True, why="it said so")
CAT = image_of("cat", 0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def records(tmp_path: Path, clock: Clock) -> Iterator[tuple[Store, Store]]:
    """The same record, as two processes have opened it."""
    opened = open_record(tmp_path, now=clock), open_record(tmp_path, now=clock)
    yield opened
    for each in opened:
        each.close()


def has_cat(record: Store) -> bool:
    return bool(record.images.find_kept_images("scope", {CAT.sha256}))


@requirement("record.recent")
def test_a_lesson_of_another_process_counts_at_once(records: tuple[Store, Store]) -> None:
    here, elsewhere = records
    assert here.policy.read_lesson("zai", "glm") is None
    elsewhere.policy.keep_lesson("zai", "glm", BLIND, days=7)
    assert here.policy.read_lesson("zai", "glm") == BLIND
    elsewhere.policy.forget_lesson("zai", "glm")
    assert here.policy.read_lesson("zai", "glm") is None


@requirement("record.recent")
def test_a_lesson_of_this_process_counts_at_once(records: tuple[Store, Store]) -> None:
    here, _ = records
    assert here.policy.read_lesson("zai", "glm") is None
    here.policy.keep_lesson("zai", "glm", BLIND, days=7)
    assert here.policy.read_lesson("zai", "glm") == BLIND
    here.policy.forget_lesson("zai", "glm")
    assert here.policy.read_lesson("zai", "glm") is None


@requirement("record.recent")
def test_an_image_that_another_process_keeps_or_forgets_is_noticed_at_once(records: tuple[Store, Store]) -> None:
    """No reference may be given to an image that is gone."""
    here, elsewhere = records
    assert not has_cat(here)
    elsewhere.images.keep("scope", CAT)
    assert has_cat(here)
    assert elsewhere.forget(CAT.sha256) == 1
    assert not has_cat(here)


@requirement("record.recent")
def test_a_consent_that_another_process_withdraws_ends_at_once(records: tuple[Store, Store]) -> None:
    here, elsewhere = records
    for given in (True, False, True):
        assert elsewhere.policy.set_consent("openai", given) is None
        assert here.policy.read_consents() == {"openai": given}


@requirement("record.recent")
def test_no_thread_reads_old_rows_while_another_clears_them(tmp_path: Path) -> None:
    changes = ChangeFile(tmp_path / "changes")
    seen: list[object] = []

    class WatchedCache(RowCache):
        def clear(self) -> None:
            if not seen:  # another thread, which comes while this one is about to clear the rows
                seen.append("cleared")
                self.look_for_changes()
                seen.append(self.get("consents"))
            super().clear()

    cache = WatchedCache(10, changes)
    cache.put("consents", [("given",)])
    changes.announce()
    cache.look_for_changes()
    assert seen == ["cleared", None]


@requirement("record.recent")
@pytest.mark.parametrize("way", ["full", "deleted"])
def test_a_change_is_noticed_without_the_file_that_announces_it(
    tmp_path: Path, records: tuple[Store, Store], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = records
    assert elsewhere.policy.set_consent("openai", given=True) is None
    assert here.policy.read_consents() == {"openai": True}
    if way == "deleted":
        (tmp_path / "changes").unlink()
    else:
        monkeypatch.setattr("os.write", refuse_to_write)
    assert elsewhere.policy.set_consent("openai", given=False) is None
    assert here.policy.read_consents() == {"openai": False}


def refuse_to_write(handle: int, data: bytes) -> int:
    raise OSError(errno.ENOSPC, "no space left")


@requirement("record.recent")
def test_an_image_of_one_scope_is_not_known_in_another(records: tuple[Store, Store]) -> None:
    here, _ = records
    here.images.keep("scope", CAT)
    assert has_cat(here)
    assert here.images.find_kept_images("other", {CAT.sha256}) == frozenset()


@requirement("record.recent")
def test_a_wrong_clock_does_not_make_reads_recent_for_long(records: tuple[Store, Store], clock: Clock) -> None:
    here, elsewhere = records
    assert here.policy.read_lesson("zai", "glm") is None
    elsewhere.policy.keep_lesson("zai", "glm", BLIND, days=7)
    clock.days -= 1
    assert here.policy.read_lesson("zai", "glm") == BLIND
