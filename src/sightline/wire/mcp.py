"""What an MCP tool answers, as `tools/call` brings it: `{"content": [...]}`, and its data under `structuredContent`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from sightline.model.edit import Edit, Insert, Rebuild, Replace
from sightline.model.profile import Profile
from sightline.model.scene import Json, Scene, Sight
from sightline.wire import rescue
from sightline.wire.blocks import DIALECT, source
from sightline.wire.lowering import Block, block, has_pixels, result
from sightline.wire.reader import Reader
from sightline.wire.shape import Texts, at, entries, text_in

ITEMS = "content"
_DATA = "structuredContent"


def read(tree: Json, texts: Texts) -> Scene:
    """One result out of a conversation that stands elsewhere."""
    reader = Reader(texts)
    reader.message("tool")
    for index, one in entries(at(tree, ITEMS)):
        if (found := source(one, texts)) is not None:
            reader.brought((ITEMS, index), found, None)
        elif one.get("type") == "text":
            reader.said((ITEMS, index, "text"), text_in(one, "text"), None)
    for way, leaf in rescue.strings(at(tree, _DATA)):
        reader.said((_DATA, *way), leaf, None)
    return reader.scene("", stream=False, partial=True)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    """Images stay in the result: whoever asks a provider with it has a wire, and moves them there."""
    written = [sight for sight in scene.sights if sight.place[0] == _DATA]
    blocks = [sight for sight in scene.sights if sight.place[0] != _DATA]
    edits = result((ITEMS,), blocks, tree, DIALECT, hoist=False) if blocks else []
    shown = [block(sight, tree, DIALECT) for sight in written if has_pixels(sight)]
    return [*_with(edits, shown, tree), *_worded(written, tree)]


def _with(edits: list[Edit], shown: list[Block], tree: Json) -> list[Edit]:
    """The edits of the content, and more blocks at its end."""
    rebuilt = [replace(edit, elements=(*edit.elements, *shown)) for edit in edits if isinstance(edit, Rebuild)]
    if rebuilt or not shown:
        return [*(edit for edit in edits if not isinstance(edit, Rebuild)), *rebuilt]
    content = at(tree, ITEMS)
    if isinstance(content, list):
        return [*edits, *(Insert((ITEMS, len(content)), each) for each in shown)]
    held: list[Json] = [*shown]
    present = isinstance(tree, dict) and ITEMS in tree
    return [Replace((ITEMS,), held) if present else Insert((ITEMS,), held)]


def _worded(sights: Sequence[Sight], tree: Json) -> list[Edit]:
    """Data keeps its shape: a word stands where the image stood in it."""
    edits: list[Edit] = []
    for place, group in groupby(sights, key=lambda sight: sight.place):
        text = at(tree, *place)
        assert isinstance(text, str)
        words = {sight.within or (): _word(sight, tree) for sight in group}
        edits.append(Replace(place, rescue.worded(text, words)))
    return edits


def _word(sight: Sight, tree: Json) -> str:
    return rescue.HERE if has_pixels(sight) else text_in(block(sight, tree, DIALECT), "text")
