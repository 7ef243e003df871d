"""Local files: which paths and types are allowed, and every state of a file system."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.refusal import Refusal
from sightline.sources.files import (
    OUTSIDE_FOLDERS,
    PathPolicy,
    SourceFile,
    build_path_policy,
    is_outside,
    read_permitted_file,
)
from tests.privileges import as_nobody
from tests.refusals import assert_refusal
from tests.requirements import requirement

posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
PIXELS = b"\x89PNG and so on"


@pytest.fixture
def working(tmp_path: Path) -> Path:
    folder = tmp_path / "working"
    folder.mkdir()
    return folder


@pytest.fixture
def policy(working: Path) -> PathPolicy:
    return PathPolicy((working.resolve(),))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that is there, outside of what may be read."""
    path = tmp_path / "secret.png"
    path.write_bytes(PIXELS)
    return path


def refused(outcome: SourceFile | Refusal) -> str:
    assert isinstance(outcome, Refusal)
    assert outcome.remedy
    return outcome.code


@requirement("path.folders")
def test_a_file_is_read_by_its_full_path_and_from_the_working_folder(working: Path, policy: PathPolicy) -> None:
    (working / "deep").mkdir()
    path = working / "deep" / "image.png"
    path.write_bytes(PIXELS)
    expected = SourceFile(PIXELS, path.resolve(), "image.png")
    assert read_permitted_file(str(path), policy) == expected
    assert read_permitted_file("deep/image.png", policy) == expected
    assert read_permitted_file("./deep//image.png", policy) == expected


@requirement("path.folders")
def test_only_the_working_temporary_and_allowed_folders_are_read(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("working", "temporary", "allowed", "other", "working-too")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "image.png").write_bytes(PIXELS)
    policy = build_path_policy(folders["working"], folders["temporary"], [folders["allowed"]], None)
    codes = {
        name: getattr(read_permitted_file(str(folder / "image.png"), policy), "code", "read")
        for name, folder in folders.items()
    }
    assert codes == {
        "working": "read",
        "temporary": "read",
        "allowed": "read",
        "other": "not_permitted",
        "working-too": "not_permitted",
    }


@requirement("path.home")
def test_the_home_folder_is_read_only_on_request(tmp_path: Path, working: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "image.png").write_bytes(PIXELS)
    without = build_path_policy(working, working, [], None)
    assert refused(read_permitted_file(str(home / "image.png"), without)) == "not_permitted"
    assert refused(read_permitted_file("~/image.png", without)) == "not_permitted"
    asked = build_path_policy(working, working, [], home)
    assert isinstance(read_permitted_file(str(home / "image.png"), asked), SourceFile)
    assert isinstance(read_permitted_file("~/image.png", asked), SourceFile)


def test_nothing_is_read_without_a_folder(secret: Path) -> None:
    assert refused(read_permitted_file(str(secret), PathPolicy(()))) == "not_permitted"
    assert refused(read_permitted_file("secret.png", PathPolicy(()))) == "not_permitted"


@requirement("path.dotdot")
@pytest.mark.parametrize(
    "path", ["../secret.png", "a/../image.png", "..", "../", "/..", "a/..", "..\\secret.png", "~/../x"]
)
def test_a_path_with_dot_dot_is_refused_even_if_it_stays_inside(
    path: str, working: Path, policy: PathPolicy, secret: Path
) -> None:
    (working / "image.png").write_bytes(PIXELS)
    assert refused(read_permitted_file(path, policy)) == "not_permitted"
    assert refused(read_permitted_file(f"{working}/{path}", policy)) == "not_permitted"


@requirement("path.dotdot")
@pytest.mark.parametrize("name", ["a..b.png", "..png", "image..", "...", ".hidden"])
def test_dots_in_a_name_are_only_dots(name: str, working: Path, policy: PathPolicy) -> None:
    (working / name).write_bytes(PIXELS)
    assert isinstance(read_permitted_file(name, policy), SourceFile)


@posix
@requirement("path.symlink", "law.7")
def test_a_link_that_leads_out_is_refused_and_one_that_stays_is_followed(
    working: Path, policy: PathPolicy, secret: Path
) -> None:
    (working / "image.png").write_bytes(PIXELS)
    (working / "out.png").symlink_to(secret)
    (working / "folder").symlink_to(secret.parent)
    (working / "in.png").symlink_to("image.png")
    assert refused(read_permitted_file("out.png", policy)) == "not_permitted"
    assert refused(read_permitted_file("folder/secret.png", policy)) == "not_permitted"
    found = read_permitted_file("in.png", policy)
    assert found == SourceFile(PIXELS, (working / "image.png").resolve(), "in.png")


