"""Fit an image, or a crop of it, to the limits of a model: the most legible version, and a map back to its source.

An image that is too large is scaled; if that makes its text too small to read, blank areas are trimmed, and a long page
is folded or cut into tiles. The same bytes and the same target always give the same result.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from sightline.model.geometry import Box, Crop, PixelMap, Size, check_crop_box, parse_crop, resolve_crop
from sightline.model.image import (
    LEGIBLE_SCALE,
    MAX_BITMAP_BYTES,
    MAX_FILE_BYTES,
    FitPart,
    FitResult,
    Image,
    ImageTarget,
)
from sightline.model.refusal import Refusal
from sightline.pixels import build_image, pack_fit_result, unpack_target
from sightline.pixels.bitmaps import TrimmedArea, measure_ink, trim_bands, trim_borders
from sightline.pixels.decode import decode, decode_part
from sightline.pixels.encode import FORMATS, WEBP_EDGE, WEBP_PIXELS, encode, is_dark, is_drawing, sample_grid
from sightline.pixels.fold import Sheet, lay_out_sheets
from sightline.pixels.probe import probe_within_limits

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from pyvips import Image as Bitmap

_MAX_PIXELS = MAX_BITMAP_BYTES // 3  # of a result
_TRIM_RESERVE = 2  # a large image is decoded to at most this many times the pixels of the target, then trimmed
_SCALE_STEP = 0.9  # the largest ratio of one scale to the one before
_TRIM_GAIN = 1.02  # how much larger an image without its borders must be
_NARROW_GAIN = 1.1  # the same for narrower blank bands, which move things closer together


def fit_image(data: bytes, target: ImageTarget) -> FitResult | Refusal:
    """Return the most legible version of an image that meets the target."""
    info = _check_formats(target) or probe_within_limits(data)
    if isinstance(info, Refusal):
        return info
    target = _limit_target(target)
    bitmap = decode(data, info, shrink_to=_choose_decode_size(info.size, target))
    return bitmap if isinstance(bitmap, Refusal) else _arrange_and_encode(bitmap, info.size, target)


def _choose_decode_size(size: Size, target: ImageTarget) -> Size | None:
    """Return the largest size in which the whole image may be needed; None: every pixel may be.

    After trimming or folding, what is left can be larger than the whole would be: up to the target's full size.
    """
    if target.keeps_geometry:
        return target.find_largest_size(size)
    if size.pixels <= _MAX_PIXELS:
        return None
    room = target.images * target.find_largest_size(Size(size.edge, size.edge)).pixels
    return size.scale(min(1.0, math.sqrt(_TRIM_RESERVE * room / size.pixels)))


def fit_bitmap(bitmap: Bitmap, source: Size, target: ImageTarget) -> FitResult | Refusal:
    """Fit decoded pixels; `source` is their size in the file, which is larger if the decoder shrank them."""
    return _check_formats(target) or _arrange_and_encode(bitmap, source, _limit_target(target))


def _check_formats(target: ImageTarget) -> Refusal | None:
    if set(FORMATS) & set(target.formats):
        return None
    return Refusal(
        "unsupported_type", f"images cannot be written as {', '.join(target.formats)}", "send it as a PNG or JPEG"
    )


def _limit_target(target: ImageTarget) -> ImageTarget:
    """Add the limits of our own memory and encoders to the target."""
    if "image/png" in target.formats or "image/jpeg" in target.formats:
        return replace(target, pixels=min(target.pixels or _MAX_PIXELS, _MAX_PIXELS))
    edge, pixels = min(target.edge or WEBP_EDGE, WEBP_EDGE), min(target.pixels or WEBP_PIXELS, WEBP_PIXELS)
    return replace(target, edge=edge, pixels=pixels)


def _arrange_and_encode(bitmap: Bitmap, source: Size, target: ImageTarget) -> FitResult | Refusal:
    grid = sample_grid(bitmap)
    drawing = is_drawing(grid)
    area, sheets = _arrange(bitmap, target, drawing=drawing)
    dark = drawing and is_dark(_crop_grid(grid, area))
    content = area.apply(bitmap)
    share = target.split_between(len(sheets))
    parts = []
    for number, sheet in enumerate(sheets, 1):
        encoded = _encode_sheet(content, sheet, share, drawing=drawing, dark=dark)
        if isinstance(encoded, Refusal):
            return encoded
        image, scale = encoded
        full_map = _combine_maps(source, area, sheet.build_map(area.size, scale))
        tile = f"tile {number} of {len(sheets)}, {_describe_range(full_map, tall=sheet.tall)}"
        words = ", ".join(filter(None, (tile if len(sheets) > 1 else "", sheet.describe(), area.describe())))
        parts.append(FitPart(image, full_map, words))
    return FitResult(tuple(parts))


def _combine_maps(source: Size, area: TrimmedArea, last: PixelMap) -> PixelMap:
    """Return the map from the file's pixels to the result: through decoding, trimming and the last step."""
    steps = [PixelMap.from_scaling(source, area.source)] if source != area.source else []
    if area != TrimmedArea.from_size(area.source):
        steps.append(area.map)
    return reduce(PixelMap.then, [*steps, last])


