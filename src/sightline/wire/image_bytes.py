"""The bytes of an image file that a program has read as text, or has printed.

A program that decodes any file as Latin-1 (or as Windows-1252, as browsers do) keeps every byte as one character, so
the image can be restored, even if the program then numbers the lines. One that decodes it as UTF-8 replaces or drops
what isn't valid; one that reads lines changes the line breaks; one that cleans its output drops zero bytes. Of such an
image only the printable ASCII bytes are left, in their order (`DamagedSource.remains`): enough to recognize the file.

Every image has zero bytes and no text has them. A text without them is searched only if it isn't ASCII, has other
characters that no text has, and a name that files of a format begin with; what follows must then be garbled. The image
must begin within the first characters, behind a few words such as the name of its file.

A program that prints bytes writes them as numbers, as hexadecimal digits, or as a literal:

- Node: `<Buffer 89 50 4e …>`, `Uint8Array(70) [ 137, 80, 78, … ]`, `{"type":"Buffer","data":[137,80,…]}`,
  `{"0":137,"1":80,…}`
- Python: `b'\\x89PNG…'`
- JSON: `"bytes": [137, 80, 78, …]`
- the whole text, or its last line: `137,80,78,…`; its last lines: `89504e470d0a…`, if the image is complete

Node prints only the first bytes of a long array, and how many more there are: that image is damaged. A program that
an agent reads has other forms, and stays: `new Uint8Array([137, 80, …])`. The search takes linear time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache

import pybase64

from sightline.model.scene import DamagedSource, InlineSource
from sightline.wire.image_blocks import is_image_data

_MAX_WORDS = 4096  # characters before an image
_MIN_REMAINS = 32  # bytes that show which file it was
_PNG_END = "IEND"
_PNG_END_LENGTH = 8  # the name of the last chunk, and its checksum
FORMAT_NAMES = ("IHDR", "JFIF", "Exif", "GIF8", "WEBPVP8")
"""One of these is among the first bytes of nearly every image file."""
# Between the name of the format and the first chunk of a PNG: line breaks and zero bytes, and numbers of lines.
_GAP = r"[\s\d\0|:\u2192]"
# How each format begins: whole, or with what is left of bytes that aren't ASCII.
_START = (
    rf"(?P<png>[\x89\u2030\ufffd\udc89]PNG(?:{_GAP}|\x1a){{1,90}}IHDR|PNG{_GAP}{{1,60}}\x1a{_GAP}{{0,60}}IHDR)"
    r"|(?P<jpeg>\xff\xd8\xff[\xc0-\xfe]|\ufffd{2,4}[\0-\x1f ]{0,3}(?:JFIF|Exif)|\0?\x10JFIF[\0\1])"
    r"|(?P<gif>GIF8[79]a[\s\S]{2,4}[^\t\n\r -~])"
    r"|(?P<webp>RIFF[\s\S]{0,4}WEBPVP8[ LX])"
    r"|(?P<bmp>BM[\s\S]{1,4}\0{4}[\s\S]{1,2}\0{2,3}[\x0c(48@l|]\0{3})"
    r"|(?P<tiff>(?:\A|(?<=\n))(?:II\*\0|MM\0\*))"
)
_SIGNATURES: Mapping[str, bytes] = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "jpeg": b"\xff\xd8\xff",
    "gif": b"GIF8",
    "webp": b"RIFF",
    "bmp": b"BM",
    "tiff": b"",
}
_ENDS: Mapping[str, bytes] = {"png": b"IEND\xaeB`\x82", "jpeg": b"\xff\xd9", "gif": b"\0;"}
# As in `cat -n`, and as agents number the lines of a file.
_NUMBER = r"[ \t]*\d{1,7}(?:\t|\u2192|: ?| ?\| ?)"
_LINE_NUMBERS = rf"(?<=\n){_NUMBER}"
_GARBAGE = r"[\ufffd\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
_GARBAGE_SAMPLE, _MIN_GARBAGE = 512, 8  # characters
_FROM_WINDOWS_1252 = {
    ord(bytes([byte]).decode("cp1252")): byte
    for byte in range(0x80, 0xA0)
    if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
_NOT_PRINTABLE = bytes([*range(0x20), *range(0x7F, 0x100)])


def may_have_stripped_image(leaf: str) -> bool:
    """Return whether a text may have the bytes of an image without its zero bytes; nearly no text may."""
    if leaf.isascii() or not ("\ufffd" in leaf or "\1" in leaf or "\x1a" in leaf):
        return False
    return any(leaf.find(name, 0, _MAX_WORDS) >= 0 for name in FORMAT_NAMES)


def find_image_bytes(leaf: str, path: str | None) -> tuple[int, int, InlineSource | DamagedSource] | None:
    """Return the image whose bytes are in a text, with its start and end; `path` is that of the file, if known."""
    has_zero_bytes = "\0" in leaf
    if not has_zero_bytes and not may_have_stripped_image(leaf):
        return None
    if (found := _compile(_START).search(leaf, 0, _MAX_WORDS)) is None:
        return None
    kind, start = str(found.lastgroup), found.start()
    text = leaf[start:]
    if not has_zero_bytes and len(_compile(_GARBAGE).findall(text[:_GARBAGE_SAMPLE])) < _MIN_GARBAGE:
        return None
    line = leaf.rfind("\n", 0, start) + 1
    if _compile(_NUMBER).fullmatch(leaf, line, start):
        start, text = line, _compile(_LINE_NUMBERS).sub("", text)
    source: InlineSource | DamagedSource
    if (data := _restore_bytes(text, kind)) is not None:
        length, source = len(data), build_from_bytes(data)
    else:
        length = text.rfind(_PNG_END) + _PNG_END_LENGTH if kind == "png" and _PNG_END in text else len(text)
        source = DamagedSource(path, list_remains(text[:length].encode("utf-8", "surrogatepass")))
    behind = text[length:]
    return start, len(leaf) - len(behind) if leaf.endswith(behind) else len(leaf), source


def _restore_bytes(text: str, kind: str) -> bytes | None:
    """Return the bytes of an image that is complete and has one character for each byte; None for any other."""
    data = text.translate(_FROM_WINDOWS_1252).encode("latin-1", "replace")
    if not data.startswith(_SIGNATURES[kind]):
        return None
    end = _find_end(data, kind)
    # A character outside the code page became a question mark above: behind the image that doesn't matter.
    is_exact = 0 < end <= len(data) and max(text[:end].translate(_FROM_WINDOWS_1252)) <= "\xff"
    return data[:end] if is_exact and b"\0" in data[:end] else None


def _find_end(data: bytes, kind: str) -> int:
    """Return the length of the image that a text begins with; 0 if its end is missing."""
    match kind:
        case "webp":
            return 8 + int.from_bytes(data[4:8], "little")
        case "bmp":
            return int.from_bytes(data[2:6], "little")
        case "tiff":  # nothing in it says how long it is
            return len(data)
        case _:
            last = _ENDS[kind]
            at = data.find(last) if kind == "png" else data.rfind(last)
            return at + len(last) if at >= 0 else 0


def is_complete_image(data: bytes) -> bool:
    """Return whether bytes begin like an image and have its end."""
    kind = next((kind for kind, first in _SIGNATURES.items() if first and data.startswith(first)), None)
    return kind is not None and 0 < _find_end(data, kind) <= len(data)


def build_from_bytes(data: bytes) -> InlineSource:
    """Return the source of an image whose bytes a text contains in another form than base64."""
    encoded = pybase64.b64encode(data)
    return InlineSource("", encoded, encoded.decode("ascii"))


def list_remains(data: bytes) -> bytes:
    """Return what no way of decoding or cleaning changes: the printable ASCII bytes."""
    return data.translate(None, _NOT_PRINTABLE)


def is_same_image(remains: bytes, data: bytes) -> bool:
    """Return whether `remains` can be left of a file. Words may follow them, or their end may be cut off."""
    own = list_remains(data)
    return min(len(own), len(remains)) >= _MIN_REMAINS and (own.startswith(remains) or remains.startswith(own))


PrintedImage = tuple[int, int, InlineSource | DamagedSource]
"""The start and the end of the characters that are an image, and the image."""

ZERO_BYTE = b"\\x00"
"""A zero byte as Python writes it; every image has some."""

_AS_NUMBERS = bytes(0x41 if character in b'0123456789abcdefABCDEF, \n\r\t\\":' else 0x20 for character in range(256))
_NUMBER_RUN = b"A" * 16  # in a text that was translated with it
_OBJECT = (
    r"\{\s*+\"(?:type\"\s*+:\s*+\"Buffer\"\s*+,\s*+\"data\"\s*+:\s*+\[(?P<buffer>[\d,\s]*+)\]"
    r"|(?P<indexed>0\"\s*+:\s*+\d{1,3}\s*+(?:,\s*+\"\d+\"\s*+:\s*+\d{1,3}\s*+)*+))\s*+\}"
)
_ARRAY = (
    r"\b(?:Uint8(?:Clamped)?Array|Buffer)\(\d++\) (?:\[Uint8Array\] )?"
    r"\[(?P<array>[\d,\s]*+)(?P<more_items>\.{3} \d++ more items?\s*+)?\]"
)
_HEX = r"<(?:Buffer )?(?P<hex>[0-9a-f]{2}(?: [0-9a-f]{2})++)(?P<more_bytes> \.{3} \d++ more bytes?)?>"
_SIGNATURE = r"\\x89PNG|\\xff\\xd8|GIF8|RIFF|BM|II\*|MM\\x00"
_LITERAL = rf"b(?P<literal>'(?={_SIGNATURE})(?:[^'\\]|\\.)*+'|\"(?={_SIGNATURE})(?:[^\"\\]|\\.)*+\")"
_LIST = r"(?:(?<=\":)|(?<=\": ))\[(?P<array>[\d,\s]++)\](?=\s*+[,}])"
_LAST_DIGITS = r"(?:\A|(?<=\s))(?:0x|\\x)?(?P<hex>[0-9a-fA-F]{2,}+)\r?\Z"
_LAST_LINE = r"(?P<array>\d{1,3}(?:, ?\d{1,3})++)"
_DIGITS = r"\d+"
_INDEXED_DIGITS = r":\s*(\d+)"
_MIN_BYTES = 48


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first needed: few texts have the bytes of an image."""
    return re.compile(pattern)


