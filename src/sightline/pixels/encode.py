"""Bitmaps as files: what is drawn or written stays sharp, a photograph becomes a JPEG of full colour."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sightline.model.crop import inside
from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.pixels.bitmap import all_of, decode_part, pillowed, scaled
from sightline.pixels.decode_limits import within_bounds

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from pyvips import Image as Bitmap


Format = Literal["image/png", "image/jpeg", "image/webp"]
"""What an image may be written as."""

FORMATS: tuple[Format, ...] = ("image/png", "image/jpeg", "image/webp")
WEBP_EDGE = 16_383
WEBP_PIXELS = 16_000_000  # its encoder takes twenty times as much memory as the pixels
SHARP_PIXELS = 12_000_000  # of which colours are counted and palettes made; that takes sixteen bytes a pixel
LIGHT = 400_000  # bytes; a heavier lossless file is not worth it: with fewer colours words stay as they are
_SAMPLE = 128  # pixels on each side of the grid on which colours are counted
_FEW_COLOURS = 1024  # or a quarter of the grid: a photograph has more, a screenshot, a chart or a page fewer
_FEW_GREYS = 64
_GROUND = 0.4  # of the grid in one grey
_DARK = 96  # of 255
_QUALITY = 90
_PALETTE, _PALETTES = 256, (64, 32, 16)
_SAVING = 2  # how many times as heavy as a palette a lossless file is, at least
_KEPT = 16  # colours of a page that its palette has just as they are, however close together …
_OFTEN = 0.0005  # … if so much of the page has them
_APART = 4  # of 255, between two colours of a palette: closer ones are one
_SEEN = 16  # of 255, by which a pixel may differ unseen …
_WRONG = 0.001  # … and so many by more, before it is another picture
_SOME = 2048  # colours; a page that was made smaller has more
_EFFORT, _LITTLE, _QUICK = 6, 4, 2  # to make a file light; little is enough for what hardly repeats itself
_FEW = 16  # colours for which four bits are enough


class File(NamedTuple):
    """An image that was encoded. What is too heavy to be of use is weighed and not kept."""

    mime: Format
    weight: int
    data: bytes


def sampled(bitmap: Bitmap) -> Pillow:
    """A grid of untouched pixels: enough to tell what kind of picture it is."""
    return pillowed(bitmap.subsample(max(1, bitmap.width // _SAMPLE), max(1, bitmap.height // _SAMPLE)))


def drawn(grid: Pillow) -> bool:
    """Few colours: a screenshot, a chart, a page; not a photograph."""
    counts = [count for count, _ in _counts(grid)]
    if len(grid.getbands()) < 3:
        # The edges of letters have all greys, too; but they stand on one.
        return len(counts) <= _FEW_GREYS or max(counts) >= _GROUND * sum(counts)
    return len(counts) <= max(_FEW_COLOURS, min(_SAMPLE**2, sum(counts)) // 4)


def dark(grid: Pillow) -> bool:
    """Light words on a dark ground, as far as the average tells."""
    counts = grid.convert("L").histogram()
    return sum(grey * count for grey, count in enumerate(counts)) < _DARK * sum(counts)


def encoded(bitmap: Bitmap, formats: Sequence[str], limit: float, *, written: bool) -> tuple[Format, bytes] | int:
    """The first file, from the best way to the lightest, of at most `limit` bytes; else the bytes of the lightest."""
    weights = []
    for file in _files(bitmap, formats, limit, written=written):
        if file.weight <= limit:
            return file.mime, file.data
        weights.append(file.weight)
    return min(weights)


def _files(bitmap: Bitmap, formats: Sequence[str], limit: float, *, written: bool) -> Iterator[File]:
    taken = [mime for mime in FORMATS if mime in formats]
    pixels = bitmap.width * bitmap.height
    if (max(bitmap.width, bitmap.height) > WEBP_EDGE or pixels > WEBP_PIXELS) and taken != ["image/webp"]:
        taken = [mime for mime in taken if mime != "image/webp"]
    sharp = [mime for mime in taken if mime != "image/jpeg"]
    if written and sharp:
        yield from _sharp(bitmap, sharp, limit) if pixels <= SHARP_PIXELS else [_lossless(bitmap, sharp, limit)]
    elif "image/jpeg" in taken and not (bitmap.hasalpha() and sharp):
        yield _jpeg(bitmap, limit)
    elif "image/webp" in taken:
        yield _saved(bitmap, "image/webp", limit, Q=_QUALITY, alpha_q=100)
    else:
        yield _png_of_all(bitmap, limit)


def _saved(bitmap: Bitmap, mime: Format, limit: float, **options: Any) -> File:
    """Encode a bitmap; of a file of more than `limit` bytes only its weight is kept."""
    import pyvips

    kept, weight = io.BytesIO(), 0

    def write(piece: bytes) -> int:
        nonlocal weight
        weight += len(piece)
        if weight <= limit:
            kept.write(piece)
        return len(piece)

    target = pyvips.TargetCustom()
    target.on_write(write)
    getattr(bitmap, _SAVERS[mime])(target, keep="none", **options)
    return File(mime, weight, kept.getvalue() if weight <= limit else b"")


_SAVERS = {"image/png": "pngsave_target", "image/jpeg": "jpegsave_target", "image/webp": "webpsave_target"}


def _png_of_all(bitmap: Bitmap, limit: float) -> File:
    """Write every pixel; in a large image, in less time and some more bytes."""
    large = bitmap.width * bitmap.height > SHARP_PIXELS
    return _saved(bitmap, "image/png", limit, compression=_QUICK if large else _EFFORT)


def _sharp(bitmap: Bitmap, formats: Sequence[Format], limit: float) -> Iterator[File]:
    """Few colours as they are, more in 256 that look the same; then ever fewer: words outlive that, and no other loss.

    Every pixel stays, if that is light, where 256 would be seen, as in a picture among the words; and where a page was
    not made smaller, since what repeats itself to the pixel is lighter so.
    """
    light = min(limit, LIGHT)
    pillow = pillowed(bitmap)
    pillow = pillow.convert("RGBA") if pillow.mode == "LA" else pillow

    png = "image/png" in formats

    def file(palette: Pillow, effort: int = _EFFORT) -> File:
        data = _png(palette, effort) if png else _webp(palette)
        return File("image/png" if png else "image/webp", len(data), data)

    exact = _exact(pillow)
    if exact is not None:
        yield file(exact)
    else:
        palette = _palette(pillow)
        made, same = [file(palette, _LITTLE)], _same(palette, pillow)
        if made[0].weight * _SAVING <= light and not (same and pillow.getcolors(_SOME) is None):
            made.insert(0, _lossless(bitmap, formats, limit))
        made = [one for one in made if one.weight <= light]
        yield from sorted(made, key=lambda one: one.weight if same else 0)[:1]
    for colours in _PALETTES:
        yield file(_octree(pillow, colours))


def _lossless(bitmap: Bitmap, formats: Sequence[Format], limit: float) -> File:
    if "image/webp" in formats:
        return _saved(bitmap, "image/webp", limit, lossless=True, effort=2)
    return _png_of_all(bitmap, limit)


def _exact(pillow: Pillow) -> Pillow | None:
    """The very same pixels in at most 256 colours, where they have no more."""
    from PIL.Image import Dither, Quantize

    colours = pillow.getcolors(_PALETTE)
    if colours is None:
        return None
    if pillow.mode == "L" and len(colours) > _FEW:
        return _ramp(pillow)
    if pillow.mode == "RGB" and all(isinstance(one, tuple) and len(set(one)) == 1 for _, one in colours):
        return _exact(pillow.convert("L"))
    method = Quantize.FASTOCTREE if pillow.mode == "RGBA" else Quantize.MAXCOVERAGE
    palette = pillow.quantize(len(colours), method=method, dither=Dither.NONE)
    return palette if not sum(_faults(palette, pillow)[1:]) else None


def _ramp(pillow: Pillow) -> Pillow:
    """Greys as a palette: words weigh less so, since nothing is computed from their neighbours."""
    ramp = pillow.copy()
    ramp.putpalette(bytes(shade for grey in range(256) for shade in (grey, grey, grey)))
    return ramp


def _palette(pillow: Pillow) -> Pillow:
    """The picture in 256 colours: the most frequent ones as they are, the others by those that stand for many."""
    from PIL import Image

    if pillow.mode != "RGB":
        return _octree(pillow, _PALETTE)
    grid = pillow.resize([min(side, _SAMPLE) for side in pillow.size], Image.Resampling.NEAREST)
    often = _OFTEN * grid.width * grid.height
    counts = [(count, bytes(colour)) for count, colour in _counts(grid) if count >= often]
    kept = [colour for _, colour in sorted(counts, reverse=True)[:_KEPT]]
    several = _colours(bytes(_octree(_half(pillow), _PALETTE - _KEPT).getpalette() or ()))
    taken = {_about(colour) for colour in kept}
    others = [colour for colour in several if _about(colour) not in taken]
    palette = Image.new("P", (1, 1))
    palette.putpalette(b"".join([*kept, *others]))
    return pillow.quantize(palette=palette, dither=Image.Dither.NONE)


def _counts(pillow: Pillow) -> list[tuple[int, tuple[int, ...]]]:
    """Each colour, and how many pixels have it."""
    found = pillow.getcolors(pillow.width * pillow.height) or ()
    return [(count, colour if isinstance(colour, tuple) else (int(colour),)) for count, colour in found]


def _colours(pixels: bytes) -> list[bytes]:
    return [pixels[at : at + 3] for at in range(0, len(pixels), 3)]


def _about(colour: bytes) -> bytes:
    return bytes(shade // _APART for shade in colour)


def _half(pillow: Pillow) -> Pillow:
    """Every other pixel of every other row."""
    from PIL.Image import Resampling

    return pillow.resize([-(-side // 2) for side in pillow.size], Resampling.NEAREST)


def _octree(pillow: Pillow, colours: int) -> Pillow:
    from PIL.Image import Dither, Quantize

    return pillow.quantize(colours, method=Quantize.FASTOCTREE, dither=Dither.NONE)


def _same(palette: Pillow, pillow: Pillow) -> bool:
    """Whether hardly a pixel looks different, as far as a quarter of them tells."""
    faults = _faults(_half(palette), _half(pillow))
    return sum(faults[_SEEN + 1 :]) <= _WRONG * sum(faults)


def _faults(palette: Pillow, pillow: Pillow) -> list[int]:
    """How many values are off by 0, by 1, and so on."""
    from PIL.ImageChops import difference

    counts = difference(palette.convert(pillow.mode), pillow).histogram()
    return [sum(counts[by::256]) for by in range(256)]


def _png(pillow: Pillow, effort: int) -> bytes:
    file = io.BytesIO()
    pillow.save(file, "PNG", compress_level=effort)
    return file.getvalue()


def _webp(pillow: Pillow) -> bytes:
    file = io.BytesIO()
    pillow.convert("RGBA" if pillow.has_transparency_data else "RGB").save(file, "WEBP", lossless=True, method=2)
    return file.getvalue()


def _jpeg(bitmap: Bitmap, limit: float) -> File:
    """Write full colour. Coding it in the best way takes a second look at all of it, which a large image is not given.

    libjpeg holds all coefficients for that second look.
    """
    page = bitmap.flatten(background=255) if bitmap.hasalpha() else bitmap
    small = bitmap.width * bitmap.height <= SHARP_PIXELS
    return _saved(page, "image/jpeg", limit, Q=_QUALITY, subsample_mode="off", optimize_coding=small)


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
