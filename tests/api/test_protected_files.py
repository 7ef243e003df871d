"""What Sightline keeps for itself is closed to the tools, also where it stands in a folder that they may read."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.api import Failure, Session, View, call, edit_file, read_file, view
from sightline.api.tool_results import FileText
from sightline.settings import FILE_NAME, load_settings
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
def test_settings_and_record_can_be_neither_read_nor_edited(home: Path) -> None:
    through = Session(load_settings()).tool_context
    seen = view("image.png", session=Session.from_context(through))
    assert isinstance(seen, View)
    blob = next(home.rglob(seen.image.removeprefix("sha256:"))).relative_to(home)
    link = home / "link.json"
    link.symlink_to(FILE_NAME)
    for name in (FILE_NAME, FILE_NAME.upper(), "link.json", "record/scope.key", str(blob), "Record/scope.key"):
        read = read_file(name, session=Session.from_context(through))
        assert isinstance(read, Failure), name
        assert read.reason in ("not_permitted", "not_found")
        looked = view(name, session=Session.from_context(through))
        assert isinstance(looked, Failure), name
        edited = edit_file(name, "off", "always", "token", session=Session.from_context(through))
        assert isinstance(edited, Failure), name
        assert edited.reason == read.reason
    assert isinstance(view(seen.image, session=Session.from_context(through)), View), "the record itself still shows it"
    assert isinstance(read_file("notes.json", session=Session.from_context(through)), FileText)


@requirement("path.own")
@pytest.mark.parametrize("named", [FILE_NAME, FILE_NAME.upper(), "RECORD/scope.key", "record"])
def test_protected_paths_ignore_case(home: Path, named: str) -> None:
    assert not Session(load_settings()).tool_context.policy.allows((home / named).resolve())


@requirement("path.own")
def test_a_linked_settings_file_is_protected_at_its_target(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "lead.json").symlink_to("real.json")
    (home / "real.json").write_text('{"mode": "off"}')
    monkeypatch.setenv("SIGHTLINE_CONFIG", str(home / "lead.json"))
    for name in ("lead.json", "real.json"):
        assert isinstance(call("read_file", {"path": name}, session=Session(load_settings())), Failure)
