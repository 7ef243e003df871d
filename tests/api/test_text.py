"""Text is read, never pixels; and edited only as it was read."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import sightline
from sightline.api.failure import Failure
from sightline.api.session import Session, ToolContext
from sightline.api.tool_results import FileEdit, FileText, View
from sightline.store import open_record
from tests.api.bad import PNG
from tests.pixels.bitmaps import FORMATS, RED, flag, icon_of, psd_of, saved
from tests.pixels.renderers.office_files import docx, pack, paragraph, xlsx
from tests.privileges import as_nobody
from tests.requirements import requirement

PIXELS = {mime: saved(flag(40, 30), mime) for mime in FORMATS} | {
    "image/x-icon": icon_of({32: RED}, "png"),
    "image/vnd.adobe.photoshop": psd_of(flag(40, 30)),
    "image/heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(40),
    "image/jxl": b"\xff\x0a" + bytes(40),
}


def read(context: ToolContext, path: str, **more: Any) -> FileText:
    result = sightline.read_file(path, session=Session.from_context(context), **more)
    assert isinstance(result, FileText), result
    return result


def edit(context: ToolContext, path: str, old: str, new: str, token: str) -> FileEdit | Failure:
    return sightline.edit_file(path, old, new, token, session=Session.from_context(context))


def reason(result: object) -> str:
    assert isinstance(result, Failure), result
    return result.reason


@requirement("read.result")
def test_text_is_read_with_its_lines_and_a_token(context: ToolContext, folder: Path) -> None:
    (folder / "notes.md").write_text("one\ntwö\nthree", "utf-8")
    found = read(context, "notes.md").as_dict()
    assert len(str(found.pop("token"))) == 32
    assert found == {
        "ok": True,
        "source": "notes.md",
        "text": "one\ntwö\nthree",
        "first": 1,
        "last": 3,
        "lines": 3,
        "bytes": 14,
    }
    (block,) = read(context, "notes.md").content()
    assert isinstance(block, dict)
    assert block["type"] == "text"


def test_a_range_of_lines_is_read_on_request(context: ToolContext, folder: Path) -> None:
    (folder / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 5001)))
    some = read(context, "long.txt", first=10, lines=2)
    assert (some.text, some.first, some.last, some.lines) == ("line 10\nline 11\n", 10, 11, 5000)
    assert read(context, "long.txt", first=4999).text == "line 4999\nline 5000\n"
    assert read(context, "long.txt", first=9999).text == ""
    whole = read(context, "long.txt")
    assert whole.last == whole.text.count("\n") <= 2000
    assert whole.text.endswith(f"line {whole.last}\n")
    assert some.token == whole.token


@requirement("tools.maxResultChars")
@pytest.mark.parametrize(
    "text", ['"\\' * 40_000, "x" * 100_000, '"quoted"\n' * 20_000, "\x01" * 50_000, "é🥊\n" * 9000]
)
def test_a_result_never_exceeds_the_declared_length(context: ToolContext, folder: Path, text: str) -> None:
    (folder / "long.txt").write_text(text, "utf-8")
    found = read(context, "long.txt")
    assert text.startswith(found.text)
    assert len(found.text) > 3000
    most = next(
        tool["maxResultChars"]
        for tool in sightline.tools(session=Session.from_context(context))
        if tool["name"] == "read_file"
    )
    assert isinstance(most, int)
    assert len(json.dumps(found.as_dict(), ensure_ascii=False)) <= most


@pytest.mark.parametrize("text", ["x" * 100_000, '"\\' * 40_000, "\x01" * 9000, "é🥊" * 30_000 + "\nthe end"])
def test_a_very_long_line_is_read_in_pieces(context: ToolContext, folder: Path, text: str) -> None:
    (folder / "long.txt").write_text(text, "utf-8")
    found = read(context, "long.txt")
    pieces = [found.text]
    while (character := found.as_dict().get("character")) is not None:
        assert character == len("".join(pieces)) + 1
        assert found.last == 1
        assert isinstance(character, int)
        found = read(context, "long.txt", character=character)
        pieces.append(found.text)
    assert "".join(pieces) == text
    assert len(pieces) < 6 or "\x01" in text or "\\" in text
    assert found.token == read(context, "long.txt").token
    call = {"path": "long.txt", "first": 1, "character": 5, "lines": 1}
    by_model = sightline.call("read_file", call, session=Session.from_context(context))
    assert by_model == read(context, "long.txt", character=5, lines=1)


def test_a_start_beyond_the_end_of_a_line_gives_no_text(context: ToolContext, folder: Path) -> None:
    (folder / "notes.md").write_text("one\ntwo\n")
    some = read(context, "notes.md", first=2, character=2)
    assert (some.text, some.first, some.last) == ("wo\n", 2, 2)
    assert read(context, "notes.md", first=1, character=4).text == "\ntwo\n"
    for first, character in ((2, 9), (9, 9), (3, 1)):
        assert read(context, "notes.md", first=first, character=character).text == ""


@requirement("read.never_pixels")
@pytest.mark.parametrize("data", PIXELS.values(), ids=PIXELS)
def test_read_file_refuses_images_and_names_view_image(session: Session, folder: Path, data: bytes) -> None:
    (folder / "image.txt").write_bytes(data)
    refusal = sightline.read_file("image.txt", session=session)
    assert reason(refusal) == "unsupported_type"
    assert isinstance(refusal, Failure)
    assert "view_image" in refusal.message
    assert reason(sightline.read_file("sha256:" + "0" * 64, session=session)) == "invalid_input"
    assert reason(sightline.read_file("https://example.com", session=session)) == "invalid_input"


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("page.pdf", b"%PDF-1.7\n", "corrupt"),
        ("noise", bytes(range(128, 256)) * 10, "unsupported_type"),
        ("zeros", b"text\0text" * 500, "unsupported_type"),
        ("latin.txt", "naïve".encode("latin-1"), "unsupported_type"),
        ("huge.txt", b"x" * (8 * 1024 * 1024 + 1), "too_large"),
    ],
)
def test_binary_files_are_refused(session: Session, folder: Path, name: str, data: bytes, expected: str) -> None:
    (folder / name).write_bytes(data)
    assert reason(sightline.read_file(name, session=session)) == expected


@requirement("input.office.text")
def test_the_text_of_an_office_document_is_read(context: ToolContext, folder: Path) -> None:
    (folder / "letter.docx").write_bytes(docx(paragraph("Dear reader")))
    (folder / "sums.xlsx").write_bytes(xlsx({"S": "<row r='4'><c r='B4'><v>12</v></c></row>"}))
    (folder / "files.zip").write_bytes(pack({"a.txt": "words"}))
    assert read(context, "letter.docx").text == "Dear reader\n"
    assert read(context, "sums.xlsx").text == "Sheet 1 of 1\nS\n\tB\n4\t12\n"
    session = Session.from_context(context)
    assert reason(sightline.read_file("files.zip", session=session)) == "unsupported_type"


def test_an_svg_and_an_empty_file_are_read_as_text(context: ToolContext, folder: Path) -> None:
    (folder / "drawing.svg").write_text("<svg/>")
    (folder / "empty.txt").write_text("")
    assert read(context, "drawing.svg").text == "<svg/>"
    empty = read(context, "empty.txt")
    assert (empty.text, empty.lines) == ("", 0)
    assert isinstance(edit(context, "empty.txt", "", "first words\n", empty.token), FileEdit)
    assert (folder / "empty.txt").read_text() == "first words\n"


@requirement("edit.once", "edit.stale")
def test_a_token_allows_one_edit(context: ToolContext, folder: Path) -> None:
    path = folder / "notes.md"
    path.write_bytes(b"one\r\ntwo\r\nthree")
    path.chmod(0o640)
    token = read(context, "notes.md").token
    assert edit(context, "notes.md", "two", "zwölf", token) == FileEdit("notes.md", 18)
    assert path.read_bytes() == "one\r\nzwölf\r\nthree".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in folder.iterdir()] == ["notes.md"]
    assert reason(edit(context, "notes.md", "three", "3", token)) == "not_permitted"
    assert isinstance(edit(context, "notes.md", "three", "3", read(context, "notes.md").token), FileEdit)


@requirement("edit.token", "edit.stale")
def test_a_token_is_valid_only_for_the_current_file(context: ToolContext, folder: Path, tmp_path: Path) -> None:
    (folder / "a.svg").write_text("<svg>one</svg>")
    (folder / "b.svg").write_text("<svg>one</svg>")
    token = read(context, "a.svg").token
    forged = ["", "x" * 32, token.upper() + "0", read(context, "b.svg").token, "é"]
    for other in forged:
        assert reason(edit(context, "a.svg", "one", "two", other)) == "not_permitted"
    assert reason(edit(replace(context, scope="another"), "a.svg", "one", "two", token)) == "not_permitted"
    (folder / "a.svg").write_text("<svg>one </svg>")
    assert reason(edit(context, "a.svg", "one", "two", token)) == "not_permitted"
    (folder / "a.svg").write_text("<svg>one</svg>")
    context.record.close()
    record = open_record(tmp_path / "record")
    assert isinstance(edit(replace(context, record=record), "a.svg", "one", "two", token), FileEdit)
    record.close()


@requirement("edit.view")
def test_a_view_neither_issues_nor_invalidates_a_token(context: ToolContext, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    view = sightline.view("image.png", session=Session.from_context(context))
    assert isinstance(view, View)
    assert "token" not in view.as_dict()
    (folder / "notes.md").write_text("one")
    token = read(context, "notes.md").token
    for path in ("notes.md", "image.png"):
        sightline.view(path, session=Session.from_context(context))
    for other in (view.image, view.image.removeprefix("sha256:")):
        assert reason(edit(context, "notes.md", "one", "two", other)) == "not_permitted"
    result = edit(context, "notes.md", "one", "two", token)
    assert isinstance(result, FileEdit)
    assert "token" not in result.as_dict()


@requirement("edit.once")
@pytest.mark.parametrize(
    ("old", "new"), [("e", "E"), ("four", "4"), ("", "start"), ("one", "one"), ("one", "\ud800"), ("aa", "b")]
)
def test_an_ambiguous_edit_is_refused_and_changes_nothing(
    context: ToolContext, folder: Path, old: str, new: str
) -> None:
    path = folder / "notes.md"
    path.write_text("one three aaa")
    assert reason(edit(context, "notes.md", old, new, read(context, "notes.md").token)) == "invalid_input"
    assert path.read_text() == "one three aaa"
    assert [each.name for each in folder.iterdir()] == ["notes.md"]


@requirement("edit.stale")
@pytest.mark.parametrize("becomes", ["other words", "a link out", "gone"])
def test_a_file_that_changes_during_the_edit_is_left_alone(
    context: ToolContext, folder: Path, tmp_path: Path, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, outside = folder / "notes.md", tmp_path / "outside.md"
    path.write_text("one")
    outside.write_text("one")
    token = read(context, "notes.md").token
    really = os.fsync

    def meanwhile(descriptor: int) -> None:
        really(descriptor)
        path.unlink()
        if becomes == "other words":
            path.write_text("one, by somebody else")
        elif becomes == "a link out":
            path.symlink_to(outside)

    monkeypatch.setattr(os, "fsync", meanwhile)
    assert reason(edit(context, "notes.md", "one", "two", token)) == "not_permitted"
    assert outside.read_text() == "one"
    assert [each.name for each in folder.iterdir()] == ([] if becomes == "gone" else ["notes.md"])
    if becomes == "other words":
        assert path.read_text() == "one, by somebody else"


@requirement("edit.stale")
@pytest.mark.parametrize("looks", ["at /proc", "by path"])
@pytest.mark.parametrize("within", [".", "inner"])
def test_a_folder_replaced_by_a_link_does_not_redirect_an_edit(
    context: ToolContext, folder: Path, tmp_path: Path, looks: str, within: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any of the calls to the system, and back before another: nothing appears or changes outside."""
    deep, away, outside = folder / "deep", folder / "away", tmp_path / "outside"
    for each in (deep, outside):
        (each / within).mkdir(parents=True)
        (each / within / "notes.md").write_text("one")
    file = deep / within / "notes.md"
    path = str(file.relative_to(folder))
    if looks == "by path":
        monkeypatch.setattr(Path, "readlink", _nobody_knows)
    really = {name: getattr(os, name) for name in ("open", "replace", "rename", "unlink", "stat")}

    def swap(*, out: bool) -> None:
        if out and not deep.is_symlink():
            really["rename"](deep, away)
            deep.symlink_to(outside)
        elif not out and deep.is_symlink():
            really["unlink"](deep)
            really["rename"](away, deep)

    def beset(plan: int) -> None:
        """Where the folder is at each call: the first bit of the plan tells of the first."""
        calls = iter(range(99))
        for name in ("open", "replace", "rename"):

            def late(*words: Any, name: str = name, **more: Any) -> Any:
                swap(out=bool(plan >> next(calls) & 1))
                return really[name](*words, **more)

            monkeypatch.setattr(os, name, late)

    done = 0
    for plan in range(64):
        text = file.read_text()
        token = read(context, path).token
        beset(plan)
        result = edit(context, path, text, "two" if text == "one" else "one", token)
        for name, function in really.items():
            monkeypatch.setattr(os, name, function)
        swap(out=False)
        done += isinstance(result, FileEdit)
        assert [(each.name, each.read_text()) for each in (outside / within).iterdir()] == [("notes.md", "one")], (
            f"{plan:b}"
        )
        assert [each.name for each in file.parent.iterdir()] == ["notes.md"]
        assert (file.read_text() == text) != isinstance(result, FileEdit)
    assert 0 < done < 64


