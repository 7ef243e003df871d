"""`sightline forget`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.store import open_record
from tests.cli.command import assert_refused, sightline
from tests.look.bad import keep_two_that_begin_alike
from tests.requirements import requirement
from tests.store.writer import description_of, image_of, perception_of

IMAGE, OTHER = image_of("cat", 1), image_of("dog", 2)


@pytest.fixture
def folder(home: Path) -> Path:
    """A record that holds two images, one of them of a credential's scope."""
    record = open_record(home / "record")
    record.keep_image(record.scope_of(""), IMAGE)
    record.keep_description("theirs", description_of("cat", 1), "v1")
    record.keep_perception("theirs", perception_of("cat", 1))
    record.keep_image("theirs", OTHER)
    record.consent("openai", given=True)
    record.close()
    return home / "record"


def held(folder: Path) -> set[str]:
    return {path.name for path in (folder / "blobs").rglob("*") if path.is_file()}


@requirement("record.forget", "record.forget.command")
@pytest.mark.parametrize("name", [f"sha256:{IMAGE.sha256}", IMAGE.sha256, IMAGE.sha256.upper(), IMAGE.sha256[:12]])
def test_an_image_is_forgotten_with_all_that_was_said_of_it(folder: Path, name: str) -> None:
    ended = sightline("forget", name)
    assert (ended.code, ended.out, ended.err) == (0, f"forgotten: sha256:{IMAGE.sha256}\n", "")
    assert held(folder) == {OTHER.sha256}
    record = open_record(folder)
    assert record.description("theirs", IMAGE.sha256, "ollama/llava", "v1") is None
    record.close()
    assert_refused(sightline("forget", IMAGE.sha256), "holds no image")


@requirement("record.forget", "record.forget.command")
def test_all_images_are_forgotten_and_consents_stay(folder: Path) -> None:
    assert sightline("forget", "--all", "--json").json == {"forgotten": "all"}
    assert held(folder) == set()
    record = open_record(folder)
    assert record.image("theirs", OTHER.sha256) is None
    assert record.consents() == {"openai": True}
    record.close()
    assert sightline("forget", "--all").code == 0


def test_what_names_no_image_or_two_is_refused(folder: Path) -> None:
    record = open_record(folder)
    keep_two_that_begin_alike(record, record.scope_of(""))
    record.close()
    before = held(folder)
    assert_refused(sightline("forget", "sha256:abcdefabcdef"), "fits 2 images")
    assert_refused(sightline("forget", "0" * 64), "holds no image")
    assert_refused(sightline("forget", "abc"), "hex digits")
    assert_refused(sightline("forget", f"{IMAGE.sha256}#crop:1,2,3,4"), "names no image")
    assert_refused(sightline("forget", "https://example.com/a.png"), "names no image")
    for words in ([], ["--all", IMAGE.sha256]):
        assert sightline("forget", *words).code == 2
    assert held(folder) == before


def test_a_record_that_cannot_be_written_is_not_said_to_have_forgotten(folder: Path) -> None:
    (folder / "record.sqlite").write_bytes(b"no database" * 1000)
    ended = sightline("forget", "--all")
    assert (ended.code, ended.out) == (1, "")
    assert "could not be written" in ended.err
    assert held(folder)
