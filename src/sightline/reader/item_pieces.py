"""Cut lines that hold several items beside each other: tabs, links and page numbers that were read as one line.

Words of a text have narrow gaps between them; items are further apart. A cut is only made where all words are found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.colours import add_colours
from sightline.reader.page_text import measure_letter_size
from sightline.reader.reading import Pixels, TextLine

APART, SPACE = 0.62, 0.2  # letter sizes between two items, and between two words, at least
LONGEST_ROW = 120  # characters of a line of items
INK = 0.3  # of the difference of the ink from the background


def cut_items(pixels: Pixels, lines: Sequence[TextLine]) -> tuple[list[TextLine], list[int]]:
    """Return the lines, in pieces where they hold several items, and for each piece the place of its line."""
    pieces: list[TextLine] = []
    places: list[int] = []
    for at, line in enumerate(lines):
        found = _cut_line(pixels, line)
        pieces += found
        places += [at] * len(found)
    return pieces, places


def _cut_line(pixels: Pixels, line: TextLine) -> Sequence[TextLine]:
    words, box = list(re.finditer(r"\S+", line.text)), line.box
    if len(words) < 2 or len(line.text) > LONGEST_ROW or line.ink is None or line.ground is None:
        return (line,)
    if box.height > box.width:
        return (line,)
    columns = _find_ink_columns(pixels, line)
    gaps = np.diff(columns)
    size = measure_letter_size(line)
    least = APART * size
    if not (gaps > least).any() or np.count_nonzero(gaps > SPACE * size) < len(words) - 1:
        return (line,)
    between = np.sort(np.argsort(-gaps, kind="stable")[: len(words) - 1])  # the widest gaps are between words
    cuts = [at for at, gap in enumerate(between.tolist(), 1) if gaps[gap] > least]
    starts = [0, *cuts]
    pieces = []
    for start, end in zip(starts, [*cuts, len(words)], strict=True):
        left = columns[between[start - 1] + 1] if start else columns[0]
        right = columns[between[end - 1]] if end < len(words) else columns[-1]
        part = Box(max(0, box.x) + int(left), box.y, int(right - left) + 1, box.height)
        first, last = words[start].start(), words[end - 1].end()
        doubtful = tuple(place - first for place in line.doubtful if first <= place < last)
        pieces.append(replace(line, text=line.text[first:last], box=part, doubtful=doubtful, middles=None))
    return add_colours(pixels, pieces)


def _find_ink_columns(pixels: Pixels, line: TextLine) -> np.typing.NDArray[np.int64]:
    """Return the columns of a line, counted from its left end in the image, in which there is ink."""
    box = line.box
    crop = pixels[max(0, box.y) : box.bottom : 1 + box.height // 24, max(0, box.x) : box.right]
    ground, ink = np.array(line.ground, np.int16), np.array(line.ink, np.int16)
    off = np.abs(crop.astype(np.int16) - ground).max(axis=2)
    return np.flatnonzero((off > max(12, INK * int(np.abs(ink - ground).max()))).any(axis=0))
