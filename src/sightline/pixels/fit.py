"""Refitting of images: the most legible one within the limits of whoever looks, and where its pixels come from."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, astuple, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, get_args

from sightline.model.geometry import Map, Piece, Rect, Size
from sightline.model.image import HELD_BYTES, MAX_BYTES, Fitted, Image, Part, Target
from sightline.model.refusal import Refusal
from sightline.model.sizing import Sizing
from sightline.pixels.bitmap import decode
from sightline.pixels.decode_limits import within_bounds
from sightline.pixels.encode import FORMATS, WEBP_EDGE, WEBP_PIXELS, dark, drawn, encoded, sampled
from sightline.pixels.fold import LEGIBLE, Sheet, sheets
from sightline.pixels.trim import Kept, bands, borders, ink

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from pyvips import Image as Bitmap

_PIXELS = HELD_BYTES // 3  # of an image that is made
_TRIMMING = 2  # how many times as many pixels as a target has room for a large image may have before it is trimmed
_STEP = 0.9  # from one scale to the next smaller one, at most
_TRIMMED = 1.02  # what cutting off borders has to bring, in scale
_NARROWED = 1.1  # what narrowing blank bands has to bring beyond that: it moves things closer together


def fit(data: bytes, target: Target) -> Fitted | Refusal:
    """The picture as `target` admits it, as legible as can be; the same for the same bytes and target."""
    picture = _unwritable(target) or within_bounds(data)
    if isinstance(picture, Refusal):
        return picture
    target = _encodable(target)
    bitmap = decode(data, picture, shrink_to=_needed(picture.size, target))
    return bitmap if isinstance(bitmap, Refusal) else _fitted(bitmap, picture.size, target)


def _needed(size: Size, target: Target) -> Size | None:
    """Return the size in which the whole image is needed at most, or None where every pixel may be.

    What is cut off or folded may be shown larger than the whole would be: up to all the room that a target has.
    """
    if target.plain:
        return target.largest(size)
    if size.pixels <= _PIXELS:
        return None
    room = target.images * target.largest(Size(size.edge, size.edge)).pixels
    return size.scaled(min(1.0, math.sqrt(_TRIMMING * room / size.pixels)))


def fit_bitmap(bitmap: Bitmap, source: Size, target: Target) -> Fitted | Refusal:
    """`fit`, for pixels that are no file: those of an image, or a part of one, that is as large as `source`."""
    return _unwritable(target) or _fitted(bitmap, source, _encodable(target))


def _unwritable(target: Target) -> Refusal | None:
    if set(FORMATS) & set(target.formats):
        return None
    return Refusal(
        "unsupported_type", f"an image cannot be made one of {', '.join(target.formats)}", "send it as a PNG or JPEG"
    )


def _encodable(target: Target) -> Target:
    """Return the target with the limits of what can be held and written."""
    if "image/png" in target.formats or "image/jpeg" in target.formats:
        return replace(target, pixels=min(target.pixels or _PIXELS, _PIXELS))
    edge, pixels = min(target.edge or WEBP_EDGE, WEBP_EDGE), min(target.pixels or WEBP_PIXELS, WEBP_PIXELS)
    return replace(target, edge=edge, pixels=pixels)


def _fitted(bitmap: Bitmap, source: Size, target: Target) -> Fitted | Refusal:
    grid = sampled(bitmap)
    written = drawn(grid)
    kept, laid = _arranged(bitmap, target, written=written)
    night = written and dark(_part(grid, kept))
    content = kept.applied(bitmap)
    each = target.shared(len(laid))
    parts = []
    for number, sheet in enumerate(laid, 1):
        made = _made(content, sheet, each, written=written, night=night)
        if isinstance(made, Refusal):
            return made
        image, scale = made
        where = _way(source, kept, sheet.map(kept.size, scale))
        tile = f"tile {number} of {len(laid)}, {_shown(where, tall=sheet.tall)}" if len(laid) > 1 else ""
        words = ", ".join(filter(None, (tile, sheet.words(), kept.words())))
        parts.append(Part(image, where, words))
    return Fitted(tuple(parts))


def _way(source: Size, kept: Kept, last: Map) -> Map:
    """From the file's own pixels: those that the decoder left out, those that were cut away, and the last step."""
    steps = [Map.scaled(source, kept.source)] if source != kept.source else []
    if kept != Kept.whole(kept.source):
        steps.append(kept.map)
    return reduce(Map.then, [*steps, last])


