"""Probe a file before it is decoded: its type, the size and orientation of an image, and whether it is within limits.

All of this takes microseconds: only the header is read.

A worker may use `WORKER_MEMORY`. Most formats are decoded row by row, so only the pixels that are kept count: at most
`MAX_BITMAP_BYTES` of them. Some decoders hold the whole image while they work (an interlaced PNG, a progressive JPEG, a
GIF). `estimate_decoder_memory` says how much that is.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sightline.model.geometry import Size
from sightline.model.image import MAX_DECODED_PIXELS, MAX_EDGE, MAX_FILE_BYTES, MAX_PIXELS, WORKER_MEMORY, ImageInfo
from sightline.model.refusal import Refusal
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
from sightline.pixels.text_decoding import is_legacy_text, is_utf8_text

FileFamily = Literal["bitmap", "vector", "document", "video", "text", "archive", "unknown"]


@dataclass(frozen=True, slots=True)
class FileType:
    mime: str
    family: FileFamily
    name: str  # with its article, as in "this is a PNG image"


_SAMPLE_BYTES = 4096  # enough to identify a text or an archive
_OCTET_STREAM = "application/octet-stream"

PNG = FileType("image/png", "bitmap", "a PNG image")
JPEG = FileType("image/jpeg", "bitmap", "a JPEG image")
GIF = FileType("image/gif", "bitmap", "a GIF image")
WEBP = FileType("image/webp", "bitmap", "a WebP image")
BMP = FileType("image/bmp", "bitmap", "a BMP image")
TIFF = FileType("image/tiff", "bitmap", "a TIFF image")
AVIF = FileType("image/avif", "bitmap", "an AVIF image")
HEIC = FileType("image/heic", "bitmap", "a HEIC image")
ICON = FileType("image/x-icon", "bitmap", "an icon file")
PHOTOSHOP = FileType("image/vnd.adobe.photoshop", "bitmap", "a Photoshop file")
JPEG_XL = FileType("image/jxl", "bitmap", "a JPEG XL image")
JPEG_2000 = FileType("image/jp2", "bitmap", "a JPEG 2000 image")
SVG = FileType("image/svg+xml", "vector", "an SVG drawing")
SVGZ = FileType("image/svg+xml", "vector", "a compressed SVG drawing")
PDF = FileType("application/pdf", "document", "a PDF")
GZIP = FileType("application/gzip", "archive", "gzip data")
ZIP = FileType("application/zip", "archive", "a ZIP archive")
MP4 = FileType("video/mp4", "video", "a video")
QUICKTIME = FileType("video/quicktime", "video", "a video")
MATROSKA = FileType("video/x-matroska", "video", "a video")
WEBM = FileType("video/webm", "video", "a video")
AVI = FileType("video/x-msvideo", "video", "a video")
RIFF = FileType(_OCTET_STREAM, "unknown", "sound or video")
SOUND = FileType("audio/mpeg", "unknown", "sound")
HTML = FileType("text/html", "text", "an HTML page")
XML = FileType("application/xml", "text", "XML")
TEXT = FileType("text/plain", "text", "text")
WIDE_TEXT = FileType("text/plain", "text", "text in UTF-16")
OTHER_TEXT = FileType("text/plain", "text", "text that is not UTF-8")
UNKNOWN = FileType(_OCTET_STREAM, "unknown", "unknown data")

# The longer of two signatures comes first.
_SIGNATURES: tuple[tuple[bytes, FileType], ...] = (
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"GIF89a", GIF),
    (b"GIF87a", GIF),
    (b"II*\0", TIFF),
    (b"MM\0*", TIFF),
    (b"II+\0", FileType("image/tiff", "unknown", "a TIFF of more than four gigabytes")),
    (b"MM\0+", FileType("image/tiff", "unknown", "a TIFF of more than four gigabytes")),
    (b"8BPS\0\x01", PHOTOSHOP),
    (b"8BPS", FileType(_OCTET_STREAM, "unknown", "a large Photoshop document")),
    (b"\x00\x00\x00\x0cJXL ", JPEG_XL),
    (b"\xff\x0a", JPEG_XL),
    (b"\x00\x00\x00\x0cjP  ", JPEG_2000),
    (b"\x89PNG", FileType(_OCTET_STREAM, "unknown", "a PNG with a broken signature")),
    (b"%PDF-", PDF),
    (b"%!PS", FileType("application/postscript", "document", "PostScript")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FileType("application/x-ole-storage", "document", "an office document")),
    (b"{\\rtf", FileType("application/rtf", "document", "an RTF document")),
    (b"OggS", FileType("application/ogg", "unknown", "sound or video")),
    (b"ID3", SOUND),
    (b"fLaC", FileType("audio/flac", "unknown", "sound")),
    (b"FLV\x01", FileType("video/x-flv", "video", "a video")),
    (b"\x00\x00\x01\xba", FileType("video/mpeg", "video", "a video")),
    (b"\x00\x00\x01\xb3", FileType("video/mpeg", "video", "a video")),
    (b"\x1f\x8b", GZIP),
    (b"BZh", FileType("application/x-bzip2", "archive", "bzip2 data")),
    (b"\xfd7zXZ\0", FileType("application/x-xz", "archive", "xz data")),
    (b"\x28\xb5\x2f\xfd", FileType("application/zstd", "archive", "zstd data")),
    (b"7z\xbc\xaf\x27\x1c", FileType("application/x-7z-compressed", "archive", "a 7-Zip archive")),
    (b"Rar!\x1a\x07", FileType("application/vnd.rar", "archive", "a RAR archive")),
    (b"\xff\xfe", WIDE_TEXT),
    (b"\xfe\xff", WIDE_TEXT),
)

# Only the few signatures with the same first byte are compared.
_BY_FIRST_BYTE = {
    start[:1]: tuple(each for each in _SIGNATURES if each[0][:1] == start[:1]) for start, _ in _SIGNATURES
}

_RIFF = {b"WEBP": WEBP, b"AVI ": AVI, b"WAVE": FileType("audio/wav", "unknown", "sound")}
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
_BRANDS: tuple[tuple[frozenset[bytes], FileType], ...] = (
    (frozenset({b"avif", b"avis"}), AVIF),
    (frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"}), HEIC),
    (frozenset({b"M4A ", b"M4B "}), FileType("audio/mp4", "unknown", "sound")),
    (frozenset({b"qt  "}), QUICKTIME),
)

_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
_ZIPPED: tuple[tuple[bytes, FileType], ...] = (
    (b"word/", FileType(f"{_OPEN_XML}.wordprocessingml.document", "document", "a Word document")),
    (b"xl/", FileType(f"{_OPEN_XML}.spreadsheetml.sheet", "document", "an Excel workbook")),
    (b"ppt/", FileType(f"{_OPEN_XML}.presentationml.presentation", "document", "a PowerPoint presentation")),
    (f"mimetype{_OPEN_DOCUMENT}.text".encode(), FileType(f"{_OPEN_DOCUMENT}.text", "document", "a text document")),
    (
        f"mimetype{_OPEN_DOCUMENT}.spreadsheet".encode(),
        FileType(f"{_OPEN_DOCUMENT}.spreadsheet", "document", "a sheet"),
    ),
    (
        f"mimetype{_OPEN_DOCUMENT}.presentation".encode(),
        FileType(f"{_OPEN_DOCUMENT}.presentation", "document", "slides"),
    ),
    (b"mimetypeapplication/epub+zip", FileType("application/epub+zip", "document", "an e-book")),
    (b"[Content_Types].xml", FileType(_OPEN_XML, "document", "an office document")),
)


def identify_file(head: bytes) -> FileType:
    """Return the type of a file that begins with `head`: a few kilobytes, or all of it."""
    for start, kind in _BY_FIRST_BYTE.get(head[:1], ()):
        if head.startswith(start):
            if kind is WIDE_TEXT:
                return _identify_other_text(head[:_SAMPLE_BYTES], kind)
            return _identify_compressed(head) if kind is GZIP else kind
    return _identify_by_structure(head) or _identify_text(head[:_SAMPLE_BYTES])


def _identify_compressed(head: bytes) -> FileType:
    """Tell a compressed SVG from other gzip data by the beginning of what is in it."""
    try:
        opening = zlib.decompressobj(wbits=31).decompress(head, _SAMPLE_BYTES)
    except zlib.error:
        return GZIP
    return SVGZ if _identify_text(opening) is SVG else GZIP


def _identify_by_structure(head: bytes) -> FileType | None:
    """Identify files for which a signature is not enough."""
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12], RIFF)
    if head.startswith(b"PK\x03\x04"):
        return next((kind for mark, kind in _ZIPPED if mark in head[:_SAMPLE_BYTES]), ZIP)
    if head.startswith(b"\x1aE\xdf\xa3"):
        return WEBM if b"webm" in head[:64] else MATROSKA
    if head[4:8] == b"ftyp":
        return _identify_by_brand(head)
    return next((kind for matches, kind in _STRUCTURES if matches(head)), None)


def _identify_by_brand(head: bytes) -> FileType:
    end = min(int.from_bytes(head[:4], "big"), 64)
    brands = {head[8:12], *(head[at : at + 4] for at in range(16, end, 4))}
    return next((kind for known, kind in _BRANDS if brands & known), MP4)


def _is_bmp(head: bytes) -> bool:
    return head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEADERS


def _is_icon(head: bytes) -> bool:
    """Return whether a file is an icon. Its signature is too common, so the first entry must be sane as well."""
    return head.startswith(b"\0\0\1\0") and head[4:6] > b"\0\0" and head[9:12] in (b"\0\0\0", b"\0\1\0")


def _is_quicktime(head: bytes) -> bool:
    return head[4:8] in (b"moov", b"mdat", b"wide")  # the first box before brands existed


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


_STRUCTURES: tuple[tuple[Callable[[bytes], bool], FileType], ...] = (
    (_is_bmp, BMP),
    (_is_icon, ICON),
    (_is_quicktime, QUICKTIME),
    (_is_tar, FileType("application/x-tar", "archive", "a tar archive")),
)

_PROLOGUE = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->|<!doctype(?!\s+(?:html|svg))[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_ROOT = re.compile(rb"<(?:!doctype\s+)?(?:svg:)?(svg|html|head|body)\b")


def _identify_text(opening: bytes) -> FileType:
    """Identify SVG, HTML and XML by their first element, and other text by its bytes."""
    start = opening.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not start:
        return UNKNOWN
    if not is_utf8_text(start):
        return _identify_other_text(start, OTHER_TEXT) if is_legacy_text(start) else UNKNOWN
    if root := _find_root(start):
        return SVG if root == b"svg" else HTML
    return XML if start.startswith(b"<?xml") else TEXT


def _identify_other_text(opening: bytes, kind: FileType) -> FileType:
    """Tell SVG from another kind of text that is not UTF-8: without zero bytes, its first element is ASCII."""
    narrow = opening.removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff").translate(None, b"\0")
    return SVG if _find_root(narrow.lower()) == b"svg" else kind


def _find_root(start: bytes) -> bytes | None:
    """Return the name of the first element, if it is one that tells the type of a file."""
    at = 0
    while skipped := _PROLOGUE.match(start, at):
        at = skipped.end()
    root = _ROOT.match(start, at)
    return root[1] if root else None


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
