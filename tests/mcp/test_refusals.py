"""Refusals over MCP: their remedies name only tools that the server offers, and lead somewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

import sightline
from sightline.api.failure import Failure
from sightline.api.tool_registry import TOOLS
from tests.api.eyes import ABSENT
from tests.golden.wording import fill
from tests.mcp.serving import WAYS, client, texts
from tests.requirements import requirement

UPSTREAMS = {
    **ABSENT,
    "far": {"baseUrl": "http://eyes.invalid:9/v1", "apiKey": "sk-far"},
    "near": {"baseUrl": "http://127.0.0.1:9/v1"},
}
ENV = {"SIGHTLINE_UPSTREAMS": json.dumps(UPSTREAMS), "SIGHTLINE_MODELS": '{"eye": {"vision": true}}'}
NAMES = [tool.name for tool in TOOLS]
FILES = ("absent.png", "empty.png", "half.png", "page.png", "notes.txt", "page.pdf", "clip.mp4", "drawing.svg", "a.zip")
REFERENCES = (".", "~/x.png", "../x.png", "/etc/hostname", "sha256:12", f"sha256:{'0' * 64}", "data:,", "ftp://x/y", "")
MODELS = ("nobody/eye", "eye", "far/eye", "far/blind", "near/eye", "deepseek/deepseek-v4-pro")
SHELL = re.compile(r"\b(run: |type: |ollama (pull|serve)|pip install|sightline [a-z-]+ |(?<!user to )set [a-z`])")
CROPS: tuple[Any, ...] = ({"region": "nowhere"}, {"pixels": {"x": 9000, "y": 0, "width": 1, "height": 1}}, {}, 7)


def list_calls(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls that are refused, whichever tool they are for."""
    for name in (*FILES, *REFERENCES):
        yield "view_image", {"path": name}
        yield "analyze_image", {"images": [name], "question": "?"}
        yield "vision_analyze", {"file_path": str(folder / name), "prompt": "?", "model": "far/eye"}
        yield "video_analyze", {"file_path": str(folder / name), "model": "far/eye"}
    for crop in CROPS:
        yield "view_image", {"path": "shot.png", "crop": crop}
        yield "analyze_image", {"images": ["shot.png"], "question": "?", "crop": [crop]}
    for model in MODELS:
        yield "analyze_image", {"images": ["shot.png"], "question": "?", "model": model}
        yield "vision_analyze", {"file_path": str(folder / "shot.png"), "prompt": "?", "model": model}
        yield "video_analyze", {"file_path": str(folder / "clip.mp4"), "model": model}
    yield from ((name, {"no_such_argument": 1}) for name in (*NAMES, "nothing"))


@pytest.fixture
def work(folder: Path) -> Path:
    fill(folder)
    (folder / "drawing.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (folder / "a.zip").write_bytes(b"PK\x03\x04" + b"0" * 40)
    return folder


async def collect_refusals(one: Client, folder: Path) -> dict[str, str]:
    """Return the texts of all refusals, each with the tool that was called; empty: none was."""
    found: dict[str, str] = {}
    for name, arguments in list_calls(folder):
        result = await one.call_tool(name, arguments)
        if result.is_error:
            found |= dict.fromkeys(texts(result), name)
    for prompt, values in (("describe", {"images": "notes.txt"}), ("list", {}), ("redescribe", {"image": "gone.png"})):
        try:
            got = await one.get_prompt(prompt, values)
            found[str(got.messages[0].content.model_dump()["text"])] = ""
        except MCPError as error:
            found[error.error.message] = ""
    try:
        await one.read_resource(f"sightline://sha256/{'0' * 64}")
    except MCPError as error:
        found[error.error.message] = ""
    return found


@requirement("mcp.remedies")
@pytest.mark.parametrize("toolset", ["vision", "view_image", "analyze_image", "list_images,vision_analyze"])
async def test_refusals_name_only_tools_that_are_offered(toolset: str, work: Path) -> None:
    async with client(WAYS[0], work, env={**ENV, "SIGHTLINE_TOOLSET": toolset}) as one:
        offered = {tool.name for tool in (await one.list_tools()).tools}
        refusals = await collect_refusals(one, work)
    assert len(refusals) > 10
    for text, called in refusals.items():
        to_the_model = re.sub(r"ask the user to run: [^)]*", "", text)
        named = {name for name in NAMES if re.search(rf"\b{name}\b", to_the_model)} - {called}
        assert named <= offered, text
        if called:
            assert not SHELL.search(to_the_model), text
        assert "[Vision Proxy]" not in text or not called, "only answers to commands have it"


@requirement("mcp.remedies")
@pytest.mark.parametrize("env", [{"SIGHTLINE_SEER": "off"}, {"SIGHTLINE_MODEL": "nobody/eye"}])
async def test_commands_and_settings_are_for_the_user(env: dict[str, str], work: Path) -> None:
    async with client(WAYS[0], work, env={**ENV, **env}) as one:
        about_images = await one.call_tool("analyze_image", {"images": ["shot.png"], "question": "?"})
        about_file = await one.call_tool("vision_analyze", {"file_path": str(work / "shot.png"), "prompt": "?"})
    for result in (about_images, about_file):
        assert result.is_error
        (text,) = texts(result)
        assert "ask the user to " in text
        assert not SHELL.search(re.sub(r"ask the user to run: [^)]*", "", text)), text


@requirement("mcp.remedies")
@pytest.mark.parametrize("name", ["shot.png", *FILES])
def test_a_remedy_that_names_a_tool_works(name: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    session = sightline.Session()
    for tool in ("view_image", "read_file"):
        result = sightline.call(tool, {"path": name}, session=session)
        if not result and (named := re.search(r"\(call (\w+)", str(result))):
            again = sightline.call(named[1], {"path": name}, session=session)
            is_damaged = isinstance(again, Failure) and again.reason == "corrupt"
            assert again or is_damaged, f"{tool}: {result}; {named[1]}: {again}"
