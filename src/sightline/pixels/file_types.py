"""Identify what a file is by its first bytes, and decode text in any usual encoding to characters that can be drawn.

The order of attempts for text: a byte order mark, UTF-16 by its zero bytes, UTF-8, Shift JIS and GB 18030 if what comes
out looks like Japanese or Chinese, then Windows-1252, which takes everything.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable
from typing import Literal

from sightline.model.value import value_class

_SAMPLE = 64 * 1024  # bytes that tell the encoding
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KANA = re.compile("[\u3041-\u30ff]")
_FOREIGN = re.compile("[^\x00-\x7f]")
_MIN_KANA, _MIN_COMMON = 0.15, 0.9  # shares of the characters beyond ASCII

# Control characters are drawn as the pictures that Unicode has for them: U+2400 for U+0000, and so on.
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_PICTURES |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ZERO_WIDTH = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe2f\u200b-\u200d"
_MARK_FLOOD = re.compile(f"([{_ZERO_WIDTH}]{{4}})[{_ZERO_WIDTH}]+")
# What changes the order of other characters or is invisible would deceive the reader; it is drawn as a code point.
_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_LONE_JOINER = re.compile("(?<![^\x00-\xff])[\u200c\u200d\ufe0e\ufe0f]")
_LETTERS = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\x1b")
_MAX_CONTROLS = 0.02  # of the bytes of a text
_MIN_LETTERS = 0.6  # of the bytes of a text in an encoding of Western Europe


def choose_encoding(data: bytes) -> str:
    """Return the encoding in which a text is most likely written."""
    if found := next((name for mark, name in _MARKS if data.startswith(mark)), ""):
        return found
    head = data[:_SAMPLE]
    if wide := _find_utf16(head):
        return wide
    if _decodes(head, "utf-8"):
        return "utf-8"
    return next((name for name, fits in _GUESSES if fits(head)), "cp1252")


def decode_text(data: bytes) -> tuple[str, str]:
    """Return the text of a file, with line feeds as the only line ends, and its encoding."""
    encoding = choose_encoding(data)
    text = data.decode(encoding, "replace")
    if encoding == "cp1252" and "\ufffd" in text:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def describe_encoding(encoding: str) -> str:
    """Return a note about an encoding that was guessed, or nothing."""
    return "" if encoding.startswith("utf-8") else f"read as {encoding}"


def make_visible(text: str) -> str:
    """Return a text in which every character has a look: control characters as pictures, floods of marks cut."""
    if _CONTROL.search(text):
        text = text.translate(_PICTURES)
    if text.isascii():
        return text
    text = _MARK_FLOOD.sub("\\1…", text)
    text = _LONE_JOINER.sub(_spell_code, text)
    return _INVISIBLE.sub(_spell_code, text)


def _spell_code(found: re.Match[str]) -> str:
    return f"⟦{ord(found[0]):04X}⟧"


def _find_utf16(head: bytes) -> str:
    """Return a form of UTF-16 if nearly every second byte is zero, as in text of few characters beyond Latin."""
    pairs = len(head) // 2
    if pairs < 2:
        return ""
    first, second = head[: 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if second > 0.7 * pairs and first < 0.05 * pairs:
        return "utf-16-le"
    return "utf-16-be" if first > 0.7 * pairs and second < 0.05 * pairs else ""


def _decodes(head: bytes, encoding: str) -> str:
    """Return the text of a sample, whose last character may be cut; empty: it is in another encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head, len(head) < _SAMPLE)
    except UnicodeDecodeError:
        return ""


def _is_japanese(head: bytes) -> bool:
    text = _decodes(head, "cp932")
    foreign = len(_FOREIGN.findall(text))
    return foreign > 0 and len(_KANA.findall(text)) >= _MIN_KANA * foreign


def _is_chinese(head: bytes) -> bool:
    foreign = "".join(_FOREIGN.findall(_decodes(head, "gb18030")))
    common = len(foreign.encode("gb2312", "ignore")) // 2
    return bool(foreign) and common >= _MIN_COMMON * len(foreign)


_GUESSES = (("cp932", _is_japanese), ("gb18030", _is_chinese))


def is_utf8_text(opening: bytes) -> bool:
    """Return whether the bytes are UTF-8 with few control characters; the last character may be cut."""
    controls = len(opening) - len(opening.translate(None, _CONTROLS))
    if controls > len(opening) * _MAX_CONTROLS:
        return False
    try:
        opening.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(opening) - 4 and error.reason == "unexpected end of data"
    return True


def is_legacy_text(opening: bytes) -> bool:
    """Return whether the bytes are text in UTF-16 without a mark, or in an encoding of Western Europe or East Asia."""
    pairs = len(opening) // 2
    zeros = sorted((opening[: 2 * pairs : 2].count(0), opening[1 : 2 * pairs : 2].count(0)))
    if pairs > 3 and zeros[1] > 0.7 * pairs and zeros[0] == 0:
        opening = opening.translate(None, b"\0")
        return _count_letters(opening) >= _MIN_LETTERS * len(opening)
    if opening.translate(None, _CONTROLS) != opening:
        return False
    if _count_letters(opening) >= _MIN_LETTERS * len(opening):
        return True
    return any(_is_valid(opening, encoding) for encoding in ("cp932", "gb18030"))


def _count_letters(data: bytes) -> int:
    return len(data) - len(data.translate(None, _LETTERS))


def _is_valid(opening: bytes, encoding: str) -> bool:
    """Return whether the bytes are valid in an encoding; the last character may be cut."""
    try:
        opening.decode(encoding)
    except UnicodeDecodeError as error:
        return error.start > len(opening) - 4
    return True


FileFamily = Literal["bitmap", "vector", "document", "video", "text", "archive", "unknown"]


@value_class
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
            return _identify_gzip(head) if kind is GZIP else kind
    return _identify_by_structure(head) or _identify_text(head[:_SAMPLE_BYTES])


def _identify_gzip(head: bytes) -> FileType:
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
