"""The package as a program meets it: what help says, what a type checker knows, how a no is told from a result."""

from __future__ import annotations

import inspect
import logging
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, assert_type

import pytest

import sightline
from sightline.model.refusal import Refusal
from tests.api.bad import PNG
from tests.requirements import requirement

FUNCTIONS = {name: found for name in sightline.__all__ if inspect.isfunction(found := getattr(sightline, name))}
NOES = (
    sightline.Failure(Refusal("not_found", "there is none")),
    sightline.Failure(Refusal("not_found", "there is none"), "analyze"),
    sightline.Failure(Refusal("not_found", "there is none", stage="file"), "ask"),
    sightline.SendDecision(ok=False, warning="there is none"),
)


@requirement("library.wrong_call")
@pytest.mark.parametrize(
    "call",
    [
        lambda: sightline.view("shot.png", foo=1),  # type: ignore[call-arg]
        sightline.view,
        lambda: sightline.analyze("shot.png"),  # type: ignore[call-arg]
        lambda: sightline.edit_file("a", "b", "c"),  # type: ignore[call-arg]
        lambda: sightline.vision_analyze("x", "y"),  # type: ignore[call-arg]
        sightline.may_send,
        sightline.prepare,
    ],
)
def test_a_wrong_call_is_a_type_error(call: Callable[[], object], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(TypeError, match="argument"):
        call()
    assert caplog.text == ""


@requirement("library.wrong_call")
async def test_an_awaited_wrong_call_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="'foo'"):
        await sightline.view.aio("shot.png", foo=1)  # type: ignore[call-arg]


def test_an_internal_type_error_is_a_result(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object, **__: object) -> None:
        raise TypeError("argument of ours")

    monkeypatch.setattr("sightline.api.views.view", broken)
    assert isinstance(sightline.view("shot.png"), sightline.Failure)
    assert "argument of ours" in caplog.text


@requirement("library.no")
def test_every_failure_is_falsy_and_has_its_message() -> None:
    assert [bool(no) for no in NOES] == [False] * len(NOES)
    assert {str(no) for no in NOES} == {"there is none", "FILE_NOT_FOUND: there is none"}


@requirement("library.no")
def test_every_result_is_truthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shot.png").write_bytes(PNG)
    Path("notes.md").write_text("")
    seen = sightline.view("shot.png")
    assert seen
    assert_type(seen, sightline.View)
    text = sightline.read_file("notes.md")
    assert text
    assert_type(text, sightline.FileText)
    assert sightline.fit_for(None, PNG)
    assert sightline.call("list_images", {})
    assert sightline.prepare([])


@requirement("library.no")
def test_a_type_checker_narrows_a_failure_by_its_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = sightline.view("absent.png")
    if not seen:
        assert_type(seen, sightline.Failure)
        assert_type(bool(seen), bool)
        assert_type(seen.__bool__(), Literal[False])
    assert isinstance(seen, sightline.Failure)


def helped(thing: object) -> str:
    """What `help` prints, without the marks that make a terminal print it bold."""
    return re.sub(r".\x08", "", pydoc.render_doc(thing))


@requirement("library.help")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_shows_how_a_function_is_called_and_a_sentence_for_each_argument(name: str) -> None:
    found = FUNCTIONS[name]
    told = helped(found)
    first = told.splitlines()[2]
    for parameter in inspect.signature(found).parameters:
        assert re.search(rf"[(, *]{parameter}\b", first), first
        assert re.search(rf"^    {parameter}: .{{10,}}", told, re.MULTILINE), f"{name}: {parameter}"
    if aio := getattr(found, "aio", None):
        assert inspect.iscoroutinefunction(aio)
        assert inspect.signature(aio) == inspect.signature(found)
        assert helped(aio).splitlines()[2].startswith("async aio(")


@requirement("library.help")
def test_help_of_the_package_lists_every_function() -> None:
    assert {"view", "analyze", "prepare", "fit_for", "supports_vision"} <= FUNCTIONS.keys()
    told = helped(sightline)
    assert [name for name in FUNCTIONS if not re.search(rf"^ +(async )?{name}\(", told, re.MULTILINE)] == [
        "hoist_tool_result_images"  # which is hoist
    ]


def checked(code: str, tmp_path: Path) -> str:
    """What mypy says of a program in an empty project."""
    file = tmp_path / "program.py"
    file.write_text(code)
    words = [
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "",
        "--no-error-summary",
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    ended = subprocess.run([sys.executable, *words, file], capture_output=True, text=True, cwd=tmp_path, check=False)
    return ended.stdout + ended.stderr


@requirement("library.typed")
def test_a_type_checker_knows_the_names_of_the_package(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "library.md").read_text("utf-8")
    blocks: list[Any] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    page_lines = sum(block.count("\n") for block in blocks)
    typos = "sightline.nope\nsightline.ask\nsightline.view('shot.png', corp='r=top')\n"
    said = checked("".join(blocks) + typos, tmp_path).splitlines()
    errors = [line for line in said if ": error: " in line]
    assert [line for line in errors if int(line.split(":")[1]) <= page_lines] == []
    assert ["nope" in errors[0], '"ask"' in errors[1], "corp" in errors[2], len(errors)] == [True, True, True, 3]
