"""Correct what the DOM says of a picture where it isn't what can be seen.

real_corrections.json has what a person saw who was shown each picture with the DOM's boxes, and no reader's output:
what is drawn but not in the DOM, such as a check box without a role; what is in the DOM but can't be seen, such as a
selected item that looks like its siblings; and lines of code that are cut off. Only what was clear was noted.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from real_score import SAME, measure_overlap, to_box

Truth = dict[str, Any]
FILE = Path(__file__).resolve().with_name("real_corrections.json")
STATES = ("selected", "disabled")


@cache
def load_corrections() -> dict[str, list[dict[str, Any]]]:
    """Return the corrections of each picture by its name."""
    known: dict[str, list[dict[str, Any]]] = json.loads(FILE.read_text())
    return known


def correct_truth(truth: Truth) -> Truth:
    """Return what the DOM says with the corrections of its picture, or the same object if there are none."""
    corrections = load_corrections().get(truth["name"])
    if not corrections:
        return truth
    corrected = {**truth, **{name: [dict(each) for each in truth[name]] for name in ("controls", "states", "code")}}
    for each in corrections:
        if each["do"] == "code":
            _remove_line(each["line"], corrected)
        elif each["do"] == "add":
            _add(each, corrected)
        else:
            _remove(each["kind"], each["box"], corrected)
    return corrected


def _remove_line(text: str, truth: Truth) -> None:
    for block in truth["code"]:
        block["lines"] = [line for line in block["lines"] if line["text"] != text]


def _add(correction: dict[str, Any], truth: Truth) -> None:
    """Add what can be seen, unless it is there."""
    kind, box = correction["kind"], correction["box"]
    place = "states" if kind in STATES else "controls"
    if not any(_is_there(box, each) and each["kind"] == kind for each in truth[place]):
        state = {name: correction.get(name) for name in ("checked", "disabled")}
        truth[place].append({"kind": kind, "tag": "", "box": box, "text": "", **state})


def _remove(kind: str, box: list[float], truth: Truth) -> None:
    """Remove what can't be seen; a control that doesn't look disabled stays a control."""
    for place in ("states", "controls"):
        truth[place] = [each for each in truth[place] if not (each["kind"] == kind and _is_there(box, each))]
    for each in truth["controls"]:
        if kind == "disabled" and _is_there(box, each):
            each["disabled"] = False


def _is_there(box: list[float], each: dict[str, Any]) -> bool:
    return measure_overlap(to_box(box), to_box(each["box"])) >= SAME
