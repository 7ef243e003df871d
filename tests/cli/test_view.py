"""`sightline view`."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from sightline.api import call
from sightline.cli.terminal import IMAGE_SUFFIXES
from sightline.model.fence import to_printable
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.store import open_record
from tests.api.bad import BAD, OUTSIDE, PNG, RENDERED, keep_two_that_begin_alike
from tests.cli.command import COMMAND, POWERLESS, Ended, assert_refused, environment, sightline
from tests.pixels.bitmaps import flag, photo, saved
from tests.pixels.renderers.drawings import drawing, square
from tests.pixels.renderers.films import animate
from tests.pixels.renderers.pdf_files import BLUE, GREEN, document, fill
from tests.requirements import requirement

SHA = hashlib.sha256(PNG).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The only one, beside an empty one for temporary files, that may be read."""
    working = tmp_path / "working"
    (working / "temporary").mkdir(parents=True)
    return working


def view(folder: Path, *words: str, command: Sequence[str] = ()) -> Ended:
    return sightline("view", *words, folder=folder, env={"TMPDIR": str(folder / "temporary")}, command=command)


@requirement("view.command", "view.command.json", "cli.json")
def test_view_prints_facts_as_text_or_json(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    size = len(PNG)
    ended = view(folder, "image.png")
    assert (ended.code, ended.err) == (0, "")
    told, shown = ended.out.splitlines()
    assert told.startswith("image.png: image/png, 40x30 ")
    assert told.endswith(f" {size} bytes, sha256:{SHA}")
    assert "image/png, 40x30 " in shown
    assert f" {size} " in shown
    assert view(folder, "image.png", "--json").json == {
        "ok": True,
        "mime": "image/png",
        "width": 40,
        "height": 30,
        "bytes": size,
        "image": f"sha256:{SHA}",
        "source": "image.png",
        "shown": {"width": 40, "height": 30, "bytes": size, "mime": "image/png"},
    }


@requirement("view.command.crop")
@pytest.mark.parametrize(
    ("form", "box"),
    [("r=bottom-right", [20, 15, 20, 15]), ("n=0,0,0.5,1", [0, 0, 20, 30]), ("p=5,6,7,8", [5, 6, 7, 8])],
)
def test_a_crop_is_reported_in_source_pixels(folder: Path, form: str, box: list[int]) -> None:
    (folder / "image.png").write_bytes(PNG)
    found = view(folder, "image.png", "--crop", form, "--out", "part.png", "--json").json
    assert found["crop"] == box
    x, y, width, height = box
    part = Pillow.open(folder / "part.png").convert("RGB")
    assert part.tobytes() == flag(40, 30).crop((x, y, x + width, y + height)).tobytes()
    size = (folder / "part.png").stat().st_size
    assert found["shown"] == {"width": width, "height": height, "bytes": size, "mime": "image/png"}


@requirement("view.command.out", "view.command.force")
def test_pixels_are_written_and_no_file_is_overwritten_unasked(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    (folder / "notes.png").write_text("mine")
    (folder / "folder.png").mkdir()
    assert view(folder, "image.png", "--out", "copy.png").out.splitlines()[-1].endswith(" copy.png")
    assert (folder / "copy.png").read_bytes() == PNG
    for name in ("notes.png", "copy.png"):
        assert_refused(view(folder, "image.png", "--out", name), name, "--force")
    assert (folder / "notes.png").read_text() == "mine"
    assert view(folder, "image.png", "--out", "notes.png", "--force").code == 0
    assert (folder / "notes.png").read_bytes() == PNG
    assert_refused(view(folder, "image.png", "--out", "nowhere/copy.png"), "nowhere/copy.png", "--out")
    assert_refused(view(folder, "image.png", "--out", "folder.png", "--force"), "folder.png", "--out")
    assert sorted(path.name for path in folder.iterdir()) == [
        "copy.png",
        "folder.png",
        "image.png",
        "notes.png",
        "temporary",
    ]


@requirement("view.command.force")
def test_only_a_regular_file_is_overwritten(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    (folder / "victim").write_text("mine")
    (folder / "link.png").symlink_to("victim")
    (folder / "nowhere.png").symlink_to("absent")
    (folder / "folder.png").mkdir()
    os.mkfifo(folder / "pipe.png")
    for name in ("link.png", "nowhere.png", "pipe.png", "folder.png"):
        kind = stat.S_IFMT((folder / name).lstat().st_mode)
        assert_refused(view(folder, "image.png", "--out", name), name, "--force")
        assert_refused(view(folder, "image.png", "--out", name, "--force"), name, "--out")
        assert stat.S_IFMT((folder / name).lstat().st_mode) == kind
    assert (folder / "victim").read_text() == "mine"
    assert not (folder / "absent").exists()


@requirement("view.command.force")
def test_a_file_is_replaced_and_not_modified(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    (folder / "notes.png").write_text("mine")
    (folder / "other").hardlink_to(folder / "notes.png")
    assert view(folder, "image.png", "--out", "notes.png", "--force").code == 0
    assert ((folder / "notes.png").read_bytes(), (folder / "other").read_text()) == (PNG, "mine")


@requirement("view.command.out.format")
@pytest.mark.parametrize("crop", [(), ("--crop", "r=top-left")])
@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/webp", "image/tiff"])
def test_the_suffix_decides_the_format(folder: Path, mime: str, crop: tuple[str, ...]) -> None:
    (folder / "source").write_bytes(saved(photo(64, 48), mime))
    size = (32, 24) if crop else (64, 48)
    for name, kind in {"a.png": "PNG", "b.jpg": "JPEG", "c.JPEG": "JPEG", "d.webp": "WEBP"}.items():
        ended = view(folder, "source", *crop, "--out", name, "--json")
        assert (ended.code, ended.err) == (0, "")
        with Pillow.open(folder / name) as made:
            assert (made.format, made.size) == (kind, size)
        if not crop and mime == f"image/{kind.lower()}":
            assert (folder / name).read_bytes() == (folder / "source").read_bytes()


@requirement("view.command.out.format")
def test_an_unknown_suffix_is_refused_before_anything_is_done(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    before = sorted(folder.iterdir())
    for name in ("copy", "copy.gif", "copy.tiff", "copy.bmp", "copy.png.md", ".png"):
        no = view(folder, "image.png", "--out", name)
        assert_refused(no, name, "--out", IMAGE_SUFFIXES)
    assert sorted(folder.iterdir()) == before


@requirement("view.command.out.format")
def test_a_written_file_has_the_full_resolution(folder: Path) -> None:
    (folder / "wide.png").write_bytes(saved(Pillow.new("L", (8100, 20), 200), "image/png"))
    heavy = saved(photo(64, 48), "image/png") + bytes(9 * 1024 * 1024)
    (folder / "heavy.png").write_bytes(heavy)
    assert view(folder, "wide.png", "--out", "copy.png").code == 0
    assert (folder / "copy.png").read_bytes() == (folder / "wide.png").read_bytes()
    assert view(folder, "wide.png", "--out", "wide.jpg").code == 0
    with Pillow.open(folder / "wide.jpg") as made:
        assert made.size == (8100, 20)
    assert view(folder, "heavy.png", "--out", "same.png").code == 0
    assert (folder / "same.png").read_bytes() == heavy


@requirement("cli.json.refused")
def test_an_unwritable_file_is_reported_as_json_with_the_json_option(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    for name in ("image.png", "nowhere/copy.png"):
        ended = view(folder, "image.png", "--out", name, "--json")
        assert (ended.code, ended.json["ok"], ended.json["reason"]) == (1, False, "not_permitted")


@requirement("cli.plain")
def test_a_file_name_cannot_contain_terminal_escapes(folder: Path) -> None:
    name = "\x1b]0;owned\x07\x9b2J\n\u202esightline: all is well.png"
    (folder / name).write_bytes(PNG)
    ended = view(folder, name)
    assert ended.code == 0
    assert [line for line in ended.out.splitlines() if not line.isprintable()] == []
    assert len(ended.out.splitlines()) == 2
    named = view(folder, name, "--json")
    assert named.json["source"] == name
    assert named.out.rstrip("\n").isprintable()
    gone = view(folder, f"gone{name}", "--out", f"x{name}")
    assert gone.code == 1
    assert gone.err.rstrip("\n").isprintable()
    taken = view(folder, name, "--out", name)
    assert taken.err.rstrip("\n").isprintable()


@requirement("view.again")
def test_a_viewed_image_is_available_in_another_process(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    assert view(folder, "image.png").code == 0
    (folder / "image.png").unlink()
    again = view(folder, f"sha256:{SHA[:12]}#crop:0,0,9,9", "--json").json
    assert (again["image"], again["crop"]) == (f"sha256:{SHA}", [0, 0, 9, 9])


@requirement("record.trouble")
def test_an_unreadable_record_is_not_reported_as_not_found(folder: Path, home: Path) -> None:
    (home / "record").mkdir()
    (home / "record" / "record.sqlite").write_bytes(b"no database" * 1000)
    ended = view(folder, f"sha256:{SHA[:12]}")
    assert (ended.code, ended.out) == (1, "")
    assert str(home / "record") in ended.err.splitlines()[-1]
    assert view(folder, f"sha256:{SHA[:12]}", "--json").json["reason"] == "corrupt", "and not not_found"


@requirement("record.owner")
def test_the_user_can_view_images_stored_by_the_proxy(folder: Path, home: Path) -> None:
    record = open_record(home / "record")
    record.images.keep(record.compute_scope("sk-key"), Image(SHA, "image/png", Size(40, 30), PNG))
    record.close()
    assert view(folder, f"sha256:{SHA}", "--json").json["bytes"] == len(PNG)


@requirement("cli.one_line", "cli.exit", "view.never_raises")
@pytest.mark.parametrize(
    "bad", [pytest.param(bad, id=name) for name, bad in BAD.items() if name not in OUTSIDE | RENDERED]
)
def test_each_bad_source_is_one_line_that_starts_with_its_name(folder: Path, home: Path, bad: Any) -> None:
    record = open_record(home / "record")
    keep_two_that_begin_alike(record, record.compute_scope(""))
    record.close()
    reference = bad.reference(folder)
    if "\0" in reference:
        return  # no command can be given that
    ended = view(folder, reference)
    assert_refused(ended)
    assert ended.err.startswith(f"sightline: {to_printable(' '.join(reference.split()))[:100].rstrip()}")
    assert f"{bad.reason}: " not in ended.err
    ended = view(folder, reference, "--json")
    assert ended.code == 1
    assert (ended.json["ok"], ended.json["reason"]) == (False, bad.reason)
    assert ended.err.count("\n") == 1


@requirement("view.url")
def test_the_remedy_for_a_web_address_is_another_command(folder: Path) -> None:
    assert_refused(view(folder, "https://example.com/a.png"), "sightline: https://example.com/a.png: ")
    ended = view(folder, "file:///etc/hostname")
    assert_refused(ended, "file:", "path")
    assert "web" not in ended.err


@requirement("cli.person")
def test_remedies_are_commands_a_person_can_run(folder: Path) -> None:
    (folder / "a.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    assert_refused(view(folder, "a.doc"), "sightline: a.doc: ", "soffice --headless --convert-to pdf")


@requirement("path.folder")
def test_a_path_with_a_trailing_slash_is_a_folder(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    for name in ("image.png/", "image.png/."):
        assert_refused(view(folder, name), "folder")


@requirement("cli.exit")
@pytest.mark.parametrize("words", [[], ["a.png", "--page", "one"], ["a.png", "--at", "noon"], ["a.png", "b.png"]])
def test_wrong_usage_exits_with_2(folder: Path, words: list[str]) -> None:
    ended = view(folder, *words)
    assert (ended.code, ended.out) == (2, "")


def test_an_invalid_crop_page_or_time_is_refused(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    for words in (["--crop", "middle"], ["--page", "2"], ["--at", "1.5"], ["--crop", "p=99,99,1,1"]):
        assert_refused(view(folder, "image.png", *words), "sightline: image.png: ")
        assert view(folder, "image.png", *words, "--json").json["reason"] == "invalid_input"


@requirement("path.person")
def test_a_path_typed_by_a_person_is_read_anywhere(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "image.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "elsewhere" / "image.png")
    env = {"HOME": str(tmp_path), "TMPDIR": str(folder)}
    for path in (
        str(tmp_path / "elsewhere" / "image.png"),
        f"../{folder.name}/../elsewhere/image.png",
        "~/elsewhere/image.png",
        "link.png",
    ):
        seen = sightline("view", path, "--json", env=env, folder=folder)
        assert seen.json["image"] == f"sha256:{SHA}", path


@requirement("settings.fsReach")
def test_a_folder_that_the_user_allows_is_readable_by_tools(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "image.png").write_bytes(PNG)
    path = str(tmp_path / "elsewhere" / "image.png")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert not call("view_image", {"path": path})
    assert sightline("config", "set", "fsReach", str(tmp_path / "elsewhere")).code == 0
    assert call("view_image", {"path": path})


@requirement("path.person")
def test_an_image_is_read_from_stdin(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    command = [*COMMAND, "view", "-", "--json"]
    with (folder / "image.png").open("rb") as image:
        ended = subprocess.run(command, stdin=image, capture_output=True, text=True, env=environment(), check=True)
    assert json.loads(ended.stdout)["image"] == f"sha256:{SHA}"


@requirement("render.command")
def test_a_drawing_from_stdin_is_rendered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_RENDER", "off")
    (folder / "red.svg").write_bytes(drawing(square("red")))
    by_path = view(folder, "red.svg", "--out", "red.png", "--json").json
    assert Pillow.open(folder / "red.png").convert("RGB").getpixel((5, 5)) == (255, 0, 0)
    command = [*COMMAND, "view", "-", "--json"]
    with (folder / "red.svg").open("rb") as image:
        ended = subprocess.run(command, stdin=image, capture_output=True, text=True, env=environment(), check=True)
    assert {**json.loads(ended.stdout), "source": "red.svg"} == by_path
    assert by_path["rendered"] == {"by": "resvg", "page": 1, "pages": 1}
    for words in (["--page", "2"], ["--lines", "1-2"], ["--sheet"], ["--at", "1"]):
        assert view(folder, "red.svg", *words, "--json").json["reason"] == "invalid_input"


@requirement("cli.view")
def test_pages_lines_and_times_are_options(folder: Path) -> None:
    (folder / "report.pdf").write_bytes(document([fill(GREEN), fill(BLUE)]))
    page = view(folder, "report.pdf", "--page", "2", "--out", "page.png", "--json").json["rendered"]
    assert (page["page"], page["pages"]) == (2, 2)
    assert Pillow.open(folder / "page.png").convert("RGB").getpixel((5, 5)) == (0, 0, 255)
    assert view(folder, "report.pdf", "--sheet", "--json").code == 0
    (folder / "words.txt").write_text("\n".join(f"line {number}" for number in range(1, 90)))
    whole, part = (view(folder, "words.txt", *words, "--json").json for words in ([], ["--lines", "2-3"]))
    assert part["height"] < whole["height"]
    (folder / "demo.gif").write_bytes(animate("GIF"))
    stills = [view(folder, "demo.gif", "--at", at, "--json").json["image"] for at in ("0", "0.6")]
    assert stills[0] != stills[1]


@pytest.mark.skipif(sys.platform != "linux", reason="rights are others there")
@requirement("path.closed")
def test_a_file_without_read_permission_is_refused_in_one_line(folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    for mode, code in ((0o400, 0), (0, 1)):
        (folder / "image.png").chmod(mode)
        ended = view(folder, "image.png", command=POWERLESS)
        assert ended.code == code, ended
    assert_refused(ended, "sightline: image.png: ")
