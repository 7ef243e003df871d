"""Return the lines of training pictures: as the reader reads them, or as the DOM has them.

The lines of the corpus are read once and kept. Those of other pictures are made of the DOM's words and of the ink of
fields and buttons, with icons and toggles read as letters now and then, as the reader does.
"""

import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from real_score import _join_lines, join_pieces, to_box

from sightline.model.geometry import Box
from sightline.reader.colours import find_common_colour, measure_distances
from sightline.reader.ocr.page import read_page
from sightline.reader.ocr.weights import OcrEngine, release_memory
from sightline.reader.reading import TOGGLES, Pixels, TextLine
from sightline.reader.rectangles import contains_centre

Truth = dict[str, Any]
INK = 0.35  # of the strongest difference from the background


def list_training_lines(picture: Path, pixels: Pixels, truth: Truth, folder: Path, engine: OcrEngine) -> list[TextLine]:
    """Return the lines of a picture; those of the corpus are kept in a folder."""
    if truth["name"].startswith("training "):
        return list(write_lines(pixels, truth, random.Random(picture.stem)))
    file = folder / f"{picture.parent.name}-{picture.stem}.pickle"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        lines = read_page(pixels, engine).lines
        release_memory()
        file.write_bytes(pickle.dumps(list(lines)))
    kept: list[TextLine] = pickle.loads(file.read_bytes())
    return kept


def write_lines(pixels: Pixels, truth: Truth, chance: random.Random) -> Iterator[TextLine]:
    """Yield the lines of a picture as the DOM has them, tight around their ink."""
    rows = [(text, tight) for text, box in _join_lines(join_pieces(truth["words"])) if (tight := find_ink(pixels, box))]
    controls = [(each, to_box(each["box"])) for each in truth["controls"]]
    for each, box in controls:
        written = each.get("text") if each["kind"] not in TOGGLES else ""
        inner = to_box(each.get("inner") or each["box"])
        if written and not any(contains_centre(inner, known) for _, known in rows):
            inset = max(3, round(0.18 * inner.height))
            size = inner.width - 2 * inset, inner.height - 2 * inset
            if min(size) >= 6 and (tight := find_ink(pixels, Box(inner.x + inset, inner.y + inset, *size), gap=0.55)):
                rows.append((written, tight))
        if each["kind"] in TOGGLES and chance.random() < 0.2:
            yield TextLine(chance.choice("O0oQ□○●√口回"), box, chance.uniform(0.4, 0.98))
    for edges in truth["icons"]:
        if chance.random() < 0.15 and (tight := find_ink(pixels, to_box(edges))):
            yield TextLine(chance.choice("OQXVDBoE0口+回"), tight, chance.uniform(0.4, 0.98))
    yield from (TextLine(text, box, chance.uniform(0.93, 1)) for text, box in rows)


def find_ink(pixels: Pixels, box: Box, gap: float | None = None) -> Box | None:
    """Return the box of what is drawn in a box; with a gap, in heights, only of its widest run of columns."""
    crop = pixels[max(0, box.y) : box.bottom, max(0, box.x) : box.right]
    if min(crop.shape[:2]) < 2:
        return None
    off = measure_distances(crop, find_common_colour(crop.reshape(-1, 3))).astype(int)
    if off.max() < 20:
        return None
    ink = off > INK * off.max()
    columns = np.flatnonzero(ink.any(axis=0))
    if gap is not None:
        pieces = np.split(columns, np.flatnonzero(np.diff(columns) > gap * len(crop)) + 1)
        columns = max(pieces, key=lambda piece: piece[-1] - piece[0])
    rows = np.flatnonzero(ink[:, columns[0] : columns[-1] + 1].any(axis=1))
    return Box(
        max(0, box.x) + int(columns[0]), max(0, box.y) + int(rows[0]),
        int(columns[-1] - columns[0]) + 1, int(rows[-1] - rows[0]) + 1,
    )  # fmt: skip
