"""Make a picture for a terminal: a PNG, or sixels, at most as wide as the terminal.

Sixels are a format of terminals. A picture is written in bands of six rows. Within a band, each colour is written as
one character per column, whose six bits say in which rows the colour is; then the next colour starts at the left again.
All of it is printable ASCII.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from sightline.model.refusal import Refusal
from sightline.pixels.bitmaps import to_pillow
from sightline.pixels.decode import decode_at_size
from sightline.pixels.probe import probe_within_limits

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

SIXEL_MIME = "image/x-sixel"
_MAX_PIXELS = 4_000_000
_COLOURS = 128  # terminals have at least 256
_BAND = 6  # rows
_LOWEST = 0x3F  # the character that has no bit set
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)


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
    return _RUN.sub(lambda run: b"!%d%b" % (len(run[0]), run[1]), characters)
