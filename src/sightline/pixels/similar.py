"""How alike two images look: 64 bits that hold the coarse light and dark of each.

The image is shrunk to 64x64 greys, letterboxed; of its cosine transform the 8x8 lowest frequencies are kept, and
each becomes a bit: above their median or not. All in whole numbers, so that every machine finds the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import TYPE_CHECKING, Any

from sightline.model.geometry import Size
from sightline.model.image import Picture
from sightline.model.refusal import Refusal
from sightline.pixels.bitmap import decode
from sightline.pixels.decode_limits import within_bounds

if TYPE_CHECKING:
    from pyvips import Image as Bitmap

    from sightline.pixels.worker import Reply

BITS = 64
_SIDE = 64
_KEPT = 8
_COSINES = tuple(
    tuple(round(4096 * math.cos(math.pi * wave * (2 * at + 1) / (2 * _SIDE))) for at in range(_SIDE))
    for wave in range(_KEPT)
)


def similarity(a: int, b: int) -> float:
    """From 0 to 1, which is the same."""
    return 1 - (a ^ b).bit_count() / BITS


def likeness(found: Sequence[Reply | Refusal]) -> list[list[float]]:
    """How alike each two of several are, by what a worker found of each; where that cannot be said, not at all."""
    hashes = [None if isinstance(each, Refusal) else int(each.facts["hash"], 16) for each in found]
    return [[0.0 if a is None or b is None else similarity(a, b) for b in hashes] for a in hashes]


def hash_of(data: bytes) -> int | Refusal:
    picture = within_bounds(data)
    return picture if isinstance(picture, Refusal) else _of_file(data, picture)


def perceptual_hash(image: Bitmap) -> int:
    rows = _greys(image)
    # First along each row, then down the columns of what came out.
    across = [[sum(map(mul, wave, row)) for row in rows] for wave in _COSINES]
    waves = [sum(map(mul, wave, column)) for wave in _COSINES for column in across]
    middle = sorted(waves)
    median = middle[BITS // 2 - 1] + middle[BITS // 2]  # twice it, to stay whole
    return sum(1 << (BITS - 1 - at) for at, wave in enumerate(waves) if 2 * wave > median)


def hash_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """`hash_of`, for a worker; as text, since JSON's numbers are not whole in every language."""
    found = hash_of(data)
    return found if isinstance(found, Refusal) else ({"hash": f"{found:016x}"}, b"")


def _of_file(data: bytes, picture: Picture) -> int | Refusal:
    image = decode(data, picture, shrink_to=Size(_SIDE, _SIDE))
    return image if isinstance(image, Refusal) else perceptual_hash(image)


def _greys(image: Bitmap) -> list[bytes]:
    """The rows of the letterbox. What is transparent stands on white, as most pages show it."""
    if image.hasalpha():
        image = image.flatten(background=[255] * (image.bands - 1))
    small = image.thumbnail_image(_SIDE, height=_SIDE, size="both").colourspace("b-w")
    box = small.gravity("centre", _SIDE, _SIDE, extend="background", background=[0])
    pixels = box.cast("uchar").write_to_memory()
    return [bytes(pixels[at : at + _SIDE]) for at in range(0, _SIDE * _SIDE, _SIDE)]
