"""Comparing files with images: which files are compared, and that the answer is yes or no."""

from __future__ import annotations

import os
import socket
from hashlib import sha256
from pathlib import Path

import pytest

from sightline.model.image import MAX_FILE_BYTES
from sightline.sources.files import FileDigests, PathPolicy, build_path_policy
from tests.requirements import requirement

DATA = b"the bytes of an image"
OTHER = b"THE BYTES OF AN IMAGE"
DIGEST = sha256(DATA).hexdigest()
OLD = 1_600_000_000


def matches(path: Path | str, policy: PathPolicy | None = None, data: bytes = DATA, folder: Path | None = None) -> bool:
    return FileDigests().matches(str(path), len(data), sha256(data).hexdigest(), policy, folder)


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with every read of a file."""
    reads: list[int] = []
    read = os.read

    def count(descriptor: int, length: int) -> bytes:
        reads.append(length)
        return read(descriptor, length)

    monkeypatch.setattr(os, "read", count)
    return reads


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    for name in ("desk", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(DATA)
    (tmp_path / "desk" / "link.png").symlink_to(tmp_path / "elsewhere" / "a.png")
    return tmp_path / "desk"


@requirement("retain.reach", "law.7")
def test_only_a_regular_file_with_the_same_bytes_matches(desk: Path) -> None:
    assert matches(desk / "a.png")
    assert matches(desk / "link.png")
    assert matches(f"{desk}/../elsewhere/a.png")
    for data in (OTHER, DATA + b"x", DATA[:-1], b""):
        assert not matches(desk / "a.png", data=data)
    os.mkfifo(desk / "pipe.png")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(desk / "socket.png"))
    for name in ("pipe.png", "socket.png", "", "none.png", "a.png/", "a\0.png", "a" * 5000):
        assert not matches(f"{desk}/{name}"), name
    assert not matches("/dev/zero", data=bytes(9))


@requirement("retain.reach")
def test_a_path_that_depends_on_the_caller_or_another_machine_does_not_match(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    monkeypatch.setenv("HOME", str(desk))
    shares = (
        f"/{desk}/a.png",
        "//server/share/a.png",
        r"\\server\share\a.png",
        "file://server/a.png",
        "file:////s/a.png",
    )
    for path in ("a.png", "./a.png", "~/a.png", "file:a.png", *shares):
        assert not matches(path), path
    for path in ("~/a.png", *shares):
        assert not matches(path, folder=desk), path


@requirement("retain.relative")
def test_a_relative_path_starts_at_the_folder_of_the_caller_where_that_is_known(desk: Path) -> None:
    for path in ("a.png", "./a.png", "../elsewhere/a.png", "file:a.png"):
        assert matches(path, folder=desk), path
    assert not matches("none.png", folder=desk)
    assert not matches("a.png", folder=desk.parent)
    assert not matches("../elsewhere/a.png", build_path_policy(desk, None, (), None), folder=desk)


@requirement("retain.relative")
def test_an_address_of_a_file_is_its_path(desk: Path) -> None:
    (desk / "a b.png").write_bytes(DATA)
    for address in (f"file://{desk}/a%20b.png", f"file://localhost{desk}/a.png", f"file:{desk}/a.png"):
        assert matches(address), address
    assert not matches(f"file://{desk}/none.png")
    assert not matches("file://[/a.png")


@requirement("retain.reach")
def test_a_file_over_the_limit_is_not_read(desk: Path) -> None:
    with (desk / "large.png").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert not FileDigests().matches(str(desk / "large.png"), MAX_FILE_BYTES + 1, "0" * 64, None)


@requirement("retain.reach", "law.7")
def test_only_permitted_files_are_compared_with_a_policy(desk: Path) -> None:
    policy = build_path_policy(desk, None, (), None)
    assert matches(desk / "a.png", policy)
    for path in (desk / "link.png", desk.parent / "elsewhere" / "a.png", f"{desk}/../desk/a.png"):
        assert not matches(path, policy), path
    assert not matches(desk / "a.png", build_path_policy(desk, None, (), None, excluded=(desk,)))
    assert not matches(desk / "a.png", PathPolicy(()))


@requirement("retain.reviewable")
def test_a_file_is_hashed_again_only_if_it_has_changed(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, digests = desk / "a.png", FileDigests()
    os.utime(file, (OLD, OLD))
    reads = count_reads(monkeypatch)
    for _ in range(3):
        assert digests.matches(str(file), len(DATA), DIGEST, None)
    assert len(reads) == 1
    file.write_bytes(OTHER)
    os.utime(file, (OLD, OLD))
    assert not digests.matches(str(file), len(DATA), DIGEST, None), "the same size and time, and other bytes"


@requirement("retain.reviewable")
def test_the_digest_of_a_file_that_has_just_changed_is_not_cached(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests, reads = FileDigests(), count_reads(monkeypatch)
    for _ in range(2):
        assert digests.matches(str(desk / "a.png"), len(DATA), DIGEST, None)
    assert len(reads) == 2
