"""A reference is given only to what the record holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.model.facts import Facts, Needs
from sightline.model.rules import Rules
from sightline.model.scene import Scene
from sightline.passes import decide
from sightline.store import open_record
from tests.engine.parts import SEEING, ScriptedSeer, Stage, asking, picture, sent, words
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


async def test_an_image_that_comes_again_is_judged_and_named_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []

    def counted(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
        rounds.append(len(scene.sights))
        return decide(scene, facts, rules)

    monkeypatch.setattr("sightline.engine.driver.decide", counted)
    stage = Stage(references=True)
    asked = asking(picture(1), picture(2), model=SEEING)
    first = await stage.prepare(asked)
    assert len(rounds) > 1
    rounds.clear()
    again = await stage.prepare(asked)
    assert rounds == [2]
    assert sent(again) == sent(first)
    assert any("sha256:" in each for each in words(again))
