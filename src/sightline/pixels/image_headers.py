"""Read the size and orientation of an image from its header, one function per format.

Each returns the header, or None if the bytes violate the format. If they only end too soon, it raises `struct.error`
or `IndexError`: the rest of the file may follow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import repeat
from typing import NamedTuple

from sightline.model.geometry import Box, Size
from sightline.model.value import value_class


class ImageHeader(NamedTuple):
    """The size as it is stored, and the orientation. A named tuple is built faster than a dataclass."""

    width: int
    height: int
    orientation: int = 1  # as in EXIF: 1 is upright, 5 to 8 swap the sides


def _require_length(data: bytes, end: int) -> None:
    if end > len(data):
        raise IndexError


def _slice_exactly(data: bytes, start: int, length: int) -> bytes:
    _require_length(data, start + length)
    return data[start : start + length]


_WEBP_FLAGS, _WEBP_ANIMATED = 20, 0x02  # the byte of a WebP file's flags, and the one that it may have several frames
_MAX_PIECES = 4096  # of a header; a hostile one may have millions, each of a few bytes
_unpack_chunk = struct.Struct(">I4s").unpack_from
_unpack_size = struct.Struct(">II").unpack_from
_unpack_riff_chunk = struct.Struct("<4sI").unpack_from
_unpack_segment = struct.Struct(">BBH").unpack_from
_unpack_frame = struct.Struct(">HH").unpack_from


def read_png(data: bytes, start: int = 0) -> ImageHeader | None:
    length, kind = _unpack_chunk(data, start + 8)
    if length != 13 or kind != b"IHDR":
        return None
    width, height = _unpack_size(data, start + 16)
    at = start + 8 + 12 + 13
    for _ in range(_MAX_PIECES):
        length, kind = _unpack_chunk(data, at)
        if kind == b"IDAT":
            late = at + 12 + length
            return ImageHeader(width, height, _find_late_orientation(data, late) if late < len(data) else 1)
        if kind == b"IEND":
            return ImageHeader(width, height)
        if kind == b"eXIf":
            _require_length(data, at + 8 + length)
            return ImageHeader(width, height, read_exif_orientation(data, at + 8, at + 8 + length))
        at += 12 + length
    return None


def _find_late_orientation(data: bytes, at: int) -> int:
    """Return the orientation in EXIF data after the pixels, if that much of the file is here; else 1."""
    for _ in range(_MAX_PIECES):
        if at + 8 > len(data):
            break
        length, kind = _unpack_chunk(data, at)
        if kind == b"eXIf":
            return read_exif_orientation(data, at + 8, at + 8 + length)
        at += 12 + length
    return 1


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset(range(0xD0, 0xD8)) | {0x01, 0xFF}  # any number of FFs may precede a marker
_NO_FRAME = frozenset({0xD8, 0xD9, 0xDA})  # the picture begins or ends without a frame


def read_jpeg(data: bytes) -> ImageHeader | None:
    at, orientation = 2, 1
    for _ in range(_MAX_PIECES):
        mark, marker, length = _unpack_segment(data, at)
        if mark != 0xFF:
            return None
        if 0xDB <= marker < 0xFF and length >= 2:  # tables, metadata, comments: nearly all segments
            if marker == 0xE1 and data.startswith(b"Exif\0\0", at + 4):
                _require_length(data, at + 2 + length)
                orientation = read_exif_orientation(data, at + 10, at + 2 + length)
        elif marker in _FRAMES:
            height, width = _unpack_frame(data, at + 5)
            return ImageHeader(width, height, orientation)
        elif marker in _BARE_MARKERS:
            at += 1 if marker == 0xFF else 2
            continue
        elif length < 2 or marker in _NO_FRAME:
            return None
        at += 2 + length
    return None


_unpack_vp8x = struct.Struct("<B3xHBHB").unpack_from  # flags, then width - 1 and height - 1 in three bytes each


def read_webp(data: bytes) -> ImageHeader | None:
    kind = _slice_exactly(data, 12, 4)
    if kind == b"VP8X":
        flags, width, wider, height, higher = _unpack_vp8x(data, 20)
        turned = _find_webp_orientation(data) if flags & 0x08 else 1
        return ImageHeader((wider << 16 | width) + 1, (higher << 16 | height) + 1, turned)
    if kind == b"VP8 ":
        start, width, height = struct.unpack_from("<3sHH", data, 23)
        return ImageHeader(width & 0x3FFF, height & 0x3FFF) if start == b"\x9d\x01\x2a" else None
    if kind == b"VP8L":
        mark, bits = struct.unpack_from("<BI", data, 20)
        return ImageHeader((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1) if mark == 0x2F else None
    return None


def _find_webp_orientation(data: bytes) -> int:
    """Return the orientation in the EXIF chunk, one of the last of a file."""
    end = int.from_bytes(data[4:8], "little")
    at = 12
    for _ in range(_MAX_PIECES):
        if at > end:
            break
        kind, length = _unpack_riff_chunk(data, at)
        at += 8
        if kind == b"EXIF":
            _require_length(data, at + length)
            skip = 6 if data.startswith(b"Exif\0\0", at) else 0
            return read_exif_orientation(data, at + skip, at + length)
        at += length + (length & 1)
    return 1


def read_gif(data: bytes) -> ImageHeader | None:
    """Return the size of the screen, or of the first frame where that extends beyond it."""
    frame = find_gif_frame(data)
    if frame is None:
        return None
    width, height = struct.unpack_from("<HH", data, 6)
    return ImageHeader(max(width, frame.right), max(height, frame.bottom))


def find_gif_frame(data: bytes) -> Box | None:
    """Return the box of the first frame on the screen."""
    try:
        at = next(_find_gif_frames(data, _MAX_PIECES), None)
    except OverflowError:
        return None
    return None if at is None else Box(*struct.unpack_from("<HHHH", data, at + 1))


def may_be_animated(head: bytes) -> bool:
    """Return false if the first bytes of a file say that it has a single frame."""
    if not head.startswith(b"RIFF"):
        return True
    return head[12:16] == b"VP8X" and len(head) > _WEBP_FLAGS and bool(head[_WEBP_FLAGS] & _WEBP_ANIMATED)


def is_animated(data: bytes) -> bool:
    """Return whether a file has a second frame, or too many pieces to tell."""
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


def _find_gif_frames(data: bytes, max_pieces: int = 1 << 18) -> Iterator[int]:
    """Yield where each frame begins. The default of `max_pieces` is enough for 64 MiB in blocks of 255 bytes."""
    at, chained = 13 + _measure_colour_table(data[10]), False
    for _ in range(max_pieces):
        kind = data[at]
        if chained:  # blocks, each with its length in one byte; the last is empty
            chained = kind > 0
            at += 1 + kind
        elif kind == 0x2C:
            yield at
            at += 11 + _measure_colour_table(data[at + 9])
            chained = True
        elif kind == 0x21:
            at += 2
            chained = True
        else:  # the end, or not a GIF
            return
    raise OverflowError


def _measure_colour_table(flags: int) -> int:
    """Return the length of the colour table that the flags announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _find_webp_frames(data: bytes) -> Iterator[int]:
    at = 12
    for _ in range(_MAX_PIECES):
        kind, length = _unpack_riff_chunk(data, at)
        if kind == b"ANMF":
            yield at
        at += 8 + length + (length & 1)
    raise OverflowError


