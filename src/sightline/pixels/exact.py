"""An image, or a part of it, in exactly the size in which a model that answers in pixels will see it."""

from __future__ import annotations

from typing import Any

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.pixels.bitmap import decode, scaled, within_bounds
from sightline.pixels.crop import cut
from sightline.pixels.encode import drawn, encoded, sampled

_HEAVY = Refusal("too_large", "no file of it is as light as the model takes it", "give a smaller crop")


def exact_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Nothing is trimmed, folded or left out: what is at a place of the answer is at that place of the image."""
    picture = within_bounds(data)
    whole = picture if isinstance(picture, Refusal) else decode(data, picture)
    if isinstance(whole, Refusal):
        return whole
    piece = cut(whole, Box(*arguments["box"])) if arguments["box"] else whole
    if isinstance(piece, Refusal):
        return piece
    size = Size(*arguments["size"])
    same = size == Size(piece.width, piece.height)
    made = (piece if same else scaled(piece, size)).copy_memory()
    file = encoded(made, arguments["formats"], arguments["bytes"], written=drawn(sampled(made)))
    if isinstance(file, int):
        return _HEAVY
    mime, sent = file
    return {"mime": mime, "size": [size.width, size.height], "whole": [whole.width, whole.height]}, sent
