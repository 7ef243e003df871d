"""The tools of the MCP server, by the official client in both eras of the protocol, over both transports."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from sightline.api.views import view
from sightline.cli.verbs.mcp import open_context
from sightline.settings import FILE_NAME
from sightline.settings.live_settings import get_process_settings
from tests.api.eyes import eyes, named, size_of
from tests.mcp.serving import MODERN, WAYS, Way, client, images, texts
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.waiting import try_again

TOOLS = ["view_image", "analyze_image", "list_images", "vision_analyze", "video_analyze"]
COLOURS = some_colours(seed=5)
PICTURE = paint_quadrants(COLOURS)


@requirement("mcp.stdio", "mcp.http", "mcp.text_first", "mcp.eras")
async def test_an_image_is_viewed_asked_about_and_listed(way: Way, folder: Path) -> None:
    with eyes() as provider:
        async with client(way, folder, env=named(provider)) as one:
            assert (one.protocol_version == MODERN) is (way[1] == "auto")
            assert one.server_info is not None
            assert one.server_info.name == "sightline"
            tools = (await one.list_tools()).tools
            assert [tool.name for tool in tools] == TOOLS
            assert all(tool.output_schema is None for tool in tools), "hosts drop images beside structured output"

            seen = await one.call_tool("view_image", {"path": "shot.png"})
            assert [block.type for block in seen.content] == ["text", "image"]
            assert (seen.is_error, seen.structured_content) == (False, None)
            told = json.loads(texts(seen)[0])
            assert (told["ok"], told["width"], told["height"]) == (True, 320, 240)
            assert b64decode(images(seen)[0].data) == PICTURE

            for image in ("shot.png", told["image"]):
                asked = await one.call_tool("analyze_image", {"images": [image], "question": "What is it?"})
                assert not asked.is_error
                assert describe_quadrants(COLOURS) in texts(asked)[0]
                assert asked.structured_content is None

            path = str(folder / "shot.png")
            model = {"model": "mine/eye-2", "prompt": "What is it?"}
            answer = await one.call_tool("vision_analyze", {"file_path": path, **model})
            assert describe_quadrants(COLOURS) in json.loads(texts(answer)[0])["text"]
            film = await one.call_tool("video_analyze", {"file_path": path})
            assert film.is_error
            assert "UNSUPPORTED_FILE_TYPE" in texts(film)[0]

            listed = json.loads(texts(await one.call_tool("list_images", {}))[0])["images"]
            assert [(each["image"], each["path"]) for each in listed] == [(told["image"], path)]


@requirement("mcp.resources")
async def test_images_of_the_record_are_resources(way: Way, folder: Path) -> None:
    async with client(way, folder) as one:
        assert (await one.list_resources()).resources == []
        told = json.loads(texts(await one.call_tool("view_image", {"path": "shot.png"}))[0])
        (listed,) = (await one.list_resources(cache_mode="refresh")).resources
        assert listed.uri == f"sightline://sha256/{told['image'].removeprefix('sha256:')}"
        assert (listed.mime_type, listed.size) == ("image/png", len(PICTURE))
        (held,) = (await one.read_resource(listed.uri)).contents
        assert b64decode(held.model_dump()["blob"]) == PICTURE
        (template,) = (await one.list_resource_templates()).resource_templates
        assert template.uri_template == "sightline://sha256/{sha256}"
        for address in (f"sightline://sha256/{'0' * 64}", "sightline://sha256/12", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await one.read_resource(address)


@requirement("mcp.bad_calls")
@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids="-".join)
async def test_a_bad_call_is_refused_with_a_reason_and_a_remedy(way: Way, folder: Path) -> None:
    (folder / "page.png").write_text("<html></html>")
    bad: list[tuple[str, dict[str, Any], str]] = [
        ("nothing", {}, "not_permitted.*'nothing'.*view_image, "),
        ("read_file", {"path": "shot.png"}, "not_permitted.*'read_file'.*view_image, "),
        ("view_image", {}, "invalid_input.*'path'.*view_image"),
        ("view_image", {"path": 7}, "invalid_input.*path"),
        ("view_image", {"path": "shot.png", "zoom": 2}, "invalid_input.*'zoom'"),
        ("view_image", {"path": "x" * 2_000_000}, "invalid_input.*path"),
        ("view_image", {"path": "gone.png"}, "not_found.*file"),
        ("view_image", {"path": "../shot.png"}, r"not_permitted.*\.\."),
        ("view_image", {"path": "/etc/hostname"}, "not_permitted.*folder"),
        ("view_image", {"path": "page.png"}, "(corrupt|unsupported_type).*HTML"),
        ("view_image", {"path": "https://example.com/a.png"}, "not_permitted.*config set network on"),
        ("view_image", {"path": "shot.png", "crop": {"pixels": {"x": 9e9}}}, "crop"),
        ("analyze_image", {"images": "shot.png", "question": "?"}, "invalid_input.*list"),
        ("analyze_image", {"images": [{}], "question": "?"}, "invalid_input.*path"),
        ("analyze_image", {"images": ["shot.png"], "question": "q" * 5000}, "invalid_input.*5,000"),
        ("analyze_image", {"images": ["shot.png"] * 30, "question": "?"}, "invalid_input.*30 images"),
        ("vision_analyze", {"prompt": "?", "file_path": "shot.png"}, "INVALID_INPUT: file_path "),
        ("vision_analyze", {"prompt": "?", "file_base64": "%%%"}, "UNSUPPORTED_FILE_TYPE"),
        ("vision_analyze", {"prompt": "?", "file_url": "http://127.0.0.1/a.png"}, "URL_BLOCKED"),
        ("video_analyze", {"file_url": 3}, "INVALID_INPUT"),
        ("list_images", {"all": True}, "invalid_input.*list_images.*'all'"),
    ]
    async with client(way, folder) as one:
        for name, arguments, words in bad:
            result = await one.call_tool(name, arguments)
            assert result.is_error, (name, arguments)
            assert re.search(words, texts(result)[0]), texts(result)[0]
            assert images(result) == []
        assert not (await one.call_tool("view_image", {"path": "shot.png"})).is_error, "and it goes on"


@requirement("tools.toolset.doors")
@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids="-".join)
async def test_the_user_says_which_tools_are_offered(way: Way, folder: Path) -> None:
    async with client(way, folder, env={"SIGHTLINE_TOOLSET": "view_image, list_images"}) as one:
        assert [tool.name for tool in (await one.list_tools()).tools] == ["view_image", "list_images"]
        no = await one.call_tool("analyze_image", {"images": ["shot.png"], "question": "?"})
        assert no.is_error
        assert re.search(r"not_permitted.*'analyze_image'.*\(call one of view_image, list_images\)", texts(no)[0])
    async with client(way, folder, env={"SIGHTLINE_TOOL": "off"}) as one:
        assert "analyze_image" not in [tool.name for tool in (await one.list_tools()).tools]


@requirement("settings.live", "tools.toolset.doors")
@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids="-".join)
async def test_a_running_server_follows_the_settings_file(way: Way, folder: Path, home: Path) -> None:
    async with client(way, folder) as one:
        assert [tool.name for tool in (await one.list_tools()).tools] == TOOLS
        (home / FILE_NAME).write_text('{"toolset": ["view_image"]}')
        for _ in try_again():  # it takes a second
            if [tool.name for tool in (await one.list_tools()).tools] == ["view_image"]:
                break


@requirement("settings.live.broken")
def test_a_broken_file_changes_nothing_for_a_running_server(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    live = get_process_settings()
    for content in ('{"toolset": ["view_image"]}', "{", "{"):
        (home / FILE_NAME).write_text(content)
        live.check_soon()
        assert open_context({}).toolset == {"view_image"}
    assert [FILE_NAME in record.message for record in caplog.records] == [True]


@requirement("view.render")
@pytest.mark.parametrize(("render", "reason"), [("on", None), ("off", "render_unavailable")])
def test_documents_are_rendered_as_the_setting_render_says(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, render: str, reason: str | None
) -> None:
    (folder / "notes.txt").write_text("notes")
    (home / FILE_NAME).write_text(json.dumps({"render": render}))
    get_process_settings().check_soon()
    monkeypatch.chdir(folder)
    assert getattr(view(open_context({}), "notes.txt"), "reason", None) == reason


@requirement("settings.network")
@pytest.mark.parametrize("network", ["off", "on"])
@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids="-".join)
async def test_web_addresses_are_viewed_as_the_setting_network_says(way: Way, folder: Path, network: str) -> None:
    async with client(way, folder, env={"SIGHTLINE_NETWORK": network}) as one:
        (viewing,) = [tool for tool in (await one.list_tools()).tools if tool.name == "view_image"]
        assert ("https" in (viewing.description or "")) == (network == "on")
        refused = await one.call_tool("view_image", {"path": "https://127.0.0.1/a.png"})
        assert refused.is_error
        assert ("the setting network is off" in texts(refused)[0]) == (network == "off")


@requirement("mcp.toolset")
@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids="-".join)
async def test_prompts_and_resources_follow_the_toolset(way: Way, folder: Path) -> None:
    """Some hosts let models use prompts and resources, which must not replace a tool that is switched off."""
    async with client(way, folder, env={"SIGHTLINE_TOOLSET": "view_image"}) as one:
        digest = json.loads(texts(await one.call_tool("view_image", {"path": "shot.png"}))[0])["image"][7:]
        assert not {"describe", "redescribe", "list"} & {each.name for each in (await one.list_prompts()).prompts}
        for verb, filled, tool in [
            ("describe", {"images": "shot.png"}, "analyze_image"),
            ("redescribe", {"image": "shot.png"}, "analyze_image"),
            ("list", {}, "list_images"),
        ]:
            with pytest.raises(MCPError) as no:
                await one.get_prompt(verb, filled)
            assert no.value.error.message.endswith(f" sightline config set toolset view_image,{tool})")
        assert (await one.get_prompt("status", {})).messages
        assert len((await one.list_resources()).resources) == 1
        assert (await one.read_resource(f"sightline://sha256/{digest}")).contents
    async with client(way, folder, env={"SIGHTLINE_TOOLSET": "list_images,analyze_image"}) as one:
        assert {"describe", "redescribe", "list"} <= {each.name for each in (await one.list_prompts()).prompts}
        assert (await one.list_resources()).resources == []
        assert (await one.list_resource_templates()).resource_templates == []
        with pytest.raises(MCPError, match=r"sightline config set toolset .*view_image"):
            await one.read_resource(f"sightline://sha256/{digest}")


@requirement("mcp.toolset")
async def test_a_host_without_images_is_pointed_to_tools_that_it_has(folder: Path) -> None:
    for toolset, named_tool in [
        ("view_image,analyze_image,vision_analyze", "analyze_image"),
        ("view_image,vision_analyze", "vision_analyze"),
        ("view_image", "`toolset`"),
    ]:
        async with client(WAYS[0], folder, env={"SIGHTLINE_TOOLSET": toolset}, name="@cline/core") as one:
            said = texts(await one.call_tool("view_image", {"path": "shot.png"}))
            names = re.findall(r"`toolset`|\w+_\w+", said[-1])
            assert (said[-1][0], said[-1][-1], names) == ("[", "]", [named_tool])


@requirement("mcp.resources")
@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids="-".join)
async def test_a_resource_is_listed_as_it_is_read(way: Way, folder: Path) -> None:
    """An image that is resized for the host has no known type and size before it is read."""
    (folder / "wide.png").write_bytes(paint_quadrants(COLOURS, (2600, 1300)))
    async with client(way, folder) as one:
        told = json.loads(texts(await one.call_tool("view_image", {"path": "wide.png"}))[0])
        (listed,) = (await one.list_resources()).resources
        assert (listed.size, listed.mime_type) == (None, None)
        assert listed.title == "wide.png (image/png, 2600x1300)"
        held = (await one.read_resource(listed.uri)).contents[0].model_dump(by_alias=True)
        about = held["_meta"]["sightline/image"]
        assert (about["image"], about["width"], about["bytes"]) == (told["image"], 2600, told["bytes"])
        assert about["shown"]["width"] == size_of(b64decode(held["blob"])).width == told["shown"]["width"]


@requirement("mcp.limits")
@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids="-".join)
async def test_images_fit_every_provider(way: Way, folder: Path) -> None:
    wide = paint_quadrants(COLOURS, (2600, 1300))
    (folder / "wide.png").write_bytes(wide)
    async with client(way, folder, name="claude-code") as one:
        seen = await one.call_tool("view_image", {"path": "wide.png"})
        told = json.loads(texts(seen)[0])
        shown = size_of(b64decode(images(seen)[0].data))
        assert (told["width"], told["shown"]["width"]) == (2600, shown.width)
        assert max(shown.width, shown.height) <= 2000
        part = await one.call_tool("view_image", {"path": "wide.png", "crop": {"region": "top-left"}})
        assert size_of(b64decode(images(part)[0].data)).width <= 2000
        held = (await one.read_resource(f"sightline://sha256/{told['image'][7:]}")).contents[0]
        assert size_of(b64decode(held.model_dump()["blob"])) == shown
