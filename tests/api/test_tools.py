"""The tools as a model is offered them, and the package that offers them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.api.failure import Failure
from sightline.api.session import Session, ToolContext
from sightline.api.tool_registry import TOOLS
from sightline.api.tool_results import FileEdit, FileText, View
from sightline.model.scene import TOOL_NAMES
from tests.api.bad import HTML, PNG, SVG
from tests.requirements import requirement

NAMES = ["view_image", "read_file", "edit_file", "list_images"]


def named(context: ToolContext) -> dict[str, dict[str, Any]]:
    return {str(tool["name"]): tool for tool in sightline.tools(session=Session.from_context(context))}


@requirement("settings.doubt")
def test_the_setting_toolset_accepts_exactly_the_tool_names() -> None:
    assert {tool.name for tool in TOOLS} == set(TOOL_NAMES)


@requirement("tools.schemas", "tools.capabilities", "tools.of_toolset", "tools.untrusted", "view.capability")
def test_each_tool_has_a_schema_and_its_capabilities(context: ToolContext) -> None:
    found = named(context)
    assert list(found) == NAMES
    for tool in found.values():
        schema = tool["parameters"]
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(part["description"] for part in schema["properties"].values())
        assert (tool["toolset"], tool["outputIsUntrusted"]) == ("vision", True)
        assert tool["maxResultChars"] > 0
        assert tool["description"]
    assert found["view_image"]["capabilities"] == {"read": {"argument": "path"}}
    assert found["read_file"]["capabilities"] == {"read": {"argument": "path"}}
    assert set(found["edit_file"]["capabilities"]) == {"read", "write"}
    assert list(found["view_image"]["parameters"]["properties"]) == ["path", "crop", "page", "at"]
    assert found["view_image"]["parameters"]["required"] == ["path"]
    assert json.loads(json.dumps(found)) == found


@requirement("view.two_tools")
def test_view_image_never_returns_text_and_read_file_never_pixels(context: ToolContext, folder: Path) -> None:
    assert not {"mode", "as", "format", "type"} & {
        argument for tool in named(context).values() for argument in tool["parameters"]["properties"]
    }
    for name, data in {"image.png": PNG, "drawing.svg": SVG, "notes.md": b"words\n", "page.html": HTML}.items():
        (folder / name).write_bytes(data)
        seen = sightline.call("view_image", {"path": name}, session=Session.from_context(context))
        text = sightline.call("read_file", {"path": name}, session=Session.from_context(context))
        kinds = [[block["type"] for block in result.content()] for result in (seen, text)]
        assert kinds == [["text", "image"] if name == "image.png" else ["text"], ["text"]]
        assert isinstance(seen, View if name == "image.png" else Failure)
        assert isinstance(text, Failure if name == "image.png" else FileText)


@requirement("tools.toolset")
@pytest.mark.parametrize(
    ("toolset", "offered"),
    [({"vision"}, NAMES), ({"view_image"}, ["view_image"]), ({"read_file", "other"}, ["read_file"]), (set(), [])],
)
def test_the_toolset_gates_offers_and_calls(context: ToolContext, toolset: set[str], offered: list[str]) -> None:
    some = replace(context, toolset=frozenset(toolset))
    assert list(named(some)) == offered
    for name in NAMES:
        result = sightline.call(name, {"what": "no argument of any"}, session=Session.from_context(some))
        assert isinstance(result, Failure)
        assert result.reason == ("invalid_input" if name in offered else "not_permitted")


@requirement("tools.toolset")
def test_the_users_settings_apply_to_the_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    monkeypatch.setenv("SIGHTLINE_TOOLSET", "view_image")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert [tool["name"] for tool in sightline.tools()] == ["view_image"]
    monkeypatch.setenv("SIGHTLINE_FS_REACH", str(tmp_path_factory.mktemp("allowed")))
    assert Session().tool_context.policy.roots[-1].name.startswith("allowed")
    monkeypatch.chdir(tmp_path)
    assert Session().tool_context.policy.roots[0] == tmp_path.resolve()


@requirement("path.home")
def test_the_home_folder_is_readable_if_the_setting_allows_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home, working = tmp_path / "home", tmp_path / "working"
    home.mkdir()
    working.mkdir()
    (home / "image.png").write_bytes(PNG)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(working))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(working)
    for path in ("~/image.png", str(home / "image.png")):
        refusal = sightline.call("view_image", {"path": path})
        assert isinstance(refusal, Failure)
        assert refusal.reason == "not_permitted"
    monkeypatch.setenv("SIGHTLINE_FS_REACH", "~")
    for path in ("~/image.png", str(home / "image.png")):
        assert isinstance(sightline.call("view_image", {"path": path}), View)


def test_a_call_does_what_the_function_does(session: Session, folder: Path) -> None:
    (folder / "image.png").write_bytes(PNG)
    (folder / "notes.md").write_text("one")
    arguments = {"path": "image.png", "crop": {"region": "top"}, "page": None}
    seen = sightline.call("view_image", arguments, session=session)
    assert isinstance(seen, View)
    assert seen == sightline.view("image.png", crop="r=top", session=session)
    text = sightline.call("read_file", {"path": "notes.md"}, session=session)
    assert isinstance(text, FileText)
    edit = {"path": "notes.md", "old": "one", "new": "two", "token": text.token}
    assert sightline.call("edit_file", edit, session=session) == FileEdit("notes.md", 3)


@requirement("view.refusal.invalid_input")
@pytest.mark.parametrize(
    "arguments", [{}, {"path": "a", "colour": 1}, None, [], "image.png", {"crop": "r=top"}, {"path": 7}]
)
def test_invalid_arguments_are_refused(session: Session, arguments: Any) -> None:
    result = sightline.call("view_image", arguments, session=session)
    assert isinstance(result, Failure)
    assert result.reason == "invalid_input"


@requirement("library.sync_async")
async def test_every_function_can_be_awaited(session: Session, folder: Path) -> None:
    (folder / "notes.md").write_text("one")
    text = await sightline.read_file.aio("notes.md", session=session)
    assert text == sightline.read_file("notes.md", session=session)
    assert isinstance(text, FileText)
    assert await sightline.edit_file.aio("notes.md", "one", "two", text.token, session=session) == FileEdit(
        "notes.md", 3
    )
    assert await sightline.call.aio("read_file", {"path": "notes.md"}, session=session) == sightline.call(
        "read_file", {"path": "notes.md"}, session=session
    )


def test_a_deleted_working_folder_does_not_raise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = sightline.view("image.png")
    assert isinstance(result, Failure)
    assert result.reason == "not_found"


@pytest.mark.parametrize("working", ["there", "gone"])
def test_a_missing_temporary_folder_does_not_raise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, working: str
) -> None:
    (tmp_path / "notes.md").write_text("one")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", list)
    if working == "there":
        assert Session().tool_context.policy.roots == (tmp_path.resolve(),)
        assert isinstance(sightline.read_file("notes.md"), FileText)
        assert reason_of(sightline.view("absent.png")) == "not_found"
        return
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert Session().tool_context.policy.roots == ()
    assert reason_of(sightline.view("image.png")) == reason_of(sightline.read_file("notes.md")) == "not_found"
    assert reason_of(sightline.call("view_image", {"path": "image.png"})) == "not_permitted"


def test_an_error_while_opening_a_session_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong on the way to the record and the settings happens within the promise, too."""

    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(os.path, "expanduser", broken)
    results = (
        sightline.view("image.png"),
        sightline.recall({}),
        sightline.read_file("notes.md"),
        sightline.edit_file("notes.md", "one", "two", "token"),
        sightline.call("view_image", {"path": "image.png"}),
    )
    assert [reason_of(result) for result in results] == ["render_unavailable"] * 5


@pytest.mark.parametrize("name", [["view_image"], None, 7, {}, "view_image "])
def test_an_unknown_tool_name_is_refused(session: Session, name: Any) -> None:
    assert reason_of(sightline.call(name, {"path": "image.png"}, session=session)) == "not_permitted"


def reason_of(result: object) -> str:
    assert isinstance(result, Failure), result
    return result.reason


@requirement("library.light")
def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules); import sightline\n"
        "heavy = ('sightline.', 'pyvips', 'PIL', 'sqlite3', 'asyncio')\n"
        "print([name for name in set(sys.modules) - before if name.startswith(heavy)])\n"
        "print(all(callable(getattr(sightline, name)) for name in sightline.__all__ if name != '__version__'))\n"
        "print(sorted(sightline.__all__) == dir(sightline))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["[]", "True", "True"]
    assert sightline.Session is Session
    with pytest.raises(AttributeError, match="'views'"):
        sightline.views  # type: ignore[attr-defined] # noqa: B018
