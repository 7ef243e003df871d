"""Files of every format for tests, and what is not quite a file."""

from __future__ import annotations

import io
import random
import struct
import zlib
from typing import Any

from PIL import Image

FORMATS = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/webp": "WEBP",
    "image/gif": "GIF",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
    "image/avif": "AVIF",
}
RED, BLUE = (220, 30, 30), (20, 40, 200)


def saved(image: Image.Image, mime: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, FORMATS[mime], **options)
    return file.getvalue()


def flag(width: int, height: int) -> Image.Image:
    """A red corner at the top left, the rest blue: its orientation can be seen."""
    image = Image.new("RGB", (width, height), BLUE)
    image.paste(RED, (0, 0, width // 2, height // 2))
    return image


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    """Smooth light under grain: as many colours as a camera sees."""
    grain = Image.frombytes("RGB", (width, height), random.Random(seed).randbytes(width * height * 3))
    light = Image.linear_gradient("L").resize((width, height)).convert("RGB")
    return Image.blend(light, grain, 0.2)


def exif(orientation: int) -> bytes:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_of(width: int, height: int, size: int = 0) -> bytes:
    """A PNG of one kilobyte or so whose header claims any size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(size or 1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def gif_of(frames: int) -> bytes:
    """An animation in which one pixel blinks."""
    head = b"GIF89a" + struct.pack("<HHBBB", 8, 8, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"!\xf9\4\0\x0a\0\0\0" + b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\2\2\x44\1\0"
    return head + frame * frames + b";"


def icon_of(sides: dict[int, tuple[int, int, int]], kind: str) -> bytes:
    """An icon file with a square of one colour for each side."""
    pictures = [Image.new("RGBA", (side, side), (*colour, 255)) for side, colour in sides.items()]
    file = io.BytesIO()
    largest = max(pictures, key=lambda each: each.width)
    sizes = [each.size for each in pictures]
    largest.save(file, "ICO", sizes=sizes, append_images=pictures, bitmap_format=kind)
    return file.getvalue()


def psd_of(image: Image.Image) -> bytes:
    """A Photoshop file without layers: a header, three empty sections, and the channels one after another."""
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, 3, image.height, image.width, 8, 3)
    return head + bytes(12) + b"\0\0" + b"".join(channel.tobytes() for channel in image.split())
