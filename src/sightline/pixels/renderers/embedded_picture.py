"""Pictures within a document, as bytes or as base64."""

from __future__ import annotations

import base64
import binascii
import re
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

_DATA_URL = re.compile(r"data:image/(?:png|jpeg|jpg|gif|webp);base64,", re.IGNORECASE)
_MAX_PIXELS = 40_000_000


def open_data_url(url: str) -> Pillow | None:
    """Return the picture of a data URL; None: it is another address, or damaged."""
    found = _DATA_URL.match(url)
    return open_base64(url[found.end() :]) if found else None


def open_base64(text: str) -> Pillow | None:
    """Return a picture on a white ground, or None if it is damaged or too large."""
    try:
        return open_picture(BytesIO(base64.b64decode("".join(text.split()).replace("%2B", "+"))))
    except (binascii.Error, ValueError):
        return None


def open_picture(file: BytesIO) -> Pillow | None:
    """Return a picture on a white ground, or None if it is damaged, too large, or no usual bitmap."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file, formats=("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                return None
            picture = opened.convert("RGBA")
    except (ValueError, OSError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError):
        return None
    page = Image.new("RGBA", picture.size, "#ffffff")
    page.alpha_composite(picture)
    return page.convert("RGB")
