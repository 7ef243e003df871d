"""The content blocks that MCP and ACP share: where an image stands in one, and how a fate is written there."""

from __future__ import annotations

from sightline.model.scene import Json
from sightline.model.source import Link, Source
from sightline.wire.inline import address, inline, picture_in
from sightline.wire.lowering import Block, Dialect
from sightline.wire.shape import Texts, text_in

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
