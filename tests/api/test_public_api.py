"""The public API, used by a typed program; and what its results give to models, people and programs."""

from __future__ import annotations

import ast
import asyncio
import os
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from PIL import Image as Pillow

import sightline
from sightline.api.tool_results import Wire
from tests.api import public_api
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours

PNG = paint_quadrants(some_colours(5), (640, 400))


@pytest.fixture
def shot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGHTLINE_SEER", "off")
    (tmp_path / "shot.png").write_bytes(PNG)
    return tmp_path / "shot.png"


@requirement("library.typed")
def test_a_typed_program_uses_the_whole_public_api(shot: Path) -> None:
    views = public_api.see_images(shot)
    assert len(public_api.ask_models(views[0].image)) == 4
    (shot.parent / "notes.md").write_text("one")
    assert public_api.edit_text(shot.parent / "notes.md", sightline.Session()).bytes == 3
    assert views[0].image in [each.image for each in public_api.list_tools(shot)]
    assert public_api.prepare_bodies([{"role": "user", "content": "hello"}]).sights == ()
    decision, fitted = public_api.serve_peers(shot)
    assert (bool(decision), max(fitted.size.width, fitted.size.height)) == (True, 100)
    assert public_api.know_models() == (sightline.__version__, [True, True, True])
    assert asyncio.run(public_api.see_later(shot)) == views[0]
    client, later = public_api.open_clients()
    client.close()
    asyncio.run(later.aclose())


@requirement("library.typed")
def test_the_typed_program_uses_every_name() -> None:
    tree = ast.parse(Path(public_api.__file__).read_text("utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sightline"
    }
    assert set(sightline.__all__) - used == set()


PER_REQUEST = {"Image", "Receipt"}  # creating a frozen value takes five times as long
VALUES = [name for name in sightline.__all__ if is_dataclass(getattr(sightline, name)) and name not in PER_REQUEST]


@requirement("library.frozen")
@pytest.mark.parametrize("name", VALUES)
def test_an_exported_value_cannot_be_changed(name: str) -> None:
    kind = getattr(sightline, name)
    value = kind.__new__(kind)
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(kind)[0].name, None)


@requirement("library.images")
def test_an_image_may_be_given_in_any_form(shot: Path) -> None:
    views = public_api.see_images(shot)
    assert {view.size for view in views} == {sightline.view(shot).size}  # type: ignore[union-attr]
    with Pillow.open(shot) as picture, shot.open("rb") as file:
        cmyk = sightline.view(picture.convert("CMYK"))
        named = sightline.analyze([file, picture], "?")
    assert cmyk
    assert isinstance(named, sightline.Failure)
    assert named.reason == "unavailable", "the images were found, and no model may look"


@requirement("library.images")
@pytest.mark.parametrize("given", [b"", b"\0\1\2 no image", object(), 7, None])
def test_an_argument_that_is_not_an_image_is_a_failure(given: Any) -> None:
    assert not sightline.view(given)
    assert not sightline.describe(given)


