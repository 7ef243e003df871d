"""Small files of very large images, of every format, built quickly."""

from __future__ import annotations

import io
import struct
import zlib
from itertools import chain

from PIL import Image

from tests.pixels.bitmaps import chunk, exif

# Columns and rows of the seven passes of an interlaced PNG: where each begins, and how far apart they are.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_MIB = 1 << 20


def png(width: int, height: int, *, depth: int = 8, colour: int = 2, interlaced: bool = False) -> bytes:
    """Return a black image, or a transparent one if it has an alpha channel."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    passes = _PASSES if interlaced else ((0, 0, 1, 1),)
    length = sum(
        -(-(height - y) // down) * (1 + (-(-(width - x) // across) * channels * depth + 7) // 8)
        for x, y, across, down in passes
    )
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    body = chunk(b"IDAT", _compress_zeros(length))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def _compress_zeros(length: int) -> bytes:
    """Return a zlib stream of that many zero bytes: one compressed mebibyte, repeated, and the rest."""
    first, last = zlib.compressobj(1, wbits=-15), zlib.compressobj(1, wbits=-15)
    mebibyte = first.compress(bytes(_MIB)) + first.flush(zlib.Z_FULL_FLUSH)
    count, rest = divmod(length, _MIB)
    checksum = (length % 65521) << 16 | 1  # Adler-32
    return b"\x78\x01" + mebibyte * count + last.compress(bytes(rest)) + last.flush() + struct.pack(">I", checksum)


def jpeg(width: int, height: int, mode: str = "RGB", *, turn: int = 1) -> bytes:
    """Return an image of one colour: the same few bits for each unit of blocks."""
    file = io.BytesIO()
    Image.new(mode, (16, 16)).save(file, "JPEG", exif=exif(turn) if turn > 1 else b"")
    head = file.getvalue()
    side, unit = {"RGB": (16, b"\x28\xa2\x8a\x00"), "CMYK": (8, b"\x28\xa2\x8a")}[mode]
    units = -(-width // side) * -(-height // side)
    start = head.index(b"\xff\xda")
    scan = start + 2 + int.from_bytes(head[start + 2 : start + 4], "big")
    return _resized_jpeg(head[:scan], width, height) + unit * units + b"\xff\xd9"


def progressive_jpeg(width: int, height: int, *, subsampling: str) -> bytes:
    """Return a file with a correct header and the bits of a smaller image."""
    file = io.BytesIO()
    Image.new("RGB", (64, 64)).save(file, "JPEG", progressive=True, subsampling=subsampling)
    return _resized_jpeg(file.getvalue(), width, height)


def _resized_jpeg(data: bytes, width: int, height: int) -> bytes:
    at = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
    return data[: at + 5] + struct.pack(">HH", height, width) + data[at + 9 :]


def lossless_webp(width: int, height: int) -> bytes:
    """Return an image of one colour, whose pixels take no bits."""
    size = struct.pack("<I", (width - 1) | (height - 1) << 14)
    body = b"VP8L" + struct.pack("<I", 18) + b"\x2f" + size + bytes.fromhex("07509e7a54abff8188e87f0000")
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def bmp(width: int, height: int, bits: int, *, packed: bool = False) -> bytes:
    """Return an image of one colour of a palette, plain or run-length encoded."""
    palette = bytes(chain.from_iterable((shade, 0, 0, 0) for shade in range(1 << bits)))
    if packed:
        runs, rest = divmod(width, 255)
        row = b"\xff\x05" * runs + (bytes((rest, 5)) if rest else b"") + b"\0\0"
        body = row * height + b"\0\1"
    else:
        body = bytes((width * bits + 31) // 32 * 4 * height)
    start = 54 + len(palette)
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, int(packed), len(body), 0, 0, 1 << bits, 0)
    return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + head + palette + body


def psd(width: int, height: int) -> bytes:
    """Return an image of three channels, with each row packed into a few runs."""
    runs, rest = divmod(width, 128)
    row = b"\x81\x07" * runs + (b"\0\7" * rest if rest < 2 else bytes((257 - rest, 7)))
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, 3, height, width, 8, 3) + bytes(12) + b"\0\1"
    return head + struct.pack(">H", len(row)) * (3 * height) + row * (3 * height)


def gif(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("P", (width, height)).save(file, "GIF")
    return file.getvalue()


def icon(inner: bytes) -> bytes:
    """Return an icon file whose largest picture is this PNG."""
    return b"\0\0\1\0\1\0" + struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(inner), 22) + inner


def tiff(width: int, height: int, *, sample: int = 1, rows: int | None = None, tile: int = 0) -> bytes:
    """Return a black image in strips or tiles; samples of 1 and 2 bytes are integers, of 4 real numbers."""
    across, down = (tile, tile) if tile else (width, rows or 16)
    piece = _compress_zeros(across * down * 3 * sample)
    count = -(-width // across) * -(-height // down)
    tags = {
        256: (4, [width]), 257: (4, [height]), 258: (3, [8 * sample] * 3), 259: (3, [8]), 262: (3, [2]), 277: (3, [3]),
        339: (3, [3 if sample == 4 else 1] * 3),
        **({322: (4, [tile]), 323: (4, [tile])} if tile else {278: (4, [down])}),
        **dict(zip((324, 325) if tile else (273, 279), ((4, [8] * count), (4, [len(piece)] * count)), strict=True)),
    }  # fmt: skip
    extra, entries = bytearray(), bytearray()
    first = 8 + len(piece) + (len(piece) & 1)
    values_at = first + 2 + 12 * len(tags) + 4
    for tag, (kind, values) in sorted(tags.items()):
        written = struct.pack(f"<{len(values)}{'H' if kind == 3 else 'I'}", *values)
        place = written.ljust(4, b"\0") if len(written) <= 4 else struct.pack("<I", values_at + len(extra))
        extra += written if len(written) > 4 else b""
        entries += struct.pack("<HHI", tag, kind, len(values)) + place
    directory = struct.pack("<H", len(tags)) + bytes(entries) + bytes(4)
    return b"II*\0" + struct.pack("<I", first) + piece.ljust(first - 8, b"\0") + directory + bytes(extra)
