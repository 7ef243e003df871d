"""Formats that libvips does not read and Pillow does: BMP, icons and Photoshop files; and very large GIFs.

Pillow holds such an image whole, in its own depth. It is converted in strips of rows, since the plain kind of bitmap
takes several times as much memory.
"""

from __future__ import annotations

import io
import math
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sightline.model.geometry import Box, Size
from sightline.pixels.headers import icon
from sightline.pixels.probe import PNG, kind_of

if TYPE_CHECKING:
    from PIL.Image import Image as Pillowed
    from pyvips import Image as Bitmap

BY_PILLOW = frozenset({"image/bmp", "image/x-icon", "image/vnd.adobe.photoshop"})
_FORMATS = {"image/bmp": "BMP", "image/x-icon": "ICO", "image/vnd.adobe.photoshop": "PSD", "image/gif": "GIF"}
_STRIP = 1_000_000  # pixels that are converted at once


@contextmanager
def open_by_pillow(data: bytes, mime: str) -> Iterator[Pillowed]:
    """Open an image without decoding it. Decoding a broken or hostile file may raise anything."""
    from PIL import Image as Pillow

    with warnings.catch_warnings():
        # Pillow warns of large images and odd metadata; here the bounds are checked and metadata is dropped.
        warnings.simplefilter("ignore")
        with Pillow.open(io.BytesIO(data), formats=[_FORMATS[mime]]) as opened:
            yield opened


def only_picture(data: bytes) -> tuple[bytes, bool]:
    """Return the largest picture of an icon file, and whether it is a PNG; else it is an icon file of its own."""
    entry = icon(data)
    assert entry is not None, "the header has been read"
    body = data[entry.start : entry.start + entry.length]
    if kind_of(body) is PNG:
        return body, True
    wanted = (entry.length, entry.start)
    at = next(at for at in range(6, len(data), 16) if struct.unpack_from("<II", data, at + 8) == wanted)
    return b"\0\0\1\0\1\0" + data[at : at + 12] + struct.pack("<I", 22) + body, False


@dataclass(frozen=True, slots=True)
class Strips:
    """A part of an image of Pillow's, which becomes a bitmap strip by strip."""

    opened: Pillowed
    box: Box

    @property
    def mode(self) -> str:
        return "RGBA" if self.opened.has_transparency_data else "L" if self.opened.mode in ("1", "L") else "RGB"

    def bitmap(self, most: int) -> Bitmap:
        """Return the part with at most `most` pixels: each is the average of a square where there are more."""
        import pyvips

        by = max(1, math.ceil(math.sqrt(self.box.size.pixels / most)))
        width, height, bands = -(-self.box.width // by), -(-self.box.height // by), len(self.mode)
        pixels, end = bytearray(width * height * bands), 0
        for strip in self._strips(by):
            pixels[end : end + len(strip)] = strip
            end += len(strip)
        made = pyvips.Image.new_from_memory(pixels, width, height, bands, "uchar")
        return made.copy(interpretation="b-w" if bands == 1 else "srgb")

    def _strips(self, by: int) -> Iterator[bytes]:
        import pyvips

        box, mode = self.box, self.mode
        rows = max(1, _STRIP // box.width // by) * by
        for top in range(box.y, box.bottom, rows):
            piece = self.opened.crop((box.x, top, box.right, min(top + rows, box.bottom))).convert(mode)
            if by == 1:
                yield piece.tobytes()
                continue
            size = Size(*piece.size)
            strip = pyvips.Image.new_from_memory(piece.tobytes(), size.width, size.height, len(mode), "uchar")
            yield strip.shrink(by, by, ceil=True).write_to_memory()
