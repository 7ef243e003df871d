"""Sizes and orientations of bitmap formats, read from their headers.

A reader gives the header, or None where the bytes break the format. Where they merely end too soon it raises
`struct.error` or `IndexError`: more of the file may follow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from sightline.model.geometry import Size


@dataclass(frozen=True, slots=True)
class Header:
    stored: Size
    orientation: int = 1  # as in EXIF: 1 is upright, 5 to 8 swap the sides


_MOST_PARTS = 4096  # of a header: no image has more, and a file of nothing else must not keep us busy


def _take(data: bytes, start: int, length: int) -> bytes:
    """A slice that is all there."""
    if start + length > len(data):
        raise IndexError
    return data[start : start + length]


def png(data: bytes) -> Header | None:
    length, kind, width, height = struct.unpack_from(">I4sII", data, 8)
    if length != 13 or kind != b"IHDR":
        return None
    at = 8 + 12 + 13
    for _ in range(_MOST_PARTS):
        (length,) = struct.unpack_from(">I", data, at)
        match _take(data, at + 4, 4):
            case b"IDAT" | b"IEND":
                return Header(Size(width, height))
            case b"eXIf":
                return Header(Size(width, height), exif_orientation(_take(data, at + 8, length)))
        at += 12 + length
    return None


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset(range(0xD0, 0xD8)) | {0x01}


def jpeg(data: bytes) -> Header | None:
    at, orientation = 2, 1
    for _ in range(_MOST_PARTS):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # any number of these may stand before a marker
            at += 1
            continue
        at += 2
        if marker in _BARE_MARKERS:
            continue
        (length,) = struct.unpack_from(">H", data, at)
        if length < 2 or marker in (0xD8, 0xD9, 0xDA):  # the picture begins or ends without a frame
            return None
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 3)
            return Header(Size(width, height), orientation)
        if marker == 0xE1 and _take(data, at + 2, 6) == b"Exif\0\0":
            orientation = exif_orientation(_take(data, at + 8, length - 8) if length > 8 else b"")
        at += length
    return None


def webp(data: bytes) -> Header | None:
    match _take(data, 12, 4):
        case b"VP8 ":
            start, width, height = struct.unpack_from("<3sHH", data, 23)
            return Header(Size(width & 0x3FFF, height & 0x3FFF)) if start == b"\x9d\x01\x2a" else None
        case b"VP8L":
            mark, bits = struct.unpack_from("<BI", data, 20)
            size = Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
            return Header(size) if mark == 0x2F else None
        case b"VP8X":
            flags, width, height = data[20], _take(data, 24, 3), _take(data, 27, 3)
            size = Size(int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1)
            return Header(size, _webp_orientation(data) if flags & 0x08 else 1)
    return None


def _webp_orientation(data: bytes) -> int:
    """EXIF is one of the last chunks of a file."""
    end = 8 + struct.unpack_from("<I", data, 4)[0]
    at = 12
    for _ in range(_MOST_PARTS):
        if at + 8 > end:
            break
        kind, length = struct.unpack_from("<4sI", data, at)
        if kind == b"EXIF":
            return exif_orientation(_take(data, at + 8, length).removeprefix(b"Exif\0\0"))
        at += 8 + length + length % 2
    return 1


def gif(data: bytes) -> Header | None:
    return Header(Size(*struct.unpack_from("<HH", data, 6)))


def bmp(data: bytes) -> Header | None:
    (kind,) = struct.unpack_from("<I", data, 14)
    if kind == 12:
        return Header(Size(*struct.unpack_from("<HH", data, 18)))
    width, height = struct.unpack_from("<ii", data, 18)
    return Header(Size(width, abs(height)))  # a negative height counts rows from the top


def tiff(data: bytes) -> Header | None:
    tags = dict(_tags(data))
    size = Size(tags.get(256, 0), tags.get(257, 0))
    return Header(size, _upright_or(tags.get(274, 1)))


def exif_orientation(data: bytes) -> int:
    """What an EXIF block says about orientation; a broken block says nothing."""
    try:
        return _upright_or(dict(_tags(data)).get(274, 1))
    except (struct.error, IndexError):
        return 1


def _upright_or(orientation: int) -> int:
    return orientation if 1 <= orientation <= 8 else 1


def _tags(data: bytes) -> Iterator[tuple[int, int]]:
    """The tags of the first directory whose value is one short or long number."""
    order = {b"II": "<", b"MM": ">"}.get(_take(data, 0, 2))
    if order is None:
        return
    (at,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, at)
    for entry in range(at + 2, at + 2 + 12 * count, 12):
        tag, kind, _ = struct.unpack_from(f"{order}HHI", data, entry)
        if kind in (3, 4):
            yield tag, struct.unpack_from(f"{order}{'H' if kind == 3 else 'I'}", data, entry + 8)[0]


def isobmff(data: bytes) -> Header | None:
    """AVIF and HEIC: the largest of the sizes that the file's properties hold, which is the whole picture."""
    meta = next((body for kind, body in _boxes(data) if kind == b"meta"), None)
    if meta is None:
        raise IndexError
    shared = dict(_boxes(dict(_boxes(meta[4:])).get(b"iprp", b""))).get(b"ipco", b"")
    properties = list(_boxes(shared))
    sizes = [Size(*struct.unpack_from(">II", body, 4)) for kind, body in properties if kind == b"ispe"]
    turns = next((body[0] & 3 for kind, body in properties if kind == b"irot"), 0)
    mirror = next((body[0] & 1 for kind, body in properties if kind == b"imir"), None)
    return Header(max(sizes, key=lambda size: size.pixels), _TURNED[turns, mirror]) if sizes else None


# Quarter turns to the left, then a mirror: 0 swaps top and bottom, 1 left and right.
_TURNED = {
    (0, None): 1,
    (1, None): 8,
    (2, None): 3,
    (3, None): 6,
    (0, 0): 4,
    (1, 0): 5,
    (2, 0): 2,
    (3, 0): 7,
    (0, 1): 2,
    (1, 1): 7,
    (2, 1): 4,
    (3, 1): 5,
}


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Boxes up to the picture itself; what describes it stands before it in all files that are seen."""
    at = 0
    while at != len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"mdat" or length < 8:
            return
        yield kind, _take(data, at + 8, length - 8)
        at += length
