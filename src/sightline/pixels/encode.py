"""Bitmaps as files: what is drawn or written stays sharp, a photograph becomes a JPEG of full colour."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from sightline.pixels.bitmap import pillowed

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow
    from pyvips import Image as Bitmap

Format = Literal["image/png", "image/jpeg", "image/webp"]
"""What an image may be written as."""

FORMATS: tuple[Format, ...] = ("image/png", "image/jpeg", "image/webp")
WEBP_EDGE = 16_383
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
_EFFORT, _LITTLE = 6, 4  # to make a file light; little is enough for what hardly repeats itself
_FEW = 16  # colours for which four bits are enough


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
    for mime, data in _files(bitmap, formats, limit, written=written):
        if len(data) <= limit:
            return mime, data
        weights.append(len(data))
    return min(weights)


def _files(bitmap: Bitmap, formats: Sequence[str], limit: float, *, written: bool) -> Iterator[tuple[Format, bytes]]:
    taken = [mime for mime in FORMATS if mime in formats]
    if max(bitmap.width, bitmap.height) > WEBP_EDGE and taken != ["image/webp"]:
        taken = [mime for mime in taken if mime != "image/webp"]
    sharp = [mime for mime in taken if mime != "image/jpeg"]
    if written and sharp:
        yield from _sharp(bitmap, sharp, min(limit, LIGHT))
    elif "image/jpeg" in taken and not (bitmap.hasalpha() and sharp):
        yield "image/jpeg", _jpeg(bitmap)
    elif "image/webp" in taken:
        yield "image/webp", bitmap.webpsave_buffer(Q=_QUALITY, alpha_q=100, keep="none")
    else:
        yield "image/png", bitmap.pngsave_buffer(compression=6, keep="none")


def _sharp(bitmap: Bitmap, formats: Sequence[Format], light: float) -> Iterator[tuple[Format, bytes]]:
    """Few colours as they are, more in 256 that look the same; then ever fewer: words outlive that, and no other loss.

    Every pixel stays, if that is light, where 256 would be seen, as in a picture among the words; and where a page was
    not made smaller, since what repeats itself to the pixel is lighter so.
    """
    pillow = pillowed(bitmap)
    pillow = pillow.convert("RGBA") if pillow.mode == "LA" else pillow

    def file(palette: Pillow, effort: int = _EFFORT) -> tuple[Format, bytes]:
        return ("image/png", _png(palette, effort)) if "image/png" in formats else ("image/webp", _webp(palette))

    exact = _exact(pillow)
    if exact is not None:
        yield file(exact)
    else:
        palette = _palette(pillow)
        made, same = [file(palette, _LITTLE)], _same(palette, pillow)
        if len(made[0][1]) * _SAVING <= light and not (same and pillow.getcolors(_SOME) is None):
            made.insert(0, _lossless(bitmap, formats))
        made = [one for one in made if len(one[1]) <= light]
        yield from sorted(made, key=lambda one: len(one[1]) if same else 0)[:1]
    for colours in _PALETTES:
        yield file(_octree(pillow, colours))


def _lossless(bitmap: Bitmap, formats: Sequence[Format]) -> tuple[Format, bytes]:
    if "image/webp" in formats:
        return "image/webp", bitmap.webpsave_buffer(lossless=True, effort=2, keep="none")
    return "image/png", bitmap.pngsave_buffer(compression=6, keep="none")


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


def _jpeg(bitmap: Bitmap) -> bytes:
    page = bitmap.flatten(background=255) if bitmap.hasalpha() else bitmap
    data: bytes = page.jpegsave_buffer(Q=_QUALITY, subsample_mode="off", optimize_coding=True, keep="none")
    return data
