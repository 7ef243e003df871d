"""Part of an image, made to fit: the work of a view that changes pixels, for a worker."""

from __future__ import annotations

from typing import Any

from sightline.look.crops import crop_of
from sightline.model.crop import resolve
from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.pixels.bitmap import decode, within_bounds
from sightline.pixels.crop import cut
from sightline.pixels.fit import answer, fit_bitmap, target_of

TASK = {"part": "sightline.look.part:part_task"}


def part_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Like `fit_task`, of the part that `crop` names; it answers also how large the whole is, and which part it was."""
    picture = within_bounds(data)
    whole = picture if isinstance(picture, Refusal) else decode(data, picture)
    if isinstance(whole, Refusal):
        return whole
    crop = crop_of(arguments["crop"])
    assert crop is not None, "without a crop there is no part"
    box = crop if isinstance(crop, Refusal) else resolve(crop, Size(whole.width, whole.height))
    piece = box if isinstance(box, Refusal) else cut(whole, box)
    if isinstance(box, Refusal) or isinstance(piece, Refusal):
        return piece
    made = fit_bitmap(piece, target_of(arguments))
    if isinstance(made, Refusal):
        return made
    facts, files = answer(made)
    return {**facts, "whole": [whole.width, whole.height], "box": [box.x, box.y, box.width, box.height]}, files