def _part(grid: Pillow, kept: Kept) -> Pillow:
    """The part of a grid that lies within the borders of what is kept."""
    across, down = grid.width / kept.source.width, grid.height / kept.source.height
    (left, right), (top, bottom) = ((spans[0][0], spans[-1][1]) for spans in (kept.columns, kept.rows))
    return grid.crop((int(left * across), int(top * down), math.ceil(right * across), math.ceil(bottom * down)))


def _arranged(bitmap: Bitmap, target: Target, *, written: bool) -> tuple[Kept, list[Sheet]]:
    """What stays of a bitmap, and on which sheets: all of it on one, wherever that is legible."""
    size = Size(bitmap.width, bitmap.height)
    best, laid = Kept.whole(size), [Sheet.whole(size)]
    if target.plain or target.takes(size):
        return best, laid
    found = ink(bitmap)
    laid = sheets(size, found, target, written=written)
    for kept, gain in ((borders(found), _TRIMMED), (bands(found), _NARROWED)):
        other = sheets(kept.size, kept.of(found), target, written=written)
        before, after = _scale(laid, target), _scale(other, target)
        if after >= gain * before or (len(other) < len(laid) and after >= min(before, LEGIBLE)):
            best, laid = kept, other
    return best, laid


def _scale(laid: list[Sheet], target: Target) -> float:
    return min(sheet.scale(target.shared(len(laid))) for sheet in laid)


def _made(
    content: Bitmap, sheet: Sheet, target: Target, *, written: bool, night: bool
) -> tuple[Image, float] | Refusal:
    """The largest of ever smaller versions, each made from the whole image, that is light enough."""
    limit = MAX_BYTES if target.encoded_bytes is None else min(MAX_BYTES, max(0, target.encoded_bytes) // 4 * 3)
    scale = sheet.scale(target)
    while target.takes(size := sheet.size(scale)):
        made = encoded(sheet.drawn(content, scale, dark=night).copy_memory(), target.formats, limit, written=written)
        if not isinstance(made, int):
            mime, data = made
            return _image(data, mime, size), scale
        if scale * sheet.edge < 2:
            break
        scale = sheet.scale(target, scale * min(_STEP, math.sqrt(limit / made)))
    return Refusal("too_large", "no image is as small as it would have to be", "raise the limits that it has to meet")


def _shown(where: Map, *, tall: bool) -> str:
    """Which part of the picture it is, along the side that was cut."""
    sources = [piece.source for piece in where.pieces]
    if tall:
        return f"rows {round(min(one.y for one in sources))}–{round(max(one.y + one.height for one in sources))}"
    return f"columns {round(min(one.x for one in sources))}–{round(max(one.x + one.width for one in sources))}"


def fit_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """`fit` for another process: the target and what was made of it as JSON, the files one after the other."""
    made = fit(data, target_of(arguments))
    return made if isinstance(made, Refusal) else answer(made)


def answer(made: Fitted) -> tuple[dict[str, Any], bytes]:
    """What was made, as a task answers it."""
    parts = [
        {
            "mime": part.image.mime,
            "bytes": len(part.image.data),
            "words": part.words,
            "source": astuple(part.map.source),
            "result": astuple(part.map.result),
            "pieces": [astuple(piece) for piece in part.map.pieces],
        }
        for part in made.parts
    ]
    return {"parts": parts}, b"".join(part.image.data for part in made.parts)


def task(target: Target) -> dict[str, Any]:
    """The arguments of a task that fits an image to `target`."""
    fields = asdict(target)
    if target.sizing is not None:
        fields["sizing"] = {"rule": type(target.sizing).__name__, **fields["sizing"]}
    return {"target": fields}


def fitted(result: dict[str, Any], data: bytes) -> Fitted:
    """What a task has made, read back."""
    parts, start = [], 0
    for part in result["parts"]:
        file = data[start : start + part["bytes"]]
        start += part["bytes"]
        pieces = tuple(Piece(Rect(*source), Rect(*end)) for source, end in part["pieces"])
        where = Map(Size(*part["source"]), Size(*part["result"]), pieces)
        parts.append(Part(_image(file, part["mime"], where.result), where, part["words"]))
    return Fitted(tuple(parts))


def target_of(arguments: dict[str, Any]) -> Target:
    """The target that `task` has written down."""
    fields = arguments["target"]
    rules = {rule.__name__: rule for rule in get_args(Sizing)}
    rule = dict(fields["sizing"]) if fields["sizing"] is not None else None
    made = rules[rule.pop("rule")](**rule) if rule is not None else None
    return Target(**{**fields, "formats": tuple(fields["formats"]), "sizing": made})


def _image(data: bytes, mime: str, size: Size) -> Image:
    return Image(hashlib.sha256(data).hexdigest(), mime, size, data)
