"""The MCP and ACP wires, which share their content blocks: read and lower MCP tool results and ACP prompts."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote, urlsplit

from sightline.model.profile import Profile
from sightline.model.scene import Edit, Insert, Json, JsonPath, Rebuild, Replace, Scene, get_last_component
from sightline.wire import text_images
from sightline.wire.image_blocks import find_mcp_source
from sightline.wire.json_tree import Block, Texts, enumerate_objects, get_at, get_text
from sightline.wire.lowering import (
    BlockFormat,
    build_block,
    has_pixels,
    lower_in_place,
    lower_in_text,
    lower_tool_result,
)
from sightline.wire.scene_reader import SceneReader


def _replace_image(old: Block, mime: str, data: str) -> Block:
    resource = old.get("resource")
    if isinstance(resource, dict):
        return {**old, "resource": {**_drop_old_mime(resource), "blob": data, "mimeType": mime}}
    return {**_drop_old_mime(old), "data": data, "mimeType": mime}


def _drop_old_mime(holder: Block) -> Block:
    return {key: value for key, value in holder.items() if key != "mime_type"}


BLOCKS = BlockFormat(
    build_text=lambda text: {"type": "text", "text": text},
    build_image=lambda mime, data: {"type": "image", "data": data, "mimeType": mime},
    replace_image=_replace_image,
)


MCP_KEY = "content"
_STRUCTURED = "structuredContent"


def read_mcp(tree: Json, texts: Texts) -> Scene:
    """Read one result; the conversation that it belongs to isn't known."""
    reader = SceneReader(texts)
    reader.begin_message("tool")
    for index, block in enumerate_objects(get_at(tree, MCP_KEY)):
        if (source := find_mcp_source(block, texts)) is not None:
            reader.add_tool_image((MCP_KEY, index), source, None)
        elif block.get("type") == "text":
            reader.read_tool_text((MCP_KEY, index, "text"), get_text(block, "text"), None)
    for path, leaf in text_images.walk_strings(get_at(tree, _STRUCTURED)):
        reader.read_tool_text((_STRUCTURED, *path), leaf, None)
    return reader.build_scene("", stream=False, partial=True)


def lower_mcp(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    """Write fates into a result. Images stay in it: the wire that sends it to a provider moves them if needed."""
    structured = [sight for sight in scene.sights if sight.place[0] == _STRUCTURED]
    blocks = [sight for sight in scene.sights if sight.place[0] != _STRUCTURED]
    edits = lower_tool_result((MCP_KEY,), blocks, tree, BLOCKS, hoist=False) if blocks else []
    images = [build_block(sight, tree, BLOCKS) for sight in structured if has_pixels(sight)]
    # Structured data keeps its shape: a placeholder replaces each image, which is added to the content.
    return [*_append_blocks(edits, images, tree), *lower_in_text(structured, tree, BLOCKS, text_images.PLACEHOLDER)]


def _append_blocks(edits: list[Edit], added: list[Block], tree: Json) -> list[Edit]:
    """Return the edits of the content, with more blocks at its end."""
    rebuilt = [replace(edit, elements=(*edit.elements, *added)) for edit in edits if isinstance(edit, Rebuild)]
    if rebuilt or not added:
        return [*(edit for edit in edits if not isinstance(edit, Rebuild)), *rebuilt]
    content = get_at(tree, MCP_KEY)
    if isinstance(content, list):
        return [*edits, *(Insert((MCP_KEY, len(content)), each) for each in added)]
    blocks: list[Json] = [*added]
    present = isinstance(tree, dict) and MCP_KEY in tree
    return [Replace((MCP_KEY,), blocks) if present else Insert((MCP_KEY,), blocks)]


ACP_KEY = "prompt"
_PARAMS = "params"


def read_acp(tree: Json, texts: Texts) -> Scene:
    """Read a prompt, which always begins a turn; the agent has the rest of the conversation."""
    reader = SceneReader(texts)
    place = find_prompt(tree)
    reader.begin_message("user", opens=True)
    for index, each in enumerate_objects(get_at(tree, *place)):
        if (source := find_mcp_source(each, texts)) is not None:
            reader.add_pasted_image((*place, index), source, find_block_name(each, texts))
    return reader.build_scene("", stream=False, partial=True)


def find_block_name(block: Block, texts: Texts) -> str | None:
    """Return the file name in the address of a block; None: it has no address, or one without a name."""
    uri = get_text(block, "uri") or get_text(get_at(block, "resource"), "uri")
    if texts.token in uri or uri[:5].lower() == "data:":
        return None
    try:
        return get_last_component(unquote(urlsplit(uri).path))
    except ValueError:
        return None


def find_prompt(tree: Json) -> JsonPath:
    """Return where the blocks are: under `params`, if the tree is a whole request."""
    return (_PARAMS, ACP_KEY) if isinstance(get_at(tree, _PARAMS, ACP_KEY), list) else (ACP_KEY,)


def lower_acp(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    return lower_in_place(scene.sights, tree, BLOCKS)