def compile_image_patterns() -> Iterator[None]:
    """Compile one pattern after the other, so that the first text that needs them doesn't take the time."""
    of_bytes = (_START, _NUMBER, _LINE_NUMBERS, _GARBAGE)
    of_numbers = (_OBJECT, _ARRAY, _HEX, _LITERAL, _LIST, _LAST_DIGITS, _LAST_LINE, _DIGITS, _INDEXED_DIGITS)
    for pattern in of_bytes + of_numbers:
        _compile(pattern)
        yield


def find_printed_images(leaf: str, raw: bytes, path: str | None) -> Iterator[PrintedImage]:
    """Yield the images whose bytes are printed in a text; `raw` is the text in UTF-8, and `path` that of the file."""
    if has_number_run(raw):
        end = len(leaf.rstrip())
        start = leaf.rfind("\n", 0, end) + 1
        if (line := _compile(_LAST_LINE).fullmatch(leaf, start, end)) and (
            source := _read_image(line.groupdict(), path)
        ):
            yield start, end, source
        yield from _find_last_hex(leaf, start, end)
        objects = [*_find_forms(leaf, _OBJECT, path)]
        yield from objects
        lists = _find_forms(leaf, _LIST, path)
        yield from (found for found in lists if not any(start < found[0] < end for start, end, _ in objects))
        yield from _find_forms(leaf, _HEX, path)
        if "Array(" in leaf or "Buffer(" in leaf:  # the search for these has no fixed first letter, so it is slow
            yield from _find_forms(leaf, _ARRAY, path)
    if ZERO_BYTE in raw:
        yield from _find_forms(leaf, _LITERAL, path)


