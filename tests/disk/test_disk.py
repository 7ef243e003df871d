"""Atomic writes: complete, synced, and only to the intended path."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sightline.disk import write_atomically
from tests.requirements import requirement


@requirement("record.acknowledged")
def test_bytes_are_synced_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "file", list[tuple[int, bool]]()

    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append((os.fstat(handle).st_ino, path.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    write_atomically(path, b"bytes")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_a_file_is_replaced_and_never_modified(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"old")
    other.hardlink_to(path)
    write_atomically(path, b"new")
    assert (path.read_bytes(), other.read_bytes()) == (b"new", b"old")


def test_a_link_is_replaced_and_never_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    other.write_bytes(b"old")
    path.symlink_to(other)
    write_atomically(path, b"new")
    assert (path.read_bytes(), path.is_symlink(), other.read_bytes()) == (b"new", False, b"old")


def test_an_exclusive_write_does_not_replace_a_file(tmp_path: Path) -> None:
    path, lead = tmp_path / "file", tmp_path / "lead"
    lead.symlink_to(tmp_path / "nowhere")
    path.write_bytes(b"old")
    for taken in (path, lead):
        with pytest.raises(FileExistsError):
            write_atomically(taken, b"new", exclusive=True)
    assert path.read_bytes() == b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "lead"]
    write_atomically(tmp_path / "third", b"new", exclusive=True)
    assert (tmp_path / "third").read_bytes() == b"new"


def test_a_planted_link_at_the_temporary_name_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"old")
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    (tmp_path / ".known.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"old"


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_file_gets_the_requested_mode(tmp_path: Path, mode: int) -> None:
    former = os.umask(0o022)
    try:
        write_atomically(tmp_path / "file", b"new", mode=mode)
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_a_failed_write_leaves_no_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path / "folder", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_force_mode_ignores_the_umask(tmp_path: Path) -> None:
    former = os.umask(0o077)
    try:
        write_atomically(tmp_path / "kept", b"", mode=0o640, force_mode=True)
        write_atomically(tmp_path / "new", b"", mode=0o666)
    finally:
        os.umask(former)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("kept", "new")] == [0o640, 0o600]
