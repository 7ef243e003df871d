"""Measure the training pictures: rows of numbers about places that may be controls, each with what the DOM says.

Of each picture the whole and a few random crops are measured, so that no measure depends on what else a page has. The
lines of the corpus are those that the reader reads; those of the other pictures are made of the DOM's words and of the
ink of fields and buttons, with icons and toggles read as letters now and then, as the reader does.
"""

import json
import pickle
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from real_score import _join_lines, join_pieces, measure_overlap, to_box
from training_sketches import make_sketch

from sightline.model.geometry import Box
from sightline.reader import control_features as features
from sightline.reader.colours import add_colours, find_common_colour, measure_distances
from sightline.reader.controls import ANSWERS
from sightline.reader.ocr.page import read_page
from sightline.reader.ocr.weights import OcrEngine, release_memory
from sightline.reader.reading import TOGGLES, Pixels, TextLine
from sightline.reader.rectangles import contains_centre, is_inside
from sightline.reader.regions import segment_image

Truth = dict[str, Any]
Labels = NDArray[np.int64]
SAME, NEARLY = 0.55, 0.4  # overlap with a control: it is it, and it may be
CROPS = 4
INK = 0.35  # of the strongest difference from the background
NONE = np.zeros((0, 0), np.float32)
UNKNOWN = -1  # a place that is neither right nor wrong


@dataclass
class Rows:
    """What one picture, or one crop of it, gives; the answers are 1, 0 or UNKNOWN, those of toggles a class."""

    controls: NDArray[np.float32]
    control_answers: Labels  # two columns: is it a button, is it a field
    control_boxes: NDArray[np.int64]
    toggles: NDArray[np.float32]
    toggle_answers: Labels
    toggle_boxes: NDArray[np.int64]
    crop: bool = False


def write_rows(pictures: Sequence[Path], folder: Path, engine: OcrEngine) -> None:
    """Write the rows of each picture into a file of its own, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        truth = json.loads(picture.with_suffix(".json").read_text())
        file = folder / f"{picture.parent.name}-{picture.stem}.pickle"
        if truth["kind"] == "photograph" or file.exists():
            continue
        pixels = np.asarray(Image.open(picture).convert("RGB"))
        if truth["name"].startswith("training "):
            lines = list(write_lines(pixels, truth, random.Random(picture.stem)))
        else:
            lines = list(read_page(pixels, engine).lines)
            release_memory()
        rows = [measure_picture(pixels, lines, truth)]
        chance = random.Random(f"{picture.stem}crop")
        crops = [crop_picture(pixels, lines, truth, chance) for _ in range(CROPS)]
        rows += [replace(measure_picture(*crop), crop=True) for crop in crops]
        file.write_bytes(pickle.dumps((truth["name"], str(picture), [vars(each) for each in rows])))


def write_sketch_rows(count: int, folder: Path) -> None:
    """Write the rows of sketches, all into one file."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [make_sketch(number) for number in range(count)]
    rows = [vars(measure_picture(each.pixels, each.lines, each.truth)) for each in drawn]
    (folder / "sketches.pickle").write_bytes(pickle.dumps(("training sketch", "", rows)))


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


def crop_picture(
    pixels: Pixels, lines: Sequence[TextLine], truth: Truth, chance: random.Random
) -> tuple[Pixels, list[TextLine], Truth]:
    """Return a part of a picture, mostly around a control; what it cuts off is none, as at the edge of a window."""
    scale = chance.choice((1, 1, 2))
    wide = min(pixels.shape[1], scale * chance.randint(180, 700))
    high = min(pixels.shape[0], scale * chance.randint(60, 380))
    asked = [each["box"] for each in truth["controls"] if each["kind"] not in ("pressable", "input")]
    if asked and chance.random() < 0.8:
        left, top, right, bottom = chance.choice(asked)
        x = (left + right) / 2 + chance.uniform(-0.4, 0.4) * wide
        y = (top + bottom) / 2 + chance.uniform(-0.4, 0.4) * high
    else:
        x, y = chance.uniform(0, pixels.shape[1]), chance.uniform(0, pixels.shape[0])
    x0 = int(max(0, min(pixels.shape[1] - wide, x - wide / 2)))
    y0 = int(max(0, min(pixels.shape[0] - high, y - high / 2)))
    window = Box(x0, y0, wide, high)

    def move(edges: Sequence[float]) -> list[float]:
        return [edges[0] - x0, edges[1] - y0, edges[2] - x0, edges[3] - y0]

    kept = [each for each in truth["controls"] if is_inside(to_box(each["box"]), window, slack=0)]
    moved = [
        replace(line, box=Box(line.box.x - x0, line.box.y - y0, line.box.width, line.box.height))
        for line in lines if is_inside(line.box, window, slack=0)
    ]  # fmt: skip
    seen = {
        "controls": [{**each, **{key: move(each[key]) for key in ("box", "inner") if key in each}} for each in kept],
        "pictures": [move(edges) for edges in truth["pictures"]],
    }
    return np.ascontiguousarray(pixels[y0 : y0 + high, x0 : x0 + wide]), moved, seen


