"""How each API writes the content of a tool result: text blocks, and an image."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast, get_args

from sightline.model.image import Image
from sightline.model.scene import Json

Block = dict[str, Json]
Wire = Literal["anthropic", "gemini", "mcp", "openai", "openai_chat", "openai_responses"]
"""The APIs for which tools and results are written. `openai` is short for `openai_chat`, Chat Completions."""

# How each wire writes a text, and an image from its media type and base64.
_TEXT_BLOCKS: Mapping[Wire, Callable[[str], Block]] = {
    **dict.fromkeys(("anthropic", "mcp", "openai", "openai_chat"), lambda text: {"type": "text", "text": text}),
    "gemini": lambda text: {"text": text},
    "openai_responses": lambda text: {"type": "input_text", "text": text},
}
_IMAGE_BLOCKS: Mapping[Wire, Callable[[str, str], Block]] = {
    "anthropic": lambda mime, data: {
        "type": "image",
        "source": {"type": "base64", "media_type": mime, "data": data},
    },
    "gemini": lambda mime, data: {"inlineData": {"mimeType": mime, "data": data}},
    "mcp": lambda mime, data: {"type": "image", "data": data, "mimeType": mime},
    **dict.fromkeys(
        ("openai", "openai_chat"),
        lambda mime, data: {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}},
    ),
    "openai_responses": lambda mime, data: {"type": "input_image", "image_url": f"data:{mime};base64,{data}"},
}


def check_wire(wire: str) -> Wire:
    """Return the wire of this name. Raise a ValueError for any other name: that is a mistake in the calling code."""
    if wire not in get_args(Wire):
        raise ValueError(f"there is no wire {wire!r}; use one of {', '.join(get_args(Wire))}")
    return cast("Wire", wire)


def write_content(wire: Wire, texts: Sequence[str], image: Image | None = None) -> list[Any]:
    """Return the blocks of a tool result: the texts first, then the image."""
    known = check_wire(wire)
    blocks = [_TEXT_BLOCKS[known](text) for text in texts]
    return [*blocks, _IMAGE_BLOCKS[known](image.mime, image.base64)] if image else blocks


def write_json(found: dict[str, Json]) -> str:
    """Write a result as JSON, with characters of all languages as they are."""
    return json.dumps(found, ensure_ascii=False)
