"""What may be decoded: limits on bytes, edges, pixels and memory, all checked before a decoder starts.

A worker may use `WORKER_MEMORY`. Most formats are decoded row by row, so only the pixels that are kept count: at most
`HELD_BYTES` of them. Some decoders hold the whole image while they work (an interlaced PNG, a progressive JPEG, a GIF).
`decoder_memory` says how much that is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from sightline.model.geometry import Size
from sightline.model.image import MAX_BYTES, MAX_EDGE, MAX_PIXELS, MAX_WHOLE_PIXELS, WORKER_MEMORY, Picture
from sightline.model.refusal import Refusal
from sightline.pixels.headers import gif_frame
from sightline.pixels.probe import probe

_RESERVED = 58_000_000  # bytes for the interpreter, the libraries and the rows that are being worked on

_SMALL = 20_000_000  # pixels: whatever the format, its decoder has enough memory
_PIECES = 4096  # segments or chunks that are looked at


def within_bounds(data: bytes) -> Picture | Refusal:
    """Return what the header says, or a refusal where it announces more than may be decoded."""
    if len(data) > MAX_BYTES:
        return Refusal("too_large", f"the image has {len(data):,} bytes", f"send at most {MAX_BYTES:,}")
    picture = probe(data, len(data))
    assert picture is not None, "a whole file always has an answer"
    return picture if isinstance(picture, Refusal) else beyond_bounds(data, picture) or picture


def beyond_bounds(data: bytes, picture: Picture) -> Refusal | None:
    """Return why an image of this size and format is not decoded, or None."""
    size = picture.size
    needed = decoder_memory(data, picture) if size.pixels > _SMALL else 0
    most = MAX_WHOLE_PIXELS if needed or picture.mime in _ALWAYS_WHOLE else MAX_PIXELS
    if size.edge > MAX_EDGE or size.pixels > most:
        limits = f"send at most {MAX_EDGE:,} on each side and {most:,} in all"
        return Refusal("too_large", f"the image is {size} pixels", limits)
    if needed > room_for_decoder(data):
        what = f"the image is {size} pixels, and {_NAMES[picture.mime]} has to be decoded as a whole"
        return Refusal("too_large", f"{what}: that needs too much memory", "send a smaller one, or a plain JPEG or PNG")
    return None


def room_for_decoder(data: bytes) -> int:
    """Return how many bytes are left for a decoder and for the pixels that it makes."""
    return WORKER_MEMORY - _RESERVED - len(data)


def decoder_memory(data: bytes, picture: Picture) -> int:
    """Return about how many bytes the decoder itself holds; 0 where it works row by row.

    A WebP is the exception: what this counts is needed at every scale, and its pixels come on top (`WEBP_PIXEL`).
    """
    count = _COUNTS.get(picture.mime)
    try:
        return count(data, picture.size) if count else 0
    except (struct.error, IndexError):  # the file is damaged; its decoder says so
        return 0


WEBP_PIXEL = 12
"""Bytes that libvips needs for each pixel of a WebP, at the scale at which it is decoded."""


def _count_png(data: bytes, size: Size) -> int:
    depth, colour, interlaced = struct.unpack_from(">BB2xB", data, 24)
    channels = {0: 1, 2: 3, 3: 4, 4: 2}.get(colour, 4)
    return size.pixels * channels * (2 if depth == 16 else 1) if interlaced else 0


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_BARE_MARKERS = frozenset(range(0xD0, 0xD9)) | {0x01}


def _count_jpeg(data: bytes, size: Size) -> int:
    """Return the size of all coefficients where the file holds them in several scans; libjpeg keeps these."""
    at, frame, progressive = 2, b"", False
    for _ in range(_PIECES):
        mark, marker, length = struct.unpack_from(">BBH", data, at)
        if mark != 0xFF:
            return 0
        if marker == 0xFF or marker in _BARE_MARKERS:
            at += 1 if marker == 0xFF else 2
            continue
        body = data[at + 4 : at + 2 + length]
        if marker in _FRAMES:
            frame, progressive = body, marker in _PROGRESSIVE
        elif marker == 0xDA:
            return _coefficients(frame) if frame and (progressive or body[0] < frame[5]) else 0
        at += 2 + length
    return 0


def _coefficients(frame: bytes) -> int:
    """Return the bytes of all coefficients of a frame: two each, in blocks of 8 by 8, in whole units of blocks."""
    height, width, components = struct.unpack_from(">HHB", frame, 1)
    sampling = [divmod(frame[7 + 3 * number], 16) for number in range(components)]
    across, down = (8 * max(1, *factors) for factors in zip(*sampling, (0, 0), strict=True))
    units: int = -(-width // across) * -(-height // down)
    return 128 * units * sum(horizontal * vertical for horizontal, vertical in sampling)


def _count_webp(data: bytes, size: Size) -> int:
    """Return four bytes a pixel for a lossless image, two for an alpha channel: libwebp holds these whole."""
    at, needed = 12, 0
    for _ in range(_PIECES):
        if at + 8 > len(data):
            break
        kind, length = struct.unpack_from("<4sI", data, at)
        if kind == b"ANMF":
            at += 24  # the first frame is inside
            continue
        if kind in (b"VP8 ", b"VP8L"):
            return needed + (4 * size.pixels if kind == b"VP8L" else 0)
        needed += 2 * size.pixels if kind == b"ALPH" else 0
        at += 8 + length + (length & 1)
    return needed


def is_large_gif(data: bytes, size: Size) -> bool:
    """Whether Pillow decodes this GIF: it takes a quarter of the memory, and is as good where one frame is all."""
    frame = gif_frame(data) if size.pixels > _SMALL else None
    return frame is not None and frame.size == size


def _count_bmp(data: bytes, size: Size) -> int:
    """Return one byte a pixel for a palette, three where it is compressed, since Pillow makes copies; else four."""
    (header,) = struct.unpack_from("<I", data, 14)
    if header == 12:
        (bits,) = struct.unpack_from("<H", data, 24)
        packed = 0
    else:
        bits, packed = struct.unpack_from("<HI", data, 28)
    return size.pixels * (4 if bits > 8 else 3 if packed in (1, 2) else 1)


def _count_psd(data: bytes, size: Size) -> int:
    (channels,) = struct.unpack_from(">H", data, 12)
    return size.pixels * (4 if channels > 2 else 1)


_COUNTS: dict[str, Callable[[bytes, Size], int]] = {
    "image/png": _count_png,
    "image/jpeg": _count_jpeg,
    "image/webp": _count_webp,
    "image/gif": lambda data, size: size.pixels * (1 if is_large_gif(data, size) else 4),
    "image/avif": lambda _, size: 15 * size.pixels,
    "image/bmp": _count_bmp,
    "image/vnd.adobe.photoshop": _count_psd,
}
_ALWAYS_WHOLE = frozenset({"image/gif", "image/avif", "image/bmp", "image/vnd.adobe.photoshop", "image/x-icon"})
_NAMES = {
    "image/png": "an interlaced PNG",
    "image/jpeg": "a progressive JPEG",
    "image/webp": "a WebP of this kind",
    "image/gif": "a GIF",
    "image/avif": "an AVIF",
    "image/bmp": "a BMP",
    "image/vnd.adobe.photoshop": "a Photoshop file",
}