def measure_picture(pixels: Pixels, lines: Sequence[TextLine], truth: Truth) -> Rows:
    """Measure every place of a picture that may be a control."""
    toggles = [to_box(each["box"]) for each in truth["controls"] if each["kind"] in TOGGLES]
    texts = [line for line in lines if len(line.text) > 2 or not any(is_inside(line.box, box) for box in toggles)]
    coloured = add_colours(pixels, texts)
    segments, page = segment_image(pixels), features.list_lines(coloured)
    boxes, shapes = features.propose_controls(segments, page, (pixels.shape[1], pixels.shape[0]))
    small = features.propose_toggles(segments)
    return Rows(
        features.measure_controls(pixels, boxes, shapes, page) if len(boxes) else NONE, answer_controls(boxes, truth),
        boxes, features.measure_toggles(pixels, small, features.list_lines(lines)) if len(small) else NONE,
        answer_toggles(small, truth), small,
    )  # fmt: skip


def _measure_best(boxes: NDArray[np.int64], controls: Sequence[dict[str, Any]]) -> tuple[NDArray[np.float64], Labels]:
    """Return each box's largest overlap with a control, and with which."""
    known = [(at, to_box(each[key])) for at, each in enumerate(controls) for key in ("box", "inner") if key in each]
    best, which = np.zeros(len(boxes)), np.zeros(len(boxes), dtype=np.int64)
    for place, edges in enumerate(boxes.tolist()):
        for at, box in known:
            overlap = measure_overlap(to_box(edges), box)
            if overlap > best[place]:
                best[place], which[place] = overlap, at
    return best, which


def answer_controls(boxes: NDArray[np.int64], truth: Truth) -> Labels:
    """Return whether each box is a button, and whether it is a field; what may be one is unknown."""
    answers = np.zeros((len(boxes), 2), dtype=np.int64)
    for column, (kind, also) in enumerate((("button", "pressable"), ("field", "input"))):
        overlap, _ = _measure_best(boxes, [each for each in truth["controls"] if each["kind"] == kind])
        other, _ = _measure_best(boxes, [each for each in truth["controls"] if each["kind"] == also])
        answers[(other >= 0.5) | (overlap >= NEARLY), column] = UNKNOWN
        answers[overlap >= SAME, column] = 1
    for edges in truth["pictures"]:
        drawn = to_box(edges)
        inside = np.array([contains_centre(drawn, to_box(box)) for box in boxes.tolist()], dtype=bool)
        answers[inside] = UNKNOWN
    return answers


def answer_toggles(boxes: NDArray[np.int64], truth: Truth) -> Labels:
    """Return the class of each box: 0 for none, else its place in `ANSWERS` from 1."""
    toggles = [each for each in truth["controls"] if each["kind"] in TOGGLES]
    overlap, which = _measure_best(boxes, toggles)
    answers = np.zeros(len(boxes), dtype=np.int64)
    answers[overlap >= 0.3] = UNKNOWN
    for at in np.flatnonzero(overlap >= 0.6):
        state = toggles[which[at]]["kind"], toggles[which[at]]["checked"]
        answers[at] = 1 + ANSWERS.index(state) if state in ANSWERS else UNKNOWN
    return answers
