"""Images out of tool results, into a user message after them: where every provider shows them to its model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from sightline.engine.eyes import probed
from sightline.look.shapes import codec
from sightline.model.facts import Facts
from sightline.model.fate import Shown
from sightline.model.image import Picture
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight
from sightline.model.source import Inline
from sightline.passes.label import label
from sightline.wire.jsonedits import graft
from sightline.wire.shape import Whole

T = TypeVar("T")
_HOIST = Profile("", "openai_chat", "", tool_images="hoist")


def hoist(messages: T, *, wire: str | None = None) -> T:
    """The messages with every image that stands in a tool's result shown in a user message after the run of results.

    Nothing is read, asked or remembered; what is given stays as it is, and is itself the answer where there is nothing
    to move. Whoever calls this sends on what comes back: a `wire` that there is none of is a ValueError.

    messages: those of Chat Completions, Anthropic Messages, Responses, Gemini or the AI SDK, or a body with them.
    wire: their shape, "anthropic", "openai_chat", "openai_responses", "gemini" or "model_message"; else recognised.
    """
    found = codec(wire, messages)
    if isinstance(found, Refusal):
        raise ValueError(str(found))
    bare = isinstance(messages, list)
    tree: Any = {found.items: messages} if bare else messages
    scene = found.read(tree, Whole())
    sights = tuple(met for sight in scene.sights if (met := _shown(sight)) is not None)
    if not any(sight.held for sight in sights):
        return messages
    labelled = label(replace(scene, sights=sights), Facts(), Rules(_HOIST))
    assert isinstance(labelled, Scene), "a label needs no facts"
    edits = found.lower(labelled, tree, _HOIST)
    after: Any = graft(tree, edits)
    return (after[found.items] if bare else after) if edits else messages


def _shown(sight: Sight) -> Sight | None:
    """None for a text that only begins like an image, and stays what it is."""
    if not sight.held or not isinstance(sight.source, Inline) or (sight.within is None and sight.source.declared):
        return sight.meets(Shown())
    seen = probed(sight.source)
    if isinstance(seen, Picture):
        return sight.meets(Shown() if seen.mime == sight.source.declared else Shown(seen.mime))
    return sight.meets(Shown()) if sight.within is None else None


hoist_tool_result_images = hoist
