"""Sizes and orientations of bitmap formats, read from their headers.

A reader gives the header, or None where the bytes break the format. Where they merely end too soon it raises
`struct.error` or `IndexError`: more of the file may follow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sightline.model.geometry import Box, Size


class Header(NamedTuple):
    """The size as it is stored, and how it has to be turned. A tuple: it is made in a fraction of a microsecond."""

    width: int
    height: int
    orientation: int = 1  # as in EXIF: 1 is upright, 5 to 8 swap the sides


def _reaches(data: bytes, end: int) -> None:
    if end > len(data):
        raise IndexError


def _take(data: bytes, start: int, length: int) -> bytes:
    """A slice that is all there."""
    _reaches(data, start + length)
    return data[start : start + length]


_PIECES = 4096  # of which a header is made, at most: a hostile one has millions, each of a few bytes
_CHUNK = struct.Struct(">I4s").unpack_from
_SIZE = struct.Struct(">II").unpack_from
_RIFF_CHUNK = struct.Struct("<4sI").unpack_from
_SEGMENT = struct.Struct(">BBH").unpack_from
_FRAME = struct.Struct(">HH").unpack_from


def png(data: bytes, start: int = 0) -> Header | None:
    length, kind = _CHUNK(data, start + 8)
    if length != 13 or kind != b"IHDR":
        return None
    width, height = _SIZE(data, start + 16)
    at = start + 8 + 12 + 13
    for _ in range(_PIECES):
        length, kind = _CHUNK(data, at)
        if kind == b"IDAT":
            return Header(width, height, _late_orientation(data, at))
        if kind == b"IEND":
            return Header(width, height)
        if kind == b"eXIf":
            _reaches(data, at + 8 + length)
            return Header(width, height, exif_orientation(data, at + 8, at + 8 + length))
        at += 12 + length
    return None


def _late_orientation(data: bytes, at: int) -> int:
    """EXIF may stand behind the pixels. It counts where it is at hand: nobody asks for all of a file to look for it."""
    for _ in range(_PIECES):
        if at + 8 > len(data):
            break
        length, kind = _CHUNK(data, at)
        if kind == b"eXIf":
            return exif_orientation(data, at + 8, at + 8 + length)
        at += 12 + length
    return 1


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset(range(0xD0, 0xD8)) | {0x01, 0xFF}  # any number of FFs may stand before a marker
_NO_FRAME = frozenset({0xD8, 0xD9, 0xDA})  # the picture begins or ends without one


def jpeg(data: bytes) -> Header | None:
    at, orientation = 2, 1
    for _ in range(_PIECES):
        mark, marker, length = _SEGMENT(data, at)
        if mark != 0xFF:
            return None
        if 0xDB <= marker < 0xFF and length >= 2:  # tables, metadata, comments: nearly all that stands here
            if marker == 0xE1 and data.startswith(b"Exif\0\0", at + 4):
                _reaches(data, at + 2 + length)
                orientation = exif_orientation(data, at + 10, at + 2 + length)
        elif marker in _FRAMES:
            height, width = _FRAME(data, at + 5)
            return Header(width, height, orientation)
        elif marker in _BARE_MARKERS:
            at += 1 if marker == 0xFF else 2
            continue
        elif length < 2 or marker in _NO_FRAME:
            return None
        at += 2 + length
    return None


_VP8X = struct.Struct("<B3xHBHB").unpack_from  # flags, then width and height less one in three bytes each


def webp(data: bytes) -> Header | None:
    kind = _take(data, 12, 4)
    if kind == b"VP8X":
        flags, width, wider, height, higher = _VP8X(data, 20)
        turned = _webp_orientation(data) if flags & 0x08 else 1
        return Header((wider << 16 | width) + 1, (higher << 16 | height) + 1, turned)
    if kind == b"VP8 ":
        start, width, height = struct.unpack_from("<3sHH", data, 23)
        return Header(width & 0x3FFF, height & 0x3FFF) if start == b"\x9d\x01\x2a" else None
    if kind == b"VP8L":
        mark, bits = struct.unpack_from("<BI", data, 20)
        return Header((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1) if mark == 0x2F else None
    return None


def _webp_orientation(data: bytes) -> int:
    """EXIF is one of the last chunks of a file."""
    end = int.from_bytes(data[4:8], "little")
    at = 12
    for _ in range(_PIECES):
        if at > end:
            break
        kind, length = _RIFF_CHUNK(data, at)
        at += 8
        if kind == b"EXIF":
            _reaches(data, at + length)
            skip = 6 if data.startswith(b"Exif\0\0", at) else 0
            return exif_orientation(data, at + skip, at + length)
        at += length + (length & 1)
    return 1


def gif(data: bytes) -> Header | None:
    """As large as the screen, and larger where the first frame goes beyond it."""
    frame = gif_frame(data)
    if frame is None:
        return None
    width, height = struct.unpack_from("<HH", data, 6)
    return Header(max(width, frame.right), max(height, frame.bottom))


def gif_frame(data: bytes) -> Box | None:
    """Where the first frame stands on the screen."""
    try:
        at = next(_gif_frames(data, _PIECES), None)
    except OverflowError:
        return None
    return None if at is None else Box(*struct.unpack_from("<HHHH", data, at + 1))


def animated(data: bytes) -> bool:
    """Whether a file holds a second frame, or so many pieces that nobody counts them."""
    reader = next((reader for start, reader in _ANIMATIONS.items() if data.startswith(start)), None)
    if reader is None:
        return False
    frames = reader(data)
    try:
        next(frames, None)
        return next(frames, None) is not None
    except OverflowError:
        return True
    except (struct.error, IndexError):
        return False


def _gif_frames(data: bytes, most: int = 1 << 18) -> Iterator[int]:
    """Where each frame begins. `most` pieces are looked at: blocks of 255 bytes make 64 MiB of as many as there are."""
    at, chained = 13 + _colours(data[10]), False
    for _ in range(most):
        kind = data[at]
        if chained:  # blocks of one byte that is their length, the last of none
            chained = kind > 0
            at += 1 + kind
        elif kind == 0x2C:
            yield at
            at += 11 + _colours(data[at + 9])
            chained = True
        elif kind == 0x21:
            at += 2
            chained = True
        else:  # the end, or what is no GIF
            return
    raise OverflowError


def _colours(flags: int) -> int:
    """The length of the table of colours that the flags promise."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _webp_frames(data: bytes) -> Iterator[int]:
    at = 12
    for _ in range(_PIECES):
        kind, length = _RIFF_CHUNK(data, at)
        if kind == b"ANMF":
            yield at
        at += 8 + length + (length & 1)
    raise OverflowError


