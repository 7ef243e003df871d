"""What the first bytes of an image say, in microseconds: its real type, its size, its orientation."""

from __future__ import annotations

import struct
from collections.abc import Callable

from sightline.model.geometry import Size
from sightline.model.image import Picture
from sightline.model.refusal import Refusal
from sightline.pixels import headers
from sightline.pixels.headers import Header

Reader = Callable[[bytes], Header | None]

_REMEDY = "ask for a PNG, JPEG, WebP or GIF of it"
_ENOUGH = 64  # bytes that tell one type from another
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
_AVIF, _HEIC = frozenset({b"avif", b"avis"}), frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"})

_READERS: dict[str, Reader] = {
    "image/png": headers.png,
    "image/jpeg": headers.jpeg,
    "image/webp": headers.webp,
    "image/gif": headers.gif,
    "image/bmp": headers.bmp,
    "image/tiff": headers.tiff,
    "image/avif": headers.isobmff,
    "image/heic": headers.isobmff,
}

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)

# What is often found where an image should be.
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"8BPS", "a Photoshop file"),
    (b"\x00\x00\x01\x00", "an icon file"),
    (b"\xff\x0a", "a JPEG XL image"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL image"),
    (b"\x1aE\xdf\xa3", "a video"),
    (b"\x1f\x8b", "gzip data"),
    (b"RIFF", "sound or video"),
    (b"\x89PNG", "a PNG with a broken signature"),
)


def probe(head: bytes, total: int) -> Picture | Refusal | None:
    """What the first bytes of a file of `total` bytes say; None: they are too few to say it."""
    whole = len(head) >= total
    if not total:
        return Refusal("corrupt", "the image is empty", "ask for the image again")
    if len(head) < _ENOUGH and not whole:
        return None
    mime = mime_of(head)
    if mime is None:
        return Refusal("unsupported_type", f"this is {_other(head)}, not an image that can be shown", _REMEDY)
    try:
        header = _READERS[mime](head)
    except (struct.error, IndexError):
        if not whole:
            return None
        header = None
    if header is None or header.stored.width <= 0 or header.stored.height <= 0:
        return Refusal("corrupt", f"the header of the {mime} image is broken", "ask for the image again")
    return Picture(mime, _upright(header), total, turned=header.orientation != 1)


def orientation(data: bytes) -> int:
    """The EXIF orientation of a whole file that `probe` has let through."""
    mime = mime_of(data)
    header = _READERS[mime](data) if mime else None
    return header.orientation if header else 1


def mime_of(head: bytes) -> str | None:
    """The media type of a bitmap by its first bytes, never by a name or a declaration."""
    for start, mime in _MAGIC:
        if head.startswith(start):
            return mime
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEADERS:
        return "image/bmp"
    return _isobmff_mime(head) if head[4:8] == b"ftyp" else None


def _isobmff_mime(head: bytes) -> str | None:
    end = min(int.from_bytes(head[:4], "big"), _ENOUGH)
    brands = {head[8:12], *(head[at : at + 4] for at in range(16, end, 4))}
    if brands & _AVIF:
        return "image/avif"
    return "image/heic" if brands & _HEIC else None


def _other(head: bytes) -> str:
    """What the bytes are, in words, where they are no bitmap."""
    for start, name in _OTHERS:
        if head.startswith(start):
            return name
    if head[4:8] == b"ftyp":
        return "a video"
    opening = head[:1024].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if b"<svg" in opening and opening.startswith(b"<"):
        return "an SVG drawing"
    if opening.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "an HTML page"
    if opening.startswith(b"<?xml"):
        return "XML"
    return "text" if opening and _is_text(opening) else "unknown data"


def _is_text(opening: bytes) -> bool:
    """No control characters but white space, and UTF-8 up to a last character that may be cut."""
    if any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in opening):
        return False
    try:
        opening.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(opening) - 4 and error.reason == "unexpected end of data"
    return True


def _upright(header: Header) -> Size:
    stored = header.stored
    return Size(stored.height, stored.width) if header.orientation >= 5 else stored