def _crop_grid(grid: Pillow, area: TrimmedArea) -> Pillow:
    """Return the part of a sample grid without the borders that were trimmed."""
    across, down = grid.width / area.source.width, grid.height / area.source.height
    (left, right), (top, bottom) = ((spans[0][0], spans[-1][1]) for spans in (area.columns, area.rows))
    return grid.crop((int(left * across), int(top * down), math.ceil(right * across), math.ceil(bottom * down)))


def _arrange(bitmap: Bitmap, target: ImageTarget, *, drawing: bool) -> tuple[TrimmedArea, list[Sheet]]:
    """Choose the area to keep and the sheets to lay it out on: everything on one sheet if that is legible."""
    size = Size(bitmap.width, bitmap.height)
    best, sheets = TrimmedArea.from_size(size), [Sheet.from_size(size)]
    if target.keeps_geometry or target.accepts_size(size):
        return best, sheets
    ink = measure_ink(bitmap)
    sheets = lay_out_sheets(size, ink, target, drawing=drawing)
    for area, gain in ((trim_borders(ink), _TRIM_GAIN), (trim_bands(ink), _NARROW_GAIN)):
        other = lay_out_sheets(area.size, area.select_ink(ink), target, drawing=drawing)
        before, after = _find_scale(sheets, target), _find_scale(other, target)
        if after >= gain * before or (len(other) < len(sheets) and after >= min(before, LEGIBLE_SCALE)):
            best, sheets = area, other
    return best, sheets


def _find_scale(sheets: list[Sheet], target: ImageTarget) -> float:
    return min(sheet.find_scale(target.split_between(len(sheets))) for sheet in sheets)


def _encode_sheet(
    content: Bitmap, sheet: Sheet, target: ImageTarget, *, drawing: bool, dark: bool
) -> tuple[Image, float] | Refusal:
    """Return the largest version whose file is light enough, and its scale. Each try starts from the original."""
    limit = (
        MAX_FILE_BYTES if target.encoded_bytes is None else min(MAX_FILE_BYTES, max(0, target.encoded_bytes) // 4 * 3)
    )
    scale = sheet.find_scale(target)
    while target.accepts_size(size := sheet.size_at(scale)):
        file = encode(sheet.draw(content, scale, dark=dark).copy_memory(), target.formats, limit, drawing=drawing)
        if not isinstance(file, int):
            mime, data = file
            return build_image(data, mime, size), scale
        if scale * sheet.edge < 2:
            break
        scale = sheet.find_scale(target, scale * min(_SCALE_STEP, math.sqrt(limit / file)))
    return Refusal("too_large", "the image cannot be made small enough for the limits", "raise the limits")


def _describe_range(full_map: PixelMap, *, tall: bool) -> str:
    """Return the rows or columns of the source that a tile shows."""
    sources = [piece.source for piece in full_map.pieces]
    if tall:
        return f"rows {round(min(one.y for one in sources))}–{round(max(one.y + one.height for one in sources))}"
    return f"columns {round(min(one.x for one in sources))}–{round(max(one.x + one.width for one in sources))}"


def fit_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Run `fit_image` in a worker; the reply has the parts as JSON, and their files one after another."""
    fitted = fit_image(data, unpack_target(arguments))
    return fitted if isinstance(fitted, Refusal) else pack_fit_result(fitted)


def crop_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Fit a crop in a worker; the reply also has the size of the whole image and the box of the crop."""
    info = probe_within_limits(data)
    crop = parse_crop(arguments["crop"])
    assert crop is not None, "crop_task needs a crop"
    if isinstance(info, Refusal):
        return info
    if isinstance(crop, Refusal):
        return crop
    decoded = decode_part(data, info, partial(_resolve_crop, crop))
    if isinstance(decoded, Refusal):
        return decoded
    fitted = fit_bitmap(decoded.bitmap, decoded.box.size, unpack_target(arguments))
    if isinstance(fitted, Refusal):
        return fitted
    facts, files = pack_fit_result(fitted)
    whole, box = decoded.full_size, decoded.box
    return {**facts, "whole": [whole.width, whole.height], "box": [box.x, box.y, box.width, box.height]}, files


def _resolve_crop(crop: Crop, size: Size) -> Box | Refusal:
    box = resolve_crop(crop, size)
    return box if isinstance(box, Refusal) else check_crop_box(box, size)
