"""Files: where they may be, what they may be, and every state in which a file system can leave them."""

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
from sightline.sources.file import OUTSIDE, File, Policy, outside, policy_for, read
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
def policy(working: Path) -> Policy:
    return Policy((working.resolve(),))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that is there, outside of what may be read."""
    path = tmp_path / "secret.png"
    path.write_bytes(PIXELS)
    return path


def refused(outcome: File | Refusal) -> str:
    assert isinstance(outcome, Refusal)
    assert outcome.remedy
    return outcome.code


@requirement("path.folders")
def test_a_file_is_read_by_its_full_path_and_from_the_working_folder(working: Path, policy: Policy) -> None:
    (working / "deep").mkdir()
    path = working / "deep" / "image.png"
    path.write_bytes(PIXELS)
    expected = File(PIXELS, path.resolve(), "image.png")
    assert read(str(path), policy) == expected
    assert read("deep/image.png", policy) == expected
    assert read("./deep//image.png", policy) == expected


@requirement("path.folders")
def test_the_working_the_temporary_and_the_allowed_folders_are_read_and_no_others(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("working", "temporary", "allowed", "other", "working-too")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "image.png").write_bytes(PIXELS)
    policy = policy_for(folders["working"], folders["temporary"], [folders["allowed"]], None)
    codes = {name: getattr(read(str(folder / "image.png"), policy), "code", "read") for name, folder in folders.items()}
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
    without = policy_for(working, working, [], None)
    assert refused(read(str(home / "image.png"), without)) == "not_permitted"
    assert refused(read("~/image.png", without)) == "not_permitted"
    asked = policy_for(working, working, [], home)
    assert isinstance(read(str(home / "image.png"), asked), File)
    assert isinstance(read("~/image.png", asked), File)


def test_without_a_folder_nothing_is_read(secret: Path) -> None:
    assert refused(read(str(secret), Policy(()))) == "not_permitted"
    assert refused(read("secret.png", Policy(()))) == "not_permitted"


@requirement("path.dotdot")
@pytest.mark.parametrize(
    "path", ["../secret.png", "a/../image.png", "..", "../", "/..", "a/..", "..\\secret.png", "~/../x"]
)
def test_a_path_that_goes_up_is_refused_even_where_it_would_stay_inside(
    path: str, working: Path, policy: Policy, secret: Path
) -> None:
    (working / "image.png").write_bytes(PIXELS)
    assert refused(read(path, policy)) == "not_permitted"
    assert refused(read(f"{working}/{path}", policy)) == "not_permitted"


@requirement("path.dotdot")
@pytest.mark.parametrize("name", ["a..b.png", "..png", "image..", "...", ".hidden"])
def test_dots_in_a_name_are_only_dots(name: str, working: Path, policy: Policy) -> None:
    (working / name).write_bytes(PIXELS)
    assert isinstance(read(name, policy), File)


@posix
@requirement("path.symlink", "law.7")
def test_a_link_that_leads_out_is_refused_and_one_that_stays_is_followed(
    working: Path, policy: Policy, secret: Path
) -> None:
    (working / "image.png").write_bytes(PIXELS)
    (working / "out.png").symlink_to(secret)
    (working / "folder").symlink_to(secret.parent)
    (working / "in.png").symlink_to("image.png")
    assert refused(read("out.png", policy)) == "not_permitted"
    assert refused(read("folder/secret.png", policy)) == "not_permitted"
    found = read("in.png", policy)
    assert found == File(PIXELS, (working / "image.png").resolve(), "in.png")


@posix
def test_a_policy_may_be_written_with_links(tmp_path: Path, working: Path) -> None:
    (working / "image.png").write_bytes(PIXELS)
    (tmp_path / "linked").symlink_to(working)
    policy = policy_for(tmp_path / "linked", tmp_path / "linked", [], None)
    assert isinstance(read(str(working / "image.png"), policy), File)
    assert isinstance(read(str(tmp_path / "linked" / "image.png"), policy), File)


@posix
@requirement("path.symlink")
def test_links_that_lead_in_a_circle_are_a_refusal(working: Path, policy: Policy) -> None:
    (working / "a").symlink_to("b")
    (working / "b").symlink_to("a")
    assert refused(read("a", policy)) == "not_found"


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
    working: Path, policy: Policy, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (working / "deep").mkdir()
    (working / "deep" / "secret.png").write_bytes(b"harmless")

    def swap() -> None:
        (working / "deep").rename(working / "gone")
        (working / "deep").symlink_to(secret.parent)

    before_opening(monkeypatch, swap)
    assert refused(read("deep/secret.png", policy)) == "not_permitted"


@posix
@requirement("path.opened")
def test_it_is_noticed_also_where_the_system_does_not_say_what_was_opened(
    working: Path, policy: Policy, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(path: Path) -> Path:
        raise OSError

    monkeypatch.setattr(Path, "readlink", unknown)
    (working / "deep").mkdir()
    (working / "deep" / "secret.png").write_bytes(b"harmless")
    assert isinstance(read("deep/secret.png", policy), File)

    def swap() -> None:
        (working / "deep").rename(working / "gone")
        (working / "deep").symlink_to(secret.parent)

    before_opening(monkeypatch, swap)
    assert refused(read("deep/secret.png", policy)) == "not_permitted"


@posix
@requirement("path.opened")
@pytest.mark.parametrize(
    ("other", "code"),
    [("link", "not_found"), ("fifo", "not_permitted"), ("folder", "invalid_input"), ("nothing", "not_found")],
)
def test_a_file_that_becomes_something_else_before_it_is_opened_is_noticed(
    other: str, code: str, working: Path, policy: Policy, secret: Path, monkeypatch: pytest.MonkeyPatch
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
    assert refused(read("image.png", policy)) == code


@requirement("path.absent")
def test_a_file_that_is_not_there_is_not_found(working: Path, policy: Policy) -> None:
    (working / "image.png").write_bytes(PIXELS)
    assert refused(read("absent.png", policy)) == "not_found"
    assert refused(read("no/such/folder.png", policy)) == "not_found"
    assert refused(read("image.png/inner.png", policy)) == "not_found"
    assert refused(read("x" * 300, policy)) == "not_found"


@requirement("path.same_words")
def test_what_may_not_be_read_is_refused_in_the_same_words_whether_it_is_there_or_not(
    policy: Policy, secret: Path
) -> None:
    assert read(str(secret), policy) == read(str(secret.with_name("absent.png")), policy)


@requirement("path.none")
@pytest.mark.parametrize("path", ["", " ", "\n", "a\0b.png", "\0", "\ud800", "x" * 5000, "a/" * 3000])
def test_what_is_no_path_is_invalid_input(path: str, policy: Policy) -> None:
    assert refused(read(path, policy)) == "invalid_input"


@requirement("path.folder")
def test_a_folder_is_refused(working: Path, policy: Policy) -> None:
    (working / "folder.png").mkdir()
    assert refused(read("folder.png", policy)) == "invalid_input"
    assert refused(read(str(working), policy)) == "invalid_input"


@posix
@requirement("path.special")
def test_a_fifo_that_nobody_writes_does_not_hold_anybody_up(working: Path, policy: Policy) -> None:
    os.mkfifo(working / "image.png")
    assert refused(read("image.png", policy)) == "not_permitted"


@posix
@requirement("path.special")
def test_a_socket_is_refused(policy: Policy) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/image.png")  # its path has to be short
        assert refused(read(f"{folder}/image.png", Policy((Path(folder).resolve(),)))) == "not_permitted"


@posix
@requirement("path.special")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/random", "/dev/tty"])
def test_a_device_is_refused(device: str, policy: Policy) -> None:
    assert refused(read(device, policy)) == "not_permitted"
    assert refused(read(device, Policy((Path("/dev"),)))) in ("not_permitted", "not_found")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there are no such files")
def test_a_file_that_does_not_know_its_own_size_is_refused() -> None:
    everything = Policy((Path("/").resolve(),))
    assert refused(read("/proc/self/status", everything)) == "corrupt"
    assert refused(read("/proc/self/status", everything, least=0)) == "corrupt"


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
            assert isinstance(read(str(file), Policy((root,))), File)
        (file if closed == "file" else folder).chmod(0)
        with as_nobody():
            assert refused(read(str(file), Policy((root,)))) == "not_permitted"
        folder.chmod(0o755)


@requirement("path.empty")
def test_an_empty_file_is_corrupt_unless_emptiness_is_welcome(working: Path, policy: Policy) -> None:
    (working / "empty.png").touch()
    assert refused(read("empty.png", policy)) == "corrupt"
    assert read("empty.png", policy, least=0) == File(b"", (working / "empty.png").resolve(), "empty.png")


@requirement("path.too_large")
def test_a_file_over_the_limit_is_too_large_and_one_at_the_limit_is_read(working: Path, policy: Policy) -> None:
    (working / "image.png").write_bytes(bytes(1000))
    assert isinstance(read("image.png", policy, most=1000), File)
    assert refused(read("image.png", policy, most=999)) == "too_large"
    with (working / "huge.png").open("wb") as file:
        file.truncate(70 * 1024 * 1024)
    outcome = read("huge.png", policy)
    assert_refusal(outcome, "too_large", "64 MiB")


@requirement("path.changing")
@pytest.mark.parametrize("change", ["grows", "shrinks", "is written over"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    change: str, working: Path, policy: Policy, monkeypatch: pytest.MonkeyPatch
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
    outcome = read("image.png", policy)
    assert_refusal(outcome, "corrupt", "file")


@requirement("path.states")
def test_a_disk_that_fails_is_a_refusal(working: Path, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(descriptor: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    (working / "image.png").write_bytes(PIXELS)
    monkeypatch.setattr(os, "read", failing)
    outcome = read("image.png", policy)
    assert isinstance(outcome, Refusal)
    assert "Input/output error" in outcome.what


@posix
def test_no_descriptor_is_left_open(working: Path, policy: Policy) -> None:
    (working / "image.png").write_bytes(PIXELS)
    (working / "empty.png").touch()
    before = os.open(working, os.O_RDONLY)
    os.close(before)
    for name in ("image.png", "empty.png", "absent.png") * 3:
        read(name, policy)
    after = os.open(working, os.O_RDONLY)
    os.close(after)
    assert after == before


@requirement("path.states")
@given(st.text() | st.text("./\\~a\0\ud800", max_size=40) | st.text().map("/".__add__))
def test_any_text_is_answered_with_a_refusal_or_a_file(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert isinstance(read(text, Policy((Path(folder).resolve(),))), Refusal)


@requirement("mcp.roots")
def test_what_is_outside_is_told_from_what_is_refused_for_another_reason(
    policy: Policy, working: Path, secret: Path
) -> None:
    (working / "in.png").write_bytes(PIXELS)
    (working / "link.png").symlink_to(secret)
    for path in ("in.png", "gone.png", str(working / "in.png"), "", "../secret.png", "a\0b", "~/x"):
        assert not outside(path, policy), path
        assert read(path, policy) is not OUTSIDE
    for path in (str(secret), "link.png", "/etc/hostname", "/no/such/file"):
        assert outside(path, policy), path
        assert read(path, policy) is OUTSIDE
    assert outside("in.png", Policy(()))
