"""What a line says: a network that gives each narrow strip of it a letter, and the letters put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.seers.local.engine import Reader

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float32]

HEIGHT = 48  # of a line, as the networks were taught
_WIDEST, _NARROWEST = 4096, 32  # a longer line is squeezed, a shorter one followed by nothing


@dataclass(frozen=True, slots=True)
class Letter:
    text: str
    place: float  # its middle, as a share of the picture's width
    sure: float


def width_of(picture: Pixels) -> int:
    """The width of a line at the height that the network takes: what it costs to read."""
    height, width = int(picture.shape[0]), int(picture.shape[1])
    return min(_WIDEST, max(1, round(width * HEIGHT / height)))


def letters(picture: Pixels, reader: Reader, stretch: float = 1.0) -> list[Letter]:
    """The letters of an upright picture of one line, made wider or narrower first.

    One line at a time: several together cost more, since all have to be as wide as the widest.
    """
    width = max(1, round(width_of(picture) * stretch))
    scaled = Image.fromarray(picture).resize((width, HEIGHT), Image.Resampling.BICUBIC)
    levels = np.zeros((1, 3, HEIGHT, max(width, _NARROWEST)), np.float32)
    # The network was taught with blue first.
    inked = levels[0, :, :, :width]
    np.multiply(np.asarray(scaled)[:, :, ::-1].transpose(2, 0, 1), np.float32(1 / 127.5), out=inked)
    inked -= 1
    strips = reader.recogniser.run(levels)[0]
    return _spelt(strips, reader.alphabet, levels.shape[3] / width / len(strips))


def _spelt(strips: Floats, alphabet: Sequence[str], step: float) -> list[Letter]:
    """The best letter of each strip; one that goes on is one letter, until a strip says that nothing is new."""
    best = strips.argmax(1)
    starts = np.flatnonzero(np.diff(best, prepend=-1))
    ends = np.append(starts[1:], len(best))
    return [
        Letter(alphabet[best[start]], (start + end) / 2 * step, float(strips[start:end, best[start]].max()))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        if best[start]
    ]