def _find_last_hex(leaf: str, line: int, end: int) -> Iterator[PrintedImage]:
    """Yield the complete image that a text ends with in hexadecimal digits; `line` is the start of its last line.

    A person who looks at the first bytes of a file sees them: an image that is cut off is none here.
    """
    lines: list[str] = []
    start = line_end = end
    while found := _compile(_LAST_DIGITS).search(leaf, line, line_end):
        lines.append(found["hex"])
        start = found.start()
        if start > line or not line:
            break
        line_end = line - 1
        line = leaf.rfind("\n", 0, line_end) + 1  # the digits may be wrapped
    digits = "".join(reversed(lines))
    data = bytes.fromhex(digits) if len(digits) % 2 == 0 else b""
    if is_complete_image(data):
        yield start, end, build_from_bytes(data)


def has_number_run(text: bytes) -> bool:
    """Return whether a text has so many numbers in a row that they may be bytes. Every eighth character tells."""
    return _NUMBER_RUN in text[::8].translate(_AS_NUMBERS)


def _find_forms(leaf: str, form: str, path: str | None) -> Iterator[PrintedImage]:
    at, find_next = 0, _compile(form).search
    while found := find_next(leaf, at):
        at = found.end()
        if source := _read_image(found.groupdict(), path):
            yield found.start(), found.end(), source


def _read_image(found: Mapping[str, str | None], path: str | None) -> InlineSource | DamagedSource | None:
    """Return the image of these bytes, damaged if some are left out; None if they are no image."""
    data = _read_bytes(found)
    if data is None or len(data) < _MIN_BYTES or not is_image_data(data):
        return None
    is_cut = bool(found.get("more_items") or found.get("more_bytes"))
    return DamagedSource(path, list_remains(data)) if is_cut else build_from_bytes(data)


def _read_bytes(found: Mapping[str, str | None]) -> bytes | None:
    try:
        if literal := found.get("literal"):
            value = ast.literal_eval(f"b{literal}")
            return value if isinstance(value, bytes) else None
        if indexed := found.get("indexed"):
            return bytes(map(int, _compile(_INDEXED_DIGITS).findall(indexed)))
        if digits := found.get("hex"):
            return bytes.fromhex(digits)
        return bytes(map(int, _compile(_DIGITS).findall(found.get("buffer") or found.get("array") or "")))
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # a number above 255, or no literal
        return None
