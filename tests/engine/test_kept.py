"""A reference is given only to what the record holds."""

from __future__ import annotations

from pathlib import Path

from sightline.store import open_record
from tests.engine.parts import ScriptedSeer, Stage, asking, picture, words
from tests.requirements import requirement


@requirement("record.before_reference")
async def test_a_description_whose_image_could_not_be_kept_says_so_every_time(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    (tmp_path / "blobs").rmdir()
    (tmp_path / "blobs").write_text("in the way")
    stage = Stage(ScriptedSeer(["A red square."]), record=record)
    first, again = [words(await stage.prepare(asking(picture())))[0] for _ in range(2)]
    assert "A red square." in first
    assert "could not be kept" in first
    assert again == first
    record.close()


async def test_a_description_whose_image_is_kept_does_not(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    prepared = await Stage(ScriptedSeer(["A red square."]), record=record).prepare(asking(picture()))
    assert "could not be kept" not in words(prepared)[0]
    record.close()
