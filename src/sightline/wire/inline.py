"""Base64 as wires write it: bare, or behind the prefix of a data URL."""

from __future__ import annotations

from sightline.model.source import Inline, Link, Source
from sightline.wire.shape import TextOf

_MAY_BE_IMAGES = ("image/", "application/octet-stream")


def address(url: str, text_of: TextOf) -> Source | None:
    """What an image's URL points at: data that stands right there, or somewhere else; None for what is no image."""
    head, comma, payload = url.partition(",")
    if comma and head[:5].lower() == "data:":
        declared = head[5:].partition(";")[0].strip().lower()
        return Inline(declared, text_of(payload)) if declared.startswith(_MAY_BE_IMAGES) or not declared else None
    return Link(url)
