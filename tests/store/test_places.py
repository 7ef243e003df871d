"""The paths where images were found: listed by folder, newest first, deleted with the images."""

from __future__ import annotations

from pathlib import Path

from sightline.model.geometry import Size
from sightline.model.image import ImageSummary
from sightline.model.ports import Store
from sightline.store import open_record
from tests.requirements import requirement
from tests.store.test_bounds import DAY, Clock
from tests.store.writer import image_of

CAT, DOG, COW = image_of("cat", 0), image_of("dog", 1), image_of("cow", 2)


def paths(record: Store, scope: str | None, *folders: str) -> list[str]:
    return [kept.path for kept in record.images.list_newest(scope, folders, 9)]


@requirement("record.places")
def test_images_are_listed_by_the_folder_where_they_were_found(record: Store) -> None:
    for image, path in ((CAT, "/projects/cat.png"), (DOG, "/projects/deep/dog.png"), (COW, "/projects-old/cow.png")):
        record.images.keep("a", image)
        record.images.note_place("a", image.sha256, path)
    assert sorted(paths(record, "a", "/projects")) == ["/projects/cat.png", "/projects/deep/dog.png"], (
        "another one begins alike"
    )
    assert paths(record, "a", "/projects/deep/") == ["/projects/deep/dog.png"]
    assert paths(record, "a", "/projects%") == paths(record, "a") == paths(record, "b", "/projects") == []
    assert len(paths(record, None, "/projects", "/projects-old", "/")) == 3
    first = record.images.list_newest("a", ["/projects/deep"], 9)
    assert first == (ImageSummary(DOG.sha256, "image/png", Size(2, 7), len(DOG.data), "/projects/deep/dog.png"),)
    assert len(record.images.list_newest(None, ["/"], 2)) == 2


@requirement("record.places")
def test_the_newest_image_is_listed_first_and_each_only_once(tmp_path: Path) -> None:
    clock = Clock()
    record = open_record(tmp_path / "record", now=clock)
    for image, path in ((CAT, "/a/1"), (DOG, "/a/2"), (CAT, "/a/3"), (CAT, "/b/4")):
        record.images.keep("a", image)
        record.images.note_place("a", image.sha256, path)
        clock.days += 1 / DAY
    assert paths(record, "a", "/a") == ["/a/3", "/a/2"]
    assert paths(record, "a", "/b") == ["/b/4"]
    record.images.keep("b", COW)
    assert [kept.path for kept in record.images.list_newest(None, None, 9)] == ["", "/a/2", "/b/4"], (
        "wherever they came from"
    )
    for number in range(30):
        record.images.note_place("a", DOG.sha256, f"/many/{number}")
        clock.days += 1 / DAY
    assert paths(record, "a", "/many") == ["/many/29"]
    assert paths(record, "a", "/a") == ["/a/3"], "of many places the newest few are known"
    record.close()


@requirement("record.places")
def test_paths_are_deleted_with_their_images(record: Store) -> None:
    record.images.note_place("a", CAT.sha256, "/projects/cat.png")
    assert paths(record, None, "/projects") == [], "nothing is named that is not there"
    record.images.keep("a", CAT)
    record.images.note_place("a", CAT.sha256, "/projects/cat.png")
    record.images.keep("a", CAT)
    assert paths(record, "a", "/projects") == ["/projects/cat.png"]
    record.forget(CAT.sha256)
    record.images.keep("a", CAT)
    assert paths(record, "a", "/projects") == []
    assert [kept.path for kept in record.images.list_newest("a", None, 9)] == [""]
