"""From places in the image as it was seen to pixels of the original, and the block in which an agent reads them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from sightline.grounding.parse import Flag, Found
from sightline.model.fence import attribute, one_line
from sightline.model.geometry import Box, Map, Rect, Size
from sightline.model.scene import Json


@dataclass(frozen=True, slots=True)
class Placed:
    """What an answer points at, in whole pixels of the original image."""

    image: int | None  # which of the images, from 0
    label: str
    values: tuple[float, ...]  # as the model wrote them
    at: tuple[int, ...] | None  # x, y or x1, y1, x2, y2, corners sorted; None where that cannot be said
    flag: Flag = ""

    def as_dict(self) -> dict[str, Json]:
        if self.at is None:
            place: dict[str, Json] = {"values": [_written(value) for value in self.values]}
        else:
            place = {"box" if len(self.at) == 4 else "point": list(self.at)}
        return {"label": one_line(self.label), **place, **({"flag": self.flag} if self.flag else {})}


def shown(original: Size, seen: Size, crop: Box | None = None) -> Map:
    """How an image, or a crop of it, was shown: what it needs to be cut out and then scaled."""
    if crop is None:
        return Map.scaled(original, seen)
    return Map.cropped(original, crop).then(Map.scaled(crop.size, seen))


def to_original(found: Found, view: Map) -> Placed:
    """Where something lies in the original, whose way to what the model saw is `view`."""
    if found.at is None:
        return Placed(found.image, found.label, found.values, None, found.flag)
    rect = _within(found.at, view.result)
    source = _carried(rect, view)
    if source is None:
        return Placed(found.image, found.label, found.values, None, "left_out")
    left, top = _clamped(source.x, view.source.width), _clamped(source.y, view.source.height)
    if len(found.at) == 2:
        return Placed(found.image, found.label, found.values, (left, top), found.flag)
    right = _clamped(source.x + source.width, view.source.width)
    bottom = _clamped(source.y + source.height, view.source.height)
    return Placed(found.image, found.label, found.values, (left, top, right, bottom), found.flag)


def boxes_block(image: str, size: Size, placed: Iterable[Placed]) -> str:
    """The block behind a fence; empty where there is nothing to say. `image` is the id of the original, sha256:…"""
    rows = [json.dumps(each.as_dict(), ensure_ascii=False) for each in placed]
    if not rows:
        return ""
    head = f'<vision_proxy_boxes image="{attribute(image)}" width="{size.width}" height="{size.height}">'
    return "\n".join([head, "[" + ",\n".join(rows) + "]", "</vision_proxy_boxes>"])


def _within(at: tuple[float, ...], size: Size) -> Rect:
    xs = sorted(min(max(x, 0.0), size.width) for x in at[0::2])
    ys = sorted(min(max(y, 0.0), size.height) for y in at[1::2])
    return Rect(xs[0], ys[0], xs[-1] - xs[0], ys[-1] - ys[0])


def _carried(rect: Rect, view: Map) -> Rect | None:
    """Around every part of it that comes from the source; a line or a point is where it is first seen."""
    parts = []
    for piece in view.pieces:
        if rect.width and rect.height:
            if part := rect.shared(piece.result):
                parts.append(part.carried(piece.result, piece.source))
        elif piece.result.holds(rect.x, rect.y) and piece.result.holds(rect.x + rect.width, rect.y + rect.height):
            return rect.carried(piece.result, piece.source)
    if not parts:
        return None
    x, y = min(part.x for part in parts), min(part.y for part in parts)
    right, bottom = max(part.x + part.width for part in parts), max(part.y + part.height for part in parts)
    return Rect(x, y, right - x, bottom - y)


def _written(value: float) -> Json:
    if not math.isfinite(value):
        return None  # JSON has no word for it
    return int(value) if float(value).is_integer() else value


def _clamped(value: float, top: int) -> int:
    return min(max(round(value), 0), top)
