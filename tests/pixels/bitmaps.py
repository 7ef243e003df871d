"""Image files of every format for tests, sound and damaged."""

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
    """Draw a red corner at the top left of a blue image, which shows its orientation."""
    image = Image.new("RGB", (width, height), BLUE)
    image.paste(RED, (0, 0, width // 2, height // 2))
    return image


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    """Draw a gradient with grain: as many colours as a photograph has."""
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
    """Return a PNG of about one kilobyte whose header claims any size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(size or 1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def gif_of(frames: int) -> bytes:
    """Return an animation in which one pixel blinks."""
    head = b"GIF89a" + struct.pack("<HHBBB", 8, 8, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"!\xf9\4\0\x0a\0\0\0" + b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\2\2\x44\1\0"
    return head + frame * frames + b";"


def gif_on(screen: tuple[int, int], place: tuple[int, int], *frames: Image.Image) -> bytes:
    """Return a GIF with frames anywhere on a screen of any size, or beyond it."""
    files = [saved(frame.quantize(16), "image/gif") for frame in frames]
    starts = [13 + 3 * 2 ** ((file[10] & 7) + 1) for file in files]
    bodies = []
    for file, start in zip(files, starts, strict=True):
        at = file.index(b",", start)
        table = file[13:start]
        size = struct.pack("<HHHHB", *place, *struct.unpack_from("<HH", file, at + 5), 0x80 | file[10] & 7)
        bodies.append(b"," + size + table + file[at + 10 : -1])
    return b"GIF89a" + struct.pack("<HHBBB", *screen, 0, 0, 0) + b"".join(bodies) + b";"


def late_exif(turn: int) -> bytes:
    """Return a PNG with its orientation after its pixels."""
    data = saved(flag(64, 32), "image/png")
    return data[:-12] + chunk(b"eXIf", exif(turn)[6:]) + data[-12:]


def data_first(image: Image.Image) -> bytes:
    """Return an AVIF with its pixels before their description."""
    data = saved(image, "image/avif")
    head, meta = (int.from_bytes(data[at : at + 4], "big") for at in (0, 32))
    assert data[4:8] == b"ftyp"
    assert data[36:40] == b"meta"
    pixels = data[head + meta :]
    assert pixels[4:8] == b"mdat"
    where = struct.pack(">I", head + meta + 8)
    assert data.count(where) == 1, "the place of the pixels"
    return data[:head] + pixels + data[head : head + meta].replace(where, struct.pack(">I", head + 8))


def icon_of(sides: dict[int, tuple[int, int, int]], kind: str) -> bytes:
    """Return an icon file with a square of one colour for each size."""
    pictures = [Image.new("RGBA", (side, side), (*colour, 255)) for side, colour in sides.items()]
    file = io.BytesIO()
    largest = max(pictures, key=lambda each: each.width)
    sizes = [each.size for each in pictures]
    largest.save(file, "ICO", sizes=sizes, append_images=pictures, bitmap_format=kind)
    return file.getvalue()


def psd_of(image: Image.Image) -> bytes:
    """Return a Photoshop file without layers: a header, three empty sections, and the channels."""
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, 3, image.height, image.width, 8, 3)
    return head + bytes(12) + b"\0\0" + b"".join(channel.tobytes() for channel in image.split())


# An AVIF in which the name of a box is no text.
POISON = saved(flag(40, 30), "image/avif", exif=exif(6)).replace(b"irot", b"i\xeeot")
