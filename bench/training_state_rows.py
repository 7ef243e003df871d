"""Measure the training pictures: rows of numbers about lines and controls, and which are selected or disabled."""

import json
import pickle
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from real_score import to_box
from training_lines import list_training_lines
from training_rows import NONE, UNKNOWN, Rows, Truth, answer_controls, answer_toggles, list_true_parts

from sightline.model.geometry import Box
from sightline.reader import control_features as features
from sightline.reader.colours import add_colours
from sightline.reader.item_features import find_badges, measure_items
from sightline.reader.item_pieces import cut_items
from sightline.reader.item_siblings import Siblings
from sightline.reader.ocr.weights import OcrEngine
from sightline.reader.paleness import measure_paleness
from sightline.reader.reading import TOGGLES, InterfacePart, Pixels, TextLine
from sightline.reader.rectangles import contains_centre, is_inside
from sightline.reader.regions import Segments, segment_image
from sightline.reader.states import MOST_LINES, is_item
from sightline.reader.toggle_features import propose_toggles

Answers = NDArray[np.int64]
UNTOLD = ("textual",)  # pictures whose truth doesn't say what is selected
SOME = 3  # of the pages of controls, one of so many: the others have little more
CODE = ("ace", "monaco", "codemirror", "xterm", "terminal")  # in programs the reader looks for no items


def write_state_rows(pictures: Sequence[Path], folder: Path, lines: Path, engine: OcrEngine) -> None:
    """Write the rows of each picture into a file of its own, unless it is there; lines are kept in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        file = folder / f"{picture.parent.name}-{picture.stem}.pickle"
        truth = json.loads(picture.with_suffix(".json").read_text())
        if file.exists() or truth["kind"] == "photograph" or not is_used(picture):
            continue
        pixels = np.asarray(Image.open(picture).convert("RGB"))
        read = list_training_lines(picture, pixels, truth, lines, engine)
        toggles = [to_box(each["box"]) for each in truth["controls"] if each["kind"] in TOGGLES]
        texts = [line for line in read if len(line.text) > 2 or not any(is_inside(line.box, box) for box in toggles)]
        if not texts or len(texts) > MOST_LINES:
            continue
        coloured, segments = add_colours(pixels, texts), segment_image(pixels)
        regions = features.list_boxes([region.box for region in segments.regions])
        rows = measure_states(pixels, coloured, regions, _list_parts(pixels, coloured, segments, truth), truth)
        file.write_bytes(pickle.dumps({"name": truth["name"], "picture": str(picture), **rows}))


def is_used(picture: Path) -> bool:
    """Return whether a picture is measured: of the pages that are made for the training of controls, only some are."""
    return picture.parent.name != "pictures" or sha256(picture.stem.encode()).digest()[0] % SOME == 0


def _list_parts(pixels: Pixels, lines: Sequence[TextLine], segments: Segments, truth: Truth) -> list[InterfacePart]:
    """Return the true controls, by the places that the reader looks at."""
    page = features.list_lines(lines)
    boxes, _ = features.propose_controls(segments, page, (pixels.shape[1], pixels.shape[0]))
    small = propose_toggles(segments)
    empty = np.zeros((0, 0), np.uint8)
    found = Rows(NONE, answer_controls(boxes, truth), boxes, NONE, empty, empty, answer_toggles(small, truth), small)
    return list_true_parts(found, lines)


def measure_states(
    pixels: Pixels, lines: Sequence[TextLine], regions: features.Ints, parts: Sequence[InterfacePart], truth: Truth
) -> dict[str, Any]:
    """Measure the lines of a picture as items, and its controls, and answer which are selected or disabled."""
    pieces, places = cut_items(pixels, lines)
    page = features.list_lines(pieces)
    items, siblings = measure_items(pixels, page, regions, parts, places)
    answers = answer_items(pieces, places, parts, truth)
    both = np.stack([_answer_group(answers, mates) for mates in siblings])
    both[0][find_badges(items[0], siblings[0])] = UNKNOWN
    pale = measure_paleness(pixels, parts, features.list_lines(lines)) if parts else NONE
    return {
        "items": items, "item_answers": both, "line_answers": answers, "item_boxes": page.boxes, "parts": pale,
        "part_answers": np.array(answer_parts(parts, truth)), "part_boxes": features.list_boxes([p.box for p in parts]),
    }  # fmt: skip


def answer_items(
    lines: Sequence[TextLine], places: Sequence[int], parts: Sequence[InterfacePart], truth: Truth
) -> Answers:
    """Return whether each line is selected; of what is no item it is unknown."""
    own = {at for part in parts if part.kind != "button" for at in part.lines}
    drawn = [to_box(edges) for edges in truth["pictures"]]
    selected = [to_box(each["box"]) for each in truth["states"] if each["kind"] == "selected"]
    if truth["name"].split()[0] in (*UNTOLD, *CODE):
        return np.full(len(lines), UNKNOWN)
    return np.array([
        UNKNOWN
        if places[at] in own or not is_item(line) or any(contains_centre(box, line.box) for box in drawn)
        else int(any(_share_centre(box, line.box) for box in selected))
        for at, line in enumerate(lines)
    ])  # fmt: skip


def _answer_group(answers: Answers, mates: Siblings) -> Answers:
    """Return the answers as items of a group: unknown where there is none, or where all of it is selected."""
    plain = ((answers[mates.at] <= 0) & mates.known).sum(axis=1)
    return np.where((mates.count == 0) | ((answers == 1) & (plain == 0)), UNKNOWN, answers)


def answer_parts(parts: Sequence[InterfacePart], truth: Truth) -> list[int]:
    pale = [each["box"] for each in truth["states"] if each["kind"] == "disabled" and each["tag"] != "INPUT"]
    pale += [each["box"] for each in truth["controls"] if each["disabled"] and each["kind"] != "pressable"]
    return [int(any(_share_centre(to_box(box), part.box) for box in pale)) for part in parts]


def _share_centre(one: Box, other: Box) -> bool:
    return contains_centre(one, other) or contains_centre(other, one)
