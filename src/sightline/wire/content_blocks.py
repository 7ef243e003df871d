"""The content blocks that MCP and ACP share, as an MCP tool returns them and as an ACP prompt holds them."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.edit import Edit, Insert, Rebuild, Replace
from sightline.model.profile import Profile
from sightline.model.scene import Json, Path, Scene
from sightline.model.source import Link, Source
from sightline.wire import rescue
from sightline.wire.inline import address, inline, picture_in
from sightline.wire.lowering import Block, Dialect, block, has_pixels, in_place, in_words, result
from sightline.wire.reader import Reader, is_said
from sightline.wire.shape import Texts, at, entries, text_in

_WEB = ("https://", "http://")


def source(block: Block, texts: Texts) -> Source | None:
    """A link to a file is none: whoever gets the content opens it with eyes and permissions of their own."""
    match block:
        case {"type": "image", "data": str(data)} if data:
            return _held(_mime(block), data, texts)
        case {"type": "image", "uri": str(uri)} if uri.startswith(_WEB):
            return Link(uri)
        case {"type": "resource", "resource": {"blob": str(blob)} as held}:
            return _held(_mime(held), blob, texts) if _mime(held).startswith("image/") else picture_in(blob, texts)
        case {"type": "resource_link", "uri": str(uri)} if _mime(block).startswith("image/") and uri.startswith(_WEB):
            return Link(uri)
        case _:
            return None


def _held(mime: str, data: str, texts: Texts) -> Source | None:
    """Base64; some servers write a whole data URL there."""
    return address(data, texts) if data[:5].lower() == "data:" else inline(mime, data, texts)


def _mime(holder: Json) -> str:
    """Some SDKs write their own names of the fields instead of the protocol's."""
    return (text_in(holder, "mimeType") or text_in(holder, "mime_type")).strip().lower()


def _recoded(old: Block, mime: str, data: str) -> Block:
    held = old.get("resource")
    if isinstance(held, dict):
        return {**old, "resource": {**_plain(held), "blob": data, "mimeType": mime}}
    return {**_plain(old), "data": data, "mimeType": mime}


def _plain(holder: Block) -> Block:
    return {key: value for key, value in holder.items() if key != "mime_type"}


DIALECT = Dialect(
    words=lambda text: {"type": "text", "text": text},
    pixels=lambda mime, data: {"type": "image", "data": data, "mimeType": mime},
    recoded=_recoded,
)


MCP_ITEMS = "content"
_DATA = "structuredContent"


def read_mcp(tree: Json, texts: Texts) -> Scene:
    """One result out of a conversation that stands elsewhere."""
    reader = Reader(texts)
    reader.message("tool")
    for index, one in entries(at(tree, MCP_ITEMS)):
        if (found := source(one, texts)) is not None:
            reader.brought((MCP_ITEMS, index), found, None)
        elif one.get("type") == "text":
            reader.said((MCP_ITEMS, index, "text"), text_in(one, "text"), None)
    for way, leaf in rescue.strings(at(tree, _DATA)):
        reader.said((_DATA, *way), leaf, None)
    return reader.scene("", stream=False, partial=True)


def lower_mcp(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    """Images stay in the result: whoever asks a provider with it has a wire, and moves them there."""
    written = [sight for sight in scene.sights if sight.place[0] == _DATA]
    blocks = [sight for sight in scene.sights if sight.place[0] != _DATA]
    edits = result((MCP_ITEMS,), blocks, tree, DIALECT, hoist=False) if blocks else []
    shown = [block(sight, tree, DIALECT) for sight in written if has_pixels(sight)]
    # Data keeps its shape: a word stands where the image stood in it.
    return [*_with(edits, shown, tree), *in_words(written, tree, DIALECT, rescue.HERE)]


def _with(edits: list[Edit], shown: list[Block], tree: Json) -> list[Edit]:
    """The edits of the content, and more blocks at its end."""
    rebuilt = [replace(edit, elements=(*edit.elements, *shown)) for edit in edits if isinstance(edit, Rebuild)]
    if rebuilt or not shown:
        return [*(edit for edit in edits if not isinstance(edit, Rebuild)), *rebuilt]
    content = at(tree, MCP_ITEMS)
    if isinstance(content, list):
        return [*edits, *(Insert((MCP_ITEMS, len(content)), each) for each in shown)]
    held: list[Json] = [*shown]
    present = isinstance(tree, dict) and MCP_ITEMS in tree
    return [Replace((MCP_ITEMS,), held) if present else Insert((MCP_ITEMS,), held)]


ACP_ITEMS = "prompt"
_PARAMS = "params"


def read_acp(tree: Json, texts: Texts) -> Scene:
    """What a person says now; what was said before, the agent holds."""
    reader = Reader(texts)
    place = prompt(tree)
    blocks = at(tree, *place)
    reader.message("user", opens=is_said(text_in(each, "text") for _, each in entries(blocks)))
    for index, each in entries(blocks):
        if (found := source(each, texts)) is not None:
            reader.pasted((*place, index), found)
    return reader.scene("", stream=False, partial=True)


def prompt(tree: Json) -> Path:
    """Where the blocks stand: in the parameters, where all of a request is given."""
    return (_PARAMS, ACP_ITEMS) if isinstance(at(tree, _PARAMS, ACP_ITEMS), list) else (ACP_ITEMS,)


def lower_acp(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    return in_place(scene.sights, tree, DIALECT)
