"""`sightline forget`."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from sightline.cli.main import main
from sightline.model.records import LedgerEntry
from sightline.model.seer import Usage
from sightline.store import open_record
from tests.api.bad import keep_two_that_begin_alike
from tests.cli.command import assert_refused, sightline
from tests.requirements import requirement
from tests.store.writer import description_of, image_of, perception_of

IMAGE, OTHER = image_of("cat", 1), image_of("dog", 2)


@pytest.fixture
def folder(home: Path) -> Path:
    """A record that holds two images, one of them of a credential's scope."""
    record = open_record(home / "record")
    record.images.keep(record.compute_scope(""), IMAGE)
    record.descriptions.keep("theirs", description_of("cat", 1), "v1")
    record.images.keep_view("theirs", perception_of("cat", 1))
    record.images.keep("theirs", OTHER)
    record.policy.set_consent("openai", given=True)
    record.close()
    return home / "record"


def held(folder: Path) -> set[str]:
    return {path.name for path in (folder / "blobs").rglob("*") if path.is_file()}


@requirement("record.forget", "record.forget.command")
@pytest.mark.parametrize("name", [f"sha256:{IMAGE.sha256}", IMAGE.sha256, IMAGE.sha256.upper(), IMAGE.sha256[:12]])
def test_an_image_is_forgotten_with_its_descriptions(folder: Path, name: str) -> None:
    ended = sightline("forget", name)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith(f" sha256:{IMAGE.sha256}\n")
    assert held(folder) == {OTHER.sha256}
    record = open_record(folder)
    assert record.descriptions.read("theirs", IMAGE.sha256, "ollama/llava", "v1") is None
    record.close()
    assert_refused(sightline("forget", IMAGE.sha256), f"sha256:{IMAGE.sha256}")


@requirement("record.forget.all", "record.forget.command")
def test_all_images_are_forgotten_and_consents_stay(folder: Path) -> None:
    assert sightline("forget", "--all", "--json").json == {"ok": True, "forgotten": "all", "usage_kept": True}
    assert held(folder) == set()
    record = open_record(folder)
    assert record.images.read("theirs", OTHER.sha256) is None
    assert record.policy.read_consents() == {"openai": True}
    record.close()
    assert sightline("forget", "--all").code == 0


@requirement("record.forget.usage")
def test_usage_is_kept_unless_the_user_deletes_it(folder: Path) -> None:
    record = open_record(folder)
    entry = LedgerEntry("vision_proxy.tool_call", (IMAGE.sha256,), "openai/eye", Usage(10, 20), 0.25)
    record.ledger.add_entry("theirs", entry)
    record.close()
    assert "--usage" in sightline("forget", "--all").out
    assert sightline("usage", "--json").json["total"]["cost_usd"] == 0.25
    assert_refused(sightline("forget", "--usage", IMAGE.sha256), "--all")
    assert sightline("forget", "--all", "--usage", "--json").json["usage_kept"] is False
    assert sightline("usage", "--json").json["days"] == []


@requirement("record.forget.refused")
def test_an_unknown_or_ambiguous_reference_is_refused(folder: Path) -> None:
    record = open_record(folder)
    keep_two_that_begin_alike(record, record.compute_scope(""))
    record.close()
    before = held(folder)
    assert_refused(sightline("forget", "sha256:abcdefabcdef"), "sha256:abcdefabcdef", "2 images")
    for name in ("0" * 64, f"{IMAGE.sha256}#crop:1,2,3,4", "https://example.com/a.png"):
        assert_refused(sightline("forget", name), name)
    assert_refused(sightline("forget", "abc"), "hex digits", " 3 ")
    for words in ([], ["--all", IMAGE.sha256]):
        assert sightline("forget", *words).code == 2
    assert held(folder) == before


@requirement("record.forget.command")
def test_described_and_cropped_images_are_found_by_prefix(folder: Path) -> None:
    record = open_record(folder)
    record.descriptions.keep("theirs", description_of("fox", 3), "v1")
    record.close()
    for sha256 in (image_of("fox", 3).sha256, perception_of("cat", 1).pixels.sha256):
        assert sightline("forget", f"sha256:{sha256[:12]}").out.endswith(f" sha256:{sha256}\n")


@requirement("record.forget.refused", "cli.json.refused")
@pytest.mark.parametrize("which", [["--all"], [IMAGE.sha256], [IMAGE.sha256[:12]]])
def test_forgetting_in_a_locked_record_is_refused(
    folder: Path, which: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sightline.store.sqlite_database._BUSY_SECONDS", 0.05)
    other = sqlite3.connect(folder / "record.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    before = held(folder)
    assert main(["forget", *which, "--json"]) == 1
    other.close()
    said = capsys.readouterr()
    assert json.loads(said.out)["reason"] == "unavailable"
    assert "database is locked" in said.err
    assert held(folder) == before
    record = open_record(folder)
    assert record.descriptions.read("theirs", IMAGE.sha256, "ollama/llava", "v1")
    record.close()


def spoilt(folder: Path, how: str) -> None:
    if how == "newer":
        database = sqlite3.connect(folder / "record.sqlite")
        database.execute("PRAGMA user_version = 999")
        database.close()
    else:
        (folder / how).write_bytes(b"neither a database nor a key" * 1000)


@requirement("record.forget.refused", "record.forget.all")
@pytest.mark.parametrize("how", ["newer", "record.sqlite", "scope.key"])
def test_an_unreadable_record_can_only_be_forgotten_as_a_whole(folder: Path, how: str) -> None:
    spoilt(folder, how)
    assert_refused(sightline("forget", IMAGE.sha256), str(folder), "forget --all")
    assert held(folder)
    ended = sightline("forget", "--all", "--json")
    assert (ended.code, ended.json) == (0, {"ok": True, "forgotten": "all", "usage_kept": False})
    assert str(folder) in ended.err
    assert not any(b"cat sees 1" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert held(folder) == set()
    again = sightline("forget", "--all")
    assert (again.code, again.err) == (0, "")


@requirement("record.forget.command", "record.memory")
def test_a_record_on_disk_is_forgotten_even_if_records_are_in_memory(folder: Path, home: Path) -> None:
    memory = {"SIGHTLINE_RECORD": "memory"}
    assert sightline("forget", "--all", env=memory).code == 0
    assert held(folder) == set()
    empty = {**memory, "SIGHTLINE_HOME": str(home / "elsewhere")}
    assert_refused(sightline("forget", "--all", env=empty), "memory")
    assert not (home / "elsewhere").exists()


@requirement("cli.json.refused")
def test_a_refusal_is_json_with_the_json_option(folder: Path) -> None:
    assert held(folder)
    ended = sightline("forget", "abc", "--json")
    assert (ended.code, ended.json["ok"], ended.json["reason"]) == (1, False, "invalid_input")
    assert ended.err == f"sightline: {ended.json['message']}\n"


@requirement("cli.person")
def test_a_path_is_refused_with_the_command_that_shows_its_sha256() -> None:
    assert_refused(sightline("forget", "shot.png"), "'shot.png'", "`sightline view FILE`")