def _nobody_knows(path: Path) -> Path:
    raise OSError


def test_an_unwritable_folder_is_refused(context: ToolContext, folder: Path, tmp_path: Path) -> None:
    (folder / "notes.md").write_text("one")
    (folder / "notes.md").chmod(0o644)
    for each in (tmp_path, folder, *tmp_path.parents[:2]):
        each.chmod(0o555 if each == folder else 0o755)
    token = read(context, "notes.md").token
    with as_nobody():
        assert reason(edit(context, "notes.md", "one", "two", token)) == "not_permitted"
    folder.chmod(0o755)
    assert [each.name for each in folder.iterdir()] == ["notes.md"]


def test_an_edit_follows_links_only_within_allowed_folders(context: ToolContext, folder: Path, tmp_path: Path) -> None:
    (folder / "notes.md").write_text("one")
    (folder / "link.md").symlink_to("notes.md")
    assert isinstance(edit(context, "link.md", "one", "two", read(context, "link.md").token), FileEdit)
    assert (folder / "link.md").is_symlink()
    assert (folder / "notes.md").read_text() == "two"
    (tmp_path / "outside.md").write_text("one")
    (folder / "out.md").symlink_to(tmp_path / "outside.md")
    assert reason(sightline.read_file("out.md", session=Session.from_context(context))) == "not_permitted"
    assert reason(edit(context, "out.md", "one", "two", "token")) == "not_permitted"
    assert (tmp_path / "outside.md").read_text() == "one"


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(before=st.text(), old=st.text(min_size=1), after=st.text(), new=st.text())
def test_an_edit_changes_only_the_given_text(
    context: ToolContext, folder: Path, before: str, old: str, after: str, new: str
) -> None:
    whole = before + old + after
    (folder / "any.txt").write_bytes(whole.encode())
    found = sightline.read_file("any.txt", session=Session.from_context(context))
    if isinstance(found, Failure):
        assert found.reason == "unsupported_type"
        return
    result = edit(context, "any.txt", old, new, found.token)
    done = isinstance(result, FileEdit)
    times = sum(whole.startswith(old, at) for at in range(len(whole)))
    assert done == (times == 1 and old != new)
    assert (folder / "any.txt").read_bytes().decode() == (whole.replace(old, new) if done else whole)


@pytest.mark.parametrize(
    "more", [{"first": 0}, {"lines": 0}, {"first": "1"}, {"lines": True}, {"first": 1.5}, {"character": 0}]
)
def test_lines_are_counted_from_one(session: Session, folder: Path, more: dict[str, Any]) -> None:
    (folder / "notes.md").write_text("one")
    assert reason(sightline.read_file("notes.md", session=session, **more)) == "invalid_input"
