"""What is written is whole, on the disk, and where it was meant to be."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sightline.disk import write_whole
from tests.requirements import requirement


@requirement("record.acknowledged")
def test_bytes_are_on_the_disk_before_their_name_is_and_the_name_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "file", list[tuple[int, bool]]()

    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append((os.fstat(handle).st_ino, path.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    write_whole(path, b"bytes")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_a_file_is_replaced_and_never_written_into(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"old")
    other.hardlink_to(path)
    write_whole(path, b"new")
    assert (path.read_bytes(), other.read_bytes()) == (b"new", b"old")


def test_a_link_is_replaced_and_never_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    other.write_bytes(b"old")
    path.symlink_to(other)
    write_whole(path, b"new")
    assert (path.read_bytes(), path.is_symlink(), other.read_bytes()) == (b"new", False, b"old")


def test_a_fresh_file_takes_nobodys_name(tmp_path: Path) -> None:
    path, lead = tmp_path / "file", tmp_path / "lead"
    lead.symlink_to(tmp_path / "nowhere")
    path.write_bytes(b"old")
    for taken in (path, lead):
        with pytest.raises(FileExistsError):
            write_whole(taken, b"new", fresh=True)
    assert path.read_bytes() == b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "lead"]
    write_whole(tmp_path / "third", b"new", fresh=True)
    assert (tmp_path / "third").read_bytes() == b"new"


def test_a_link_that_is_planted_under_the_name_of_the_part_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"old")
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    (tmp_path / ".known.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"old"


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_is_the_one_that_was_asked_for(tmp_path: Path, mode: int) -> None:
    former = os.umask(0o022)
    try:
        write_whole(tmp_path / "file", b"new", mode=mode)
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "folder", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_the_mode_of_a_file_that_was_there_stays_whatever_new_ones_get(tmp_path: Path) -> None:
    former = os.umask(0o077)
    try:
        write_whole(tmp_path / "kept", b"", mode=0o640, kept=True)
        write_whole(tmp_path / "new", b"", mode=0o666)
    finally:
        os.umask(former)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("kept", "new")] == [0o640, 0o600]
