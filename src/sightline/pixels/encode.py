"""Encode bitmaps: drawings and text stay sharp (PNG or lossless WebP), photographs become JPEG. Terminals get sixels.

Sixels are written in bands of six rows. Within a band, each colour is written as one character per column, whose six
bits say in which rows the colour is; then the next colour starts at the left again. All of it is printable ASCII.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sightline.model.geometry import Box, Size, check_crop_box
from sightline.model.refusal import Refusal
from sightline.pixels.bitmaps import resize_bitmap, to_pillow
from sightline.pixels.decode import choose_whole, decode_at_size, decode_part
from sightline.pixels.probe import probe_within_limits

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from pyvips import Image as Bitmap

Format = Literal["image/png", "image/jpeg", "image/webp"]
"""The formats in which images are written."""

FORMATS: tuple[Format, ...] = ("image/png", "image/jpeg", "image/webp")
WEBP_EDGE = 16_383
WEBP_PIXELS = 16_000_000  # its encoder needs twenty times the memory of the pixels
SHARP_PIXELS = 12_000_000  # of an image that gets a palette: counting its colours takes sixteen bytes a pixel
LIGHT_BYTES = 400_000  # a heavier lossless file is not worth it: text looks the same in fewer colours
_GRID_SIDE = 128  # pixels: the side of the grid in which colours are counted
_FEW_COLOURS = 1024  # or a quarter of the grid: a photograph has more, a screenshot, a chart or a page fewer
_FEW_GREYS = 64
_BACKGROUND_SHARE = 0.4  # of the grid that has one grey
_DARK_GREY = 96  # of 255
_QUALITY = 90
_PALETTE_SIZE, _SMALLER_PALETTES = 256, (64, 32, 16)
_MIN_SAVING = 2  # a lossless file is assumed to be at least this many times as long as one with a palette
_EXACT_COLOURS = 16  # colours that a palette has exactly, however similar they are …
_FREQUENT_SHARE = 0.0005  # … if they cover this share of the image
_COLOUR_STEP = 4  # of 255; closer colours are one colour of a palette
_VISIBLE_DIFFERENCE = 16  # of 255; a smaller difference is not visible …
_MAX_WRONG_SHARE = 0.001  # … and this share of pixels may differ more
_MANY_COLOURS = 2048  # a page that was scaled has more colours
_FULL_EFFORT, _LOW_EFFORT, _QUICK_EFFORT = 6, 4, 2  # of compression; low is enough where little repeats itself
_FOUR_BIT_COLOURS = 16  # that fit into four bits


class EncodedFile(NamedTuple):
    """An encoded image; `data` is empty if it is longer than the limit."""

    mime: Format
    length: int
    data: bytes


def sample_grid(bitmap: Bitmap) -> Pillow:
    """Return a grid of unfiltered pixels: enough to tell drawings from photographs."""
    return to_pillow(bitmap.subsample(max(1, bitmap.width // _GRID_SIDE), max(1, bitmap.height // _GRID_SIDE)))


def is_drawing(grid: Pillow) -> bool:
    """Return whether an image has few colours, as a screenshot, a chart or a page has and a photograph hasn't."""
    counts = [count for count, _ in _count_colours(grid)]
    if len(grid.getbands()) < 3:
        # The edges of letters have all greys, but most of a page has one.
        return len(counts) <= _FEW_GREYS or max(counts) >= _BACKGROUND_SHARE * sum(counts)
    return len(counts) <= max(_FEW_COLOURS, min(_GRID_SIDE**2, sum(counts)) // 4)


def is_dark(grid: Pillow) -> bool:
    """Return whether an image is dark on average, as light text on a dark background is."""
    counts = grid.convert("L").histogram()
    return sum(grey * count for grey, count in enumerate(counts)) < _DARK_GREY * sum(counts)


def encode(bitmap: Bitmap, formats: Sequence[str], limit: float, *, drawing: bool) -> tuple[Format, bytes] | int:
    """Return the best file of at most `limit` bytes, or the length of the lightest if all are longer."""
    lengths = []
    for file in _encode_candidates(bitmap, formats, limit, drawing=drawing):
        if file.length <= limit:
            return file.mime, file.data
        lengths.append(file.length)
    return min(lengths)


def _encode_candidates(bitmap: Bitmap, formats: Sequence[str], limit: float, *, drawing: bool) -> Iterator[EncodedFile]:
    accepted = [mime for mime in FORMATS if mime in formats]
    pixels = bitmap.width * bitmap.height
    if (max(bitmap.width, bitmap.height) > WEBP_EDGE or pixels > WEBP_PIXELS) and accepted != ["image/webp"]:
        accepted = [mime for mime in accepted if mime != "image/webp"]
    sharp = [mime for mime in accepted if mime != "image/jpeg"]
    if drawing and sharp:
        yield from (
            _encode_sharp(bitmap, sharp, limit) if pixels <= SHARP_PIXELS else [_encode_lossless(bitmap, sharp, limit)]
        )
    elif "image/jpeg" in accepted and not (bitmap.hasalpha() and sharp):
        yield _save_jpeg(bitmap, limit)
    elif "image/webp" in accepted:
        yield _save(bitmap, "image/webp", limit, Q=_QUALITY, alpha_q=100)
    else:
        yield _save_png(bitmap, limit)


def _save(bitmap: Bitmap, mime: Format, limit: float, **options: Any) -> EncodedFile:
    """Encode a bitmap by libvips; if the file is longer than `limit`, only its length is kept."""
    import pyvips

    content, length = io.BytesIO(), 0

    def write(piece: bytes) -> int:
        nonlocal length
        length += len(piece)
        if length <= limit:
            content.write(piece)
        return len(piece)

    target = pyvips.TargetCustom()
    target.on_write(write)
    getattr(bitmap, _SAVERS[mime])(target, keep="none", **options)
    return EncodedFile(mime, length, content.getvalue() if length <= limit else b"")


_SAVERS = {"image/png": "pngsave_target", "image/jpeg": "jpegsave_target", "image/webp": "webpsave_target"}


def _save_png(bitmap: Bitmap, limit: float) -> EncodedFile:
    """Write a PNG of every pixel; for a large image in less time, with some more bytes."""
    large = bitmap.width * bitmap.height > SHARP_PIXELS
    return _save(bitmap, "image/png", limit, compression=_QUICK_EFFORT if large else _FULL_EFFORT)


def _encode_sharp(bitmap: Bitmap, formats: Sequence[Format], limit: float) -> Iterator[EncodedFile]:
    """Yield versions with fewer and fewer colours: text survives that, and no other loss.

    Few colours are kept exactly; more are reduced to 256 that look the same. A lossless version comes first if it is
    light and 256 colours would be visible, as in a photograph on a page, or if the page was not scaled: then its
    patterns repeat exactly, and compress well.
    """
    light = min(limit, LIGHT_BYTES)
    pillow = to_pillow(bitmap)
    pillow = pillow.convert("RGBA") if pillow.mode == "LA" else pillow

    png = "image/png" in formats

    def file(palette: Pillow, effort: int = _FULL_EFFORT) -> EncodedFile:
        data = _write_png(palette, effort) if png else _write_webp(palette)
        return EncodedFile("image/png" if png else "image/webp", len(data), data)

    exact = _quantize_exactly(pillow)
    if exact is not None:
        yield file(exact)
    else:
        palette = _quantize(pillow)
        candidates, same = [file(palette, _LOW_EFFORT)], _looks_same(palette, pillow)
        if candidates[0].length * _MIN_SAVING <= light and not (same and pillow.getcolors(_MANY_COLOURS) is None):
            candidates.insert(0, _encode_lossless(bitmap, formats, limit))
        candidates = [each for each in candidates if each.length <= light]
        yield from sorted(candidates, key=lambda each: each.length if same else 0)[:1]
    for colours in _SMALLER_PALETTES:
        yield file(_quantize_octree(pillow, colours))


def _encode_lossless(bitmap: Bitmap, formats: Sequence[Format], limit: float) -> EncodedFile:
    if "image/webp" in formats:
        return _save(bitmap, "image/webp", limit, lossless=True, effort=2)
    return _save_png(bitmap, limit)


def _quantize_exactly(pillow: Pillow) -> Pillow | None:
    """Return the same pixels with a palette, or None if they have more than 256 colours."""
    from PIL.Image import Dither, Quantize

    colours = pillow.getcolors(_PALETTE_SIZE)
    if colours is None:
        return None
    if pillow.mode == "L" and len(colours) > _FOUR_BIT_COLOURS:
        return _to_grey_palette(pillow)
    if pillow.mode == "RGB" and all(isinstance(one, tuple) and len(set(one)) == 1 for _, one in colours):
        return _quantize_exactly(pillow.convert("L"))
    method = Quantize.FASTOCTREE if pillow.mode == "RGBA" else Quantize.MAXCOVERAGE
    palette = pillow.quantize(len(colours), method=method, dither=Dither.NONE)
    return palette if not sum(_count_differences(palette, pillow)[1:]) else None


def _to_grey_palette(pillow: Pillow) -> Pillow:
    """Return greys as a palette: text is lighter in it, because PNG filters do not apply."""
    ramp = pillow.copy()
    ramp.putpalette(bytes(shade for grey in range(256) for shade in (grey, grey, grey)))
    return ramp


def _quantize(pillow: Pillow) -> Pillow:
    """Reduce to 256 colours: the most frequent ones exactly, the others to representatives."""
    from PIL import Image

    if pillow.mode != "RGB":
        return _quantize_octree(pillow, _PALETTE_SIZE)
    grid = pillow.resize([min(side, _GRID_SIDE) for side in pillow.size], Image.Resampling.NEAREST)
    often = _FREQUENT_SHARE * grid.width * grid.height
    counts = [(count, bytes(colour)) for count, colour in _count_colours(grid) if count >= often]
    exact = [colour for _, colour in sorted(counts, reverse=True)[:_EXACT_COLOURS]]
    several = _split_colours(bytes(_quantize_octree(_halve(pillow), _PALETTE_SIZE - _EXACT_COLOURS).getpalette() or ()))
    known = {_coarsen_colour(colour) for colour in exact}
    others = [colour for colour in several if _coarsen_colour(colour) not in known]
    palette = Image.new("P", (1, 1))
    palette.putpalette(b"".join([*exact, *others]))
    return pillow.quantize(palette=palette, dither=Image.Dither.NONE)


def _count_colours(pillow: Pillow) -> list[tuple[int, tuple[int, ...]]]:
    """Return each colour with its number of pixels."""
    found = pillow.getcolors(pillow.width * pillow.height) or ()
    return [(count, colour if isinstance(colour, tuple) else (int(colour),)) for count, colour in found]


def _split_colours(pixels: bytes) -> list[bytes]:
    return [pixels[at : at + 3] for at in range(0, len(pixels), 3)]


def _coarsen_colour(colour: bytes) -> bytes:
    return bytes(shade // _COLOUR_STEP for shade in colour)


def _halve(pillow: Pillow) -> Pillow:
    """Return every other pixel of every other row."""
    from PIL.Image import Resampling

    return pillow.resize([-(-side // 2) for side in pillow.size], Resampling.NEAREST)


def _quantize_octree(pillow: Pillow, colours: int) -> Pillow:
    from PIL.Image import Dither, Quantize

    return pillow.quantize(colours, method=Quantize.FASTOCTREE, dither=Dither.NONE)


def _looks_same(palette: Pillow, pillow: Pillow) -> bool:
    """Return whether hardly any pixel looks different; a quarter of them are compared."""
    faults = _count_differences(_halve(palette), _halve(pillow))
    return sum(faults[_VISIBLE_DIFFERENCE + 1 :]) <= _MAX_WRONG_SHARE * sum(faults)


def _count_differences(palette: Pillow, pillow: Pillow) -> list[int]:
    """Return how many values differ by 0, by 1, and so on."""
    from PIL.ImageChops import difference

    counts = difference(palette.convert(pillow.mode), pillow).histogram()
    return [sum(counts[by::256]) for by in range(256)]


def _write_png(pillow: Pillow, effort: int) -> bytes:
    file = io.BytesIO()
    pillow.save(file, "PNG", compress_level=effort)
    return file.getvalue()


def _write_webp(pillow: Pillow) -> bytes:
    file = io.BytesIO()
    pillow.convert("RGBA" if pillow.has_transparency_data else "RGB").save(file, "WEBP", lossless=True, method=2)
    return file.getvalue()


def _save_jpeg(bitmap: Bitmap, limit: float) -> EncodedFile:
    """Write a JPEG of full colour. The coding of a large image isn't optimized: that takes too much memory."""
    page = bitmap.flatten(background=255) if bitmap.hasalpha() else bitmap
    small = bitmap.width * bitmap.height <= SHARP_PIXELS
    return _save(page, "image/jpeg", limit, Q=_QUALITY, subsample_mode="off", optimize_coding=small)


_TOO_HEAVY = Refusal("too_large", "no file of the image is small enough for the model", "crop a smaller part")


def exact_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Scale a box of an image in a worker, without trimming or folding, so that coordinates stay valid."""
    info, box = probe_within_limits(data), arguments["box"]
    choose = partial(check_crop_box, Box(*box)) if box else choose_whole
    size = Size(*arguments["size"])
    decoded = info if isinstance(info, Refusal) else decode_part(data, info, choose, shrink_to=size)
    if isinstance(decoded, Refusal):
        return decoded
    resized = resize_bitmap(decoded.bitmap, size).copy_memory()
    file = encode(resized, arguments["formats"], arguments["bytes"], drawing=is_drawing(sample_grid(resized)))
    if isinstance(file, int):
        return _TOO_HEAVY
    mime, content = file
    return {
        "mime": mime,
        "size": [size.width, size.height],
        "whole": [decoded.full_size.width, decoded.full_size.height],
    }, content


# Pictures for terminals


SIXEL_MIME = "image/x-sixel"
_MAX_PIXELS = 4_000_000
_COLOURS = 128  # terminals have at least 256
_BAND = 6  # rows
_LOWEST = 0x3F  # the character that has no bit set
_RUN = rb"(?s)(.)\1{3,}"


def terminal_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Return an image of at most `width` pixels across, of type `mime`: PNG or sixels. Transparent areas are white."""
    info = probe_within_limits(data)
    if isinstance(info, Refusal):
        return info
    scale = min(1.0, arguments["width"] / info.size.width, (_MAX_PIXELS / info.size.pixels) ** 0.5)
    size = info.size.scale(scale)
    bitmap = decode_at_size(data, info, size)
    if isinstance(bitmap, Refusal):
        return bitmap
    if bitmap.hasalpha():
        bitmap = bitmap.flatten(background=[255] * (bitmap.bands - 1))
    is_sixel = arguments["mime"] == SIXEL_MIME
    made = encode_sixels(to_pillow(bitmap)) if is_sixel else bytes(bitmap.pngsave_buffer(compression=4, keep="none"))
    return {"width": size.width, "height": size.height}, made


def encode_sixels(picture: Pillow) -> bytes:
    """Return a picture as sixels, without the escape sequences around them."""
    from PIL import Image

    reduced = picture.convert("RGB").quantize(_COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    levels = reduced.getpalette() or []
    pixels, width, height = reduced.tobytes(), *reduced.size
    rows = [pixels[at : at + width] for at in range(0, len(pixels), width)]
    pieces = [f'"1;1;{width};{height}'.encode()]
    for colour in sorted(set(pixels)):
        red, green, blue = (round(level * 100 / 255) for level in levels[colour * 3 : colour * 3 + 3])
        pieces.append(b"#%d;2;%d;%d;%d" % (colour, red, green, blue))
    pieces += [_encode_band(rows[at : at + _BAND]) + b"-" for at in range(0, height, _BAND)]
    return b"\n".join(pieces)


def _encode_band(rows: list[bytes]) -> bytes:
    return b"$".join(b"#%d%b" % (colour, _encode_colour(rows, colour)) for colour in sorted(set(b"".join(rows))))


def _encode_colour(rows: list[bytes], colour: int) -> bytes:
    """Return the characters of one colour in a band, with runs abbreviated."""
    masks = (
        int.from_bytes(row.translate(bytes(1 << number if value == colour else 0 for value in range(256))))
        for number, row in enumerate(rows)
    )
    columns = reduce(or_, masks).to_bytes(len(rows[0]))
    characters = columns.rstrip(b"\0").translate(bytes((_LOWEST + value) & 0xFF for value in range(256)))
    return re.sub(_RUN, lambda run: b"!%d%b" % (len(run[0]), run[1]), characters)
