"""Bitmaps as files: what is drawn or written stays sharp, a photograph becomes a JPEG of full colour."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

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
_PALETTES = (64, 32, 16)
_SAVING = 2  # how many times as heavy as the first of them a lossless file is, at least
_SOME = 2048  # colours that 256 may stand for
_UNSEEN = 4  # of 255
_FEW = 16  # colours for which four bits are enough


def drawn(bitmap: Bitmap) -> bool:
    """Few colours, counted on a grid of untouched pixels: a screenshot, a chart, a page; not a photograph."""
    grid = _grid(bitmap)
    pixels, bands = bytes(grid.write_to_memory()), grid.bands
    colours = Counter(pixels[at : at + bands] for at in range(0, len(pixels), bands))
    if bands < 3:
        # The edges of letters have all greys, too; but they stand on one.
        return len(colours) <= _FEW_GREYS or colours.most_common(1)[0][1] >= _GROUND * colours.total()
    return len(colours) <= max(_FEW_COLOURS, min(_SAMPLE**2, colours.total()) // 4)


def dark(bitmap: Bitmap) -> bool:
    """Light words on a dark ground, as far as the average tells."""
    light: float = _grid(bitmap).avg()
    return light < _DARK


def _grid(bitmap: Bitmap) -> Bitmap:
    return bitmap.subsample(max(1, bitmap.width // _SAMPLE), max(1, bitmap.height // _SAMPLE))


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
    """Without loss where that is light, then with ever fewer colours: words outlive that, and not a loss of pixels."""
    from PIL.Image import Dither, Quantize

    pillow = _pillow(bitmap)

    def few(colours: int) -> tuple[Format, bytes]:
        palette = pillow.quantize(colours, method=Quantize.FASTOCTREE, dither=Dither.NONE)
        return ("image/png", _png(palette)) if "image/png" in formats else ("image/webp", _webp(palette))

    palette, apart = _palette(pillow) if "image/png" in formats else (None, 0)
    if palette is not None and not apart:
        yield "image/png", _png(palette)
    lighter = few(_PALETTES[0])
    files: list[tuple[Format, bytes]] = [("image/png", _png(palette))] if palette is not None else []
    if len(lighter[1]) * _SAVING <= light or "image/png" not in formats:
        files.append(_lossless(bitmap, formats))
    yield from sorted((file for file in files if len(file[1]) <= light), key=lambda file: len(file[1]))[:1]
    yield lighter
    for colours in _PALETTES[1:]:
        yield few(colours)


def _lossless(bitmap: Bitmap, formats: Sequence[Format]) -> tuple[Format, bytes]:
    if "image/webp" in formats:
        return "image/webp", bitmap.webpsave_buffer(lossless=True, effort=2, keep="none")
    return "image/png", bitmap.pngsave_buffer(compression=6, keep="none")


def _pillow(bitmap: Bitmap) -> Pillow:
    """The same pixels where palettes are made: libvips chooses its own number of colours, at ten times the cost."""
    from PIL import Image

    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[bitmap.bands]
    pillow = Image.frombuffer(mode, (bitmap.width, bitmap.height), bitmap.write_to_memory(), "raw", mode, 0, 1)
    return pillow.convert("RGBA") if mode == "LA" else pillow


def _palette(pillow: Pillow) -> tuple[Pillow | None, int]:
    """The same pixels in at most 256 colours, or ones that no eye can tell from them, and how far they are apart."""
    from PIL.Image import Dither, Quantize
    from PIL.ImageChops import difference

    colours = pillow.getcolors(_SOME)
    if colours is None:
        return None, 0
    if pillow.mode == "L" and len(colours) > _FEW:
        return pillow, 0
    method = Quantize.FASTOCTREE if pillow.mode == "RGBA" else Quantize.MAXCOVERAGE
    palette = pillow.quantize(min(256, len(colours)), method=method, dither=Dither.NONE)
    counts = difference(palette.convert(pillow.mode), pillow).histogram()
    apart = max(place % 256 for place, count in enumerate(counts) if count)
    return (palette, apart) if apart <= _UNSEEN else (None, 0)


def _png(pillow: Pillow) -> bytes:
    file = io.BytesIO()
    pillow.save(file, "PNG", compress_level=6)
    return file.getvalue()


def _webp(pillow: Pillow) -> bytes:
    file = io.BytesIO()
    pillow.convert("RGBA" if pillow.has_transparency_data else "RGB").save(file, "WEBP", lossless=True, method=2)
    return file.getvalue()


def _jpeg(bitmap: Bitmap) -> bytes:
    page = bitmap.flatten(background=255) if bitmap.hasalpha() else bitmap
    data: bytes = page.jpegsave_buffer(Q=_QUALITY, subsample_mode="off", optimize_coding=True, keep="none")
    return data
