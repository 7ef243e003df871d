"""References are only given to images that the record holds."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sightline.engine.describer import _NOT_KEPT as NOT_KEPT
from sightline.model.facts import Facts, Needs, Retention, Rules
from sightline.model.ports import Store
from sightline.model.records import LedgerEntry
from sightline.model.scene import Scene
from sightline.passes import decide
from sightline.store import open_record
from sightline.store.sql_store import SqlStore
from tests.engine import test_retain
from tests.engine.parts import BLIND, SEEING, ScriptedSeer, Stage, Talk, asking, picture, sent, visitor, words
from tests.requirements import requirement
from tests.store.remote import make_remote
from tests.store.test_bounds import Clock, use_daily
from tests.store.writer import image_of

ROUTED = {"mode": "route", "image_model": "sure-eyes"}


@requirement("record.before_reference")
async def test_a_description_always_says_that_its_image_could_not_be_stored(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    (tmp_path / "blobs").rmdir()
    (tmp_path / "blobs").write_text("in the way")
    stage = Stage(ScriptedSeer(["A red square."]), record=record)
    first, again = [words(await stage.prepare(asking(picture())))[0] for _ in range(2)]
    assert "A red square." in first
    assert NOT_KEPT in first
    assert again == first
    record.close()


async def test_a_description_of_a_stored_image_has_no_such_note(tmp_path: Path) -> None:
    record = open_record(tmp_path)
    prepared = await Stage(ScriptedSeer(["A red square."]), record=record).prepare(asking(picture()))
    assert NOT_KEPT not in words(prepared)[0]
    record.close()


async def test_a_resent_image_takes_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
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


@requirement("record.shared.loop")
@pytest.mark.parametrize(("model", "options"), [(SEEING, {}), (BLIND, {}), (BLIND, ROUTED)])
async def test_no_image_makes_the_event_loop_wait_for_a_server(
    monkeypatch: pytest.MonkeyPatch, model: str, options: dict[str, Any]
) -> None:
    record = open_record(Path("unused"), kind="memory", now=Clock())
    assert isinstance(record, SqlStore)
    queries = make_remote(record, monkeypatch)
    stage = Stage(ScriptedSeer(["A red square."]), record=record, references=True, **options)
    asked = asking(picture(1), model=model)
    first = await stage.prepare(asked)
    for _ in range(2):
        record.transactions.backend.row_cache.clear()  # as after a change of another replica
        record.transactions.backend.policy_cache.clear()
        queries.clear()
        assert sent(await stage.prepare(asked)) == sent(first)
        assert queries
        assert [query.text for query in queries if query.in_event_loop] == []
    queries.clear()
    assert sent(await stage.prepare(asked)) == sent(first)
    assert not queries, "what is known makes no thread ask a server"
    record.close()


SCOPE = visitor().scope


@dataclass
class Names:
    """A conversation whose body references an image: in a description, in a retirement line, or beside it."""

    folder: Path
    way: str

    def stage(self, record: Store) -> Stage:
        if self.way == "retired":
            return Stage(record=record, retention=Retention(kept_turns=0))
        return Stage(ScriptedSeer(["A red square."]), record=record, references=self.way == "beside")

    def body(self, turns: int) -> dict[str, Any]:
        if self.way == "retired":
            talk = test_retain.Talk(self.folder)
            talk.ask()
            talk.view()
            for _ in range(turns):
                talk.answer()
                talk.ask()
            return talk.body()
        said = Talk(SEEING if self.way == "beside" else BLIND).say("what is it?", picture())
        for number in range(turns):
            said.answer("red").say(f"and now, {number}?")
        return said.body


@requirement("record.reference_alive")
@pytest.mark.parametrize("way", ["told", "beside", "retired"])
@pytest.mark.parametrize("restarted", [True, False])
async def test_referenced_images_outlive_unused_ones(tmp_path: Path, way: str, restarted: bool) -> None:
    clock, names = Clock(), Names(tmp_path, way)

    def opened() -> Store:
        return open_record(tmp_path / "record", days=30, now=clock)

    record = opened()
    unnamed = image_of("cat", 1)
    record.images.keep(SCOPE, unnamed)
    stage = names.stage(record)
    for turns in range(1, 5):
        (digest,) = set(re.findall("sha256:([0-9a-f]{64})", json.dumps(sent(await stage.prepare(names.body(turns))))))
        record.ledger.add_entry(SCOPE, LedgerEntry("vision_proxy.skip"))  # anything that a request leaves behind
        if restarted:
            record.close()
            record = opened()
            stage = names.stage(record)
        use_daily(tmp_path / "record", clock, 20)  # by another process, which removes what is too old
    kept = record.images.read(SCOPE, digest)
    assert kept is not None
    assert sha256(kept.data).hexdigest() == digest
    assert record.images.read(SCOPE, unnamed.sha256) is None
    record.close()


@requirement("record.reference_alive")
@pytest.mark.parametrize("way", ["told", "beside", "retired"])
async def test_an_evicted_image_is_stored_again_when_it_is_referenced(tmp_path: Path, way: str) -> None:
    record, names = open_record(tmp_path / "record"), Names(tmp_path, way)
    stage = names.stage(record)
    bodies = []
    for turns in (1, 2):
        bodies.append(json.dumps(sent(await stage.prepare(names.body(turns)))))
        (digest,) = set(re.findall("sha256:([0-9a-f]{64})", bodies[-1]))
        assert record.images.read(SCOPE, digest) is not None
        for blob in (tmp_path / "record" / "blobs").rglob(digest):
            blob.unlink()
        assert record.images.read(SCOPE, digest) is None
    assert bodies[1].startswith(bodies[0][:-2])
    record.close()
