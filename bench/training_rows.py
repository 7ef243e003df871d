"""Measure the training pictures: rows of numbers about places that may be controls, each with what the DOM says.

Of each picture the whole and a few random crops are measured, so that no measure depends on what else a page has.
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
from real_score import to_box
from training_lines import list_training_lines
from training_shapes import make_sheet
from training_sketches import make_sketch

from sightline.model.geometry import Box
from sightline.reader import control_features as features
from sightline.reader.colours import add_colours
from sightline.reader.ocr.weights import OcrEngine
from sightline.reader.reading import TOGGLES, InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import contains_centre, find_indexes_inside, is_inside
from sightline.reader.regions import Segments, segment_image
from sightline.reader.toggle_features import ToggleMeasures, measure_mates, measure_toggles, propose_toggles
from sightline.reader.toggles import ANSWERS, label_toggles

Truth = dict[str, Any]
Labels = NDArray[np.int64]
SAME, NEARLY = 0.55, 0.4  # overlap with a control: it is it, and it may be
CROPS = 2
SKETCHES_PER_SHEET = 4
NONE = np.zeros((0, 0), np.float32)
STEP = 170  # values of a small picture are kept in steps of 1 / STEP
SAME_TOGGLE, CONCENTRIC = 0.6, (0.38, 0.2)  # overlap with a toggle; the same, and heights between the middles, twice
SLIM = 1.2  # ratio of the width of a switch to its height, at least
UNKNOWN = -1  # a place that is neither right nor wrong


@dataclass
class Rows:
    """What one picture, or one crop of it, gives; the answers are 1, 0 or UNKNOWN, those of toggles a class."""

    controls: NDArray[np.float32]
    control_answers: Labels  # two columns: is it a button, is it a field
    control_boxes: NDArray[np.int64]
    toggles: NDArray[np.float32]
    own: NDArray[np.uint8]  # small pictures of toggles, in steps of 1 / STEP
    around: NDArray[np.uint8]
    toggle_answers: Labels
    toggle_boxes: NDArray[np.int64]
    crop: bool = False


def write_rows(pictures: Sequence[Path], folder: Path, engine: OcrEngine, *, only_toggles: bool = False) -> None:
    """Write the rows of each picture into a file of its own, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        file = folder / f"{picture.parent.name}-{picture.stem}.pickle"
        if file.exists():
            continue
        truth = json.loads(picture.with_suffix(".json").read_text())
        if truth["kind"] == "photograph":
            continue
        pixels = np.asarray(Image.open(picture).convert("RGB"))
        lines = list_training_lines(picture, pixels, truth, folder.parent / "lines", engine)
        rows = [measure_picture(pixels, lines, truth, only_toggles=only_toggles)]
        chance = random.Random(f"{picture.stem}crop")
        crops = [crop_picture(pixels, lines, truth, chance) for _ in range(CROPS)]
        rows += [replace(measure_picture(*crop, only_toggles=only_toggles), crop=True) for crop in crops]
        _write_whole(file, (truth["name"], str(picture), [vars(each) for each in rows]))


def _write_whole(file: Path, rows: tuple[str, str, list[dict[str, Any]]]) -> None:
    """Write a file at once: one that was stopped half-way is not there."""
    part = file.with_suffix(".part")
    part.write_bytes(pickle.dumps(rows))
    part.replace(file)


def write_sketch_rows(count: int, folder: Path, *, only_toggles: bool = False) -> None:
    """Write the rows of sketches, and those of sheets of shapes, each kind into one file, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw, many in (("sketch", make_sketch, count), ("shapes", make_sheet, count // SKETCHES_PER_SHEET)):
        file = folder / ("sketches.pickle" if name == "sketch" else "shapes.pickle")
        if not file.exists():
            drawn = map(draw, range(many))
            rows = [measure_picture(each.pixels, each.lines, each.truth, only_toggles=only_toggles) for each in drawn]
            _write_whole(file, (f"training {name}", "", [vars(each) for each in rows]))


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


def measure_picture(pixels: Pixels, lines: Sequence[TextLine], truth: Truth, *, only_toggles: bool = False) -> Rows:
    """Measure every place of a picture that may be a control."""
    segments = segment_image(pixels)
    small = propose_toggles(segments)
    seen = ToggleMeasures(NONE, NONE, NONE)
    if len(small):
        seen = measure_toggles(pixels, small, features.list_lines(lines), measure_mates(small))
    boxes, measured = np.zeros((0, 4), np.int64), NONE
    if not only_toggles:
        boxes, measured = _measure_controls(pixels, lines, truth, segments)
    return Rows(
        measured, answer_controls(boxes, truth), boxes, seen.numbers, _shrink(seen.own), _shrink(seen.around),
        answer_toggles(small, truth), small,
    )  # fmt: skip


def _measure_controls(
    pixels: Pixels, lines: Sequence[TextLine], truth: Truth, segments: Segments
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the places that may be buttons and fields, with their measures."""
    toggles = [to_box(each["box"]) for each in truth["controls"] if each["kind"] in TOGGLES]
    texts = [line for line in lines if len(line.text) > 2 or not any(is_inside(line.box, box) for box in toggles)]
    page = features.list_lines(add_colours(pixels, texts))
    boxes, shapes = features.propose_controls(segments, page, (pixels.shape[1], pixels.shape[0]))
    return boxes, features.measure_controls(pixels, boxes, shapes, page) if len(boxes) else NONE


