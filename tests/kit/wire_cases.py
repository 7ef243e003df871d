"""A wire: which images it finds in a body, and the body with each image shown or described."""

from __future__ import annotations

from typing import Any, cast

from sightline.model.profile import Profile, ToolImagePlacement, WireName
from sightline.model.scene import Shown, Sight, Told
from sightline.wire import CONTENTS, WIRES
from sightline.wire.json_edits import graft
from sightline.wire.json_tree import PlainTexts

CODECS = {codec.name: codec for codec in (*WIRES, *CONTENTS)}
NAMES = tuple(CODECS)


def run(name: str, given: Any) -> Any:
    """`given`: a body, and where images of tools go if they are shown; the outcome has both lowerings."""
    body, codec = given["body"], CODECS[name]
    scene = codec.read(body, PlainTexts())
    profile = Profile(
        "up", cast("WireName", name), scene.model, tool_images=cast("ToolImagePlacement", given["tool_images"])
    )
    told = tuple(
        sight.with_fate(Told(f"[image {number}]", "up/eye")) for number, sight in enumerate(scene.sights, start=1)
    )
    shown = tuple(sight.with_fate(Shown()) for sight in scene.sights)
    return {
        "model": scene.model,
        "sights": [_describe(sight) for sight in scene.sights],
        "shown": graft(body, codec.lower(scene.with_sights(shown), body, profile)),
        "told": graft(body, codec.lower(scene.with_sights(told), body, profile)),
    }


def _describe(sight: Sight) -> Any:
    call = sight.call and {"id": sight.call.id, "name": sight.call.name, "path": sight.call.path}
    return {"place": list(sight.place), "role": sight.role, "source": type(sight.source).__name__, "call": call}