def _find_png_frames(data: bytes) -> Iterator[int]:
    """Yield the frames that an animated PNG announces. The announcement comes before the pixels."""
    at = 8
    for _ in range(_MAX_PIECES):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"acTL":
            yield from repeat(at, min(struct.unpack_from(">I", data, at + 8)[0], _MAX_PIECES))
        if kind in (b"acTL", b"IDAT"):
            return
        at += 12 + length


_ANIMATIONS = {b"GIF8": _find_gif_frames, b"RIFF": _find_webp_frames, b"\x89PNG": _find_png_frames}


def read_bmp(data: bytes) -> ImageHeader | None:
    (kind,) = struct.unpack_from("<I", data, 14)
    if kind == 12:
        return ImageHeader(*struct.unpack_from("<HH", data, 18))
    width, height = struct.unpack_from("<ii", data, 18)
    return ImageHeader(width, abs(height))  # a negative height counts rows from the top


def read_ico(data: bytes) -> ImageHeader | None:
    """Return the header of the largest picture of an icon file."""
    entry = find_largest_icon(data)
    if entry is None:
        return None
    if data.startswith(b"\x89PNG\r\n\x1a\n", entry.start):
        return read_png(data, entry.start)
    return ImageHeader(entry.size.width, entry.size.height)


@value_class
class IconEntry:
    """One picture of an icon file, as its directory lists it."""

    size: Size
    bits: int
    start: int
    length: int