def _shrink(patches: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.rint(patches * STEP).astype(np.uint8)


def list_true_parts(rows: Rows, lines: Sequence[TextLine]) -> list[InterfacePart]:
    """Return the controls that are there, each once, by the largest box around it."""
    kinds: tuple[PartKind, ...] = ("button", "field")
    parts = []
    for column, kind in enumerate(kinds):
        for box, _ in _choose_largest(rows.control_boxes, rows.control_answers[:, column]):
            parts.append(InterfacePart(kind, box, (0, 0, 0), find_indexes_inside(box, [line.box for line in lines])))
    toggles = [
        InterfacePart(ANSWERS[answer - 1][0], box, (0, 0, 0), (), ANSWERS[answer - 1][1])
        for box, answer in _choose_largest(rows.toggle_boxes, rows.toggle_answers)
    ]
    return [*parts, *label_toggles(toggles, lines)]


def _choose_largest(boxes: NDArray[np.int64], answers: Labels) -> Iterator[tuple[Box, int]]:
    used: list[Box] = []
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for at in np.argsort(-areas, kind="stable"):
        box = to_box(boxes[at].tolist())
        if answers[at] > 0 and not any(contains_centre(other, box) for other in used):
            used.append(box)
            yield box, int(answers[at])


def _measure_best(boxes: NDArray[np.int64], controls: Sequence[dict[str, Any]]) -> tuple[NDArray[np.float64], Labels]:
    """Return each box's largest overlap with a control, and with which."""
    known = [(at, each[key]) for at, each in enumerate(controls) for key in ("box", "inner") if key in each]
    if not known or not len(boxes):
        return np.zeros(len(boxes)), np.zeros(len(boxes), dtype=np.int64)
    a, b = boxes[:, None].astype(np.float64), np.rint(np.array([edges for _, edges in known], dtype=np.float64))[None]
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    shared = np.clip(sides, 0, None).prod(axis=-1)
    areas = [np.maximum(1, each[..., 2:] - each[..., :2]).prod(axis=-1) for each in (a, b)]
    overlap = shared / (areas[0] + areas[1] - shared)
    return overlap.max(axis=1), np.array([at for at, _ in known])[overlap.argmax(axis=1)]


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
    """Return the class of each box: 0 for none, else its place in `ANSWERS` from 1.

    A box is a toggle if it nearly covers it, or is smaller or larger around the same middle: a ring within a halo, or
    the knob of a switch that is higher than its track.
    """
    toggles = [each for each in truth["controls"] if each["kind"] in TOGGLES]
    overlap, which = _measure_best(boxes, toggles)
    answers = np.zeros(len(boxes), dtype=np.int64)
    answers[overlap >= NEARLY] = UNKNOWN
    for at in np.flatnonzero(overlap >= CONCENTRIC[0]):
        known, box = to_box(toggles[which[at]]["box"]), to_box(boxes[at].tolist())
        away = max(
            abs(2 * known.x + known.width - 2 * box.x - box.width),
            abs(2 * known.y + known.height - 2 * box.y - box.height),
        )
        if overlap[at] < SAME_TOGGLE and away > CONCENTRIC[1] * known.height:
            continue
        if toggles[which[at]]["kind"] == "switch" and box.width < SLIM * box.height:
            continue
        answers[at] = _find_class(toggles[which[at]])
    for each in toggles:
        if each["kind"] == "switch":
            whole = _hold_whole_switch(boxes, to_box(each["box"])) & (answers <= 0)
            answers[whole] = _find_class(each)
    return answers


def _find_class(toggle: dict[str, Any]) -> int:
    state = toggle["kind"], toggle["checked"]
    return 1 + ANSWERS.index(state) if state in ANSWERS else UNKNOWN


def _hold_whole_switch(boxes: NDArray[np.int64], track: Box) -> NDArray[np.bool_]:
    """Return which boxes are around a switch whose knob is larger than its track, with its shadow."""
    left, top, right, bottom = boxes.T
    slack, over = 0.12 * track.width, 0.9 * track.height
    held: NDArray[np.bool_] = (
        (left <= track.x + slack) & (right >= track.right - slack) & (top <= track.y + 2) & (bottom >= track.bottom - 2)
        & (left >= track.x - over) & (right <= track.right + over)
        & (top >= track.y - over) & (bottom <= track.bottom + 1.2 * over)
        & (np.abs(top + bottom - 2 * track.y - track.height) <= over)
        & (right - left >= SLIM * (bottom - top))
    )  # fmt: skip
    return held
