"""The bytes of an image as a program prints them: as numbers, as hexadecimal digits, or as a literal.

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
from collections.abc import Callable, Iterator, Mapping

from sightline.model.scene import DamagedSource, InlineSource
from sightline.wire.base64_images import is_image_data
from sightline.wire.image_bytes import build_from_bytes, is_complete_image, list_remains

PrintedImage = tuple[int, int, InlineSource | DamagedSource]
"""The start and the end of the characters that are an image, and the image."""

ZERO_BYTE = b"\\x00"
"""A zero byte as Python writes it; every image has some."""

_AS_NUMBERS = bytes(0x41 if character in b'0123456789abcdefABCDEF, \n\r\t\\":' else 0x20 for character in range(256))
_NUMBER_RUN = b"A" * 16  # in a text that was translated with it
_find_object = re.compile(
    r"\{\s*+\"(?:type\"\s*+:\s*+\"Buffer\"\s*+,\s*+\"data\"\s*+:\s*+\[(?P<buffer>[\d,\s]*+)\]"
    r"|(?P<indexed>0\"\s*+:\s*+\d{1,3}\s*+(?:,\s*+\"\d+\"\s*+:\s*+\d{1,3}\s*+)*+))\s*+\}"
).search
_find_array = re.compile(
    r"\b(?:Uint8(?:Clamped)?Array|Buffer)\(\d++\) (?:\[Uint8Array\] )?"
    r"\[(?P<array>[\d,\s]*+)(?P<more_items>\.{3} \d++ more items?\s*+)?\]"
).search
_find_hex = re.compile(
    r"<(?:Buffer )?(?P<hex>[0-9a-f]{2}(?: [0-9a-f]{2})++)(?P<more_bytes> \.{3} \d++ more bytes?)?>"
).search
_SIGNATURE = r"\\x89PNG|\\xff\\xd8|GIF8|RIFF|BM|II\*|MM\\x00"
_find_literal = re.compile(
    rf"b(?P<literal>'(?={_SIGNATURE})(?:[^'\\]|\\.)*+'|\"(?={_SIGNATURE})(?:[^\"\\]|\\.)*+\")"
).search
_find_list = re.compile(r"(?:(?<=\":)|(?<=\": ))\[(?P<array>[\d,\s]++)\](?=\s*+[,}])").search
_find_last_digits = re.compile(r"(?:\A|(?<=\s))(?:0x|\\x)?(?P<hex>[0-9a-fA-F]{2,}+)\r?\Z").search
_match_last_line = re.compile(r"(?P<array>\d{1,3}(?:, ?\d{1,3})++)").fullmatch
_list_numbers = re.compile(r"\d+").findall
_list_indexed_numbers = re.compile(r":\s*(\d+)").findall
_MIN_BYTES = 48


def find_printed_images(leaf: str, raw: bytes, path: str | None) -> Iterator[PrintedImage]:
    """Yield the images whose bytes are printed in a text; `raw` is the text in UTF-8, and `path` that of the file."""
    if has_number_run(raw):
        end = len(leaf.rstrip())
        start = leaf.rfind("\n", 0, end) + 1
        if (line := _match_last_line(leaf, start, end)) and (source := _read_image(line.groupdict(), path)):
            yield start, end, source
        yield from _find_last_hex(leaf, start, end)
        objects = [*_find_forms(leaf, _find_object, path)]
        yield from objects
        lists = _find_forms(leaf, _find_list, path)
        yield from (found for found in lists if not any(start < found[0] < end for start, end, _ in objects))
        yield from _find_forms(leaf, _find_hex, path)
        if "Array(" in leaf or "Buffer(" in leaf:  # the search for these has no fixed first letter, so it is slow
            yield from _find_forms(leaf, _find_array, path)
    if ZERO_BYTE in raw:
        yield from _find_forms(leaf, _find_literal, path)


def _find_last_hex(leaf: str, line: int, end: int) -> Iterator[PrintedImage]:
    """Yield the complete image that a text ends with in hexadecimal digits; `line` is the start of its last line.

    A person who looks at the first bytes of a file sees them: an image that is cut off is none here.
    """
    lines: list[str] = []
    start = line_end = end
    while found := _find_last_digits(leaf, line, line_end):
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


def _find_forms(
    leaf: str, find_next: Callable[[str, int], re.Match[str] | None], path: str | None
) -> Iterator[PrintedImage]:
    at = 0
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
            return bytes(map(int, _list_indexed_numbers(indexed)))
        if digits := found.get("hex"):
            return bytes.fromhex(digits)
        return bytes(map(int, _list_numbers(found.get("buffer") or found.get("array") or "")))
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # a number above 255, or no literal
        return None
