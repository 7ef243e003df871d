"""The documented settings for editors: written to their file, read, started and used as the editor does."""

from __future__ import annotations

import base64
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sightline.agents.settings_files import parse_json
from tests.mcp.readme import blocks
from tests.mcp.test_stdio import Pipe, pipe
from tests.requirements import requirement
from tests.scripted.eye import look
from tests.scripted.pictures import paint_quadrants, some_colours

COLOURS = some_colours(seed=33)


@dataclass(frozen=True, slots=True)
class Editor:
    """How an editor reads its user's settings, and how it introduces itself."""

    read: Callable[[str], Any]
    servers: str  # the key of all servers in its file
    takes: frozenset[str]  # the keys of one that it starts
    hello: Mapping[str, Any]
    at_home: bool  # it starts servers in the user's home and names the project when it is asked; else in the project
    before: str = ""  # what its users' file begins with


EDITORS: Mapping[str, Editor] = {
    "Cursor": Editor(
        json.loads,
        "mcpServers",
        frozenset({"type", "command", "args", "env", "envFile"}),
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {
                "tools": True,
                "prompts": True,
                "resources": True,
                "logging": False,
                "elicitation": {"form": {}},
                "roots": {"listChanged": False},
            },
            "clientInfo": {"name": "cursor-vscode", "version": "1.0.0"},
        },
        at_home=True,
    ),
    "Zed": Editor(
        parse_json,
        "context_servers",
        frozenset({"source", "enabled", "command", "args", "env", "timeout"}),
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "Zed", "version": "0.1.0"},
        },
        at_home=False,
        before="// Zed settings, with comments as Zed writes them\n",
    ),
}


def started(editor: Editor, file: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command and the variables that an editor finds in its file."""
    server = editor.read(file.read_text("utf-8"))[editor.servers]["sightline"]
    assert server.keys() <= editor.takes
    return [server["command"], *server["args"]], dict(server.get("env", {}))


def answer(raw: Pipe, project: Path, number: int, method: str, **params: Any) -> Any:
    """Return the result of a request; answer if the server asks for the folders meanwhile."""
    said = raw.ask(method, number, **params)
    while "method" in said:
        if said["method"] == "roots/list":
            roots = [{"uri": project.as_uri(), "name": project.name}]
            raw.send({"jsonrpc": "2.0", "id": said["id"], "result": {"roots": roots}})
        said = raw.heard()
    assert said["id"] == number, said
    return said["result"]


@requirement("mcp.hosts")
@pytest.mark.parametrize("title", EDITORS)
def test_an_editor_starts_the_documented_server_and_gets_the_image(title: str, tmp_path: Path) -> None:
    editor, block = EDITORS[title], blocks()[title]
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home / "tmp", project):
        folder.mkdir(parents=True)
    (project / "shapes.png").write_bytes(paint_quadrants(COLOURS))
    file = home / block.file.removeprefix("~/")
    file.parent.mkdir(parents=True)
    file.write_text(editor.before + block.text, "utf-8")

    (command, *words), named = started(editor, file)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    found = shutil.which(command, path=path)
    assert found, "the command is on the user's path"
    bare = {"PATH": path, "HOME": str(home), "TMPDIR": str(home / "tmp"), **named}
    with pipe(home if editor.at_home else project, found, *words, env=bare) as raw:
        raw.hello(**editor.hello)
        assert answer(raw, project, 2, "tools/list")["tools"][0]["name"] == "view_image"
        asked = {"path": str(project / "shapes.png") if editor.at_home else "shapes.png"}
        result = answer(raw, project, 3, "tools/call", name="view_image", arguments=asked)
        assert [block["type"] for block in result["content"]] == ["text", "image"], result
        seen = look(base64.b64decode(result["content"][1]["data"]))
        assert seen is not None
        assert seen.quadrants == COLOURS
        assert raw.left() == b""
