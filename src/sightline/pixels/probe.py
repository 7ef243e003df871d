"""What the first bytes of a file say, in microseconds: its real type, and of an image its size and orientation."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sightline.model.geometry import Size
from sightline.model.image import Picture
from sightline.model.refusal import Refusal
from sightline.pixels import headers
from sightline.pixels.headers import Header

Family = Literal["bitmap", "vector", "document", "video", "text", "archive", "unknown"]


@dataclass(frozen=True, slots=True)
class Kind:
    mime: str
    family: Family
    name: str  # in words that fit behind "this is"


_OPENING = 4096  # bytes in which a text or an archive shows what it is
_BYTES = "application/octet-stream"

PNG = Kind("image/png", "bitmap", "a PNG image")
JPEG = Kind("image/jpeg", "bitmap", "a JPEG image")
GIF = Kind("image/gif", "bitmap", "a GIF image")
WEBP = Kind("image/webp", "bitmap", "a WebP image")
BMP = Kind("image/bmp", "bitmap", "a BMP image")
TIFF = Kind("image/tiff", "bitmap", "a TIFF image")
AVIF = Kind("image/avif", "bitmap", "an AVIF image")
HEIC = Kind("image/heic", "bitmap", "a HEIC image")
ICON = Kind("image/x-icon", "bitmap", "an icon file")
PHOTOSHOP = Kind("image/vnd.adobe.photoshop", "bitmap", "a Photoshop file")
JPEG_XL = Kind("image/jxl", "bitmap", "a JPEG XL image")
JPEG_2000 = Kind("image/jp2", "bitmap", "a JPEG 2000 image")
SVG = Kind("image/svg+xml", "vector", "an SVG drawing")
PDF = Kind("application/pdf", "document", "a PDF")
ZIP = Kind("application/zip", "archive", "a ZIP archive")
MP4 = Kind("video/mp4", "video", "a video")
QUICKTIME = Kind("video/quicktime", "video", "a video")
MATROSKA = Kind("video/x-matroska", "video", "a video")
WEBM = Kind("video/webm", "video", "a video")
AVI = Kind("video/x-msvideo", "video", "a video")
RIFF = Kind(_BYTES, "unknown", "sound or video")
SOUND = Kind("audio/mpeg", "unknown", "sound")
HTML = Kind("text/html", "text", "an HTML page")
XML = Kind("application/xml", "text", "XML")
TEXT = Kind("text/plain", "text", "text")
UNKNOWN = Kind(_BYTES, "unknown", "unknown data")

# A longer beginning stands before a shorter one.
_STARTS: tuple[tuple[bytes, Kind], ...] = (
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"GIF89a", GIF),
    (b"GIF87a", GIF),
    (b"II*\0", TIFF),
    (b"MM\0*", TIFF),
    (b"II+\0", Kind("image/tiff", "unknown", "a TIFF of more than four gigabytes")),
    (b"MM\0+", Kind("image/tiff", "unknown", "a TIFF of more than four gigabytes")),
    (b"8BPS\0\x01", PHOTOSHOP),
    (b"8BPS", Kind(_BYTES, "unknown", "a large Photoshop document")),
    (b"\x00\x00\x00\x0cJXL ", JPEG_XL),
    (b"\xff\x0a", JPEG_XL),
    (b"\x00\x00\x00\x0cjP  ", JPEG_2000),
    (b"\x89PNG", Kind(_BYTES, "unknown", "a PNG with a broken signature")),
    (b"%PDF-", PDF),
    (b"%!PS", Kind("application/postscript", "document", "PostScript")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Kind("application/x-ole-storage", "document", "an office document")),
    (b"{\\rtf", Kind("application/rtf", "document", "an RTF document")),
    (b"OggS", Kind("application/ogg", "unknown", "sound or video")),
    (b"ID3", SOUND),
    (b"fLaC", Kind("audio/flac", "unknown", "sound")),
    (b"FLV\x01", Kind("video/x-flv", "video", "a video")),
    (b"\x00\x00\x01\xba", Kind("video/mpeg", "video", "a video")),
    (b"\x00\x00\x01\xb3", Kind("video/mpeg", "video", "a video")),
    (b"\x1f\x8b", Kind("application/gzip", "archive", "gzip data")),
    (b"BZh", Kind("application/x-bzip2", "archive", "bzip2 data")),
    (b"\xfd7zXZ\0", Kind("application/x-xz", "archive", "xz data")),
    (b"\x28\xb5\x2f\xfd", Kind("application/zstd", "archive", "zstd data")),
    (b"7z\xbc\xaf\x27\x1c", Kind("application/x-7z-compressed", "archive", "a 7-Zip archive")),
    (b"Rar!\x1a\x07", Kind("application/vnd.rar", "archive", "a RAR archive")),
    (b"\xff\xfe", Kind("text/plain", "text", "text in UTF-16")),
    (b"\xfe\xff", Kind("text/plain", "text", "text in UTF-16")),
)

# A file is held against the beginnings that share its first byte, which are few.
_BY_FIRST = {start[:1]: tuple(each for each in _STARTS if each[0][:1] == start[:1]) for start, _ in _STARTS}

_RIFF = {b"WEBP": WEBP, b"AVI ": AVI, b"WAVE": Kind("audio/wav", "unknown", "sound")}
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
_BRANDS: tuple[tuple[frozenset[bytes], Kind], ...] = (
    (frozenset({b"avif", b"avis"}), AVIF),
    (frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"}), HEIC),
    (frozenset({b"M4A ", b"M4B "}), Kind("audio/mp4", "unknown", "sound")),
    (frozenset({b"qt  "}), QUICKTIME),
)

_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
_ZIPPED: tuple[tuple[bytes, Kind], ...] = (
    (b"word/", Kind(f"{_OPEN_XML}.wordprocessingml.document", "document", "a Word document")),
    (b"xl/", Kind(f"{_OPEN_XML}.spreadsheetml.sheet", "document", "an Excel workbook")),
    (b"ppt/", Kind(f"{_OPEN_XML}.presentationml.presentation", "document", "a PowerPoint presentation")),
    (f"mimetype{_OPEN_DOCUMENT}.text".encode(), Kind(f"{_OPEN_DOCUMENT}.text", "document", "a text document")),
    (f"mimetype{_OPEN_DOCUMENT}.spreadsheet".encode(), Kind(f"{_OPEN_DOCUMENT}.spreadsheet", "document", "a sheet")),
    (f"mimetype{_OPEN_DOCUMENT}.presentation".encode(), Kind(f"{_OPEN_DOCUMENT}.presentation", "document", "slides")),
    (b"mimetypeapplication/epub+zip", Kind("application/epub+zip", "document", "an e-book")),
    (b"[Content_Types].xml", Kind("application/zip", "document", "an office document")),
)


def kind_of(head: bytes) -> Kind:
    """What a file is that begins with `head`: a few kilobytes, or the whole of it."""
    for start, kind in _BY_FIRST.get(head[:1], ()):
        if head.startswith(start):
            return kind
    return _by_shape(head) or _written(head[:_OPENING])


def _by_shape(head: bytes) -> Kind | None:
    """Files that a few bytes at their beginning do not tell apart."""
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12], RIFF)
    if head.startswith(b"PK\x03\x04"):
        return next((kind for mark, kind in _ZIPPED if mark in head[:_OPENING]), ZIP)
    if head.startswith(b"\x1aE\xdf\xa3"):
        return WEBM if b"webm" in head[:64] else MATROSKA
    if head[4:8] == b"ftyp":
        return _by_brand(head)
    return next((kind for holds, kind in _SHAPES if holds(head)), None)


def _by_brand(head: bytes) -> Kind:
    end = min(int.from_bytes(head[:4], "big"), 64)
    brands = {head[8:12], *(head[at : at + 4] for at in range(16, end, 4))}
    return next((kind for known, kind in _BRANDS if brands & known), MP4)


def _is_bmp(head: bytes) -> bool:
    return head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEADERS


def _is_icon(head: bytes) -> bool:
    """Four bytes alone would take many a binary file for an icon: an entry also has a zero and sane planes."""
    return head.startswith(b"\0\0\1\0") and head[4:6] > b"\0\0" and head[9:12] in (b"\0\0\0", b"\0\1\0")


def _is_quicktime(head: bytes) -> bool:
    return head[4:8] in (b"moov", b"mdat", b"wide")  # with which it began before there was a box of brands


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


_SHAPES: tuple[tuple[Callable[[bytes], bool], Kind], ...] = (
    (_is_bmp, BMP),
    (_is_icon, ICON),
    (_is_quicktime, QUICKTIME),
    (_is_tar, Kind("application/x-tar", "archive", "a tar archive")),
)

_PROLOGUE = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->|<!doctype(?!\s+(?:html|svg))[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_ROOT = re.compile(rb"<(?:!doctype\s+)?(?:svg:)?(svg|html|head|body)\b")


def _written(opening: bytes) -> Kind:
    """Text of some sort, by the name of its first element where it has one; or nothing that is known."""
    start = opening.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not start or not _is_text(start):
        return UNKNOWN
    at = 0
    while skipped := _PROLOGUE.match(start, at):
        at = skipped.end()
    if root := _ROOT.match(start, at):
        return SVG if root[1] == b"svg" else HTML
    return XML if start.startswith(b"<?xml") else TEXT


def _is_text(opening: bytes) -> bool:
    """No control characters but white space, and UTF-8 up to a last character that may be cut."""
    if any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in opening):
        return False
    try:
        opening.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(opening) - 4 and error.reason == "unexpected end of data"
    return True


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
