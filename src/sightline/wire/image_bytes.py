"""The bytes of an image file that a program has read as text.

A program that decodes any file as Latin-1 (or as Windows-1252, as browsers do) keeps every byte as one character, so
the image can be restored. One that decodes it as UTF-8 replaces or drops what isn't valid; one that reads lines changes
the line breaks. Of such an image only the ASCII bytes are left, in their order (`DamagedSource.remains`): enough to
recognize the file.

Every image has zero bytes and no text has them, so a text without them isn't searched. The image must begin within the
first characters, behind a few words such as the name of its file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pybase64

from sightline.model.scene import DamagedSource, InlineSource

_MAX_WORDS = 4096  # characters before an image
_MIN_REMAINS = 32  # bytes that show which file it was
_PNG_END = "IEND"
_PNG_END_LENGTH = 8  # the name of the last chunk, and its checksum
# How each format begins: whole, or with what is left of bytes that aren't ASCII.
_find_start = re.compile(
    r"(?P<png>[\x89\u2030\ufffd]?PNG\r?\n\x1a\n\0\0\0[\r\n]IHDR)"
    r"|(?P<jpeg>\xff\xd8\xff[\xc0-\xfe]|\ufffd{2,4}[\s\S]{0,3}(?:JFIF|Exif)\0|\0\x10JFIF\0)"
    r"|(?P<gif>GIF8[79]a[\s\S]{4}[^\t\n\r -~])"
    r"|(?P<webp>RIFF[\s\S]{2,4}WEBPVP8[ LX])"
).search
_SIGNATURES: Mapping[str, bytes] = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "jpeg": b"\xff\xd8\xff",
    "gif": b"GIF8",
    "webp": b"RIFF",
}
_ENDS: Mapping[str, bytes] = {"png": b"IEND\xaeB`\x82", "jpeg": b"\xff\xd9", "gif": b"\0;"}
_FROM_WINDOWS_1252 = {
    ord(bytes([byte]).decode("cp1252")): byte
    for byte in range(0x80, 0xA0)
    if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
_NOT_ASCII = bytes(range(0x80, 0x100))
_LINE_BREAKS = b"\r\n"


def find_image_bytes(leaf: str, path: str | None) -> tuple[int, int, InlineSource | DamagedSource] | None:
    """Return the image whose bytes are in a text, with its start and end; `path` is that of the file, if known."""
    if "\0" not in leaf or (found := _find_start(leaf, 0, _MAX_WORDS)) is None:
        return None
    kind, start = str(found.lastgroup), found.start()
    if (data := _restore_bytes(leaf[start:], kind)) is not None:
        return start, start + len(data), build_from_bytes(data)
    end = leaf.rfind(_PNG_END, start) + _PNG_END_LENGTH if kind == "png" and _PNG_END in leaf else len(leaf)
    return start, min(end, len(leaf)), DamagedSource(path, list_remains(leaf[start:end].encode("utf-8", "replace")))


def _restore_bytes(text: str, kind: str) -> bytes | None:
    """Return the bytes of an image that is complete and has one character for each byte; None for any other."""
    data = text.translate(_FROM_WINDOWS_1252).encode("latin-1", "replace")
    if not data.startswith(_SIGNATURES[kind]):
        return None
    if kind == "webp":
        end = 8 + int.from_bytes(data[4:8], "little")
        end = end if end <= len(data) else -1
    else:
        last = _ENDS[kind]
        at = data.find(last) if kind == "png" else data.rfind(last)
        end = at + len(last) if at >= 0 else -1
    # A character outside the code page became a question mark above: behind the image that doesn't matter.
    is_exact = end > 0 and max(text[:end].translate(_FROM_WINDOWS_1252)) <= "\xff"
    return data[:end] if is_exact else None


def build_from_bytes(data: bytes) -> InlineSource:
    """Return the source of an image whose bytes a text contains in another form than base64."""
    encoded = pybase64.b64encode(data)
    return InlineSource("", encoded, encoded.decode("ascii"))


def list_remains(data: bytes) -> bytes:
    """Return what no way of decoding changes: the ASCII bytes that aren't line breaks."""
    return data.translate(None, _NOT_ASCII + _LINE_BREAKS)


def is_same_image(remains: bytes, data: bytes) -> bool:
    """Return whether `remains` can be left of a file. Words may follow them, or their end may be cut off."""
    own = list_remains(data)
    return min(len(own), len(remains)) >= _MIN_REMAINS and (own.startswith(remains) or remains.startswith(own))
