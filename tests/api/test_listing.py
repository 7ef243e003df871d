"""`list_images`: what can be seen again, and nothing of what others have seen."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.api.session import Session, ToolContext
from sightline.api.tool_results import ImageList
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours


def listed(context: ToolContext | None = None) -> ImageList:
    found = sightline.call("list_images", {}, session=Session.from_context(context) if context else None)
    assert isinstance(found, ImageList)
    return found


def picture(folder: Path, name: str, seed: int) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(paint_quadrants(some_colours(seed), (40, 30)))
    return str(folder / name)


@requirement("tools.list_images")
def test_images_of_the_working_folder_are_listed_and_others_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    one, two = tmp_path / "one", tmp_path / "two"
    picture(one, "a.png", 1)
    picture(two, "b.png", 2)
    for folder, name in ((one, "a.png"), (two, "b.png")):
        monkeypatch.chdir(folder)
        seen = sightline.view(name)
        assert isinstance(seen, sightline.api.View)
        told: Any = listed().as_dict()
        (entry,) = told["images"]
        assert entry == {
            "image": seen.image,
            "mime": "image/png",
            "width": 40,
            "height": 30,
            "bytes": seen.bytes,
            "path": str(folder / name),
        }
    monkeypatch.chdir(tmp_path)
    assert len(listed().images) == 2
    monkeypatch.chdir(one)
    monkeypatch.setenv("SIGHTLINE_LIST_IMAGES", "all")
    assert len(listed().images) == 2


@requirement("tools.list_images")
def test_a_scope_lists_only_its_own_readable_images(context: ToolContext, folder: Path, tmp_path: Path) -> None:
    picture(folder, "a.png", 1)
    sightline.view("a.png", session=Session.from_context(context))
    assert [kept.path for kept in listed(context).images] == [str(folder / "a.png")]
    elsewhere = replace(context, policy=replace(context.policy, roots=(tmp_path / "record",)))
    assert [kept.path for kept in listed(elsewhere).images] == [""]
    assert listed(replace(context, scope="another")).images == ()
    assert listed(replace(context, listed_folders=())).images == (), "who works nowhere has found nothing there"


@requirement("tools.list_images")
def test_a_listing_is_bounded(context: ToolContext, folder: Path) -> None:
    deep = folder / ("d" * 200)
    paths = [picture(deep, f"{'n' * 100}{number}.png", number) for number in range(40)]
    for path in paths:
        sightline.view(path, session=Session.from_context(context))
    found = listed(context)
    text: Any
    (text,) = found.content()
    assert found.more
    assert 5 < len(found.images) < 40
    assert len(text["text"]) <= 8000


@requirement("tools.list_images")
def test_analyzed_images_are_listed_even_with_a_name_that_is_not_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    picture(tmp_path, "a.png", 1)
    os.rename(b"a.png", b"\xff\xfe.png")  # noqa: PTH104, no text is a path of it
    sightline.analyze([os.fsdecode(b"\xff\xfe.png")], "What is it?", session=Session())
    assert [kept.path for kept in listed().images] == [f"{tmp_path}/\\udcff\\udcfe.png"]