_ANIMATIONS = {b"GIF8": _gif_frames, b"RIFF": _webp_frames}


def bmp(data: bytes) -> Header | None:
    (kind,) = struct.unpack_from("<I", data, 14)
    if kind == 12:
        return Header(*struct.unpack_from("<HH", data, 18))
    width, height = struct.unpack_from("<ii", data, 18)
    return Header(width, abs(height))  # a negative height counts rows from the top


def ico(data: bytes) -> Header | None:
    """The largest picture of the file."""
    entry = icon(data)
    if entry is None:
        return None
    if data.startswith(b"\x89PNG\r\n\x1a\n", entry.start):
        return png(data, entry.start)
    return Header(entry.size.width, entry.size.height)


@dataclass(frozen=True, slots=True)
class Entry:
    """One picture of an icon file, as its directory tells of it."""

    size: Size
    bits: int
    start: int
    length: int


def icon(data: bytes) -> Entry | None:
    """The entry with the most pixels, and the most colours among those."""
    (count,) = struct.unpack_from("<H", data, 4)
    entries = []
    for at in range(6, 6 + 16 * min(count, _PIECES), 16):
        width, height, bits, length, start = struct.unpack_from("<BB4xHII", data, at)
        entries.append(Entry(Size(width or 256, height or 256), bits, start, length))
    found = max(entries, key=lambda entry: (entry.size.pixels, entry.bits), default=None)
    if found is not None:
        _reaches(data, found.start + min(found.length, 64))
    return found


def psd(data: bytes) -> Header | None:
    height, width = struct.unpack_from(">II", data, 14)
    return Header(width, height)


def tiff(data: bytes) -> Header | None:
    tags = dict(_tags(data))
    return Header(tags.get(256, 0), tags.get(257, 0), _upright_or(tags.get(274, 1)))


# By the order of bytes: how a long and a short number are read, and the tag of orientation.
_ORDERS = {
    b"II": (struct.Struct("<I").unpack_from, struct.Struct("<H").unpack_from, b"\x12\x01"),
    b"MM": (struct.Struct(">I").unpack_from, struct.Struct(">H").unpack_from, b"\x01\x12"),
}


def exif_orientation(data: bytes, start: int = 0, end: int | None = None) -> int:
    """What the EXIF block from `start` to `end` says about orientation; a broken block says nothing.

    The tag is searched for instead of reading all of them: a camera writes dozens.
    """
    order = _ORDERS.get(data[start : start + 2])
    if order is None:
        return 1
    long, short, tag = order
    end = len(data) if end is None else end
    try:
        first = start + long(data, start + 4)[0] + 2
        last = first + 12 * short(data, first - 2)[0]
        at = data.find(tag, first, last)
        while (at - first) % 12 and at >= 0:
            at = data.find(tag, at + 1, last)
        if at < 0 or at + 12 > end:
            return 1
        kind = short(data, at + 2)[0]
        return _upright_or((short if kind == 3 else long)(data, at + 8)[0]) if kind in (3, 4) else 1
    except struct.error:
        return 1


def _upright_or(orientation: int) -> int:
    return orientation if 1 <= orientation <= 8 else 1


def _tags(data: bytes) -> Iterator[tuple[int, int]]:
    """The tags of the first directory of a TIFF whose value is one short or long number."""
    order = {b"II": "<", b"MM": ">"}[_take(data, 0, 2)]
    (at,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, at)
    for entry in range(at + 2, at + 2 + 12 * min(count, _PIECES), 12):
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
    sizes = [struct.unpack_from(">II", body, 4) for kind, body in properties if kind == b"ispe"]
    turns = next((body[0] & 3 for kind, body in properties if kind == b"irot"), 0)
    mirror = next((body[0] & 1 for kind, body in properties if kind == b"imir"), None)
    if not sizes:
        return None
    width, height = max(sizes, key=lambda size: size[0] * size[1])
    return Header(width, height, _TURNED[turns, mirror])


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
    """Boxes with what is in them; of the picture itself, which may stand before what describes it, nothing."""
    at = 0
    for _ in range(_PIECES):
        if at == len(data):
            return
        (length, kind), head = _CHUNK(data, at), 8
        if length == 1:  # the length proper follows
            (length,), head = struct.unpack_from(">Q", data, at + 8), 16
        if length < head:
            return
        if kind == b"mdat":
            _reaches(data, at + length)
        else:
            yield kind, _take(data, at + head, length - head)
        at += length
