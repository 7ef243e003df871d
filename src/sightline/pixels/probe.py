"""What the first bytes of an image say, in microseconds: its real type, its size, its orientation."""

from __future__ import annotations

import struct
from collections.abc import Callable

from sightline.model.geometry import Size
from sightline.model.image import Picture
from sightline.model.refusal import Refusal
from sightline.pixels import headers
from sightline.pixels.headers import Header
from sightline.pixels.kinds import kind_of

Reader = Callable[[bytes], Header | None]

_REMEDY = "ask for a PNG, JPEG, WebP or GIF of it"
_NONE = Header(0, 0)
_ENOUGH = 64  # bytes that tell one type from another

_READERS: dict[str, Reader] = {
    "image/png": headers.png,
    "image/jpeg": headers.jpeg,
    "image/webp": headers.webp,
    "image/gif": headers.gif,
    "image/bmp": headers.bmp,
    "image/tiff": headers.tiff,
    "image/avif": headers.isobmff,
    "image/heic": headers.isobmff,
    "image/x-icon": headers.ico,
    "image/vnd.adobe.photoshop": headers.psd,
}


def probe(head: bytes, total: int) -> Picture | Refusal | None:
    """What the first bytes of a file of `total` bytes say; None: they are too few to say it."""
    whole = len(head) >= total
    if not total:
        return Refusal("corrupt", "the image is empty", "ask for the image again")
    if len(head) < _ENOUGH and not whole:
        return None
    kind = kind_of(head)
    reader = _READERS.get(kind.mime) if kind.family == "bitmap" else None
    if reader is None:
        return Refusal("unsupported_type", f"this is {kind.name}, not an image that can be shown", _REMEDY)
    try:
        header = reader(head)
    except (struct.error, IndexError):
        if not whole:
            return None
        header = None
    width, height, turn = header or _NONE
    if width <= 0 or height <= 0:
        return Refusal("corrupt", f"the header of the {kind.mime} image is broken", "ask for the image again")
    return Picture(kind.mime, Size(height, width) if turn >= 5 else Size(width, height), total, turn != 1)


def orientation(data: bytes) -> int:
    """The EXIF orientation of a whole file that `probe` has let through."""
    reader = _READERS.get(kind_of(data).mime)
    header = reader(data) if reader else None
    return header.orientation if header else 1
