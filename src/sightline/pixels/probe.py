"""Probe an image before it is decoded: its type, size and orientation, and whether it is within limits.

All of this takes microseconds: only the header is read.

A worker may use `WORKER_MEMORY`. Most formats are decoded row by row, so only the pixels that are kept count: at most
`MAX_BITMAP_BYTES` of them. Some decoders hold the whole image while they work (an interlaced PNG, a progressive JPEG, a
GIF). `estimate_decoder_memory` says how much that is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from sightline.model.geometry import Size
from sightline.model.image import MAX_DECODED_PIXELS, MAX_EDGE, MAX_FILE_BYTES, MAX_PIXELS, WORKER_MEMORY, ImageInfo
from sightline.model.refusal import Refusal
from sightline.pixels.file_types import identify_file
from sightline.pixels.image_headers import (
    ImageHeader,
    find_gif_frame,
    read_bmp,
    read_gif,
    read_ico,
    read_isobmff,
    read_jpeg,
    read_png,
    read_psd,
    read_tiff,
    read_webp,
)

_HEADER_READERS: dict[str, Callable[[bytes], ImageHeader | None]] = {
    "image/png": read_png,
    "image/jpeg": read_jpeg,
    "image/webp": read_webp,
    "image/gif": read_gif,
    "image/bmp": read_bmp,
    "image/tiff": read_tiff,
    "image/avif": read_isobmff,
    "image/heic": read_isobmff,
    "image/x-icon": read_ico,
    "image/vnd.adobe.photoshop": read_psd,
}
_NO_HEADER = ImageHeader(0, 0)
_MIN_BYTES = 64  # enough to tell types apart
_RESERVED = 58_000_000  # bytes for the interpreter, the libraries and the rows that are being worked on
_SMALL_PIXELS = 20_000_000  # of an image for which every decoder has enough memory
_MAX_PIECES = 4096  # segments or chunks that are looked at
_DAMAGED = "send an undamaged copy of the file"


def probe(head: bytes, total: int) -> ImageInfo | Refusal | None:
    """Return what the first bytes of a file of `total` bytes say, or None if more of them are needed."""
    is_whole = len(head) >= total
    if not total:
        return Refusal("corrupt", "the image is empty", "send a file that has content")
    if len(head) < _MIN_BYTES and not is_whole:
        return None
    kind = identify_file(head)
    read_header = _HEADER_READERS.get(kind.mime) if kind.family == "bitmap" else None
    if read_header is None:
        what = f"this is {kind.name}, not an image that can be shown"
        return Refusal("unsupported_type", what, "convert it to PNG, JPEG, WebP or GIF")
    try:
        header = read_header(head)
    except (struct.error, IndexError):
        if not is_whole:
            return None
        header = None
    width, height, orientation = header or _NO_HEADER
    if width <= 0 or height <= 0:
        return Refusal("corrupt", f"the header of the {kind.mime} image is damaged", _DAMAGED)
    size = Size(height, width) if orientation >= 5 else Size(width, height)
    return ImageInfo(kind.mime, size, total, orientation != 1)


def read_orientation(data: bytes) -> int:
    """Return the EXIF orientation of a whole file that `probe` accepts."""
    read_header = _HEADER_READERS.get(identify_file(data).mime)
    header = read_header(data) if read_header else None
    return header.orientation if header else 1


def probe_within_limits(data: bytes) -> ImageInfo | Refusal:
    """Return what the header of a whole file says, or a refusal if it announces more than may be decoded."""
    if len(data) > MAX_FILE_BYTES:
        return Refusal("too_large", f"the image has {len(data):,} bytes", f"send at most {MAX_FILE_BYTES:,}")
    info = probe(data, len(data))
    assert info is not None, "only the beginning of a file can be too short"
    return info if isinstance(info, Refusal) else check_limits(data, info) or info


def check_limits(data: bytes, info: ImageInfo) -> Refusal | None:
    """Return why an image of this size and format must not be decoded, or None."""
    size = info.size
    needed = estimate_decoder_memory(data, info) if size.pixels > _SMALL_PIXELS else 0
    max_pixels = MAX_DECODED_PIXELS if needed or info.mime in _DECODED_WHOLE else MAX_PIXELS
    if size.edge > MAX_EDGE or size.pixels > max_pixels:
        limits = f"send at most {MAX_EDGE:,} on each side and {max_pixels:,} in all"
        return Refusal("too_large", f"the image is {size} pixels", limits)
    if needed > count_available_bytes(data):
        what = f"the image is {size} pixels, and {_NAMES[info.mime]} has to be decoded as a whole"
        return Refusal("too_large", f"{what}: that needs too much memory", "send a smaller one, or a plain JPEG or PNG")
    return None


def count_available_bytes(data: bytes) -> int:
    """Return how many bytes are left for a decoder and for the pixels that it makes."""
    return WORKER_MEMORY - _RESERVED - len(data)


def estimate_decoder_memory(data: bytes, info: ImageInfo) -> int:
    """Return about how many bytes the decoder itself holds; 0 where it works row by row.

    A WebP is the exception: what this counts is needed at every scale, and its pixels come on top (`WEBP_PIXEL`).
    """
    count = _ESTIMATES.get(info.mime)
    try:
        return count(data, info.size) if count else 0
    except (struct.error, IndexError):  # the file is damaged; its decoder will report that
        return 0


WEBP_BYTES_PER_PIXEL = 12
"""Bytes that libvips needs for each pixel of a WebP, at the scale at which it is decoded."""


def _estimate_png(data: bytes, size: Size) -> int:
    depth, colour, interlaced = struct.unpack_from(">BB2xB", data, 24)
    channels = {0: 1, 2: 3, 3: 4, 4: 2}.get(colour, 4)
    return size.pixels * channels * (2 if depth == 16 else 1) if interlaced else 0


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_BARE_MARKERS = frozenset(range(0xD0, 0xD9)) | {0x01}


def _estimate_jpeg(data: bytes, size: Size) -> int:
    """Return the bytes of all coefficients if the file has them in several scans: libjpeg keeps them."""
    at, frame, progressive = 2, b"", False
    for _ in range(_MAX_PIECES):
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
            return _count_coefficient_bytes(frame) if frame and (progressive or body[0] < frame[5]) else 0
        at += 2 + length
    return 0


def _count_coefficient_bytes(frame: bytes) -> int:
    """Return the bytes of all coefficients of a frame: two each, in blocks of 8 by 8, in whole units of blocks."""
    height, width, components = struct.unpack_from(">HHB", frame, 1)
    sampling = [divmod(frame[7 + 3 * number], 16) for number in range(components)]
    across, down = (8 * max(1, *factors) for factors in zip(*sampling, (0, 0), strict=True))
    units: int = -(-width // across) * -(-height // down)
    return 128 * units * sum(horizontal * vertical for horizontal, vertical in sampling)


def _estimate_webp(data: bytes, size: Size) -> int:
    """Return four bytes a pixel for a lossless image, two for an alpha channel: libwebp holds these whole."""
    at, needed = 12, 0
    for _ in range(_MAX_PIECES):
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
    """Return whether Pillow decodes this GIF: if its first frame is full, Pillow needs a quarter of the memory."""
    frame = find_gif_frame(data) if size.pixels > _SMALL_PIXELS else None
    return frame is not None and frame.size == size


def _estimate_bmp(data: bytes, size: Size) -> int:
    """Return one byte a pixel for a palette, three where it is compressed, since Pillow makes copies; else four."""
    (header,) = struct.unpack_from("<I", data, 14)
    if header == 12:
        (bits,) = struct.unpack_from("<H", data, 24)
        packed = 0
    else:
        bits, packed = struct.unpack_from("<HI", data, 28)
    return size.pixels * (4 if bits > 8 else 3 if packed in (1, 2) else 1)


def _estimate_psd(data: bytes, size: Size) -> int:
    (channels,) = struct.unpack_from(">H", data, 12)
    return size.pixels * (4 if channels > 2 else 1)


_ESTIMATES: dict[str, Callable[[bytes, Size], int]] = {
    "image/png": _estimate_png,
    "image/jpeg": _estimate_jpeg,
    "image/webp": _estimate_webp,
    "image/gif": lambda data, size: size.pixels * (1 if is_large_gif(data, size) else 4),
    "image/avif": lambda _, size: 15 * size.pixels,
    "image/bmp": _estimate_bmp,
    "image/vnd.adobe.photoshop": _estimate_psd,
}
_DECODED_WHOLE = frozenset({"image/gif", "image/avif", "image/bmp", "image/vnd.adobe.photoshop", "image/x-icon"})
_NAMES = {
    "image/png": "an interlaced PNG",
    "image/jpeg": "a progressive JPEG",
    "image/webp": "a WebP of this kind",
    "image/gif": "a GIF",
    "image/avif": "an AVIF",
    "image/bmp": "a BMP",
    "image/vnd.adobe.photoshop": "a Photoshop file",
}