@requirement("library.reach")
def test_functions_read_any_file_and_tools_only_their_folders(
    shot: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "image.png"
    other.write_bytes(PNG)
    assert sightline.view(other)
    assert sightline.view(os.path.relpath(other))
    narrow = sightline.Session(reach=[other.parent])
    assert sightline.view("image.png", session=narrow)
    assert not sightline.view(shot, session=narrow)
    assert sightline.call("view_image", {"path": str(other)}, session=narrow)
    assert not sightline.call("view_image", {"path": "../shot.png"})
    assert not sightline.call("view_image", {"path": str(shot)}, session=narrow)


@requirement("library.tool_shapes")
def test_tools_are_read_only_unless_a_session_may_edit(shot: Path) -> None:
    names = {tool["name"] for tool in sightline.tools()}
    assert {tool["name"] for tool in sightline.tools(session=sightline.Session(can_edit=True))} - names == {"edit_file"}
    refused = sightline.call("edit_file", {"path": "a", "old": "b", "new": "c", "token": "d"})
    assert isinstance(refused, sightline.Failure)
    assert refused.reason == "not_permitted"


@requirement("library.tool_shapes")
def test_tools_have_the_exact_shape_of_each_api() -> None:
    own = sightline.tools()
    named = [(tool["name"], tool["description"]) for tool in own]
    schemas = [tool["parameters"] for tool in own]
    shapes = {wire: sightline.tools(format=wire) for wire in get_args(Wire)}
    assert [(each["name"], each["description"]) for each in shapes["anthropic"]] == named
    assert [[*each] for each in shapes["anthropic"]] == [["name", "description", "input_schema"]] * len(own)
    assert [each["function"]["parameters"] for each in shapes["openai"]] == schemas
    assert shapes["openai"] == shapes["openai_chat"]
    assert [(each["type"], each["parameters"]) for each in shapes["openai_responses"]] == [
        ("function", schema) for schema in schemas
    ]
    (gemini,) = shapes["gemini"]
    assert [each["parametersJsonSchema"] for each in gemini["functionDeclarations"]] == schemas
    assert [each["inputSchema"] for each in shapes["mcp"]] == schemas
    with pytest.raises(ValueError, match="cohere"):
        sightline.tools(format="cohere")  # type: ignore[arg-type]


def build_body(wire: str, content: list[Any]) -> dict[str, Any]:
    """Return a conversation in which a tool returned this content."""
    if wire == "anthropic":
        call = {"type": "tool_use", "id": "c1", "name": "view_image", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": content}
        return {"messages": [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]}
    if wire == "openai_responses":
        called = {"type": "function_call", "call_id": "c1", "name": "view_image", "arguments": "{}"}
        return {"input": [called, {"type": "function_call_output", "call_id": "c1", "output": content}]}
    if wire == "gemini":
        text, image = content
        response = {"name": "view_image", "response": {"result": text["text"]}, "parts": [image]}
        turns = [
            ("model", {"functionCall": {"name": "view_image", "args": {}}}),
            ("user", {"functionResponse": response}),
        ]
        return {"contents": [{"role": role, "parts": [part]} for role, part in turns]}
    function = {"id": "c1", "type": "function", "function": {"name": "view_image", "arguments": "{}"}}
    assistant = {"role": "assistant", "content": None, "tool_calls": [function]}
    return {"messages": [assistant, {"role": "tool", "tool_call_id": "c1", "content": content}]}


@requirement("library.content")
@pytest.mark.parametrize("wire", ["anthropic", "openai", "openai_responses", "gemini"])
def test_the_content_of_a_view_is_an_image_on_every_wire(shot: Path, wire: Wire) -> None:
    seen = sightline.view(shot)
    assert seen
    body = {"model": "m", **build_body(wire, seen.content(wire))}
    prepared = sightline.prepare(body, wire=wire, model="m", retention="off")
    assert prepared
    assert len(prepared.receipt.sights) == 1
    hoisted = sightline.hoist(body, wire=wire)
    assert hoisted != body
    assert seen.pixels.base64 in str(hoisted)


@requirement("library.content")
def test_the_content_of_a_view_is_an_image_for_mcp(shot: Path) -> None:
    seen = sightline.view(shot)
    assert seen
    prepared = sightline.prepare({"content": seen.content()}, wire="mcp")
    assert prepared
    assert len(prepared.receipt.sights) == 1
    assert seen.content("mcp") == seen.content()
    with pytest.raises(ValueError, match="cohere"):
        seen.content("cohere")  # type: ignore[arg-type]


@requirement("library.results")
def test_str_is_for_people_and_repr_is_short(shot: Path) -> None:
    (shot.parent / "notes.md").write_text("one\n" * 500)
    seen, text = sightline.view(shot), sightline.read_file("notes.md")
    listed, missing = sightline.call("list_images", {}), sightline.view("absent.png")
    assert str(seen).startswith(f"{shot}: image/png, 640x400 pixels, ")
    assert str(text) == "one\n" * 500
    assert str(listed).startswith("sha256:")
    assert isinstance(missing, sightline.Failure)
    assert str(missing) == missing.message
    assert all(len(repr(each)) < 120 for each in (seen, text, listed, sightline.Session()))
