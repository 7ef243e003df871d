"""Compare images by a perceptual hash of 64 bits.

The image is shrunk to 64x64 greys, letterboxed. Each of the 8x8 lowest frequencies of its cosine transform becomes a
bit: above their median or not. All numbers are whole, so that every machine computes the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import TYPE_CHECKING, Any

from sightline.model.geometry import Size
from sightline.model.image import ImageInfo
from sightline.model.refusal import Refusal
from sightline.pixels.probe import probe_within_limits

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

    from sightline.pixels.workers import WorkerReply

BITS = 64
_SIDE = 64
_FREQUENCIES = 8
_COSINES = tuple(
    tuple(round(4096 * math.cos(math.pi * wave * (2 * at + 1) / (2 * _SIDE))) for at in range(_SIDE))
    for wave in range(_FREQUENCIES)
)


def compare_hashes(a: int, b: int) -> float:
    """Return how similar two hashes are, from 0 to 1 (equal)."""
    return 1 - (a ^ b).bit_count() / BITS


def compare_replies(found: Sequence[WorkerReply | Refusal]) -> list[list[float]]:
    """Return the similarity of each pair of images, from the replies of `hash_task`; 0 where one was refused."""
    hashes = [None if isinstance(each, Refusal) else int(each.facts["hash"], 16) for each in found]
    return [[0.0 if a is None or b is None else compare_hashes(a, b) for b in hashes] for a in hashes]


def hash_image(data: bytes) -> int | Refusal:
    info = probe_within_limits(data)
    return info if isinstance(info, Refusal) else _hash_file(data, info)


def hash_bitmap(image: Bitmap) -> int:
    rows = _letterbox(image)
    # First along each row, then down the columns of the result.
    across = [[sum(map(mul, wave, row)) for row in rows] for wave in _COSINES]
    waves = [sum(map(mul, wave, column)) for wave in _COSINES for column in across]
    middle = sorted(waves)
    median = middle[BITS // 2 - 1] + middle[BITS // 2]  # twice the median, to stay whole
    return sum(1 << (BITS - 1 - at) for at, wave in enumerate(waves) if 2 * wave > median)


def hash_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Run `hash_image` in a worker; the hash is text, because it is too large for a number in JSON."""
    found = hash_image(data)
    return found if isinstance(found, Refusal) else ({"hash": f"{found:016x}"}, b"")


def _hash_file(data: bytes, info: ImageInfo) -> int | Refusal:
    from sightline.pixels.decode import decode  # only in a worker

    image = decode(data, info, shrink_to=Size(_SIDE, _SIDE))
    return image if isinstance(image, Refusal) else hash_bitmap(image)


def _letterbox(image: Bitmap) -> list[bytes]:
    """Return the rows of 64x64 greys. Transparent areas become white, as most pages show them."""
    if image.hasalpha():
        image = image.flatten(background=[255] * (image.bands - 1))
    small = image.thumbnail_image(_SIDE, height=_SIDE, size="both").colourspace("b-w")
    box = small.gravity("centre", _SIDE, _SIDE, extend="background", background=[0])
    pixels = box.cast("uchar").write_to_memory()
    return [bytes(pixels[at : at + _SIDE]) for at in range(0, _SIDE * _SIDE, _SIDE)]
