"""Images that a client has sent as damaged text: opened again from their file, if it may be read and is the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.engine import PreparedRequest
from sightline.model.scene import InlineSource, Refused, Shown, Told
from sightline.sources.files import PathPolicy, build_path_policy
from sightline.store import open_record
from tests.engine.parts import BLIND, SEEING, ScriptedSeer, Stage, encoded, picture, sent, visitor
from tests.requirements import requirement


def build(path: str, data: bytes, model: str = SEEING, words: str = "Content of it:\n") -> dict[str, Any]:
    """Return a request of a client that reads every file as UTF-8."""
    call = {"type": "tool_use", "id": "c1", "name": "Read", "input": {"filepath": path}}
    held = {"type": "tool_result", "tool_use_id": "c1", "content": words + data.decode("utf-8", "replace")}
    asked = {"role": "user", "content": "look"}
    return {
        "model": model,
        "messages": [asked, {"role": "assistant", "content": [call]}, {"role": "user", "content": [held]}],
    }


def allow(folder: Path) -> dict[str, Any]:
    policy = build_path_policy(folder, None, (), None)
    return {"find_file_policy": lambda: policy}


def list_content(prepared: PreparedRequest) -> Any:
    return sent(prepared)["messages"][-1]["content"][0]["content"]


@requirement("rescue.damaged", "law.4")
async def test_the_file_of_a_damaged_image_is_shown(tmp_path: Path) -> None:
    data = picture()
    (tmp_path / "a.png").write_bytes(data)
    for path in (str(tmp_path / "a.png"), "a.png"):
        prepared = await Stage(**allow(tmp_path)).prepare(build(path, data))
        content = list_content(prepared)
        assert [each["type"] for each in content] == ["text", "image"]
        assert (content[0]["text"], content[1]["source"]["data"]) == ("Content of it:", encoded(data))


@requirement("rescue.damaged")
async def test_a_text_only_model_gets_a_description_of_the_file(tmp_path: Path) -> None:
    data = picture()
    (tmp_path / "a.png").write_bytes(data)
    seer = ScriptedSeer(["a red door"])
    prepared = await Stage(seer, **allow(tmp_path)).prepare(build(str(tmp_path / "a.png"), data, BLIND))
    (sight,) = prepared.scene.sights
    assert isinstance(sight.fate, Told)
    assert [look.data for look in seer.looks] == [data]
    assert "a red door" in json.dumps(list_content(prepared))


@requirement("rescue.damaged", "law.6", "law.7")
@pytest.mark.parametrize("why", ["not allowed", "gone", "another image", "no image", "a folder", "no folder"])
async def test_otherwise_the_model_gets_one_sentence_with_the_path(why: str, tmp_path: Path) -> None:
    data, path, options = picture(), tmp_path / "a.png", allow(tmp_path)
    match why:
        case "not allowed":
            path.write_bytes(data)
            options = allow(tmp_path / "other")
        case "no folder":
            path.write_bytes(data)
            options = {"find_file_policy": lambda: PathPolicy(())}
        case "another image":
            path.write_bytes(picture(7))
        case "no image":
            path.write_text("words")
        case "a folder":
            path.mkdir()
    prepared = await Stage(**options).prepare(build(str(path), data))
    (sight,) = prepared.scene.sights
    assert isinstance(sight.fate, Refused)
    assert sight.fate.refusal.code == "corrupt"
    content = json.dumps(list_content(prepared), ensure_ascii=False)
    assert str(path) in content
    assert "IHDR" not in content
    assert len(content) < 400


@requirement("rescue.damaged", "law.2", "law.10")
async def test_a_later_request_gets_the_same(tmp_path: Path) -> None:
    data, path = picture(), tmp_path / "a.png"
    path.write_bytes(data)
    record = open_record(tmp_path / "record")
    first = await Stage(record=record, **allow(tmp_path)).prepare(build(str(path), data))
    path.write_bytes(picture(7))
    again = await Stage(record=record, **allow(tmp_path)).prepare(build(str(path), data))
    assert list_content(again) == list_content(first)
    record.close()
    record = open_record(tmp_path / "record")
    path.unlink()
    later = await Stage(record=record, **allow(tmp_path)).prepare(build(str(path), data))
    assert list_content(later) == list_content(first)
    record.close()


@requirement("rescue.damaged", "law.2")
async def test_a_sentence_stays_when_the_file_comes_back(tmp_path: Path) -> None:
    data, path = picture(), tmp_path / "a.png"
    stage = Stage(**allow(tmp_path))
    first = await stage.prepare(build(str(path), data))
    path.write_bytes(data)
    assert list_content(await stage.prepare(build(str(path), data))) == list_content(first)
    other = await stage.prepare(build(str(path), data), visitor("somebody else"))
    assert [type(sight.fate) for sight in other.scene.sights] == [Shown]


@requirement("rescue.damaged", "law.7")
async def test_reopened_images_are_not_shared_between_callers(tmp_path: Path) -> None:
    data, path = picture(), tmp_path / "a.png"
    path.write_bytes(data)
    stage = Stage(**allow(tmp_path))
    await stage.prepare(build(str(path), data))
    path.unlink()
    other = await stage.prepare(build(str(path), data), visitor("somebody else"))
    assert [type(sight.fate) for sight in other.scene.sights] == [Refused]


@requirement("rescue.latin1", "law.4")
async def test_an_image_in_latin_1_is_shown_without_its_file() -> None:
    request = build("/nowhere/a.png", b"")
    request["messages"][-1]["content"][0]["content"] = picture().decode("latin-1")
    prepared = await Stage().prepare(request)
    (sight,) = prepared.scene.sights
    assert isinstance(sight.source, InlineSource)
    assert [each["source"]["data"] for each in list_content(prepared)] == [encoded(picture())]
