"""The content blocks of an ACP prompt: `{"prompt": [...]}`, alone or as a request `session/prompt` carries them."""

from __future__ import annotations

from sightline.model.edit import Edit
from sightline.model.profile import Profile
from sightline.model.scene import Json, Path, Scene
from sightline.wire.blocks import DIALECT, source
from sightline.wire.lowering import in_place
from sightline.wire.reader import Reader, is_said
from sightline.wire.shape import Texts, at, entries, text_in

ITEMS = "prompt"
_PARAMS = "params"


def read(tree: Json, texts: Texts) -> Scene:
    """What a person says now; what was said before, the agent holds."""
    reader = Reader(texts)
    place = prompt(tree)
    blocks = at(tree, *place)
    reader.message("user", opens=is_said(text_in(block, "text") for _, block in entries(blocks)))
    for index, block in entries(blocks):
        if (found := source(block, texts)) is not None:
            reader.pasted((*place, index), found)
    return reader.scene("", stream=False, partial=True)


def prompt(tree: Json) -> Path:
    """Where the blocks stand: in the parameters, where all of a request is given."""
    return (_PARAMS, ITEMS) if isinstance(at(tree, _PARAMS, ITEMS), list) else (ITEMS,)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    return in_place(scene.sights, tree, DIALECT)
