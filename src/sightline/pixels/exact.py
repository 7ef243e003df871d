"""An image, or a part of it, in exactly the size in which a model that answers in pixels will see it."""

from __future__ import annotations

from functools import partial
from typing import Any

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.pixels.bitmap import all_of, decode_part, scaled
from sightline.pixels.crop import inside
from sightline.pixels.decode_limits import within_bounds
from sightline.pixels.encode import drawn, encoded, sampled

_HEAVY = Refusal("too_large", "no file of it is as light as the model takes it", "give a smaller crop")


def exact_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Nothing is trimmed, folded or left out: what is at a place of the answer is at that place of the image."""
    picture, box = within_bounds(data), arguments["box"]
    choose = partial(inside, Box(*box)) if box else all_of
    size = Size(*arguments["size"])
    found = picture if isinstance(picture, Refusal) else decode_part(data, picture, choose, shrink_to=size)
    if isinstance(found, Refusal):
        return found
    made = scaled(found.bitmap, size).copy_memory()
    file = encoded(made, arguments["formats"], arguments["bytes"], written=drawn(sampled(made)))
    if isinstance(file, int):
        return _HEAVY
    mime, sent = file
    return {"mime": mime, "size": [size.width, size.height], "whole": [found.whole.width, found.whole.height]}, sent