@posix
def test_the_folders_of_a_policy_may_be_links(tmp_path: Path, working: Path) -> None:
    (working / "image.png").write_bytes(PIXELS)
    (tmp_path / "linked").symlink_to(working)
    policy = build_path_policy(tmp_path / "linked", tmp_path / "linked", [], None)
    assert isinstance(read_permitted_file(str(working / "image.png"), policy), SourceFile)
    assert isinstance(read_permitted_file(str(tmp_path / "linked" / "image.png"), policy), SourceFile)


@posix
@requirement("path.symlink")
def test_circular_links_are_refused(working: Path, policy: PathPolicy) -> None:
    (working / "a").symlink_to("b")
    (working / "b").symlink_to("a")
    assert refused(read_permitted_file("a", policy)) == "not_found"


def before_opening(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Something happens between the look at a path and the opening of its file."""
    really = os.open

    def late(path: str, flags: int) -> int:
        happens()
        return really(path, flags)

    monkeypatch.setattr(os, "open", late)


@posix
@requirement("path.opened", "law.7")
def test_a_folder_that_becomes_a_link_before_the_file_is_opened_is_noticed(
    working: Path, policy: PathPolicy, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (working / "deep").mkdir()
    (working / "deep" / "secret.png").write_bytes(b"harmless")

    def swap() -> None:
        (working / "deep").rename(working / "gone")
        (working / "deep").symlink_to(secret.parent)

    before_opening(monkeypatch, swap)
    assert refused(read_permitted_file("deep/secret.png", policy)) == "not_permitted"


@posix
@requirement("path.opened")
def test_an_exchanged_file_is_noticed_without_proc(
    working: Path, policy: PathPolicy, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(path: Path) -> Path:
        raise OSError

    monkeypatch.setattr(Path, "readlink", unknown)
    (working / "deep").mkdir()
    (working / "deep" / "secret.png").write_bytes(b"harmless")
    assert isinstance(read_permitted_file("deep/secret.png", policy), SourceFile)

    def swap() -> None:
        (working / "deep").rename(working / "gone")
        (working / "deep").symlink_to(secret.parent)

    before_opening(monkeypatch, swap)
    assert refused(read_permitted_file("deep/secret.png", policy)) == "not_permitted"


@posix
@requirement("path.opened")
@pytest.mark.parametrize(
    ("other", "code"),
    [("link", "not_found"), ("fifo", "not_permitted"), ("folder", "invalid_input"), ("nothing", "not_found")],
)
def test_a_file_that_becomes_something_else_before_it_is_opened_is_noticed(
    other: str, code: str, working: Path, policy: PathPolicy, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = working / "image.png"
    path.write_bytes(PIXELS)

    def swap() -> None:
        path.unlink()
        if other == "link":
            path.symlink_to(secret)
        elif other == "fifo":
            os.mkfifo(path)
        elif other == "folder":
            path.mkdir()

    before_opening(monkeypatch, swap)
    assert refused(read_permitted_file("image.png", policy)) == code


@requirement("path.absent")
def test_a_file_that_is_not_there_is_not_found(working: Path, policy: PathPolicy) -> None:
    (working / "image.png").write_bytes(PIXELS)
    assert refused(read_permitted_file("absent.png", policy)) == "not_found"
    assert refused(read_permitted_file("no/such/folder.png", policy)) == "not_found"
    assert refused(read_permitted_file("image.png/inner.png", policy)) == "not_found"
    assert refused(read_permitted_file("x" * 300, policy)) == "not_found"


@requirement("path.same_words")
def test_refusals_outside_do_not_reveal_whether_a_file_exists(policy: PathPolicy, secret: Path) -> None:
    assert read_permitted_file(str(secret), policy) == read_permitted_file(str(secret.with_name("absent.png")), policy)


@requirement("path.none")
@pytest.mark.parametrize("path", ["", " ", "\n", "a\0b.png", "\0", "\ud800", "x" * 5000, "a/" * 3000])
def test_an_invalid_path_is_invalid_input(path: str, policy: PathPolicy) -> None:
    assert refused(read_permitted_file(path, policy)) == "invalid_input"


@requirement("path.folder")
def test_a_folder_is_refused(working: Path, policy: PathPolicy) -> None:
    (working / "folder.png").mkdir()
    assert refused(read_permitted_file("folder.png", policy)) == "invalid_input"
    assert refused(read_permitted_file(str(working), policy)) == "invalid_input"


@posix
@requirement("path.special")
def test_a_fifo_without_a_writer_does_not_block(working: Path, policy: PathPolicy) -> None:
    os.mkfifo(working / "image.png")
    assert refused(read_permitted_file("image.png", policy)) == "not_permitted"


@posix
@requirement("path.special")
def test_a_socket_is_refused(policy: PathPolicy) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/image.png")  # its path has to be short
        assert (
            refused(read_permitted_file(f"{folder}/image.png", PathPolicy((Path(folder).resolve(),))))
            == "not_permitted"
        )


@posix
@requirement("path.special")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/random", "/dev/tty"])
def test_a_device_is_refused(device: str, policy: PathPolicy) -> None:
    assert refused(read_permitted_file(device, policy)) == "not_permitted"
    assert refused(read_permitted_file(device, PathPolicy((Path("/dev"),)))) in ("not_permitted", "not_found")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there are no such files")
def test_a_file_with_a_wrong_size_is_refused() -> None:
    everything = PathPolicy((Path("/").resolve(),))
    assert refused(read_permitted_file("/proc/self/status", everything)) == "corrupt"
    assert refused(read_permitted_file("/proc/self/status", everything, min_bytes=0)) == "corrupt"


@posix
@requirement("path.closed")
@pytest.mark.parametrize("closed", ["file", "folder"])
def test_a_file_without_permission_is_not_permitted(closed: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        root = Path(name).resolve()
        folder = root / "deep"
        folder.mkdir()
        file = folder / "image.png"
        file.write_bytes(PIXELS)
        for each in (root, folder, file):
            each.chmod(0o755)
        with as_nobody():
            assert isinstance(read_permitted_file(str(file), PathPolicy((root,))), SourceFile)
        (file if closed == "file" else folder).chmod(0)
        with as_nobody():
            assert refused(read_permitted_file(str(file), PathPolicy((root,)))) == "not_permitted"
        folder.chmod(0o755)


@requirement("path.empty")
def test_an_empty_file_is_corrupt_unless_it_is_allowed(working: Path, policy: PathPolicy) -> None:
    (working / "empty.png").touch()
    assert refused(read_permitted_file("empty.png", policy)) == "corrupt"
    assert read_permitted_file("empty.png", policy, min_bytes=0) == SourceFile(
        b"", (working / "empty.png").resolve(), "empty.png"
    )


@requirement("path.too_large")
def test_a_file_over_the_limit_is_too_large_and_one_at_the_limit_is_read(working: Path, policy: PathPolicy) -> None:
    (working / "image.png").write_bytes(bytes(1000))
    assert isinstance(read_permitted_file("image.png", policy, max_bytes=1000), SourceFile)
    assert refused(read_permitted_file("image.png", policy, max_bytes=999)) == "too_large"
    with (working / "huge.png").open("wb") as file:
        file.truncate(70 * 1024 * 1024)
    outcome = read_permitted_file("huge.png", policy)
    assert_refusal(outcome, "too_large", "64 MiB")


@requirement("path.changing")
@pytest.mark.parametrize("change", ["grows", "shrinks", "is written over"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    change: str, working: Path, policy: PathPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = working / "image.png"
    path.write_bytes(bytes(3 << 20))
    os.utime(path, ns=(0, 0))
    really = os.read

    def meanwhile(descriptor: int, size: int) -> bytes:
        piece = really(descriptor, size)
        if change == "shrinks":
            os.truncate(path, 1 << 20)
        else:
            with path.open("ab" if change == "grows" else "r+b") as file:
                file.write(b"more")
        return piece

    monkeypatch.setattr(os, "read", meanwhile)
    outcome = read_permitted_file("image.png", policy)
    assert_refusal(outcome, "corrupt", "file")


@requirement("path.states")
def test_a_failing_disk_is_a_refusal(working: Path, policy: PathPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(descriptor: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    (working / "image.png").write_bytes(PIXELS)
    monkeypatch.setattr(os, "read", failing)
    outcome = read_permitted_file("image.png", policy)
    assert isinstance(outcome, Refusal)
    assert "Input/output error" in outcome.what


@posix
def test_no_descriptor_is_left_open(working: Path, policy: PathPolicy) -> None:
    (working / "image.png").write_bytes(PIXELS)
    (working / "empty.png").touch()
    before = os.open(working, os.O_RDONLY)
    os.close(before)
    for name in ("image.png", "empty.png", "absent.png") * 3:
        read_permitted_file(name, policy)
    after = os.open(working, os.O_RDONLY)
    os.close(after)
    assert after == before


@requirement("path.states")
@given(st.text() | st.text("./\\~a\0\ud800", max_size=40) | st.text().map("/".__add__))
def test_any_path_gives_a_refusal_or_a_file(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert isinstance(read_permitted_file(text, PathPolicy((Path(folder).resolve(),))), Refusal)


@requirement("mcp.roots")
def test_is_outside_differs_from_other_refusals(policy: PathPolicy, working: Path, secret: Path) -> None:
    (working / "in.png").write_bytes(PIXELS)
    (working / "link.png").symlink_to(secret)
    for path in ("in.png", "gone.png", str(working / "in.png"), "", "../secret.png", "a\0b", "~/x"):
        assert not is_outside(path, policy), path
        assert read_permitted_file(path, policy) is not OUTSIDE_FOLDERS
    for path in (str(secret), "link.png", "/etc/hostname", "/no/such/file"):
        assert is_outside(path, policy), path
        assert read_permitted_file(path, policy) is OUTSIDE_FOLDERS
    assert is_outside("in.png", PathPolicy(()))
