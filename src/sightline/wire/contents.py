"""The codecs of content that programs hand to each other: no provider is asked in these shapes.

A body of theirs is an object whose list of messages or blocks stands under one key, `items`; whoever holds the
bare list puts it there first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sightline.model.edit import Edit
from sightline.model.profile import ContentName, Profile
from sightline.model.scene import Json, Scene
from sightline.wire import content_blocks, model_message
from sightline.wire.shape import Texts


@dataclass(frozen=True, slots=True)
class Content:
    name: ContentName
    read: Callable[[Json, Texts], Scene]
    lower: Callable[[Scene, Json, Profile], list[Edit]]
    items: str  # the key of the messages or blocks
    head: Sequence[str] = ()


MODEL_MESSAGE = Content("model_message", model_message.read, model_message.lower, model_message.ITEMS)
MCP = Content("mcp", content_blocks.read_mcp, content_blocks.lower_mcp, content_blocks.MCP_ITEMS)
ACP = Content("acp", content_blocks.read_acp, content_blocks.lower_acp, content_blocks.ACP_ITEMS)

CONTENTS: tuple[Content, ...] = (MODEL_MESSAGE, MCP, ACP)
