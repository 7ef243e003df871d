"""What Sightline keeps for itself is closed to the tools, also where it stands in a folder that they may read."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.api import Refused, View, door, edit_file, read_file, view
from sightline.api.results import Text
from sightline.settings import FILE_NAME, load
from tests.api.bad import PNG
from tests.requirements import requirement


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings and record in the very folder in which an agent works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGHTLINE_HOME", str(tmp_path))
    (tmp_path / FILE_NAME).write_text('{"mode": "off"}')
    (tmp_path / "image.png").write_bytes(PNG)
    (tmp_path / "notes.json").write_text("{}")
    return tmp_path


@requirement("path.own")
def test_neither_the_settings_nor_the_record_are_read_or_edited(home: Path) -> None:
    through = door(load())
    seen = view("image.png", through=through)
    assert isinstance(seen, View)
    blob = next(home.rglob(seen.image)).relative_to(home)
    link = home / "link.json"
    link.symlink_to(FILE_NAME)
    for name in (FILE_NAME, FILE_NAME.upper(), "link.json", "record/scope.key", str(blob), "Record/scope.key"):
        read = read_file(name, through=through)
        assert isinstance(read, Refused), name
        assert read.reason in ("not_permitted", "not_found")
        looked = view(name, through=through)
        assert isinstance(looked, Refused), name
        edited = edit_file(name, "off", "always", "token", through=through)
        assert isinstance(edited, Refused), name
        assert edited.reason == read.reason
    assert isinstance(view(f"sha256:{seen.image}", through=through), View), "the record itself still shows it"
    assert isinstance(read_file("notes.json", through=through), Text)


@requirement("path.own")
@pytest.mark.parametrize("named", [FILE_NAME, FILE_NAME.upper(), "RECORD/scope.key", "record"])
def test_they_are_closed_in_small_and_large_letters(home: Path, named: str) -> None:
    assert not door(load()).policy.holds((home / named).resolve())


@requirement("path.own")
def test_a_settings_file_that_is_a_link_is_closed_where_it_leads(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "lead.json").symlink_to("real.json")
    (home / "real.json").write_text('{"mode": "off"}')
    monkeypatch.setenv("SIGHTLINE_CONFIG", str(home / "lead.json"))
    for name in ("lead.json", "real.json"):
        assert isinstance(read_file(name, through=door(load())), Refused)
