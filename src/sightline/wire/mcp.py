"""The content of an MCP tool's result: `{"content": [...]}`, as `tools/call` answers it."""

from __future__ import annotations

from sightline.model.edit import Edit
from sightline.model.profile import Profile
from sightline.model.scene import Json, Scene
from sightline.wire.blocks import DIALECT, source
from sightline.wire.lowering import result
from sightline.wire.reader import Reader
from sightline.wire.shape import Texts, at, entries, text_in

ITEMS = "content"


def read(tree: Json, texts: Texts) -> Scene:
    """One result out of a conversation that stands elsewhere."""
    reader = Reader(texts)
    reader.message("tool")
    for index, block in entries(at(tree, ITEMS)):
        if (found := source(block, texts)) is not None:
            reader.brought((ITEMS, index), found, None)
        elif block.get("type") == "text":
            reader.said((ITEMS, index, "text"), text_in(block, "text"), None)
    return reader.scene("", stream=False, partial=True)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    """Images stay in the result: whoever asks a provider with it has a wire, and moves them there."""
    return result((ITEMS,), scene.sights, tree, DIALECT, hoist=False) if scene.sights else []
