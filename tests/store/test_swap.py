"""A repair that is killed at any step revives no consent, loses no row, and can be repeated."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sightline.store import open_record
from sightline.store.record_folder import check_health
from sightline.store.sqlite_repair import RepairResult, repair_record
from tests.cli.forked import call_forked
from tests.requirements import requirement
from tests.store.damaged_records import DAMAGES, PAGE, delete_database, dump, fill, overwrite, root_of, withdraw_in_log
from tests.store.killed_repair import repair_until_killed

Damage = Callable[[Path], None]
IMAGES = 2


def damage_entries_and_keep_the_log(folder: Path) -> None:
    root = root_of(folder / "record.sqlite", "entries")
    withdraw_in_log(folder)
    overwrite(folder / "record.sqlite", (root - 1) * PAGE, b"\xa5" * PAGE)


def keep_only_the_log(folder: Path) -> None:
    withdraw_in_log(folder)
    (folder / "record.sqlite").unlink()


WITHDRAWN = {"another": False, "openai": False, "zai": False}
CASES: Mapping[str, tuple[Damage, Mapping[str, bool], int]] = {
    "the log holds the last changes": (damage_entries_and_keep_the_log, WITHDRAWN, IMAGES),
    "garbage in the log": (DAMAGES["garbage in the log"], {"zai": False}, IMAGES),
    "damaged frame": (DAMAGES["page of a frame of the log"], {"zai": False}, IMAGES),
    "only the log is left": (keep_only_the_log, {"another": False, "openai": False, "zai": False}, 0),
    "key damaged": (DAMAGES["key damaged"], {"openai": True, "zai": False}, IMAGES),
    "a folder": (DAMAGES["a folder"], {}, 0),
    "database deleted": (delete_database, {}, 0),
}


@requirement("store.repair.killed", "record.damage.consents")
@pytest.mark.parametrize(("damage", "consents", "images"), CASES.values(), ids=CASES)
def test_a_repair_can_be_killed_at_any_step(
    tmp_path: Path, damage: Damage, consents: Mapping[str, bool], images: int
) -> None:
    damaged = tmp_path / "damaged" / "record"
    fill(damaged, IMAGES)
    damage(damaged)
    for step in range(100):
        folder = Path(shutil.copytree(damaged, tmp_path / str(step) / "record"))
        code = call_forked(repair_until_killed, folder, step)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        record = open_record(folder, check=False)
        assert record.policy.read_consents().get("openai") is not True or consents.get("openai")
        record.close()
        assert isinstance(repair_record(folder), RepairResult)
        assert check_health(folder, 60).refusal is None
        record = open_record(folder)
        assert record.policy.read_consents() == consents
        record.close()
        assert len(dump(folder / "record.sqlite")["images"]) == images
        assert not [*folder.glob("*.new-*"), *folder.glob("*.repairing")]
    assert code == 0
    assert step > 2


@requirement("store.repair.killed")
def test_a_record_whose_repair_was_killed_is_damaged(tmp_path: Path) -> None:
    fill(tmp_path, IMAGES)
    (tmp_path / "record.sqlite.repairing").write_text("{}")
    trouble = check_health(tmp_path, 60).refusal
    assert trouble is not None
    assert trouble.code == "corrupt"
    record = open_record(tmp_path, check=False)
    assert record.policy.read_consents() == {}
    record.close()
    result = repair_record(tmp_path)
    assert isinstance(result, RepairResult)
    assert result.consents_lost, "what the marker says cannot be read, so nobody knows whether the log is the right one"
    record = open_record(tmp_path)
    assert record.policy.read_consents() == {"zai": False}
    record.close()