def find_largest_icon(data: bytes) -> IconEntry | None:
    """Return the entry with the most pixels; of several, the one with the most colours."""
    (count,) = struct.unpack_from("<H", data, 4)
    entries = []
    for at in range(6, 6 + 16 * min(count, _MAX_PIECES), 16):
        width, height, bits, length, start = struct.unpack_from("<BB4xHII", data, at)
        entries.append(IconEntry(Size(width or 256, height or 256), bits, start, length))
    found = max(entries, key=lambda entry: (entry.size.pixels, entry.bits), default=None)
    if found is not None:
        _require_length(data, found.start + min(found.length, 64))
    return found


def read_psd(data: bytes) -> ImageHeader | None:
    height, width = struct.unpack_from(">II", data, 14)
    return ImageHeader(width, height)


def read_tiff(data: bytes) -> ImageHeader | None:
    tags = dict(_read_tiff_tags(data))
    return ImageHeader(tags.get(256, 0), tags.get(257, 0), _validate_orientation(tags.get(274, 1)))


# For each byte order: how to unpack a long and a short number, and the tag of the orientation.
_BYTE_ORDERS = {
    b"II": (struct.Struct("<I").unpack_from, struct.Struct("<H").unpack_from, b"\x12\x01"),
    b"MM": (struct.Struct(">I").unpack_from, struct.Struct(">H").unpack_from, b"\x01\x12"),
}


def read_exif_orientation(data: bytes, start: int = 0, end: int | None = None) -> int:
    """Return the orientation in the EXIF block from `start` to `end`; 1 if the block is damaged.

    The tag is searched for, because a camera writes dozens of others.
    """
    order = _BYTE_ORDERS.get(data[start : start + 2])
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
        return _validate_orientation((short if kind == 3 else long)(data, at + 8)[0]) if kind in (3, 4) else 1
    except struct.error:
        return 1


def _validate_orientation(orientation: int) -> int:
    return orientation if 1 <= orientation <= 8 else 1


def _read_tiff_tags(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the tags of the first directory of a TIFF whose value is one short or long number."""
    order = {b"II": "<", b"MM": ">"}[_slice_exactly(data, 0, 2)]
    (at,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, at)
    for entry in range(at + 2, at + 2 + 12 * min(count, _MAX_PIECES), 12):
        tag, kind, _ = struct.unpack_from(f"{order}HHI", data, entry)
        if kind in (3, 4):
            yield tag, struct.unpack_from(f"{order}{'H' if kind == 3 else 'I'}", data, entry + 8)[0]


def read_isobmff(data: bytes) -> ImageHeader | None:
    """Return the header of an AVIF or HEIC: the largest of its sizes is that of the whole picture."""
    meta = next((body for kind, body in _read_boxes(data) if kind == b"meta"), None)
    if meta is None:
        raise IndexError
    shared = dict(_read_boxes(dict(_read_boxes(meta[4:])).get(b"iprp", b""))).get(b"ipco", b"")
    properties = list(_read_boxes(shared))
    sizes = [struct.unpack_from(">II", body, 4) for kind, body in properties if kind == b"ispe"]
    turns = next((body[0] & 3 for kind, body in properties if kind == b"irot"), 0)
    mirror = next((body[0] & 1 for kind, body in properties if kind == b"imir"), None)
    if not sizes:
        return None
    width, height = max(sizes, key=lambda size: size[0] * size[1])
    return ImageHeader(width, height, _ISOBMFF_ORIENTATIONS[turns, mirror])


# Quarter turns to the left, then a mirror: 0 exchanges top and bottom, 1 left and right.
_ISOBMFF_ORIENTATIONS = {
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


def _read_boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each box with its content, except the picture itself, which may come before its description."""
    at = 0
    for _ in range(_MAX_PIECES):
        if at == len(data):
            return
        (length, kind), head = _unpack_chunk(data, at), 8
        if length == 1:  # the real length follows
            (length,), head = struct.unpack_from(">Q", data, at + 8), 16
        if length < head:
            return
        if kind == b"mdat":
            _require_length(data, at + length)
        else:
            yield kind, _slice_exactly(data, at + head, length - head)
        at += length
