"""Colours: their names, the most common ones of an image, and those of text and its background."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box
from sightline.reader.reading import Colour, Pixels, TextLine

SAMPLE = 250_000  # pixels that are sampled to judge a whole image
MAX_COMMON = 6  # the most common colours of an image, at most
MIN_SHARE = 0.01  # the smallest share that such a colour has
SAME_SHADE = 6  # the largest difference in a channel between two shades of one colour

# Plain names, each with some shades that people call by it.
_NAMES: dict[str, str] = {
    "black": "000000 0b0b0f 161616 1e1e1e 0d1117",
    "dark grey": "333333 444444 3c3f41 2d2d30 4b5563",
    "grey": "666666 7f7f7f 888888 999999 6b7280",
    "light grey": "b0b0b0 c0c0c0 cccccc d5d5d5 e0e0e0 d1d5db",
    "white": "ffffff f8f8f8 f3f4f6 eeeeee",
    "red": "ff0000 d62728 dc2626 e53935 d13438 ef4444 c0392b cc3333",
    "dark red": "8b0000 7f1d1d 991b1b 660000",
    "pink": "ffc0cb ff69b4 e377c2 ec4899 f9a8d4 ff99bb",
    "light pink": "ffe4e9 fce7f3 fde2e2 fee2e2",
    "magenta": "ff00ff d100d1 c2185b",
    "orange": "ffa500 ff7f0e f97316 ff9800 e67e22 ed7d31 ea580c",
    "light orange": "ffd9a8 ffedd5 fed7aa",
    "brown": "8b4513 8c564b 795548 5d4037 a0522d 7c4a21",
    "beige": "f5f5dc f5deb3 e8dcc0 faebd7",
    "yellow": "ffff00 ffeb3b facc15 f1c40f ffc107 ffd700 eab308",
    "light yellow": "fffde7 fef9c3 fff9c4 fff3cd",
    "olive": "808000 bcbd22 6b8e23",
    "green": "008000 2ca02c 22c55e 4caf50 16a34a 2ecc71 70ad47 27ae60 00aa00",
    "bright green": "00ff00 39ff14 7cfc00",
    "dark green": "006400 14532d 1b5e20 0b3d0b",
    "light green": "90ee90 dcfce7 bbf7d0 c8e6c9 d4edda",
    "teal": "008080 0d9488 009688 14b8a6",
    "cyan": "00ffff 17becf 06b6d4 00bcd4 22d3ee",
    "light cyan": "e0ffff cffafe b2ebf2",
    "blue": "0000ff 1f77b4 0067c0 1a4fd8 2563eb 3b82f6 4472c4 1976d2 007acc 0d6efd 3498db 5470c6",
    "light blue": "add8e6 87ceeb 93c5fd dbeafe e0f2fe d0e4ff aec7e8",
    "dark blue": "00008b 000080 1e3a8a 0a2540 153c5d 1e2a47 0f172a 264f78",
    "purple": "800080 9467bd 7c3aed 8e44ad 9c27b0 6d28d9 a855f7",
    "dark purple": "3b0764 4a148c 301934",
    "light purple": "e6e6fa d8b4fe ede9fe c5b0d5",
}

_KNOWN: list[tuple[tuple[str, ...], NDArray[np.float64]]] = []


def add_colours(pixels: Pixels, lines: Iterable[TextLine]) -> tuple[TextLine, ...]:
    """Return the lines with the colours of their text and background; a line without pixels is unchanged."""
    return tuple(_add_line_colours(pixels, line) for line in lines)


def find_dominant_colours(pixels: Pixels) -> tuple[tuple[Colour, float], ...]:
    """Return the most common colours with their shares of the image."""
    flat = _sample_pixels(pixels)
    values, places, counts = np.unique(_pack_colours(flat, bits=8), return_inverse=True, return_counts=True)
    flat_ones = counts >= MIN_SHARE * len(flat)  # frequent colours count as they are, the rest by buckets
    found = [(_unpack_colour(int(values[place])), float(counts[place])) for place in np.flatnonzero(flat_ones)]
    rest = flat[~flat_ones[places]]
    coarse = _pack_colours((rest >> 4).astype(np.uint8), bits=4)
    sizes = np.bincount(coarse, minlength=4096)
    full = [
        bucket
        for bucket in np.argsort(-sizes, kind="stable")[: MAX_COMMON * 2]
        if sizes[bucket] >= MIN_SHARE / 2 * len(flat)
    ]
    found += [(find_common_colour(rest[coarse == bucket]), float(sizes[bucket])) for bucket in full]
    merged: list[tuple[Colour, float]] = []
    for shade, count in sorted(found, key=lambda each: -each[1]):
        like = next(
            (place for place, (known, _) in enumerate(merged) if compare_colours(known, shade) <= SAME_SHADE), None
        )
        if like is None:
            merged.append((shade, count))
        else:
            merged[like] = (merged[like][0], merged[like][1] + count)
    shares = [(colour, round(count / len(flat), 3)) for colour, count in sorted(merged, key=lambda each: -each[1])]
    return tuple((colour, share) for colour, share in shares[:MAX_COMMON] if share >= MIN_SHARE)


def name_colour(colour: Colour) -> str:
    """Return the plain English word for a colour."""
    names, shades = _load_shades()
    return names[int(np.argmin(((shades - _to_lab(np.array([colour]))) ** 2).sum(axis=1)))]


def is_photograph(pixels: Pixels) -> bool:
    """Return whether the pixels vary as in a photograph: few equal neighbours and no prevailing shade.

    A screen is flat, a gradient is even, and a scanned page is mostly paper.
    """
    if min(pixels.shape[:2]) < 16:
        return False
    left, right = pixels[:, :-1].reshape(-1, 3), pixels[:, 1:].reshape(-1, 3)
    step = max(1, len(left) // SAMPLE)
    left, right = left[::step].astype(np.int16), right[::step].astype(np.int16)
    step_size = np.abs(left - right).max(axis=1)
    if (step_size == 0).mean() > 0.5 or (step_size <= 1).mean() > 0.85:
        return False
    shades = np.bincount(left.sum(axis=1) // 24, minlength=32)  # of brightness
    fullest = np.convolve(shades, [1, 1, 1, 1], "valid").max()
    return bool(fullest / len(left) < 0.75)


def compare_colours(one: Colour, other: Colour) -> int:
    """Return the largest difference between two colours in any channel."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def measure_distances(pixels: Pixels, colour: Colour) -> Pixels:
    """Return each pixel's largest difference from a colour in any channel."""
    most = np.zeros(pixels.shape[:-1], dtype=np.uint8)
    for channel, value in enumerate(np.array(colour, dtype=np.uint8)):  # a plane at a time: numpy is slow on triples
        plane = pixels[..., channel]
        np.maximum(most, np.maximum(plane, value) - np.minimum(plane, value), out=most)
    return most


