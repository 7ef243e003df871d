"""Retention with a real record: bytes before references, cold caches, restarts, and receipts with reasons."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sightline.engine import PreparedRequest
from sightline.model.facts import Retention
from sightline.model.ports import Store
from sightline.model.profile import RequestOrigin, Upstream
from sightline.model.request_trace import IMAGE_CHIP
from sightline.model.scene import Shown
from sightline.passes.frontier import COLD_CACHE
from sightline.sources.files import build_path_policy
from sightline.store import open_record
from tests.engine.parts import SEEING, Stage, encoded, picture, sent, visitor
from tests.requirements import requirement

SIZE = (1200, 900)
LINE = re.compile(
    r"\[image (/\S+) \(image/png 1200×900, sha256:([0-9a-f]{64})\) viewed earlier; [^\]]*\bRead\b[^\]]*\]"
)


class Talk:
    """A conversation on the Messages wire in which files are read."""

    def __init__(self, folder: Path, model: str = SEEING) -> None:
        self.folder, self.model = folder, model
        self.messages: list[dict[str, Any]] = []
        self.count = 0

    def ask(self, words: str = "go on") -> dict[str, Any]:
        self.messages.append({"role": "user", "content": words})
        return self.body()

    def answer(self) -> None:
        self.messages.append({"role": "assistant", "content": "I see."})

    def view(self) -> dict[str, Any]:
        self.count += 1
        path = self.folder / f"{self.count}.png"
        path.write_bytes(picture(self.count, SIZE))
        source = {"type": "base64", "media_type": "image/png", "data": encoded(path.read_bytes())}
        call = {"type": "tool_use", "id": f"c{self.count}", "name": "Read", "input": {"file_path": str(path)}}
        image = {"type": "image", "source": source}
        result = {"type": "tool_result", "tool_use_id": f"c{self.count}", "content": [image]}
        self.messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        return self.body()

    def body(self) -> dict[str, Any]:
        return {"model": self.model, "tools": [{"name": "Read"}], "messages": [*self.messages]}


class Clock:
    seconds = 1e9

    def __call__(self) -> float:
        return self.seconds


def lines(prepared: PreparedRequest) -> list[tuple[str, str]]:
    """Return the paths and hashes of the retired images."""
    return LINE.findall(json.dumps(sent(prepared), ensure_ascii=False))


@requirement("retain.view_only", "retain.descriptor", "record.before_reference")
async def test_every_reference_is_in_the_record_with_its_bytes(tmp_path: Path) -> None:
    stage, talk = Stage(retention=Retention(kept_turns=0)), Talk(tmp_path)
    talk.ask()
    for _ in range(3):
        before = await stage.prepare(talk.view())
    assert lines(before) == []
    talk.answer()
    prepared = await stage.prepare(talk.ask())
    found = lines(prepared)
    assert [path for path, _ in found] == [str(tmp_path / f"{number}.png") for number in (1, 2, 3)]
    for _, digest in found:
        kept = stage.record.images.read("somebody", digest)
        assert kept is not None
        assert digest == sha256(kept.data).hexdigest()
        assert encoded(kept.data) in json.dumps(talk.body())


async def view_six_images_and_wait(tmp_path: Path) -> tuple[Stage, Talk]:
    """A conversation whose last request is so long ago that its provider has dropped it from the cache."""
    clock = Clock()
    stage, talk = Stage(record=open_record(tmp_path / "record", kind="memory", now=clock)), Talk(tmp_path)
    talk.ask()
    for _ in range(6):
        await stage.prepare(talk.view())
    talk.answer()
    clock.seconds += 3600
    return stage, talk


@requirement("retain.receipt", "law.2")
async def test_the_receipt_says_why_the_frontier_has_moved(tmp_path: Path) -> None:
    stage, talk = await view_six_images_and_wait(tmp_path)
    prepared = await stage.prepare(talk.ask())
    assert [(line.fate, line.why) for line in prepared.receipt.sights if line.why] == [("retired", COLD_CACHE)] * 3
    assert prepared.receipt.unchanged_count == 3
    assert str(prepared.receipt).count(COLD_CACHE) == 3


@requirement("inspector.data")
async def test_the_receipt_shows_retirements_before_and_after_once(tmp_path: Path) -> None:
    stage, talk = await view_six_images_and_wait(tmp_path)
    retired = await stage.prepare(talk.ask())
    later = await stage.prepare(talk.view())
    edits = retired.trace.build().edits
    assert [each.place for each in edits] == [s.place for s in retired.receipt.sights if s.fate == "retired"]
    assert all(IMAGE_CHIP in each.before and "viewed earlier" in each.after for each in edits)
    assert len(lines(later)) == len(edits) == 3
    assert later.trace.build().edits == ()


@requirement("retain.cold", "retain.fold", "retain.stays")
async def test_images_retired_at_a_cold_cache_stay_retired_on_every_replica(tmp_path: Path) -> None:
    clock = Clock()

    def record() -> Store:
        return open_record(tmp_path / "record", now=clock)

    warm, talk = Stage(record=record()), Talk(tmp_path)
    talk.ask()
    for _ in range(6):
        await warm.prepare(talk.view())
    talk.answer()
    clock.seconds += 200
    assert lines(await warm.prepare(talk.ask())) == [], "the cache still holds all of it"
    talk.answer()
    clock.seconds += 301
    cold = await warm.prepare(talk.ask())
    assert len(lines(cold)) == 3
    other = Stage(record=record())
    for _ in range(4):
        clock.seconds += 10
        body = talk.view()
        one, two = await warm.prepare(body), await other.prepare(body)
        assert sent(one) == sent(two)
        assert lines(one) == lines(cold)
    warm.record.close()
    other.record.close()


@requirement("retain.reviewable")
async def test_nothing_retires_if_the_files_are_missing(tmp_path: Path) -> None:
    stage, talk = Stage(retention=Retention(kept_turns=0)), Talk(tmp_path)
    talk.ask()
    for _ in range(3):
        talk.view()
    talk.answer()
    (tmp_path / "2.png").unlink()
    assert [Path(path).name for path, _ in lines(await stage.prepare(talk.ask()))] == ["1.png", "3.png"]
    relative = json.loads(json.dumps(talk.body()).replace(f"{tmp_path}/", ""))
    assert (await stage.prepare(relative)).edits == []
    local = Stage(retention=Retention(kept_turns=0), compares_any_file=True, client_folder=tmp_path)
    assert json.dumps(sent(await local.prepare(relative))).count("viewed earlier") == 2


@requirement("record.before_reference")
async def test_nothing_retires_if_the_record_cannot_store(tmp_path: Path) -> None:
    stage = Stage(record=open_record(tmp_path / "record"), retention=Retention(kept_turns=0))
    talk = Talk(tmp_path)
    talk.ask()
    talk.view()
    talk.answer()
    body = talk.ask()
    database = sqlite3.connect(tmp_path / "record" / "record.sqlite", isolation_level=None)
    database.execute("ALTER TABLE images RENAME TO elsewhere")
    assert (await stage.prepare(body)).edits == []
    database.execute("ALTER TABLE elsewhere RENAME TO images")
    assert len(lines(await stage.prepare(body))) == 1
    database.close()
    stage.record.close()


@requirement("retain.rent", "retain.limit_near")
async def test_prices_and_limits_are_those_of_the_requested_model(tmp_path: Path) -> None:
    def of(preset: str) -> RequestOrigin:
        return RequestOrigin(Upstream(preset, {"anthropic": "http://localhost:1"}, preset), "anthropic", "somebody")

    stage, talk = Stage(), Talk(tmp_path, "claude-opus-4-8")
    talk.ask()
    for _ in range(30):
        body = talk.view()
    dear = lines(await stage.prepare(body, of("anthropic")))
    cheap = lines(await Stage().prepare({**body, "model": "deepseek-v4.1-flash"}, of("deepseek")))
    assert len(dear) > 10
    assert cheap == []


async def test_tokens_are_counted_of_what_will_be_sent(tmp_path: Path) -> None:
    stage, talk = Stage(retention=Retention(kept_turns=0)), Talk(tmp_path)
    talk.ask()
    talk.view()
    talk.answer()
    body = talk.ask()
    counted = await stage.prepare(body, paid=False)
    assert sent(counted) == sent(await stage.prepare(body, visitor()))
    assert len(lines(counted)) == 1


@pytest.mark.parametrize("depth", [300, 900])
async def test_a_conversation_nested_too_deep_for_names_is_still_served(depth: int, tmp_path: Path) -> None:
    nested: Any = {"cache_control": {"type": "ephemeral"}}
    for _ in range(depth):
        nested = [nested]
    talk = Talk(tmp_path)
    talk.ask()
    for _ in range(5):
        talk.view()
    talk.messages[1]["content"][0]["input"]["deep"] = nested
    prepared = await Stage().prepare(talk.body())
    assert [type(sight.fate) for sight in prepared.scene.sights] == [Shown] * 5


def at(upstream: str) -> RequestOrigin:
    return RequestOrigin(Upstream(upstream, {"anthropic": "http://localhost:1"}), "anthropic", "somebody")


@requirement("retain.switched")
@pytest.mark.parametrize(("model", "upstream"), [("seeing-2", "up"), (SEEING, "other")], ids=["model", "upstream"])
async def test_the_cache_of_another_model_is_cold_for_this_one(model: str, upstream: str, tmp_path: Path) -> None:
    clock = Clock()
    stage, talk = Stage(record=open_record(tmp_path / "record", kind="memory", now=clock)), Talk(tmp_path)
    talk.ask()
    for _ in range(6):
        await stage.prepare(talk.view(), at("up"))
    talk.answer()
    body = talk.ask()
    counted = await stage.prepare({**body, "model": model}, at(upstream), paid=False)
    switched = await stage.prepare({**body, "model": model}, at(upstream))
    assert switched.receipt.changes == counted.receipt.changes == (f"retired ({COLD_CACHE})",) * 3
    clock.seconds += 10
    assert lines(await stage.prepare(body, at("up"))) == [], "the one from before has its cache still"
    for _ in range(2):
        grown = await stage.prepare({**talk.view(), "model": model}, at(upstream))
        assert lines(grown) == lines(switched), "and this one has one now"


@requirement("retain.switched")
async def test_a_new_conversation_is_not_a_switch_of_models(tmp_path: Path) -> None:
    stage = Stage()
    for model in (SEEING, "seeing-2"):
        talk = Talk(tmp_path, model)
        talk.ask(f"hello {model}")
        for _ in range(6):
            prepared = await stage.prepare(talk.view())
        assert lines(prepared) == []


@requirement("retain.reviewable", "law.5")
@pytest.mark.parametrize("kind", ["other pixels", "longer", "shorter", "no image"])
async def test_an_image_stays_if_its_file_has_other_bytes_now(kind: str, tmp_path: Path) -> None:
    stage, talk = Stage(retention=Retention(kept_turns=0)), Talk(tmp_path)
    talk.ask()
    for _ in range(3):
        talk.view()
    talk.answer()
    file = tmp_path / "2.png"
    data = file.read_bytes()
    changed = {
        "other pixels": data[:-20] + bytes(4) + data[-16:],
        "longer": data + b"x",
        "shorter": data[:-1],
        "no image": b"x" * len(data),
    }
    file.write_bytes(changed[kind])
    first = await stage.prepare(talk.ask())
    assert [Path(path).name for path, _ in lines(first)] == ["1.png", "3.png"]
    file.write_bytes(data)
    assert lines(await stage.prepare(talk.ask())) == lines(first), "that would change what is cached"


@requirement("retain.reviewable", "law.5")
async def test_only_the_image_that_is_still_the_file_retires(tmp_path: Path) -> None:
    stage, talk = Stage(retention=Retention(kept_turns=0)), Talk(tmp_path)
    talk.ask()
    talk.view()
    talk.answer()
    talk.ask()
    text = json.dumps(talk.body()).replace(encoded((tmp_path / "1.png").read_bytes()), encoded(picture(7, SIZE)))
    assert lines(await stage.prepare(json.loads(text))) == []
    assert len(lines(await stage.prepare(talk.body()))) == 1


@requirement("retain.reach", "law.7")
@pytest.mark.parametrize(("folder", "any_file", "seen"), [("desk", False, 2), ("else", False, 0), ("else", True, 2)])
async def test_files_elsewhere_are_compared_only_for_clients_on_this_machine(
    tmp_path: Path, folder: str, any_file: bool, seen: int
) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "else").mkdir()
    talk = Talk(tmp_path / folder)
    talk.ask()
    talk.view()
    talk.view()
    talk.answer()
    policy = build_path_policy(tmp_path / "desk", None, (), None)
    stage = Stage(retention=Retention(kept_turns=0), find_file_policy=lambda: policy, compares_any_file=any_file)
    assert len(lines(await stage.prepare(talk.ask()))) == seen


@requirement("retain.reviewable")
async def test_files_are_read_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage, talk = Stage(retention=Retention(kept_turns=0)), Talk(tmp_path)
    talk.ask()
    talk.view()
    talk.answer()
    files, readers, open_file = {str(tmp_path / "1.png")}, set[int](), os.open

    def watch(path: Any, *args: Any, **more: Any) -> int:
        if str(path) in files:
            readers.add(threading.get_ident())
        return open_file(path, *args, **more)

    monkeypatch.setattr(os, "open", watch)
    assert len(lines(await stage.prepare(talk.ask()))) == 1
    assert readers
    assert threading.get_ident() not in readers


@requirement("retain.stays", "retain.fold", "law.2")
async def test_retirement_does_not_change_when_a_file_disappears(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    record = open_record(tmp_path / "record")
    talk = Talk(files)
    talk.ask()
    for _ in range(4):
        talk.view()
    (files / "2.png").unlink()  # before it could leave
    talk.answer()
    body = talk.ask()
    first = await Stage(retention=Retention(kept_turns=0), record=record).prepare(body)
    assert [Path(path).name for path, _ in lines(first)] == ["1.png", "3.png", "4.png"]
    (files / "1.png").unlink()
    (files / "2.png").write_bytes(picture(2, SIZE))
    for _ in range(2):  # in this process and in another one
        again = await Stage(retention=Retention(kept_turns=0), record=record).prepare(talk.ask())
        assert lines(again) == lines(first)
    record.close()