def find_common_colour(flat: Pixels) -> Colour:
    """Return the most common colour among some pixels."""
    packed = _pack_colours(flat, bits=8)
    values, counts = np.unique(packed, return_counts=True)
    return _unpack_colour(int(values[int(np.argmax(counts))]))


def unmix_colour(pixels: Pixels, colour: Colour, ground: Colour) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how much of a colour is mixed into each pixel, and what remains unexplained."""
    full = np.array(colour, dtype=float) - ground
    off = pixels.astype(float) - ground
    share = off @ full / max(1.0, float(full @ full))
    return share, np.abs(off - share[..., None] * full).max(axis=-1)


def crop_pixels(pixels: Pixels, box: Box, margin: int = 0) -> Pixels:
    """Return the pixels of a box and `more` pixels around it (fewer if negative), as far as the image goes."""
    return pixels[
        max(0, box.y - margin) : max(0, box.bottom + margin), max(0, box.x - margin) : max(0, box.right + margin)
    ]


def _add_line_colours(pixels: Pixels, line: TextLine) -> TextLine:
    flat = crop_pixels(pixels, line.box, margin=1).reshape(-1, 3)
    if not len(flat):
        return line
    ground = find_common_colour(flat)
    off = np.abs(flat.astype(np.int16) - ground).sum(axis=1)
    place = min(len(off) - 1, int(0.99 * len(off)))
    # Thin strokes mix with the background; what differs most from it is the colour of the text.
    core = flat[off >= 0.85 * max(1.0, float(np.partition(off, place)[place]))]
    ink = np.median(core, axis=0).astype(int) if len(core) else np.array(ground)
    return replace(line, ink=(int(ink[0]), int(ink[1]), int(ink[2])), ground=ground)


def _sample_pixels(pixels: Pixels) -> Pixels:
    flat = pixels.reshape(-1, 3)
    # A step that shares no factor with the width, so that no column is favoured.
    step = max(1, len(flat) // SAMPLE)
    while step > 1 and np.gcd(step, pixels.shape[1]) > 1:
        step += 1
    return flat[::step]


def _pack_colours(flat: Pixels, bits: int) -> NDArray[np.int64]:
    wide = flat.astype(np.int64)
    return (wide[:, 0] << 2 * bits) | (wide[:, 1] << bits) | wide[:, 2]


def _unpack_colour(value: int) -> Colour:
    return value >> 16, value >> 8 & 255, value & 255


def _load_shades() -> tuple[tuple[str, ...], NDArray[np.float64]]:
    if not _KNOWN:
        pairs = [(word, shade) for word, shades in _NAMES.items() for shade in shades.split()]
        _KNOWN.append((tuple(word for word, _ in pairs), _to_lab(np.array([list(bytes.fromhex(s)) for _, s in pairs]))))
    return _KNOWN[0]


def _to_lab(rgb: NDArray[np.int64]) -> NDArray[np.float64]:
    """Convert RGB to CIE L*a*b*, where distance means difference to the eye."""
    share = rgb / 255
    linear = np.where(share > 0.04045, ((share + 0.055) / 1.055) ** 2.4, share / 12.92)
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ matrix.T / np.array([0.9505, 1.0, 1.089])
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])], axis=1)


def format_colour(colour: Colour) -> str:
    """Return the name of a colour and its hexadecimal value."""
    return f"{name_colour(colour)} (#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x})"
